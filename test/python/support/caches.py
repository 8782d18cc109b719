"""Parameters of caches for tests."""

import warnings

from kvcache import KVCacheParams, KVCacheQuantizationConfig, KVCacheStrategy

CONTINUOUS = KVCacheStrategy.CONTINUOUS
MODEL_DEFAULT = KVCacheStrategy.MODEL_DEFAULT
BASE = {
    "dtype": "bf16",
    "n_kv_heads": 8,
    "head_dim": 128,
    "page_size": 64,
    "total_num_layers": 32,
}
PREFIXES = {"enable_prefix_caching": True}
SWAPPING = {
    **PREFIXES,
    "enable_kvcache_swapping_to_host": True,
    "host_kvcache_swap_space_gb": 4,
}


def scaled(dtype, scale_dtype="f32", granularity=128, *groups):
    """Fields of a quantized cache."""
    config = KVCacheQuantizationConfig(scale_dtype, granularity, *groups)
    return {"dtype": dtype, "kvcache_quant_config": config}


FP8 = scaled("f8E4M3FN")
NVFP4 = scaled("f4E2M1FN", "f8E4M3FN", 16)
MX = scaled("f4E2M1FN", "f8E8M0FNU", 32)


def make(**fields):
    """Makes parameters of ``BASE`` with some other fields."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return KVCacheParams(**{**BASE, **fields})
