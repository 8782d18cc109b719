"""Parameters of a cache: their rules, and what follows from them."""

import copy
import dataclasses
import inspect
import itertools
import math
import pickle

import ml_dtypes
import numpy as np
import pytest
from caches import (
    CONTINUOUS,
    FP8,
    MODEL_DEFAULT,
    MX,
    NVFP4,
    PREFIXES,
    SWAPPING,
    make,
    scaled,
)
from hypothesis import given
from hypothesis import strategies as st

from kvcache import KVCacheParams, KVCacheQuantizationConfig, KVCacheStrategy

# --- Rules ------------------------------------------------------------------------

# What is fine, and what is not, with a part of the message.
RULES = [
    (
        {"page_size": None},
        {**PREFIXES, "page_size": None},
        "'enable_prefix_caching' is only possible with the paged cache strategy, got "
        "'continuous'",
    ),
    (
        {"page_size": None, "cache_strategy": CONTINUOUS},
        {"page_size": None, "cache_strategy": "paged"},
        "the paged cache strategy needs 'page_size'",
    ),
    (
        {**PREFIXES, "cache_strategy": "paged"},
        {**PREFIXES, "cache_strategy": CONTINUOUS},
        "'enable_prefix_caching' is only possible with the paged cache strategy, got "
        "'continuous'",
    ),
    (
        {"cache_strategy": MODEL_DEFAULT},
        {**PREFIXES, "cache_strategy": MODEL_DEFAULT},
        "'enable_prefix_caching' is only possible with the paged cache strategy, got "
        "'model_default'",
    ),
    (
        SWAPPING,
        {
            **SWAPPING,
            "enable_prefix_caching": False,
            "cache_strategy": CONTINUOUS,
        },
        "'enable_kvcache_swapping_to_host' is only possible with the paged cache",
    ),
    (
        SWAPPING,
        {**SWAPPING, "enable_prefix_caching": False},
        "'enable_kvcache_swapping_to_host' is only possible with 'enable_prefix_ca",
    ),
    (
        {**SWAPPING, "host_kvcache_swap_space_gb": 0.5},
        {**SWAPPING, "host_kvcache_swap_space_gb": None},
        "'enable_kvcache_swapping_to_host' needs 'host_kvcache_swap_space_gb'",
    ),
    (
        {"host_kvcache_swap_space_gb": 1e-9},
        {"host_kvcache_swap_space_gb": 0},
        "expects 'host_kvcache_swap_space_gb' to be positive and finite, got 0",
    ),
    (
        {"host_kvcache_swap_space_gb": 10**300},
        {"host_kvcache_swap_space_gb": 10**400},
        "expects 'host_kvcache_swap_space_gb' to be positive and finite, got 10000",
    ),
    (
        {"host_kvcache_swap_space_gb": np.float32(2)},
        {"host_kvcache_swap_space_gb": math.nan},
        "expects 'host_kvcache_swap_space_gb' to be positive and finite, got nan",
    ),
    (
        {"pipeline_parallel_degree": 2},
        {"pipeline_parallel_degree": 2, "total_num_layers": None},
        "'pipeline_parallel_degree' of 2 needs 'total_num_layers'",
    ),
    (
        {"pipeline_parallel_degree": 4, "stage_id": 3},
        {"pipeline_parallel_degree": 4, "stage_id": 4},
        r"expects 'stage_id' to be below 'pipeline_parallel_degree' \(4\) and not "
        "negative, got 4",
    ),
    (
        {"pipeline_parallel_degree": 4, "stage_id": 0},
        {"pipeline_parallel_degree": 4, "stage_id": -1},
        "expects 'stage_id' .* not negative, got -1",
    ),
    (
        {"n_devices": 2, "n_kv_heads_per_device": 4},
        {"n_devices": 2, "n_kv_heads_per_device": 8},
        r"expects 'n_kv_heads_per_device' to be 4, as 'n_kv_heads' \(8\) over 2 devices "
        "makes, got 8",
    ),
    (
        {"n_kv_heads": 2, "n_devices": 4, "n_kv_heads_per_device": 1},
        {"n_kv_heads": 2, "n_devices": 4, "n_kv_heads_per_device": 2},
        r"to be 1, as 'n_kv_heads' \(2\) over 4 devices makes, got 2",
    ),
    (
        {"is_mla": True, "n_kv_heads_per_device": 1},
        {"is_mla": True, "n_kv_heads_per_device": 8},
        "expects 'n_kv_heads_per_device' to be 1, of one latent row, got 8",
    ),
    (
        {"n_kv_heads_per_device": 0},
        {"n_kv_heads_per_device": -8},
        "expects 'n_kv_heads_per_device' to be 8, .*, got -8",
    ),
    (
        {"pipeline_parallel_degree": 4, "n_layers_per_stage": 8},
        {"pipeline_parallel_degree": 4, "n_layers_per_stage": 32},
        r"expects 'n_layers_per_stage' to be 8, as 'total_num_layers' \(32\) over 4 "
        "stages makes, got 32",
    ),
    (
        {"n_layers_per_stage": 32},
        {"n_layers_per_stage": 32, "total_num_layers": None},
        "'n_layers_per_stage' of 32 needs 'total_num_layers'",
    ),
    ({"stage_id": 0}, {"stage_id": 1}, r"expects 'stage_id' .* \(1\) .*, got 1"),
    (
        {"n_devices": 4},
        {"n_devices": 3},
        r"expects 'n_kv_heads' \(8\) to be a multiple of 'n_devices' \(3\), or not",
    ),
    (
        {"n_kv_heads": 3, "n_devices": 3},
        {"n_kv_heads": 4, "n_devices": 3},
        r"expects 'n_kv_heads' \(4\) to be a multiple of 'n_devices' \(3\)",
    ),
    (
        {"dtype": "f8E5M2"},
        {"dtype": "f8E4M3FNUZ"},
        "without scales to be one of f64, f32, f16",
    ),
    ({"dtype": np.int32}, {"dtype": np.int64}, "without scales .*, got i64"),
    (
        scaled("i8"),
        scaled("i16"),
        "with scales to be one of f8E4M3FN, f8E5M2, i8, .* got i16",
    ),
    (NVFP4, {"dtype": NVFP4["dtype"]}, "got f4E2M1FN; it needs 'kvcache_quant_config'"),
    (FP8, scaled("bf16"), "with scales to be one of f8E4M3FN, f8E5M2, i8, .* got bf16"),
    (scaled(np.int8), scaled(np.uint8), "'dtype' to be signed or a float, got uint8"),
    (
        {**FP8, "cache_strategy": MODEL_DEFAULT},
        {**FP8, "cache_strategy": CONTINUOUS},
        "'kvcache_quant_config' is only possible with the paged cache strategy, got",
    ),
    (
        NVFP4,
        scaled("f4E2M1FN", "f8E4M3FN", 32),
        r"expects f4E2M1FN with a granularity of 16 and scales of f8E4M3FN \(NVFP4\), "
        r"or 32 and f8E8M0FNU \(MX\), got 32 and f8E4M3FN",
    ),
    (MX, scaled("f4E2M1FN", "f32", 32), r"\(MX\), got 32 and f32"),
    (
        {**NVFP4, "head_dim": 62},
        {**NVFP4, "head_dim": 63},
        "expects 'head_dim' to be even for f4E2M1FN, got 63",
    ),
    (
        {"n_kv_heads": 1, "head_dim": 2**31 - 1, "page_size": 1},
        {"n_kv_heads": 1, "head_dim": 2**31, "page_size": 1},
        r"'head_dim' times the heads of a device .* below 2\^31, got 2147483648 \* 1",
    ),
    (
        {"n_kv_heads": 2, "n_devices": 2, "head_dim": 2**30, "page_size": 1},
        {"n_kv_heads": 2, "n_devices": 1, "head_dim": 2**30, "page_size": 1},
        r"'head_dim' times the heads of a device .* below 2\^31, got 1073741824 \* 2",
    ),
    (
        {"n_kv_heads": 1, "head_dim": 2**16, "page_size": 2**15 - 1},
        {"n_kv_heads": 1, "head_dim": 2**16, "page_size": 2**15},
        r"expects 'page_size' times .* below 2\^31, got 32768 \* 65536 \* 1",
    ),
]


