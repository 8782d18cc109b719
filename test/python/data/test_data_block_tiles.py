"""Tests of block tiles of every layout."""

import functools

import numpy as np
import pytest
from devices import spread
from hypothesis import given
from hypothesis import strategies as st
from programs import Shape, Source, caches, examples, max_tokens, places

TILES = [
    (Shape("f32", 1, 4, 1), [(1, 4), (1, 1), (1, 2)]),
    (Shape("bf16", 2, 24, 3), [(3, 24), (1, 8), (3, 3)]),
    (Shape("f8E4M3FN", 3, 48, 48), [(48, 48), (16, 16), (3, 24), (1, 48)]),
    (Shape("bf16", 4, 64, 64), [(64, 64), (32, 32), (8, 1), (1, 64)]),
    (Shape("f8E5M2", 2, 8, 256), [(256, 8), (64, 4), (2, 8)]),
    (Shape("bf16", 1, 72, 16, mla=True), [(16, 72), (4, 8), (16, 36)]),
    (Shape("f16", 2, 12, None), [(1, 12), (4, 6), (5, 4)]),
]


@functools.cache
def compile_tiles(shape, tiles, target="cpu"):
    source = Source(shape)
    for tokens, columns in tiles:
        tile = f"memref<{tokens}x{columns}x{shape.dtype}, strided<[{shape.row}, 1], offset: ?>>"
        copy = f"memref<{tokens}x{columns}x{shape.dtype}>"
        for role in shape.roles:
            for op, (source_tile, end) in (
                ("read", (("%tile", tile), ("%copy", copy))),
                ("write", (("%copy", copy), ("%tile", tile))),
            ):
                source.add(
                    f"{op}_{role}_{tokens}_{columns}",
                    [*(f"{index}: index" for index in "bhtd"), f"copy: {copy}"],
                    f"""  %tile = kvcache.block_tile %k[%b, %h, %t, %d] : !cache -> {tile}
  %rows = arith.constant {tokens} : index
  %columns = arith.constant {columns} : index
  scf.for %i = %c0 to %rows step %c1 {{
    scf.for %j = %c0 to %columns step %c1 {{
      %v = memref.load {source_tile[0]}[%i, %j] : {source_tile[1]}
      memref.store %v, {end[0]}[%i, %j] : {end[1]}
    }}
  }}
  return""",
                    views=f"%k = {role}",
                )
                if target != "cpu":
                    continue  # A kernel has no memref.copy.
                source.add(
                    f"{op}_{role}_{tokens}_{columns}_copy",
                    [*(f"{index}: index" for index in "bhtd"), f"copy: {copy}"],
                    f"""  %tile = kvcache.block_tile %k[%b, %h, %t, %d] : !cache -> {tile}
  memref.copy {source_tile[0]}, {end[0]} : {source_tile[1]} to {end[1]}
  return""",
                    views=f"%k = {role}",
                )
    return source.compile(target=target)


@pytest.mark.parametrize(
    "shape, tiles", TILES, ids=lambda value: str(value).replace(" ", "")
)
@given(st.data())
@examples(14)
def test_tiles(shape, tiles, data):
    check_tiles(shape, tiles, data, data.draw(st.sampled_from(("", "_copy"))))


@pytest.mark.parametrize(("tiles", "target"), spread(TILES[::2]))
@given(st.data())
@examples(2)
def test_tiles_in_kernels(tiles, target, data):
    check_tiles(*tiles, data, "", target)


def check_tiles(shape, tiles, data, suffix, target="cpu"):
    program = compile_tiles(shape, tuple(tiles), target)
    cache = data.draw(caches(shape, max_tokens(shape), row_padding=False))
    arguments = cache.arguments(shape.numpy)
    for tokens, columns in tiles:
        role, layer, b, h, t = data.draw(places(cache))
        view = cache.view(role, layer)
        if tokens > view.page_size:
            continue
        t = min(t, view.tokens() - tokens) // tokens * tokens
        d = columns * data.draw(st.integers(0, shape.head_size // columns - 1))
        name = f"{shape.roles[role]}_{tokens}_{columns}{suffix}"
        rows = np.arange(t, t + tokens)
        copy = np.zeros((tokens, columns), shape.uint)
        program.call(
            f"read_{name}", *arguments, layer, b, h, t, d, copy.view(shape.numpy)
        )
        np.testing.assert_array_equal(copy, view.read(b, h, rows, d, columns))

        expected = cache.with_memory(cache.memory.copy())
        expected.view(role, layer).write(b, h, rows, d, ~copy)
        program.call(
            f"write_{name}", *arguments, layer, b, h, t, d, (~copy).view(shape.numpy)
        )
        np.testing.assert_array_equal(cache.memory, expected.memory)
