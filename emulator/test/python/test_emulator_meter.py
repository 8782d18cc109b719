"""Counts of the emulator's meter, for kernels whose numbers are known by hand."""

import mmap
import os
import subprocess
import sys

import numpy as np
import pytest
from edits import edit

import kvcache

SHARED = "#gpu.address_space<workgroup>"


def aligned(size, dtype=np.float32, offset=0):
    """An array of zeros, `offset` bytes into memory that begins with a page."""
    bytes = size * np.dtype(dtype).itemsize
    memory = np.frombuffer(mmap.mmap(-1, bytes + offset), np.uint8)
    return memory[offset:].view(dtype)


def module(body, workgroup="", blocks=1, threads=32):
    """`run` launches a kernel of `body`, which has %t, its thread, and two arrays."""
    shared = f"workgroup(%sm: memref<{workgroup}, {SHARED}>)" if workgroup else ""
    return f"""
module attributes {{gpu.container_module}} {{
gpu.module @kernels {{
  gpu.func @kernel(%in: memref<4096xf32>, %out: memref<4096xf32>) {shared} kernel {{
    %t = gpu.thread_id x
    %b = gpu.block_id x
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    {body}
    gpu.return
  }}
}}
func.func @run(%in: memref<4096xf32>, %out: memref<4096xf32>) {{
  %c1 = arith.constant 1 : index
  %blocks = arith.constant {blocks} : index
  %threads = arith.constant {threads} : index
  gpu.launch_func @kernels::@kernel blocks in (%blocks, %c1, %c1)
      threads in (%threads, %c1, %c1)
      args(%in: memref<4096xf32>, %out: memref<4096xf32>)
  return
}}
}}
"""


def compile(source, sanitize=False, chip="sm_100a"):
    return kvcache.jit(
        source, target=f"emulator:{chip}", sanitize=sanitize, meter=True
    )


def run(source, sanitize=False, offset=0, chip="sm_100a"):
    """The counts of the one launch of a module."""
    program = compile(source, sanitize, chip)
    program.call("run", aligned(4096, offset=offset), aligned(4096, offset=offset))
    (launch,) = program.launches
    return launch


def load(stride, first=0, lanes=1):
    """Loads a float, or several, at (first + t * stride), and uses it.

    The use writes one float of each thread, side by side.
    """
    vector = f"vector<{lanes}xf32>"
    return f"""
      %stride = arith.constant {stride} : index
      %first = arith.constant {first} : index
      %scaled = arith.muli %t, %stride : index
      %i = arith.addi %scaled, %first : index
      %v = vector.load %in[%i] {{alignment = {4 * lanes}}} : memref<4096xf32>, {vector}
      %s = vector.reduction <add>, %v : {vector} into f32
      memref.store %s, %out[%t] : memref<4096xf32>
    """


# Global memory


@pytest.mark.parametrize(
    "stride, first, lanes, bytes, sectors",
    [
        (1, 0, 1, 128, 4),  # coalesced
        (1, 1, 1, 128, 5),  # across one sector more
        (1, 8, 1, 128, 4),
        (2, 0, 1, 128, 8),
        (8, 0, 1, 128, 32),
        (64, 0, 1, 128, 32),
        (0, 0, 1, 128, 1),  # all the same
        (0, 5, 1, 128, 1),
        (4, 0, 4, 512, 16),
        (4, 4, 4, 512, 17),
        (8, 0, 4, 512, 32),
        (2, 0, 2, 256, 8),
        (2, 2, 2, 256, 9),
        (0, 4, 4, 512, 1),
    ],
)
@pytest.mark.parametrize("sanitize", [False, True])
def test_global_reads(stride, first, lanes, bytes, sectors, sanitize):
    launch = run(module(load(stride, first, lanes)), sanitize)
    assert launch.global_bytes_read == bytes
    assert launch.global_sectors_read == sectors
    assert launch.global_bytes_written == 128
    assert launch.global_sectors_written == 4
    assert launch.global_requests == 2
    assert launch.shared_requests == 0


def test_arrays_that_begin_inside_a_sector():
    launch = run(module(load(1)), offset=16)
    assert launch.global_sectors_read == 5
    assert launch.global_sectors_written == 5


def test_vectors_that_take_several_instructions():
    # 4-byte alignment: four instructions, each of 4 bytes at a distance of 16.
    launch = run(module(edit(load(4, 0, 4), ("alignment = 16", "alignment = 4"))))
    assert launch.global_bytes_read == 512
    assert launch.global_sectors_read == 4 * 16
    assert launch.global_requests == 4 + 1


