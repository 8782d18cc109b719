"""Tests of arrays whose rows begin anywhere in memory."""

import functools

import numpy as np
import pytest
from small_cache import PARAMS, TARGETS, make_inputs

import kvcache

# Dense operands of each op, in memory from an element of the caller's choice on.
ROWS = (("?", 2, 32), "f32")
ALIGNED = {
    "append": {"keys": ROWS, "values": ROWS, "norm": ((32,), "f32"), "query_norm": ((32,), "f32"),
               "rope": (("?", 8), "f32"), "queries": (("?", 4, 32), "f32")},
    "gather": {"keys": (("?", "?", 2, 32), "f32"), "values": (("?", "?", 2, 32), "f32")},
    "merge": {"splits": (("?", "?", 2, 32), "f32"), "out": ROWS},
    "attend": {"q": ROWS, "out": ROWS, "workspace": (("?",), "i8")},
}  # fmt: skip
OPS = {
    "append": ("append", "%keys, %values to %k, %v rows %rows norm %norm query_norm %query_norm rope %rope queries %queries",
               "keys values $cache $cache $numbers norm query_norm rope queries"),
    "gather": ("gather", "%k, %v rows %rows outs(%keys, %values)", "$cache $cache $numbers keys values"),
    "merge": ("merge_states", "%splits, %lses outs(%out, %lse)", "splits $lses out $lse"),
    "attend": ("attention", "%q, %k, %v, %rows, %scale outs(%out) workspace %workspace {causal}",
               "q $cache $cache $numbers $f32 out workspace"),
}  # fmt: skip
TYPES = {"$cache": PARAMS.cache_type, "$numbers": "memref<?xi32>", "$f32": "f32",
         "$lses": "memref<?x?x2xf32>", "$lse": "memref<?x2xf32>"}  # fmt: skip
COUNT, STEP = 8, 160


def write_function(name):
    """The text of an op on arrays that begin at `NAME_at` of others, with `step` elements from row to row."""
    operands, types, body = ALIGNED[name], dict(TYPES), ""
    for operand, (shape, element) in operands.items():
        if element == "i8":
            types[operand] = "memref<?xi8>"
            body += f"""  %{operand} = memref.view %{operand}_all[%{operand}_at][%bytes] : memref<?xi8> to memref<?xi8>\n"""
            continue
        open_count = shape.count("?")
        strides = ["?"] * open_count + [int(np.prod(shape[i + 1 :])) for i in range(open_count, len(shape))]
        sizes = ["%two", "%count"][-open_count:] if open_count else []
        steps = ["%outer", "%step"][-open_count:] if open_count else []
        text = "x".join(map(str, shape))
        types[operand] = f"memref<{text}x{element}, strided<[{', '.join(map(str, strides))}], offset: ?>>"
        body += (
            f"  %{operand} = memref.reinterpret_cast %{operand}_all to offset: [%{operand}_at], "
            f"sizes: [{', '.join([*sizes, *map(str, shape[open_count:])])}], "
            f"strides: [{', '.join([*steps, *map(str, strides[open_count:])])}] "
            f": memref<?x{element}> to {types[operand]}\n"
        )
    given = ", ".join(f"%{o}_all: memref<?x{element}>, %{o}_at: index" for o, (_, element) in operands.items())
    op, text, operand_types = OPS[name]
    return f"""
      func.func @{name}(%blocks: {PARAMS.blocks_type}, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %s: i32,
                        %c: i32, %rows: memref<?xi32>, %lses: memref<?x?x2xf32>, %lse: memref<?x2xf32>,
                        %count: index, %step: index, {given}) {{
        %zero = arith.constant 0 : index
        %two = arith.constant 2 : index
        %bytes = arith.constant 65536 : index
        %outer = arith.muli %step, %count : index
        %scale = arith.constant 1.0 : f32
        %all = kvcache.paged_collection %blocks, %lengths, %lut, %s, %c
          : {PARAMS.blocks_type}, memref<?xi32>, memref<?x?xi32> -> {PARAMS.collection_type}
        %k = kvcache.paged_view key %all[%zero] : {PARAMS.collection_type}
        %v = kvcache.paged_view value %all[%zero] : {PARAMS.collection_type}
      {body}  kvcache.{op} {text} : {", ".join(types[each] for each in operand_types.split())}
        return
      }}"""


@functools.cache
def compile_aligned(target):
    source = "".join(map(write_function, ALIGNED))
    return kvcache.jit(source, target=target, bounds_checks=True, opt_level=0)


@pytest.mark.parametrize(
    ("op", "name"), [(op, name) for op, names in ALIGNED.items() for name in [None, *names]]
)
@TARGETS
def test_rows_in_the_middle_of_memory(op, name, target):
    """Wide accesses of chips need aligned rows; a CPU accepts any."""
    inputs = make_inputs()

    def call(offset, step, count=COUNT):
        arrays = []
        for operand, (shape, element) in ALIGNED[op].items():
            at = offset if operand == name else 0
            size = 2**17 if element == "i8" else 2 * COUNT * STEP + 64
            arrays += [np.zeros(size, np.int8 if element == "i8" else np.float32), at]
        lses, lse = np.zeros((2, count, 2), np.float32), np.zeros((count, 2), np.float32)
        rows = inputs.row_offsets if count else np.zeros(3, np.int32)
        compile_aligned(target).call(op, *inputs.collection(0), rows, lses, lse, count, step, *arrays)

    call(16, STEP)
    unit = 1 if name == "workspace" else 4
    if target == "cpu":
        return call(1, STEP + 1)
    if name is None:
        call(0, STEP + 1, count=0)
        with pytest.raises(kvcache.CheckError, match=r"stride \d in bytes of '.*' modulo 16, .* is not in"):
            call(0, STEP + 1)
        return
    shape, _ = ALIGNED[op][name]
    if shape[0] == "?" and name != "workspace":
        call(1, STEP, count=0)
    for bytes in (4, 8):
        with pytest.raises(
            kvcache.CheckError, match=f"address of '{name}' modulo 16, which must be 0, is out of range: {bytes} "
        ):
            call(bytes // unit, STEP)
