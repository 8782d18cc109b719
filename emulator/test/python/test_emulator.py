"""kvcache.jit for the emulator: targets and options, memory of NumPy, errors."""

import gc
import mmap
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from edits import edit

import kvcache

TARGET = "emulator:sm_100a"

ADD = """
func.func @add(%a: memref<?xi32> {llvm.readonly}, %b: i32, %out: memref<?xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : memref<?xi32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %x = memref.load %a[%i] : memref<?xi32>
    %y = arith.addi %x, %b : i32
    memref.store %y, %out[%i] : memref<?xi32>
  }
  return
}
"""

# out[i] = m[i], by one thread for each, of which the last may be too many.
COPY_STRIDED = """
func.func @copy(%m: memref<?xi32, strided<[?], offset: ?>>, %n: index,
                %out: memref<?xi32, strided<[?], offset: ?>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %x = memref.load %m[%i] : memref<?xi32, strided<[?], offset: ?>>
    memref.store %x, %out[%i] : memref<?xi32, strided<[?], offset: ?>>
  }
  return
}
"""

KERNELS_ONLY = """
gpu.module @kernels {
  gpu.func @nothing() kernel {
    gpu.return
  }
}
"""


def add(program, size=100):
    a = np.arange(size, dtype=np.int32)
    a.flags.writeable = False
    out = np.zeros(size, np.int32)
    program.call("add", a, 5, out)
    np.testing.assert_array_equal(out, a + 5)


# Targets and options


@pytest.mark.parametrize("chip", kvcache.chips())
def test_every_chip(chip):
    program = kvcache.jit(ADD, target=f"emulator:{chip}")
    add(program)
    assert program.target == f"emulator:{chip}"
    assert list(program.functions) == ["add"]


@pytest.mark.parametrize("chip", ["", "sm_1", "SM_90", "sm_90a,sm_100a", "sm_90a "])
def test_unknown_chips(chip):
    with pytest.raises(ValueError, match="unknown chip .* known are sm_80, .*sm_100a"):
        kvcache.jit(ADD, target=f"emulator:{chip}")


@pytest.mark.parametrize("sanitize", [True, False])
@pytest.mark.parametrize("meter", [True, False])
@pytest.mark.parametrize("opt_level", [0, 3])
def test_options(sanitize, meter, opt_level):
    program = kvcache.jit(
        ADD, target=TARGET, sanitize=sanitize, meter=meter, opt_level=opt_level
    )
    add(program)


@pytest.mark.parametrize("name", ["sanitize", "meter"])
@pytest.mark.parametrize("value", [True, False])
def test_options_of_the_emulator_on_the_cpu(name, value):
    with pytest.raises(ValueError, match=f"'{name}' has no meaning for target 'cpu'"):
        kvcache.jit(ADD, **{name: value})


@pytest.mark.parametrize("name", ["sanitize", "meter"])
@pytest.mark.parametrize("value", [1, "yes", 0.5])
def test_switches_that_are_none(name, value):
    with pytest.raises(ValueError, match=f"expects '{name}' to be True or False, got"):
        kvcache.jit(ADD, target=TARGET, **{name: value})


def test_sources_with_errors():
    with pytest.raises(kvcache.CompileError) as info:
        kvcache.jit("func.func @f() { return 3 }", target=TARGET)
    assert info.value.diagnostics


def test_undefined_functions():
    source = """
      func.func private @missing(i32)
      func.func @f(%a: i32) {
        call @missing(%a) : (i32) -> ()
        return
      }
    """
    with pytest.raises(kvcache.CompileError, match="'missing' is called but defined"):
        kvcache.jit(source, target=TARGET)


def test_kernels_without_host_code():
    program = kvcache.jit(KERNELS_ONLY, target=TARGET)
    assert not program.functions
    with pytest.raises(ValueError, match="there is no function 'nothing'"):
        program.call("nothing")


def test_launches_without_the_meter():
    program = kvcache.jit(ADD, target=TARGET)
    with pytest.raises(ValueError, match="nothing was counted: compile with"):
        _ = program.launches


def test_ops_that_the_emulator_has_not():
    source = """
      gpu.module @kernels {
        gpu.func @kernel() kernel {
          nvvm.fence.sync_restrict {order = #nvvm.mem_order<acquire>}
          gpu.return
        }
      }
    """
    with pytest.raises(kvcache.CompileError, match="nvvm.fence.sync_restrict"):
        kvcache.jit(source, target="emulator:sm_90a")


# Memory of NumPy


@pytest.mark.parametrize("step", [1, 2, 3, -1, -2])
def test_strided_arrays(step):
    program = kvcache.jit(COPY_STRIDED, target=TARGET)
    values = np.arange(60, dtype=np.int32)[::step]
    out = np.zeros(120, np.int32)[:: 2 * step][: len(values)]
    program.call("copy", values, len(values), out)
    np.testing.assert_array_equal(out, values)


