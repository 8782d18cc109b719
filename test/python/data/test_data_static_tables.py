"""Tests of lookups with constant indices, in tables of known size, after passes."""

import numpy as np
import pytest
from programs import PIPELINES, SHAPES, Source, guard, is_optimized, small_cache


def static_functions(shape):
    """Functions of lookups with constant indices in loops, at the table's end and past it."""
    batch, columns = 2, 3
    source = Source(shape, tables=(batch, columns))
    tokens = columns * (shape.page_size or 3)
    page = f", page_size = {shape.page_size}" if shape.page_size else ""
    rows = (shape.page_size or 1) * 3
    for b in (0, batch - 1, batch):
        for t in (0, tokens - 1, tokens, 2 * tokens):
            source.add(
                f"lookups_{b}_{t}",
                ["n: index"],
                f"""  %b = arith.constant {b} : index
  %t = arith.constant {t} : index
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0) -> (index) {{
    %row = kvcache.row_index %k[%b, %t] : !cache
    %page = kvcache.page_id %k[%b, %t] : !cache
    %length = kvcache.cache_length %k[%b] : !cache
    %x = arith.addi %a, %row : index
    %y = arith.addi %x, %page : index
    %z = arith.muli %y, %i : index
    %q = arith.addi %z, %length : index
    scf.yield %q : index
  }}
  return %s : index""",
                "index",
            )
        for t in (0, rows):
            source.add(
                f"rows_{b}_{t}",
                ["n: index"],
                f"""  %b = arith.constant {b} : index
  %t = arith.constant {t} : index
  %last = arith.constant {rows - 1} : index
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0) -> (index) {{
    %rows = kvcache.populate %k[%b, %t] : !cache -> !kvcache.row_indices<rows = {rows}{page}>
    %row = kvcache.get_row %rows[%last] : !kvcache.row_indices<rows = {rows}{page}>
    %other = kvcache.get_row %rows[%i] : !kvcache.row_indices<rows = {rows}{page}>
    %x = arith.addi %a, %row : index
    %y = arith.addi %x, %other : index
    scf.yield %y : index
  }}
  return %s : index""",
                "index",
            )
    for e in (-(2**63), -1, 0, 1, tokens, 2**40):
        source.add(
            f"encoded_{e}".replace("-", "minus_"),
            [],
            f"""  %e = arith.constant {e} : index
  %r = kvcache.tma_row %k[%e] : !cache
  return %r : index""",
            "index",
        )
    for h in range(shape.heads):
        source.add(
            f"column_{h}",
            [],
            f"""  %h = arith.constant {h} : index
  %r = kvcache.col_index %k[%h] : !cache
  return %r : index""",
            "index",
        )
    return source, tokens, rows


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_constants_and_static_tables(shape, pipeline):
    source, tokens, rows = static_functions(shape)
    optimize = is_optimized(shape, pipeline, every=len(SHAPES))
    program = source.compile(*PIPELINES[pipeline], opt_level=2 if optimize else 0)
    for where in ("at_end", "at_start"):
        check_static(shape, program, tokens, rows, where)


def check_static(shape, program, tokens, rows, where):
    cache = small_cache(shape, batch=2, columns=3)
    lengths = np.array([7, 2**32 - 3], np.uint32)
    cache = cache.with_tables(guard(cache.table, where), guard(lengths, where))
    arguments = (*cache.arguments(shape.numpy), 1)
    view = cache.view(0, 1)
    for b in (0, 1, 2):
        for t in (0, tokens - 1, tokens, 2 * tokens):
            assert program.call(f"lookups_{b}_{t}", *arguments, 0) == 0
            if b < 2 and t < tokens:
                row, page = int(view.row_index(b, t)), int(view.page_id(b, t))
                total = 0
                for i in range(3):
                    total = (total + row + page) * i + view.cache_length(b)
                assert program.call(f"lookups_{b}_{t}", *arguments, 3) == total
        for t in (0, rows):
            assert program.call(f"rows_{b}_{t}", *arguments, 0) == 0
        if b < 2:
            last = view.get_row(b, 0, rows - 1, rows, rows)
            expected = sum(last + view.get_row(b, 0, i, rows, rows) for i in range(3))
            assert program.call(f"rows_{b}_0", *arguments, 3) == expected
    for e in (-(2**63), -1, 0, 1, tokens, 2**40):
        name = f"encoded_{e}".replace("-", "minus_")
        assert program.call(name, *arguments) == view.tma_row(e)
    for h in range(shape.heads):
        assert program.call(f"column_{h}", *arguments) == view.col_index(h)
