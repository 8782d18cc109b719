"""Tests of functions built op by op in Python."""

import numpy as np
import pytest

import kvcache
from kvcache import CompileError, _native, ir

CACHE = ir.PagedCacheType("bf16", ir.ParamsAttr(8, 128), page_size=64)
INDEX_CACHE = ir.PagedCacheType("bf16", ir.ParamsAttr(1, 128), page_size=64)
COLLECTION = ir.PagedCollectionType("bf16", ir.ParamsAttr(8, 128), page_size=64)
ROWS, QUERIES, NUMBERS = "memref<?x8x128xbf16>", "memref<?x32x128xbf16>", "memref<?xi32>"
TENSOR = "tensor<?x32x128xbf16>"
TILE = ir.TileType(64, 128, "bf16")

# The arguments by the names of their operands; then attributes and results.
OPS = {
    "append": (
        {
            "key_cache": CACHE,
            "value_cache": CACHE,
            "positions": "memref<3x?xi64>",
            "rope": "memref<?x4xf32>",
            "values": ROWS,
            "row_offsets": NUMBERS,
            "keys": ROWS,
        },
        {"epsilon": np.float32(1e-5), "interleaved": True, "rope_axes": [0, 2]},
        (),
    ),
    "gather": (
        {"output_offsets": NUMBERS, "keys": ROWS, "key_cache": CACHE},
        {"block_threads": 512, "heads_per_thread": 8},
        (),
    ),
    "copy": ({"end": NUMBERS, "source": CACHE, "target": CACHE}, {"heads": 4}, ()),
    "copy_pages": ({"pairs": "memref<?x2xi32>", "collection": COLLECTION}, {}, ()),
    "async_load_tile": (
        {"tile": TILE, "cache": CACHE, **dict.fromkeys(["batch", "head", "token", "element"], "index")},
        {},
        "!kvcache.token",
    ),
    "attention": (
        {
            "out": TENSOR,
            "q": QUERIES,
            "key_cache": CACHE,
            "value_cache": CACHE,
            "row_offsets": NUMBERS,
            "scale": "f32",
            "sinks": "memref<32xf32>",
        },
        {"causal": True, "window": np.int64(4096), "soft_cap": 50.0, "chunk": None},
        TENSOR,
    ),
    "workspace_size": (
        {"batch": "index"},
        {"query_heads": 32, "value_size": "128 : i64"},
        "index",
    ),
    "merge_states": (
        {
            "lse": "memref<?x8xf32>",
            "out": ROWS,
            "lses": "memref<?x?x8xf32>",
            "splits": "memref<?x?x8x128xbf16>",
        },
        {},
        (),
    ),
    "remap_rows": (
        {
            "ids": "memref<?x64xi32>",
            "row_offsets": NUMBERS,
            "cache": CACHE,
            "tokens": "memref<?x64xi32>",
        },
        {},
        (),
    ),
    "pool": (
        {"pooled": ROWS, "row_offsets": NUMBERS, "cache": CACHE},
        {"width": 64},
        (),
    ),
    "index_scores": (
        {
            "weights": "memref<?x64xf32>",
            "scores": "memref<?x?xf32>",
            "row_offsets": NUMBERS,
            "cache": INDEX_CACHE,
            "q": "memref<?x64x128xbf16>",
        },
        {"relu": True, "sum_heads": True},
        (),
    ),
    "top_rows": (
        {
            "ids": "memref<?x64xi32>",
            "row_offsets": NUMBERS,
            "cache": CACHE,
            "scores": "memref<?x?xf32>",
        },
        {"last": 1, "whole": True},
        (),
    ),
    # An op of kernels; its role is a number of 32 bits.
    "paged_view": (
        {"layer": "index", "collection": COLLECTION},
        {"role": np.int32(1)},
        CACHE,
    ),
}
WORDS = {
    "role": ("paged_view", ["key", "value"]),
    "extent": ("extent", ["batch", "layers", "pages", "tokens", "page_size", "page_stride"]),
    "l2_hint": ("async_load_tile", ["evict_normal", "evict_first", "evict_last"]),
}

EXPECTED = {
    "append": "keys, %values to %key_cache, %value_cache rows %row_offsets rope %rope "
    "positions %positions {epsilon = 9.99999974E-6 : f32, interleaved, rope_axes = array<i64: 0, 2>}",
    "gather": "key_cache outs(%keys) output_offsets %output_offsets "
    "{block_threads = 512 : i64, heads_per_thread = 8 : i64}",
    "copy": "source to %target end %end {heads = 4 : i64}",
    "copy_pages": "collection pairs %pairs",
    "attention": "q, %key_cache, %value_cache, %row_offsets, %scale outs(%out) "
    "{causal, soft_cap = 5.000000e+01 : f64, window = 4096 : i64} sinks %sinks",
    "workspace_size": "batch {query_heads = 32 : i64, value_size = 128 : i64}",
    "merge_states": "splits, %lses outs(%out, %lse)",
    "remap_rows": "tokens, %cache rows %row_offsets outs(%ids)",
    "pool": "cache rows %row_offsets outs(%pooled) {width = 64 : i64}",
    "index_scores": "q, %cache rows %row_offsets outs(%scores) weights %weights {relu, sum_heads}",
    "top_rows": "scores, %cache rows %row_offsets outs(%ids) {last = 1 : i64, whole}",
    "paged_view": "collection[%layer]",
    "async_load_tile": "cache[%batch, %head, %token, %element] to %tile :",
}