@pytest.mark.parametrize("step", [1, 2, -2])
def test_reads_after_a_strided_array(step):
    program = kvcache.jit(COPY_STRIDED, target=TARGET)
    memory = np.arange(128, dtype=np.int32)
    inside = memory[32:64:step] if step > 0 else memory[63:31:step]
    out = np.zeros(200, np.int32)
    # The memory around the array is there, and is not the function's.
    with pytest.raises(kvcache.CheckError, match="reads 4 bytes"):
        program.call("copy", inside, len(inside) + 1, out)


def test_writes_after_an_array():
    program = kvcache.jit(COPY_STRIDED, target=TARGET)
    values = np.arange(64, dtype=np.int32)
    out = np.zeros(64, np.int32)
    with pytest.raises(kvcache.CheckError, match="writes 4 bytes"):
        program.call("copy", values, 33, out[:32])
    assert not out[32:].any()
    # What was registered for that call is not any more, and nothing is missing.
    program.call("copy", values, 64, out)
    np.testing.assert_array_equal(out, values)


def test_writes_to_a_read_only_array():
    # The argument's mark is a promise of the source, which the kernel breaks.
    source = edit(COPY_STRIDED, ("?>>) {", "?>> {llvm.readonly}) {"))
    program = kvcache.jit(source, target=TARGET)
    values = np.arange(8, dtype=np.int32)
    out = np.zeros(8, np.int32)
    out.flags.writeable = False
    with pytest.raises(kvcache.CheckError, match="writes 4 bytes"):
        program.call("copy", values, 8, out)
    assert not out.any()


def test_arrays_that_overlap():
    program = kvcache.jit(COPY_STRIDED, target=TARGET)
    memory = np.arange(64, dtype=np.int32)
    expected = memory[::2].copy()
    program.call("copy", memory[::2], 32, memory[1::2])
    np.testing.assert_array_equal(memory[1::2], expected)
    program.call("copy", memory, 64, memory)
    np.testing.assert_array_equal(memory[::2], expected)


def test_arrays_without_elements():
    program = kvcache.jit(ADD, target=TARGET)
    add(program, size=0)


def test_wrong_arguments_leave_nothing_over():
    program = kvcache.jit(ADD, target=TARGET)
    good = np.zeros(8, np.int32)
    with pytest.raises(TypeError, match=r"argument 2 \('out'\) expects an array"):
        program.call("add", good, 1, [1, 2])
    add(program)


# Errors, calls and threads


def test_errors_name_the_place():
    program = kvcache.jit(COPY_STRIDED, target=TARGET, filename="copy.mlir")
    values = np.arange(8, dtype=np.int32)
    with pytest.raises(
        kvcache.CheckError,
        match=r"copy.mlir:\d+:\d+: launch of @.*copy.mlir:7:10: .*thread \(.*of block",
    ):
        program.call("copy", values, 9, np.zeros(9, np.int32))


def test_many_calls():
    program = kvcache.jit(ADD, target=TARGET)
    for size in range(1, 200, 7):
        add(program, size)


def test_modules_come_and_go(old_objects_stay):
    # A module's code may lie where an earlier one's was: it must not be known.
    for number in range(8):
        program = kvcache.jit(edit(ADD, ("%x, %b", "%b, %b")), target=TARGET)
        out = np.zeros(4, np.int32)
        program.call("add", out, number, out)
        assert (out == 2 * number).all()
        del program
        gc.collect()
        add(kvcache.jit(ADD, target=TARGET))
        gc.collect()


def test_threads():
    program = kvcache.jit(ADD, target=TARGET)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda size: add(program, size), range(1, 400, 5)))


def test_errors_in_threads():
    program = kvcache.jit(COPY_STRIDED, target=TARGET)

    def run(extra):
        values = np.arange(16, dtype=np.int32)
        out = np.zeros(17, np.int32)
        try:
            program.call("copy", values, 16 + extra, out)
        except kvcache.CheckError:
            return 1
        return 0

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(run, [0, 1] * 20)) == [0, 1] * 20


def test_the_cpu_and_the_emulator_agree():
    programs = [kvcache.jit(ADD, target=target) for target in ("cpu", TARGET)]
    for program in programs:
        add(program)


@pytest.mark.parametrize("threads", ["1", "3"])
def test_threads_of_the_host(threads):
    code = (
        "import kvcache, numpy as np\n"
        f"program = kvcache.jit({ADD!r}, target={TARGET!r})\n"
        "out = np.zeros(3000, np.int32)\n"
        "program.call('add', np.arange(3000, dtype=np.int32), 1, out)\n"
        "assert (out == np.arange(1, 3001)).all()\n"
    )
    environment = {**os.environ, "KVCACHE_EMULATOR_THREADS": threads}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


# --- Ctrl-C -------------------------------------------------------------------------

