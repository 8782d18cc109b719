# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A backend in PyTorch on the same cache, slow and simple: a model for tests."""

from __future__ import annotations

from typing import Any

import torch
from vllm.model_executor.layers.attention.mla_attention import (
    MLACommonImpl,
    MLACommonMetadata,
)
from vllm.v1.attention.backend import AttentionImpl, AttentionType

from ..backend import Backend as CustomBackend
from ..formats import FIELDS, SCALE_BYTES, has_packed_scales, has_static_scales
from ..latent import LatentBackend as CustomLatentBackend
from ..steps import StepMetadata

_MAXIMA = {torch.int8: 127.0, torch.float8_e4m3fn: 448.0}
_DTYPES = {
    "fp8": torch.float8_e4m3fn,
    "fp8_e4m3": torch.float8_e4m3fn,
    "fp8_e5m2": torch.float8_e5m2,
    "fp8_per_token_head": torch.float8_e4m3fn,
    "int8_per_token_head": torch.int8,
}


class Backend(CustomBackend):
    """The reference: it has the name of a backend that vLLM uses for images only."""

    @staticmethod
    def get_name() -> str:
        return "TORCH_SDPA"

    @staticmethod
    def get_impl_cls() -> type[Attention]:
        return Attention


class Attention(AttentionImpl[StepMetadata]):
    """The attention of a layer, computed in f32."""

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
        self.num_heads, self.head_size, self.scale = num_heads, head_size, scale
        self.num_kv_heads = num_kv_heads or num_heads
        self.window, self.soft_cap = sliding_window, logits_soft_cap or None
        self.sinks, self.kv_cache_dtype = sinks, kv_cache_dtype
        self.slopes = None if alibi_slopes is None else torch.tensor(alibi_slopes)

    # --- Formats -----------------------------------------------------------------------

    def _encode(self, rows: Any, scale: float) -> Any:
        """Encodes keys or values as elements of the cache."""
        dtype = _DTYPES.get(self.kv_cache_dtype, rows.dtype)
        if has_static_scales(self.kv_cache_dtype):
            return (rows.float() / scale).to(dtype).view(torch.uint8)
        if not has_packed_scales(self.kv_cache_dtype):
            return rows
        most = _MAXIMA[dtype]
        scales = rows.float().abs().amax(-1, keepdim=True) / most
        scaled = rows.float() / scales.clamp(min=1e-30)
        elements = (scaled.round() if dtype == torch.int8 else scaled).to(dtype)
        return torch.cat([elements.view(torch.uint8), scales.view(torch.uint8)], -1)

    def _decode(self, elements: Any, scale: float) -> Any:
        dtype = _DTYPES.get(self.kv_cache_dtype, elements.dtype)
        if has_static_scales(self.kv_cache_dtype):
            return elements.view(dtype).float() * scale
        if not has_packed_scales(self.kv_cache_dtype):
            return elements.float()
        data, scales = elements[..., :-SCALE_BYTES], elements[..., -SCALE_BYTES:]
        scales = scales.contiguous().view(torch.float32)
        return data.contiguous().view(dtype).float() * scales

    # --- Steps -------------------------------------------------------------------------

    def do_kv_cache_update(
        self, layer: Any, key: Any, value: Any, kv_cache: Any, slot_mapping: Any
    ) -> None:
        """Writes new keys and values to their slots."""
        slots = slot_mapping[: key.shape[0]]
        kept = slots >= 0
        slots, tokens = slots[kept], kv_cache.shape[2]
        scales = layer._k_scale_float, layer._v_scale_float
        encoded = [
            self._encode(rows[: len(kept)][kept], scale)
            for rows, scale in zip((key, value), scales)
        ]
        pairs = torch.cat(encoded, -1).view(kv_cache.dtype)
        kv_cache[slots // tokens, :, slots % tokens] = pairs

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
        """Attends to the cache, one sequence after another."""
        if attn_metadata is None:
            return output.zero_()
        starts = attn_metadata.query_start_loc.tolist()
        for b, length in enumerate(attn_metadata.seq_lens.tolist()):
            rows = slice(starts[b], starts[b + 1])
            pages = attn_metadata.block_table[b, : -(-length // kv_cache.shape[2])]
            tokens = kv_cache[pages.long()].permute(0, 2, 1, 3).flatten(0, 1)[:length]
            keys, values = tokens.chunk(2, -1)
            out = self._attend(
                query[rows].float(),
                self._decode(keys, layer._k_scale_float),
                self._decode(values, layer._v_scale_float),
                attn_metadata.causal,
            )
            if output_scale is not None:
                most = torch.finfo(output.dtype).max
                out = (out / output_scale).clamp(-most, most)
            output[rows] = out.to(output.dtype)
        return output

    def _attend(self, query: Any, keys: Any, values: Any, causal: bool) -> Any:
        """Attends with queries [rows, heads, n] to keys and values [tokens, heads, n]."""
        group = self.num_heads // self.num_kv_heads
        keys, values = (each.repeat_interleave(group, 1) for each in (keys, values))
        scores = torch.einsum("qhd,khd->hqk", query, keys) * self.scale
        if self.soft_cap:
            scores = self.soft_cap * torch.tanh(scores / self.soft_cap)
        at = torch.arange(len(keys))
        own = at[len(keys) - len(query) :, None]
        if self.slopes is not None:
            scores = scores + self.slopes[:, None, None] * (at - own)
        seen = at <= own if causal else torch.ones(len(query), len(keys), dtype=bool)
        if self.window:
            seen = seen & (at > own - self.window)
        scores = scores.masked_fill(~seen, -torch.inf)
        if self.sinks is not None:
            sinks = self.sinks.float()[:, None, None].expand(-1, len(query), 1)
            scores = torch.cat([scores, sinks], -1)
        probs = scores.softmax(-1)[..., : len(keys)]
        return torch.einsum("hqk,khd->qhd", probs, values)


# --- Latent rows -----------------------------------------------------------------------

_GROUP, _CONTENT = 128, 512


def _encode_fields(rows: Any) -> Any:
    """Encodes latent rows as vLLM's ``concat_and_cache_ds_mla`` does: a scale is the
    largest magnitude of 128 elements over 448.
    """
    content, rope = rows[:, :_CONTENT].float(), rows[:, _CONTENT:].to(torch.bfloat16)
    groups = content.unflatten(-1, (-1, _GROUP))
    scales = groups.abs().amax(-1) / _MAXIMA[torch.float8_e4m3fn]
    scales = torch.where(scales > 0, scales, 1.0)
    elements = (groups / scales[..., None]).flatten(1).to(torch.float8_e4m3fn)
    parts = elements, scales, rope.contiguous()
    return torch.cat([part.view(torch.uint8) for part in parts], -1)


def _decode_fields(rows: Any) -> Any:
    """Decodes such rows to f32."""
    content, rest = rows[:, :_CONTENT], rows[:, _CONTENT:]
    scales, rope = rest.split([4 * (_CONTENT // _GROUP), rest.shape[1] - 16], -1)
    groups = content.contiguous().view(torch.float8_e4m3fn).float()
    scales = scales.contiguous().view(torch.float32).repeat_interleave(_GROUP, -1)
    return torch.cat([groups * scales, rope.contiguous().view(torch.bfloat16).float()], -1)


class LatentBackend(CustomLatentBackend):
    """The reference for latent rows."""

    @staticmethod
    def get_name() -> str:
        return "TORCH_SDPA"

    @staticmethod
    def get_impl_cls() -> type[LatentAttention]:
        return LatentAttention


class LatentAttention(MLACommonImpl[MLACommonMetadata]):
    """The attention of a latent layer, computed in f32."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.supports_quant_query_input = False

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
        """Writes latent rows to their slots."""
        slots, tokens = slot_mapping.flatten(), kv_cache.shape[1]
        rows = torch.cat([kv_c_normed, k_pe.flatten(1)], -1)[: len(slots)]
        kept = slots >= 0
        slots, rows = slots[kept], rows[kept]
        if has_static_scales(kv_cache_dtype):
            rows = (rows.float() / k_scale).to(_DTYPES[kv_cache_dtype])
        if kv_cache_dtype == FIELDS:
            rows = _encode_fields(rows)
        kv_cache.view(rows.dtype)[slots // tokens, slots % tokens] = rows

    def forward_mqa(
        self, q: Any, kv_c_and_k_pe_cache: Any, attn_metadata: Any, layer: Any
    ) -> tuple[Any, Any]:
        """Attends to latent rows, one sequence after another."""
        queries = torch.cat(q, -1) if isinstance(q, tuple) else q
        step, cache = attn_metadata.decode.step, kv_c_and_k_pe_cache
        if has_static_scales(self.kv_cache_dtype):
            cache = cache.view(_DTYPES[self.kv_cache_dtype])
        starts = step.query_start_loc.tolist()
        out = queries.new_empty((*queries.shape[:2], self.kv_lora_rank))
        for b, length in enumerate(step.seq_lens.tolist()):
            rows = slice(starts[b], starts[b + 1])
            pages = step.block_table[b, : -(-length // cache.shape[1])].long()
            stored = cache[pages].flatten(0, 1)[:length]
            is_fields = self.kv_cache_dtype == FIELDS
            keys = _decode_fields(stored) if is_fields else stored.float()
            if has_static_scales(self.kv_cache_dtype):
                keys = keys * layer._k_scale_float
            scores = torch.einsum("qhd,kd->hqk", queries[rows].float(), keys)
            at = torch.arange(length)
            own = at[length - (rows.stop - rows.start) :, None]
            scores = (scores * self.scale).masked_fill(at > own, -torch.inf)
            values = keys[:, : self.kv_lora_rank]
            out[rows] = torch.einsum("hqk,kd->qhd", scores.softmax(-1), values).to(
                out.dtype
            )
        return out, None
