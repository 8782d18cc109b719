"""Tests of values that are quantized into a cache and loaded again.

The formats bound the distance of a value x of a group from its copy x'. Let a be the largest magnitude of the group,
M the largest number of the element format, and s the scale.

- Scale. s is a / M rounded to the scale format: within a factor 1 + u of it, where u is
  2^-24 for f32, 2^-11 for f16, 2^-8 for bf16 and 2^-4 for f8E4M3FN (half a unit of the
  last place of a number with 23, 10, 7 and 3 bits of mantissa), while it is a normal
  number of the format. f8E8M0FNU rounds up, to less than twice as much, and never down.
  So s is at most S = (a / M) (1 + u), or 2 a / M.
- Element. x / s is rounded to nearest: f8E4M3FN, f8E5M2 and f4E2M1FN have m = 3, 2 and 1
  bits of mantissa, so a normal number moves by at most r = 2^-(m+1) of itself, and a
  subnormal one by half of the smallest: h = 2^-10, 2^-17 and 2^-2. i8 has r = 0 and
  h = 1/2. In x, that is max(r |x|, h S).
- Saturation. Where s was rounded down, up to u a of x lies beyond M s; not so for
  f8E8M0FNU.
- Product. It is computed in the scale format, in f32 for those of 8 bits: rounding it
  moves x' by at most v |x'|, with v the u of that format, and |x'| is at most
  (1 + r) (1 + u) a, or (1 + r) a for f8E8M0FNU. A scale of f16 makes copies beyond 65504
  infinite, so that a is at most 2^15. Quotients and a / M are f32: rounding them moves x'
  by less than 2^-23 of |x'|.

Together: |x' - x| <= max(r |x|, h S) + u a + (v + 2^-23) (1 + r) (1 + u) a. For f8E4M3FN
with f32 scales that is 2^-4 |x|, for i8 a / 254, each and a little.
"""

import functools

import numpy as np
import pytest
from devices import spread
from hypothesis import given
from hypothesis import strategies as st
from programs import Source, examples
from quantization import ELEMENTS, SCALES
from quantized_programs import (
    FORMATS_OF_CACHES,
    QuantizedShape,
    add_load,
    add_store_quantized,
    each_format,
    small_quantized_cache,
)