@pytest.mark.parametrize("valid, invalid, message", RULES)
def test_rules(valid, invalid, message):
    make(**valid)
    with pytest.raises(ValueError, match=message):
        make(**invalid)


COUNTS = (
    "n_kv_heads",
    "head_dim",
    "page_size",
    "n_devices",
    "pipeline_parallel_degree",
    "total_num_layers",
)
DERIVED = ("n_kv_heads_per_device", "n_layers_per_stage")
FLAGS = ("enable_prefix_caching", "enable_kvcache_swapping_to_host", "is_mla")


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("value", [0, -1, np.int64(-8)])
def test_counts_are_positive(name, value):
    with pytest.raises(
        ValueError, match=f"expects '{name}' to be positive, got {value}"
    ):
        make(**{name: value})


@pytest.mark.parametrize("name", [*COUNTS, "stage_id", *DERIVED])
@pytest.mark.parametrize("value", [True, 1.0, "1", [1], np.float64(1), np.bool_(True)])
def test_counts_are_integers(name, value):
    with pytest.raises(TypeError, match=f"expects '{name}' to be an integer, got"):
        make(**{name: value})


@pytest.mark.parametrize("name", COUNTS[:2] + COUNTS[3:5])
def test_counts_without_a_default_can_not_be_absent(name):
    with pytest.raises(TypeError, match=f"expects '{name}' to be an integer, got None"):
        make(**{name: None})


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize("value", [1, "yes", None, np.int64(0)])
def test_flags_are_true_or_false(name, value):
    with pytest.raises(TypeError, match=f"expects '{name}' to be True or False, got"):
        make(**{name: value})


