"""Tests of types and attributes of the dialect, and of modules, as values in Python."""

import copy
import dataclasses
import pickle
import re
import threading

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_values import FP8, KV, KV_TEXT, PAGED, TILE, get_base
from places import ROOT

from kvcache import CompileError, KVCacheParams
from kvcache.ir import (
    DYNAMIC,
    Attribute,
    CacheType,
    ContinuousCacheType,
    ContinuousCollectionType,
    CopyKind,
    CopyKindAttr,
    Eviction,
    AttentionConfigAttr,
    EvictionAttr,
    SplitAttr,
    LayoutAttr,
    Major,
    MajorAttr,
    PagedCacheType,
    PagedCollectionType,
    ParamsAttr,
    PipeType,
    RowIndicesType,
    ScalesType,
    Swizzle,
    SwizzleAttr,
    Table,
    TileType,
    TMATileType,
    TmemTileType,
    FragmentLayout,
    Schedule,
    ScheduleAttr,
    FragmentType,
    InFlightType,
    TokenType,
    Type,
)

FP8_TEXT = f"f8E4M3FN, {KV_TEXT}, page_size = 64, scale = f32, granularity = 128"

# The text and the fields of a value of each class.
VALUES = [
    (KV, KV_TEXT, {"num_heads": 8, "head_size": 128, "is_mla": False}),
    (
        ParamsAttr(1, 576, is_mla=True),
        "#kvcache.params<num_heads = 1, head_size = 576, is_mla = true>",
        {"num_heads": 1, "head_size": 576, "is_mla": True},
    ),
    *(
        (SwizzleAttr(case), f"#kvcache.swizzle<{case.value}>", {"value": case})
        for case in Swizzle
    ),
    *(
        (MajorAttr(case), f"#kvcache.major<{case.value}>", {"value": case})
        for case in Major
    ),
    *(
        (EvictionAttr(case), f"#kvcache.eviction<{case.value}>", {"value": case})
        for case in Eviction
    ),
    *(
        (CopyKindAttr(case), f"#kvcache.copy<{case.value}>", {"value": case})
        for case in CopyKind
    ),
    *(
        (ScheduleAttr(case), f"#kvcache.schedule<{case.value}>", {"value": case})
        for case in Schedule
    ),
    (
        SplitAttr(512, rows=4),
        "#kvcache.split<keys = 512, max = 32, rows = 4>",
        {"keys": 512, "max": 32, "rows": 4},
    ),
    (
        AttentionConfigAttr((2, 0, 128, -1, -1, -1, -1, -1, -1, -1, 2, -1, -1)),
        "#kvcache.attention_config<mma = wgmma, swap_ab = false, rows = 128, l2_hint = evict_last>",
        {"numbers": (2, 0, 128, -1, -1, -1, -1, -1, -1, -1, 2, -1, -1)},
    ),
    (
        PagedCollectionType("bf16", KV, page_size=64),
        f"!kvcache.paged_collection<bf16, {KV_TEXT}, page_size = 64>",
        {"dtype": "bf16", "params": KV, "page_size": 64, "scale": None},
    ),
    (
        PAGED,
        f"!kvcache.paged<bf16, {KV_TEXT}, page_size = 64>",
        {"page_size": 64, "scale": None, "granularity": None},
    ),
    (
        FP8,
        f"!kvcache.paged<{FP8_TEXT}>",
        {"dtype": "f8E4M3FN", "params": KV, "scale": "f32", "granularity": 128},
    ),
    (
        ContinuousCollectionType("f16", KV),
        f"!kvcache.continuous_collection<f16, {KV_TEXT}>",
        {"dtype": "f16", "params": KV, "page_size": None, "granularity": None},
    ),
    (
        ContinuousCacheType("f16", KV),
        f"!kvcache.continuous<f16, {KV_TEXT}>",
        {"dtype": "f16", "params": KV, "page_size": None, "scale": None},
    ),
    (ScalesType(FP8), f"!kvcache.scales<!kvcache.paged<{FP8_TEXT}>>", {"cache": FP8}),
    (ScalesType(PAGED), f"!kvcache.scales<!kvcache.paged<bf16, {KV_TEXT}, page_size = 64>>", {"cache": PAGED}),
    (
        PagedCacheType("bf16", KV, page_size=DYNAMIC),
        f"!kvcache.paged<bf16, {KV_TEXT}, page_size = ?>",
        {"page_size": DYNAMIC, "scale": None},
    ),
    (LayoutAttr(256, 16384), "#kvcache.layout<token = 256, head = 16384>", {"token_stride": 256}),
    (LayoutAttr(256, DYNAMIC), "#kvcache.layout<token = 256, head = ?>", {"head_stride": DYNAMIC}),
    (LayoutAttr(656), "#kvcache.layout<token = 656>", {"head_stride": None, "interleave": 1, "role_stride": None}),
    (LayoutAttr(264, 16896, role_stride=132), "#kvcache.layout<token = 264, head = 16896, role = 132>", {"role_stride": 132}),
    (LayoutAttr(8, 512, 4), "#kvcache.layout<token = 8, head = 512, interleave = 4>", {"interleave": 4}),
    (
        PagedCacheType("bf16", KV, 64, layout=LayoutAttr(128, 8192), table="csr"),
        f"!kvcache.paged<bf16, {KV_TEXT}, page_size = 64, layout = [token = 128, head = 8192], table = csr>",
        {"layout": LayoutAttr(128, 8192), "scale_layout": None, "table": Table.CSR},
    ),
    (
        PagedCacheType("i4", KV, 64, "f16", zero_point="f16", token_granularity=32),
        f"!kvcache.paged<i4, {KV_TEXT}, page_size = 64, scale = f16, granularity = 1, zero_point = f16, "
        "token_granularity = 32>",
        {"dtype": "i4", "zero_point": "f16", "token_granularity": 32},
    ),
    (
        PagedCollectionType("i8", KV, 64, "f32", 128, scale_layout=LayoutAttr(1, 64)),
        f"!kvcache.paged_collection<i8, {KV_TEXT}, page_size = 64, scale = f32, granularity = 128, "
        "scale_layout = [token = 1, head = 64]>",
        {"layout": None, "scale_layout": LayoutAttr(1, 64), "table": Table.DENSE},
    ),
    (
        RowIndicesType(16, page_size=DYNAMIC),
        "!kvcache.row_indices<rows = 16, page_size = ?>",
        {"rows": 16, "page_size": DYNAMIC},
    ),
    (
        RowIndicesType(128, page_size=64),
        "!kvcache.row_indices<rows = 128, page_size = 64>",
        {"rows": 128, "page_size": 64},
    ),
    (
        RowIndicesType(128),
        "!kvcache.row_indices<rows = 128>",
        {"rows": 128, "page_size": None},
    ),
    (
        TILE,
        "!kvcache.tile<64x128xbf16, swizzle_128b>",
        {"rows": 64, "columns": 128, "dtype": "bf16", "swizzle": Swizzle.SPAN_128},
    ),
    (
        TileType(64, 128, "f8E4M3FN"),
        "!kvcache.tile<64x128xf8E4M3FN>",
        {"swizzle": Swizzle.NONE},
    ),
    (
        TmemTileType(64, 512, "f32"),
        "!kvcache.tmem_tile<64x512xf32>",
        {"rows": 64, "columns": 512, "dtype": "f32"},
    ),
    (
        FragmentType((64, 128), "f32", "wgmma_acc"),
        "!kvcache.fragment<64x128xf32, wgmma_acc>",
        {"shape": (64, 128), "dtype": "f32", "layout": FragmentLayout.WGMMA_ACC, "partial": False},
    ),
    (
        FragmentType([16], "f32", "mma_acc", partial=True),
        "!kvcache.fragment<16xf32, mma_acc, partial>",
        {"shape": (16,), "partial": True},
    ),
    (
        InFlightType((16, 64), "f32", "mma_acc"),
        "!kvcache.in_flight<16x64xf32, mma_acc>",
        {"shape": (16, 64), "dtype": "f32", "layout": FragmentLayout.MMA_ACC},
    ),
    (TokenType(), "!kvcache.token", {}),
    (
        PipeType(3, [TILE, TILE], producers=1),
        f"!kvcache.pipe<3, {TILE}, {TILE}, producers = 1>",
        {"stages": 3, "tiles": (TILE, TILE), "producers": 1},
    ),
    (
        PipeType(2, [TILE]),
        f"!kvcache.pipe<2, {TILE}>",
        {"stages": 2, "tiles": (TILE,), "producers": None},
    ),
    (
        TMATileType([64, 1, 64], "bf16", "swizzle_128b", l2_promotion=256),
        "!kvcache.tma_tile<64x1x64xbf16, swizzle_128b, l2_promotion = 256>",
        {"box": (64, 1, 64), "dtype": "bf16", "l2_promotion": 256},
    ),
    (
        TMATileType([72, 1], "i64"),
        "!kvcache.tma_tile<72x1xi64>",
        {"box": (72, 1), "swizzle": Swizzle.NONE, "l2_promotion": None},
    ),
    (Type.parse("memref<?x4xf32>"), "memref<?x4xf32>", {}),
    (Attribute.parse("[1 : i32, unit]"), "[1 : i32, unit]", {}),
]
BY_TEXT = pytest.mark.parametrize(
    "value, text, fields", VALUES, ids=[text for _, text, _ in VALUES]
)


