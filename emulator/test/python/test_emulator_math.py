"""Arithmetic of the chips on the emulator: bytes, bf16, approximations and functions of CUDA's
library, against NumPy."""

import math

import numpy as np
import pytest
from emulated_math import BF16, F32, TARGET, as_bits, build, encode, run

import kvcache
from kvcache.compilation import toolchain

# Bytes and dot products

PERMUTE_MODES = {
    "f4e": lambda n: [n, n + 1, n + 2, n + 3],
    "b4e": lambda n: [n % 8, (n + 7) % 8, (n + 6) % 8, (n + 5) % 8],
    "rc8": lambda n: [n] * 4,
    "ecl": lambda n: [max(n, i) for i in range(4)],
    "ecr": lambda n: [min(n, i) for i in range(4)],
    "rc16": lambda n: [n % 2 * 2, n % 2 * 2 + 1] * 2,
}


@pytest.mark.parametrize("mode", ["default", *PERMUTE_MODES])
def test_permutes_bytes(mode):
    rng = np.random.default_rng(6)
    low, high, selector = rng.integers(0, 1 << 32, (3, 1000), np.uint32)
    takes_high = mode in ("default", "f4e", "b4e")
    operands = "%x2, %x0, %x1" if takes_high else "%x2, %x0"
    body = f"%y = nvvm.prmt <{mode}> {operands} : i32"
    out = run(body, ["i32"] * 3, "i32", *(x.view(np.int32) for x in (low, high, selector)))
    for a, b, s, got in zip(low, high, selector, out.view(np.uint32)):
        pool = list(int(a).to_bytes(4, "little") + int(b).to_bytes(4, "little"))
        if mode == "default":
            nibbles = [int(s) >> 4 * i & 0xF for i in range(4)]
            chosen = [
                (0xFF if pool[n & 7] & 0x80 else 0) if n & 8 else pool[n & 7] for n in nibbles
            ]
        else:
            chosen = [pool[n] for n in PERMUTE_MODES[mode](int(s) & 3)]
        assert int(got) == int.from_bytes(bytes(chosen), "little")


@pytest.mark.parametrize("a_type", ["signed", "unsigned"])
@pytest.mark.parametrize("b_type", ["signed", "unsigned"])
def test_dot_products(a_type, b_type):
    rng = np.random.default_rng(7)
    a, b = rng.integers(0, 256, (2, 500, 4), np.uint8)
    c = rng.integers(-1000, 1000, 500, np.int32)
    body = f"""%a = llvm.bitcast %x0 : i32 to vector<4xi8>
    %b = llvm.bitcast %x1 : i32 to vector<4xi8>
    %y = nvvm.dot.accumulate.4way %a <{a_type}>, %b <{b_type}>, %x2 : vector<4xi8>, vector<4xi8>"""
    flat = [x.view(np.int32).reshape(-1) for x in (a, b)]
    out = run(body, ["i32"] * 3, "i32", *flat, c)
    types = {"signed": np.int8, "unsigned": np.uint8}
    wide = [x.view(types[t]).astype(np.int64) for x, t in ((a, a_type), (b, b_type))]
    np.testing.assert_array_equal(out, (wide[0] * wide[1]).sum(axis=1) + c)

    body = f"""%a = llvm.bitcast %x0 : i32 to vector<2xi16>
    %b = llvm.bitcast %x1 : i32 to vector<4xi8>
    %y = nvvm.dot.accumulate.2way %a <{a_type}>, %b <{b_type}>, %x2 {{b_hi = true}}
        : vector<2xi16>, vector<4xi8>"""
    out = run(body, ["i32"] * 3, "i32", *flat, c)
    halves = {"signed": np.int16, "unsigned": np.uint16}
    wide_a = a.view(halves[a_type]).astype(np.int64)
    np.testing.assert_array_equal(out, (wide_a * wide[1][:, 2:]).sum(axis=1) + c)


# Intrinsics and functions


def intrinsic(name, inputs, type="f32", result=None):
    result = result or type
    operands = ", ".join(f"%x{i}" for i in range(inputs))
    types = ", ".join([type] * inputs)
    return f'%y = llvm.call_intrinsic "llvm.nvvm.{name}"({operands}) : ({types}) -> {result}'


