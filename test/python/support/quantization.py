"""The model of quantization and dequantization, in plain NumPy.

The formulas are those of the documentation of ``quantize`` and ``dequantize``. Values are f64,
which holds the numbers of all formats and the products of any two exactly. So each step rounds
once, where the documentation says so.
"""

from dataclasses import dataclass, replace

import numpy as np
from model import F64, FORMATS, Cache, Format, PagedView


class E8M0:
    """The format f8E8M0FNU: powers of two. Writes round up to the next one."""

    bits = 8
    nans = True
    uint = np.dtype(np.uint8)

    def decode(self, encodings):
        encodings = np.asarray(encodings).astype(np.int32)
        return np.where(encodings == 0xFF, np.nan, np.ldexp(1.0, encodings - 127))

    def is_nan(self, encodings):
        return np.asarray(encodings) == 0xFF

    def encode(self, values):
        """Encodes positive f64 values."""
        fraction, exponent = np.frexp(np.asarray(values, np.float64))
        exponent -= fraction == 0.5
        return np.clip(exponent + 127, 0, 0xFE).astype(np.uint8)

    def largest(self):
        return 2.0**127

    def smallest(self):
        return 2.0**-127

    round = Format.round


class Int8:
    """The format i8: writes saturate at ±127; reads may give -128."""

    bits = 8
    nans = False
    uint = np.dtype(np.uint8)

    def decode(self, encodings):
        return np.asarray(encodings).astype(np.uint8).view(np.int8).astype(np.float64)

    def encode(self, values):
        return np.clip(np.rint(values), -127, 127).astype(np.int8).view(np.uint8)

    def largest(self):
        return 127.0

    round = Format.round


class UInt4:
    """The format i4 of caches with zero points: numbers from 0 to 15."""

    bits = 4
    nans = False
    uint = np.dtype(np.uint8)

    def decode(self, encodings):
        return np.asarray(encodings).astype(np.float64)

    def encode(self, values):
        return np.asarray(values).astype(np.uint8)

    def largest(self):
        return 15.0


F32 = FORMATS["f32"]
F8E4M3FN, F8E5M2 = FORMATS["f8E4M3FN"], FORMATS["f8E5M2"]
F4E2M1FN = Format(4, 1, 1, infinities=False, saturates=True, nans=False)
ELEMENTS = {
    "f8E4M3FN": F8E4M3FN,
    "f8E5M2": F8E5M2,
    "i8": Int8(),
    "f4E2M1FN": F4E2M1FN,
    "i4": UInt4(),
}
SCALES = {
    "f32": F32,
    "f16": FORMATS["f16"],
    "bf16": FORMATS["bf16"],
    "f8E8M0FNU": E8M0(),
    "f8E4M3FN": F8E4M3FN,
}
VALUES = {name: FORMATS[name] for name in ("f32", "f16", "bf16")}
RESULTS = {"f64": F64, **VALUES}


def check_encodings(format, encodings, values):
    """Checks encodings of values; encodings of NaNs must be NaNs.

    A format without NaNs has no correct encoding for them.
    """
    is_nan = np.isnan(values)
    expected = format.encode(np.where(is_nan, 0, values))
    wrong = ~is_nan & (encodings != expected)
    np.testing.assert_array_equal(encodings[wrong], expected[wrong])
    if format.nans:
        assert format.is_nan(encodings[is_nan]).all()


def multiply_f32(left, right):
    return F32.round(np.asarray(left) * right)


def divide_f32(left, right):
    """Divides f32 numbers, rounded once."""
    with np.errstate(all="ignore"):
        left, right = np.asarray(left, np.float32), np.asarray(right, np.float32)
        return (left / right).astype(np.float64)


def group_indices(lanes, granularity):
    return np.arange(lanes) // granularity


@np.errstate(invalid="ignore")
def dequantize(elements, scales, scale_format, result_format, tensor_scale=None):
    """Dequantizes elements, whose scales are the lanes of ``scales``."""
    product_format = F32 if scale_format.bits == 8 else scale_format
    if tensor_scale is not None:
        scales = multiply_f32(scales, np.float32(tensor_scale))
    return result_format.round(product_format.round(elements * scales))


