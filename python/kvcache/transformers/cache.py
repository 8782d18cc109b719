# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The paged cache of a model of transformers."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import transformers
from transformers.cache_utils import Cache

from ..cache.groups import MultiKVCacheParams
from ..checks import check_flag, check_positive
from ..pages.manager import PagedKVCacheManager
from ..pages.memory import ArrayMemory
from .attention import NAME, Call, get_last_mask
from .compression import COMPRESSORS, Compression, add_entries
from .devices import Kernels, find_device, find_target
from .indexing import INDEXERS, IndexKeys, choose_blocks, choose_tokens
from .layers import CacheLayer, count_pages, make_params
from .models import ModelShape, check_attention, find_config
from .padding import (
    LateChecks,
    check_same,
    check_sizes,
    count_padding,
    find_tokens,
    pack,
    pack_columns,
    unpack,
)
from .replacements import replace_forward
from .step import Step

_ROWS = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}
_UNKNOWN = 1 << 62  # ids from here on are of unknown tokens


class PagedCache(Cache):
    """The cache of a model in pages, for ``generate`` and for the model itself.

    Each row of a batch is a sequence of a ``PagedKVCacheManager``. Padding on the left
    takes no memory; beams share pages. All layers keep all tokens, including those
    before a window or chunk. Quantized caches have one f32 scale per head of a token.
    Models that choose tokens (DeepSeek V3.2, GLM MoE DSA, HY V4, MiniMax M3) have their
    index keys in the same pool of pages. DeepSeek V4 has its compressed entries there.

    On a GPU, a decode step does not wait for the GPU. Prompts with an
    ``attention_mask`` wait, because the host reads their padding. A mask with other
    padding in a later step raises one step late.

    Args:
        config: The model, or ``model.config``.
        max_batch_size: The most rows of a batch, including beams.
        max_seq_len: The most tokens of a sequence, without padding.
        dtype: The type of keys and values: f32, f16, bf16, f8E4M3FN, f8E5M2 or i8, a
            dtype of PyTorch, or ``"fp8"`` for f8E4M3FN. By default, that of the model.
        page_size: Tokens per page. By default 64, or more for whole compressed entries.
        share_prefixes: Whether ``start`` finds the prefixes of earlier sequences.
        device: The device of the pages, a CPU or one GPU. By default that of the model,
            or the CPU for a configuration.
        target: The target of the kernels, as in ``jit``. By default ``"cpu"``, or
            ``"cuda"`` for a GPU.

    Raises:
        ValueError: The model has layers other than attention with all tokens, a window
            or chunks, or an argument is out of range.
    """

    def __init__(
        self,
        config: transformers.PreTrainedConfig | transformers.PreTrainedModel,
        *,
        max_batch_size: int,
        max_seq_len: int,
        dtype: Any = None,
        page_size: int | None = None,
        share_prefixes: bool = False,
        device: Any = None,
        target: str | None = None,
    ) -> None:
        check_positive(
            max_batch_size=max_batch_size,
            max_seq_len=max_seq_len,
            page_size=64 if page_size is None else page_size,
        )
        check_flag(share_prefixes=share_prefixes)
        self.config = find_config(config)
        check_attention(self.config)
        self.shape = ModelShape.of(self.config)
        self.device = find_device(config, device)
        target = find_target(self.device, target)
        if page_size is None:
            page_size = self.shape.default_page_size
        groups = make_params(self.config, self.shape, dtype, page_size, share_prefixes)
        self._params = groups[0]
        self._index: IndexKeys | None = None
        if self.shape.index is not None:
            self._index = IndexKeys(self.shape.index, groups[0], groups[1], target)
            choose = choose_tokens if self.shape.index.block is None else choose_blocks
            replace_forward(self.config, INDEXERS, PagedCache, choose)
        params = groups[0] if self._index is None else MultiKVCacheParams(groups)
        self.manager = PagedKVCacheManager(
            params,
            max_batch_size=max_batch_size,
            max_seq_len=max_seq_len,
            num_pages=max_batch_size * count_pages(params, max_seq_len),
            memory=ArrayMemory(torch, device=self.device),
        )
        self._compression: Compression | None = None
        if self.shape.entries is not None:
            memory = self.manager.memory
            self._compression = Compression(
                self.shape.entries, groups[0], max_batch_size, memory, self.device, target
            )
            replace_forward(self.config, COMPRESSORS, PagedCache, add_entries)
        self._kernels = Kernels(self._params, target, max_batch_size, max_seq_len)
        self._num_names = 0
        self._num_unknown = 0
        self._rows: list[int] = []
        self._padding = np.zeros(0, np.int64)
        self._placed_padding: Any = None
        self._checks = LateChecks()
        self._known: list[np.ndarray] = []
        self._length = 0
        self._step: Step | None = None
        layers = [CacheLayer(self, index) for index in range(self.shape.cached_layers)]
        super().__init__(layers=layers)

    # --- Interface of transformers ------------------------------------------------

    def crop(self, tokens_to_remove: int) -> None:
        """Removes the last ``-tokens_to_remove`` tokens of each row.

        Raises ``ValueError`` for a model with compressed entries, as those of
        transformers: an entry can't be divided into tokens.
        """
        if tokens_to_remove > 0:
            raise ValueError(
                f"expects 'tokens_to_remove' not to be positive, got {tokens_to_remove}"
            )
        if self._compression is not None and tokens_to_remove:
            raise ValueError(
                f"expects no tokens to remove from the entries of {self.config.model_type}, "
                f"got {-int(tokens_to_remove)}"
            )
        self._finish()
        # transformers 5.17 passes a tensor.
        self._truncate(max(self._length + int(tokens_to_remove), 0))

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
        self._checks, self._length = LateChecks(), 0
        self._set_padding(np.zeros(0, np.int64))

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """Makes each row the continuation of another row, and shares its pages."""
        self._select(beam_idx.tolist())

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeats each row ``repeats`` times."""
        self._select(np.repeat(np.arange(len(self._rows)), repeats).tolist())

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Keeps some rows."""
        self._select(torch.arange(len(self._rows))[indices.cpu()].tolist())

    def _select(self, indices: Sequence[int]) -> None:
        self._finish()
        if not self._rows:
            return
        count = len(self._rows)
        if wrong := [index for index in indices if not 0 <= index < count]:
            raise ValueError(f"expects rows in [0, {count}), got {wrong[0]}")
        if not indices:
            self.reset()
            return
        old, rows, used = self._rows, [], set()
        for index in indices:
            row = old[index]
            if index in used:
                row = self._make_name()
                self.manager.fork(old[index], row)
            used.add(index)
            rows.append(row)
        for index in set(range(len(old))) - used:
            self.manager.release(old[index])
        self._rows = rows
        if self._compression is not None:
            self._compression.select(indices)
        self._set_padding(self._padding[list(indices)])
        self._known = [self._known[index] for index in indices]

    @property
    def batch_size(self) -> int:
        """The number of rows; -1 before the first tokens."""
        return len(self._rows) or -1

    @property
    def nbytes(self) -> int:
        """The bytes of the rows' pages, with scales."""
        return self._count_pages() * self.manager.params.bytes_per_block

    def _count_pages(self) -> int:
        sequences = self.manager.snapshot().sequences
        return len({page for each in sequences for page in each.pages})

    def __repr__(self) -> str:
        params = self._params
        lengths = np.maximum(self._length - self._padding, 0).tolist()
        return (
            f"PagedCache(dtype={params.dtype_shorthand}, device={self.device}, "
            f"layers={self.shape.cached_layers}, page_size={params.page_size}, "
            f"pages={self._count_pages()} of {self.manager.num_pages}, lengths={lengths})"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> PagedCache:
        """Copies all pages, so that both caches continue by themselves.

        The copy has ended the pass that this cache may be in.
        """
        memo[id(self.config)] = self.config
        memo[id(self)] = result = object.__new__(type(self))
        memo[id(self._step)] = self._step
        for name, value in vars(self).items():
            setattr(result, name, copy.deepcopy(value, memo))
        result._finish()
        return result

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
        padding = count_padding(mask, *ids.shape)
        found = []
        for tokens, count in zip(ids, padding.tolist(), strict=True):
            self._rows.append(self._make_name())
            self._known.append(tokens[count:])
            found.append(count + self.manager.claim(self._rows[-1], tokens[count:]))
        self._set_padding(padding)
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
        if keys.device != self.device:
            raise ValueError(
                f"expects keys on {self.device}, where the PagedCache is, got "
                f"{keys.device}: pass the model or 'device' to PagedCache"
            )
        if keys.requires_grad or values.requires_grad:
            raise ValueError("a PagedCache has no gradients: use torch.no_grad()")

    def attend(self, layer: int, keys: Any, values: Any, call: Call) -> Any:
        """Appends new rows to a layer, and attends to it.

        Args:
            layer: The layer of the model.
            keys: The new keys, [batch, heads, tokens, dim]; None for a layer that
                shares those of an earlier one.
            values: The new values, likewise; None for latent rows.
            call: The other arguments.

        Returns:
            The outputs, [batch, tokens, heads, value_dim].
        """
        batch, heads, columns, _ = call.query.shape
        step = self._find_step(layer, batch, columns, call.mask)
        if step.inputs is None:
            out = call.query.new_zeros(batch, columns, heads, self.shape.value_dim)
        else:
            query = pack(call.query, step.tokens)
            # Within torch.autocast, values have another dtype.
            rows = [
                pack(each, step.tokens).to(query.dtype)
                for each in (keys, values)
                if each is not None
            ]
            packed = self._run(step, layer, rows, query, call)
            out = unpack(packed, step.tokens, batch, columns)
        step.layers.add(layer)
        if len(step.layers) == self.shape.layers:
            self._finish()
        return out

    def choose(self, layer: int, q: Any, keys: Any, weights: Any) -> Any:
        """Appends index keys to a layer, and chooses tokens for its attention.

        Args:
            layer: The layer of the model.
            q: The index queries, [batch, tokens, heads, dim].
            keys: The new index keys, [batch, tokens, 1, dim].
            weights: The factors of heads, [batch, tokens, heads]; None for blocks.

        Returns:
            The slots of the chosen tokens of each token that is not padding, int32
            [total, 1 or heads, n].
        """
        assert self._index is not None
        batch, columns, _, _ = q.shape
        step = self._find_step(layer, batch, columns, get_last_mask())
        if step.inputs is None:
            return q.new_empty(0, 1, 0, dtype=torch.int32)
        if weights is not None:
            weights = pack_columns(weights, step.tokens)
        q, keys = (pack_columns(each, step.tokens) for each in (q, keys))
        return self._index.choose(step.inputs, layer, q, keys, weights)

    def compress(
        self, layer: int, module: Any, hidden: Any, q_residual: Any, positions: Any
    ) -> None:
        """Adds the entries of a layer that new tokens close, for its attention.

        Args:
            layer: The layer of the model.
            module: The compressor of the layer.
            hidden: The hidden states of the new tokens, [batch, tokens, size].
            q_residual: The latent queries, [batch, tokens, rank].
            positions: The positions of ropes, [batch, tokens].
        """
        assert self._compression is not None
        batch, columns, _ = hidden.shape
        step = self._find_step(layer, batch, columns, get_last_mask())
        if step.entries is not None:
            given = hidden, q_residual, positions
            packed = [pack_columns(each, step.tokens) for each in given]
            self._compression.compress(step.entries, layer, module, *packed)

    def _find_step(self, layer: int, batch: int, columns: int, mask: Any) -> Step:
        """The step of this pass, which the first layer begins."""
        if self._step is None or layer in self._step.layers:
            self._finish()
            self._step = self._begin(batch, columns, mask)
        return self._step

    def _run(
        self, step: Step, layer: int, rows: Sequence[Any], query: Any, call: Call
    ) -> Any:
        """Appends and attends for a step with tokens: [total, heads, value_dim]."""
        inputs = step.inputs
        assert inputs is not None
        if self._compression is not None and step.entries is not None:
            return self._compression.attend(step.entries, layer, rows[0], query, call)
        name = _ROWS[query.dtype]
        source = self.shape.sources[layer]
        if rows:
            self._kernels.append(name)(inputs, source, *rows)
        options: dict[str, Any] = {"window": call.window, "chunk": self.shape.chunks[layer]}
        given = {"scale": call.scale, "sinks": call.sinks}
        if call.chosen is not None:
            options = {"rows": "heads"}
            given["rows"] = call.chosen
        attend = self._kernels.attention(
            name,
            is_decode=inputs.max_seq_length == 1,
            query_heads=query.shape[1],
            soft_cap=call.soft_cap,
            sinks=call.sinks is not None,
            value_dim=self.shape.value_dim,
            **options,
        )
        out = query.new_empty(len(query), query.shape[1], self.shape.value_dim)
        attend(inputs, source, query, out=out, **given)
        return out

    def _begin(self, batch: int, columns: int, mask: Any) -> Step:
        """Grows the sequences of a batch by their new tokens."""
        total = self._length + columns
        padding = self._read_padding(mask, batch, total)
        if not self._rows:
            for _ in range(batch):
                self._rows.append(self._make_name())
                self.manager.claim(self._rows[-1])
            self._known = [np.zeros(0, np.int64)] * batch
        first = np.maximum(padding, self._length) - padding
        new = [
            (index, row, self._get_ids(index, start, stop))
            for index, (row, start, stop) in enumerate(
                zip(self._rows, first.tolist(), (total - padding).tolist(), strict=True)
            )
            if stop > start
        ]
        inputs = entries = None
        if new:
            numbers, requests, ids = zip(*new, strict=True)
            self.manager.grow_batch(requests, ids)
            inputs = self.manager.inputs(requests)
            if self._compression is not None:
                entries = self._compression.begin(inputs, np.array(numbers))
        tokens = find_tokens(padding, self._length, total)
        placed = None if tokens is None else self.manager.memory.upload(tokens)
        self._set_padding(np.minimum(padding, total))
        self._length = total
        return Step(inputs, placed, entries)

    def _read_padding(self, mask: Any, batch: int, total: int) -> np.ndarray:
        """The padding of each row, which is that of earlier steps, int64 [batch]."""
        self._checks.end()
        if self._rows and len(self._rows) != batch:
            raise ValueError(
                f"expects {len(self._rows)} rows, as before, got {batch}: a cache "
                "continues its rows, so reset() it before other prompts"
            )
        is_known = bool(self._rows) and bool((self._padding < self._length).all())
        if is_known and mask is not None and mask.device.type != "cpu":
            check_sizes(mask, batch, total)
            if self._placed_padding is None:
                self._placed_padding = self.manager.memory.upload(self._padding)
            self._checks.begin(mask, self._placed_padding)
            return self._padding
        padding = count_padding(mask, batch, total)
        if self._rows:
            check_same(np.minimum(padding, self._length), self._padding)
        return padding

    def _set_padding(self, padding: np.ndarray) -> None:
        if not np.array_equal(padding, self._padding):
            self._placed_padding = None
        self._padding = padding

    def _make_name(self) -> int:
        """A name for a new row."""
        self._num_names += 1
        return self._num_names

    def _get_ids(self, row: int, start: int, stop: int) -> np.ndarray:
        """The ids of a row's tokens: those given to ``start``, then unknown ones."""
        known = self._known[row][start:stop]
        first = _UNKNOWN + self._num_unknown
        unknown = np.arange(first, first + stop - start - len(known))
        self._num_unknown += len(unknown)
        return np.concatenate([known, unknown])

    def _finish(self) -> None:
        """Ends a pass, including one that left out layers."""
        if self._step is not None and self._step.inputs is not None:
            self.manager.step(self._step.inputs.requests)
        self._step = None