def normal_samples():
    rng = np.random.default_rng(8)
    values = np.exp2(rng.uniform(-20, 6, 2000)).astype(np.float32)
    values[::3] *= -1
    return values


@pytest.mark.parametrize(
    "name, reference",
    [
        ("ex2.approx.ftz.f", np.exp2),
        ("ex2.approx.f", np.exp2),
        ("lg2.approx.f", np.log2),
        ("sin.approx.f", np.sin),
        ("cos.approx.ftz.f", np.cos),
        ("rcp.approx.ftz.f", np.reciprocal),
        ("rcp.rn.f", np.reciprocal),
        ("sqrt.approx.f", np.sqrt),
        ("rsqrt.approx.f", lambda x: 1 / np.sqrt(x)),
        ("fabs.f32", np.abs),
        ("floor.f", np.floor),
        ("round.f", np.round),
        ("saturate.f", lambda x: np.clip(x, 0, 1)),
    ],
)
def test_intrinsics_of_one_number(name, reference):
    values = normal_samples()
    if "lg2" in name or "sqrt" in name:
        values = np.abs(values)
    if name == "ex2.approx.f":
        name = "ex2.approx.f32"
    out = run(intrinsic(name, 1), ["f32"], "f32", values, dtype=np.float32)
    np.testing.assert_allclose(out, reference(values.astype(np.float64)), rtol=1e-6, atol=1e-7)


def test_small_numbers_are_flushed():
    tiny = np.array([1e-40, -1e-40, 2e38, -2e38], np.float32)
    out = run(intrinsic("rcp.approx.ftz.f", 1), ["f32"], "f32", tiny, dtype=np.float32)
    np.testing.assert_array_equal(out, [np.inf, -np.inf, 0, -0.0])
    np.testing.assert_array_equal(np.signbit(out), [False, True, False, True])
    body = "%y = nvvm.rcp.approx.ftz.f %x0 : f32"
    np.testing.assert_array_equal(run(body, ["f32"], "f32", tiny, dtype=np.float32), out)
    ones = np.ones_like(tiny)
    out = run(intrinsic("mul.rn.ftz.f", 2), ["f32"] * 2, "f32", tiny, ones, dtype=np.float32)
    np.testing.assert_array_equal(out, [0, 0, tiny[2], tiny[3]])


def test_smaller_and_larger_numbers():
    a = np.array([1, np.nan, np.nan, -0.0, 0.0, -3, 2], np.float32)
    b = np.array([2, 1, np.nan, 0.0, -0.0, 2, -3], np.float32)

    def call(name):
        return run(intrinsic(name, 2), ["f32"] * 2, "f32", a, b, dtype=np.float32)

    least = call("fmin.f")
    np.testing.assert_array_equal(least, [1, 1, np.nan, 0, 0, -3, -3])
    assert np.signbit(least[3]) and np.signbit(least[4])
    np.testing.assert_array_equal(call("fmax.f"), [2, 1, np.nan, 0, 0, 2, 2])
    np.testing.assert_array_equal(
        call("fmin.nan.f"), [1, np.nan, np.nan, 0, 0, -3, -3]
    )
    np.testing.assert_array_equal(
        call("fmax.xorsign.abs.f")[[0, 5, 6]], [2, -3, -3]
    )


def test_fused_multiply_add_with_relu():
    rng = np.random.default_rng(9)
    a, b, c = rng.normal(size=(3, 1000)).astype(np.float16)
    body = """%a = arith.bitcast %x0 : i16 to f16
    %b = arith.bitcast %x1 : i16 to f16
    %c = arith.bitcast %x2 : i16 to f16
    %z = llvm.call_intrinsic "llvm.nvvm.fma.rn.relu.f16"(%a, %b, %c) : (f16, f16, f16) -> f16
    %y = arith.bitcast %z : f16 to i16"""
    out = run(body, ["i16"] * 3, "i16", *(x.view(np.int16) for x in (a, b, c)))
    want = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
    np.testing.assert_array_equal(out.view(np.float16), np.maximum(want.astype(np.float16), 0))