@pytest.mark.parametrize(
    ("attribute", "enum"),
    [("swizzle", ir.Swizzle), ("major_a", ir.Major), ("l2_hint", ir.Eviction), ("copy", ir.CopyKind)],
)
def test_enum_words_are_the_cases_of_python(attribute, enum):
    assert list(_native.extension().enum_words(attribute)) == [case.value for case in enum]


@pytest.mark.parametrize(
    ("name", "word"), [(name, word) for name, (_, words) in WORDS.items() for word in words]
)
def test_enum_words_become_attributes(name, word):
    op, _ = WORDS[name]
    if op == "extent":
        cache = COLLECTION if word in ("batch", "layers") else CACHE
        types, options, results = {"cache": cache}, {}, "index"
    else:
        types, options, results = OPS[op]
    options = {**options, name: word}
    function = ir.FunctionBuilder("f", **types)
    operands = {argument: function[argument] for argument in types}
    function.op(f"kvcache.{op}", **operands, **options, results=results)
    text = str(ir.Module.build(function))
    assert f"#kvcache.eviction<{word}>" in text if name == "l2_hint" else f"{op} {word}" in text


@pytest.mark.parametrize("name", WORDS)
def test_enum_rejects_words_of_others(name):
    op, words = WORDS[name]
    function = ir.FunctionBuilder("f", collection=COLLECTION, layer="index")
    message = f"expects '{name}' to be one of {', '.join(words)}, got 'keys'"
    with pytest.raises(ValueError, match=message):
        function.op(f"kvcache.{op}", function["collection"], **{name: "keys"}, results=CACHE)


@pytest.mark.parametrize("op", OPS)
def test_operands_by_name(op):
    types, attributes, results = OPS[op]
    function = ir.FunctionBuilder("f", **types)
    made = function.op(
        f"kvcache.{op}",
        results=results,
        **{name: function[name] for name in reversed(types)},
        **attributes,
    )
    function.returns(*([made] if results else []))
    module = ir.Module.build(function)
    (parsed,) = module.functions
    assert [argument.name for argument in parsed.arguments] == list(types)
    assert list(parsed.results) == ([made.type] if results else [])
    # Printed with numbers for names: the n-th argument is %argn.
    expected = f"%{EXPECTED[op]}"
    for number, name in sorted(enumerate(types), key=lambda item: -len(item[1])):
        expected = expected.replace(f"%{name}", f"%arg{number}")
    assert expected in str(module)


def test_a_built_function_runs():
    """Upstream's ops have no named operands."""
    rows, sums = "memref<?x2x8xf32>", "memref<?x2xf32>"
    merge = ir.FunctionBuilder(
        "merge", splits=f"memref<?x{rows[7:]}", lses=f"memref<?x{sums[7:]}", out=rows
    )
    zero = merge.op("arith.constant", value="1 : index", results="index")
    total = merge.op("memref.dim", merge["splits"], zero, results="index")
    lse = merge.op(
        "memref.alloc", total, results=sums, operandSegmentSizes="array<i32: 1, 0>"
    )
    merge.op(
        "kvcache.merge_states",
        splits=merge["splits"],
        lses=merge["lses"],
        out=merge["out"],
        lse=lse,
    )
    merge.op("memref.dealloc", lse)
    splits = np.random.default_rng(0).standard_normal((3, 5, 2, 8), np.float32)
    out = np.zeros((5, 2, 8), np.float32)
    program = kvcache.jit(ir.Module.build(merge).bytecode())
    program.call("merge", splits, np.zeros((3, 5, 2), np.float32), out)
    np.testing.assert_allclose(out, splits.mean(0), rtol=0, atol=1e-6)


def test_invalid_op_raises_at_once():
    function = ir.FunctionBuilder("f", cache=COLLECTION, pairs="memref<?x2xi32>")
    cache, pairs = function["cache"], function["pairs"]
    with pytest.raises(
        ValueError, match="has no operand 'pages': it has collection, pairs"
    ):
        function.op("kvcache.copy_pages", collection=cache, pages=pairs)
    with pytest.raises(ValueError, match="expects an operand 'collection'"):
        function.op("kvcache.copy_pages", pairs=pairs)
    with pytest.raises(ValueError, match="expects an op of our dialect for named operands"):
        function.op("memref.dealloc", memref=pairs)
    with pytest.raises(ValueError, match="expects either named operands or others"):
        function.op("kvcache.copy_pages", cache, pairs=pairs)
    with pytest.raises(
        ValueError, match="expects the name of an op with its dialect, got 'append'"
    ):
        function.op("append")
    other = ir.FunctionBuilder("g", pairs="memref<?x2xi32>")
    with pytest.raises(
        ValueError, match="expects values of this function, got <%pairs: memref"
    ):
        function.op("kvcache.copy_pages", collection=cache, pairs=other["pairs"])
    with pytest.raises(ValueError, match="expects an identifier, got 'a b'"):
        ir.FunctionBuilder("a b")
    with pytest.raises(CompileError):
        function.op("kvcache.copy_pages", cache, pairs, extra="#nothing<")
    function.returns()
    with pytest.raises(ValueError, match="has returned"):
        function.op("kvcache.copy_pages", cache, pairs)


def test_the_verifier_sees_the_module():
    function = ir.FunctionBuilder("f", cache=COLLECTION, pairs="memref<?x3xi32>")
    function.op("kvcache.copy_pages", function["cache"], function["pairs"])
    with pytest.raises(CompileError, match="expects 'pairs' to have two columns"):
        ir.Module.build(function)