SQUARES = """
func.func @squares(%blocks: index, %n: index, %out: memref<?xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %start = arith.constant 3 : i64
  scf.parallel (%b) = (%c0) to (%blocks) step (%c1) {
    scf.parallel (%i) = (%c0) to (%c32) step (%c1) {
      %sum = scf.for %k = %c0 to %n step %c1 iter_args(%x = %start) -> (i64) {
        %square = arith.muli %x, %x : i64
        %y = arith.xori %square, %start : i64
        scf.yield %y : i64
      }
      %is_last = arith.cmpi eq, %b, %n : index
      scf.if %is_last {
        memref.store %sum, %out[%i] : memref<?xi64>
      }
    }
  }
  return
}
"""

INTERRUPT = """
import os, signal, sys, threading, time
import numpy as np
import kvcache

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it in what it runs in the background
program = kvcache.jit(sys.argv[1], target="emulator:sm_90a", sanitize=sys.argv[2] == "True", opt_level=3)
program.call("squares", 1, 10, np.zeros(32, np.int64))
sent = []

def interrupt():
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)

threading.Timer(0.3, interrupt).start()
try:
    program.call("squares", int(sys.argv[3]), int(sys.argv[4]), np.zeros(32, np.int64))
except KeyboardInterrupt:
    print(time.monotonic() - sent[0])
program.call("squares", 1, 10, np.zeros(32, np.int64))
"""


@pytest.mark.parametrize("sanitize", [True, False])
@pytest.mark.parametrize(("blocks", "rounds"), [(1, 2**60), (2**31 - 1, 10)])
def test_interrupts(blocks, rounds, sanitize):
    """Interrupts one endless thread, and many blocks, in much less than a second."""
    command = [sys.executable, "-c", INTERRUPT, SQUARES, str(sanitize), str(blocks), str(rounds)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    assert float(result.stdout) < 5  # on a machine with much else to do


# --- Memory as aligned as that of a device -------------------------------------------

WIDE = """
func.func @double(%a: memref<?xf32>, %b: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i) = (%c0) to (%c1) step (%c1) {
    %x = vector.load %a[%i] {alignment = 32} : memref<?xf32>, vector<8xf32>
    %y = arith.addf %x, %x : vector<8xf32>
    vector.store %y, %b[%i] {alignment = 32} : memref<?xf32>, vector<8xf32>
  }
  return
}
"""


def unaligned(size):
    """Floats in memory that begins at a multiple of 16 bytes, not of 32."""
    for _ in range(1000):
        array = np.zeros(size, np.float32)
        if array.ctypes.data % 32:
            return array
        unaligned.kept.append(array)
    pytest.skip("the allocator aligns all memory to 32 bytes, as AddressSanitizer does")


unaligned.kept = []


def test_wide_accesses_take_memory_of_numpy():
    program = kvcache.jit(WIDE, target=TARGET)
    a, b = unaligned(8), unaligned(8)
    a[:] = range(8)
    program.call("double", a, b)
    np.testing.assert_array_equal(b, 2 * a)
    # Arrays that overlap still do, whichever is written.
    both = unaligned(16)
    both[:8] = range(8)
    program.call("double", both, both[8:])
    np.testing.assert_array_equal(both[8:], 2 * both[:8])


def test_places_in_an_array_keep_their_alignment():
    program = kvcache.jit(WIDE, target=TARGET)
    with pytest.raises(kvcache.CheckError, match="multiple of 32 bytes"):
        program.call("double", unaligned(16)[4:12], unaligned(8))


# Memory of calls that fail

ALLOCATE = """
module attributes {gpu.container_module} {
gpu.module @kernels {
  gpu.func @trap(%fails: i1) kernel {
    scf.if %fails {
      %no = arith.constant false
      cf.assert %no, "wrong"
    }
    gpu.return
  }
}

func.func @check(%fails: i1, %size: index) {
  %zero = arith.constant 0 : i8
  %true = arith.constant true
  %m = gpu.alloc(%size) : memref<?xi8>
  gpu.memset %m, %zero : memref<?xi8>, i8
  %holds = arith.xori %fails, %true : i1
  cf.assert %holds, "wrong"
  gpu.dealloc %m : memref<?xi8>
  return
}

func.func @trap(%fails: i1, %size: index) {
  %zero = arith.constant 0 : i8
  %c1 = arith.constant 1 : index
  %m = gpu.alloc host_shared (%size) : memref<?xi8>
  gpu.memset %m, %zero : memref<?xi8>, i8
  gpu.launch_func @kernels::@trap blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%fails : i1)
  gpu.dealloc %m : memref<?xi8>
  return
}
}
"""


def count_resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * mmap.PAGESIZE


@pytest.mark.parametrize("function", ["check", "trap"])
def test_failing_calls_free_device_memory(function):
    program = kvcache.jit(ALLOCATE, target=TARGET, opt_level=0)
    size = 32 << 20
    program.call(function, False, size)
    before = count_resident_bytes()
    for _ in range(10):
        with pytest.raises(kvcache.CheckError, match="wrong"):
            program.call(function, True, size)
        program.call(function, False, size)
    assert count_resident_bytes() - before < 3 * size
