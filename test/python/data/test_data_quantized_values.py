"""Tests of quantize and dequantize against the NumPy model, bit for bit."""

import functools
import itertools

import devices
import numpy as np
import pytest
from bodies import give, lanes, take
from hypothesis import given
from hypothesis import strategies as st
from model import FORMATS
from programs import DTYPES, examples, place
from quantization import (
    ELEMENTS,
    RESULTS,
    SCALES,
    VALUES,
    check_encodings,
    dequantize,
    group_indices,
    pack,
    quantize,
    unpack,
)
from quantized_programs import (
    FORMATS_OF_CACHES,
    QUANTIZED_DTYPES,
    SCALE_DTYPES,
    each_format,
    give_elements,
    take_elements,
)

# Lanes of values, and of scales; 0 stands for a scalar.
GROUPINGS = (
    (0, 0),
    (0, 1),
    (1, 0),
    (1, 1),
    (16, 0),
    (16, 1),
    (72, 3),
    (64, 64),
    (80, 2),
)
"""The first type of values has all of these, in kernels every other one, and the others have two."""
OPTIMIZED = (("f8E4M3FN", "bf16"), ("i8", "f16"), ("f4E2M1FN", "f8E4M3FN"))


# Scale types that hold all powers of two, and the quantized types with them.
POWERS = ("f32", "bf16", "f8E8M0FNU")
POWER_CASES = (("f32", 72, 3), ("bf16", 16, 1))


class Values:
    """A module of loops that quantize and dequantize rows of lanes."""

    def __init__(self, element, scale, groupings=GROUPINGS):
        self.element, self.scale = element, scale
        self.stored = "i8" if element == "f4E2M1FN" else element
        self.groupings = [
            grouping
            for grouping in groupings
            if element != "f4E2M1FN" or grouping[0] % 2 == 0 < grouping[0]
        ]
        self.text = ""

    def add(self, op, wide, width, scales, tensor_scale=False, powers=""):
        """A function (wide, elements, scales[, tensor_scale]) over all rows; ``powers`` are attributes."""
        element, scale = self.element, self.scale
        columns, groups = max(width, 1), max(scales, 1)
        stored = columns // (2 if element == "f4E2M1FN" else 1)
        memrefs = {
            "%wide": f"memref<?x{wide}>",
            "%elements": f"memref<?x{self.stored}>",
            "%scales": f"memref<?x{scale}>",
        }
        wide_type, scale_type = lanes(width, wide), lanes(scales, scale)
        type = lanes(width, element)
        x = ("%wide", memrefs["%wide"])
        w = ("%elements", memrefs["%elements"])
        s = ("%scales", memrefs["%scales"])
        given = " tensor_scale %tensor_scale" if tensor_scale else ""
        if powers:
            given += f" {{{powers}}}"
        if op == "quantize":
            body = (
                f"{take('%x', x, wide_type, '%at')}"
                f"  %w, %s = kvcache.quantize %x{given} : {wide_type} -> {type}, {scale_type}\n"
                f"{give_elements('%w', w, width, element, '%at_element')}"
                f"{give('%s', s, scale_type, '%at_scale')}"
            )
        else:
            body = (
                f"{take_elements('%w', w, width, element, '%at_element')}"
                f"{take('%s', s, scale_type, '%at_scale')}"
                f"  %x = kvcache.dequantize %w, %s{given} : {type}, {scale_type} -> {wide_type}\n"
                f"{give('%x', x, wide_type, '%at')}"
            )
        parameters = ", ".join(f"{name}: {type}" for name, type in memrefs.items())
        if tensor_scale:
            parameters += ", %tensor_scale: f32"
        name = self.name(op, wide, width, scales, tensor_scale)
        name += powers.replace(", ", "_")
        self.text += f"""func.func @{name}({parameters}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %columns = arith.constant {columns} : index
  %groups = arith.constant {groups} : index
  %stored = arith.constant {stored} : index
  %n = memref.dim %wide, %c0 : {memrefs["%wide"]}
  %rows = arith.divui %n, %columns : index
  scf.for %i = %c0 to %rows step %c1 {{
  %at = arith.muli %i, %columns : index
  %at_scale = arith.muli %i, %groups : index
  %at_element = arith.muli %i, %stored : index
{body}  }}
  return
}}
"""

    @staticmethod
    def name(op, wide, width, scales, tensor_scale=False):
        return f"{op}_{wide}_{width}_{scales}{'_tensor' if tensor_scale else ''}"

    def cases(self, wides):
        """Types of values with groupings: all of the first, two of the others."""
        for number, wide in enumerate(wides):
            some = self.groupings
            if number:
                some = {some[-1], some[number % len(some)]}
            for grouping in sorted(some):
                yield (wide, *grouping)


