"""Tests of the bodies of saved libraries: one for each level of processors, chosen when a function is called."""

import ctypes
import functools
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import pytest
from binaries import llvm_tool

import kvcache
from kvcache import _native

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="other architectures have one body"),
]

# The extensions of GNU's assembler that a level adds.
ADDED = {
    "x86-64": "",
    "x86-64-v3": "+sse4.2+popcnt+avx2+bmi+bmi2+f16c+fma+lzcnt+movbe",
    "x86-64-v4": "+avx512f+avx512bw+avx512cd+avx512dq+avx512vl",
    "x86-64-v4-bf16": "+avx512_bf16",
    "x86-64-v4-amx": "+amx_tile+amx_bf16",
}
LEVELS = list(ADDED)
# Levels without matrix instructions, whose bodies have the same bits.
VECTORS = LEVELS[:3]
USABLE = LEVELS[: LEVELS.index(_native.extension().cpu_level()) + 1]
FEATURES = set(_native.extension().host()[2].split("+"))
if "avx512bf16" not in FEATURES:
    USABLE = [level for level in USABLE if level != "x86-64-v4-bf16"]

SOURCE = """
func.func @fma(%a: memref<?xf32>, %b: memref<?xf32>, %c: memref<?xf32>, %out: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %n = memref.dim %a, %c0 : memref<?xf32>
  scf.for %i = %c0 to %n step %c16 {
    %x = vector.load %a[%i] : memref<?xf32>, vector<16xf32>
    %y = vector.load %b[%i] : memref<?xf32>, vector<16xf32>
    %z = vector.load %c[%i] : memref<?xf32>, vector<16xf32>
    %s = math.fma %x, %y, %z : vector<16xf32>
    vector.store %s, %out[%i] : memref<?xf32>, vector<16xf32>
  }
  return
}
func.func @fused(%x: f32, %y: f32, %z: f32) -> f32 {
  %s = math.fma %x, %y, %z : f32
  return %s : f32
}
"""

# Calls @fused of a library, without TVM-FFI: 1 + 2^-23 times itself, minus itself.
CALLER = r"""
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

struct Any { int32_t type; uint32_t padding; union { int64_t integer; double real; }; };
typedef int32_t (*Function)(void *, const struct Any *, int32_t, struct Any *);

int main(int argc, char **argv) {
  void *library = dlopen(argv[1], RTLD_NOW);
  Function fused = library ? (Function)dlsym(library, "__tvm_ffi_fused") : 0;
  double number = 1 + 1.0 / (1 << 23);
  struct Any arguments[] = {{3, 0, {.real = number}}, {3, 0, {.real = number}}, {3, 0, {.real = -number}}};
  struct Any result = {0, 0, {0}};
  if (!fused)
    return fprintf(stderr, "%s\n", dlerror()), 2;
  for (int call = 0; call < 2; ++call)
    if (fused(0, arguments, 3, &result))
      return 1;
  printf("%.17g\n", result.real);
  return 0;
}
"""
FUSED = float(np.float32((1 + 2.0**-23) ** 2 - (1 + 2.0**-23)))


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("bodies") / "functions.so"
    kvcache.jit(SOURCE).save_library(path)
    return path


@pytest.fixture(scope="module")
def caller(tmp_path_factory):
    folder = tmp_path_factory.mktemp("caller")
    (folder / "caller.c").write_text(CALLER)
    subprocess.run(["cc", "-o", folder / "caller", folder / "caller.c", "-ldl"], check=True)
    return folder / "caller"


def make_operands():
    """Bits of any f32: normal, subnormal, infinite and not a number, also near each other's negatives."""
    random = np.random.default_rng(5)
    bits = random.integers(0, 1 << 32, (3, 1 << 16), dtype=np.uint32)
    operands = bits.view(np.float32)
    near = 1 << 14  # the sum almost cancels the product
    with np.errstate(all="ignore"):
        operands[:2, :near] = random.standard_normal((2, near), np.float32)
        operands[2, :near] = -(operands[0, :near] * operands[1, :near])
    halves = slice(near, 2 * near)  # the sum is in the middle of two numbers, up to the product
    operands[0, halves] = 2.0 ** random.integers(-60, -23, near)
    operands[1, halves] = random.choice([-1, 1], near)
    operands[2, halves] = random.integers(1 << 23, 1 << 24, near)
    return operands