def test_every_class_of_the_dialect_is_listed():
    """Each class in .td has a Python class of the same name, and a test."""
    folder = ROOT / "include/kvcache/IR"
    tables = {*folder.glob("KVCache*.td"), *folder.glob("*Types.td")}
    definition = re.compile(
        r"^def KVCache_(\w+(?:Type|Attr))\s*: (?:KVCache_\w*Type|TypeDef|AttrDef|EnumAttr)<",
        re.MULTILINE,
    )
    names = {
        name for path in tables for name in definition.findall(path.read_text())
    }
    assert {"ParamsAttr", "PagedCacheType", "TMATileType"} <= names
    tested = {type(value).__name__ for value, _, _ in VALUES}
    assert tested == names | {"Type", "Attribute"}


@BY_TEXT
def test_built_values_have_text_and_fields(value, text, fields):
    assert str(value) == text
    for name, expected in fields.items():
        assert getattr(value, name) == expected
        assert type(getattr(value, name)) is type(expected)


@BY_TEXT
def test_parsed_values_equal_built_ones(value, text, fields):
    for cls in (get_base(value), type(value)):
        parsed = cls.parse(text)
        assert type(parsed) is type(value)
        assert (parsed, hash(parsed), repr(parsed)) == (value, hash(value), repr(value))
        for name, expected in fields.items():
            assert getattr(parsed, name) == expected


