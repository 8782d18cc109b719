"""Tests of quantize in kernels and on the CPU, which multiply instead of dividing, for quotients at or near midpoints.

Quotients are midpoints of two numbers of the quantized type, or as close as values of 16 bits and divisors of 24 bits
can be."""

import devices
import numpy as np
import pytest
from programs import DTYPES
from quantization import ELEMENTS, SCALES, check_encodings, quantize, unpack
from quantized_programs import FORMATS_OF_CACHES, SCALE_DTYPES

import kvcache

LANES = 128
THREADS = 32

SOURCE = """
func.func @run(%values: memref<?x{lanes}x{wide}>, %factors: memref<?xf32>, %elements: memref<?x{stored}>,
               %scales: memref<?x{scale}>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant {threads} : index
  %groups = memref.dim %scales, %c0 : memref<?x{scale}>
  %blocks = arith.divui %groups, %threads : index
  scf.parallel (%block) = (%c0) to (%blocks) step (%c1) {{
    scf.parallel (%thread) = (%c0) to (%threads) step (%c1) {{
      %first = arith.muli %block, %threads : index
      %i = arith.addi %first, %thread : index
      %x = vector.load %values[%i, %c0] : memref<?x{lanes}x{wide}>, vector<{lanes}x{wide}>
      %factor = memref.load %factors[%i] : memref<?xf32>
      %w, %s = kvcache.quantize %x {factor} : vector<{lanes}x{wide}> -> vector<{lanes}x{element}>, {scale}
      %bits = vector.bitcast %w : vector<{lanes}x{element}> to vector<{stored}>
      vector.store %bits, %elements[%i, %c0] : memref<?x{stored}>, vector<{stored}>
      memref.store %s, %scales[%i] : memref<?x{scale}>
    }}
  }}
  return
}}
"""


def magnitudes(wide):
    """The largest magnitudes of groups: many mantissas with exponents of all cases of the lowering, and NaN."""
    bits = np.arange(1 << 15, dtype=np.uint16)
    exponents = bits >> (7 if wide == "bf16" else 10)
    if wide == "bf16":
        # Subnormal; scales that are, and whose reciprocals are; around 2^-20 * 448; the largest.
        some = [
            0,
            1,
            2,
            8,
            9,
            10,
            11,
            12,
            100,
            114,
            115,
            116,
            117,
            127,
            200,
            246,
            253,
            254,
            255,
        ]
        return bits[np.isin(exponents, some)].view(DTYPES[wide])
    return bits[np.isin(exponents, [0, 1, 2, 15, 30, 31]) & (bits % 5 == 0)].view(
        DTYPES[wide]
    )


def middles(element):
    """The midpoints of neighbours of a type."""
    format = ELEMENTS[element]
    numbers = format.decode(np.arange(1 << (format.bits - 1)).astype(np.uint8))
    numbers = np.unique(numbers[np.isfinite(numbers)]).astype(np.float64)
    return (numbers[1:] + numbers[:-1]) / 2


def close_groups(wide, element):
    """Rows of a magnitude and the values whose quotients are closest to midpoints."""
    half_way = np.resize(middles(element), LANES - 1)
    largest = magnitudes(wide)
    with np.errstate(invalid="ignore", over="ignore"):
        values = (
            largest.astype(np.float64)[:, None] * half_way / ELEMENTS[element].largest()
        )
        values[:, ::2] *= -1
        rows = np.concatenate(
            [largest[:, None], values.astype(np.float32).astype(DTYPES[wide])], 1
        )
        zeros = np.zeros((THREADS, LANES))
        return np.concatenate([rows, -rows, zeros, -zeros]).astype(DTYPES[wide])


