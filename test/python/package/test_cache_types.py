"""Tests of conversions of parameters to types of the dialect and back."""

import itertools
import warnings

import ml_dtypes
import numpy as np
import pytest
from caches import CONTINUOUS, FP8, MODEL_DEFAULT, MX, NVFP4, SWAPPING, make, scaled
from edits import edit
from hypothesis import given
from hypothesis import strategies as st

import kvcache
from kvcache import KVCacheParams, KVCacheQuantizationConfig

FLOATS = """f64 f32 f16 bf16 f8E4M3 f8E4M3FN f8E4M3FNUZ f8E4M3B11FNUZ f8E5M2 f8E5M2FNUZ
    f8E3M4 f8E8M0FNU f6E2M3FN f6E3M2FN f4E2M1FN""".split()


def accepts(text):
    """Returns whether the dialect accepts a type."""
    try:
        kvcache.ir.Type.parse(text)
    except kvcache.CompileError:
        return False
    return True


def write_type(kind, dtype, heads, head_dim, page_size=None, scales=None, is_mla=False):
    """Writes a type of the dialect in the documentation's syntax."""
    mla = ", is_mla = true" if is_mla else ""
    text = f"{dtype}, #kvcache.params<num_heads = {heads}, head_size = {head_dim}{mla}>"
    if page_size is not None:
        text += f", page_size = {page_size}"
    if scales:
        scale, granularity, *more = scales
        zero_point, tokens = (*more, *(None, 1)[len(more) :])
        text += f", scale = {scale}, granularity = {granularity}"
        if zero_point:
            text += f", zero_point = {zero_point}"
        if tokens != 1:
            text += f", token_granularity = {tokens}"
    return f"!kvcache.{kind}<{text}>"


def is_accepted(scales=None, **fields):
    """Returns whether parameters are valid; those of ``scales`` may be wrong as well."""
    try:
        if scales:
            fields["kvcache_quant_config"] = KVCacheQuantizationConfig(*scales)
        make(**fields)
    except ValueError:
        return False
    return True


ELEMENTS = ["i1", "i8", "i16", "i32", "i64", *FLOATS]
SCALES = [
    *itertools.product(ELEMENTS, (16, 32)),
    *itertools.product(("f32", "f64"), (-1, 0, 1, 33, 2**63 - 1, 2**63)),
    *itertools.product(
        ("f32", "f16", "f8E4M3FN"), (1, 16), (None, "f32", "f8E4M3FN"), (0, 1, 2, 3)
    ),
]
PAGES = [
    (8, 128, 64),
    (3, 33, 48),
    (0, 128, 64),
    (8, 0, 64),
    (8, 128, 0),
    (-8, 128, 64),
    (8, -128, 64),
    (8, 128, -64),
    (1, 2**31 - 2, 1),
    (1, 2**31 - 1, 1),
    (1, 2**31, 1),
    (2**31, 1, 1),
    (2, 2**30, 1),
    (2**16, 2**15, 1),
    (1, 1, 2**31 - 1),
    (1, 2, 2**30),
    (1, 1, 2**31),
    (1, 1, 2**63),
    (2**62, 4, 1),
    (2**32, 2**32, 1),
]


@pytest.mark.parametrize("dtype", ELEMENTS)
def test_rules_of_elements_and_scales_equal_the_dialect_s(dtype):
    for quantization, head_dim in itertools.product([None, *SCALES], (32, 33)):
        text = write_type("paged_collection", dtype, 2, head_dim, 4, quantization)
        sizes = {"n_kv_heads": 2, "head_dim": head_dim, "page_size": 4}
        assert is_accepted(quantization, dtype=dtype, **sizes) == accepts(text), text
    text = write_type("continuous_collection", dtype, 2, 32)
    fields = {"n_kv_heads": 2, "head_dim": 32, "cache_strategy": CONTINUOUS}
    assert is_accepted(dtype=dtype, **fields) == accepts(text), text


