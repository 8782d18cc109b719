"""Tests of the rules of types and attributes: of the dialect's, of arguments, and of texts."""

import numpy as np
import pytest
from ir_values import FP8, KV, KV_TEXT, PAGED, TILE, get_base

from kvcache import CompileError
from kvcache.ir import (
    Attribute,
    CacheType,
    ContinuousCacheType,
    ContinuousCollectionType,
    EvictionAttr,
    LayoutAttr,
    MajorAttr,
    Module,
    PagedCacheType,
    PagedCollectionType,
    ParamsAttr,
    PipeType,
    RowIndicesType,
    ScalesType,
    SwizzleAttr,
    TileType,
    TMATileType,
    TmemTileType,
    FragmentType,
    InFlightType,
    TokenType,
    Type,
)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: ParamsAttr(0, 128), "expects num_heads .*positive"),
        (lambda: ParamsAttr(2**16, 2**16), "2\\^31"),
        (lambda: PagedCacheType("i128", KV, 64), "expects an element type of f64"),
        (lambda: PagedCollectionType("i128", KV, 64), "expects an element type of f64"),
        (lambda: PagedCacheType("bf16", KV, -1), "page_size.*positive, got -1"),
        (lambda: PagedCacheType("i8", KV, 64, granularity=8), "scale"),
        (lambda: PagedCacheType("i4", KV, 64, "f32", 8), "expects zero_point for elements of type i4"),
        (lambda: PagedCacheType("i8", KV, 64, "f32", token_granularity=0), "token_granularity to be positive"),
        (lambda: PagedCacheType("bf16", KV, 64, layout=LayoutAttr(128, 8192, 4)), "only in scale_layout"),
        (lambda: PagedCacheType("i8", KV, 64, "f64", 8), "scale"),
        (lambda: PagedCacheType("bf16", KV, 64, layout=LayoutAttr(64, 8192)), "token stride"),
        (lambda: PagedCacheType("bf16", KV, 64, layout=LayoutAttr(1024, 128)), "packed rows"),
        (lambda: ContinuousCollectionType("i128", KV), "expects an element type of f64"),
        (lambda: ContinuousCacheType("i128", KV), "expects an element type of f64"),
        (lambda: ScalesType(ScalesType(PAGED)), "expects"),
        (lambda: ScalesType(TILE), "expects"),
        (lambda: RowIndicesType(0), "positive"),
        (lambda: RowIndicesType(24, page_size=16), "multiple"),
        (lambda: TileType(64, 3, "bf16"), "multiple of 16 bytes"),
        (lambda: TmemTileType(32, 64, "f32"), "64 or 128 rows, got 32"),
        (lambda: FragmentType((32, 64), "f32", "mma_acc"), "16 rows, got 32"),
        (lambda: InFlightType((16, 64), "bf16", "mma_acc"), "f32, f16 or i32"),
        (lambda: TileType(64, 128, "index"), "1, 2, 4 or 8 bytes, got .index."),
        (lambda: PipeType(0, [TILE]), "1 to 64"),
        (lambda: PipeType(2, []), "tile"),
        (lambda: PipeType(2, [PAGED]), "tile"),
        (lambda: PipeType(2, [TILE], producers=32), "producers"),
        (lambda: TMATileType([], "bf16"), "1 to 5"),
        (lambda: TMATileType([64, 257], "bf16"), "256"),
        (lambda: TMATileType([64], "bf16", l2_promotion=32), "l2_promotion"),
        (lambda: PagedCacheType("bf61", KV, 64), "expected non-function type"),
        (lambda: TileType(64, 128, "bf16>"), "found trailing characters: '>'"),
        (lambda: PagedCacheType("bf16", "#kv", 64), "undefined symbol alias id 'kv'"),
        (lambda: ScalesType("!kvcache.paged"), "expected '<'"),
    ],
)
def test_rules_equal_the_dialect_s(make, message):
    with pytest.raises(CompileError, match=message) as caught:
        make()
    assert [diagnostic.severity for diagnostic in caught.value.diagnostics] == ["error"]