@pytest.mark.parametrize(
    "chip, instructions", [("sm_90a", 2), ("sm_100a", 1), ("sm_120", 1)]
)
def test_vectors_of_32_bytes(chip, instructions):
    launch = run(module(load(8, 0, 8)), chip=chip)
    assert launch.global_bytes_read == 1024
    assert launch.global_sectors_read == instructions * 32
    assert launch.global_requests == instructions + 1


def test_blocks_and_warps_add_up():
    launch = run(module(load(1), blocks=6, threads=80))
    assert (launch.grid, launch.block) == ((6, 1, 1), (80, 1, 1))
    assert launch.global_bytes_read == 6 * 320
    assert launch.global_sectors_read == 6 * (4 + 4 + 2)
    assert launch.global_requests == 6 * 3 * 2


def test_loops_count_each_iteration():
    body = """
      %c1 = arith.constant 1 : index
      %c10 = arith.constant 10 : index
      %c32 = arith.constant 32 : index
      %s = scf.for %k = %c0 to %c10 step %c1 iter_args(%sum = %zero) -> f32 {
        %row = arith.muli %k, %c32 : index
        %i = arith.addi %row, %t : index
        %v = memref.load %in[%i] : memref<4096xf32>
        %next = arith.addf %sum, %v : f32
        scf.yield %next : f32
      }
      memref.store %s, %out[%t] : memref<4096xf32>
    """
    launch = run(module(body))
    assert launch.global_requests == 10 + 1
    assert launch.global_sectors_read == 40


def test_lanes_that_go_another_way():
    body = """
      %c8 = arith.constant 8 : index
      %isFirst = arith.cmpi ult, %t, %c8 : index
      scf.if %isFirst {
        memref.store %zero, %out[%t] : memref<4096xf32>
      }
    """
    launch = run(module(body))
    assert launch.global_requests == 1
    assert launch.global_bytes_written == 32
    assert launch.global_sectors_written == 1


