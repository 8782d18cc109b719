"""Tests of conversions of narrow floats: from every encoding, to every tie.

Expected results are computed from the values of the encodings alone. Another test compares them with ml_dtypes, which
does not saturate.
"""

import dataclasses
import functools
import re
import string
import subprocess

import devices
import ml_dtypes
import numpy as np
import pytest
from places import OPT

import kvcache

WIDE = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}


@dataclasses.dataclass(frozen=True)
class Format:
    """A narrow float with a sign: its dtype of ml_dtypes, and its fields."""

    dtype: type
    exponent_bits: int
    mantissa_bits: int
    first_nan: int | None  # of the codes without sign, and infinity before it

    @property
    def sign(self):
        return 1 << (self.exponent_bits + self.mantissa_bits)

    @property
    def codes(self):
        return np.arange(2 * self.sign, dtype=np.uint8)

    def decode(self, codes):
        """Decodes codes to f64 by their fields."""
        magnitudes = codes.astype(np.int64) & (self.sign - 1)
        exponents = magnitudes >> self.mantissa_bits
        mantissas = magnitudes & ((1 << self.mantissa_bits) - 1)
        mantissas = mantissas + ((exponents > 0) << self.mantissa_bits)
        bias = (1 << (self.exponent_bits - 1)) - 1
        powers = np.maximum(exponents, 1) - bias - self.mantissa_bits
        values = np.ldexp(mantissas.astype(np.float64), powers)
        if self.first_nan is not None:
            values[magnitudes >= self.first_nan] = np.nan
            if self.mantissa_bits == 2:  # f8E5M2
                values[magnitudes == self.first_nan - 1] = np.inf
        return np.where(codes & self.sign, -values, values)

    @property
    def magnitudes(self):
        """The finite nonnegative numbers, in the order of their codes."""
        values = self.decode(self.codes[: self.sign])
        return values[np.isfinite(values)]


NARROW = {
    "f8E4M3FN": Format(ml_dtypes.float8_e4m3fn, 4, 3, 0x7F),
    "f8E5M2": Format(ml_dtypes.float8_e5m2, 5, 2, 0x7D),
    "f6E2M3FN": Format(ml_dtypes.float6_e2m3fn, 2, 3, None),
    "f6E3M2FN": Format(ml_dtypes.float6_e3m2fn, 3, 2, None),
    "f4E2M1FN": Format(ml_dtypes.float4_e2m1fn, 2, 1, None),
}
E8M0 = "f8E8M0FNU"

narrow_types = pytest.mark.parametrize("narrow", NARROW)
wide_types = pytest.mark.parametrize("wide", WIDE)
lane_counts = pytest.mark.parametrize("lanes", [1, 5, 16], ids=["scalar", "odd", "vector"])

PROGRAM = """
func.func @convert(%from: memref<?x{source}>, %to: memref<?x{target}>) {{
  %c0 = arith.constant 0 : index
  %step = arith.constant {lanes} : index
  %n = memref.dim %from, %c0 : memref<?x{source}>
  scf.for %i = %c0 to %n step %step {{
    {load}
    {convert}
    {store}
  }}
  return
}}
"""


def is_narrow(name):
    return name in NARROW or name == E8M0


def width(name):
    return int(name[1])


def shaped(lanes, element):
    return element if lanes == 1 else f"vector<{lanes}x{element}>"


def in_memory(name):
    """The element type of arrays: bytes for types without arrays."""
    return "i8" if is_narrow(name) and width(name) < 8 else name


def load_lines(name, lanes):
    memory = in_memory(name)
    loaded = f": memref<?x{memory}>" + ("" if lanes == 1 else f", {shaped(lanes, memory)}")
    op = "memref.load" if lanes == 1 else "vector.load"
    if memory == name:
        return f"%x = {op} %from[%i] {loaded}"
    bits = shaped(lanes, f"i{width(name)}")
    return (
        f"%x8 = {op} %from[%i] {loaded}\n"
        f"    %xi = arith.trunci %x8 : {shaped(lanes, memory)} to {bits}\n"
        f"    %x = arith.bitcast %xi : {bits} to {shaped(lanes, name)}"
    )