@BY_TEXT
def test_values_can_be_copied_and_sent(value, text, fields):
    for other in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
        assert type(other) is type(value)
        assert other == value
        assert str(other) == text


def test_values_are_equal_if_their_texts_are():
    for index, (value, text, _) in enumerate(VALUES):
        assert value != text
        assert [value == other for other, _, _ in VALUES].index(True) == index
    assert len({value for value, _, _ in VALUES}) == len(VALUES)


@pytest.mark.parametrize(
    "value, text",
    [
        (SwizzleAttr("none"), "SwizzleAttr(value=<Swizzle.NONE: 'none'>)"),
        (RowIndicesType(8), "RowIndicesType(rows=8, page_size=None)"),
        (TokenType(), "TokenType()"),
        (
            ContinuousCacheType("f16", KV),
            "ContinuousCacheType(dtype='f16', "
            "params=ParamsAttr(num_heads=8, head_size=128, is_mla=False))",
        ),
        (Type.parse("vector<4xf32>"), "Type.parse('vector<4xf32>')"),
        (Attribute.parse("unit"), "Attribute.parse('unit')"),
    ],
    ids=str,
)
def test_repr_is_an_expression(value, text):
    assert repr(value) == text


def test_values_do_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        PAGED.page_size = 32
    assert PAGED.page_size == 64


def test_a_changed_value_is_another_and_checked():
    smaller = dataclasses.replace(PAGED, page_size=32)
    assert smaller == PagedCacheType("bf16", KV, page_size=32)
    with pytest.raises(CompileError, match="positive"):
        dataclasses.replace(PAGED, page_size=0)


