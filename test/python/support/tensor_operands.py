"""The places of elements of matrices in shared memory and tensor memory.

The layouts are from the PTX ISA's "Canonical Layouts", "Data Path Layout Organization" and "Block
Scaling", the bits of descriptors from its tables.
"""

import dataclasses

import ml_dtypes
import numpy as np

# Element types by name: NumPy's type, bits, and the code in the instruction descriptor.
ELEMENTS = {
    "f16": (np.float16, 16, 0),
    "bf16": (ml_dtypes.bfloat16, 16, 1),
    "tf32": (np.float32, 32, 2),
    "e4m3": (ml_dtypes.float8_e4m3fn, 8, 0),
    "e5m2": (ml_dtypes.float8_e5m2, 8, 1),
    "e2m3": (ml_dtypes.float6_e2m3fn, 6, 3),
    "e3m2": (ml_dtypes.float6_e3m2fn, 6, 4),
    "e2m1": (ml_dtypes.float4_e2m1fn, 4, 5),
    "packed e2m1": (ml_dtypes.float4_e2m1fn, 4, 1),
    "u8": (np.uint8, 8, 0),
    "s8": (np.int8, 8, 1),
}
RESULTS = {"f16": 0, "f32": 1, "s32": 2}
# The codes of swizzles in descriptors of tcgen05, and the bytes of a row of the pattern.
SWIZZLES = {"none": (0, 16), "32": (6, 32), "64": (4, 64), "128": (2, 128), "128/32": (1, 128)}

# The bytes of an array in shared memory.
MEMORY = 1 << 16


def make_descriptor(start, leading, stride, swizzle):
    code = SWIZZLES[swizzle][0]
    return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | 1 << 46 | code << 61


# Operands in shared memory


def to_bytes(values, element):
    """Converts lines of elements to bytes; 16 elements of less than 8 bits take the first of 16 bytes."""
    dtype, bits, _ = ELEMENTS[element]
    values = np.ascontiguousarray(values.astype(dtype))
    if element == "packed e2m1":
        codes = values.view(np.uint8)
        return codes[:, ::2] | codes[:, 1::2] << 4
    if bits >= 8:
        return values.view(np.uint8).reshape(len(values), -1)
    codes = values.view(np.uint8).reshape(len(values), -1, 16).astype(object)
    words = sum(codes[:, :, i] << bits * i for i in range(16))
    lines = [b"".join(word.to_bytes(16, "little") for word in line) for line in words]
    return np.array([list(line) for line in lines], np.uint8)


@dataclasses.dataclass
class Placed:
    """A tile in shared memory, and the descriptors of its steps along K."""

    memory: np.ndarray
    descriptors: list[int]


def place(values, element, swizzle, transposed, steps):
    """Places rows of K elements; transposed, the rows are contiguous, not K."""
    rows, span = len(values), SWIZZLES[swizzle][1]
    lines = to_bytes(values.T if transposed else values, element)
    units = lines.shape[1] // 16
    if transposed:
        atom = 4 if swizzle == "128/32" else 8
        chunk = atom * span  # of `atom` lines of a span
        chunks = -(-16 * units // span)
        leading, stride = (chunk * chunks, chunk) if swizzle == "none" else (chunk, chunk * chunks)

        def find(line, byte):
            return line // atom * chunk * chunks + byte // span * chunk + line % atom * span + byte % span

        starts = [find(i * len(lines) // steps, 0) for i in range(steps)]
    else:
        stride = 8 * span
        leading = rows * 16 if swizzle == "none" else 16

        def find(line, byte):
            return byte // span * rows * span + line * span + byte % span

        starts = [find(0, 32 * i) for i in range(steps)]
    memory = np.zeros(MEMORY, np.uint8)
    for line, byte in np.ndindex(len(lines), units):
        at = find(line, 16 * byte)
        if swizzle == "128/32":
            at ^= (at >> 7 & 3) << 5
        else:
            at ^= (at >> 7 & (span // 16 - 1)) << 4
        memory[at : at + 16] = lines[line, 16 * byte : 16 * byte + 16]
    descriptors = [make_descriptor(start, leading, stride, swizzle) for start in starts]
    return Placed(memory, descriptors)


# Operands in tensor memory


def get_lanes(m, first):
    """The lanes of rows: for 64 rows, 16 in each quarter of the lanes."""
    rows = np.arange(m)
    return first + (rows % 16 + rows // 16 * 32 if m == 64 else rows)
