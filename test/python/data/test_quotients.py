"""quantize in kernels, where it multiplies instead of dividing: groups whose quotients are
half way between two numbers of the quantized type, or as close to that as values of 16 bits
come."""

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
func.func @run(%values: memref<?x{lanes}x{wide}>, %elements: memref<?x{stored}>, %scales: memref<?x{scale}>) {{
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
      %w, %s = kvcache.quantize %x : vector<{lanes}x{wide}> -> vector<{lanes}x{element}>, {scale}
      %bits = vector.bitcast %w : vector<{lanes}x{element}> to vector<{stored}>
      vector.store %bits, %elements[%i, %c0] : memref<?x{stored}>, vector<{stored}>
      memref.store %s, %scales[%i] : memref<?x{scale}>
    }}
  }}
  return
}}
"""


def magnitudes(wide):
    """The largest magnitudes of groups: mantissas of all kinds with exponents that lowering
    treats in different ways, and what isn't a number."""
    bits = np.arange(1 << 15, dtype=np.uint16)
    exponents = bits >> (7 if wide == "bf16" else 10)
    if wide == "bf16":
        # Subnormal; scales that are, and whose reciprocals are; around 2^-20 * 448; the largest.
        some = [0, 1, 2, 8, 9, 10, 11, 12, 100, 114, 115, 116, 117, 127, 200, 246, 253, 254, 255]
        return bits[np.isin(exponents, some)].view(DTYPES[wide])
    return bits[np.isin(exponents, [0, 1, 2, 15, 30, 31]) & (bits % 5 == 0)].view(DTYPES[wide])


def close_groups(wide, element):
    """Rows of a magnitude and the values whose quotients are closest to being half way."""
    format = ELEMENTS[element]
    numbers = format.decode(np.arange(1 << (format.bits - 1)).astype(np.uint8))
    numbers = np.unique(numbers[np.isfinite(numbers)]).astype(np.float64)
    middles = np.resize((numbers[1:] + numbers[:-1]) / 2, LANES - 1)
    largest = magnitudes(wide)
    with np.errstate(invalid="ignore", over="ignore"):
        values = largest.astype(np.float64)[:, None] * middles / format.largest()
        values[:, ::2] *= -1
        rows = np.concatenate([largest[:, None], values.astype(np.float32).astype(DTYPES[wide])], 1)
        zeros = np.zeros((THREADS, LANES))
        return np.concatenate([rows, -rows, zeros, -zeros]).astype(DTYPES[wide])


@pytest.mark.parametrize("wide", ["bf16", "f16"])
@pytest.mark.parametrize(("formats", "target"), devices.spread(FORMATS_OF_CACHES))
def test_quantized_values_are_those_of_a_division(formats, target, wide):
    element, scale = formats
    packed = element == "f4E2M1FN"
    stored = f"{LANES // 2 if packed else LANES}xi8"
    source = SOURCE.format(
        lanes=LANES, threads=THREADS, wide=wide, element=element, scale=scale, stored=stored
    )
    rows = close_groups(wide, element)
    rows = rows[len(rows) % THREADS :]
    elements = np.zeros((len(rows), LANES // 2 if packed else LANES), np.int8)
    scales = np.zeros(len(rows), SCALE_DTYPES[scale])
    kvcache.jit(source, target=target).call("run", rows, elements, scales)

    expected, expected_scales = quantize(rows.astype(np.float32), LANES, ELEMENTS[element], SCALES[scale])
    check_encodings(SCALES[scale], scales.view(SCALES[scale].uint)[:, None], expected_scales)
    got = elements.view(np.uint8)
    check_encodings(ELEMENTS[element], unpack(got) if packed else got, expected)
