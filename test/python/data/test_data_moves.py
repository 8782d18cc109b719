"""Tests that moved elements keep their bits, including all NaNs."""

import functools
import string

import numpy as np
import pytest
from devices import spread
from model import FORMATS
from programs import Shape, Source, random_encodings, small_cache

# The text of a move of %x, an element or a vector, to %y.
MOVES = {
    "nothing": "",
    "for": """
  %y = scf.for %i = %c0 to %three step %c1 iter_args(%a = %x) -> (!value) {
    scf.yield %a : !value
  }""",
    "for_pair": """
  %z, %y = scf.for %i = %c0 to %three step %c1 iter_args(%a = %w, %q = %x)
      -> (!value, !value) {
    %less = arith.cmpi slt, %i, %n : index
    %a1 = arith.select %less, %q, %a : !value
    %q1 = arith.select %less, %a, %q : !value
    scf.yield %a1, %q1 : !value, !value
  }
  %z2, %y2 = scf.for %i = %c0 to %three step %c1 iter_args(%a = %z, %q = %y)
      -> (!value, !value) {
    %less = arith.cmpi slt, %i, %n : index
    %a1 = arith.select %less, %q, %a : !value
    %q1 = arith.select %less, %a, %q : !value
    scf.yield %a1, %q1 : !value, !value
  }""",
    "if": """
  %y = scf.if %yes -> (!value) {
    scf.yield %x : !value
  } else {
    scf.yield %w : !value
  }""",
    "select": "  %y = arith.select %yes, %x, %w : !value",
    "select_constant": """
  %constant = arith.constant $constant : !value
  %y = arith.select %yes, %x, %constant : !value""",
    "while": """
  %j, %y = scf.while (%i = %c0, %a = %x) : (index, !value) -> (index, !value) {
    %more = arith.cmpi slt, %i, %three : index
    scf.condition(%more) %i, %a : index, !value
  } do {
  ^bb0(%i: index, %a: !value):
    %i1 = arith.addi %i, %c1 : index
    scf.yield %i1, %a : index, !value
  }""",
    "switch": """
  %y = scf.index_switch %n -> !value
  case 0 {
    scf.yield %w : !value
  }
  default {
    scf.yield %x : !value
  }""",
    "call": "  %z, %y = func.call @swap(%x, %w) : (!value, !value) -> (!value, !value)",
    "memory": """
  %memory = memref.alloca() : memref<4x${value}>
  memref.store %x, %memory[%three] : memref<4x${value}>
  %y = memref.load %memory[%three] : memref<4x${value}>""",
}

# The text of a move for slices of vectors.
VECTOR_MOVES = {
    "extract_insert": """
  %e = vector.extract %x[0] : !element from !value
  %y = vector.insert %e, %x[0] : !element into !value""",
    "select_lanes": """
  %lanes = vector.broadcast %yes : i1 to vector<${lanes}xi1>
  %y = arith.select %lanes, %x, %w : vector<${lanes}xi1>, !value""",
    "shuffle_back": """
  %z = vector.shuffle %x, %w [$reversed] : !value, !value
  %y = vector.shuffle %z, %w [$reversed] : !value, !value""",
    "shape_cast": """
  %z = vector.shape_cast %x : !value to vector<2x${half}x${element}>
  %y = vector.shape_cast %z : vector<2x${half}x${element}> to !value""",
    "interleave": """
  %z = vector.interleave %x, %w : !value -> vector<${double}x${element}>
  %y, %u = vector.deinterleave %z : vector<${double}x${element}> -> !value""",
}


@functools.cache
def compile_moves(dtype, lanes, optimize, target="cpu"):
    shape = Shape(dtype, 1, 16, 64)
    source = Source(shape, packed=True)
    value = f"vector<{lanes}x{dtype}>" if lanes else dtype
    source.functions.append(f"""!value = {value}
!element = {dtype}
func.func private @swap(%x: !value, %w: !value) -> (!value, !value) attributes {{no_inline}} {{
  return %w, %x : !value, !value
}}
""")
    moves = {**MOVES, **(VECTOR_MOVES if lanes else {})}
    for name, text in moves.items():
        text = string.Template(text).substitute(
            value=value,
            element=dtype,
            constant="dense<1.0>" if lanes else "1.0",
            reversed=", ".join(map(str, range(lanes - 1, -1, -1))),
            lanes=lanes,
            half=lanes // 2,
            double=2 * lanes,
        )
        # A swap done twice gives the second of a pair back.
        result = {"nothing": "%x", "for_pair": "%y2"}.get(name, "%y")
        source.add(
            name,
            ["tokens: index", "n: index", "yes: i1"],
            f"""  %step = arith.constant {max(lanes, 1)} : index
  %size = arith.constant {shape.head_size} : index
  %three = arith.constant 3 : index
  scf.for %t = %c0 to %tokens step %c1 {{
    scf.for %d = %c0 to %size step %step {{
      %x = kvcache.load %k[%c0, %c0, %t, %d] : !cache -> !value
      %w = kvcache.load %k[%c0, %c0, %c0, %c0] : !cache -> !value
      {text}
      kvcache.store {result}, %v[%c0, %c0, %t, %d] : !value, !cache
    }}
  }}
  return""",
            views="%k = key, %v = value",
        )
    return shape, tuple(moves), source.compile(target=target, opt_level=2 if optimize else 0)


