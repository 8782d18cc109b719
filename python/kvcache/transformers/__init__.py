# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of Hugging Face transformers on paged caches, on the CPU.

``install`` registers the attention ``"kvcache"``. Pass a ``PagedCache`` to ``generate``
as ``past_key_values``. Needs ``pip install kvcache[transformers]``.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

try:
    import torch
    import transformers
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.cache_utils import Cache, CacheLayerMixin
except ImportError as error:
    raise ImportError(
        "kvcache.transformers needs PyTorch and transformers: run 'pip install "
        f"kvcache[transformers]' ({error})"
    ) from error

from .. import dtypes, ops
from ..cache.params import KVCacheParams
from ..cache.quantization import KVCacheQuantizationConfig
from ..checks import check_flag, check_instance, check_positive
from ..dtypes import DTypeLike
from ..pages.inputs import StepInputs
from ..pages.manager import PagedKVCacheManager
from ..pages.memory import ArrayMemory
from .models import (
    ModelShape,
    absorb_queries,
    check_attention,
    check_call,
    project_values,
)

__all__ = ["NAME", "PagedCache", "install"]

NAME = "kvcache"
"""The name of the attention."""

_ROWS = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}
_UNKNOWN = 1 << 62  # ids from here on are of unknown tokens


def install() -> None:
    """Makes ``model.set_attn_implementation("kvcache")`` possible."""
    AttentionInterface.register(NAME, _attention)
    AttentionMaskInterface.register(NAME, _make_mask)


@dataclass
class _Step:
    """The tokens of a forward pass.

    Attributes:
        inputs: The inputs of the manager; None if all tokens are padding.
        real: Whether tokens are not padding, bool [batch, tokens]; None without
            padding.
        layers: The layers that have the tokens already.
    """

    inputs: StepInputs | None
    real: Any
    layers: set[int] = field(default_factory=set)


