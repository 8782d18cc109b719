# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The backend of attention with keys and values: MHA, GQA and MQA."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from vllm.config import get_current_vllm_config
from vllm.model_executor.layers.quantization.utils.quant_utils import (
    kFp8StaticTensorSym,
)
from vllm.v1.attention.backend import AttentionBackend, AttentionImpl, AttentionType

from ..torch.workspaces import Workspaces
from .configurations import Configuration, check_capability, count_query_rows
from .formats import (
    FP8_NAMES,
    ROW_DTYPES,
    LayerCache,
    cache_dtypes,
    check_width,
    customize_spec,
    has_packed_scales,
)
from .options import Options
from .steps import StepBuilder, StepMetadata, cache_append_inputs


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

    @classmethod
    def supports_compute_capability(cls, capability: Any) -> bool:
        return check_capability(capability)

    @classmethod
    def supports_combination(
        cls,
        head_size: int,
        dtype: Any,
        kv_cache_dtype: Any,
        block_size: int | None,
        use_mla: bool,
        has_sink: bool,
        use_sparse: bool,
        use_mm_prefix: bool,
        device_capability: Any,
    ) -> str | None:
        """Returns why packed scales are not aligned, or None."""
        if not has_packed_scales(kv_cache_dtype or "auto") or head_size % 4 == 0:
            return None
        return f"{kv_cache_dtype} needs a head size of a multiple of 4, got {head_size}"

    @classmethod
    def customize_spec(cls, spec: Any) -> Any:
        """Adds the bytes of packed scales to a token of a page."""
        return customize_spec(spec)


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
        self._row_dtype = torch.get_default_dtype()
        self._is_prepared = False
        config = get_current_vllm_config()
        self._configuration = Configuration(
            options=Options.read(config),
            dtype=ROW_DTYPES[self._row_dtype],
            cache_dtype=kv_cache_dtype,
            query_heads=num_heads,
            query_rows=count_query_rows(config),
            window=sliding_window,
            soft_cap=logits_soft_cap or None,
            sinks=sinks is not None,
            alibi=alibi_slopes is not None,
        )
        self._cache: LayerCache | None = None
        self._tensor: Any = None
        self._output_scale: float | None = None

    def fused_output_quant_supported(self, quant_key: Any) -> bool:
        """Whether outputs may be quantized so: to fp8, by one scale of the layer."""
        return bool(quant_key == kFp8StaticTensorSym)

    def process_weights_after_loading(self, act_dtype: torch.dtype) -> None:
        """Converts sinks to f32: kernels read no others."""
        if self.sinks is not None:
            self.sinks = self.sinks.detach().to(torch.float32).contiguous()

    def prepare(self, layer: Any, workspaces: Workspaces) -> None:
        """Runs a step of a token that is not stored.

        So graphs are captured after kernels are loaded and memory is allocated.
        """
        cache = layer.kv_cache
        if self._is_prepared or not cache.numel():
            return
        sizes = (1, self.num_heads + 2 * self.num_kv_heads, self.head_size)
        rows = torch.zeros(sizes, dtype=self._row_dtype, device=cache.device)
        q, k, v = rows.split([self.num_heads, self.num_kv_heads, self.num_kv_heads], 1)
        slots = torch.full((1,), -1, dtype=torch.int64, device=cache.device)
        self.do_kv_cache_update(layer, k, v, cache, slots)
        step = StepMetadata.single(workspaces, cache.device)
        self.forward(layer, q, k, v, cache, step, output=torch.empty_like(q))
        if (scale := self._output_scale) is not None:
            out = torch.empty_like(q, dtype=kFp8StaticTensorSym.dtype)
            self.forward(layer, q, k, v, cache, step, output=out, output_scale=scale)
        self._is_prepared = True

    def _view(self, kv_cache: Any) -> LayerCache:
        """The layer's cache; vLLM binds one tensor to a layer, and rarely another."""
        if self._cache is None or self._tensor is not kv_cache:
            self._cache = LayerCache.from_pairs(kv_cache, self.kv_cache_dtype)
            check_width(self._cache, self.head_size)
            self._tensor = kv_cache
            self._append_inputs = cache_append_inputs(self._cache)
            if self._slopes is not None:
                slopes = torch.tensor(self._slopes, dtype=torch.float32)
                self._arrays = {"slopes": slopes.to(kv_cache.device)}
        return self._cache

    def _scales(self, layer: Any) -> dict[str, Any]:
        if not self._configuration.has_static_scales:
            return {}
        return {
            "key_scale": layer._k_scale_float,
            "value_scale": layer._v_scale_float,
        }

    def _read_output_scale(self, scale: Any) -> float | None:
        """Reads the scale once, in a profiling run: graphs are captured later, when a
        GPU may not be read.
        """
        if scale is None:
            return None
        if self._output_scale is None:
            self._output_scale = float(scale)
        return self._output_scale

    def do_kv_cache_update(
        self, layer: Any, key: Any, value: Any, kv_cache: Any, slot_mapping: Any
    ) -> None:
        """Writes new keys and values, [tokens, heads, elements], to their slots."""
        rows = min(key.shape[0], slot_mapping.shape[0])
        if not rows:
            return
        cache = self._view(kv_cache)
        self._configuration.make_append(cache)(
            self._append_inputs(rows),
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
        """Attends to the cache: ``output``, [tokens, heads, elements], is written.

        With ``output_scale``, a tensor of one f32, outputs of fp8 are divided by it.
        """
        if output_block_scale is not None:
            raise NotImplementedError("kvcache expects no scales of blocks of outputs")
        if (output_scale is not None) != (output.dtype in FP8_NAMES):
            raise NotImplementedError(
                "kvcache expects a scale of outputs exactly for fp8, got "
                f"{'one' if output_scale is not None else 'none'} for {output.dtype}"
            )
        out_scale = self._read_output_scale(output_scale)
        if attn_metadata is None:  # a profiling run
            return output.zero_()
        rows = attn_metadata.num_tokens
        cache = self._view(kv_cache)
        operation = self._configuration.make_attention(
            cache, attn_metadata.causal, out_dtype=FP8_NAMES.get(output.dtype)
        )
        operation(
            attn_metadata.inputs(cache),
            0,
            query[:rows],
            out=output[:rows],
            scale=self.scale,
            kv_lengths=attn_metadata.seq_lens,
            sinks=self.sinks,
            workspace=attn_metadata.workspaces.take(operation, attn_metadata.batch),
            out_scale=out_scale,
            **self._scales(layer),
            **self._arrays,
        )
        return output