@np.errstate(over="ignore")
def groups_of_factors(wide, element):
    """Rows, and a tensor scale for each: with scale 1, the divisor.

    The quotients of one of its values, or of nearly all, are as close to midpoints as possible.
    """
    rng = np.random.default_rng(0)
    rows = 1024
    bits = 8 if wide == "bf16" else 11
    few = rng.integers(1 << (bits - 1), 1 << bits, rows) * np.ldexp(
        1.0, rng.integers(-14, 4, rows)
    )
    few[::8] = np.ldexp(1.0, rng.integers(-14, 14, rows // 8))
    half_way = rng.choice(middles(element), rows)
    half_way[::16] = middles(element)[0]
    factors = (few / half_way).astype(np.float32)
    places = rng.integers(-1, 2, rows)
    places[::16] = -1
    factors = np.where(places < 0, np.nextafter(factors, np.float32(0)), factors)
    factors = np.where(places > 0, np.nextafter(factors, np.float32(np.inf)), factors)
    # Divisors that are not normal numbers, or not finite.
    extreme = np.float32(
        [2.0**-149, 2.0**-140, 2.0**-126, 2.0**-100, 2.0**100, 1.5 * 2.0**127]
    )
    factors[4 : 4 + 32 * len(extreme) : 32] = extreme
    values = factors.astype(np.float64)[:, None] * np.resize(middles(element), LANES)
    values[:, ::2] *= -1
    values[:, 0] = factors.astype(np.float64) * ELEMENTS[element].largest()
    values[:, 1] = few
    values[:, 2] = -few
    largest = float(np.finfo(np.float32).max) / 2 if wide == "bf16" else 65504.0
    return np.clip(values, -largest, largest).astype(DTYPES[wide]), factors


def check_quantized(formats, target, wide, rows, factors=None):
    element, scale = formats
    packed = element == "f4E2M1FN"
    stored = f"{LANES // 2 if packed else LANES}xi8"
    source = SOURCE.format(
        lanes=LANES,
        threads=THREADS,
        wide=wide,
        element=element,
        scale=scale,
        stored=stored,
        factor="" if factors is None else "tensor_scale %factor",
    )
    elements = np.zeros((len(rows), LANES // 2 if packed else LANES), np.int8)
    scales = np.zeros(len(rows), SCALE_DTYPES[scale])
    given = np.ones(len(rows), np.float32) if factors is None else factors
    kvcache.jit(source, target=target).call("run", rows, given, elements, scales)

    format = ELEMENTS[element]
    expected, expected_scales = quantize(
        rows.astype(np.float32),
        LANES,
        format,
        SCALES[scale],
        factors if factors is None else factors[:, None],
    )
    check_encodings(
        SCALES[scale], scales.view(SCALES[scale].uint)[:, None], expected_scales
    )
    got = elements.view(np.uint8)
    check_encodings(format, unpack(got) if packed else got, expected)


# Both types in turn, the other one in each of the two tests.
WIDE = ["bf16", "f16"]
each_format = pytest.mark.parametrize(
    ("formats", "target"),
    [*((formats, "cpu") for formats in FORMATS_OF_CACHES), *devices.spread(FORMATS_OF_CACHES)],
)


def get_wide(formats, first):
    return WIDE[(FORMATS_OF_CACHES.index(formats) + first) % 2]


@each_format
def test_quantized_values_equal_a_division(formats, target):
    wide = "bf16" if target == "cpu" else get_wide(formats, 0)  # a CPU has loops for bf16
    rows = close_groups(wide, formats[0])
    check_quantized(formats, target, wide, rows[len(rows) % THREADS :])


@each_format
def test_quantize_with_any_tensor_scale(formats, target):
    wide = get_wide(formats, 1)
    check_quantized(formats, target, wide, *groups_of_factors(wide, formats[0]))


def test_one_quotient_is_close_to_a_rounding_boundary():
    """Proves the lowering without divisions exactly, for all values and divisors.

    A quotient p / D is rounded to f32 first. So rounding to a narrow type changes at c = m +- half a last
    place of m, where m is a midpoint of narrow numbers.
    """
    closest = {}
    values = range(1 << 10, 1 << 11)
    for odd in range(1, 256, 2):
        for side in (-1, 1):
            # In quarters of m's last place; below a power of two, places are half as large.
            middle = odd << (26 - odd.bit_length())
            c = middle + (1 if odd == 1 and side < 0 else 2) * side
            for p in values:
                # The divisors of 24 bits around p / c, all of them as integers.
                shift = (c << 23).bit_length() - p.bit_length()
                for numerator in (p << shift, p << shift + 1):
                    for divisor in (numerator // c, numerator // c + 1):
                        if not 1 << 23 <= divisor < 1 << 24:
                            continue
                        distance = (numerator - c * divisor) / (c * divisor)
                        assert distance
                        if abs(distance) < 2**-39.35:
                            closest[odd, side, p, divisor] = distance
    assert closest == {(1, 1, 1 << 10, (1 << 24) - 1): pytest.approx(2**-48, rel=1e-6)}
