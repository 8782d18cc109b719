# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operation that scores tokens and selects the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..cache.params import KVCacheParams
from ..checks import check_flag
from ..dtypes import DTypeLike
from ..execution.arrays import Array
from ..pages.inputs import StepInputs
from .arguments import (
    Tiling,
    check_given,
    check_index_queries,
    check_paged,
    dense_dtype,
)
from .array_checks import check_rows, count_new, get_sizes
from .cache_forms import CacheForm, prefix_names, write_function
from .index_scoring import (
    IndexSpec,
    check_lengths,
    check_q_scales,
    check_scored_entries,
    index_scores_types,
    write_index_scores,
)
from .making import make, remember
from .operations import Operation
from .overlaps import check_apart, check_elements_apart
from .selection import (
    SelectionSpec,
    check_columns,
    check_selected_entries,
    check_selection,
    read_totals,
    top_rows_types,
    write_top_rows,
)
from .steps import take_step

_PREFIX = "index_"
_VIEWS = ("cache", "layers", "key_view", "value_view")


@dataclass(frozen=True)
class IndexRowsSpec:
    """The specs of the two ops: one scores the index keys, and one selects."""

    scores: IndexSpec
    selection: SelectionSpec

    def checked(self) -> IndexRowsSpec:
        """Returns the specs with Python's numbers, or raises what contradicts them."""
        if self.scores.width > 1 and not self.selection.whole:
            raise ValueError("expects 'whole' with 'width', whose last group may be open")
        selection = replace(self.selection, has_lengths=self.scores.has_lengths)
        return IndexRowsSpec(self.scores, selection.checked())

    def count_columns(self, tokens: int) -> int:
        """The columns of a row that sees so many tokens, which either op uses."""
        return max(
            self.scores.count_columns(tokens), self.selection.count_candidates(tokens)
        )


def index_rows_source(spec: IndexRowsSpec, mutates: Sequence[str]) -> str:
    index = spec.scores.cache
    names = [*index.arguments, *_VIEWS]
    score = [*index.views(), write_index_scores(spec.scores, "scores")]
    lines = [
        *prefix_names(score, names, _PREFIX),
        *spec.selection.cache.views(),
        write_top_rows(spec.selection),
    ]
    arguments = {f"{_PREFIX}{name}": type_ for name, type_ in index.arguments.items()}
    types = {
        **index_scores_types(spec.scores, "scores"),
        **top_rows_types(spec.selection),
    }
    caches = {**arguments, **spec.selection.cache.arguments}
    return write_function("index_rows", caches, types, mutates, lines)


class IndexRows(Operation):
    write = staticmethod(index_rows_source)
    functions = ("index_rows",)
    mutates = ("scores", "out", "tokens", "workspace")

    def __call__(
        self,
        index_inputs: StepInputs,
        layer: int,
        q: Array,
        inputs: StepInputs,
        *,
        weights: Array | None = None,
        scores: Array,
        out: Array,
        tokens: Array | None = None,
        lengths: Array | None = None,
        q_scales: Array | None = None,
        workspace: Array | None = None,
        device: int = 0,
    ) -> None:
        """Scores the tokens of a layer for each new token, and selects the best rows.

        The first call with ``tokens`` or ``lengths`` compiles a function for this form.

        Args:
            index_inputs: As for ``index_scores``: the step of the index keys.
            layer: The index of the layer in the cache of index keys.
            q: The queries, as for ``index_scores``.
            inputs: As for ``top_rows``: the step of the cache that is attended to, of
                the same new tokens.
            weights: The factor of each head, as for ``index_scores``.
            scores: The workspace of scores, float32 [total, n], written as by
                ``index_scores``. With ``block`` and ``whole``, the last block of a
                query has a column though it may be open.
            out: The rows of the selection, as for ``top_rows``.
            tokens: The numbers of these tokens, as for ``top_rows``.
            lengths: The tokens of each sequence before this step, as for both.
            q_scales: The scales of queries, as for ``index_scores``.
            workspace: Memory for ``splits``, as for ``top_rows``.
            device: The device whose tensors it reads.
        """
        spec: IndexRowsSpec = self._spec
        check_given("weights", weights, spec.scores.weights)
        check_q_scales(spec.scores, q_scales)
        check_lengths(spec.scores, lengths)
        index = take_step(
            index_inputs, spec.scores.cache, layer, device, name="index_inputs"
        )
        step = take_step(inputs, spec.selection.cache, 0, device)
        totals = _read_common_totals(index_inputs, inputs, lengths)
        check_scored_entries(spec.scores, index_inputs, index.blocks, totals)
        check_selected_entries(spec.selection, inputs, step.blocks, totals)
        written = {"out": out, "tokens": tokens, "workspace": workspace}
        check_selection(spec.selection, scores, written)
        optional = {"weights": weights, "q_scales": q_scales}
        check_rows(step.offsets, q=q, **optional, scores=scores, **written)
        check_columns(totals, ("scores", scores), spec.count_columns)
        others = {"q": q, **optional, "lengths": lengths, **index.tensors}
        check_elements_apart(scores=scores, **written)
        check_apart(
            {"scores": scores, **written},
            {**others, **index.tables, **step.tables},
        )
        form = IndexRowsSpec(
            replace(spec.scores, has_lengths=lengths is not None),
            replace(
                spec.selection,
                has_tokens=tokens is not None,
                has_lengths=lengths is not None,
            ),
        )
        given = {"q": q, "row_offsets": step.offsets, "scores": scores}
        given |= {**optional, **written}
        given["token_lengths"] = lengths
        names = {
            **index_scores_types(form.scores, "scores"),
            **top_rows_types(form.selection),
        }
        operation = self._take_form(form)
        operation._call(*index.operands, *step.operands, *(given[name] for name in names))