def test_floats_to_integers_saturate():
    values = np.array([1.5, 2.5, -1.5, 1e20, -1e20, np.nan, 0.5], np.float32)
    limits = np.iinfo(np.int32)
    out = run(intrinsic("f2i.rn", 1, result="i32"), ["f32"], "i32", values)
    np.testing.assert_array_equal(out, [2, 2, -2, limits.max, limits.min, 0, 0])
    out = run(intrinsic("f2i.rm", 1, result="i32"), ["f32"], "i32", values)
    np.testing.assert_array_equal(out, [1, 2, -2, limits.max, limits.min, 0, 0])
    out = run(intrinsic("f2ui.rz", 1, result="i32"), ["f32"], "i32", values)
    np.testing.assert_array_equal(out.view(np.uint32), [1, 2, 0, 2**32 - 1, 0, 0, 0])
    out = run(intrinsic("mulhi.ui", 2, type="i32"), ["i32"] * 2, "i32", out, out)
    assert out.view(np.uint32)[3] == 2**32 - 2


@pytest.mark.parametrize(
    ("name", "source", "result", "dtype"),
    [
        ("f2ll.rz", "f32", "i64", np.int64),
        ("f2ull.rz", "f32", "i64", np.uint64),
        ("d2ll.rn", "f64", "i64", np.int64),
        ("d2ull.rn", "f64", "i64", np.uint64),
        ("d2i.rz", "f64", "i32", np.int32),
        ("d2ui.rz", "f64", "i32", np.uint32),
    ],
)
def test_nan_where_64_bits_are_converted(name, source, result, dtype):
    """The upper bit alone (PTX ISA, cvt); 0 is for f32 to 32 bits only."""
    values = np.array([np.nan, 4, -1e30, 1e30], {"f32": np.float32, "f64": np.float64}[source])
    out = run(intrinsic(name, 1, type=source, result=result), [source], result, values).view(dtype)
    limits = np.iinfo(dtype)
    upper_bit = 1 << np.dtype(dtype).itemsize * 8 - 1
    nan = upper_bit if limits.min == 0 else -upper_bit
    np.testing.assert_array_equal(out, np.array([nan, 4, limits.min, limits.max], dtype))


def test_packed_intrinsics_are_the_ops():
    body = """%a = llvm.bitcast %x0 : i32 to f32
    %z = llvm.call_intrinsic "llvm.nvvm.ff.to.e4m3x2.rn"(%a, %a) : (f32, f32) -> i16
    %y = arith.extui %z : i16 to i32"""
    out = run(body, ["i32"], "i32", as_bits(F32))
    np.testing.assert_array_equal(out & 0xFF, encode(F32, "f8E4M3FN"))
    body = """%a = llvm.bitcast %x0 : i32 to f32
    %z = llvm.call_intrinsic "llvm.nvvm.f2bf16.rn"(%a) : (f32) -> bf16
    %y = arith.bitcast %z : bf16 to i16"""
    out = run(body, ["i32"], "i16", as_bits(F32))
    finite = np.isfinite(F32)
    np.testing.assert_array_equal(
        out.view(np.uint16)[finite], F32[finite].astype(BF16).view(np.uint16)
    )


def test_rounding_that_the_host_has_not():
    with pytest.raises(kvcache.CompileError, match="add.rz.f has no lowering for the emulator"):
        kvcache.jit(build(intrinsic("add.rz.f", 2), ["f32"] * 2, "f32"), target=TARGET)


@pytest.mark.parametrize("type, dtype", [("f32", np.float32), ("f64", np.float64)])
@pytest.mark.parametrize(
    "op, reference",
    [
        ("math.erf", np.vectorize(math.erf)),
        ("math.exp", np.exp),
        ("math.log1p", np.log1p),
        ("math.tanh", np.tanh),
        ("math.cbrt", np.cbrt),
        ("math.rsqrt", lambda x: 1 / np.sqrt(x)),
        ("math.sin", np.sin),
        ("math.atan", np.arctan),
        ("math.expm1", np.expm1),
    ],
)
def test_functions_of_the_library(op, reference, type, dtype):
    values = np.abs(normal_samples()).astype(dtype)[:500] / 8
    out = run(f"%y = {op} %x0 : {type}", [type], type, values, dtype=dtype)
    tolerance = 2e-6 if type == "f32" else 1e-14
    np.testing.assert_allclose(out, reference(values.astype(np.float64)), rtol=tolerance)


