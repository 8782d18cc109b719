"""Tests of populate and get_row against the NumPy model."""

import functools

import numpy as np
import pytest
from devices import spread
from hypothesis import given
from hypothesis import strategies as st
from programs import Shape, Source, caches, examples, padded_rows

SHAPES = [
    Shape("bf16", 2, 8, 1),
    Shape("f32", 1, 4, 2),
    Shape("bf16", 2, 8, 3),
    Shape("f8E4M3FN", 1, 16, 16, mla=True),
    Shape("f16", 3, 8, 48),
    Shape("bf16", 8, 128, 64),
    Shape("f8E5M2", 2, 64, 256),
    Shape("f32", 2, 8, None),
]
NUM_ROWS = (1, 2, 3, 6, 8, 16, 24, 48, 64, 128, 144, 256, 512)


def variants(page_size):
    """The allowed (number of rows, base_alignment, text of the attribute)."""
    found = []
    for rows in NUM_ROWS:
        alignments = {rows, 1, 2, 16, 64}
        if page_size:
            if rows > page_size and rows % page_size or rows > 40 * page_size:
                continue
            alignments |= {
                page_size,
                2 * page_size,
                4 * page_size,
                8 * page_size,
                64 * page_size,
            }
            if rows > page_size:
                # (C2) of populate
                alignments = {a for a in alignments if a % page_size == 0}
        found.append((rows, rows, ""))
        for alignment in sorted(alignments):
            found.append((rows, alignment, f" {{base_alignment = {alignment}}}"))
    return found