def store_lines(name, lanes):
    memory = in_memory(name)
    stored = f": memref<?x{memory}>" + ("" if lanes == 1 else f", {shaped(lanes, memory)}")
    op = "memref.store" if lanes == 1 else "vector.store"
    if memory == name:
        return f"{op} %y, %to[%i] {stored}"
    bits = shaped(lanes, f"i{width(name)}")
    return (
        f"%yi = arith.bitcast %y : {shaped(lanes, name)} to {bits}\n"
        f"    %y8 = arith.extui %yi : {bits} to {shaped(lanes, memory)}\n"
        f"    {op} %y8, %to[%i] {stored}"
    )


def program_text(op, source, target, lanes):
    return PROGRAM.format(
        source=in_memory(source),
        target=in_memory(target),
        lanes=lanes,
        load=load_lines(source, lanes),
        convert=f"%y = arith.{op} : {shaped(lanes, source)} to {shaped(lanes, target)}",
        store=store_lines(target, lanes),
    )


@functools.cache
def compiled(op, source, target, lanes):
    return kvcache.jit(program_text(op, source, target, lanes), target="cpu")


def array_dtype(name):
    if name in WIDE:
        return WIDE[name]
    if name == E8M0:
        return np.dtype(ml_dtypes.float8_e8m0fnu)
    return np.dtype(NARROW[name].dtype) if width(name) == 8 else np.dtype(np.uint8)