@pytest.mark.parametrize("value", [True, "4", [4], np.bool_(True), 4j])
def test_swap_space_is_a_number(value):
    name = "host_kvcache_swap_space_gb"
    with pytest.raises(TypeError, match=f"expects '{name}' to be a number, got"):
        make(**{name: value})


@pytest.mark.parametrize("value", [None, 3, "f8", complex, ">f4"])
def test_dtypes_are_those_of_arrays(value):
    with pytest.raises(TypeError, match="'dtype': expects a dtype of array elements"):
        make(dtype=value)
    with pytest.raises(TypeError, match="'scale_dtype': expects a dtype of array elem"):
        KVCacheQuantizationConfig(scale_dtype=value)


@pytest.mark.parametrize("value", ["block", "", [], 1])
def test_strategies_are_known(value):
    message = (
        "'cache_strategy' to be one of 'model_default', 'continuous', 'paged', got"
    )
    with pytest.raises(ValueError, match=message):
        make(cache_strategy=value)


@pytest.mark.parametrize("value", [(np.float32, 128), "f32", 128])
def test_quantization_is_a_configuration(value):
    message = "'kvcache_quant_config' to be a KVCacheQuantizationConfig, got"
    with pytest.raises(TypeError, match=message):
        make(dtype="f8E4M3FN", kvcache_quant_config=value)


@pytest.mark.parametrize(
    "fields, error, message",
    [
        ({"scale_dtype": "f64"}, ValueError, "'scale_dtype' to be one of .*, got f64"),
        ({"scale_dtype": np.int8}, ValueError, "'scale_dtype' to be one of .*, got i8"),
        (
            {"scale_dtype": np.uint8},
            ValueError,
            "'scale_dtype' to be signed or a float",
        ),
        ({"quantization_granularity": 0}, ValueError, "to be positive, got 0"),
        ({"quantization_granularity": 1.5}, TypeError, "to be an integer, got 1.5"),
        ({"quantization_granularity": None}, TypeError, "to be an integer, got None"),
        (
            {"quantization_granularity": 2**63},
            ValueError,
            r"to be below 2\^63, got 9223",
        ),
    ],
)
def test_rules_of_scales(fields, error, message):
    with pytest.raises(error, match=message):
        KVCacheQuantizationConfig(**fields)


# --- Form -------------------------------------------------------------------------


