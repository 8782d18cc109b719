# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The checks of a model runner: what the backend supports, asked once."""

from __future__ import annotations

from typing import Any

import torch
from sglang.srt.layers.radix_attention import AttentionType, RadixAttention
from sglang.srt.mem_cache.memory_pool import MLATokenToKVPool
from sglang.srt.runtime_context import get_exec, get_parallel, get_spec

_OLDEST_CAPABILITY = (8, 0)
_DRAFT_ALGORITHMS = (None, "EAGLE", "EAGLE3", "STANDALONE")
"""The values of ``--speculative-algorithm`` whose drafts may be chains."""


def check_runner(runner: Any) -> None:
    """Raises ``NotImplementedError`` for a runner with an unsupported option."""
    _check_device(runner.device)
    if runner.model_config.is_encoder_decoder:
        raise NotImplementedError(
            "kvcache expects a decoder, got an encoder-decoder model, whose layers have "
            "cross-attention"
        )
    if runner.is_draft_worker:
        raise NotImplementedError(
            "kvcache expects another backend for a draft model: add "
            "--speculative-draft-attention-backend triton"
        )
    _check_drafts()
    if get_parallel().attn_dcp_size > 1:
        raise NotImplementedError(
            f"kvcache expects --dcp-size to be 1, got {get_parallel().attn_dcp_size}"
        )
    if get_exec().dllm.dllm_algorithm is not None:
        raise NotImplementedError("kvcache expects no --dllm-algorithm")
    if runner.kv_index_translator.is_translating:
        raise NotImplementedError("kvcache expects no --enable-unified-memory")
    for name, layer in runner.model.named_modules():
        if isinstance(layer, RadixAttention):
            check_layer(name, layer)
            if isinstance(runner.token_to_kv_pool, MLATokenToKVPool):
                _check_latent_scale(name, layer)


def _check_device(device: str) -> None:
    if device == "cpu":
        return
    if device != "cuda" or torch.version.hip is not None:
        raise NotImplementedError(
            f"kvcache has kernels for NVIDIA's GPUs and for CPUs, got {device!r}"
        )
    capability = torch.cuda.get_device_capability()
    if capability < _OLDEST_CAPABILITY:
        raise NotImplementedError(
            f"kvcache expects compute capability {_OLDEST_CAPABILITY} or newer, got "
            f"{capability}"
        )


def _check_drafts() -> None:
    spec = get_spec()
    if spec.speculative_algorithm not in _DRAFT_ALGORITHMS:
        raise NotImplementedError(
            "kvcache expects --speculative-algorithm to be EAGLE, EAGLE3 or STANDALONE, "
            f"got {spec.speculative_algorithm}"
        )
    if (spec.speculative_eagle_topk or 1) > 1:
        raise NotImplementedError(
            "kvcache expects chains of drafts, with --speculative-eagle-topk 1, got "
            f"{spec.speculative_eagle_topk}"
        )


def _check_latent_scale(name: str, layer: Any) -> None:
    """SGLang stores latent rows of prompts itself, and ignores a scale."""
    if layer.k_scale_float not in (None, 1.0):
        raise NotImplementedError(
            f"kvcache expects the scale of latent rows to be 1, got "
            f"{layer.k_scale_float}, in layer {name}"
        )


def check_layer(name: str, layer: Any) -> None:
    """Raises ``NotImplementedError`` for an unsupported layer, with its name."""
    if layer.is_cross_attention:
        reason = "no cross-attention"
    elif layer.attn_type != AttentionType.DECODER:
        reason = f"the attention type decoder, got {layer.attn_type.value}"
    elif layer.logit_cap and layer.logit_capping_method != "tanh":
        reason = f"a cap of logits by tanh, got {layer.logit_capping_method!r}"
    elif layer.xai_temperature_len > 0:
        reason = "no temperature by length"
    elif layer.use_irope:
        reason = "no chunks of attention"
    else:
        return
    raise NotImplementedError(f"kvcache expects {reason}, in layer {name}")