@pytest.mark.parametrize("heads, head_dim, page_size", PAGES)
@pytest.mark.parametrize(
    "dtype, scales",
    [("bf16", None), ("i8", ("f32", 1)), ("f4E2M1FN", ("f8E4M3FN", 16))],
)
def test_rules_of_sizes_equal_the_dialect_s(
    dtype, scales, heads, head_dim, page_size
):
    sizes = {"n_kv_heads": heads, "head_dim": head_dim, "page_size": page_size}
    for is_mla in [False, True] if heads == 1 else [False]:
        text = write_type("paged", dtype, heads, head_dim, page_size, scales, is_mla)
        expected = accepts(text)
        assert (
            is_accepted(scales, dtype=dtype, is_mla=is_mla, **sizes) == expected
        ), text


def list_valid_types():
    """Lists all valid combinations of a type's parameters, for a few sizes."""
    elements = [("bf16", None), ("f16", None), ("f32", None)]
    for dtype in ("f8E4M3FN", "f8E5M2"):
        elements.append((dtype, None))
    for dtype, scale in itertools.product(
        ("f8E4M3FN", "f8E5M2", "i8"), ("f32", "f16", "bf16", "f8E8M0FNU", "f8E4M3FN")
    ):
        elements += [(dtype, (scale, granularity)) for granularity in (1, 32, 128)]
    elements += [("f4E2M1FN", ("f8E4M3FN", 16)), ("f4E2M1FN", ("f8E8M0FNU", 32))]
    for scale in ("f32", "f16", "bf16"):
        elements += [("i4", (scale, 32, scale)), ("i4", (scale, 1, scale, 16))]
    elements += [("i8", ("f32", 1, None, 48)), ("f8E4M3FN", ("bf16", 1, None, 2))]
    for (dtype, scales), (heads, is_mla) in itertools.product(
        elements, [(1, False), (8, False), (1, True)]
    ):
        yield dtype, heads, is_mla, 48, scales
        if not scales:
            yield dtype, heads, is_mla, None, None


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"total_num_layers": 32, **SWAPPING},
        {"n_devices": 4},
        {"n_devices": 4, "pipeline_parallel_degree": 4, "total_num_layers": 9},
        {"cache_strategy": MODEL_DEFAULT},
    ],
    ids=str,
)
def test_types_convert_to_parameters(fields):
    for dtype, heads, is_mla, page_size, scales in list_valid_types():
        given = fields
        if page_size is None:
            if "enable_prefix_caching" in fields:
                continue
            given = {**fields, "cache_strategy": CONTINUOUS}
        shares = fields.get("n_devices", 1)
        if is_mla or "pipeline_parallel_degree" in fields:
            shares = 1
        params = make(
            **{
                "dtype": dtype,
                "n_kv_heads": heads * shares,
                "head_dim": 64,
                "page_size": page_size,
                "is_mla": is_mla,
                "kvcache_quant_config": scales and KVCacheQuantizationConfig(*scales),
                "total_num_layers": None,
                **given,
            }
        )
        kind = "continuous" if page_size is None else "paged"
        said = dtype, heads, 64, page_size, scales, is_mla
        assert params.collection_type == write_type(f"{kind}_collection", *said)
        assert params.cache_type == write_type(kind, *said)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            for text in (params.collection_type, params.cache_type):
                assert KVCacheParams.from_type(text, **given) == params


@given(
    heads=st.integers(1, 32),
    devices=st.integers(1, 32),
    head_dim=st.integers(1, 300),
    page_size=st.integers(1, 300),
    is_mla=st.booleans(),
)
def test_from_type_restores_all_fields(devices, **fields):
    if fields["heads"] > devices:
        devices = 1
    fields["n_kv_heads"] = fields.pop("heads")
    params = make(n_devices=devices, **fields)
    rest = {
        "n_devices": devices,
        "n_kv_heads": fields["n_kv_heads"],
        "total_num_layers": 32,
    }
    assert KVCacheParams.from_type(params.collection_type, **rest) == params


def test_types_may_be_written_in_another_way():
    text = """!kvcache.paged<f8E4M3FN,  // elements
        #kvcache.params<is_mla = false, head_size = 128, num_heads = 8>,
        page_size = 64, granularity = 128, scale = f32>"""
    assert KVCacheParams.from_type(text, total_num_layers=32) == make(**FP8)


PAGED = make().collection_type


