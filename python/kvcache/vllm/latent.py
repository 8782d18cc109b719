# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The backend of attention with latent rows: MLA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from vllm.config import get_current_vllm_config
from vllm.model_executor.layers.attention.mla_attention import (
    MLACommonBackend,
    MLACommonDecodeMetadata,
    MLACommonImpl,
    MLACommonMetadata,
    MLACommonMetadataBuilder,
    QueryLenSupport,
)
from vllm.v1.attention.backend import AttentionCGSupport, CommonAttentionMetadata

from ..torch.workspaces import Workspaces
from .configurations import Configuration, check_capability, count_query_rows
from .formats import FIELDS, ROW_DTYPES, LayerCache, latent_dtypes
from .options import Options
from .steps import StepMetadata, allocate_ranges, cache_append_inputs


class LatentBackend(MLACommonBackend):
    """The backend ``CUSTOM`` for latent caches."""

    supported_dtypes: ClassVar[list[Any]] = list(ROW_DTYPES)
    supported_kv_cache_dtypes: ClassVar[list[Any]] = latent_dtypes()

    @staticmethod
    def get_name() -> str:
        return "CUSTOM"

    @staticmethod
    def get_impl_cls() -> type[LatentAttention]:
        return LatentAttention

    @staticmethod
    def get_builder_cls() -> type[LatentBuilder]:
        return LatentBuilder

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
        """Returns why rows are not those of ``fp8_ds_mla``, or None."""
        if kv_cache_dtype != FIELDS or (head_size == 576 and dtype == torch.bfloat16):
            return None
        return f"{FIELDS} needs rows of 576 elements of bfloat16, got {head_size} of {dtype}"

    @classmethod
    def supports_batch_invariance(cls) -> bool:
        """Whether results of a sequence are those it has alone."""
        return True


@dataclass
class LatentDecode(MLACommonDecodeMetadata):
    """The metadata of the sequences that attend to latent rows."""

    step: StepMetadata | None = None


class LatentBuilder(MLACommonMetadataBuilder[MLACommonMetadata]):
    """The builder of the metadata of a group of latent layers.

    Sequences with at most ``latent_rows`` new tokens attend to latent rows. Others use
    the backend that vLLM has for prompts.
    """

    _cudagraph_support: ClassVar[AttentionCGSupport] = AttentionCGSupport.UNIFORM_BATCH
    query_len_support: ClassVar[QueryLenSupport] = QueryLenSupport.VARLEN
    reorder_batch_threshold: int

    def __init__(
        self, kv_cache_spec: Any, layer_names: list[str], vllm_config: Any, device: Any
    ) -> None:
        scheduler = vllm_config.scheduler_config
        self._latent_rows = Options.read(vllm_config).latent_rows
        self._workspaces = Workspaces(scheduler.max_num_seqs, device)
        self._layer_names = layer_names
        allocate_ranges(device, scheduler.max_num_batched_tokens)
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)

    def _init_reorder_batch_threshold(self, *args: Any, **kwargs: Any) -> None:
        super()._init_reorder_batch_threshold(*args, **kwargs)
        self.reorder_batch_threshold = max(
            self.reorder_batch_threshold, self._latent_rows
        )

    def _build_decode(
        self,
        block_table_tensor: Any,
        seq_lens_device: Any,
        max_seq_len: int,
        query_start_loc_cpu: Any,
        query_start_loc_device: Any,
        num_decode_tokens: int,
        max_query_len: int,
        dcp_tot_seq_lens_device: Any,
    ) -> LatentDecode:
        step = StepMetadata(
            num_tokens=num_decode_tokens,
            max_query_len=max_query_len,
            max_seq_len=max_seq_len,
            query_start_loc=query_start_loc_device,
            seq_lens=seq_lens_device,
            block_table=block_table_tensor,
            causal=True,
            workspaces=self._workspaces,
        )
        return LatentDecode(
            block_table=block_table_tensor,
            seq_lens=seq_lens_device,
            dcp_tot_seq_lens=dcp_tot_seq_lens_device,
            step=step,
        )

    def build_for_cudagraph_capture(
        self, common_attn_metadata: CommonAttentionMetadata
    ) -> MLACommonMetadata:
        """Builds metadata, after each layer ran a step."""
        layers = self.vllm_config.compilation_config.static_forward_context
        for name in self._layer_names:
            layers[name].impl.prepare(layers[name], self._workspaces)
        return super().build_for_cudagraph_capture(common_attn_metadata)


