"""Tests that pictures of tiles show the places of swizzled chunks."""

import itertools
import re

import numpy as np
import pytest
from picture_cases import SVG, find_by_class, number, parse, texts

from kvcache.pictures import draw_tile

SWIZZLE_MASKS = {"none": 0, "32b": 1, "64b": 3, "128b": 7}


def find_chunks(root):
    """The byte of each chunk in the picture, by its row and column."""
    cells = root.findall(f"{SVG}rect")
    corners = [cell for cell in cells if cell.get("class") in ("unit", "empty")]
    left, top = number(corners[0], "x"), number(corners[0], "y")
    placed = {}
    for text in root.iter(SVG + "text"):
        if match := re.fullmatch(r"(\d+), (\d+)", text.text):
            unit, line = (number(text, "x") - left) // 99, (number(text, "y") - top) // 24
            placed[tuple(map(int, match.groups()))] = int(line * 128 + unit * 16)
    return placed


def stored_at(rows, columns, size, swizzle):
    """The place of each chunk by the hardware's rule: address bits from 4 on, xor bits from 7 on."""
    mask = SWIZZLE_MASKS[swizzle]
    span = columns * size if swizzle == "none" else 16 * (mask + 1)
    result = {}
    for row, byte in itertools.product(range(rows), range(0, columns * size, 16)):
        address = byte // span * rows * span + row * span + byte % span
        result[row, byte // size] = address ^ (((address >> 7) & mask) << 4)
    return result


@pytest.mark.parametrize("swizzle", SWIZZLE_MASKS)
@pytest.mark.parametrize(
    ("shape", "dtype", "size"), [((16, 64), "bf16", 2), ((8, 48), "f32", 4), ((32, 128), "f8E4M3FN", 1), ((8, 4), "f64", 8)]
)
def test_chunks_match_the_hardware(shape, dtype, size, swizzle):
    root = parse(draw_tile(shape, dtype, swizzle))
    assert find_chunks(root) == stored_at(*shape, size, swizzle)
    assert len(find_by_class(root, "rect", "unit")) == shape[0] * shape[1] * size // 16


def test_the_swizzle_of_128_bytes_is_that_of_the_ptx_isa():
    """PTX ISA, "Swizzling modes": the 16-byte units of the first eight rows."""
    pattern = ["01234567", "10325476", "23016745", "32107654", "45670123", "54761032", "67452301", "76543210"]
    placed = {offset: element for element, offset in find_chunks(parse(draw_tile((8, 64), "bf16", "128b"))).items()}
    for row, units in enumerate(pattern):
        assert [placed[row * 128 + i * 16] for i in range(8)] == [(row, 8 * int(unit)) for unit in units]


@pytest.mark.parametrize(
    ("shape", "swizzle", "read", "passes"),
    [
        ((16, 64), "128b", (0, 0), 1),
        ((16, 64), "128b", (5, 24), 1),
        ((16, 64), "none", (8, 16), 8),
        ((16, 32), "none", (0, 0), 4),
        ((16, 16), "none", (0, 8), 2),
        ((16, 8), "none", (0, 0), 1),
        ((16, 32), "64b", (0, 8), 1),
        ((16, 16), "32b", (8, 0), 1),
        ((16, 72), "none", (3, 8), 1),  # rows padded by 16 bytes
    ],
)
def test_conflicts_match_the_banks(shape, swizzle, read, passes):
    root = parse(draw_tile(shape, "bf16", swizzle, read=read))
    (row, column), stored = read, stored_at(*shape, 2, swizzle)
    offsets = [stored[row + i, column] for i in range(8)]
    banks = np.zeros(32, int)
    for offset in offsets:
        banks[np.arange(offset, offset + 16, 4) // 4 % 32] += 1
    assert banks.max() == passes
    conflicts = {1: "no bank conflict", 2: "1 bank conflict"}.get(passes, f"{passes - 1} bank conflicts")
    taken = "one pass" if passes == 1 else f"{passes} passes"
    note = f"framed: an ldmatrix of rows {row} to {row + 7}, 16 bytes from column {column} on, takes {taken} through the banks: {conflicts}"
    assert note in texts(root)
    reads = [text.text for text in find_by_class(root, "text", "bank-reads")]
    assert reads == [f"read {count}×" if count else "–" for count in banks[::4]]


def test_frames_surround_the_chunks_read():
    root = parse(draw_tile((16, 64), "bf16", "128b", read=(4, 16)))
    units = {(unit.get("x"), unit.get("y")) for unit in find_by_class(root, "rect", "unit")}
    frames = [(frame.get("x"), frame.get("y")) for frame in find_by_class(root, "rect", "read")]
    assert len(frames) == 8 and set(frames) <= units
    left, top = min(float(x) for x, _ in units), min(float(y) for _, y in units)
    bytes_read = sorted(int((float(y) - top) // 24 * 128 + (float(x) - left) // 99 * 16) for x, y in frames)
    stored = stored_at(16, 64, 2, "128b")
    assert bytes_read == sorted(stored[row, 16] for row in range(4, 12))


def test_a_tile_without_a_read_has_no_frames():
    root = parse(draw_tile((4, 64), "bf16", "128b", read=None))
    assert not find_by_class(root, "rect", "read") and not find_by_class(root, "text", "bank-reads")
    assert not any("framed" in text for text in texts(root))


@pytest.mark.parametrize(
    ("shape", "dtype", "swizzle", "read", "message"),
    [
        ((8, 64), "bf16", "256b", None, "unknown swizzle '256b'; known are 'none', '32b', '64b', '128b'"),
        ((8, 64), "f4E2M1FN", "128b", None, "float4_e2m1fn has less than a byte: view it as int8"),
        ((8,), "bf16", "128b", None, "expects 'shape' to be rows and columns, got (8,)"),
        ((0, 64), "bf16", "128b", None, "expects 'rows' to be positive, got 0"),
        ((8, 60), "bf16", "128b", None, "expects rows of a multiple of 16 bytes, got 60 columns of bf16"),
        ((12, 128), "bf16", "128b", None, "expects a multiple of 8 rows for several chunks of 64 columns, got 12"),
        ((129, 64), "bf16", "128b", None, "expects a tile of at most 16,384 bytes in a picture, got 16,512"),
        ((8, 64), "bf16", "128b", (0, 4), "expects the column of 'read' to be a multiple of 8 below 64, got 4"),
        ((8, 64), "bf16", "128b", (0, 64), "expects the column of 'read' to be a multiple of 8 below 64, got 64"),
        ((12, 64), "bf16", "128b", (5, 0), "expects the row of 'read' to have 8 rows of the tile's 12 from it on, got 5"),
    ],
)
def test_invalid_tiles_are_errors(shape, dtype, swizzle, read, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        draw_tile(shape, dtype, swizzle, read=read)


def test_a_read_is_of_integers():
    with pytest.raises(TypeError, match=r"^expects 'row' to be an integer, got 0\.5$"):
        draw_tile((8, 64), "bf16", "128b", read=(0.5, 0))