@pytest.mark.parametrize(
    "text, line, column, message",
    [
        ("", 1, 0, "expected non-function type"),
        ("!kvcache.paged", 1, 14, "expected '<'"),
        ("!kvcache.block<bf16>", 1, 10, "unknown  type `block` in dialect `kvcache`"),
        (PAGED + " x", 1, len(PAGED) + 2, "found trailing characters: 'x'"),
        ("\n" + edit(PAGED, ("bf16", "i128")), 2, 26, "expects an element type of f64"),
        (
            "!kvcache.paged<bf16, #kv, page_size = 64>",
            1,
            25,
            "undefined symbol alias id",
        ),
        ("\udcff", 1, 1, "unexpected character"),
        ("tuple<" * 100_000, 0, 0, "the source is nested more than 1000 deep"),
    ],
)
def test_parse_rejects_text_that_is_not_a_type(text, line, column, message):
    with pytest.raises(kvcache.CompileError, match=message) as caught:
        KVCacheParams.from_type(text)
    first = caught.value.diagnostics[0]
    assert (first.line, first.column) == (line, column)
    assert first.filename == ("<string>" if line else "")


@pytest.mark.parametrize(
    "text", ["i32", "index", "!llvm.ptr", f"!kvcache.scales<{make(**FP8).cache_type}>"]
)
def test_types_of_other_classes_are_errors(text):
    with pytest.raises(ValueError, match="expects the type of a cache, got") as caught:
        KVCacheParams.from_type(text)
    assert text in str(caught.value)


def test_types_that_leave_the_page_size_open():
    text = edit(PAGED, ("page_size = 64", "page_size = ?"))
    with pytest.raises(ValueError, match=r"a number for page_size, got .*= \?>") as caught:
        KVCacheParams.from_type(text)
    assert text in str(caught.value)


@pytest.mark.parametrize("text", [None, b"i32", 3])
def test_from_type_rejects_other_values(text):
    with pytest.raises(TypeError, match="expects the text of a type, got"):
        KVCacheParams.from_type(text)


@pytest.mark.parametrize(
    "fields",
    [
        {"dtype": "f16"},
        {"head_dim": 64},
        {"page_size": 32},
        {"is_mla": True},
        {"n_kv_heads": 16},
        {"n_kv_heads": 16, "n_devices": 4},
        {**FP8},
    ],
    ids=str,
)
def test_fields_that_contradict_the_type(fields):
    message = (
        "no parameters with these fields make !kvcache.paged_collection<.*: they make"
    )
    with pytest.raises(ValueError, match=message):
        KVCacheParams.from_type(PAGED, **fields)


def test_latent_caches_have_one_row():
    text = write_type("paged", "bf16", 4, 576, 64, is_mla=True)
    assert accepts(text)
    with pytest.raises(ValueError, match="they make .*num_heads = 1, head_size = 576"):
        KVCacheParams.from_type(text)


@pytest.mark.parametrize(
    "fields, error, message",
    [
        ({"n_devices": "4"}, TypeError, "'n_devices' to be an integer, got '4'"),
        ({"n_devices": 0}, ValueError, "'n_devices' to be positive, got 0"),
        ({"layers": 4}, TypeError, "unexpected keyword argument 'layers'"),
        ({"enable_prefix_caching": 1}, TypeError, "to be True or False, got 1"),
    ],
)
def test_fields_are_checked(fields, error, message):
    with pytest.raises(error, match=message):
        KVCacheParams.from_type(PAGED, **fields)


def test_a_model_decides_by_default():
    assert make(cache_strategy=MODEL_DEFAULT).is_paged
    assert make(cache_strategy=MODEL_DEFAULT).collection_type == PAGED
    assert make().is_paged and not make(cache_strategy=CONTINUOUS).is_paged
    params = make(cache_strategy=MODEL_DEFAULT, page_size=None)
    for name in (
        "is_paged",
        "collection_type",
        "cache_type",
        "blocks_type",
        "scales_type",
    ):
        with pytest.raises(
            ValueError, match="the model's default strategy needs 'page_s"
        ):
            getattr(params, name)


def test_memrefs():
    assert make().blocks_type == "memref<?x2x?x64x8x128xbf16>"
    assert make(n_devices=8).blocks_type == "memref<?x2x?x64x1x128xbf16>"
    assert make(cache_strategy=CONTINUOUS).blocks_type == "memref<?x2x?x?x8x128xbf16>"
    assert make(**NVFP4).blocks_type == "memref<?x2x?x64x8x64xi8>"
    assert make(**NVFP4).scales_type == "memref<?x2x?x64x8x8xf8E4M3FN>"
    assert make(**FP8, is_mla=True).scales_type == "memref<?x1x?x64x1x1xf32>"
    assert make().params_attribute == "#kvcache.params<num_heads = 8, head_size = 128>"


