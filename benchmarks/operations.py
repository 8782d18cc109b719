"""Declares the operations of kvcache.ops that benchmarks run."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import kvcache


@dataclass(frozen=True)
class Cache:
    """The format of a cache with one layer; ``scale`` are the arguments of its quantization."""

    dtype: str = "bf16"
    heads: int = 8
    size: int = 128
    page: int = 16
    scale: tuple[Any, ...] = ()
    is_latent: bool = False

    @property
    def params(self) -> kvcache.KVCacheParams:
        config = kvcache.KVCacheQuantizationConfig(*self.scale) if self.scale else None
        return kvcache.KVCacheParams(
            self.dtype, self.heads, self.size, page_size=self.page, total_num_layers=1, kvcache_quant_config=config,
            is_mla=self.is_latent,
        )  # fmt: skip


@dataclass(frozen=True)
class Operation:
    """The operation on a cache, for queries and tokens of bf16.

    Attributes:
        kind: The function of kvcache.ops; ``fused`` is append with norms and rope, and ``copy`` the op of a copy
            from a cache of bf16.
        options: Keywords of the function.
    """

    kind: str
    cache: Cache
    query_heads: int = 32
    options: dict[str, Any] = field(default_factory=dict, hash=False)

    def add(self, **options: Any) -> Operation:
        return dataclasses.replace(self, options={**self.options, **options})

    def make(self, target: str = "cpu") -> Any:
        params, options = self.cache.params, {"target": target, **self.options}
        if self.kind == "attention":
            return kvcache.ops.attention(params, self.query_heads, dtype="bf16", **options)
        if self.kind == "merge_states":
            return kvcache.ops.merge_states(self.query_heads, self.cache.size, dtype="bf16", **options)
        if self.kind == "copy_pages":
            return kvcache.ops.copy_pages(params, **options)
        if self.kind == "fused":
            sizes = dict.fromkeys(("norm", "query_norm", "rope"), self.cache.size)
            return kvcache.ops.append(params, dtype="bf16", query_heads=self.query_heads, **sizes, **options)
        return getattr(kvcache.ops, self.kind)(params, dtype="bf16", **options)

    @property
    def source(self) -> str:
        """The text of a function, for the compiler."""
        if self.kind != "copy":
            return self.make().source
        source, params = dataclasses.replace(self.cache, dtype="bf16", scale=()).params, self.cache.params
        return f"""
      func.func @copy(%from: {source.cache_type}, %to: {params.cache_type}) {{
        kvcache.copy %from to %to : {source.cache_type}, {params.cache_type}
        return
      }}"""
