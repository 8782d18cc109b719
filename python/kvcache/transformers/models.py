# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The models of ``kvcache.transformers``: their caches, and latent attention."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import transformers

from .entries import HEAVY, SPARSE, EntryShape
from .indexing import BLOCKS, INDEXED, IndexShape

_INDEXED_MODELS = ("deepseek_v32", "glm_moe_dsa", "hy_v4")
_LAYERS = ("full_attention", "sliding_attention", "chunked_attention", BLOCKS)
_ENTRY_MODELS = ("deepseek_v4",)
_LATENT_MODELS = ("deepseek_v2", "deepseek_v3", *_INDEXED_MODELS)


@dataclass(frozen=True)
class ModelShape:
    """The rows that a model caches.

    Attributes:
        sources: The layer of the cache that each layer of the model attends to.
        chunks: The tokens per chunk of each layer; None for a layer without chunks.
        kv_heads: The number of heads of keys and values; 1 for a latent cache.
        head_dim: The number of elements of a head, or of a latent row.
        rank: The number of latent elements of a row; None for keys and values.
        index: The index keys of a model that chooses tokens; None for others.
        entries: The compressed entries of a model; None for others.
    """

    sources: tuple[int, ...]
    chunks: tuple[int | None, ...]
    kv_heads: int
    head_dim: int
    rank: int | None
    index: IndexShape | None = None
    entries: EntryShape | None = None

    @classmethod
    def of(cls, config: Any) -> ModelShape:
        """The shape of the model of a configuration.

        Raises ``ValueError`` for layers other than attention to all tokens, a window or
        a chunk.
        """
        kind = config.model_type
        layers = {*_LAYERS}
        layers |= {INDEXED} if kind in _INDEXED_MODELS else set()
        layers |= {SPARSE, HEAVY} if kind in _ENTRY_MODELS else set()
        if others := sorted(set(getattr(config, "layer_types", None) or ()) - layers):
            raise ValueError(
                f"a PagedCache has no layers of {', '.join(others)} ({kind})"
            )
        if getattr(config, "is_encoder_decoder", False):
            raise ValueError(f"a PagedCache has no cross attention ({kind})")
        if getattr(config, "kv_lora_rank", None) is not None:
            if kind not in _LATENT_MODELS:
                known = ", ".join(_LATENT_MODELS)
                raise ValueError(
                    f"a PagedCache has latent rows of {known} only, not {kind}"
                )
            rank = int(config.kv_lora_rank)
            width = rank + int(config.qk_rope_head_dim)
            sources, chunks = _find_sources(config), _find_chunks(config)
            return cls(sources, chunks, 1, width, rank, IndexShape.of(config))
        heads = int(config.num_attention_heads)
        kv_heads = getattr(config, "num_key_value_heads", None) or heads
        head_dim = getattr(config, "head_dim", None) or config.hidden_size // heads
        sources, chunks = _find_sources(config), _find_chunks(config)
        index, entries = IndexShape.of(config), EntryShape.of(config)
        return cls(sources, chunks, int(kv_heads), int(head_dim), None, index, entries)

    @property
    def layers(self) -> int:
        """The number of layers of the model."""
        return len(self.sources)

    @property
    def cached_layers(self) -> int:
        """The number of layers of the cache."""
        return max(self.sources) + 1

    @property
    def default_page_size(self) -> int:
        """The tokens of a page: 64, or more so that it has whole entries."""
        return 64 if self.entries is None else math.lcm(64, self.entries.page_multiple)

    @property
    def value_dim(self) -> int:
        """The number of elements of a row that are its value."""
        return self.head_dim if self.rank is None else self.rank

    def check_rows(self, layer: int, keys: Any, values: Any) -> None:
        """Raises ``ValueError`` for keys or values of another shape."""
        dims = self.head_dim, self.head_dim
        if self.rank is not None:
            dims = self.rank, self.head_dim - self.rank
        for name, rows, dim in zip(
            ("keys", "values"), (keys, values), dims, strict=True
        ):
            if rows.dim() != 4 or (rows.shape[1], rows.shape[3]) != (
                self.kv_heads,
                dim,
            ):
                raise ValueError(
                    f"layer {layer}: expects {name} of [batch, {self.kv_heads}, tokens, "
                    f"{dim}], got {list(rows.shape)}"
                )