READ = """
func.func @read(%blocks: {blocks}, %lengths: memref<?xi32>, %lut: {lut},
                {declared} %layer: index, %b: index, %h: index, %t: index,
                %d: index) -> f32 {{
  %one = arith.constant 1 : i32
  %all = kvcache.{kind}_collection %blocks, %lengths, %lut, %one, %one {passed}
      : {blocks}, memref<?xi32>, {lut} {scales} -> {collection}
  %keys = kvcache.{kind}_view key %all[%layer] : {collection}
  %pair = kvcache.load %keys[%b, %h, %t, %d] : {cache} -> vector<2xf32>
  %value = vector.extract %pair[0] : f32 from vector<2xf32>
  return %value : f32
}}
"""


def write_reader(params):
    """A function that reads an element of the keys, with the types of ``params``."""
    has_scales = params.kvcache_quant_config is not None
    return READ.format(
        kind="paged" if params.is_paged else "continuous",
        blocks=params.blocks_type,
        lut="memref<?x?xi32>" if params.is_paged else "memref<?xi32>",
        declared=f"%scales: {params.scales_type}," if has_scales else "",
        passed="scales %scales" if has_scales else "",
        scales=f", {params.scales_type}" if has_scales else "",
        collection=params.collection_type,
        cache=params.cache_type,
    )


def as_floats(bits, params):
    """Decodes bytes of blocks to elements."""
    if params.dtype_shorthand not in ("f4E2M1FN", "i4"):
        return bits.view(params.dtype).astype(np.float32)
    nibbles = np.stack([bits & 15, bits >> 4], axis=-1).astype(np.uint8)
    if params.dtype_shorthand == "i4":
        return nibbles.reshape(*bits.shape[:-1], -1).astype(np.float32)
    values = nibbles.view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    return values.reshape(*bits.shape[:-1], -1)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"cache_strategy": CONTINUOUS, "dtype": "f32"},
        {"is_mla": True, "dtype": "f8E4M3FN"},
        {**FP8, "n_devices": 4},
        scaled("i8", "f16", 4),
        {**NVFP4, "head_dim": 32},
        MX,
        scaled("i4", "f16", 4, "f16"),
        scaled("i4", "bf16", 1, "bf16", 2),
        scaled("i8", "f32", 1, None, 4),
    ],
    ids=str,
)
def test_kernels_take_the_types(fields):
    params = make(**{"head_dim": 8, "page_size": 4, "total_num_layers": 2, **fields})
    random = np.random.default_rng(3)
    shape = 3, *params.shape_per_block
    blocks = random.integers(1, 60, (*shape, params.storage_dtype.itemsize), np.uint8)
    blocks = blocks.reshape(*shape[:-1], -1)
    expected = as_floats(blocks, params)
    args = [blocks.view(params.storage_dtype), np.array([0, 0], np.uint32)]
    lut = np.array([[2], [1]], np.uint32)
    args.append(lut if params.is_paged else lut[:, 0].copy())
    if config := params.kvcache_quant_config:
        exponents = random.integers(0, 3, (3, *params.shape_per_scale_block))
        scales = np.exp2(exponents).astype(config.scale_dtype)
        args.append(scales)
        group = config.quantization_granularity
        numbers = scales.astype(np.float32).repeat(config.token_granularity, axis=3)
        has_zero_points = config.zero_point_dtype is not None
        factors, *zero_points = np.split(numbers, 1 + has_zero_points, axis=-1)
        expected = expected * factors.repeat(group, axis=-1)[..., : params.head_dim]
        for offsets in zero_points:
            expected += offsets.repeat(group, axis=-1)[..., : params.head_dim]
    program = kvcache.jit(write_reader(params))
    last_head, last = params.n_kv_heads_per_device - 1, params.head_dim - 2
    for b, h, t, d in [(0, 0, 0, 0), (1, last_head, 3, last), (0, last_head, 2, 4)]:
        value = program.call("read", *args, 1, b, h, t, d)
        assert value == expected[2 - b, 0, 1, t, h, d]