def convert(op, values, source, target, lanes):
    """Converts on the CPU. Narrow floats are passed and returned as codes."""
    padded = np.zeros(-(-values.size // lanes) * lanes, values.dtype)
    padded[: values.size] = values
    result = np.empty(padded.size, array_dtype(target))
    program = compiled(op, source, target, lanes)
    program.call("convert", padded.view(array_dtype(source)), result)
    result = result[: values.size]
    return result.view(np.uint8) if is_narrow(target) else result


def extend(codes, narrow, wide, lanes):
    return convert("extf %x", codes, narrow, wide, lanes)


def truncate(values, wide, narrow, lanes, rounding=""):
    return convert(f"truncf %x {rounding}", values, wide, narrow, lanes)


def saturating_nearest_even(values, narrow):
    """Encodes `values`; formats without NaN encode it as the largest number."""
    values = values.astype(np.float64)
    numbers = narrow.magnitudes
    ties = (numbers[1:] + numbers[:-1]) / 2
    magnitudes = np.abs(values)
    codes = np.searchsorted(ties, magnitudes, side="left")
    below = np.minimum(codes, ties.size - 1)
    is_tie = ties[below] == magnitudes
    codes = np.where(is_tie, codes + codes % 2, codes)
    is_negative = np.signbit(values) & ~np.isnan(values)
    return (codes + np.where(is_negative, narrow.sign, 0)).astype(np.uint8)


def from_bits(bits, dtype):
    return bits.astype(f"u{dtype.itemsize}").view(dtype)


def random_bits(dtype, count):
    rng = np.random.default_rng(8)
    bits = rng.integers(0, 1 << 8 * dtype.itemsize, count, dtype=np.uint64)
    return from_bits(bits, dtype)


def near(numbers, dtype):
    """The numbers and their neighbours in `dtype`, of both signs."""
    exact = numbers.astype(dtype)
    infinity = np.array(np.inf, dtype)
    values = np.concatenate([exact, np.nextafter(exact, infinity), np.nextafter(exact, -infinity)])
    return np.concatenate([values, -values])


def special_values(dtype):
    info = np.finfo(dtype)
    largest, tiny = info.max, info.smallest_subnormal
    values = np.array([0, np.inf, np.nan, largest, info.tiny, tiny, 1e30], dtype)
    return np.concatenate([values, -values])


def inputs(narrow, wide):
    dtype = WIDE[wide]
    if dtype.itemsize == 2:
        return from_bits(np.arange(1 << 16), dtype)
    numbers = narrow.magnitudes
    ties = (numbers[1:] + numbers[:-1]) / 2
    beyond = numbers[-1] + (numbers[-1] - numbers[-2]) * np.array([0.5, 1, 2])
    rng = np.random.default_rng(9)
    common = rng.normal(0, 1, 1 << 16) * np.exp2(rng.uniform(-18, 17, 1 << 16))
    return np.concatenate(
        [
            special_values(dtype),
            near(np.concatenate([numbers, ties, beyond]), dtype),
            common.astype(dtype),
            random_bits(dtype, 1 << 16),
        ]
    )


@narrow_types
def test_model_agrees_with_ml_dtypes_about_values(narrow):
    narrow = NARROW[narrow]
    values = narrow.codes.view(narrow.dtype).astype(np.float64)
    np.testing.assert_array_equal(narrow.decode(narrow.codes), values)


@narrow_types
def test_model_agrees_with_ml_dtypes_below_saturation(narrow):
    narrow = NARROW[narrow]
    values = inputs(narrow, "f32")
    values = values[np.abs(values) <= narrow.magnitudes[-1]]
    np.testing.assert_array_equal(
        saturating_nearest_even(values, narrow), values.astype(narrow.dtype).view(np.uint8)
    )


@narrow_types
@wide_types
@lane_counts
def test_extension_is_exact(narrow, wide, lanes):
    codes = NARROW[narrow].codes
    expected = NARROW[narrow].decode(codes)
    result = extend(codes, narrow, wide, lanes)
    with np.errstate(invalid="ignore"):  # some NaNs are signaling
        np.testing.assert_array_equal(result.astype(np.float64), expected)
    np.testing.assert_array_equal(np.signbit(result), codes >= NARROW[narrow].sign)


@narrow_types
@wide_types
@lane_counts
def test_truncation_rounds_to_nearest_even_and_saturates(narrow, wide, lanes):
    values = inputs(NARROW[narrow], wide)
    result = truncate(values, wide, narrow, lanes)
    with np.errstate(invalid="ignore"):  # some NaNs are signaling
        is_nan = np.isnan(values)
        expected = saturating_nearest_even(values, NARROW[narrow])
    if NARROW[narrow].first_nan is None:
        np.testing.assert_array_equal(result, expected)
        return
    np.testing.assert_array_equal(result[~is_nan], expected[~is_nan])
    assert np.isnan(NARROW[narrow].decode(result[is_nan])).all()
    np.testing.assert_array_equal(result >= NARROW[narrow].sign, np.signbit(values))


@narrow_types
def test_infinity_becomes_the_largest_number(narrow):
    values = np.array([np.inf, -np.inf], np.float32)
    result = NARROW[narrow].decode(truncate(values, "f32", narrow, 1))
    largest = NARROW[narrow].magnitudes[-1]
    assert result.tolist() == [largest, -largest]


@narrow_types
@wide_types
def test_every_encoding_round_trips(narrow, wide):
    codes = NARROW[narrow].codes
    codes = codes[np.isfinite(NARROW[narrow].decode(codes))]
    result = truncate(extend(codes, narrow, wide, 1), wide, narrow, 1)
    np.testing.assert_array_equal(result, codes)


# --- f4E2M1FN, two in a byte ------------------------------------------------------

PACKED = """
func.func @extend(%from: memref<256xi8>, %to: memref<512x{wide}>) {{
  affine.for %i = 0 to 256 step 32 {{
    %bytes = vector.load %from[%i] : memref<256xi8>, vector<32xi8>
    %x = vector.bitcast %bytes : vector<32xi8> to vector<64xf4E2M1FN>
    %y = arith.extf %x : vector<64xf4E2M1FN> to vector<64x{wide}>
    affine.vector_store %y, %to[2 * %i] : memref<512x{wide}>, vector<64x{wide}>
  }}
  return
}}
func.func @truncate(%from: memref<512x{wide}>, %to: memref<256xi8>) {{
  affine.for %i = 0 to 256 step 32 {{
    %x = affine.vector_load %from[2 * %i] : memref<512x{wide}>, vector<64x{wide}>
    %y = arith.truncf %x : vector<64x{wide}> to vector<64xf4E2M1FN>
    %bytes = vector.bitcast %y : vector<64xf4E2M1FN> to vector<32xi8>
    vector.store %bytes, %to[%i] : memref<256xi8>, vector<32xi8>
  }}
  return
}}
"""


@wide_types
def test_the_lower_half_of_a_byte_is_the_even_lane(wide):
    program = kvcache.jit(PACKED.format(wide=wide), target="cpu")
    packed = np.arange(256, dtype=np.uint8)
    lanes = np.stack([packed & 15, packed >> 4], axis=1).ravel()
    extended = np.empty(512, WIDE[wide])
    program.call("extend", packed, extended)
    expected = NARROW["f4E2M1FN"].decode(lanes)
    np.testing.assert_array_equal(extended.astype(np.float64), expected)
    back = np.empty(256, np.uint8)
    program.call("truncate", extended, back)
    np.testing.assert_array_equal(back, packed)


# --- the conversions of chips without cvt, by prmt in integers --------------------


def permutation():
    """The text of a function that computes prmt's default mode (PTX ISA, prmt)."""
    lines = [
        "func.func private @prmt(%selector: i32, %low: i32, %high: i32) -> i32 {",
        "  %high64 = arith.extui %high : i32 to i64",
        "  %low64 = arith.extui %low : i32 to i64",
        "  %selector64 = arith.extui %selector : i32 to i64",
        "  %c32 = arith.constant 32 : i64",
        "  %shifted = arith.shli %high64, %c32 : i64",
        "  %bytes = arith.ori %shifted, %low64 : i64",
        "  %c3 = arith.constant 3 : i64",
        "  %c7 = arith.constant 7 : i64",
        "  %c8 = arith.constant 8 : i64",
        "  %c255 = arith.constant 255 : i64",
        "  %r0 = arith.constant 0 : i64",
    ]
    for i in range(4):
        lines += [
            f"  %place{i} = arith.constant {4 * i} : i64",
            f"  %nibble{i} = arith.shrui %selector64, %place{i} : i64",
            f"  %index{i} = arith.andi %nibble{i}, %c7 : i64",
            f"  %offset{i} = arith.shli %index{i}, %c3 : i64",
            f"  %moved{i} = arith.shrui %bytes, %offset{i} : i64",
            f"  %byte{i} = arith.andi %moved{i}, %c255 : i64",
            f"  %sign{i} = arith.shrui %byte{i}, %c7 : i64",
            f"  %signs{i} = arith.muli %sign{i}, %c255 : i64",
            f"  %mode{i} = arith.andi %nibble{i}, %c8 : i64",
            f"  %copies{i} = arith.cmpi eq, %mode{i}, %c8 : i64",
            f"  %chosen{i} = arith.select %copies{i}, %signs{i}, %byte{i} : i64",
            f"  %to{i} = arith.constant {8 * i} : i64",
            f"  %put{i} = arith.shli %chosen{i}, %to{i} : i64",
            f"  %r{i + 1} = arith.ori %r{i}, %put{i} : i64",
        ]
    lines += ["  %result = arith.trunci %r4 : i64 to i32", "  return %result : i32", "}"]
    return "\n".join(lines)


def as_on_sm_80(program):
    """The program with sm_80's conversions, in ops that the CPU supports."""
    lowered = subprocess.run(
        [OPT, "--kvcache-narrow-floats=chip=sm_80"],
        input=program, capture_output=True, text=True, check=True,
    ).stdout
    assert "nvvm.prmt" in lowered
    lowered = re.sub(
        r"nvvm.prmt <default> (.*) : i32", r"func.call @prmt(\1) : (i32, i32, i32) -> i32", lowered
    )
    return lowered.rstrip().removesuffix("}") + permutation() + "\n}\n"


@pytest.mark.parametrize("lanes", [1, 3, 16])
@pytest.mark.parametrize("wide", ["f16", "f32"])
@pytest.mark.parametrize("narrow", ["f8E4M3FN", "f8E5M2"])
def test_permuted_bytes_extend_exactly(narrow, wide, lanes):
    program = kvcache.jit(as_on_sm_80(program_text("extf %x", narrow, wide, lanes)), target="cpu")
    codes = np.resize(np.arange(256, dtype=np.uint8), 288)  # all, and whole vectors
    result = np.empty(codes.size, WIDE[wide])
    program.call("convert", codes.view(array_dtype(narrow)), result)
    expected = NARROW[narrow].decode(codes)
    np.testing.assert_array_equal(result.astype(np.float64), expected)
    is_number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result)[is_number], np.signbit(expected)[is_number])


