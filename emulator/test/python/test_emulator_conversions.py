"""Conversions of the chips between formats of floats on the emulator, against NumPy and ml_dtypes."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from emulated_math import BF16, F32, FORMATS, TARGET, as_bits, encode, run

import kvcache

NARROW = list(FORMATS)


# From narrow formats


@pytest.mark.parametrize("name", NARROW)
def test_decodes_every_code(name):
    dtype = FORMATS[name]
    bits = ml_dtypes.finfo(dtype).bits
    mask = (1 << bits) - 1
    field = 4 if bits == 4 else 8
    low = np.arange(256) & mask
    high = (255 - np.arange(256)) & mask
    source = "vector<2xi8>"
    convert = "%v = llvm.bitcast %x0 : i16 to vector<2xi8>"
    if bits == 4:
        source, convert = "i8", "%v = arith.trunci %x0 : i16 to i8"
    body = f"""{convert}
    %z = nvvm.convert.f{bits}x2.to.f16x2 %v : {source} ({name}) -> vector<2xf16>
    %y = llvm.bitcast %z : vector<2xf16> to i32"""
    out = run(body, ["i16"], "i32", (high << field | low).astype(np.int16))
    for codes, half in ((low, out & 0xFFFF), (high, out >> 16 & 0xFFFF)):
        got = half.astype(np.uint16).view(np.float16).astype(np.float32)
        want = codes.astype(np.uint8).view(dtype).astype(np.float32)
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want) & ~np.isnan(want))


def test_decodes_every_power_of_two():
    codes = np.arange(256)
    body = """%v = llvm.bitcast %x0 : i16 to vector<2xi8>
    %z = nvvm.convert.f8x2.to.bf16x2 %v : vector<2xi8> (f8E8M0FNU) -> vector<2xbf16>
    %y = llvm.bitcast %z : vector<2xbf16> to i32"""
    out = run(body, ["i16"], "i32", (codes << 8 | codes[::-1]).astype(np.int16))
    want = codes.astype(np.uint8).view(ml_dtypes.float8_e8m0fnu).astype(BF16)
    high = (out >> 16).astype(np.uint16).view(BF16)
    low = (out & 0xFFFF).astype(np.uint16).view(BF16)
    np.testing.assert_array_equal(high.astype(np.float32), want.astype(np.float32))
    np.testing.assert_array_equal(low.astype(np.float32), want[::-1].astype(np.float32))


# To narrow formats


def narrow_body(name, attributes=""):
    bits = ml_dtypes.finfo(FORMATS[name]).bits
    result = "i8" if bits == 4 else "i16"
    if bits == 8:
        attributes += " rnd = #nvvm.fp_rnd_mode<rn>, sat = #nvvm.sat_mode<satfinite>"
    extend = f"%y = arith.extui %z : {result} to i32"
    return f"""%a = llvm.bitcast %x0 : i32 to f32
    %b = llvm.bitcast %x1 : i32 to f32
    %z = nvvm.convert.f32x2.to.f{bits}x2 %a, %b {{{attributes.strip()}}} : {result} ({name})
    {extend}"""


@pytest.mark.parametrize("name", NARROW)
def test_rounds_f32(name):
    field = 4 if "f4" in name else 8
    out = run(narrow_body(name), ["i32", "i32"], "i32", as_bits(F32), as_bits(F32[::-1]))
    np.testing.assert_array_equal(out >> field, encode(F32, name))
    np.testing.assert_array_equal(out & ((1 << field) - 1), encode(F32[::-1], name))


@pytest.mark.parametrize("name", NARROW)
def test_rounds_f32_without_what_is_negative(name):
    relu = "relu = true," if "f8" in name else "relu = true"
    out = run(narrow_body(name, relu), ["i32", "i32"], "i32", as_bits(F32), as_bits(F32))
    field = 4 if "f4" in name else 8
    want = encode(np.where(np.signbit(F32) & ~np.isnan(F32), np.float32(0), F32), name)
    np.testing.assert_array_equal(out >> field, want)


@pytest.mark.parametrize("name", ["f8E4M3FN", "f8E5M2"])
def test_rounds_every_f16(name):
    body = f"""%v = llvm.bitcast %x0 : i32 to vector<2xf16>
    %z = nvvm.convert.f16x2.to.f8x2 %v : vector<2xf16> -> i16 ({name})
    %y = arith.extui %z : i16 to i32"""
    codes = np.arange(1 << 16, dtype=np.uint16)
    pairs = codes[::-1].astype(np.uint32) << 16 | codes
    out = run(body, ["i32"], "i32", pairs.view(np.int32))
    want = encode(codes.view(np.float16).astype(np.float32), name)
    np.testing.assert_array_equal(out & 0xFF, want)
    np.testing.assert_array_equal(out >> 8, want[::-1])


@pytest.mark.parametrize("mode", ["rz", "rp"])
@pytest.mark.parametrize("saturate", ["none", "satfinite"])
def test_rounds_to_powers_of_two(mode, saturate):
    body = f"""%a = llvm.bitcast %x0 : i32 to f32
    %z = nvvm.convert.f32x2.to.f8x2 %a, %a {{rnd = #nvvm.fp_rnd_mode<{mode}>,
        sat = #nvvm.sat_mode<{saturate}>}} : i16 (f8E8M0FNU)
    %y = arith.extui %z : i16 to i32"""
    out = run(body, ["i32"], "i32", as_bits(F32))
    magnitude = np.abs(F32.astype(np.float64))
    with np.errstate(all="ignore"):
        fraction, exponent = np.frexp(magnitude)
    # A power of two has the fraction 1/2.
    power = exponent - 1 + ((mode == "rp") & (fraction > 0.5))
    want = np.clip(power + 127, 0, 0xFE if saturate == "satfinite" else 0xFF)
    want[magnitude == 0] = 0
    want[np.isinf(F32)] = 0xFE if saturate == "satfinite" else 0xFF
    want[np.isnan(F32)] = 0xFF
    np.testing.assert_array_equal(out & 0xFF, want)
    np.testing.assert_array_equal(out >> 8, want)


@pytest.mark.parametrize(
    "name, dtype, nan", [("f16", np.float16, 0x7FFF), ("bf16", BF16, 0x7FFF)]
)
@pytest.mark.parametrize("relu", ["false", "true"])
@pytest.mark.parametrize("saturate", ["none", "satfinite"])
def test_rounds_to_halves(name, dtype, nan, relu, saturate):
    body = f"""%a = llvm.bitcast %x0 : i32 to f32
    %b = llvm.bitcast %x1 : i32 to f32
    %z = nvvm.convert.f32x2.to.{name}x2 %a, %b {{rnd = #nvvm.fp_rnd_mode<rn>,
        sat = #nvvm.sat_mode<{saturate}>, relu = {relu}}} : vector<2x{name}>
    %y = llvm.bitcast %z : vector<2x{name}> to i32"""
    out = run(body, ["i32", "i32"], "i32", as_bits(F32), as_bits(F32[::-1]))
    values = F32
    if relu == "true":
        values = np.where(np.signbit(F32) & ~np.isnan(F32), np.float32(0), F32)
    with np.errstate(over="ignore"):
        halves = values.astype(dtype)
    if saturate == "satfinite":
        largest = np.array(ml_dtypes.finfo(dtype).max, dtype)
        halves = np.where(np.isposinf(halves), largest, halves)
        halves = np.where(np.isneginf(halves), -largest, halves)
    want = np.where(np.isnan(F32), np.uint16(nan), halves.astype(dtype).view(np.uint16))
    np.testing.assert_array_equal(out >> 16 & 0xFFFF, want)
    np.testing.assert_array_equal(out & 0xFFFF, want[::-1])


@pytest.mark.parametrize("mode", ["rn", "rz", "rna"])
def test_rounds_to_tf32(mode):
    body = f"""%a = llvm.bitcast %x0 : i32 to f32
    %y = nvvm.convert.float.to.tf32 %a {{rnd = #nvvm.fp_rnd_mode<{mode}>}}"""
    out = run(body, ["i32"], "i32", as_bits(F32)).view(np.uint32)
    bits = as_bits(F32).view(np.uint32).astype(np.uint64)
    low = np.uint64(0x1FFF)
    if mode == "rz":
        want = bits & ~low
    elif mode == "rna":
        want = (bits + np.uint64(0x1000)) & ~low
    else:
        odd = bits >> np.uint64(13) & np.uint64(1)
        want = (bits + np.uint64(0xFFF) + odd) & ~low
    want = np.where(np.isnan(F32), np.uint64(0x7FFFFFFF), want)
    np.testing.assert_array_equal(out, want.astype(np.uint32))


@pytest.mark.parametrize("name", NARROW)
def test_rounds_by_random_numbers(name):
    """Up as often as what is missing asks for: the lower half of a random number decides."""
    bits = ml_dtypes.finfo(FORMATS[name]).bits
    result, extend = "vector<4xi8>", "%y = llvm.bitcast %z : vector<4xi8> to i32"
    if bits == 4:
        result, extend = "i16", "%y = arith.extui %z : i16 to i32"
    body = f"""%a = llvm.bitcast %x0 : i32 to f32
    %v = vector.broadcast %a : f32 to vector<4xf32>
    %z = nvvm.convert.f32x4.to.f{bits}x4 %v, %x1 : vector<4xf32> -> {result} ({name})
    {extend}"""
    for value, share in ((1.0, 0), (1.0625 if bits == 8 else 1.125, None), (-3.0, 0)):
        random = np.arange(1 << 16, dtype=np.int32)
        random = random << 16 | random
        out = run(body, ["i32", "i32"], "i32", as_bits(np.full(1 << 16, value)), random)
        field = 4 if bits == 4 else 8
        codes = (out & ((1 << field) - 1)).astype(np.uint8)
        for lane in range(1, 4):
            np.testing.assert_array_equal((out >> lane * field) & ((1 << field) - 1), codes)
        numbers = codes.view(FORMATS[name]).astype(np.float64)
        np.testing.assert_array_less(np.abs(numbers.mean() - value), 1e-4)
        assert share is None or np.all(numbers == value)


# bf16 on a host that may not have it
def bf16_samples(count=1 << 14):
    rng = np.random.default_rng(2)
    bits = rng.integers(0, 1 << 16, count, np.uint16)
    # Numbers whose sums and products are neither all zero nor all infinite.
    bits[::2] = rng.normal(size=len(bits[::2])).astype(BF16).view(np.uint16)
    special = np.array([0, 0x8000, 0x7F80, 0xFF80, 0x7FC0, 0xFFC1, 0x7F81, 1, 0x8001], np.uint16)
    bits[: len(special)] = special
    return bits


def assert_same_bf16(got, want):
    want = want.astype(np.float32)
    is_nan = np.isnan(want)
    np.testing.assert_array_equal(np.isnan(got.astype(np.float32)), is_nan)
    np.testing.assert_array_equal(
        got.view(np.uint16)[~is_nan], want.astype(BF16).view(np.uint16)[~is_nan]
    )


@pytest.mark.parametrize(
    "op, reference",
    [
        ("arith.addf", np.add),
        ("arith.subf", np.subtract),
        ("arith.mulf", np.multiply),
        ("arith.divf", np.divide),
        ("arith.maximumf", np.maximum),
        ("arith.minimumf", np.minimum),
        ("arith.maxnumf", np.fmax),
        ("arith.minnumf", np.fmin),
    ],
)
def test_bf16_arithmetic(op, reference):
    a, b = bf16_samples(), bf16_samples()[::-1]
    body = f"""%a = arith.bitcast %x0 : i16 to bf16
    %b = arith.bitcast %x1 : i16 to bf16
    %z = {op} %a, %b : bf16
    %y = arith.bitcast %z : bf16 to i16"""
    out = run(body, ["i16", "i16"], "i16", a.view(np.int16), b.copy().view(np.int16))
    with np.errstate(all="ignore"):
        want = reference(a.view(BF16).astype(np.float32), b.copy().view(BF16).astype(np.float32))
        want = want.astype(BF16)
    got = out.view(BF16)
    if "max" in op or "min" in op:
        # Which zero it is does not matter.
        np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))
    else:
        assert_same_bf16(got, want)


def test_bf16_vectors():
    a, b = bf16_samples(), bf16_samples()[::-1]
    body = """%a = llvm.bitcast %x0 : i32 to vector<2xbf16>
    %b = llvm.bitcast %x1 : i32 to vector<2xbf16>
    %two = arith.constant dense<[2.0, -1.0]> : vector<2xbf16>
    %t = arith.mulf %a, %two : vector<2xbf16>
    %z = arith.subf %t, %b : vector<2xbf16>
    %y = llvm.bitcast %z : vector<2xbf16> to i32"""
    b = b.copy()
    out = run(body, ["i32", "i32"], "i32", a.view(np.int32), b.view(np.int32))
    with np.errstate(all="ignore"):
        factor = np.tile(np.array([2, -1], np.float32), len(a) // 2)
        twice = (a.view(BF16).astype(np.float32) * factor).astype(BF16).astype(np.float32)
        want = (twice - b.view(BF16).astype(np.float32)).astype(BF16)
    assert_same_bf16(out.view(BF16), want)


def round_to_bf16(exact):
    """An exact number, to nearest even."""
    if exact == 0:
        return 0.0
    sign, exact = (-1, -exact) if exact < 0 else (1, exact)
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    if Fraction(2) ** exponent > exact:
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, -126) - 7)
    return sign * float(round(exact / unit) * unit)


def test_bf16_fused_multiply_add_rounds_once():
    rng = np.random.default_rng(3)
    count = 4000
    a = rng.normal(size=count).astype(BF16)
    b = rng.normal(size=count).astype(BF16)
    # Products that are halves of the last bit, and far smaller numbers.
    exponents = rng.integers(-90, 4, count)
    c = (rng.choice([-1, 1], count) * np.exp2(exponents.astype(np.float64))).astype(BF16)
    a[: count // 2] = (1 + (2 * rng.integers(0, 8, count // 2) + 1) / 16).astype(BF16)
    b[: count // 2] = (1 + (2 * rng.integers(0, 8, count // 2) + 1) / 16).astype(BF16)
    body = """%a = arith.bitcast %x0 : i16 to bf16
    %b = arith.bitcast %x1 : i16 to bf16
    %c = arith.bitcast %x2 : i16 to bf16
    %z = llvm.intr.fma(%a, %b, %c) : (bf16, bf16, bf16) -> bf16
    %y = arith.bitcast %z : bf16 to i16"""
    arrays = [array.view(np.int16) for array in (a, b, c)]
    out = run(body, ["i16"] * 3, "i16", *arrays).view(BF16).astype(np.float64)
    for i in range(count):
        exact = Fraction(float(a[i])) * Fraction(float(b[i])) + Fraction(float(c[i]))
        assert out[i] == round_to_bf16(exact), (a[i], b[i], c[i])


@pytest.mark.parametrize("op", ["neg", "abs"])
def test_bf16_signs_are_bits(op):
    a = bf16_samples()
    compute = "llvm.fneg %a : bf16"
    if op == "abs":
        compute = 'llvm.call_intrinsic "llvm.fabs"(%a) : (bf16) -> bf16'
    body = f"""%a = arith.bitcast %x0 : i16 to bf16
    %z = {compute}
    %y = arith.bitcast %z : bf16 to i16"""
    out = run(body, ["i16"], "i16", a.view(np.int16)).view(np.uint16)
    np.testing.assert_array_equal(out, a ^ 0x8000 if op == "neg" else a & 0x7FFF)


@pytest.mark.parametrize("type", ["f16", "bf16"])
@pytest.mark.parametrize("lanes", [1, 2, 4, 8])
def test_moves_keep_the_bits(type, lanes):
    """Through memory, a loop and a select: of every number, also of NaNs that signal."""
    shape = type if lanes == 1 else f"vector<{lanes}x{type}>"
    zero = f"arith.constant {'0.0' if lanes == 1 else 'dense<0.0>'} : {shape}"
    access = "memref" if lanes == 1 else "vector"
    types = f"memref<?x{type}>" + ("" if lanes == 1 else f", {shape}")
    source = f"""
func.func @run(%in: memref<?x{type}>, %out: memref<?x{type}>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %step = arith.constant {lanes} : index
  %n = memref.dim %out, %c0 : memref<?x{type}>
  scf.parallel (%i) = (%c0) to (%n) step (%step) {{
    %zero = {zero}
    %x = {access}.load %in[%i] : {types}
    %y = scf.for %k = %c0 to %c3 step %c1 iter_args(%v = %zero) -> ({shape}) {{
      %is = arith.cmpi ult, %i, %n : index
      %w = arith.select %is, %x, %v : {shape}
      scf.yield %w : {shape}
    }}
    {access}.store %y, %out[%i] : {types}
  }}
  return
}}
"""
    program = kvcache.jit(source, target=TARGET)
    dtype = np.float16 if type == "f16" else BF16
    codes = np.arange(1 << 16, dtype=np.uint16)
    out = np.zeros_like(codes)
    program.call("run", codes.view(dtype), out.view(dtype))
    np.testing.assert_array_equal(out, codes)


@pytest.mark.parametrize(
    "op, type, dtype",
    [
        ("arith.sitofp", "i32", np.int32),
        ("arith.uitofp", "i32", np.uint32),
        ("arith.sitofp", "i64", np.int64),
        ("arith.uitofp", "i64", np.uint64),
    ],
)
def test_integers_to_bf16_round_once(op, type, dtype):
    rng = np.random.default_rng(4)
    info = np.iinfo(dtype)
    values = rng.integers(info.min, info.max, 4000, dtype, endpoint=True)
    # Just beside halves of the last bit.
    top = dtype(0x101) << dtype(info.bits - 12)
    values[:9] = [0, 1, 257, 255, top, top + dtype(1), top - dtype(1), info.min, info.max]
    values[9:2000] >>= rng.integers(0, info.bits, 1991).astype(dtype)
    body = f"""%z = {op} %x0 : {type} to bf16
    %y = arith.bitcast %z : bf16 to i16"""
    out = run(body, [type], "i16", values.view(dtype(0).dtype.str.replace("u", "i")))
    got = out.view(BF16).astype(np.float64)
    for value, number in zip(values, got):
        assert number == round_to_bf16(Fraction(int(value))), value


def test_f64_to_bf16_rounds_once():
    rng = np.random.default_rng(5)
    values = rng.normal(size=4000)
    exponents = rng.integers(-140, 120, 2000)
    halves = (1 + (2 * rng.integers(0, 64, 2000) + 1) / 256) * np.exp2(exponents)
    values[:2000] = halves * (1 + rng.choice([-1, 0, 1], 2000) * 2.0**-50)
    body = """%z = arith.truncf %x0 : f64 to bf16
    %y = arith.bitcast %z : bf16 to i16"""
    out = run(body, ["f64"], "i16", values).view(BF16).astype(np.float64)
    for value, number in zip(values, out):
        assert number == round_to_bf16(Fraction(value)), value


def test_bf16_to_other_numbers():
    a = bf16_samples()
    values = a.view(BF16).astype(np.float64)
    body = """%a = arith.bitcast %x0 : i16 to bf16
    %y = arith.extf %a : bf16 to f64"""
    out = run(body, ["i16"], "f64", a.view(np.int16), dtype=np.float64)
    np.testing.assert_array_equal(out, values)

    small = np.abs(values) < 1e9
    body = """%a = arith.bitcast %x0 : i16 to bf16
    %y = arith.fptosi %a : bf16 to i32"""
    out = run(body, ["i16"], "i32", a[small].view(np.int16))
    np.testing.assert_array_equal(out, np.trunc(values[small]).astype(np.int32))

    body = """%a = arith.bitcast %x0 : i16 to bf16
    %b = arith.bitcast %x1 : i16 to bf16
    %is = arith.cmpf olt, %a, %b : bf16
    %y = arith.extui %is : i1 to i32"""
    b = a[::-1].copy()
    out = run(body, ["i16", "i16"], "i32", a.view(np.int16), b.view(np.int16))
    np.testing.assert_array_equal(out, values < values[::-1])


@pytest.mark.parametrize("op", ["addf", "maximumf"])
def test_bf16_atomics(op):
    source = f"""
func.func @run(%in: memref<?xbf16>, %out: memref<1xbf16>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %in, %c0 : memref<?xbf16>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {{
    %x = memref.load %in[%i] : memref<?xbf16>
    %before = memref.atomic_rmw {op} %x, %out[%c0] : (bf16, memref<1xbf16>) -> bf16
  }}
  return
}}
"""
    program = kvcache.jit(source, target=TARGET)
    values = (np.arange(100) % 3).astype(BF16)
    out = np.zeros(1, BF16)
    program.call("run", values, out)
    assert float(out[0]) == (99 if op == "addf" else 2)