def test_fields_are_those_of_the_reference():
    defaults = [
        ("dtype", inspect.Parameter.empty),
        ("n_kv_heads", inspect.Parameter.empty),
        ("head_dim", inspect.Parameter.empty),
        ("enable_prefix_caching", False),
        ("enable_kvcache_swapping_to_host", False),
        ("host_kvcache_swap_space_gb", None),
        ("cache_strategy", None),
        ("page_size", None),
        ("n_devices", 1),
        ("pipeline_parallel_degree", 1),
        ("stage_id", None),
        ("total_num_layers", None),
        ("n_kv_heads_per_device", 0),
        ("n_layers_per_stage", None),
    ]
    parameters = inspect.signature(KVCacheParams).parameters.values()
    ours = [
        ("kvcache_quant_config", None),
        ("is_mla", False),
        ("layout", None),
        ("scale_layout", None),
    ]
    assert [(p.name, p.default) for p in parameters] == defaults + ours
    config = KVCacheQuantizationConfig()
    assert (config.scale_dtype, config.quantization_granularity) == (np.float32, 128)


def test_arguments_in_the_order_of_the_reference():
    params = KVCacheParams(
        "bf16", 8, 128, True, True, 4.0, "paged", 64, 8, 2, 1, 32, 8, 16
    )
    assert params == make(
        **SWAPPING,
        cache_strategy="paged",
        n_devices=8,
        pipeline_parallel_degree=2,
        stage_id=1,
    )
    assert (params.n_kv_heads_per_device, params.n_layers_per_stage) == (8, 16)


def test_default_strategy():
    """Pages where their size is given; else a continuous cache, as in the reference."""
    assert make().cache_strategy is KVCacheStrategy.PAGED
    with pytest.warns(DeprecationWarning, match="without 'page_size' is continuous"):
        params = KVCacheParams("bf16", 8, 128)
    assert params.cache_strategy is CONTINUOUS
    assert params.cache_type.startswith("!kvcache.continuous<bf16")


def test_strategies():
    assert [strategy.value for strategy in KVCacheStrategy] == [
        "model_default",
        "continuous",
        "paged",
    ]
    assert KVCacheStrategy.PAGED.kernel_substring() == "paged"
    assert MODEL_DEFAULT.kernel_substring() == "model_default"
    assert CONTINUOUS.kernel_substring() == "continuous_batching"
    assert all(strategy.uses_opaque() for strategy in KVCacheStrategy)
    assert make(cache_strategy="paged").cache_strategy is KVCacheStrategy.PAGED


def test_numbers_are_those_of_python():
    params = make(
        n_kv_heads=np.int64(8),
        page_size=np.uint32(64),
        stage_id=np.int8(0),
        host_kvcache_swap_space_gb=np.float32(4),
        enable_prefix_caching=np.bool_(True),
    )
    assert type(params.n_kv_heads) is type(params.page_size) is int
    assert type(params.stage_id) is int and type(params.enable_prefix_caching) is bool
    assert type(params.host_kvcache_swap_space_gb) is float
    same = make(stage_id=0, host_kvcache_swap_space_gb=4, enable_prefix_caching=True)
    assert params == same and hash(params) == hash(same) and repr(params) == repr(same)


@pytest.mark.parametrize(
    "dtype", [ml_dtypes.bfloat16, np.dtype(ml_dtypes.bfloat16), "bfloat16", "bf16"]
)
def test_dtypes_compare_alike(dtype):
    assert make(dtype=dtype) == make(dtype="bf16")
    assert {make(dtype=dtype)} == {make(dtype="bf16")}
    assert make(dtype=dtype).dtype == np.dtype(ml_dtypes.bfloat16)


@pytest.mark.parametrize(
    "fields", [{}, FP8, NVFP4, SWAPPING, {"is_mla": True}], ids=str
)
def test_copies_are_equal(fields):
    params = make(**fields)
    assert pickle.loads(pickle.dumps(params)) == params
    assert copy.deepcopy(params) == params
    assert dataclasses.replace(params) == params
    assert dataclasses.replace(params, page_size=32) == make(**fields, page_size=32)
    assert dataclasses.replace(params, page_size=32) != params


def test_replacing_derives_again_and_checks():
    assert dataclasses.replace(make(), n_devices=2).n_kv_heads_per_device == 4
    with pytest.raises(ValueError, match="needs 'page_size'"):
        dataclasses.replace(make(), page_size=None)


def test_fields_can_not_be_set():
    with pytest.raises(dataclasses.FrozenInstanceError):
        make().page_size = 32