def round_up_to_power(values):
    fraction, exponent = np.frexp(values)
    return np.ldexp(1.0, exponent - (fraction == 0.5))


def quantize(
    values, granularity, element_format, scale_format, tensor_scale=None, power_of_two=False, least_amax=False
):
    """Quantizes f32 ``values`` to elements and scales of groups along the last dimension."""
    starts = np.arange(0, values.shape[-1], granularity)
    largest = np.maximum.reduceat(np.abs(values), starts, axis=-1)
    scales = divide_f32(largest, element_format.largest())
    if tensor_scale is not None:
        scales = divide_f32(scales, tensor_scale)
    if power_of_two:
        least = np.float32(1e-4) / (element_format.largest() if least_amax else 1)
        scales = round_up_to_power(np.clip(scales, least, 2.0**126))
    else:
        scales = np.clip(scales, scale_format.smallest(), scale_format.largest())
        scales = np.where(largest == 0, 1, scales)
    scales = scale_format.round(np.where(np.isfinite(largest), scales, np.nan))
    divisors = scales
    if tensor_scale is not None:
        divisors = multiply_f32(scales, np.float32(tensor_scale))
    lanes = group_indices(values.shape[-1], granularity)
    quotients = divide_f32(values, divisors[..., lanes])
    return element_format.round(quotients), scales


# Zero points


@np.errstate(invalid="ignore", over="ignore")
def fma_f32(left, right, addend):
    """Computes ``left * right + addend`` of f32 numbers, rounded once; the product is f64."""
    product = np.asarray(left, np.float64) * right
    total = product + addend
    # The error of the sum goes into its last place, which decides ties of f32.
    part = total - product
    lost = (product - (total - part)) + (addend - part)
    is_even = total.view(np.int64) % 2 == 0
    towards = np.where(lost > 0, np.inf, -np.inf)
    sticky = is_even & (lost != 0) & np.isfinite(total)
    return F32.round(np.where(sticky, np.nextafter(total, towards), total))


def dequantize_with_zero_points(elements, scales, zero_points, result_format):
    """Dequantizes elements with scales and zero points in separate lanes."""
    return result_format.round(fma_f32(elements, scales, zero_points))


@np.errstate(all="ignore")
def quantize_with_zero_points(values, granularity, scale_format):
    """Quantizes f32 values ``[tokens, lanes]`` to elements, scales and zero points.

    The tokens share the groups along their lanes. The formulas are those of the documentation of
    ``store_quantized``.
    """
    values = np.asarray(values, np.float32)
    starts = np.arange(0, values.shape[-1], granularity)
    lanes = group_indices(values.shape[-1], granularity)
    low = np.minimum.reduceat(values.min(axis=0), starts) + np.float32(0)  # no negative 0
    high = np.maximum.reduceat(values.max(axis=0), starts)
    finite = np.isfinite(low) & np.isfinite(high)
    limit = np.float32(scale_format.largest())
    zero_points = scale_format.round(np.clip(low, -limit, limit)).astype(np.float32)
    scales = (high - zero_points) / np.float32(15)
    least = max(scale_format.smallest(), 2.0**-126)
    scales = np.clip(scales, np.float32(least), limit)
    scales = scale_format.round(scales).astype(np.float32)
    factors = np.float32(1) / scales
    steps = (values - zero_points[lanes]) * factors[lanes]
    elements = np.rint(np.clip(np.where(np.isnan(steps), 0, steps), 0, 15))
    return (
        elements.astype(np.float64),
        np.where(finite, scales, np.nan).astype(np.float64),
        np.where(finite, zero_points, np.nan).astype(np.float64),
    )


# Caches


def unpack(bytes):
    """Unpacks the 4-bit elements of bytes, the low ones first."""
    return np.stack([bytes & 15, bytes >> 4], axis=-1).reshape(*bytes.shape[:-1], 2 * bytes.shape[-1])