@functools.cache
def compile_values(element, scale, op, target="cpu"):
    number = FORMATS_OF_CACHES.index((element, scale))
    groupings = GROUPINGS if target == "cpu" else GROUPINGS[number % 2 :: 2]
    values = Values(element, scale, groupings)
    for case in values.cases(VALUES if op == "quantize" else RESULTS):
        values.add(op, *case)
    if scale == "f8E4M3FN":
        values.add(op, "f32", 16, 1, tensor_scale=True)
        values.add(op, "bf16", 80, 2, tensor_scale=True)
    # The optimizer takes nearly all of the time.
    optimize = target == "cpu" and (element, scale) in OPTIMIZED
    return values, devices.jit(values.text, target, opt_level=2 if optimize else 0)


def list_cases(values, wides):
    yield from ((*case, None) for case in values.cases(wides))
    if values.scale == "f8E4M3FN":
        for tensor_scale in (1.0, 0.1, 2.0**-20, 3e5, 1e-40):
            yield ("f32", 16, 1, tensor_scale)
            yield ("bf16", 80, 2, tensor_scale)


def run_quantize(program, values, case, inputs, suffix=""):
    """Encodings of elements and scales for rows of values in their own dtype."""
    wide, width, scales, tensor_scale = case
    element, scale = ELEMENTS[values.element], SCALES[values.scale]
    rows = len(inputs)
    per_byte = 8 // element.bits
    elements = place(np.zeros((rows, inputs.shape[1] // per_byte), np.uint8))
    out = place(np.zeros((rows, max(scales, 1)), scale.uint))
    program.call(
        values.name("quantize", wide, width, scales, tensor_scale is not None) + suffix,
        place(inputs).ravel(),
        elements.ravel().view(QUANTIZED_DTYPES[values.element]),
        out.ravel().view(SCALE_DTYPES[values.scale]),
        *(() if tensor_scale is None else (tensor_scale,)),
    )
    return unpack(elements) if per_byte == 2 else elements, out


def check_quantize(program, values, case, inputs, powers=""):
    """``inputs`` are rows of f32 values, which are rounded to the type of the case."""
    wide, _, scales, tensor_scale = case
    with np.errstate(over="ignore", invalid="ignore"):
        inputs = inputs.astype(DTYPES[wide])
        exact = inputs.astype(np.float32)
    element, scale = ELEMENTS[values.element], SCALES[values.scale]
    granularity = inputs.shape[1] // max(scales, 1)
    expected = quantize(
        exact, granularity, element, scale, tensor_scale, bool(powers), "least_amax" in powers
    )
    got = run_quantize(program, values, case, inputs, powers.replace(", ", "_"))
    check_encodings(scale, got[1], expected[1])
    check_encodings(element, got[0], expected[0])


# Contents of groups


def special_groups(count, element):
    """Groups of ``count`` f32 values: zeros, NaNs, infinities, tiny, huge, and ties."""
    rng = np.random.default_rng(count)
    largest = ELEMENTS[element].largest()
    normal = rng.normal(size=count)
    rows = [
        np.zeros(count),
        np.full(count, -0.0),
        *(normal * 2.0**exponent for exponent in range(-150, 124, 3)),
        np.linspace(-1, 1, count) * 1.4e-45,
        np.full(count, 1e-45),
        np.full(count, 1e-40),
        np.full(count, 3.4028235e38),
        normal * 1e38,
        np.full(count, -1.0),
    ]
    for special in (np.nan, -np.nan, np.inf, -np.inf):
        for lane in {0, count // 2, count - 1}:
            for others in (normal, np.zeros(count)):
                row = others.copy()
                row[lane] = special
                rows.append(row)
    # The scale is 1 if the largest number is that of the format: midpoints of neighbours are ties, and numbers next
    # to them are not.
    format = ELEMENTS[element]
    codes = np.arange(1 << (format.bits - 1)).astype(np.uint8)
    numbers = np.unique(format.decode(codes))
    numbers = numbers[np.isfinite(numbers)].astype(np.float32)
    middles = (numbers[1:] + numbers[:-1]) / 2
    near = np.concatenate(
        [middles, np.nextafter(middles, np.float32(np.inf)), np.nextafter(middles, -1)]
    )
    near = np.concatenate([near, -near])
    step = max(count - 1, 1)
    for start in range(0, near.size, step):
        row = np.resize(near[start : start + step], count)
        row[-1] = largest
        for factor in (1, 2.0**-9, 2.0**13):
            rows.append(row * factor)
    # Scales at and next to ties and powers of two.
    for scale in (1, 1.5, 2, 2.0**-5, 448):
        for number in near_numbers(np.float32(scale * largest)):
            row = normal.copy()
            row[rng.integers(count)] = number
            rows.append(row / max(np.abs(normal).max(), 1e-3) * 0.5)
            rows.append(np.where(row == number, number, row * 0))
    return np.array(rows, np.float64)


def near_numbers(number):
    return [number, np.nextafter(number, np.float32(0)), np.nextafter(number, np.inf)]


def scale_ties(scale, element):
    """Magnitudes whose scales are ties between two numbers of the scale type."""
    format = SCALES[scale]
    if format.bits > 16:
        return np.array([1.0])
    codes = np.linspace(1, (1 << (format.bits - 1)) - 10, 300).astype(format.uint)
    low, high = format.decode(codes), format.decode(codes + format.uint.type(1))
    ties = (low + high) / 2
    return ties[np.isfinite(ties) & (ties < 1e30)] * ELEMENTS[element].largest()


def make_rows(groups, width, scales):
    """Rows of ``width`` lanes with different neighbouring groups."""
    count = max(scales, 1)
    return np.concatenate([np.roll(groups, 7 * i, axis=0) for i in range(count)], 1)


@each_format
def test_quantize(element, scale):
    values, program = compile_values(element, scale, "quantize")
    for case in list_cases(values, VALUES):
        wide, width, scales, tensor_scale = case
        size = max(width, 1) // max(scales, 1)
        groups = special_groups(size, element)
        ties = scale_ties(scale, element)
        with_ties = np.zeros((ties.size, size))
        with_ties[:, -1] = ties * (tensor_scale or 1)
        rng = np.random.default_rng(9)
        random = rng.normal(size=(300, size)) * np.exp2(rng.uniform(-30, 30, (300, 1)))
        with np.errstate(over="ignore"):
            groups = np.concatenate([groups, with_ties, random]).astype(np.float32)
        check_quantize(program, values, case, make_rows(groups, width, scales))


FORMATS_OF_POWERS = [formats for formats in FORMATS_OF_CACHES if formats[1] in POWERS]


@pytest.mark.parametrize(
    ("formats", "target"),
    [*((formats, "cpu") for formats in FORMATS_OF_POWERS), *devices.spread(FORMATS_OF_POWERS[::4])],
)
def test_quantize_with_powers_of_two(formats, target):
    element, scale = formats
    values = Values(element, scale)
    attributes = "power_of_two", "power_of_two, least_amax"
    for case, powers in itertools.product(POWER_CASES, attributes):
        values.add("quantize", *case, powers=powers)
    program = devices.jit(values.text, target, opt_level=0)
    for (wide, width, scales), powers in itertools.product(POWER_CASES, attributes):
        size = width // scales
        groups = special_groups(size, element)
        near = np.zeros((0, size))
        # 1e-4 lies between 2^-14 and 2^-13, and the least scale by amax elsewhere.
        for exponent in (-24, -23, -22, -21, -20, -14, -13, -3, 0, 20):
            numbers = near_numbers(np.float32(2.0**exponent * ELEMENTS[element].largest()))
            near = np.concatenate([near, np.repeat(np.array(numbers)[:, None], size, 1)])
        rows = make_rows(np.concatenate([groups, near]).astype(np.float32), width, scales)
        check_quantize(program, values, (wide, width, scales, None), rows, powers)


@each_format
def test_dequantize(element, scale):
    """Tests every element with many scales: all scales of 8 bits."""
    check_dequantize(element, scale)


@pytest.mark.parametrize(("formats", "target"), devices.spread(FORMATS_OF_CACHES))
def test_dequantize_in_kernels(formats, target):
    check_dequantize(*formats, target)


def check_dequantize(element, scale, target="cpu"):
    values, program = compile_values(element, scale, "dequantize", target)
    element_format, scale_format = ELEMENTS[element], SCALES[scale]
    rng = np.random.default_rng(4)
    for case in list_cases(values, RESULTS):
        result, width, scales, tensor_scale = case
        count = max(scales, 1)
        size = max(width, 1) // count
        all_elements = np.arange(1 << element_format.bits)
        if scale_format.bits == 8:
            all_scales = np.arange(256)
        else:
            special = [0, 1, 0x7C00, 0x7F80, 0x8000, 0x7F800000, 0x00800000, 0x3F800001]
            some = rng.integers(0, 1 << scale_format.bits, 120)
            ordinary = scale_format.encode(np.exp2(rng.uniform(-12, 12, 120)))
            all_scales = np.concatenate([special, some, ordinary])
            all_scales &= (1 << scale_format.bits) - 1
        elements, per_group = np.meshgrid(all_elements, all_scales)
        elements, per_group = elements.ravel(), per_group.ravel()
        if size > 1:
            # A scale for `size` elements.
            elements = np.resize(all_elements, (all_scales.size, 256 // size + 1, size))
            elements = elements.reshape(-1, size)
            per_group = np.repeat(all_scales, 256 // size + 1)
        groups = elements.reshape(-1, size).astype(np.uint8)
        rows = groups.shape[0] // count
        given = groups[: rows * count].reshape(rows, count * size)
        given_scales = per_group[: rows * count].reshape(rows, count)
        given_scales = given_scales.astype(scale_format.uint)

        format = RESULTS[result]
        out = place(np.zeros((rows, count * size), format.uint))
        stored = place(pack(given) if element_format.bits == 4 else given)
        program.call(
            values.name("dequantize", result, width, scales, tensor_scale is not None),
            out.ravel().view(DTYPES[result]),
            stored.ravel().view(QUANTIZED_DTYPES[element]),
            place(given_scales).ravel().view(SCALE_DTYPES[scale]),
            *(() if tensor_scale is None else (tensor_scale,)),
        )
        per_lane = scale_format.decode(given_scales)
        expected = dequantize(
            element_format.decode(given),
            per_lane[:, group_indices(count * size, size)],
            scale_format,
            format,
            tensor_scale,
        )
        check_encodings(format, out, expected)


bits_of_f32 = st.integers(0, 2**32 - 1) | st.sampled_from(
    (0, 1, 0x80000000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x00800000, 0x43E00000)
)


@each_format
@given(st.data())
@examples(14)
def test_quantize_any_bits(element, scale, data):
    check_quantize_any_bits(element, scale, data)


@pytest.mark.parametrize(("formats", "target"), devices.spread(FORMATS_OF_CACHES[1:]))
@given(st.data())
@examples(6)
def test_quantize_any_bits_in_kernels(formats, target, data):
    check_quantize_any_bits(*formats, data, target)


def check_quantize_any_bits(element, scale, data, target="cpu"):
    values, program = compile_values(element, scale, "quantize", target)
    case = data.draw(st.sampled_from(list(list_cases(values, VALUES))))
    lanes = max(case[1], 1)
    some = data.draw(st.lists(bits_of_f32, min_size=1, max_size=2 * lanes))
    # Exponents that are close together, more often than not.
    bits = np.resize(np.array(some, np.uint32), (2, lanes))
    if data.draw(st.booleans()):
        exponent = data.draw(st.integers(0, 254))
        bits = bits & np.uint32(0x81FFFFFF) | np.uint32(min(exponent, 250) << 23)
    check_quantize(program, values, case, bits.view(np.float32))


def test_scales_round_to_nearest_even():
    """Rounds up to 2^-9, the smallest number, and too large numbers down to 448."""
    values, program = compile_values("f4E2M1FN", "f8E4M3FN", "quantize")
    largest = np.array([6 * 2.0**-9, 6e-5, 6 * 448, 1e9, 6 * 17, 6 * 19], np.float32)
    inputs = np.zeros((largest.size, 16), np.float32)
    inputs[:, 3] = -largest
    elements, scales = run_quantize(program, values, ("f32", 16, 1, None), inputs)
    decoded = FORMATS["f8E4M3FN"].decode(scales)[:, 0].tolist()
    assert decoded == [2.0**-9, 2.0**-9, 448, 448, 16, 20]
    assert ELEMENTS["f4E2M1FN"].decode(elements[:, 3]).tolist() == [
        -6,
        -0.0,
        -6,
        -6,
        -6,
        -6,
    ]


def test_powers_of_two_are_rounded_up():
    values, program = compile_values("f8E4M3FN", "f8E8M0FNU", "quantize")
    largest = np.array([448, 449, 447, 224, 2.0**-140, 0], np.float32)
    inputs = np.zeros((largest.size, 16), np.float32)
    inputs[:, 15] = largest
    _, scales = run_quantize(program, values, ("f32", 16, 1, None), inputs)
    assert scales[:, 0].tolist() == [127, 128, 127, 126, 0, 127]