def compute_fma(a, b, c):
    """The sums of exact products, rounded once, by the C library."""
    fmaf = ctypes.CDLL("libm.so.6").fmaf
    fmaf.restype, fmaf.argtypes = ctypes.c_float, [ctypes.c_float] * 3
    return np.array([fmaf(*row) for row in zip(a.tolist(), b.tolist(), c.tolist())], np.float32)


LOADER = """
import sys
import numpy as np
import tvm_ffi
library = tvm_ffi.load_module(sys.argv[1])
operands = np.load(sys.argv[2])
out = np.empty_like(operands[0])
library.fma(*operands, out)
np.save(sys.argv[3], out)
"""


@pytest.mark.parametrize("level", LEVELS)
def test_multiply_adds_have_one_rounding_in_each_body(library, level, tmp_path):
    operands = make_operands()
    np.save(tmp_path / "operands.npy", operands)
    command = [sys.executable, "-c", LOADER, library, tmp_path / "operands.npy", tmp_path / "out.npy"]
    subprocess.run(command, env=os.environ | {"KVCACHE_CPU": level}, check=True)
    out, wanted = np.load(tmp_path / "out.npy"), compute_fma(*operands)
    assert np.isfinite(wanted).sum() > 1 << 15
    np.testing.assert_array_equal(out, wanted)
    np.testing.assert_array_equal(np.signbit(out), np.signbit(np.where(np.isnan(wanted), out, wanted)))


@functools.cache
def compile_attention(opt_level=2):
    params = kvcache.KVCacheParams("bf16", 2, 64, page_size=4, total_num_layers=1)
    return kvcache.jit(kvcache.ops.attention(params, 8).source, opt_level=opt_level)


@functools.cache
def disassemble_bodies():
    """The instructions of attention for each level, as the assembler reads them."""
    program = compile_attention()
    text = {}
    for body in program._library.bodies:
        (contents, _), _ = program._library._compile(body)
        command = [llvm_tool("objdump"), "-d", "--no-show-raw-insn", "--no-leading-addr", "-"]
        done = subprocess.run(command, input=contents, check=True, capture_output=True)
        lines = re.findall(r"^[ \t]+([a-z][^<#\n]*)", done.stdout.decode(), re.MULTILINE)
        text[body.level] = "\n".join(lines)
    return text


def find_unsupported(text, level):
    """The instructions that GNU's assembler refuses for the features of a level; LLVM's accepts all."""
    extensions = "".join(ADDED[each] for each in LEVELS[: LEVELS.index(level) + 1])
    command = ["as", f"-march=generic64{extensions}", "-o", os.devnull, "-"]
    done = subprocess.run(command, input=f"{text}\n", text=True, capture_output=True, check=False)
    return re.findall(r"Error: .*", done.stderr)


@pytest.mark.parametrize("level", LEVELS)
def test_a_body_has_instructions_of_its_level_only(level):
    text = disassemble_bodies()[level]
    assert len(text.splitlines()) > 300
    found = {other: find_unsupported(text, other) for other in LEVELS}
    assert found[level] == []
    for lower in LEVELS[: LEVELS.index(level)]:
        assert len(found[lower]) > (100 if level in VECTORS else 10)


def test_a_baseline_body_calls_no_fused_multiply_add():
    library = kvcache.jit(SOURCE)._library
    (contents, _), _ = library._compile(library.bodies[0])
    assert b"__tvm_ffi_fused.x86-64\0" in contents
    assert b"fmaf\0" not in contents


def run_caller(caller, library, *emulator, **variables):
    command = [*emulator, caller, library]
    return subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("level", ["", *LEVELS])
def test_a_c_program_calls_a_library(caller, library, level):
    done = run_caller(caller, library, KVCACHE_CPU=level)
    assert (done.returncode, float(done.stdout)) == (0, FUSED), done.stderr