@pytest.mark.parametrize(
    "make, error, message",
    [
        (lambda: ParamsAttr("8", 128), TypeError, "'num_heads' to be an integer, got '8'"),
        (lambda: ParamsAttr(8, 128, 1), TypeError, "'is_mla' to be True or False, got 1"),
        (lambda: ParamsAttr(8, 2**63), ValueError, "'head_size' to have 64 bits"),
        (lambda: ParamsAttr(-(2**63) - 1, 1), ValueError, "'num_heads' to have 64 bits"),
        (lambda: PagedCacheType(3, KV, 64), TypeError, "'dtype': expects a dtype"),
        (lambda: PagedCacheType(np.uint8, KV, 64), ValueError, "'dtype' to be signed"),
        (lambda: PagedCacheType("i8", KV, 4, 5), TypeError, "'scale': expects a dtype"),
        (
            lambda: PagedCacheType("i8", KV, 64, "f32", 0),
            ValueError,
            "'granularity' to be positive, got 0",
        ),
        (lambda: PagedCacheType("bf16", KV, True), TypeError, "'page_size' to be an"),
        (lambda: PagedCacheType("bf16", TILE, 64), TypeError, "text of an attribute"),
        (lambda: PagedCacheType("bf16", "unit", 64), ValueError, "text of ParamsAttr"),
        (lambda: ContinuousCacheType("bf16", None), TypeError, "text of an attribute"),
        (lambda: ScalesType(KV), TypeError, "expects the text of a type, got Params"),
        (lambda: RowIndicesType(8, 0), ValueError, "'page_size' to be positive, got 0"),
        (lambda: RowIndicesType(8.0), TypeError, "'rows' to be an integer, got 8.0"),
        (lambda: TileType(8, 8, "uint8"), ValueError, "'dtype' to be signed or a float"),
        (lambda: TileType(8, 8, "bf16", "128b"), ValueError, "none, .*_128b, got '128b'"),
        (lambda: PipeType(2, [3]), TypeError, "expects the text of a type, got 3"),
        (lambda: FragmentType((16, 64), "f32", "rows"), ValueError, "one of mma_acc, .*, got 'rows'"),
        (lambda: FragmentType((16, 64), "f32", "mma_acc", 1), TypeError, "'partial' to be True or False, got 1"),
        (lambda: InFlightType((16,), "f32", "mma_acc"), ValueError, "rows and columns, got .16,."),
        (lambda: PipeType(2, [TILE], 0), ValueError, "'producers' to be positive"),
        (lambda: TMATileType(["64"], "bf16"), TypeError, "'box' to be an integer"),
        (
            lambda: TMATileType([64], "bf16", l2_promotion=-1),
            ValueError,
            "'l2_promotion' to be positive, got -1",
        ),
        (lambda: SwizzleAttr("64b"), ValueError, "'value' to be one of none, swizzle_32b"),
        (lambda: MajorAttr(None), ValueError, "one of k_major, mn_major, got None"),
        (lambda: EvictionAttr(1), ValueError, "'value' to be one of evict_normal"),
        (lambda: Type(), TypeError, "Type has no constructor: use Type.parse"),
        (lambda: Attribute(), TypeError, "Attribute has no constructor"),
        (lambda: CacheType(), TypeError, "CacheType has no constructor"),
        (lambda: Module(), TypeError, "Module has no constructor: use Module.parse"),
    ],
)
def test_arguments_are_checked(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    "cls, text, message",
    [
        (Type, "", "expected non-function type"),
        (Type, "i32 i32", "found trailing characters: 'i32'"),
        (Type, "!kvcache.block", "unknown  type `block` in dialect `kvcache`"),
        (Type, "\udcff", "unexpected character"),
        (Type, "tuple<" * 100_000, "the source is nested more than 1000 deep"),
        (Type, "!nothing.here", "dialect"),
        (Attribute, "", "expected attribute value"),
        (Attribute, "#kvcache.swizzle<128b>", "expected valid keyword"),
        (Attribute, "#kvcache.params<num_heads = 0, head_size = 1>", "num_heads"),
        (Attribute, "[" * 100_000, "the source is nested more than 1000 deep"),
    ],
)
def test_parse_rejects_invalid_text(cls, text, message):
    with pytest.raises(CompileError, match=message) as caught:
        cls.parse(text)
    assert caught.value.diagnostics[0].filename in ("", "<string>")


@pytest.mark.parametrize(
    "cls, text",
    [
        (PagedCollectionType, str(PAGED)),
        (CacheType, str(ScalesType(FP8))),
        (TokenType, "i32"),
        (SwizzleAttr, KV_TEXT),
    ],
)
def test_text_of_another_class(cls, text):
    with pytest.raises(ValueError) as caught:
        cls.parse(text)
    assert str(caught.value) == f"expects the text of {cls.__name__}, got {text}"
    assert str(get_base(object.__new__(cls)).parse(text)) == text


@pytest.mark.parametrize("text", [None, b"i32", 3])
def test_parse_rejects_other_values(text):
    with pytest.raises(TypeError, match="expects the text of a type, got"):
        Type.parse(text)
    with pytest.raises(TypeError, match="expects the text of an attribute, got"):
        ParamsAttr.parse(text)