@functools.cache
def all_encodings(dtype):
    bits = FORMATS[dtype].bits
    if bits <= 16:
        return np.resize(np.arange(1 << bits), 1 << 16).astype(FORMATS[dtype].uint)
    return random_encodings(np.random.default_rng(2), 1 << 16, dtype)


@pytest.mark.parametrize("optimize", [False, True], ids=["O0", "O2"])
@pytest.mark.parametrize("lanes", [0, 2, 8])
@pytest.mark.parametrize("dtype", FORMATS)
def test_moves_keep_all_bits(dtype, lanes, optimize):
    check_moves(dtype, lanes, optimize)


@pytest.mark.parametrize(("dtype", "target"), spread(FORMATS))
def test_moves_keep_all_bits_in_kernels(dtype, target):
    check_moves(dtype, 8, True, target)


def check_moves(dtype, lanes, optimize, target="cpu"):
    shape, moves, program = compile_moves(dtype, lanes, optimize, target)
    encodings = all_encodings(dtype)
    tokens = encodings.size // shape.row
    cache = small_cache(shape, batch=1, columns=tokens // 64, layers=1)
    keys, values = cache.view(0, 0), cache.view(1, 0)
    t, d = np.ix_(np.arange(tokens), np.arange(shape.row))
    keys.write(0, 0, t, d, encodings.reshape(tokens, shape.row, 1))
    before = keys.read(0, 0, t, d)
    for name in moves:
        values.write(0, 0, t, d, ~before)
        program.call(name, *cache.arguments(shape.numpy), 0, tokens, 2, True)
        np.testing.assert_array_equal(values.read(0, 0, t, d), before, err_msg=name)
        np.testing.assert_array_equal(keys.read(0, 0, t, d), before, err_msg=name)


@pytest.mark.parametrize("dtype", FORMATS)
def test_constants_keep_all_bits(dtype):
    """Tests elements, vectors, splats, and global memory."""
    format = FORMATS[dtype]
    digits = format.bits // 4
    rng = np.random.default_rng(4)
    encodings = random_encodings(rng, 8, dtype)
    top = ((format.sign - 1) >> format.mantissa) << format.mantissa
    special = [0, format.sign, top, top + 1, format.sign - 1, format.sign | (top + 1)]
    encodings[: len(special)] = special
    texts = [f"0x{encoding:0{digits}X}" for encoding in encodings.tolist()]
    listed = ", ".join(texts)
    shape = Shape(dtype, 1, 8, 1)
    source = Source(shape, packed=True)
    source.functions.append(
        f"memref.global constant @kept : memref<8x{dtype}> = dense<[{listed}]>\n"
    )
    vector = f"vector<8x{dtype}>"
    source.add(
        "vector",
        [],
        f"""  %v = arith.constant dense<[{listed}]> : {vector}
  kvcache.store %v, %k[%c0, %c0, %c0, %c0] : {vector}, !cache
  return""",
    )
    source.add(
        "global",
        [],
        f"""  %m = memref.get_global @kept : memref<8x{dtype}>
  %v = vector.load %m[%c0] : memref<8x{dtype}>, {vector}
  kvcache.store %v, %k[%c0, %c0, %c0, %c0] : {vector}, !cache
  return""",
    )
    scalars = "".join(
        f"""  %d{i} = arith.constant {i} : index
  %v{i} = arith.constant {text} : {dtype}
  kvcache.store %v{i}, %k[%c0, %c0, %c0, %d{i}] : {dtype}, !cache
"""
        for i, text in enumerate(texts)
    )
    source.add("scalars", [], f"{scalars}  return")
    for i, text in enumerate(texts):
        source.add(
            f"splat_{i}",
            [],
            f"""  %v = arith.constant dense<{text}> : {vector}
  kvcache.store %v, %k[%c0, %c0, %c0, %c0] : {vector}, !cache
  return""",
        )
    program = source.compile()
    cache = small_cache(shape, batch=1, columns=1)
    view = cache.view(0, 0)
    for name, expected in [
        *((name, encodings) for name in ("vector", "global", "scalars")),
        *((f"splat_{i}", np.full(8, encoding)) for i, encoding in enumerate(encodings)),
    ]:
        view.write(0, 0, 0, 0, ~expected.astype(format.uint))
        program.call(name, *cache.arguments(shape.numpy), 0)
        np.testing.assert_array_equal(view.read(0, 0, 0, 0, 8), expected, err_msg=name)
