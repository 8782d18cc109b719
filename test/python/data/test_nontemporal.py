"""Tests of accesses with ``nontemporal`` on the CPU: all types, widths and optimization levels.

LLVM's code generator ends the process on some accesses with this hint.
"""

import numpy as np
import pytest

import kvcache

RESULTS = ["f64", "f32", "f16", "bf16", "f8E4M3FN", "f8E5M2"]
TYPES = [*RESULTS, "i1", "i8", "i16", "i32", "i64", "index"]
WIDTHS = [0, 1, 2, 3, 4, 6, 8, 16, 24, 48]

CACHE = """
!k = !kvcache.continuous<{type}, #kvcache.params<num_heads = 2, head_size = 48>>
// What looks up one function compiles all.
func.func @compiled() {{ return }}
"""

CACHE_LOAD = """
func.func @load{name}(%k: !k, %b: index, %h: index, %t: index, %d: index, %out: memref<{value}>) {{
  %v = kvcache.load %k[%b, %h, %t, %d] {{nontemporal = true}} : !k -> {value}
  memref.store %v, %out[] : memref<{value}>
  return
}}
"""

CACHE_STORE = """
func.func @store{name}(%k: !k, %b: index, %h: index, %t: index, %d: index, %in: memref<{wide}>) {{
  %w = memref.load %in[] : memref<{wide}>
  %v = arith.truncf %w : {wide} to {value}
  kvcache.store %v, %k[%b, %h, %t, %d] {{nontemporal = true}} : {value}, !k
  return
}}
"""


def lanes(width, type):
    return f"vector<{width}x{type}>" if width else type


def write_move(type, width):
    """A function that moves numbers from one memory to another."""
    kind, of = ("vector", f", {lanes(width, type)}") if width else ("memref", "")
    return f"""
func.func @move_{type}_{width}(%from: memref<48x{type}>, %to: memref<48x{type}>, %i: index) {{
  %v = {kind}.load %from[%i] {{nontemporal = true}} : memref<48x{type}>{of}
  {kind}.store %v, %to[%i] {{nontemporal = true}} : memref<48x{type}>{of}
  return
}}
"""


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_moves_of_every_type_and_width(level):
    source = "".join(write_move(t, w) for t in TYPES for w in WIDTHS)
    program = kvcache.jit(source, opt_level=level)
    numbers = np.arange(48, dtype=np.int16)
    for width in WIDTHS:
        moved = np.zeros_like(numbers)
        program.call(f"move_i16_{width}", numbers, moved, 0)
        assert np.array_equal(moved[: width or 1], numbers[: width or 1])
        assert not moved[width or 1 :].any()


@pytest.mark.parametrize("level", [0, 1, 2, 3])
@pytest.mark.parametrize("type", ["f32", "f16", "bf16", "f8E4M3FN", "f8E5M2"])
def test_conversions_of_every_width_compile(type, level):
    source = CACHE.format(type=type)
    for width in WIDTHS:
        for result in RESULTS:
            value = lanes(width, result)
            source += CACHE_LOAD.format(name=f"_{result}_{width}", value=value)
        value, wide = lanes(width, type), lanes(width, "f64")
        source += CACHE_STORE.format(name=f"_{width}", value=value, wide=wide)
    kvcache.jit(source, opt_level=level).call("compiled")
