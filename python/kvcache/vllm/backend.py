# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The backend of attention with keys and values: MHA, GQA and MQA."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from vllm.config import get_current_vllm_config
from vllm.logger import init_logger
from vllm.v1.attention.backend import AttentionBackend, AttentionImpl, AttentionType

from .. import ops
from ..cache.params import KVCacheParams
from .formats import (
    ROW_DTYPES,
    LayerCache,
    cache_dtypes,
    has_static_scales,
)
from .options import Options
from .steps import StepBuilder, StepMetadata, Workspaces, append_inputs

_LOGGER = init_logger("vllm.kvcache")


class Backend(AttentionBackend):
    """The backend ``CUSTOM`` for caches of keys and values."""

    supported_dtypes: ClassVar[list[Any]] = list(ROW_DTYPES)
    supported_kv_cache_dtypes: ClassVar[list[Any]] = cache_dtypes()
    forward_includes_kv_cache_update = False

    @staticmethod
    def get_name() -> str:
        return "CUSTOM"

    @staticmethod
    def get_impl_cls() -> type[Attention]:
        return Attention

    @staticmethod
    def get_builder_cls() -> type[StepBuilder]:
        return StepBuilder

    @classmethod
    def supports_sink(cls) -> bool:
        return True

    @classmethod
    def supports_sliding_window(cls) -> bool:
        return True

    @classmethod
    def supports_non_causal(cls) -> bool:
        return True

    @classmethod
    def supports_batch_invariance(cls) -> bool:
        """Whether results of a sequence are those it has alone: splits do not depend on
        the batch.
        """
        return True


@dataclass(frozen=True)
class AttentionOptions:
    """The options of a layer's attention.

    Attributes:
        query_heads: Heads of queries.
        window: The most tokens that a token sees, including itself; None for all.
        soft_cap: The bound of scores; None for no bound.
        sinks: Whether each head has a sink.
        alibi: Whether each head has a slope that ALiBi adds.
        query_rows: The most rows of a decode step: 1, and the drafts.
    """

    query_heads: int
    window: int | None
    soft_cap: float | None
    sinks: bool
    alibi: bool
    query_rows: int


def add_alibi(
    s: Any, sequence: Any, head: Any, query: Any, key: Any, slopes: Any
) -> Any:
    """Adds ALiBi's bias to a score, as a function for ``kvcache.ops.attention``."""
    return s + slopes[head] * (key - query)


@functools.lru_cache(maxsize=None)
def make_append(params: KVCacheParams, target: str, dtype: str, static: bool) -> Any:
    return ops.append(params, target, dtype, static_scales=static, slots="i64")


@functools.lru_cache(maxsize=None)
def make_attention(
    params: KVCacheParams,
    options: Options,
    attention: AttentionOptions,
    dtype: str,
    static: bool,
    causal: bool,
) -> Any:
    """Compiles attention, and logs its configuration once."""
    operation = ops.attention(
        params,
        attention.query_heads,
        causal=causal,
        window=attention.window,
        soft_cap=attention.soft_cap,
        sinks=attention.sinks,
        target=options.target,
        dtype=dtype,
        split_tokens=options.split_tokens or None,
        max_splits=options.max_splits,
        split_rows=attention.query_rows,
        static_scales=static,
        kv_lengths=True,
        score=add_alibi if attention.alibi else None,
        arrays={"slopes": f"f32[{attention.query_heads}]"} if attention.alibi else None,
    )
    _LOGGER.info(
        "kvcache runs attention on %s: %s, %s queries of %s, %s, causal=%s",
        options.target,
        params.cache_type,
        attention.query_heads,
        dtype,
        attention,
        causal,
    )
    return operation


