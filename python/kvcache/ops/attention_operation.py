# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operation that attends to a layer of the cache."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .._native import extension
from ..checks import check_positive
from ..compilation import tuning_files
from ..errors import CheckError
from ..execution.arrays import Array, as_32_bits, check_32_bits, read_if_integers
from ..pages.inputs import StepInputs
from .arguments import check_given, check_score_factor
from .array_checks import check_kv_lengths, check_rows, check_slots, check_table
from .attention_config import AttentionConfig
from .attention_source import attention_source
from .attention_spec import AttentionSpec
from .cache_forms import CacheForm
from .constant_arrays import ConstantArray, Scale, expand_divisor, expand_scale
from .operations import Build, LayerOperation, select_given
from .overlaps import check_apart
from .sources import LayerSpec
from .splits import Splits
from .steps import Step, take_step
from .workspaces import Workspaces

_OPTIONS = ("sinks", "mask", "rows", "kv_lengths")
"""The optional arrays before the scales, in the order of the function."""
_PER_TOKEN = ("q", "q_rope", "out", "lse", "max_logits", "mask", "rows", "ranges")
"""The arrays that have a row for each new token."""


class Attention(LayerOperation):
    write = staticmethod(attention_source)
    functions = ("attention",)
    mutates = ("out", "lse", "max_logits", "workspace")
    parameters = {
        "q": "r",
        "out": "r",
        "lse": "o",
        "scale": "n",
        "sinks": "a",
        "mask": "r",
        "rows": "v",
        "kv_lengths": "l",
        "workspace": "w",
        "key_scale": "f",
        "value_scale": "f",
        "query_scale": "e",
        "out_scale": "e",
        "q_rope": "r",
        "max_logits": "r",
        "ranges": "b",
    }
    positional = ("q",)

    def __init__(self, source: str, build: Build, spec: AttentionSpec) -> None:
        super().__init__(source, build, spec)
        self._workspaces = Workspaces(spec, build.target)

    def write_source(self, chips: str) -> str:
        """The module's text for chips; a swap is only for chips with ``wgmma``."""
        spec: AttentionSpec = self._spec
        swaps = spec.swap_operands and chips
        features = extension().chip_features
        if not swaps or all("wgmma" in features(each) for each in chips.split(",")):
            return self.source
        plain = replace(spec, config=replace(spec.config, swap_ab=None))
        return attention_source(plain, self.mutates)

    @property
    def spec(self) -> AttentionSpec:
        """The options that the operation was made with."""
        spec: AttentionSpec = self._spec
        return spec

    @property
    def cache(self) -> CacheForm:
        """The form of the cache."""
        return self.spec.cache

    def with_config(self, config: AttentionConfig) -> Attention:
        """The operation with another config, and without a tuning file."""
        spec = replace(self.spec, config=config, swap_operands=False)
        source = attention_source(spec, self.mutates)
        return Attention(source, replace(self.build, uses_tuning=False), spec)

    def _find_tuning(self, chips: str) -> Path | None:
        return tuning_files.find(chips) if self.build.uses_tuning else None

    @functools.cached_property
    def _kinds(self) -> dict[str, str]:
        arrays = self._spec.regions.arrays
        regions = {name: "u" if element[0] == "u" else "g" for name, element, _ in arrays}
        return {**self.parameters, **regions}

    @functools.cached_property
    def _region_names(self) -> list[str]:
        return [name for name, *_ in self._spec.regions.arrays]

    def _get_workspace(self) -> dict[str, Any]:
        return {
            "workspace_bytes": self._spec.workspace_bytes,
            "find_workspace": self._workspaces.find,
        }

    def _count_elements(self, name: str) -> int:
        if name in ("key_scale", "value_scale"):
            return super()._count_elements(name)
        heads: int = self._spec.query_heads
        return heads

    def _explain(self, inputs: StepInputs, layer: int, error: CheckError) -> None:
        self._workspaces.drop()
        super()._explain(inputs, layer, error)

    def _layer(self) -> LayerSpec:
        return self.spec.layer

    @property
    def splits(self) -> Splits | None:
        """The splits, as given or as chosen from the bounds of steps; None for none."""
        splits: Splits | None = self._spec.splits
        return splits

    def workspace_size(self, batch: int) -> int:
        """The bytes of the workspace for ``batch`` sequences; 0 without one."""
        check_positive(batch=batch)
        return self._spec.count_bytes(int(batch))

    def __call__(
        self,
        inputs: StepInputs,
        layer: int,
        q: Array,
        *,
        out: Array,
        lse: Array | None = None,
        scale: float,
        sinks: Array | None = None,
        mask: Array | None = None,
        rows: Array | None = None,
        kv_lengths: Array | None = None,
        workspace: Array | None = None,
        key_scale: Scale = None,
        value_scale: Scale = None,
        query_scale: Scale = None,
        out_scale: Scale = None,
        q_rope: Array | None = None,
        max_logits: Array | None = None,
        ranges: Array | None = None,
        device: int = 0,
        **arrays: Array,
    ) -> None:
        """Attends to all tokens, including those of this step: append them first.

        ``out``, ``lse``, ``max_logits`` and ``workspace`` share no memory with each other
        or with another array, ``q`` included.

        Args:
            inputs: As for ``append``.
            layer: The index of the layer in the cache.
            q: The queries, [total, query_heads, head_dim], in the order of the inputs'
                tokens.
            out: The output, [total, query_heads, value_dim], written; zeros for a query
                that sees no token.
            lse: The natural logarithm of the denominator, float32 [total, query_heads],
                written unless None; that of its sink, or -inf, for a query that sees no
                token. With ``sinkless_lse``, no sink is part of it.
            scale: The factor of scores, from -2^16 to 2^16.
            sinks: The logits of the sinks, [query_heads], of float32 or the dtype that
                the operation was made with.
            mask: The mask, int32 [total, words], if it was made with one: bit j is set
                if the query sees the j-th new token of its sequence. All tokens of
                earlier steps are seen. With ``whole_mask``, bit t is set if the query
                sees token t, new or not. Tokens that have no bit are not seen.
            rows: The slots of the tokens that each query sees, page * page_size +
                offset, int32 [total, n], if it was made with rows, or [total, heads, n]
                for each head of the cache with ``rows="heads"``. Negative ones are
                skipped. One in host memory that the cache lacks is an error.
            kv_lengths: The number of tokens of each sequence, int32 [batch], if it was
                made with them. The lengths of the inputs are ignored then. Each call
                copies int64 ones. If a sequence has fewer tokens than queries, its first
                queries stand before token 0: they see nothing if causal.
            workspace: The workspace, int8 [bytes], if ``workspace_size`` is not 0. It has
                at least ``workspace_size`` bytes, aligned to 16, and is zeroed once and
                after each call that raises. Operations may share it, one call at a
                time. By default, the operation keeps one for each stream of a GPU, or
                for each thread of the CPU. A call for more sequences replaces it.
            key_scale: The factor of keys, if the operation was made with static scales:
                a number, or float32 [heads].
            value_scale: The factor of values; None for a latent cache.
            query_scale: The factor of fp8 queries: a number, or float32 [query_heads];
                1 by default.
            out_scale: The divisor of fp8 outputs, as ``query_scale``, and not 0.
            q_rope: The last elements of the queries, [total, query_heads, query_rope],
                if the operation was made with ``query_rope``. ``q`` has the others
                then, and the heads of both arrays may be any distance apart.
            max_logits: The largest score of each query, float32 [total, query_heads],
                written, if the operation was made with it: after ``scale``,
                ``soft_cap`` and ``score``, without the sink, and -inf if the query sees
                no token.
            ranges: The ranges of tokens that each query sees, int32 [total, ranges, 2],
                if the operation was made with them: it sees token t if ``begin <= t <
                end`` for one of them. Ranges are sorted and do not overlap; empty ones
                may end the list, such as (n, n). Numbers outside of the sequence are
                clipped.
            device: The device whose tensors it reads.
            arrays: The arrays of ``score`` and ``mask``, by name. An index outside of
                one, of a key that is seen, reads its nearest element.
        """
        arguments = (
            inputs,
            layer,
            q,
            out,
            lse,
            scale,
            sinks,
            mask,
            rows,
            kv_lengths,
            workspace,
            key_scale,
            value_scale,
            query_scale,
            out_scale,
            q_rope,
            max_logits,
            ranges,
            *map(arrays.get, self._region_names),
        )
        checked = self._checked
        is_plain = type(device) is int and not device
        if checked is not None and is_plain and len(arrays) == len(self._region_names):
            try:
                if checked(*arguments):
                    return
            except CheckError as error:
                self._explain(inputs, layer, error)
        self._attend(inputs, layer, device, self._name(arguments), arrays)

    def _attend(
        self,
        inputs: StepInputs,
        layer: int,
        device: int,
        given: dict[str, Any],
        arrays: dict[str, Array],
    ) -> None:
        """Attends with Python's checks; ``given`` are the arguments after the layer.

        ``arrays`` are those of ``score`` and ``mask``.
        """
        step = take_step(inputs, self.cache, layer, device)
        region_arrays = self._spec.regions.take(arrays)
        if given["rows"] is None and given["kv_lengths"] is None:
            check_table(inputs, step.blocks)
        q, out, lse = given["q"], given["out"], given["lse"]
        batch = step.offsets.shape[0] - 1
        workspaces = self._workspaces.take(given["workspace"], batch, (q, out))
        given["kv_lengths"] = _narrow("kv_lengths", given["kv_lengths"])
        factor = check_score_factor("scale", given.pop("scale"))
        self._check(inputs, step, given)
        read = {**given, **step.tensors, **step.tables, **arrays}
        check_apart({name: read.pop(name) for name in self.mutates}, read)
        scales = self._scales(given["key_scale"], given["value_scale"])
        row_scales = self._get_row_scales(given)
        if lse is None:
            lse = ConstantArray(0, (0, self._spec.query_heads))
        try:
            self._call_on_layer(
                inputs,
                layer,
                step,
                *(q, step.offsets, out, lse, factor),
                *select_given(given, ("max_logits",)),
                *workspaces,
                *select_given(given, _OPTIONS),
                *scales,
                *row_scales,
                *select_given(given, ("q_rope", "ranges")),
                *region_arrays,
            )
        except BaseException:
            self._workspaces.drop()
            raise

    def _check(self, inputs: StepInputs, step: Step, given: dict[str, Any]) -> None:
        """Raises ``TypeError`` or ``ValueError`` for wrong arrays."""
        for name in _OPTIONS:
            made = name in self._spec.extra
            if (given[name] is not None) != made:
                raise ValueError(
                    f"this operation was made with {name}={made}: expects "
                    f"{'' if made else 'no '}'{name}'"
                )
        check_given("q_rope", given["q_rope"], self._spec.query_rope is not None)
        check_given("max_logits", given["max_logits"], self._spec.max_logits)
        check_given("ranges", given["ranges"], self._spec.ranges is not None)
        offsets = inputs.current_offsets
        check_rows(offsets, **{name: given[name] for name in _PER_TOKEN})
        _check_ranges(given["ranges"], offsets)
        if not self.bounds_checks:
            check_slots("rows", given["rows"], offsets, step.blocks)
        check_kv_lengths(given["kv_lengths"], inputs, self.cache.params.page_size or 0)

    def _get_row_scales(self, given: dict[str, Any]) -> tuple[Any, ...]:
        expand = {"query_scale": expand_scale, "out_scale": expand_divisor}
        for name in expand:
            if given[name] is not None and name not in self._spec.scaled_rows:
                raise ValueError(f"expects {name!r} only for fp8")
        heads = self._spec.query_heads
        return tuple(
            expand[name](name, given[name], heads, default=1.0)
            for name in self._spec.scaled_rows
        )


def _narrow(name: str, numbers: Any) -> Any:
    """Copies int64 numbers as int32; returns others as they are."""
    if str(getattr(numbers, "dtype", "")).rpartition(".")[2] != "int64":
        return numbers
    check_32_bits(**{name: numbers})
    return as_32_bits(name, numbers)


def _check_ranges(ranges: Array | None, row_offsets: Array) -> None:
    """Raises ``ValueError`` if the ranges of a row are not sorted.

    If ranges are not in host memory, they are not checked.
    """
    numbers = read_if_integers(ranges)
    if numbers is None or numbers.ndim != 3 or numbers.shape[1] < 2:
        return
    if isinstance(row_offsets, np.ndarray):
        numbers = numbers[: int(row_offsets[-1])]
    flat = numbers.reshape(len(numbers), -1)
    wrong = np.argwhere(flat[:, 1:] < flat[:, :-1])
    if not wrong.size:
        return
    row, number = (int(each) for each in wrong[0])
    first, second = flat[row, number : number + 2].tolist()
    names = ("begin", "end") if number % 2 == 0 else ("end", "next begin")
    raise ValueError(
        f"expects the ranges of a row to be sorted, got {names[0]} {first} and "
        f"{names[1]} {second} in row {row}"
    )