def _find_sources(config: Any) -> tuple[int, ...]:
    """The layer whose keys and values each layer uses: an earlier one if it shares.

    The last layers share those of the last layer of their type that has its own.
    """
    layers = int(config.num_hidden_layers)
    own = layers - int(getattr(config, "num_kv_shared_layers", 0) or 0)
    if own == layers:
        return tuple(range(layers))
    kinds = list(config.layer_types)
    last = {kind: index for index, kind in enumerate(kinds[:own])}
    if missing := sorted(set(kinds) - set(last)):
        raise ValueError(
            f"expects a layer of {', '.join(missing)} with keys and values of its own "
            f"({config.model_type})"
        )
    return *range(own), *(last[kind] for kind in kinds[own:])


def _find_chunks(config: Any) -> tuple[int | None, ...]:
    """The tokens per chunk of each layer; None for a layer without chunks."""
    kinds = getattr(config, "layer_types", None) or [""] * int(config.num_hidden_layers)
    size = getattr(config, "attention_chunk_size", None)
    return tuple(size if kind == "chunked_attention" else None for kind in kinds)


def find_config(model: Any) -> Any:
    """The configuration of the text of a model, or of one of its configurations.

    Raises ``TypeError`` for other objects.
    """
    config = model
    if isinstance(model, transformers.PreTrainedModel):
        config = model.config
    if not isinstance(config, transformers.PreTrainedConfig):
        raise TypeError(
            "expects 'config' to be a model of transformers or its configuration, got "
            f"{type(model).__name__}"
        )
    return config.get_text_config(decoder=True)


def check_attention(config: Any) -> None:
    """Raises ``ValueError`` for a model whose attention can't be replaced."""
    model = transformers.MODEL_FOR_CAUSAL_LM_MAPPING.get(type(config), None)
    can_set = getattr(model, "_can_set_attn_implementation", None)
    if model is not None and can_set is not None and not can_set():
        raise ValueError(
            f"a PagedCache can't be used with {model.__name__}: the model takes no "
            "attention function"
        )


def check_call(module: Any, dropout: float, options: dict[str, Any]) -> None:
    """Raises ``ValueError`` for attention that the kernels don't support."""
    if dropout:
        raise ValueError(f"attention with a cache has no dropout, got {dropout}")
    is_causal = options.get("is_causal")
    if not (getattr(module, "is_causal", True) if is_causal is None else is_causal):
        raise ValueError(
            f"{type(module).__name__} is not causal: it can't use a PagedCache"
        )
    if options.get("position_bias") is not None:
        raise ValueError(
            f"{type(module).__name__} adds a bias: it can't use a PagedCache"
        )


def check_unchanged(module: Any, given: Sequence[Any], cached: Sequence[Any]) -> None:
    """Raises ``ValueError`` if attention gets other rows than ``update`` has returned.

    The cache has those of ``update``.
    """
    for one, other in zip(given, cached, strict=True):
        if one is other:
            continue
        if one.shape != other.shape or one.data_ptr() != other.data_ptr():
            raise ValueError(
                f"{type(module).__name__} changes keys or values after it has cached them: "
                "it can't use a PagedCache"
            )


def absorb_queries(module: Any, query: Any) -> Any:
    """Computes queries of latent rows, [batch, heads, tokens, rank + rope].

    The queries are multiplied by the weights that expand keys, instead of the keys.
    """
    nope = module.qk_nope_head_dim
    latent = query[..., :nope] @ _expansion(module)[:, :nope]
    return torch.cat([latent, query[..., nope:]], dim=-1)


def project_values(module: Any, out: Any) -> Any:
    """Expands latent outputs to values, [batch, tokens, heads, v_head_dim]."""
    weight = _expansion(module)[:, module.qk_nope_head_dim :]
    return (out.transpose(1, 2) @ weight.transpose(1, 2)).transpose(1, 2).contiguous()


def _expansion(module: Any) -> Any:
    """The weights [heads, nope + v, rank] that expand latent rows."""
    projection = module.kv_b_proj
    if getattr(projection, "bias", None) is not None:
        raise ValueError(f"{type(module).__name__}: latent attention has no bias")
    width = module.qk_nope_head_dim + module.v_head_dim
    return projection.weight.view(-1, width, projection.weight.shape[-1])
