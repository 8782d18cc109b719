"""The swizzles of the bytes of a tile, from the ISA's tables."""

import numpy as np

# The bytes of a line that a swizzle permutes, and its text in a tile's type.
SWIZZLES = {"none": 16, "32b": 32, "64b": 64, "128b": 128}
NAMES = {"none": "", "32b": ", swizzle_32b", "64b": ", swizzle_64b", "128b": ", swizzle_128b"}

# PTX ISA, "Tensors, Swizzling Modes": the places of the 16-byte chunks of a line of 128 bytes, for
# each line of the repeating pattern.
PATTERNS = {
    "none": ["01234567"] * 8,
    "32b": ["01234567", "10325476"] * 4,
    "64b": ["01234567", "10325476", "23016745", "32107654"] * 2,
    "128b": [
        *("01234567", "10325476", "23016745", "32107654"),
        *("45670123", "54761032", "67452301", "76543210"),
    ],
}


def stored(array, swizzle):
    """The bytes of a tile with the contents of an array, by the pattern of its lines."""
    rows = len(array)
    row_bytes = array.view(np.uint8).reshape(rows, -1)
    span = row_bytes.shape[1] if swizzle == "none" else SWIZZLES[swizzle]
    chunks = row_bytes.reshape(rows, -1, span).swapaxes(0, 1)
    plain = chunks.reshape(-1, 128 // 16, 16)  # lines of chunks
    result = np.empty_like(plain)
    for line, units in enumerate(plain):
        for unit, place in enumerate(PATTERNS[swizzle][line % 8]):
            result[line, int(place)] = units[unit]
    return result.reshape(-1)