def _read_common_totals(
    index_inputs: StepInputs, inputs: StepInputs, lengths: Array | None
) -> np.ndarray | None:
    """As ``read_totals``; also checks that both steps are of the same new tokens.

    Raises ``ValueError`` for other sequences, offsets, or tokens without ``lengths``.
    """
    steps = index_inputs, inputs
    (found,), (expected,) = (get_sizes(step.lengths) for step in steps)
    if found != expected:
        raise ValueError(
            f"expects 'index_inputs' to have the {expected} sequences of 'inputs', got "
            f"{found}"
        )
    _check_counts("new tokens", *(count_new(step) for step in steps))
    if lengths is None:
        _check_counts("tokens", *(step.totals for step in steps))
    return read_totals(inputs, lengths)


def _check_counts(
    noun: str, found: np.ndarray | None, expected: np.ndarray | None
) -> None:
    """Raises ``ValueError`` if both counts are known and differ for a sequence."""
    if found is None or expected is None or not (differs := found != expected).any():
        return
    sequence = int(differs.argmax())
    raise ValueError(
        f"expects 'index_inputs' to have the {expected[sequence]} {noun} of sequence "
        f"{sequence} of 'inputs', got {found[sequence]}"
    )


@remember
def index_rows(
    index_params: KVCacheParams,
    index_heads: int,
    params: KVCacheParams,
    k: int,
    *,
    relu: bool = False,
    width: int = 1,
    block: int | None = None,
    weights: bool = False,
    whole: bool = False,
    expand: bool = False,
    tail: bool = False,
    first: int = 0,
    last: int = 0,
    splits: int = 1,
    dtype: DTypeLike | None = None,
    target: str = "cpu",
    separate: bool = False,
    table: str = "dense",
    block_threads: int | None = None,
    bounds_checks: bool = False,
    threads: int | None = None,
) -> IndexRows:
    """The operation that scores tokens with index keys, and selects the best rows.

    One call has the result of ``index_scores`` with ``sum_heads`` and ``top_rows``. It
    is two kernels, or three with ``splits``. Scores go through a workspace: a row of
    scores of the longest contexts is larger than the memory of a multiprocessor.

    Args:
        index_params: The parameters of the cache of index keys, as for ``index_scores``.
        index_heads: The number of heads of queries, up to 64.
        params: The parameters of the paged cache that is attended to.
        k: The most candidates that are selected, up to 4096. A candidate is ``width``
            times ``block`` tokens.
        relu: As for ``index_scores``.
        width: As for ``index_scores``.
        block: As for ``index_scores``.
        weights: As for ``index_scores``.
        whole: As for ``top_rows``; needed with ``width``.
        expand: As for ``top_rows``.
        tail: As for ``top_rows``.
        first: As for ``top_rows``.
        last: As for ``top_rows``.
        splits: As for ``top_rows``.
        dtype: As for ``index_scores``.
        target: As in ``jit``.
        separate: As for ``append``, for both caches; values are not read.
        table: As for ``append``, for both caches.
        block_threads: As for ``index_scores`` and for ``top_rows``, for both.
        bounds_checks: As in ``jit``.
        threads: As in ``jit``.

    Raises:
        ValueError: A cache is not paged, or an argument is out of range.
        TypeError: An argument is not a number, or not a flag.
    """
    check_flag(bounds_checks=bounds_checks)
    index = CacheForm.of(index_params, separate, None, table, keys_only=True)
    cache = CacheForm.of(params, separate, None, table, keys_only=True)
    check_paged(params)
    name = dense_dtype(index_params, None)
    if dtype is not None:
        name = check_index_queries("dtype", dtype)
    tiling = Tiling(block_threads).checked()
    scores = IndexSpec(
        index,
        name,
        index_heads,
        relu=relu,
        sum_heads=True,
        width=width,
        block=block,
        weights=weights,
        tiling=tiling,
    ).checked()
    selection = SelectionSpec(
        cache,
        k,
        width=scores.width * (scores.block or 1),
        whole=whole,
        expand=expand,
        tail=tail,
        first=first,
        last=last,
        splits=splits,
        tiling=tiling,
    )
    spec = IndexRowsSpec(scores, selection)
    return make(IndexRows, spec.checked(), target, bounds_checks, threads)