class PagedCache(Cache):
    """The cache of a model in pages, for ``generate`` and for the model itself.

    Each row of a batch is a sequence of a ``PagedKVCacheManager``. Padding on the left
    takes no memory; beams share pages. All layers keep all tokens, including those
    before a window. Quantized caches have one f32 scale per head of a token.

    Args:
        config: ``model.config``.
        max_batch_size: The most rows of a batch, including beams.
        max_seq_len: The most tokens of a sequence, without padding.
        dtype: The type of keys and values: f32, f16, bf16, f8E4M3FN, f8E5M2 or i8, or a
            dtype of PyTorch. By default, that of the model.
        page_size: Tokens per page.
        share_prefixes: Whether ``start`` finds the prefixes of earlier sequences.

    Raises:
        ValueError: The model has layers other than attention with all tokens or a
            window, or an argument is out of range.
    """

    def __init__(
        self,
        config: transformers.PreTrainedConfig,
        *,
        max_batch_size: int,
        max_seq_len: int,
        dtype: Any = None,
        page_size: int = 64,
        share_prefixes: bool = False,
    ) -> None:
        check_instance(transformers.PreTrainedConfig, config=config)
        check_positive(
            max_batch_size=max_batch_size, max_seq_len=max_seq_len, page_size=page_size
        )
        check_flag(share_prefixes=share_prefixes)
        self.config = config.get_text_config(decoder=True)
        check_attention(self.config)
        self.shape = ModelShape.of(self.config)
        self.manager = self._make_manager(
            dtype, max_batch_size, max_seq_len, page_size, share_prefixes
        )
        self._names = itertools.count()
        self._unknown = itertools.count(_UNKNOWN)
        self._rows: list[int] = []
        self._padding = np.zeros(0, np.int64)
        self._known: list[np.ndarray] = []
        self._length = 0
        self._step: _Step | None = None
        self._operations: dict[Any, Any] = {}
        layers = [_Layer(self, index) for index in range(self.shape.layers)]
        super().__init__(layers=layers)

    def _make_manager(
        self, dtype: Any, batch: int, length: int, page_size: int, share: bool
    ) -> PagedKVCacheManager:
        if dtype is None:
            dtype = self.config.dtype or torch.get_default_dtype()
        name: DTypeLike = dtype
        if isinstance(dtype, torch.dtype):
            name = str(dtype).removeprefix("torch.")
        params = KVCacheParams(
            name,
            self.shape.kv_heads,
            self.shape.head_dim,
            page_size=page_size,
            total_num_layers=self.shape.layers,
            is_mla=self.shape.rank is not None,
            enable_prefix_caching=share,
            kvcache_quant_config=_make_scales(name, self.shape.head_dim),
        )
        return PagedKVCacheManager(
            params,
            max_batch_size=batch,
            max_seq_len=length,
            num_pages=batch * -(-length // page_size),
            memory=ArrayMemory(torch),
        )

    # --- Interface of transformers ------------------------------------------------

    def crop(self, tokens_to_remove: int) -> None:
        """Removes the last ``-tokens_to_remove`` tokens of each row."""
        if tokens_to_remove > 0:
            raise ValueError(
                f"expects 'tokens_to_remove' not to be positive, got {tokens_to_remove}"
            )
        self._finish()
        self._truncate(max(self._length + tokens_to_remove, 0))

    def _truncate(self, length: int) -> None:
        for row, padding in zip(self._rows, self._padding.tolist(), strict=True):
            kept = max(length - padding, 0)
            if kept < len(self.manager.tokens(row)):
                self.manager.truncate(row, kept)
        self._length = length

    def reset(self) -> None:
        """Ends all sequences."""
        for row in self._rows:
            self.manager.release(row)
        self._rows, self._known, self._step = [], [], None
        self._padding, self._length = np.zeros(0, np.int64), 0

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """Makes each row the continuation of another row, and shares its pages."""
        self._select(beam_idx.tolist())

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeats each row ``repeats`` times."""
        self._select(np.repeat(np.arange(len(self._rows)), repeats).tolist())

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Keeps some rows."""
        self._select(torch.arange(len(self._rows))[indices].tolist())

    def _select(self, indices: Sequence[int]) -> None:
        self._finish()
        if not self._rows:
            return
        old, rows, used = self._rows, [], set()
        for index in indices:
            row = old[index]
            if index in used:
                row = next(self._names)
                self.manager.fork(old[index], row)
            used.add(index)
            rows.append(row)
        for index in set(range(len(old))) - used:
            self.manager.release(old[index])
        self._rows, self._padding = rows, self._padding[list(indices)]
        self._known = [self._known[index] for index in indices]

    @property
    def batch_size(self) -> int:
        """The number of rows; -1 before the first tokens."""
        return len(self._rows) or -1

    @property
    def nbytes(self) -> int:
        """The bytes of the rows' pages, with scales."""
        pages = {
            page for each in self.manager.snapshot().sequences for page in each.pages
        }
        return len(pages) * self.manager.params.bytes_per_block

    # --- Prefixes -----------------------------------------------------------------

    def start(self, input_ids: torch.Tensor, attention_mask: Any = None) -> int:
        """Begins the rows of a batch with cached prefixes of earlier rows.

        Call it before ``generate`` with the same ids, on a new cache or after
        ``reset``. Later rows find the tokens of these prompts, not the generated ones.

        Args:
            input_ids: The prompts, [batch, tokens].
            attention_mask: 0 for padding on the left; None for none.

        Returns:
            The number of columns of the ids in the cache; at least one is left.

        Raises:
            ValueError: There are rows already, or ``share_prefixes`` is False.
        """
        if not self.manager.params.enable_prefix_caching:
            raise ValueError("'start' needs a cache with share_prefixes=True")
        if self._rows:
            raise ValueError("'start' needs an empty cache: reset it first")
        ids = input_ids.cpu().numpy()
        mask = None if attention_mask is None else attention_mask.to(torch.bool)
        padding = _count_padding(mask, *ids.shape)
        found = []
        for tokens, count in zip(ids, padding.tolist(), strict=True):
            self._rows.append(next(self._names))
            self._known.append(tokens[count:])
            found.append(count + self.manager.claim(self._rows[-1], tokens[count:]))
        self._padding = padding
        self._truncate(min(found))
        return self._length

    # --- A forward pass -----------------------------------------------------------

    def check_layer(self, layer: int, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Raises ``ValueError`` for rows that are not of this cache."""
        if self.config._attn_implementation != NAME:
            raise ValueError(
                f"a PagedCache needs the attention {NAME!r}: call "
                f"model.set_attn_implementation({NAME!r})"
            )
        self.shape.check_rows(layer, keys, values)
        if keys.dtype not in _ROWS:
            raise ValueError(
                f"expects keys of float32, float16 or bfloat16, got {keys.dtype}"
            )
        if keys.device.type != "cpu":
            raise ValueError(
                f"a PagedCache is in host memory, got keys on {keys.device}"
            )
        if keys.requires_grad or values.requires_grad:
            raise ValueError("a PagedCache has no gradients: use torch.no_grad()")

    def attend(self, layer: int, keys: Any, values: Any, call: _Call) -> Any:
        """Appends new rows to a layer, and attends to it: [batch, tokens, heads, dim]."""
        batch, _, tokens, _ = call.query.shape
        if self._step is None or layer in self._step.layers:
            self._finish()
            self._step = self._begin(batch, tokens, call.mask)
        step = self._step
        if step.inputs is None:
            heads = call.query.shape[1]
            out = call.query.new_zeros(batch, tokens, heads, self.shape.value_dim)
        else:
            rows = [keys] if values is None else [keys, values]
            out = self._run(step.inputs, step.real, layer, rows, call)
        step.layers.add(layer)
        if len(step.layers) == self.shape.layers:
            self._finish()
        return out

    def _run(
        self,
        inputs: StepInputs,
        real: Any,
        layer: int,
        rows: Sequence[Any],
        call: _Call,
    ) -> Any:
        """Appends and attends for a step with tokens; ``real`` as in ``_Step``."""
        name = _ROWS[rows[0].dtype]
        append = self._get_operation(ops.append, dtype=name)
        append(inputs, layer, *(_pack(each, real) for each in rows))
        query = _pack(call.query, real)
        heads, width = query.shape[1], self.shape.value_dim
        attend = self._get_operation(
            ops.attention,
            query_heads=heads,
            window=call.window,
            soft_cap=call.soft_cap,
            sinks=call.sinks is not None,
            value_dim=width,
            dtype=name,
        )
        packed = query.new_empty(len(query), heads, width)
        attend(inputs, layer, query, out=packed, scale=call.scale, sinks=call.sinks)
        shape = call.query.shape[0], call.query.shape[2], heads, width
        if real is None:
            return packed.view(shape)
        out = query.new_zeros(shape)
        out[real] = packed
        return out

    def _get_operation(self, make: Callable[..., Any], **options: Any) -> Any:
        key = make, *options.values()
        if key not in self._operations:
            self._operations[key] = make(self.manager.params, **options)
        return self._operations[key]

    def _begin(self, batch: int, tokens: int, mask: Any) -> _Step:
        """Grows the sequences of a batch by their new tokens."""
        total = self._length + tokens
        padding = _count_padding(mask, batch, total)
        if not self._rows:
            for _ in range(batch):
                self._rows.append(next(self._names))
                self.manager.claim(self._rows[-1])
            self._known = [np.zeros(0, np.int64)] * batch
        elif len(self._rows) != batch:
            raise ValueError(
                f"expects {len(self._rows)} rows, as before, got {batch}: a cache "
                "continues its rows, so reset() it before other prompts"
            )
        elif (np.minimum(padding, self._length) != self._padding).any():
            raise ValueError("expects the same padding as before in 'attention_mask'")
        first = np.maximum(padding, self._length) - padding
        new = [
            (row, self._get_ids(index, start, stop))
            for index, (row, start, stop) in enumerate(
                zip(self._rows, first.tolist(), (total - padding).tolist(), strict=True)
            )
            if stop > start
        ]
        inputs = None
        if new:
            requests, ids = zip(*new, strict=True)
            self.manager.grow_batch(requests, ids)
            inputs = self.manager.inputs(requests)
        real = None
        if (padding > self._length).any():
            columns = torch.arange(self._length, total)
            real = columns >= torch.from_numpy(padding)[:, None]
        self._padding, self._length = np.minimum(padding, total), total
        return _Step(inputs, real)

    def _get_ids(self, row: int, start: int, stop: int) -> np.ndarray:
        """The ids of a row's tokens: those given to ``start``, then unknown ones."""
        known = self._known[row][start:stop]
        unknown = itertools.islice(self._unknown, stop - start - len(known))
        return np.concatenate([known, np.fromiter(unknown, np.int64)])

    def _finish(self) -> None:
        """Ends a pass, including one that left out layers."""
        if self._step is not None and self._step.inputs is not None:
            self.manager.step(self._step.inputs.requests)
        self._step = None


class _Layer(CacheLayerMixin):
    """A layer of a cache, which keeps new rows until the attention is called."""

    is_compileable = False
    is_croppable = True
    is_sliding = False

    def __init__(self, cache: PagedCache, index: int) -> None:
        super().__init__()
        self._cache, self._index = cache, index
        self.is_initialized = True

    def lazy_initialization(self, key_states: Any, value_states: Any) -> None:
        """Does nothing: there are pages from the start."""

    def update(
        self, key_states: Any, value_states: Any, *args: Any, **kwargs: Any
    ) -> tuple[Any, Any]:
        self._cache.check_layer(self._index, key_states, value_states)
        _thread.rows = self._cache, self._index, key_states, value_states
        return key_states, value_states

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._cache._length + query_length, 0

    def get_seq_length(self) -> int:
        return self._cache._length

    def get_max_length(self) -> int:
        return self._cache.manager.max_seq_len


# The arguments of the last ``update``, for the attention after it.
_thread = threading.local()


@dataclass(frozen=True)
class _Call:
    """The arguments of a call of attention."""

    query: Any
    mask: Any
    scale: float
    window: int | None
    soft_cap: float | None
    sinks: Any


def _attention(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Any = None,
    **options: Any,
) -> tuple[Any, None]:
    """The attention ``"kvcache"``, which models call."""
    rows, _thread.rows = getattr(_thread, "rows", None), None
    if rows is None:
        raise ValueError(
            f"the attention {NAME!r} needs a PagedCache: pass one as 'past_key_values', "
            "without use_cache=False"
        )
    cache, layer, keys, values = rows
    check_call(module, dropout, options)
    scale = query.shape[-1] ** -0.5 if scaling is None else float(scaling)
    if cache.shape.rank is not None:
        keys, values = torch.cat([keys, values], dim=-1), None
        query = absorb_queries(module, query)
    sinks = None if s_aux is None else s_aux.detach().float().contiguous()
    call = _Call(query, attention_mask, scale, sliding_window, softcap, sinks)
    out = cache.attend(layer, keys, values, call)
    return (out if values is not None else project_values(module, out)), None


def _make_mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    attention_mask: Any = None,
    allow_is_causal_skip: bool = True,
    **options: Any,
) -> Any:
    """The mask ``"kvcache"``: of padding only, and None without any."""
    if not allow_is_causal_skip:
        raise ValueError(
            f"the attention {NAME!r} is causal: other masks are not possible"
        )
    if not q_length:
        raise ValueError(
            f"expects tokens after the {kv_length} in the cache, got none: a cache "
            "continues its rows, so reset() it before other prompts"
        )
    if attention_mask is None:
        return None
    mask = attention_mask[:, -kv_length:]
    return None if mask.shape[1] == kv_length and mask.all() else mask


def _count_padding(mask: Any, batch: int, total: int) -> np.ndarray:
    """The padding of each row, which must be on the left; int64 [batch]."""
    if mask is None:
        return np.zeros(batch, np.int64)
    if tuple(mask.shape) != (batch, total):
        raise ValueError(
            f"expects an 'attention_mask' of [{batch}, {total}], got {list(mask.shape)}"
        )
    real = mask.to(torch.bool).cpu().numpy()
    if (np.diff(real.astype(np.int8), axis=1) < 0).any():
        raise ValueError(
            "expects padding on the left in 'attention_mask': use padding_side='left'"
        )
    return total - real.sum(axis=1)


def _pack(rows: Any, real: Any) -> Any:
    """Packs [batch, heads, tokens, dim] to [total, heads, dim], without padding."""
    by_token = rows.transpose(1, 2)
    packed = by_token.flatten(0, 1) if real is None else by_token[real]
    return packed.contiguous()


def _make_scales(dtype: DTypeLike, head_dim: int) -> KVCacheQuantizationConfig | None:
    is_quantized = dtypes.cached_dtype("dtype", dtype).itemsize == 1
    return KVCacheQuantizationConfig("f32", head_dim) if is_quantized else None
