# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The backend of attention for SGLang."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sglang.srt.layers.attention.base_attn_backend import (
    AttentionBackend,
    SharedReadEnds,
)
from sglang.srt.runtime_context import get_spec

from ..torch.workspaces import Workspaces
from .configurations import CacheConfiguration, Configuration, LayerOperations
from ..ops.splits import StepBounds
from .options import Options
from .pools import Pool, make_params, name_dtype, split_pool
from .steps import Reads, Sizes, TokenTable, make_dense_inputs
from .support import check_runner


@dataclass(frozen=True)
class Step:
    """The metadata of a step.

    Attributes:
        sizes: The new tokens.
        full: The reads of layers that see all tokens.
        window: The reads of layers whose windows have a pool of their own, or None.
    """

    sizes: Sizes
    full: Reads | None
    window: Reads | None


class Backend(AttentionBackend):
    """The backend ``kvcache``."""

    needs_cpu_seq_lens = False

    def __init__(self, runner: Any) -> None:
        super().__init__()
        check_runner(runner)
        pool, page_size = runner.token_to_kv_pool, runner.page_size
        full, window = split_pool(pool)
        # SGLang's models read these two.
        self.token_to_kv_pool = pool
        self.req_to_token_pool = runner.req_to_token_pool
        self._full = Pool.of(full, page_size) if full.layer_num else None
        self._window = None
        if window is not None and window.layer_num:
            self._window = Pool.of(window, page_size)
        self._places = getattr(pool, "layers_mapping", {})
        self._window_tokens = (runner.sliding_window_size or 0) + 1
        self._table = TokenTable(runner.req_to_token_pool.req_to_token, page_size)
        self._workspaces = Workspaces(1, runner.device)
        bounds = StepBounds(*runner.req_to_token_pool.req_to_token.shape)
        self._options = Options.read(runner.device == "cuda", bounds)
        self._query_rows = get_spec().speculative_num_draft_tokens or 1
        self._step: Step | None = None
        self._operations: dict[Any, LayerOperations] = {}

    # --- Steps ---------------------------------------------------------------------------

    def shared_read_ends(self, fm: Any) -> SharedReadEnds:
        """Attention reads SGLang's table until the end of a step."""
        if fm.is_decode() or fm.is_target_verify():
            return SharedReadEnds.POST_REPLAY
        return SharedReadEnds.UNKNOWN

    def init_cuda_graph_state(self, max_bs: int, max_num_tokens: int) -> None:
        """Prepares for graphs of up to ``max_bs`` sequences."""
        self._workspaces.batch = max(self._workspaces.batch, max_bs)

    def get_cuda_graph_seq_len_fill_value(self) -> int:
        """Returns the tokens of a sequence of padding, which reads slot 0."""
        return 1

    def update_verify_buffers_to_fill_after_draft(
        self, spec_info: Any, cuda_graph_bs: int | None
    ) -> None:
        """Updates nothing: a chain of drafts needs no mask."""

    def init_forward_metadata_in_graph(self, forward_batch: Any) -> None:
        """Computes the metadata of a step.

        A graph records this, so the metadata of a replay is that of its batch.
        """
        if forward_batch.forward_mode.is_idle():
            return
        sizes = Sizes.of(forward_batch)
        requests, slots = forward_batch.req_pool_indices, forward_batch.out_cache_loc
        full = window = None
        if self._full is not None:
            inputs = self._table.make_inputs(self._full, sizes, requests)
            full = Reads(inputs, sizes.lengths, slots)
        if self._window is not None:
            mapping = self.token_to_kv_pool.translate_loc_from_full_to_swa
            inputs, lengths = self._table.make_window(
                self._window, sizes, requests, mapping, self._window_tokens
            )
            window = Reads(inputs, lengths, mapping(slots))
        self._step = Step(sizes, full, window)

    # --- Layers --------------------------------------------------------------------------

    def forward_decode(
        self,
        q: Any,
        k: Any,
        v: Any,
        layer: Any,
        forward_batch: Any,
        save_kv_cache: bool = True,
        sinks: Any = None,
        **more: Any,
    ) -> Any:
        """Appends new tokens, and attends to the cache.

        Args:
            q: The queries, [rows, heads * elements].
            k: The new keys, [rows, heads, elements]; None if another layer stores them.
            v: The new values, likewise. Latent rows have none.
            layer: The layer, a ``RadixAttention``.
            forward_batch: The step.
            save_kv_cache: Whether the keys and values are not stored yet.
            sinks: The logits of the sinks, [heads], or None.
            more: Arguments of other backends, which must be None.

        Returns:
            The outputs, [rows, heads * elements of a value].
        """
        for name, value in more.items():
            if value is not None:
                raise NotImplementedError(
                    f"kvcache expects {name!r} to be None, in layer {layer.layer_id}"
                )
        step = self._step
        assert step is not None
        out = q.new_empty(q.shape[0], layer.tp_q_head_num * layer.v_head_dim)
        out[step.sizes.rows :] = 0
        if not step.sizes.rows:
            return out
        if self._is_dense(layer):
            self._attend_to_new(q, k, v, layer, out, sinks)
        else:
            self._attend_to_pool(q, k if save_kv_cache else None, v, layer, out, sinks)
        return out

    forward_extend = forward_decode

    def _is_dense(self, layer: Any) -> bool:
        """Whether a layer of latent rows has the keys of prompts, uncompressed."""
        pool = self._full
        if pool is None or pool.value_dim is None:
            return False
        return bool(layer.qk_head_dim != pool.params.head_dim)

    def _attend_to_new(
        self, q: Any, k: Any, v: Any, layer: Any, out: Any, sinks: Any
    ) -> None:
        step = self._step
        assert step is not None
        key, value = (each[: step.sizes.rows].contiguous() for each in (k, v))
        name = layer.layer_id, q.dtype, "new"
        if name not in self._operations:
            params, value_params = (make_params((each[:, None],)) for each in (key, value))
            cache = CacheConfiguration(params, value_params, "csr")
            attention = self._configure(q, layer, sinks).make_attention(cache)
            self._operations[name] = LayerOperations(0, False, attention)
        inputs = make_dense_inputs(key, value, step.sizes)
        operations = self._operations[name]
        self._attend(q, layer, out, sinks, operations, inputs, step.sizes.lengths)

    def _attend_to_pool(
        self, q: Any, k: Any, v: Any, layer: Any, out: Any, sinks: Any
    ) -> None:
        step = self._step
        assert step is not None
        if self.token_to_kv_pool.layer_transfer_counter is not None:
            self.token_to_kv_pool.get_key_buffer(layer.layer_id)  # waits for its transfer
        name = layer.layer_id, q.dtype, None if sinks is None else sinks.dtype
        operations = self._operations.get(name)
        if operations is None:
            operations = self._make_operations(q, layer, sinks)
            self._operations[name] = operations
        pool, reads = (
            (self._window, step.window)
            if operations.in_window
            else (self._full, step.full)
        )
        assert pool is not None and reads is not None
        if k is not None:
            assert operations.append is not None
            rows = step.sizes.rows
            operations.append(
                pool.slots,
                operations.index,
                *((k[:rows],) if pool.value_dim else (k[:rows], v[:rows])),
                slots=reads.slots[:rows],
                **operations.scales,
            )
        self._attend(q, layer, out, sinks, operations, reads.inputs, reads.lengths)

    def _attend(
        self,
        q: Any,
        layer: Any,
        out: Any,
        sinks: Any,
        operations: LayerOperations,
        inputs: Any,
        lengths: Any,
    ) -> None:
        step = self._step
        assert step is not None
        rows, attention = step.sizes.rows, operations.attention
        attention(
            inputs,
            operations.index,
            q.view(-1, layer.tp_q_head_num, layer.qk_head_dim)[:rows],
            out=out.view(-1, layer.tp_q_head_num, layer.v_head_dim)[:rows],
            scale=layer.scaling,
            sinks=sinks,
            kv_lengths=lengths,
            workspace=self._workspaces.take(attention, step.sizes.batch),
            **operations.scales,
        )

    # --- Operations ----------------------------------------------------------------------

    def _make_operations(self, q: Any, layer: Any, sinks: Any) -> LayerOperations:
        """Makes the operations of a layer on its pool."""
        first = getattr(self.token_to_kv_pool, "start_layer", 0)
        own = layer.layer_id - first, False
        index, in_window = self._places.get(layer.layer_id, own)
        pool = self._window if in_window else self._full
        assert pool is not None
        is_copied = in_window or self._table.page_size > 1
        cache = CacheConfiguration(
            pool.params,
            pool.value_params,
            "dense" if is_copied else "rows",
            pool.value_dim,
            pool.has_static_scales,
        )
        configuration = self._configure(q, layer, sinks)
        return LayerOperations(
            index,
            in_window,
            configuration.make_attention(cache),
            configuration.make_append(cache),
            _find_scales(layer, pool),
        )

    def _configure(self, q: Any, layer: Any, sinks: Any) -> Configuration:
        window = layer.sliding_window_size
        return Configuration(
            options=self._options,
            dtype=name_dtype(q.dtype),
            query_heads=layer.tp_q_head_num,
            query_rows=self._query_rows,
            window=window + 1 if window > -1 else None,  # SGLang counts earlier tokens
            soft_cap=layer.logit_cap or None,
            sinks=None if sinks is None else name_dtype(sinks.dtype),
        )


def _find_scales(layer: Any, pool: Pool) -> dict[str, Any]:
    """The scales of a layer of fp8; 1 unless the model has both."""
    if not pool.has_static_scales:
        return {}
    if pool.value_dim:
        return {"key_scale": 1.0}
    key, value = layer.k_scale_float, layer.v_scale_float
    if key is None or value is None:
        key = value = 1.0
    return {"key_scale": key, "value_scale": value}