ROUNDINGS = {
    "ceil": np.ceil,
    "floor": np.floor,
    "round": lambda x: np.trunc(x) + np.copysign(np.abs(x - np.trunc(x)) >= 0.5, x),
    "roundeven": np.rint,
    "trunc": np.trunc,
}

# Units in the last place; the same table is in docs/how-to/compute-functions.md.
LARGEST_ERRORS = {
    "cos": (np.cos, 2),
    "erf": (np.vectorize(math.erf), 4),
    "log": (np.log, 2),
    "log10": (np.log10, 3),
    "log1p": (np.log1p, 3),
    "log2": (np.log2, 2),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 2),
    "sin": (np.sin, 2),
    "tan": (np.tan, 4),
    "tanh": (np.tanh, 4),
}


def edge_samples():
    """Numbers of all sizes and signs, near 1, near multiples of pi, and special ones."""
    rng = np.random.default_rng(10)
    special = [0, -0.0, 1, -1, 1e-40, -1e-40, 1.1754944e-38, np.inf, -np.inf, np.nan, 2.5, -0.5]
    parts = [
        np.exp2(rng.uniform(-149, 48, 4000)) * rng.choice([-1, 1], 4000),
        rng.uniform(0.9, 1.1, 1000),
        rng.normal(size=2000),
        np.arange(1, 4000) * np.pi / 2,
        special,
    ]
    return np.concatenate(parts).astype(np.float32)


@pytest.mark.parametrize("op", LARGEST_ERRORS)
def test_native_function_f32_has_stated_accuracy(op):
    reference, largest = LARGEST_ERRORS[op]
    values = edge_samples()
    out = run(f"%y = math.{op} %x0 : f32", ["f32"], "f32", values, dtype=np.float32)
    with np.errstate(all="ignore"):
        want = reference(values.astype(np.float64))
        rounded = want.astype(np.float32)
        errors = np.abs(out - want) / np.spacing(np.abs(rounded))
    np.testing.assert_array_equal(out[~np.isfinite(rounded)], rounded[~np.isfinite(rounded)])
    assert np.nanmax(errors[np.isfinite(rounded)]) <= largest


@pytest.mark.parametrize("op", ["exp", "expm1"])
def test_exponential_error_grows_with_operand(op):
    values = np.random.default_rng(11).uniform(-87, 88, 4000).astype(np.float32)
    out = run(f"%y = math.{op} %x0 : f32", ["f32"], "f32", values, dtype=np.float32)
    want = getattr(np, op)(values.astype(np.float64))
    errors = np.abs(out - want) / np.spacing(np.abs(want.astype(np.float32)))
    assert (errors <= 2 + 1.5 * np.abs(values)).all()


@pytest.mark.parametrize("op", ROUNDINGS)
@pytest.mark.parametrize("type, dtype", [("f32", np.float32), ("f64", np.float64)])
def test_rounding_is_exact(op, type, dtype):
    values = edge_samples().astype(dtype)
    out = run(f"%y = math.{op} %x0 : {type}", [type], type, values, dtype=dtype)
    want = ROUNDINGS[op](values)
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(np.signbit(out), np.signbit(want))


def test_angle_beyond_range_stays_in_range():
    values = np.float32([2.0**49, 2.0**60, -(2.0**100), 3e38])
    for op in ("sin", "cos"):
        out = run(f"%y = math.{op} %x0 : f32", ["f32"], "f32", values, dtype=np.float32)
        assert (np.abs(out) <= 1).all()


INTEGER_FUNCTIONS = {
    "absi": lambda x, width: abs(x),
    "ctpop": lambda x, width: (x % 2**width).bit_count(),
    "ctlz": lambda x, width: width - (x % 2**width).bit_length(),
    "cttz": lambda x, width: (x & -x).bit_length() - 1 if x else width,
}