def constant_offsets(rows, page_size):
    """The first and last offset of each page, and some between."""
    step = page_size or rows
    edges = {
        o
        for first in range(0, rows, step)
        for o in (first, first + 1, first + step - 1)
    }
    return sorted(o for o in edges | {0, rows // 2, rows - 1} if o < rows)[:24]


def add_variant(source, name, rows, attribute):
    page_size = source.shape.page_size
    page = f", page_size = {page_size}" if page_size else ""
    type = f"!kvcache.row_indices<rows = {rows}{page}>"
    populate = (
        f"  %rows = kvcache.populate %k[%b, %base]{attribute} : !cache -> {type}\n"
    )
    source.add(
        f"{name}_dynamic",
        ["b: index", "base: index", "o: index"],
        f"{populate}  %r = kvcache.get_row %rows[%o] : {type}\n  return %r : index",
        "index",
    )
    gets = ""
    offsets = constant_offsets(rows, page_size)
    for i, offset in enumerate(offsets):
        gets += f"""  %i{i} = arith.constant {i} : index
  %o{i} = arith.constant {offset} : index
  %r{i} = kvcache.get_row %rows[%o{i}] : {type}
  memref.store %r{i}, %out[%i{i}] : memref<?xindex>
"""
    source.add(
        f"{name}_constant",
        ["b: index", "base: index", "out: memref<?xindex>"],
        f"{populate}{gets}  return",
    )


@functools.cache
def compile_rows(shape, rows, target="cpu"):
    """Compiles functions over numbers of rows; a third are optimized, which takes longest."""
    source = Source(shape)
    for count, alignment, attribute in variants(shape.page_size):
        if count == rows:
            add_variant(source, f"rows_{alignment}_{len(attribute)}", rows, attribute)
    optimize = target == "cpu" and NUM_ROWS.index(rows) % 3 == 0
    return source.compile(target=target, opt_level=2 if optimize else 0)


any_id = st.integers(0, 2**32 - 1) | st.integers(0, 9)


def cases():
    for shape in SHAPES:
        for rows in sorted({rows for rows, _, _ in variants(shape.page_size)}):
            yield pytest.param(shape, rows, id=f"{shape}-{rows}")


def draw_cache(data, shape, tokens, rows, target):
    if target == "cpu":
        return data.draw(caches(shape, tokens, rows, ids=any_id))
    # A device's memory exists as a whole.
    cache = data.draw(caches(shape, tokens, rows))
    if not shape.page_size:
        return cache
    cache.table[...] = data.draw(any_id)
    return cache.with_tables(padded_rows(cache.table), cache.lengths)


@pytest.mark.parametrize("shape, rows", cases())
@given(st.data())
@examples(8)
def test_rows(shape, rows, data):
    check_rows(shape, rows, data)


def check_rows(shape, rows, data, target="cpu"):
    program = compile_rows(shape, rows, target)
    tokens = max(2 * rows, 3 * (shape.page_size or 1))
    cache = draw_cache(data, shape, tokens, rows, target)
    view = cache.view(0, 0)
    b = data.draw(st.integers(0, len(cache.lengths) - 1))
    P = shape.page_size or 1
    arguments = (*cache.arguments(shape.numpy), 0, b)
    for count, alignment, attribute in variants(shape.page_size):
        if count != rows:
            continue
        # A base as aligned as promised, and on a page's first token over several pages;
        # the rows of one page stay in it.
        unit = alignment if rows <= P else np.lcm(alignment, P)
        base = unit * data.draw(st.integers(0, (view.tokens() - rows) // unit))
        if shape.page_size and rows <= P and base % P + rows > P:
            base = base // P * P if (base // P * P) % alignment == 0 else 0
        name = f"rows_{alignment}_{len(attribute)}"

        for offset in {0, rows - 1, data.draw(st.integers(0, rows - 1))}:
            got = program.call(f"{name}_dynamic", *arguments, base, offset)
            assert got == view.get_row(b, base, offset, rows, alignment)
        offsets = constant_offsets(rows, shape.page_size)
        out = np.zeros(len(offsets), np.int64)
        program.call(f"{name}_constant", *arguments, base, out)
        expected = [view.get_row(b, base, o, rows, alignment) for o in offsets]
        assert out.tolist() == expected


@pytest.mark.parametrize(("case", "target"), spread([case.values for case in cases()][::8]))
@given(st.data())
@examples(3)
def test_rows_in_kernels(case, target, data):
    check_rows(*case, data, target)


TRAVELLING = """
func.func private @rows_of(%k: !cache, %b: index, %base: index) -> !rows {
  %rows = kvcache.populate %k[%b, %base] : !cache -> !rows
  return %rows : !rows
}
func.func private @row_of(%rows: !rows, %o: index) -> index {
  %r = kvcache.get_row %rows[%o] : !rows
  return %r : index
}
"""


@pytest.mark.parametrize("shape", SHAPES[1:5] + SHAPES[-1:], ids=str)
@pytest.mark.parametrize("pages", [1, 2, 12])
@given(st.data())
@examples(7)
def test_rows_that_travel(shape, pages, data):
    """Passes rows through calls, a conditional, a select and a loop."""
    check_rows_that_travel(shape, pages, data)


def check_rows_that_travel(shape, pages, data, target="cpu"):
    program, rows = compile_travelling(shape, pages, target)
    cache = draw_cache(data, shape, 3 * rows, rows, target)
    view = cache.view(0, 0)
    first, second = (
        rows * data.draw(st.integers(0, view.tokens() // rows - 1)) for _ in range(2)
    )
    b = data.draw(st.integers(0, len(cache.lengths) - 1))
    offset = data.draw(st.integers(0, rows - 1))
    arguments = (*cache.arguments(shape.numpy), 0, b, first, second, offset)
    for choice in (0, 1, 4):
        got = program.call("travel", *arguments, choice)
        row_of = [view.get_row(b, base, offset, rows, rows) for base in (first, second)]
        # The sum over iterations that begin with one and go on with the other.
        expected = row_of[choice > 0] + row_of[1] * max(choice - 1, 0) if choice else 0
        assert got == (row_of[choice > 0], row_of[choice == 0], expected)


@pytest.mark.parametrize(("shape", "target"), spread(SHAPES[1:5] + SHAPES[-1:]))
@given(st.data())
@examples(3)
def test_rows_that_travel_in_kernels(shape, target, data):
    check_rows_that_travel(shape, 12, data, target)


@functools.cache
def compile_travelling(shape, pages, target):
    rows = pages * (shape.page_size or 5)
    page = f", page_size = {shape.page_size}" if shape.page_size else ""
    source = Source(shape)
    source.functions.append(
        f"!rows = !kvcache.row_indices<rows = {rows}{page}>{TRAVELLING}"
    )
    source.add(
        "travel",
        [f"{name}: index" for name in ("b", "first", "second", "o", "n")],
        """  %a = func.call @rows_of(%k, %b, %first) : (!cache, index, index) -> !rows
  %z = func.call @rows_of(%k, %b, %second) : (!cache, index, index) -> !rows
  %none = arith.cmpi eq, %n, %c0 : index
  %if = scf.if %none -> (!rows) {
    scf.yield %a : !rows
  } else {
    scf.yield %z : !rows
  }
  %select = arith.select %none, %z, %a : !rows
  %x = func.call @row_of(%if, %o) : (!rows, index) -> index
  %y = kvcache.get_row %select[%o] : !rows
  %sum, %last = scf.for %i = %c0 to %n step %c1 iter_args(%s = %c0, %rows = %if)
      -> (index, !rows) {
    %r = kvcache.get_row %rows[%o] : !rows
    %t = arith.addi %s, %r : index
    scf.yield %t, %z : index, !rows
  }
  return %x, %y, %sum : index, index, index""",
        "index, index, index",
    )
    return source.compile(target=target), rows