def test_loops_of_different_lengths():
    # Thread t writes t times: request k has the lanes above k.
    body = """
      %c1 = arith.constant 1 : index
      scf.for %k = %c0 to %t step %c1 {
        memref.store %zero, %out[%t] : memref<4096xf32>
      }
    """
    launch = run(module(body))
    assert launch.global_requests == 31
    assert launch.global_bytes_written == 4 * sum(range(32))
    assert launch.global_sectors_written == sum(4 - (k + 1) // 8 for k in range(31))


def test_lanes_that_are_far_apart():
    # Lane 0 is through the loop when lane 1 begins. 2**16 requests wait for a lane.
    body = """
      %c1 = arith.constant 1 : index
      %n = arith.constant 66000 : index
      scf.for %k = %c0 to %n step %c1 {
        memref.store %zero, %out[%t] : memref<4096xf32>
      }
    """
    launch = run(module(body, threads=2))
    assert launch.global_bytes_written == 2 * 4 * 66000
    assert launch.global_requests == 66000 + (66000 - 2**16)


def test_atomics_are_read_and_written():
    body = """
      %one = arith.constant 1.0 : f32
      %old = memref.atomic_rmw addf %one, %out[%t] : (f32, memref<4096xf32>) -> f32
    """
    launch = run(module(body))
    assert launch.global_requests == 1
    assert launch.global_bytes_read == launch.global_bytes_written == 128
    assert launch.global_sectors_read == launch.global_sectors_written == 4


# Shared memory


def store_shared(stride, lanes, first=0):
    """Writes a float, or several, of shared memory at (first + t * stride)."""
    vector = f"vector<{lanes}xf32>"
    return f"""
      %stride = arith.constant {stride} : index
      %first = arith.constant {first} : index
      %scaled = arith.muli %t, %stride : index
      %i = arith.addi %scaled, %first : index
      %v = vector.broadcast %zero : f32 to {vector}
      vector.store %v, %sm[%i] {{alignment = {4 * lanes}}}
          : memref<4096xf32, {SHARED}>, {vector}
    """


@pytest.mark.parametrize(
    "stride, lanes, wavefronts, conflicts",
    [
        (1, 1, 1, 0),
        (2, 1, 2, 1),
        (3, 1, 1, 0),
        (4, 1, 4, 3),
        (32, 1, 32, 31),
        (33, 1, 1, 0),
        (0, 1, 1, 0),  # the same word
        (2, 2, 2, 0),  # half warps
        (4, 2, 4, 2),
        (32, 2, 32, 30),
        (4, 4, 4, 0),  # quarter warps
        (8, 4, 8, 4),
        (32, 4, 32, 28),
        (36, 4, 4, 0),  # rows of 128 bytes, padded by 16
        (0, 4, 4, 0),
    ],
)
def test_bank_conflicts(stride, lanes, wavefronts, conflicts):
    launch = run(module(store_shared(stride, lanes), workgroup="4096xf32"))
    assert launch.shared_requests == 1
    assert launch.shared_wavefronts == wavefronts
    assert launch.bank_conflicts == conflicts
    assert launch.global_requests == 0


def test_bank_conflicts_of_loads():
    body = store_shared(2, 1) + f"""
      %w = memref.load %sm[%i] : memref<4096xf32, {SHARED}>
      memref.store %w, %out[%t] : memref<4096xf32>
    """
    launch = run(module(body, workgroup="4096xf32"), sanitize=True)
    assert launch.shared_requests == 2
    assert launch.shared_wavefronts == 4
    assert launch.bank_conflicts == 2
    assert launch.global_requests == 1


def test_small_elements_share_words():
    body = f"""
      %half = arith.constant 0.0 : f16
      memref.store %half, %sm[%t] : memref<64xf16, {SHARED}>
    """
    launch = run(module(body, workgroup="64xf16"))
    assert (launch.shared_requests, launch.shared_wavefronts) == (1, 1)


def load_matrices(column):
    """ldmatrix of four matrices, row t of which begins at `column` of row t."""
    tile = f"memref<32x64xf16, {SHARED}>"
    return f"""
      %c7 = arith.constant 7 : index
      %c8 = arith.constant 8 : index
      {column}
      %half = arith.constant dense<1.0> : vector<8xf16>
      vector.store %half, %sm[%t, %c] {{alignment = 16}} : {tile}, vector<8xf16>
      gpu.barrier
      %m = nvgpu.ldmatrix %sm[%t, %c] {{numTiles = 4 : i32, transpose = false}}
          : {tile} -> vector<4x2xf16>
      %v = vector.extract %m[0, 0] : f16 from vector<4x2xf16>
      %x = arith.extf %v : f16 to f32
      memref.store %x, %out[%t] : memref<4096xf32>
    """


PLAIN = "%c = arith.muli %c0, %c8 : index"
SWIZZLED = """
  %low = arith.andi %t, %c7 : index
  %c = arith.muli %low, %c8 : index
"""


@pytest.mark.parametrize(
    "column, wavefronts, conflicts", [(PLAIN, 32, 28), (SWIZZLED, 4, 0)]
)
def test_rows_of_matrices(column, wavefronts, conflicts):
    source = module(load_matrices(column), workgroup="32x64xf16")
    launch = run(source, sanitize=True)
    # The stores of 16 bytes conflict as much.
    assert launch.shared_requests == 2
    assert launch.shared_wavefronts == 2 * wavefronts
    assert launch.bank_conflicts == 2 * conflicts


# Copies and barriers


def test_copies_by_threads():
    body = f"""
      %c4 = arith.constant 4 : index
      %i = arith.muli %t, %c4 : index
      %copy = nvgpu.device_async_copy %in[%i], %sm[%i], 4 {{bypassL1}}
          : memref<4096xf32> to memref<128xf32, {SHARED}>
      %group = nvgpu.device_async_create_group %copy
      nvgpu.device_async_wait %group {{numGroups = 0 : i32}}
      %v = memref.load %sm[%i] : memref<128xf32, {SHARED}>
      memref.store %v, %out[%t] : memref<4096xf32>
    """
    launch = run(module(body, workgroup="128xf32"), sanitize=True)
    copies = {"async_copy": kvcache.CopyMeter(32, 512, 512)}
    assert dict(launch.copies) == copies
    assert launch.global_bytes_read == 512
    assert launch.global_sectors_read == 16
    assert launch.global_requests == 2
    # The copy's store of 16 bytes, and the load of 4 at a distance of 16.
    assert launch.shared_requests == 2
    assert launch.shared_wavefronts == 4 + 4
    assert launch.bank_conflicts == 3


def test_bulk_copies_and_their_barrier():
    # The mbarrier is at byte 512, after the tile. Two phases of 256 bytes; the source
    # begins 16 bytes into a sector.
    body = """
      %tile = llvm.mlir.addressof @shared : !llvm.ptr<3>
      %barrier = llvm.getelementptr %tile[512] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %one = arith.constant 1 : i32
      %bytes = arith.constant 256 : i32
      %zero64 = arith.constant 0 : i64
      %base = memref.extract_aligned_pointer_as_index %in : memref<4096xf32> -> index
      %address = arith.index_cast %base : index to i64
      %c16 = arith.constant 16 : i64
      %from = arith.addi %address, %c16 : i64
      %source = llvm.inttoptr %from : i64 to !llvm.ptr<1>
      %to = llvm.addrspacecast %tile : !llvm.ptr<3> to !llvm.ptr<7>
      nvvm.mbarrier.init %barrier, %one : !llvm.ptr<3>, i32
      nvvm.fence.mbarrier.init
      scf.for %k = %c0 to %c2 step %c1 {
        %parity = arith.index_cast %k : index to i32
        nvvm.mbarrier.arrive.expect_tx %barrier, %bytes : !llvm.ptr<3>, i32
        nvvm.cp.async.bulk.shared.cluster.global %to, %source, %barrier, %bytes
            : !llvm.ptr<7>, !llvm.ptr<1>
        %ticks = arith.constant 1000 : i32
        nvvm.mbarrier.try_wait.parity %barrier, %parity, %ticks
            : !llvm.ptr<3>, i32, i32
      }
    """
    shared = (
        "gpu.module @kernels {\n  llvm.mlir.global internal @shared() "
        "{addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<520 x i8>"
    )
    source = edit(module(body, threads=1), ("gpu.module @kernels {", shared))
    launch = run(source, sanitize=True)
    assert dict(launch.copies) == {"bulk_load": kvcache.CopyMeter(2, 512, 512)}
    assert launch.global_bytes_read == 512
    assert launch.global_sectors_read == 2 * 9
    assert launch.global_requests == 0
    place = "byte 512 of shared @shared"
    assert dict(launch.barriers) == {512: kvcache.BarrierMeter(2, 512, place)}
    assert launch.barriers[512].bytes_per_phase == 256


# The object and the table


def test_names_and_text():
    launch = run(module(load(1), blocks=2000))
    assert launch.kernel == "@kernels::@kernel"
    assert launch.chip == "sm_100a"
    lines = str(launch).splitlines()
    assert lines[0] == (
        "@kernels::@kernel on sm_100a: 2000 x 1 x 1 blocks of 32 x 1 x 1 threads"
    )
    assert lines[1:4] == [
        "  global read        256,000 bytes",
        "                       8,000 sectors",
        "  global written     256,000 bytes",
    ]
    assert lines[-1] == "  bank conflicts           0"


def test_tables_of_copies_and_barriers():
    launch = kvcache.LaunchMeter(
        "@m::@k",
        "sm_90a",
        (1, 1, 1),
        (1, 1, 1),
        copies={"tensor_load": kvcache.CopyMeter(2, 1000, 1024)},
        products={"wgmma": kvcache.ProductMeter(3, 98304, 7680)},
        barriers={64: kvcache.BarrierMeter(2, 1024, "byte 64 of shared @full")},
    )
    assert launch.barriers[64].bytes_per_phase == 512
    assert [" ".join(line.split()) for line in str(launch).splitlines()[9:]] == [
        "tensor load 2 instructions",
        "1,000 bytes in global memory",
        "1,024 bytes in shared memory",
        "wgmma 3 instructions",
        "98,304 operations",
        "7,680 bytes in shared memory",
        "mbarrier at byte 64 of shared @full 2 phases",
        "1,024 bytes",
    ]


def test_launches_of_the_last_call():
    program = compile(module(load(1)))
    assert program.launches == ()
    assert str(program.launches) == ""
    for _ in range(3):
        program.call("run", aligned(4096), aligned(4096))
        assert len(program.launches) == 1


def test_a_call_with_several_launches():
    source = """
      func.func @twice(%m: memref<64xi32>) {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c64 = arith.constant 64 : index
        %v = arith.constant 1 : i32
        scf.parallel (%i) = (%c0) to (%c64) step (%c1) {
          memref.store %v, %m[%i] : memref<64xi32>
        }
        scf.parallel (%i) = (%c0) to (%c64) step (%c1) {
          memref.store %v, %m[%i] : memref<64xi32>
        }
        return
      }
    """
    program = compile(source)
    program.call("twice", aligned(64, np.int32))
    assert len(program.launches) == 2
    assert str(program.launches).count(" on sm_100a: ") == 2
    assert all(launch.global_bytes_written == 256 for launch in program.launches)


def test_tables_on_stderr():
    code = (
        "import kvcache, numpy as np\n"
        f"program = kvcache.jit({module(load(1))!r}, target='emulator:sm_90a',\n"
        "                      meter=True)\n"
        "m = np.zeros(4096, np.float32)\n"
        "program.call('run', m, m)\n"
    )
    environment = {**os.environ, "KVCACHE_EMULATOR_METER": "1"}
    result = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    lines = result.stderr.splitlines()
    assert lines[0].startswith("@kernels::@kernel on sm_90a: 1 x 1 x 1 blocks of 32")
    assert lines[1].split() == ["global", "read", "128", "bytes"]
    assert len({len(line) for line in lines[5:9]}) == 1