@pytest.mark.parametrize(
    "call",
    [
        lambda: KVCacheParams("bf16", 8, 128, cache_strategy=CONTINUOUS),
        lambda: dataclasses.replace(make(cache_strategy=CONTINUOUS), head_dim=64),
        lambda: KVCacheParams.from_type(make(cache_strategy=CONTINUOUS).cache_type),
    ],
    ids=["constructor", "replace", "from_type"],
)
def test_deprecation_names_the_line_of_the_caller(call):
    with pytest.warns(DeprecationWarning, match="CONTINUOUS is deprecated") as caught:
        call()
    (warning,) = caught
    line = call.__code__.co_firstlineno
    assert (warning.filename, warning.lineno) == (__file__, line)


# --- Sizes ------------------------------------------------------------------------

# Fields, pages, scales, and bytes of a token and a layer on all devices.
SIZES = {
    "Llama-3-8B": ({}, [2, 32, 64, 8, 128], None, 4096),
    "Llama-3-70B on 8": (
        {"total_num_layers": 80, "n_devices": 8},
        [2, 80, 64, 1, 128],
        None,
        4096,
    ),
    "f32": ({"dtype": "f32", "page_size": 3}, [2, 32, 3, 8, 128], None, 8192),
    "fewer heads than devices": (
        {"n_kv_heads": 4, "n_devices": 8},
        [2, 32, 64, 1, 128],
        None,
        4096,
    ),
    "DeepSeek": (
        {"n_kv_heads": 1, "head_dim": 576, "is_mla": True, "total_num_layers": 61},
        [1, 61, 64, 1, 576],
        None,
        1152,
    ),
    "DeepSeek on 8": (
        {"n_kv_heads": 128, "head_dim": 576, "is_mla": True, "n_devices": 8},
        [1, 32, 64, 1, 576],
        None,
        8 * 1152,
    ),
    "fp8": (FP8, [2, 32, 64, 8, 128], [2, 32, 64, 8, 1], 2048 + 64),
    "fp8 by 32": (
        scaled("f8E5M2", "f32", 32),
        [2, 32, 64, 8, 128],
        [2, 32, 64, 8, 4],
        2048 + 256,
    ),
    "int8": (
        {**scaled("i8", "bf16", 64), "head_dim": 96},
        [2, 32, 64, 8, 96],
        [2, 32, 64, 8, 2],
        1536 + 64,
    ),
    "NVFP4": (NVFP4, [2, 32, 64, 8, 64], [2, 32, 64, 8, 8], 1024 + 128),
    "MX": (MX, [2, 32, 64, 8, 64], [2, 32, 64, 8, 4], 1024 + 64),
    "NVFP4 of MLA": (
        {**NVFP4, "n_kv_heads": 1, "head_dim": 576, "is_mla": True},
        [1, 32, 64, 1, 288],
        [1, 32, 64, 1, 36],
        288 + 36,
    ),
    "a stage": (
        {"pipeline_parallel_degree": 4, "n_devices": 4},
        [2, 8, 64, 8, 128],
        None,
        4096,
    ),
    "the last stage": (
        {"pipeline_parallel_degree": 4, "stage_id": 3, "total_num_layers": 61},
        [2, 16, 64, 8, 128],
        None,
        4096,
    ),
}


@pytest.mark.parametrize("fields, blocks, scales, bytes_", SIZES.values(), ids=SIZES)
def test_sizes(fields, blocks, scales, bytes_):
    params = make(**fields)
    assert params.shape_per_block == blocks
    assert params.bytes_per_block == bytes_ * blocks[1] * blocks[2]
    if scales:
        assert params.shape_per_scale_block == scales
    else:
        with pytest.raises(
            ValueError, match="without 'kvcache_quant_config' has no scal"
        ):
            _ = params.shape_per_scale_block
        with pytest.raises(
            ValueError, match="without 'kvcache_quant_config' has no scal"
        ):
            _ = params.scales_type


def test_bytes_of_well_known_models():
    assert make().bytes_per_block == 64 * 128 * 1024  # Llama-3-8B: 128 KiB a token
    assert make(n_devices=8, total_num_layers=80).bytes_per_block == 64 * 320 * 1024