@wide_types
def test_looked_up_halves_of_bytes_extend_exactly(wide):
    program = PACKED.format(wide=wide)
    program = program[: program.index("func.func @truncate")]
    packed = np.arange(256, dtype=np.uint8)
    lanes = np.stack([packed & 15, packed >> 4], axis=1).ravel()
    extended = np.empty(512, WIDE[wide])
    kvcache.jit(as_on_sm_80(program), target="cpu").call("extend", packed, extended)
    expected = NARROW["f4E2M1FN"].decode(lanes)
    np.testing.assert_array_equal(extended.astype(np.float64), expected)
    np.testing.assert_array_equal(np.signbit(extended), lanes >= 8)


# --- f8E8M0FNU --------------------------------------------------------------------

roundings = pytest.mark.parametrize("rounding", ["", "upward", "toward_zero"])


def nearest_power(values, rounding):
    """Encodes f8E8M0FNU, from the exponents of the values."""
    values = values.astype(np.float64)
    is_nan = ~(values >= 0)
    infinite = np.isinf(values)
    fractions, exponents = np.frexp(np.where(is_nan | infinite, 1, values))
    fractions, exponents = 2 * fractions, exponents.astype(np.int64) - 1
    if rounding == "upward":
        exponents += fractions > 1
    elif rounding == "":
        exponents += fractions >= 1.5
    codes = np.clip(exponents, -127, 127) + 127
    codes = np.where(values == 0, 0, np.where(infinite, 254, codes))
    return np.where(is_nan, 255, codes).astype(np.uint8)