@pytest.mark.parametrize("processor", ["Nehalem", "SandyBridge", "Haswell"])
def test_an_emulated_processor_calls_a_library(caller, library, tmp_path, processor):
    """Sandy Bridge has AVX, but neither AVX2 nor FMA: an instruction of a higher level would be SIGILL."""
    emulator = shutil.which("qemu-x86_64")
    if not emulator:
        pytest.skip("there is no qemu-x86_64: install qemu-user")
    done = run_caller(caller, library, emulator, "-cpu", processor)
    assert (done.returncode, float(done.stdout)) == (0, FUSED), done.stderr
    kvcache.jit(SOURCE).save_library(tmp_path / "functions.so", cpu="x86-64-v3")
    done = run_caller(caller, tmp_path / "functions.so", emulator, "-cpu", processor)
    if processor == "Haswell":
        assert (done.returncode, float(done.stdout)) == (0, FUSED), done.stderr
    else:
        message = "expects a processor with the features of x86-64-v3, got one with those of x86-64\n"
        assert (done.returncode, done.stderr.endswith(message)) == (1, True), done.stderr


def test_a_library_has_the_chosen_bodies(caller, tmp_path):
    path = tmp_path / "functions.so"
    program = kvcache.jit(SOURCE)

    def find_bodies(name="fma"):
        pattern = rf"__tvm_ffi_{name}\.(x86-64[-v0-9a-z]*)\0"
        return set(re.findall(pattern.encode(), path.read_bytes()))

    program.save_library(path)
    assert find_bodies() == {level.encode() for level in VECTORS}
    compile_attention().save_library(path)
    assert find_bodies("attention") == {level.encode() for level in LEVELS}
    program.save_library(path, cpu="native")
    assert find_bodies() == {USABLE[-1].encode()}
    program.save_library(path, cpu="x86-64")
    assert find_bodies() == {b"x86-64"}
    for wrong in ("", "x86-64-v9", 3):
        message = f"expects 'cpu' to be one of native, {', '.join(LEVELS)}, got {wrong!r}"
        with pytest.raises(ValueError, match=re.escape(message)):
            program.save_library(path, cpu=wrong)


def test_a_library_for_one_level_refuses_lower_processors(caller, tmp_path):
    if len(USABLE) < 2:
        pytest.skip("this processor has the lowest level")
    path = tmp_path / "functions.so"
    kvcache.jit(SOURCE).save_library(path, cpu=USABLE[1])
    done = run_caller(caller, path, KVCACHE_CPU=USABLE[0])
    assert done.returncode == 1
    assert done.stderr == (
        f"kvcache.TargetError: expects a processor with the features of {USABLE[1]}, got "
        f"one with those of {USABLE[0]}\n"
    )


def test_an_unknown_level_is_an_error(caller, library):
    done = run_caller(caller, library, KVCACHE_CPU="znver4")
    assert done.returncode == 1
    message = f"expects KVCACHE_CPU to be one of {', '.join(LEVELS)}, got 'znver4'"
    assert done.stderr == f"ValueError: {message}\n"
    program = f"import kvcache\ntry:\n kvcache.jit({SOURCE!r})\nexcept ValueError as error:\n print(error)"
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | {"KVCACHE_CPU": "znver4"}, capture_output=True, text=True
    )
    assert done.stdout == f"{message}\n"


JIT_PROGRAM = f"""
import sys
import numpy as np
import kvcache
from kvcache import _native
extension = _native.extension()
compilations = 0
def count(*arguments, compile=extension.jit):
    global compilations
    compilations += 1
    return compile(*arguments)
extension.jit = count
operands = np.load(sys.argv[1])
out = np.empty_like(operands[0])
kvcache.jit({SOURCE!r}, cached=True).call("fma", *operands, out)
out[np.isnan(out)] = np.nan  # the sign of these differs
_, processor, features = extension.host()
print(compilations, hash(out.tobytes()), processor, features)
"""


def test_an_image_is_of_the_features_that_made_it(tmp_path):
    """A folder of compiled code that machines share: each level compiles once, and no other reads it."""
    np.save(tmp_path / "operands.npy", make_operands())
    folder = {"KVCACHE_CACHE": str(tmp_path / "cache"), "PYTHONHASHSEED": "0"}

    def run(level):
        command = [sys.executable, "-c", JIT_PROGRAM, tmp_path / "operands.npy"]
        environment = os.environ | folder | {"KVCACHE_CPU": level}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.split()

    first = [run(level) for level in USABLE]
    again = [run(level) for level in USABLE]
    assert [count for count, *_ in first] == ["1"] * len(USABLE)
    assert [count for count, *_ in again] == ["0"] * len(USABLE)
    assert len({result for _, result, *_ in first + again}) == 1
    for level, (_, _, processor, features) in zip(USABLE, first, strict=True):
        assert level.startswith(processor)
        assert ("fma" in features.split("+")) == (level != "x86-64")
        assert ("avx512f" in features.split("+")) == (level not in VECTORS[:2])
        assert ("avx512bf16" in features.split("+")) == (level not in VECTORS)