class LatentAttention(MLACommonImpl[MLACommonMetadata]):
    """The attention of a latent layer."""

    supports_pcp = False

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        scale: float,
        num_kv_heads: int,
        alibi_slopes: list[float] | None,
        sliding_window: int | None,
        kv_cache_dtype: str,
        logits_soft_cap: float | None,
        attn_type: str,
        kv_sharing_target_layer_name: str | None,
        **latent: Any,
    ) -> None:
        super().__init__(
            num_heads,
            head_size,
            scale,
            num_kv_heads,
            alibi_slopes,
            sliding_window,
            kv_cache_dtype,
            logits_soft_cap,
            attn_type,
            kv_sharing_target_layer_name,
            **latent,
        )
        self.supports_quant_query_input = False
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
            value_dim=self.kv_lora_rank,
            latent_rope=self.qk_rope_head_dim or None,
        )
        self._cache: LayerCache | None = None
        self._tensor: Any = None

    def prepare(self, layer: Any, workspaces: Workspaces) -> None:
        """Runs a step of a token that is not stored.

        So graphs are captured after kernels are loaded and memory is allocated.
        """
        cache = layer.kv_cache
        if self._is_prepared or not cache.numel():
            return
        sizes = (1, self.num_heads, self.kv_lora_rank + self.qk_rope_head_dim)
        queries = torch.zeros(sizes, dtype=self._row_dtype, device=cache.device)
        row, rope = queries[:, :1].split([self.kv_lora_rank, self.qk_rope_head_dim], -1)
        slots = torch.full((1,), -1, dtype=torch.int64, device=cache.device)
        scale = torch.ones((), dtype=torch.float32, device=cache.device)
        self.do_kv_cache_update(
            row[:, 0], rope, cache, slots, self.kv_cache_dtype, scale
        )
        step = StepMetadata.single(workspaces, cache.device)
        pair = queries.split([self.kv_lora_rank, self.qk_rope_head_dim], -1)
        self._attend(tuple(pair), cache, step, layer)
        self._is_prepared = True

    def _view(self, kv_cache: Any) -> LayerCache:
        if self._cache is None or self._tensor.data_ptr() != kv_cache.data_ptr():
            self._cache = LayerCache.from_latent(kv_cache, self.kv_cache_dtype)
            self._tensor = kv_cache
            self._append_inputs = cache_append_inputs(self._cache)
        return self._cache

    def do_kv_cache_update(
        self,
        kv_c_normed: Any,
        k_pe: Any,
        kv_cache: Any,
        slot_mapping: Any,
        kv_cache_dtype: str,
        k_scale: Any,
        skip_scale: bool = False,
    ) -> None:
        """Writes latent rows, [tokens, rank] and [tokens, 1, rope], to their slots."""
        slots = slot_mapping.flatten()
        rows = min(kv_c_normed.shape[0], slots.shape[0])
        if not rows or not kv_cache.numel():
            return
        cache = self._view(kv_cache)
        more: dict[str, Any] = {}
        if self._configuration.has_static_scales:
            more["key_scale"] = k_scale.reshape(1)
        if self.qk_rope_head_dim:
            more["latent_rope"] = k_pe.view(-1, 1, self.qk_rope_head_dim)[:rows]
        self._configuration.make_append(cache)(
            self._append_inputs(rows),
            0,
            kv_c_normed[:rows, None],
            slots=slots[:rows],
            **more,
        )

    def forward_mqa(
        self,
        q: Any,
        kv_c_and_k_pe_cache: Any,
        attn_metadata: MLACommonMetadata,
        layer: Any,
    ) -> tuple[Any, Any]:
        """Attends to latent rows.

        Args:
            q: The queries, [tokens, heads, rank + rope], or a pair of both parts.
            kv_c_and_k_pe_cache: The cache, [pages, page_size, rank + rope], or with
                the bytes of a row of ``fp8_ds_mla``.
            attn_metadata: The metadata of ``LatentBuilder``.
            layer: The layer, with its scale.

        Returns:
            The outputs, [tokens, heads, rank], and None for their logarithms.
        """
        decode = attn_metadata.decode
        assert isinstance(decode, LatentDecode) and decode.step is not None
        return self._attend(q, kv_c_and_k_pe_cache, decode.step, layer), None

    def _attend(self, q: Any, kv_cache: Any, step: StepMetadata, layer: Any) -> Any:
        cache = self._view(kv_cache)
        queries, rope = _split_queries(q)
        operation = self._configuration.make_attention(
            cache, True, query_rope=None if rope is None else rope.shape[-1]
        )
        out = queries.new_empty((*queries.shape[:2], self.kv_lora_rank))
        more: dict[str, Any] = {} if rope is None else {"q_rope": rope}
        if self._configuration.has_static_scales:
            more["key_scale"] = layer._k_scale_float
        operation(
            step.inputs(cache),
            0,
            queries,
            out=out,
            scale=self.scale,
            kv_lengths=step.seq_lens,
            workspace=step.workspaces.take(operation, step.batch),
            **more,
        )
        return out


_ROW_BYTES = 16
"""The bytes that distances of rows are multiples of on a GPU."""


def _split_queries(q: Any) -> tuple[Any, Any]:
    """The arrays of queries; the second is None if the first has all elements.

    Joins both parts only if kernels of a GPU cannot read them where they are.
    """
    if not isinstance(q, tuple):
        return q, None
    if not q[1].shape[-1]:
        return q[0], None
    if all(part.device.type == "cpu" or _is_aligned(part) for part in q):
        return q
    return torch.cat(q, -1), None


def _is_aligned(rows: Any) -> bool:
    """Whether heads of rows begin at multiples of 16 bytes, and are contiguous."""
    places = rows.data_ptr(), *(s * rows.itemsize for s in rows.stride()[:-1])
    return rows.stride(-1) == 1 and all(place % _ROW_BYTES == 0 for place in places)
