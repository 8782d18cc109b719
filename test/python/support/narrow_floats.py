"""Narrow floats: a model of their encodings, and programs that convert them on the CPU."""

import dataclasses
import functools

import ml_dtypes
import numpy as np
import pytest

import kvcache

WIDE = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}

wide_types = pytest.mark.parametrize("wide", WIDE)
lane_counts = pytest.mark.parametrize("lanes", [1, 5, 16], ids=["scalar", "odd", "vector"])


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
