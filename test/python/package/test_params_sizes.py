"""Tests of sizes derived from parameters: heads, layers, pages and bytes."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from caches import FP8, MODEL_DEFAULT, MX, NVFP4, SWAPPING, make, scaled
from hypothesis import given
from hypothesis import strategies as st

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
def test_bytes_equal_bytes_of_arrays(fields, devices, heads, half_dim, page_size, is_mla):
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