@pytest.mark.parametrize("op", INTEGER_FUNCTIONS)
@pytest.mark.parametrize("target", ["cpu", TARGET])
@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_integer_function_equals_numpy(op, target, width):
    limits = np.iinfo(f"int{width}")
    edges = [0, 1, -1, 2, limits.min, limits.max, limits.min + 1, 1 << width - 2]
    random = np.random.default_rng(width).integers(limits.min, limits.max, 100, limits.dtype)
    values = np.concatenate([np.array(edges, limits.dtype), random])
    type = f"i{width}"
    out = run(f"%y = math.{op} %x0 : {type}", [type], type, values, target=target)
    want = [INTEGER_FUNCTIONS[op](int(x), width) % 2**width for x in values]
    np.testing.assert_array_equal(out.astype(f"u{limits.dtype.itemsize}"), want)


FLOAT_CLASSES = {
    "isfinite": np.isfinite,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "isnormal": lambda x: np.isfinite(x) & (np.abs(x) >= np.finfo(x.dtype).tiny),
}


@pytest.mark.parametrize("op", FLOAT_CLASSES)
@pytest.mark.parametrize("target", ["cpu", TARGET])
@pytest.mark.parametrize("type, dtype", [("f16", np.float16), ("f32", np.float32), ("f64", np.float64)])
def test_class_of_float_equals_numpy(op, target, type, dtype):
    tiny = np.finfo(dtype).tiny
    values = np.array([0, -0.0, 1, -1, tiny, -tiny, tiny / 2, np.inf, -np.inf, np.nan, np.finfo(dtype).max], dtype)
    body = f"%c = math.{op} %x0 : {type}\n    %y = arith.extui %c : i1 to i8"
    out = run(body, [type], "i8", values, target=target)
    np.testing.assert_array_equal(out, FLOAT_CLASSES[op](values))


@pytest.mark.parametrize("op", ["expm1", "log1p"])
@pytest.mark.parametrize("type, dtype", [("f32", np.float32), ("f64", np.float64)])
def test_function_near_zero_has_no_cancellation(op, type, dtype):
    values = np.exp2(np.random.default_rng(12).uniform(-100, -1, 1000)).astype(dtype)
    values[::2] *= -1
    want = getattr(np, op)(values.astype(np.longdouble))
    for target in ("cpu", TARGET):
        out = run(f"%y = math.{op} %x0 : {type}", [type], type, values, dtype=dtype, target=target)
        assert (np.abs(out - want) <= 3 * np.spacing(np.abs(out))).all()


UNARY = (
    "absf acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 floor log "
    "log10 log1p log2 round roundeven rsqrt sin sinh sqrt tan tanh trunc"
).split()
FUNCTIONS = {
    **{op: f"math.{op} %x0" for op in UNARY},
    "atan2": "math.atan2 %x0, %x0",
    "clampf": "math.clampf %x0 to [%x0, %x0]",
    "copysign": "math.copysign %x0, %x0",
    "fma": "math.fma %x0, %x0, %x0",
    "powf": "math.powf %x0, %x0",
}


@pytest.mark.parametrize("type", ["f16", "bf16", "f32", "f64"])
def test_functions_are_the_same_on_emulator_and_chip(type):
    """Each function has a lowering for both; on chips, libdevice has some of them."""
    kernels = "\n".join(
        f"""  gpu.func @{name}(%m: memref<?x{type}>) kernel {{
    %i = gpu.thread_id x
    %x0 = memref.load %m[%i] : memref<?x{type}>
    %y = {body} : {type}
    memref.store %y, %m[%i] : memref<?x{type}>
    gpu.return
  }}"""
        for name, body in FUNCTIONS.items()
    )
    source = f"gpu.module @functions {{\n{kernels}\n}}"
    kvcache.jit(source, target="emulator:sm_80", opt_level=0)
    try:
        compiled = kvcache.compile(source, "sm_80")
    except kvcache.CompileError as error:
        assert not toolchain.find_toolkit(None)
        assert "of CUDA's libdevice, which was not found" in str(error)
    else:
        assert compiled.kernels.keys() == FUNCTIONS.keys()


def test_functions_of_two_numbers():
    a = np.abs(normal_samples())[:500]
    b = a[::-1].copy()
    cases = {"math.powf": np.power, "math.atan2": np.arctan2, "arith.remf": np.fmod}
    for op, reference in cases.items():
        out = run(f"%y = {op} %x0, %x1 : f32", ["f32"] * 2, "f32", a, b / 32, dtype=np.float32)
        want = reference(a.astype(np.float64), (b / 32).astype(np.float64))
        np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-30)