def test_names_of_dimensions_and_dtypes():
    shape = ("num_layers", "batch_size", "seq_len", "n_kv_heads", "head_dim")
    assert make().static_cache_shape == shape
    assert (make().dtype_shorthand, make(dtype=np.float32).dtype_shorthand) == (
        "bf16",
        "f32",
    )
    assert make(**NVFP4).dtype_shorthand == "f4E2M1FN"
    assert make(**NVFP4).storage_dtype == np.int8
    assert make(**FP8).storage_dtype == ml_dtypes.float8_e4m3fn


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"total_num_layers": None}, "the shape of a page needs 'total_num_layers'"),
        (
            {"page_size": None, "cache_strategy": MODEL_DEFAULT},
            "the shape of a page needs 'page_size'",
        ),
    ],
)
def test_shapes_need_layers_and_a_page_size(fields, message):
    params = make(**fields)
    with pytest.raises(ValueError, match=message):
        _ = params.shape_per_block
    with pytest.raises(ValueError, match=message):
        _ = params.bytes_per_block


@given(
    st.sampled_from([{"dtype": "bf16"}, FP8, NVFP4, MX, scaled("i8", "f16", 3)]),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 40),
    st.integers(1, 5),
    st.booleans(),
)
def test_bytes_are_those_of_arrays(fields, devices, heads, half_dim, page_size, is_mla):
    params = make(
        **fields,
        n_devices=devices,
        n_kv_heads=heads * devices,
        head_dim=2 * half_dim,
        page_size=page_size,
        total_num_layers=3,
        is_mla=is_mla,
    )
    tensors = [np.empty(params.shape_per_block, params.storage_dtype)]
    if config := params.kvcache_quant_config:
        tensors.append(np.empty(params.shape_per_scale_block, config.scale_dtype))
        groups = params.shape_per_scale_block[-1]
        granularity = config.quantization_granularity
        assert groups == len(range(0, params.head_dim, granularity))
    assert params.bytes_per_block == devices * sum(tensor.nbytes for tensor in tensors)
    assert params.n_kv_heads_per_device == (1 if is_mla else heads)


@given(st.integers(1, 200), st.integers(1, 20))
def test_stages_divide_the_layers(layers, degree):
    stages = [
        make(total_num_layers=layers, pipeline_parallel_degree=degree, stage_id=stage)
        for stage in range(degree)
    ]
    assert list(itertools.chain(*(stage.layers for stage in stages))) == list(
        range(layers)
    )
    for stage in stages:
        assert stage.n_kv_heads_per_device == 8
        assert stage.n_layers_per_stage == max(layers // degree, 1)
        assert stage.shape_per_block[1] == max(len(stage.layers), 1)


@given(st.integers(1, 64), st.integers(1, 64))
def test_devices_divide_the_heads(heads, devices):
    if heads > devices and heads % devices:
        with pytest.raises(ValueError, match="to be a multiple of 'n_devices'"):
            make(n_kv_heads=heads, n_devices=devices)
        return
    params = make(n_kv_heads=heads, n_devices=devices)
    assert params.n_kv_heads_per_device * devices == max(heads, devices)


def test_layers_need_their_number_and_the_stage():
    assert make().layers == range(32)
    with pytest.raises(ValueError, match="layers of a cache need 'total_num_layers'"):
        _ = make(total_num_layers=None).layers
    with pytest.raises(ValueError, match="the layers of a stage need 'stage_id'"):
        _ = make(pipeline_parallel_degree=2).layers
    assert make(total_num_layers=None).n_layers_per_stage is None


def test_host_blocks_fill_the_swap_space():
    assert make(**SWAPPING).n_host_blocks == (4 << 30) // (8 << 20)
    assert make(**{**SWAPPING, "n_devices": 8}).n_host_blocks == 512
    assert make(host_kvcache_swap_space_gb=4).n_host_blocks == 0
    one = 8 / 1024
    assert make(**{**SWAPPING, "host_kvcache_swap_space_gb": one}).n_host_blocks == 1
    params = make(**{**SWAPPING, "host_kvcache_swap_space_gb": one * 0.999})
    message = "to hold at least one page of 8388608 bytes, got 8380219 bytes"
    with pytest.raises(ValueError, match=message):
        _ = params.n_host_blocks