def test_values_can_be_matched():
    match Type.parse(str(FP8)):
        case PagedCacheType(dtype=dtype, params=ParamsAttr(num_heads=heads)):
            assert (dtype, heads) == ("f8E4M3FN", 8)
        case other:
            pytest.fail(str(other))


@pytest.mark.parametrize(
    "dtype", ["bf16", "bfloat16", ml_dtypes.bfloat16, np.dtype(ml_dtypes.bfloat16)]
)
def test_element_types_are_dtypes_or_text(dtype):
    assert PagedCacheType(dtype, KV, page_size=64) == PAGED
    assert PagedCacheType(dtype, KV_TEXT, page_size=np.int64(64)) == PAGED
    assert type(PagedCacheType(dtype, KV, np.int64(64)).page_size) is int


def test_fields_may_be_text():
    assert ScalesType(str(FP8)) == ScalesType(FP8)
    assert PipeType(2, iter([str(TILE)])) == PipeType(2, [TILE])
    assert TileType(64, 128, "bf16", Swizzle.SPAN_128) == TILE


def test_types_have_names():
    names = [type.name for type in (PAGED, ContinuousCacheType("f32", KV), ScalesType(FP8), TILE, Type.parse("bf16"))]
    assert names == ["kvcache.paged", "kvcache.continuous", "kvcache.scales", "kvcache.tile", "bf16"]


def test_granularity_is_one_by_default():
    assert PagedCacheType("i8", KV, 64, scale="f32").granularity == 1


def test_cache_types_are_cachetype_instances():
    caches = {type(value) for value, _, _ in VALUES if isinstance(value, CacheType)}
    assert caches == {
        PagedCollectionType,
        PagedCacheType,
        ContinuousCollectionType,
        ContinuousCacheType,
    }


# --- Any parameters -------------------------------------------------------------------


@given(
    dtype=st.sampled_from(["f32", "f16", "bf16", "f8E4M3FN", "f8E5M2", "i8", "f64"]),
    heads=st.integers(-1, 300),
    head_size=st.integers(-1, 2**24),
    is_mla=st.booleans(),
    page_size=st.integers(-1, 300),
    scale=st.sampled_from([None, "f32", "f8E8M0FNU", "f64"]),
    granularity=st.none() | st.integers(1, 300),
)
@settings(deadline=None)
def test_constructors_accept_the_same_as_text(
    dtype, heads, head_size, is_mla, page_size, scale, granularity
):
    mla = ", is_mla = true" if is_mla else ""
    params = f"#kvcache.params<num_heads = {heads}, head_size = {head_size}{mla}>"
    text = f"!kvcache.paged<{dtype}, {params}, page_size = {page_size}"
    if scale:
        text += f", scale = {scale}"
    if granularity:
        text += f", granularity = {granularity}"
    try:
        parsed = Type.parse(text + ">")
    except CompileError:
        with pytest.raises(CompileError):
            PagedCacheType(
                dtype, ParamsAttr(heads, head_size, is_mla), page_size, scale, granularity
            )
    else:
        params = ParamsAttr(heads, head_size, is_mla)
        assert parsed == PagedCacheType(dtype, params, page_size, scale, granularity)
        if heads == 1 or not is_mla:
            assert KVCacheParams.from_type(parsed).cache_type == str(parsed)


@given(
    box=st.lists(st.integers(0, 300), max_size=6),
    dtype=st.sampled_from(["bf16", "i64", "ui8", "si16", "f8E3M4", "f64", "i4", "i24"]),
    swizzle=st.sampled_from(Swizzle),
    l2_promotion=st.sampled_from([None, 32, 64, 128, 256]),
)
@settings(deadline=None)
def test_boxes_round_trip(box, dtype, swizzle, l2_promotion):
    try:
        made = TMATileType(box, dtype, swizzle, l2_promotion)
    except CompileError:
        return
    assert Type.parse(str(made)) == made
    assert (made.box, made.dtype, made.swizzle) == (tuple(box), dtype, swizzle)
    assert made.l2_promotion == l2_promotion


def test_threads_may_parse_at_a_time():
    found = []

    def parse(first):
        for rows in range(first, first + 200):
            found.append(Type.parse(f"!kvcache.row_indices<rows = {rows}>").rows)

    threads = [threading.Thread(target=parse, args=(1 + 200 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(1, 801))