class Attention(AttentionImpl[StepMetadata]):
    """The attention of a layer."""

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        scale: float,
        num_kv_heads: int | None = None,
        alibi_slopes: list[float] | None = None,
        sliding_window: int | None = None,
        kv_cache_dtype: str = "auto",
        logits_soft_cap: float | None = None,
        attn_type: str = AttentionType.DECODER,
        kv_sharing_target_layer_name: str | None = None,
        sinks: Any = None,
    ) -> None:
        if attn_type != AttentionType.DECODER:
            raise NotImplementedError(
                f"kvcache expects 'attn_type' to be decoder, got {attn_type}"
            )
        self.num_heads = num_heads
        self.head_size = head_size
        self.scale = float(scale)
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        self.kv_cache_dtype = kv_cache_dtype
        self.sinks = sinks
        self._slopes = alibi_slopes
        self._arrays: dict[str, Any] = {}
        config = get_current_vllm_config()
        speculative = config.speculative_config
        drafts = speculative.num_speculative_tokens or 0 if speculative else 0
        self._dtype = ROW_DTYPES[torch.get_default_dtype()]
        self._options = Options.read(config)
        self._attention_options = AttentionOptions(
            query_heads=num_heads,
            window=sliding_window,
            soft_cap=logits_soft_cap or None,
            sinks=sinks is not None,
            alibi=alibi_slopes is not None,
            query_rows=1 + drafts,
        )
        self._static = has_static_scales(kv_cache_dtype)
        self._cache: LayerCache | None = None
        self._tensor: Any = None

    def process_weights_after_loading(self, act_dtype: torch.dtype) -> None:
        """Converts sinks to f32: kernels read no others."""
        if self.sinks is not None:
            self.sinks = self.sinks.detach().to(torch.float32).contiguous()

    def prepare(self, kv_cache: Any, workspaces: Workspaces) -> None:
        """Compiles the operations of a step, and allocates its workspace."""
        if kv_cache.numel():
            cache = self._view(kv_cache)
            self._make_append(cache)
            workspaces.take(self._make_attention(cache, True), 1)

    def _view(self, kv_cache: Any) -> LayerCache:
        """The layer's cache; vLLM binds one tensor to a layer, and rarely another."""
        if self._cache is None or self._tensor is not kv_cache:
            self._cache = LayerCache.from_pairs(kv_cache, self.kv_cache_dtype)
            self._tensor = kv_cache
            if self._slopes is not None:
                slopes = torch.tensor(self._slopes, dtype=torch.float32)
                self._arrays = {"slopes": slopes.to(kv_cache.device)}
        return self._cache

    def _make_append(self, cache: LayerCache) -> Any:
        return make_append(cache.params, self._options.target, self._dtype, self._static)

    def _make_attention(self, cache: LayerCache, causal: bool) -> Any:
        options = self._options, self._attention_options
        return make_attention(cache.params, *options, self._dtype, self._static, causal)

    def _scales(self, layer: Any) -> dict[str, float]:
        if not self._static:
            return {}
        return {
            "key_scale": layer._k_scale_float,
            "value_scale": layer._v_scale_float,
        }

    def do_kv_cache_update(
        self, layer: Any, key: Any, value: Any, kv_cache: Any, slot_mapping: Any
    ) -> None:
        """Writes new keys and values, [tokens, heads, elements], to their slots."""
        rows = min(key.shape[0], slot_mapping.shape[0])
        if not rows:
            return
        cache = self._view(kv_cache)
        self._make_append(cache)(
            append_inputs(cache, rows),
            0,
            key[:rows],
            value[:rows],
            slots=slot_mapping[:rows],
            **self._scales(layer),
        )

    def forward(
        self,
        layer: Any,
        query: Any,
        key: Any,
        value: Any,
        kv_cache: Any,
        attn_metadata: StepMetadata | None,
        output: Any = None,
        output_scale: Any = None,
        output_block_scale: Any = None,
    ) -> Any:
        """Attends to the cache: ``output``, [tokens, heads, elements], is written."""
        if output_scale is not None or output_block_scale is not None:
            raise NotImplementedError("kvcache expects no scale of outputs")
        if attn_metadata is None:  # a profiling run
            return output.zero_()
        rows = attn_metadata.num_tokens
        cache = self._view(kv_cache)
        operation = self._make_attention(cache, attn_metadata.causal)
        operation(
            attn_metadata.inputs(cache),
            0,
            query[:rows],
            out=output[:rows],
            scale=self.scale,
            kv_lengths=attn_metadata.seq_lens,
            sinks=self.sinks,
            workspace=attn_metadata.workspaces.take(operation, attn_metadata.batch),
            **self._scales(layer),
            **self._arrays,
        )
        return output
