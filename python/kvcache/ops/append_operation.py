# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operation that appends tokens to a layer of the cache."""

from __future__ import annotations

from typing import Any

from ..errors import CheckError
from ..execution.arrays import Array
from ..pages.inputs import StepInputs
from .arguments import check_given
from .array_checks import (
    check_given_positions,
    check_positions,
    check_rows,
    check_slots,
    check_table,
)
from .constant_arrays import Scale, expand_divisor
from .operations import Build, LayerOperation, select_given
from .overlaps import check_apart
from .sources import LayerSpec, append_source
from .steps import Step, take_step

_CACHE = ("blocks", "key_blocks", "value_blocks", "rope_blocks")
_SCALES = ("scales", "key_scales", "value_scales")
_OPTIONS = ("slots", "norm", "query_norm", "rope", "positions", "queries")
"""The optional arrays before the scales, in the order of the function."""
_OPTIONAL = ("latent_rope", *_OPTIONS, "query_out")
_PER_TOKEN = (
    *("keys", "values", "latent_rope", "slots", "positions"),
    *("queries", "query_out"),
)
"""The arrays that have a row for each new token."""


class Append(LayerOperation):
    write = staticmethod(append_source)
    functions = ("append",)
    mutates = (*_CACHE, *_SCALES, "queries", "query_out")
    parameters = {
        "keys": "r",
        "values": "r",
        "queries": "r",
        "latent_rope": "r",
        "slots": "s",
        "norm": "a",
        "query_norm": "a",
        "rope": "c",
        "positions": "p",
        "key_scale": "f",
        "value_scale": "f",
        "query_out": "r",
        "query_scale": "e",
    }
    positional = ("keys", "values", "queries")

    def __init__(self, source: str, build: Build, spec: LayerSpec) -> None:
        super().__init__(source, build, spec)
        head_dim = spec.cache.params.head_dim
        self._extra = frozenset(spec.options.extra(head_dim, spec.dtype))

    def _count_elements(self, name: str) -> int:
        if name == "query_scale":
            return self._spec.options.query_heads or 0
        return super()._count_elements(name)

    def __call__(
        self,
        inputs: StepInputs,
        layer: int,
        keys: Array,
        values: Array | None = None,
        queries: Array | None = None,
        device: int = 0,
        *,
        latent_rope: Array | None = None,
        slots: Array | None = None,
        norm: Array | None = None,
        query_norm: Array | None = None,
        rope: Array | None = None,
        positions: Array | None = None,
        key_scale: Scale = None,
        value_scale: Scale = None,
        query_out: Array | None = None,
        query_scale: Scale = None,
    ) -> None:
        """Writes the pending tokens of a step to a layer.

        Calls give exactly the optional arguments that the operation was made with. Keys
        are normed, roped and rounded, in this order; values are rounded.
        ``queries``, ``query_out`` and the cache share no memory with each other or with
        another array.

        Args:
            inputs: The inputs of a manager, or of ``StepInputs.of``.
            layer: The index of the layer in the cache.
            keys: New keys [total, heads, head_dim], in the order of the inputs' tokens;
                without the elements of ``latent_rope``.
            values: New values, as ``keys``; None for a latent cache.
            queries: Queries [total, query_heads, head_dim], normed and roped in place,
                or into ``query_out``.
            device: The device whose tensors it writes.
            latent_rope: The last elements of latent rows, [total, 1, elements].
            slots: The slot of each row, page * page_size + offset, [total]. A row with
                a negative slot is skipped, but its queries are not. Lengths and table
                of the inputs are not read. A slot in host memory that the cache lacks
                is an error. Rows with equal slots are undefined, and an error with
                ``bounds_checks``.
            norm: The weights of the RMS norm of each head of keys, [norm], of the dtype
                of rows.
            query_norm: The weights of the RMS norm of queries, [query_norm].
            rope: Cosines and sines, float32 [positions, elements]: for each position
                elements / 2 cosines, then elements / 2 sines.
            positions: The row of ``rope`` for each token, [total], or [axes, total]
                with ``rope_axes``. Without it, the position of a token in its sequence.
                One in host memory that ``rope`` has no row for is an error.
            key_scale: The divisor of keys, if the operation was made with static
                scales: a number other than 0, or float32 [heads].
            value_scale: The divisor of values; None for a latent cache.
            query_out: The queries of fp8, [total, query_heads, head_dim], written, if
                the operation was made with ``query_dtype``. ``queries`` stay then.
            query_scale: The divisor of queries of fp8: a number other than 0, or
                float32 [query_heads]; 1 by default. Quotients are rounded to nearest even, and
                saturate. Attention takes the same scale.
        """
        arguments = (
            inputs,
            layer,
            keys,
            values,
            queries,
            latent_rope,
            slots,
            norm,
            query_norm,
            rope,
            positions,
            key_scale,
            value_scale,
            query_out,
            query_scale,
        )
        checked = self._checked
        if checked is not None and type(device) is int and not device:
            try:
                if checked(*arguments):
                    return
            except CheckError as error:
                self._explain(inputs, layer, error)
        self._append(inputs, layer, device, self._name(arguments))

    def _append(
        self, inputs: StepInputs, layer: int, device: int, given: dict[str, Any]
    ) -> None:
        """Appends with Python's checks; ``given`` are the arguments after the layer."""
        for name in _OPTIONAL:
            check_given(name, given[name], name in self._extra)
        query_scales = self._get_query_scales(given["query_scale"])
        scales = self._scales(given["key_scale"], given["value_scale"], expand_divisor)
        needs_table = given["slots"] is None
        step = take_step(
            inputs, self._spec.cache, layer, device, needs_table=needs_table
        )
        if needs_table:
            check_table(inputs, step.blocks)
        self._check(inputs, step, given)
        self._call_on_layer(
            inputs,
            layer,
            step,
            given["keys"],
            *select_given(given, ("values", "latent_rope")),
            step.offsets,
            *select_given(given, _OPTIONS),
            *scales,
            *select_given(given, ("query_out",)),
            *query_scales,
        )

    def _check(self, inputs: StepInputs, step: Step, given: dict[str, Any]) -> None:
        """Raises ``TypeError`` or ``ValueError`` for wrong arrays."""
        offsets = inputs.current_offsets
        check_rows(offsets, **{name: given[name] for name in _PER_TOKEN})
        slots, rope, positions = given["slots"], given["rope"], given["positions"]
        if rope is not None and positions is None:
            check_positions(inputs, rope)
        if not self.bounds_checks:
            check_slots("slots", slots, offsets, step.blocks)
            used = slots if given["queries"] is None else None
            check_given_positions(positions, offsets, rope, used)
        read = {**given, **step.tables}
        written = {name: read.pop(name) for name in ("queries", "query_out")}
        check_apart(written, {**read, **step.tensors})
        for name, tensor in step.tensors.items():
            check_apart({name: tensor}, read)

    def _get_query_scales(self, scale: Scale) -> tuple[Any, ...]:
        options = self._spec.options
        if options.query_dtype:
            return (expand_divisor("query_scale", scale, options.query_heads, default=1.0),)
        if scale is not None:
            raise ValueError("expects 'query_scale' only with 'query_dtype'")
        return ()