def power_inputs(wide):
    dtype = WIDE[wide]
    if dtype.itemsize == 2:
        return from_bits(np.arange(1 << 16), dtype)
    powers = np.exp2(np.arange(-149.0 if wide == "f32" else -400.0, 128))
    border = np.concatenate([powers, 1.5 * powers])
    if wide == "f64":
        border = np.concatenate([border, np.exp2([128.0, 129, 500])])
    return np.concatenate(
        [special_values(dtype), near(border, dtype), random_bits(dtype, 1 << 16)]
    )


@wide_types
@lane_counts
def test_powers_of_two_extend_exactly(wide, lanes):
    codes = np.arange(256, dtype=np.uint8)
    result = extend(codes, E8M0, wide, lanes)
    with np.errstate(over="ignore"):
        expected = np.exp2(codes[:255] - 127.0).astype(WIDE[wide])
    np.testing.assert_array_equal(result[:255], expected)
    assert np.isnan(result[255])


@wide_types
@lane_counts
@roundings
def test_truncation_to_powers_of_two(wide, lanes, rounding):
    values = power_inputs(wide)
    result = truncate(values, wide, E8M0, lanes, rounding)
    with np.errstate(invalid="ignore"):  # some NaNs are signaling
        expected = nearest_power(values, rounding)
    np.testing.assert_array_equal(result, expected)


CONSTANT_NANS = """
func.func private @chosen(%always: i1, %x: f8E8M0FNU) -> f8E8M0FNU {
  %other = arith.constant 0xFF : f8E8M0FNU
  %result = arith.select %always, %x, %other : f8E8M0FNU
  return %result : f8E8M0FNU
}

func.func @constants(%to: memref<6x$wide>) {
  %c0 = arith.constant 0 : index
  %always = arith.constant true
  %negative = arith.constant -2.0 : f32
  %bits = arith.constant -1 : i8
  %pair = arith.constant dense<[0xFF, 2.0]> : vector<2xf8E8M0FNU>
  %number = vector.extract %pair[1] : f8E8M0FNU from vector<2xf8E8M0FNU>
  %nan = arith.constant 0xFF : f8E8M0FNU
  %cast = arith.bitcast %bits : i8 to f8E8M0FNU
  %truncated = arith.truncf %negative : f32 to f8E8M0FNU
  %called = func.call @chosen(%always, %nan) : (i1, f8E8M0FNU) -> f8E8M0FNU
  %extracted = vector.extract %pair[0] : f8E8M0FNU from vector<2xf8E8M0FNU>
  %all = vector.from_elements %nan, %cast, %truncated, %called, %extracted, %number
      : vector<6xf8E8M0FNU>
  %wide = arith.extf %all : vector<6xf8E8M0FNU> to vector<6x$wide>
  %one = arith.extf %nan : f8E8M0FNU to $wide
  %result = vector.insert %one, %wide[0] : $wide into vector<6x$wide>
  vector.store %result, %to[%c0] : memref<6x$wide>, vector<6x$wide>
  return
}
"""


