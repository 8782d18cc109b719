"""Tests of parameters of a cache: their rules, and derived values."""

import copy
import dataclasses
import inspect
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
from kvcache import KVCacheParams, KVCacheQuantizationConfig, KVCacheStrategy, reach

# --- Rules ------------------------------------------------------------------------

# Valid fields, and invalid ones with a part of the message.
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
        {"host_kvcache_swap_space_gb": 2**33 - 1},
        {"host_kvcache_swap_space_gb": 10**400},
        "expects 'host_kvcache_swap_space_gb' to be positive and finite, got 10000",
    ),
    (
        {"host_kvcache_swap_space_gb": 2**33 - 1},
        {"host_kvcache_swap_space_gb": 1e300},
        r"expects 'host_kvcache_swap_space_gb' to be below 2\^33, got 1e.300",
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
    ({"dtype": np.int64}, {"dtype": np.bool_}, "without scales .*, got i1"),
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
    with pytest.raises(ValueError, match=f"expects '{name}' to be positive, got {value}"):
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
def test_dtypes_match_arrays(value):
    with pytest.raises(TypeError, match="'dtype': expects a dtype of array elements"):
        make(dtype=value)
    with pytest.raises(TypeError, match="'scale_dtype': expects a dtype of array elem"):
        KVCacheQuantizationConfig(scale_dtype=value)


@pytest.mark.parametrize("value", ["block", "", [], 1])
def test_strategies_are_known(value):
    message = "'cache_strategy' to be one of 'model_default', 'continuous', 'paged', got"
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
        ({"token_granularity": 0}, ValueError, "'token_granularity' to be positive, got 0"),
        ({"zero_point_dtype": 3}, TypeError, "'zero_point_dtype': expects a dtype"),
    ],
)
def test_rules_of_scales(fields, error, message):
    with pytest.raises(error, match=message):
        KVCacheQuantizationConfig(**fields)


@pytest.mark.parametrize(
    "dtype, groups, message",
    [
        (
            "i4",
            ("f16", 32),
            "'zero_point_dtype' for i4, and for no other 'dtype', got None",
        ),
        ("i8", ("f16", 32, "f16"), "for no other 'dtype', got f16 for i8"),
        ("i4", ("f16", 32, "f32"), r"to be 'scale_dtype' \(f16\), got f32"),
        ("i4", ("f8E4M3FN", 32, "f8E4M3FN"), "one of f32, f16, bf16, got f8E4M3FN"),
        ("i8", ("f16", 32, None, 4), "'quantization_granularity' to be 1 .*, got 32"),
        ("i8", ("f16", 1, None, 5), "to divide 'page_size' .*, got 5"),
    ],
)
def test_rules_of_groups(dtype, groups, message):
    with pytest.raises(ValueError, match=message):
        make(dtype=dtype, kvcache_quant_config=KVCacheQuantizationConfig(*groups))


def test_zero_points_follow_the_scales_of_shared_tokens():
    config = KVCacheQuantizationConfig("f16", 1, "f16", token_granularity=32)
    params = make(
        dtype="i4",
        page_size=64,
        head_dim=128,
        total_num_layers=2,
        kvcache_quant_config=config,
    )
    heads = params.n_kv_heads
    assert params.shape_per_block == [2, 2, 64, heads, 64]
    assert params.shape_per_scale_block == [2, 2, 2, heads, 256]
    assert params.bytes_per_block == 2 * 2 * heads * (64 * 64 + 2 * 256 * 2)
    assert KVCacheParams.from_type(params.collection_type, total_num_layers=2) == params


# --- Form -------------------------------------------------------------------------


def test_fields_equal_the_reference():
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
        ("reach", reach.full),
        ("layer_ids", None),
    ]
    assert [(p.name, p.default) for p in parameters] == defaults + ours
    config = KVCacheQuantizationConfig()
    assert (config.scale_dtype, config.quantization_granularity) == (np.float32, 128)


def test_arguments_in_the_order_of_the_reference():
    params = KVCacheParams("bf16", 8, 128, True, True, 4.0, "paged", 64, 8, 2, 1, 32, 8, 16)
    assert params == make(
        **SWAPPING,
        cache_strategy="paged",
        n_devices=8,
        pipeline_parallel_degree=2,
        stage_id=1,
    )
    assert (params.n_kv_heads_per_device, params.n_layers_per_stage) == (8, 16)


def test_default_strategy():
    """The default is paged with a page size, else continuous, as in the reference."""
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


def test_numpy_numbers_become_python_numbers():
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


@pytest.mark.parametrize("fields", [{}, FP8, NVFP4, SWAPPING, {"is_mla": True}], ids=str)
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
