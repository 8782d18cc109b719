"""Types and attributes that several tests use."""

from kvcache.ir import Attribute, PagedCacheType, ParamsAttr, TileType, Type

KV = ParamsAttr(num_heads=8, head_size=128)
KV_TEXT = "#kvcache.params<num_heads = 8, head_size = 128>"
PAGED = PagedCacheType("bf16", KV, page_size=64)
FP8 = PagedCacheType("f8E4M3FN", KV, page_size=64, scale="f32", granularity=128)
TILE = TileType(64, 128, "bf16", "swizzle_128b")


def get_base(value):
    return Type if isinstance(value, Type) else Attribute