ATTENTION = """
import sys
import ml_dtypes
import numpy as np
import tvm_ffi
import kvcache
params = kvcache.KVCacheParams("bf16", 2, 64, page_size=4, total_num_layers=1)
attention = kvcache.ops.attention(params, 8)
manager = kvcache.PagedKVCacheManager(params, max_batch_size=2, max_seq_len=300, num_pages=200)
random = np.random.default_rng(7)
manager.blocks[0][...] = random.standard_normal(manager.blocks[0].shape)
for request, tokens in ("few", 290), ("many", 3):
    manager.claim(request, np.arange(tokens))
manager.step(["few", "many"])
manager.grow("few", np.arange(1))
manager.grow("many", np.arange(200))
q = random.standard_normal((201, 8, 64)).astype(ml_dtypes.bfloat16)
out = np.empty_like(q)

class Saved:
    def __init__(self, program):
        self.program, self.signature = program, program.signature
        self.library = tvm_ffi.load_module(sys.argv[2])
    def native(self, name):
        return None
    def call(self, name, *arguments):
        getattr(self.library, name)(*self.signature(name).adapt(arguments))

if sys.argv[2]:
    attention.program = Saved(attention.program)
attention(manager.inputs(["few", "many"]), 0, q, out=out, scale=0.125)
np.save(sys.argv[1], out.view(np.int16))
"""


@functools.cache
def attend_at(level, library=""):
    """The bits of attention of a decode step and a prompt: with the code of the JIT, or of a library."""
    environment = os.environ | {"KVCACHE_CPU": level}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", ATTENTION, f"{folder}/out.npy", library]
        subprocess.run(command, env=environment, check=True)
        return np.load(f"{folder}/out.npy")


def test_attention_has_the_same_bits_in_each_body_of_vectors():
    """Compiles for each level as a body is compiled."""
    lowest = attend_at(VECTORS[0])
    assert np.isfinite(lowest.view(kvcache.dtypes.dtype("bf16")).astype(np.float32)).all()
    for level in set(VECTORS) & set(USABLE):
        np.testing.assert_array_equal(attend_at(level), lowest)


@pytest.mark.parametrize("level", LEVELS)
def test_a_library_has_the_bits_of_the_jit_at_a_level(tmp_path, level):
    """A decode step has products of bf16 by pairs, but none by tiles of AMX."""
    if level not in USABLE:
        pytest.skip(f"this processor has not the features of {level}")
    compile_attention().save_library(tmp_path / "functions.so")
    out = attend_at(level, str(tmp_path / "functions.so"))
    np.testing.assert_array_equal(out, attend_at(level))
    vectors = attend_at(VECTORS[0])
    assert (out[0] != vectors[0]).any() == (level == "x86-64-v4-bf16")
    assert (out[1:] != vectors[1:]).any() == (level not in VECTORS)


def test_a_library_uses_matrix_instructions_where_they_are_fast(tmp_path):
    if "avx512bf16" not in FEATURES or "avx512fp16" in FEATURES:
        pytest.skip("needs AVX512-BF16 without AVX512-FP16")
    compile_attention().save_library(tmp_path / "functions.so")
    out = attend_at("", str(tmp_path / "functions.so"))
    np.testing.assert_array_equal(out, attend_at("x86-64-v4-bf16"))


def test_a_library_without_optimization_has_no_tiles(tmp_path):
    compile_attention(opt_level=0).save_library(tmp_path / "functions.so")
    contents = (tmp_path / "functions.so").read_bytes()
    assert b"__tvm_ffi_attention.x86-64-v4-bf16\0" in contents
    assert b"__tvm_ffi_attention.x86-64-v4-amx\0" not in contents