@wide_types
@pytest.mark.parametrize("target", ["cpu", *devices.TARGETS])
def test_constant_nans_of_powers_stay_nans(wide, target):
    """MLIR folds these conversions to infinity, and that of a negative number."""
    program = devices.jit(string.Template(CONSTANT_NANS).substitute(wide=wide), target)
    result = np.zeros(6, WIDE[wide])
    program.call("constants", result)
    np.testing.assert_array_equal(result.astype(np.float64), [np.nan] * 5 + [2.0])


def test_model_of_powers_agrees_with_ml_dtypes_below_saturation():
    values = power_inputs("f32")
    # It converts zero to NaN, and rounds up subnormals of f32.
    magnitudes = np.abs(values)
    values = values[(magnitudes >= 2.0**-126) & (magnitudes < 1.5 * 2.0**127)]
    expected = values.astype(ml_dtypes.float8_e8m0fnu).view(np.uint8)
    np.testing.assert_array_equal(nearest_power(values, ""), expected)


# --- bf16 and f64 -----------------------------------------------------------------


def nearest_bf16(values):
    """Converts f64 to bf16 in one rounding, to even, by comparison with the neighbours."""
    with np.errstate(over="ignore", invalid="ignore"):
        truncated = values.astype(np.float32).view(np.uint32)
    bits = (truncated >> 16).astype(np.int64)
    magnitude = np.abs(values)
    best = np.full(values.shape, -1, np.int64)
    least = np.full(values.shape, np.inf)
    for candidate in (bits - 1, bits, bits + 1):
        candidate = np.where((candidate & 0x7FFF) > 0x7F80, bits, candidate) & 0xFFFF
        size = candidate & 0x7FFF
        decoded = (size << 16).astype(np.uint32).view(np.float32).astype(np.float64)
        # Infinity takes the place of the next number.
        decoded = np.where(size == 0x7F80, 2.0**128, decoded)
        distance = np.abs(decoded - magnitude)
        same_sign = (candidate >> 15) == np.signbit(values)
        better = (distance < least) | ((distance == least) & (candidate & 1 == 0))
        best = np.where(better & same_sign, candidate, best)
        least = np.where(better & same_sign, distance, least)
    return best.astype(np.uint16)


@lane_counts
def test_f64_rounds_to_bf16_once(lanes):
    finite = np.arange(0x7F80, dtype=np.uint32) << 16
    values = finite.view(np.float32).astype(np.float64)
    ties = values + np.diff(values, append=2.0**128) / 2
    # Just off a tie: rounded to f32 first, these would become the tie.
    off = [ties * (1 + sign * 2.0**-40) for sign in (-1, 1)]
    values = np.concatenate([values, ties, *off, -ties, *(-x for x in off)])
    result = truncate(values, "f64", "bf16", lanes)
    np.testing.assert_array_equal(result.view(np.uint16), nearest_bf16(values))


@lane_counts
def test_f64_specials_to_bf16(lanes):
    values = np.array([np.inf, -np.inf, 0.0, -0.0, 1e-300, -1e-300, 1e300, np.nan])
    result = truncate(values, "f64", "bf16", lanes)
    expected = [0x7F80, 0xFF80, 0, 0x8000, 0, 0x8000, 0x7F80]
    assert result.view(np.uint16)[:-1].tolist() == expected
    assert np.isnan(result[-1].astype(np.float32))


@lane_counts
def test_bf16_extends_to_f64_exactly(lanes):
    values = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(WIDE["bf16"])
    result = extend(values, "bf16", "f64", lanes)
    expected = (values.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(result, expected.astype(np.float64))