HEAD = 96
ROUNDING = {"f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8, "f8E4M3FN": 2.0**-4}
RELATIVE = {"f8E4M3FN": 2.0**-4, "f8E5M2": 2.0**-3, "i8": 0.0, "f4E2M1FN": 2.0**-2}
SMALLEST = {"f8E4M3FN": 2.0**-10, "f8E5M2": 2.0**-17, "i8": 0.5, "f4E2M1FN": 2.0**-2}


def get_granularity(element, scale):
    return 16 if (element, scale) == ("f4E2M1FN", "f8E4M3FN") else 32


def bound(values, largest, element, scale):
    """The bound of the distance of copies from values: the module's formula."""
    scale_rounding = ROUNDING.get(scale, 0.0)
    steps = 2 if scale == "f8E8M0FNU" else 1 + scale_rounding
    largest_scale = largest / ELEMENTS[element].largest() * steps
    r, h = RELATIVE[element], SMALLEST[element]
    product = ROUNDING["f32"] if scale.startswith("f8") else scale_rounding
    return (
        np.maximum(r * np.abs(values), h * largest_scale)
        + scale_rounding * largest
        + (product + 2.0**-23) * (1 + r) * (1 + scale_rounding) * largest
    )


@functools.cache
def compile_round_trip(element, scale, target="cpu"):
    granularity = get_granularity(element, scale)
    shape = QuantizedShape(element, 2, HEAD, 3, False, scale, granularity)
    source = Source(shape)
    tensor = scale == "f8E4M3FN"
    add_store_quantized(source, "store", HEAD)
    add_load(source, "load", HEAD, "f32")
    if tensor:
        add_store_quantized(source, "store_tensor", HEAD, tensor_scale=True)
        type = f"vector<{HEAD}xf32>"
        source.add(
            "load_tensor",
            [*(f"{i}: index" for i in "bhtd"), "out: memref<?xf32>", "scale: f32"],
            f"""  %v = kvcache.load %k[%b, %h, %t, %d] tensor_scale %scale : !cache -> {type}
  vector.store %v, %out[%c0] : memref<?xf32>, {type}
  return""",
        )
    return shape, source.compile(target=target, opt_level=0), small_quantized_cache(shape)


def round_trip(element, scale, values, tensor_scale=None, target="cpu"):
    """Copies of a head's values through the cache."""
    shape, program, cache = compile_round_trip(element, scale, target)
    arguments = (*cache.arguments(shape), 1, 1, 0, 4, 0)
    out = np.zeros(HEAD, np.float32)
    if tensor_scale is None:
        program.call("store", *arguments, values)
        program.call("load", *arguments, out)
    else:
        program.call("store_tensor", *arguments, values, tensor_scale)
        program.call("load_tensor", *arguments, out, tensor_scale)
    return out.astype(np.float64)


def amplitudes(element, scale):
    """Exponents of the largest magnitudes for which scales are normal numbers."""
    format = SCALES[scale]
    lowest = 0 if scale == "f8E8M0FNU" else format.mantissa
    low = np.log2(format.smallest()) + lowest + 1
    high = np.log2(format.largest()) - 1
    quantized = np.log2(ELEMENTS[element].largest())
    # Copies are numbers of the scale type, so that f16 has none beyond 65504; values are
    # f32, and far from its subnormal numbers.
    return max(low + quantized, -90), min(
        high + quantized, 15 if scale == "f16" else 120
    )


def error_and_bound(element, scale, values, tensor_scale=None, target="cpu"):
    copies = round_trip(element, scale, values, tensor_scale, target)
    granularity = get_granularity(element, scale)
    groups = np.abs(values.astype(np.float64)).reshape(-1, granularity)
    largest = np.repeat(groups.max(axis=1), granularity)
    allowed = bound(values.astype(np.float64), largest, element, scale)
    if tensor_scale is not None:
        # One more product of scales, when they are made and when they are used.
        allowed += 2.0**-22 * largest
    return np.abs(copies - values), allowed


def draw_values(rng, exponents, zeros):
    """A head of values; those of a group have magnitudes like 2^exponent."""
    groups = len(exponents)
    values = rng.normal(size=(groups, HEAD // groups))
    values *= np.exp2(rng.uniform(-8, 0, values.shape))
    values /= np.abs(values).max(axis=1, keepdims=True)
    values *= np.exp2(np.asarray(exponents))[:, np.newaxis]
    return np.where(rng.random(values.shape) < zeros, 0, values).ravel()


@each_format
@given(st.data())
@examples(25)
def test_copies_are_within_the_bound(element, scale, data):
    groups = HEAD // get_granularity(element, scale)
    low, high = amplitudes(element, scale)
    exponents = [data.draw(st.floats(low, high)) for _ in range(groups)]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    zeros = data.draw(st.sampled_from((0, 0.3)))
    values = draw_values(rng, exponents, zeros).astype(np.float32)
    # The largest is what the exponents say, so that scales stay normal numbers.
    values.reshape(groups, -1)[:, 0] = np.exp2(exponents)
    error, allowed = error_and_bound(element, scale, values)
    assert (error <= allowed).all()
    if scale == "f8E4M3FN":
        tensor_scale = float(np.float32(np.exp2(data.draw(st.floats(-20, 20)))))
        scaled = (values * np.float32(tensor_scale)).astype(np.float32)
        error, allowed = error_and_bound(element, scale, scaled, tensor_scale)
        assert (error <= allowed).all()


@each_format
def test_the_bound_is_nearly_reached(element, scale):
    """The largest error is at least a third of the bound."""
    rng = np.random.default_rng(12)
    low, high = amplitudes(element, scale)
    middle = (low + high) / 2
    groups = HEAD // get_granularity(element, scale)
    nearest = 0
    for _ in range(60):
        exponents = middle + rng.uniform(-2, 2, groups)
        values = draw_values(rng, exponents, 0).astype(np.float32)
        error, allowed = error_and_bound(element, scale, values)
        nearest = max(nearest, (error / allowed).max())
    assert 1 / 3 < nearest <= 1


@pytest.mark.parametrize(("formats", "target"), spread(FORMATS_OF_CACHES))
def test_kernels_make_the_same_copies(formats, target):
    """Kernels agree with the CPU to the bit: nothing here is a sum of products."""
    element, scale = formats
    rng = np.random.default_rng(13)
    low, high = amplitudes(element, scale)
    groups = HEAD // get_granularity(element, scale)
    for tensor_scale in (None, 0.3) if scale == "f8E4M3FN" else (None,):
        values = draw_values(rng, rng.uniform(low, high, groups), 0.2).astype(np.float32)
        values[5] = 0
        arguments = element, scale, values, tensor_scale
        np.testing.assert_array_equal(round_trip(*arguments, target), round_trip(*arguments))
    values[3] = np.nan
    copies = round_trip(element, scale, values, target=target)
    assert np.isnan(copies[: HEAD // groups]).all()
    assert np.isfinite(copies[HEAD // groups :]).all()


@each_format
def test_zeros_stay_zeros(element, scale):
    """Tests a group of zeros, and zeros among other values."""
    values = np.zeros(HEAD, np.float32)
    assert not round_trip(element, scale, values).any()
    values[5] = 3
    copies = round_trip(element, scale, values)
    assert np.flatnonzero(copies).tolist() == [5]


@each_format
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_a_nan_or_an_infinity_makes_the_group_nan(element, scale, special):
    values = np.linspace(-1, 1, HEAD).astype(np.float32)
    values[3] = special
    copies = round_trip(element, scale, values)
    granularity = get_granularity(element, scale)
    assert np.isnan(copies[:granularity]).all()
    assert np.isfinite(copies[granularity:]).all()


@each_format
def test_copies_stay_as_they_are(element, scale):
    """If the scale is a power of two, copies of copies are equal."""
    rng = np.random.default_rng(3)
    low, high = amplitudes(element, scale)
    groups = HEAD // get_granularity(element, scale)
    largest = ELEMENTS[element].largest()
    power = np.exp2(np.floor((low + high) / 2 - np.log2(largest)))
    values = draw_values(rng, np.zeros(groups), 0).reshape(groups, -1)
    values[:, 0] = 1
    values = (values * largest * power).astype(np.float32).ravel()
    copies = round_trip(element, scale, values).astype(np.float32)
    np.testing.assert_array_equal(round_trip(element, scale, copies), copies)


def test_copies_beyond_f16_are_infinite():
    """The product has the scale type, though the result type has a larger range."""
    values = np.full(HEAD, 1e5, np.float32)
    assert np.isinf(round_trip("f8E4M3FN", "f16", values)).all()
    assert np.isfinite(round_trip("f8E4M3FN", "bf16", values)).all()