def pack(elements):
    pairs = elements.reshape(*elements.shape[:-1], -1, 2)
    return (pairs[..., 0] | pairs[..., 1] << 4).astype(np.uint8)


@dataclass(frozen=True)
class QuantizedView:
    """One layer's keys or values: a view of the stored elements, and one of scales.

    ``head_size`` counts elements; two 4-bit elements share a byte.
    """

    elements: PagedView
    scales: PagedView
    element_format: object
    scale_format: object
    head_size: int
    granularity: int

    @property
    def per_byte(self):
        return 8 // self.element_format.bits

    def tokens(self):
        return min(self.elements.tokens(), self.scales.tokens())

    def read_elements(self, b, h, t, d, width):
        """Reads the encodings of elements, in a last dimension."""
        stored = self.elements.read(
            b, h, t, d // self.per_byte, width // self.per_byte or 1
        )
        return unpack(stored) if self.per_byte == 2 else stored

    def write_elements(self, b, h, t, d, encodings):
        stored = pack(encodings) if self.per_byte == 2 else encodings
        self.elements.write(b, h, t, d // self.per_byte, stored)

    def read_scales(self, b, h, t, d, width=1):
        """Reads the encodings of the scale of element d and of those after it."""
        return self.scales.read(b, h, t, d // self.granularity, width)

    def write_scales(self, b, h, t, d, encodings):
        self.scales.write(b, h, t, d // self.granularity, encodings)

    def load(self, b, h, t, d, width, result_format, tensor_scale=None):
        """Loads the values of elements, each with the scale of its group."""
        elements = self.element_format.decode(self.read_elements(b, h, t, d, width))
        lanes = np.asarray(d)[..., np.newaxis] + np.arange(width)
        b, h, t = (np.asarray(index)[..., np.newaxis] for index in (b, h, t))
        scales = self.scale_format.decode(self.read_scales(b, h, t, lanes)[..., 0])
        return dequantize(elements, scales, self.scale_format, result_format, tensor_scale)

    def store_quantized(self, b, h, t, d, values, tensor_scale=None):
        elements, scales = quantize(
            values,
            self.granularity,
            self.element_format,
            self.scale_format,
            tensor_scale,
        )
        assert np.isfinite(scales).all()
        self.write_elements(b, h, t, d, self.element_format.encode(elements))
        self.write_scales(b, h, t, d, self.scale_format.encode(scales))

    def scale_tma_coords(self, b, t):
        row, page = self.scales.tma_coords(b, t)
        return row - row % (16 // self.scale_format.uint.itemsize), page


@dataclass(frozen=True)
class QuantizedCache:
    """All layers of a quantized cache: a cache of stored elements and one of scales."""

    elements: Cache
    scales: Cache
    element_format: object
    scale_format: object
    head_size: int
    granularity: int

    def view(self, role, layer):
        return QuantizedView(
            self.elements.view(role, layer),
            self.scales.view(role, layer),
            self.element_format,
            self.scale_format,
            self.head_size,
            self.granularity,
        )

    def copy(self):
        """Copies the cache and its memory."""
        return replace(
            self,
            elements=self.elements.with_memory(self.elements.memory.copy()),
            scales=self.scales.with_memory(self.scales.memory.copy()),
        )

    def with_tables(self, table, scales_table, lengths=None):
        """Copies the cache with other tables of elements and of scales."""
        lengths = self.elements.lengths if lengths is None else lengths
        return replace(
            self,
            elements=self.elements.with_tables(table, lengths),
            scales=self.scales.with_tables(scales_table, lengths),
        )

    def check_memory(self, other):
        np.testing.assert_array_equal(self.elements.memory, other.elements.memory)
        np.testing.assert_array_equal(self.scales.memory, other.scales.memory)

    def arguments(self, shape):
        """The first arguments of every function of a program."""
        tables = (self.scales.table,) if shape.own_table else ()
        return (
            *self.elements.arguments(shape.numpy),
            self.scales.blocks(shape.scale_numpy),
            *tables,
        )
