# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operations that select the tokens of sparse attention."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..cache.params import KVCacheParams
from ..checks import check_flag, check_integer, check_size
from ..execution.arrays import Array, check_int32, read_if_integers
from ..pages.inputs import StepInputs
from .arguments import Tiling, attributes_text, check_given, check_paged
from .array_checks import check_entries, check_leading, check_rows, count_new, get_sizes
from .cache_forms import NUMBERS, CacheForm, write_function
from .making import make, remember
from .operations import Operation
from .overlaps import check_apart, check_elements_apart
from .steps import take_step

_MOST_SELECTED = 4096
_MOST_SPLITS = 256
MOST_WIDTH = 1 << 20


@dataclass(frozen=True)
class SelectionSpec:
    """The spec of an operation that selects rows by their scores.

    ``k``, ``width``, ``whole``, ``expand``, ``tail``, ``first``, ``last`` and
    ``splits`` are the arguments of ``top_rows``. The last three attributes are the form
    of a call: whether scores have heads, and whether it takes ``tokens`` and
    ``lengths``.
    """

    cache: CacheForm
    k: int
    width: int = 1
    whole: bool = False
    expand: bool = False
    tail: bool = False
    first: int = 0
    last: int = 0
    splits: int = 1
    tiling: Tiling = Tiling()
    has_heads: bool = False
    has_tokens: bool = False
    has_lengths: bool = False

    def checked(self) -> SelectionSpec:
        """Returns the spec with Python's numbers, or raises what contradicts it."""
        check_flag(whole=self.whole, expand=self.expand, tail=self.tail)
        check_size(_MOST_SELECTED, k=self.k)
        check_size(MOST_WIDTH, width=self.width)
        check_size(_MOST_SPLITS, splits=self.splits)
        check_integer(first=self.first, last=self.last)
        for name, count in (("first", self.first), ("last", self.last)):
            if count < 0:
                raise ValueError(f"expects {name!r} not to be negative, got {count}")
        if self.first + self.last > self.k:
            raise ValueError(
                f"expects 'first' and 'last' to be at most 'k' ({self.k}) together, got "
                f"{self.first} and {self.last}"
            )
        if self.tail and not (self.whole and self.expand):
            raise ValueError("expects 'tail' only with 'whole' and 'expand'")
        return replace(
            self,
            k=int(self.k),
            width=int(self.width),
            whole=bool(self.whole),
            expand=bool(self.expand),
            tail=bool(self.tail),
            first=int(self.first),
            last=int(self.last),
            splits=int(self.splits),
        )

    @property
    def columns(self) -> int:
        """The number of columns of ``out``."""
        tail = self.width - 1 if self.tail else 0
        return self.k * (self.width if self.expand else 1) + tail

    def count_candidates(self, tokens: int) -> int:
        """The candidates of a row that sees so many tokens."""
        rounded = tokens if self.whole else tokens + (self.width - 1)
        return rounded // self.width

    def count_entries(self, totals: np.ndarray) -> np.ndarray:
        """The entries of the cache that sequences of so many tokens may select."""
        if self.expand and (self.tail or not self.whole):
            return totals
        candidates = (totals + (0 if self.whole else self.width - 1)) // self.width
        return candidates * self.width if self.expand else candidates

    @property
    def attributes(self) -> list[str]:
        """The attributes of the op."""
        numbers = {"width": self.width, "first": self.first, "last": self.last}
        flags = {"whole": self.whole, "expand": self.expand, "tail": self.tail}
        defaults = {"width": 1}
        return [
            *(name for name, flag in flags.items() if flag),
            *(
                f"{name} = {number}"
                for name, number in numbers.items()
                if number != defaults.get(name, 0)
            ),
            *self.tiling.attributes,
        ]


def top_rows_types(spec: SelectionSpec) -> dict[str, str]:
    """The types of the arrays of the op, by their names in the function."""
    leading, strides = ("?x?", "?, ?") if spec.has_heads else ("?", "?")
    selected = f"memref<{leading}x{spec.columns}xi32, strided<[{strides}, 1]>>"
    splits, numbers = spec.splits, 2 * spec.k
    workspace = (
        f"memref<{leading}x{splits}x{numbers}xi32, strided<[{strides}, {numbers}, 1]>>"
    )
    return {
        "scores": f"memref<{leading}x?xf32, strided<[{strides}, 1]>>",
        "row_offsets": NUMBERS,
        "out": selected,
        **({"tokens": selected} if spec.has_tokens else {}),
        **({"token_lengths": NUMBERS} if spec.has_lengths else {}),
        **({"workspace": workspace} if spec.splits > 1 else {}),
    }


def write_top_rows(spec: SelectionSpec) -> str:
    """Writes the op, which selects rows of the first view of the cache."""
    types = top_rows_types(spec)
    view, view_type = next(iter(spec.cache.view_types.items()))
    tokens = ", %tokens" if spec.has_tokens else ""
    lengths = " lengths %token_lengths" if spec.has_lengths else ""
    workspace = " workspace %workspace" if spec.splits > 1 else ""
    operands = [types["scores"], view_type, *list(types.values())[1:]]
    return (
        f"kvcache.top_rows %scores, %{view} rows %row_offsets outs(%out{tokens}){lengths}"
        f"{workspace}{attributes_text(spec.attributes)}\n      : {', '.join(operands)}"
    )


def top_rows_source(spec: SelectionSpec, mutates: Sequence[str]) -> str:
    types = top_rows_types(spec)
    lines = [*spec.cache.views(), write_top_rows(spec)]
    return write_function("top_rows", spec.cache.arguments, types, mutates, lines)


class TopRows(Operation):
    write = staticmethod(top_rows_source)
    functions = ("top_rows",)
    mutates = ("out", "tokens", "workspace")

    def __call__(
        self,
        inputs: StepInputs,
        scores: Array,
        *,
        out: Array,
        tokens: Array | None = None,
        lengths: Array | None = None,
        workspace: Array | None = None,
        device: int = 0,
    ) -> None:
        """Selects the rows with the largest scores, for ``rows`` of ``attention``.

        The first call with scores of three dimensions, with ``tokens`` or with
        ``lengths`` compiles a function for this form.

        Args:
            inputs: As for ``append``: the step of the cache that is attended to.
            scores: The scores of the candidates of each row, float32 [total, n] or
                [total, heads, n].
            out: The rows of the selection, page * page_size + offset in ascending order
                of tokens, and then -1, int32 [total, columns] or [total, heads,
                columns], written. The columns are ``k``, times ``width`` with
                ``expand``, and ``width - 1`` more with ``tail``.
            tokens: The numbers of these tokens, or of candidates without ``expand``, as
                ``out``, written. None for no such output.
            lengths: The tokens of each sequence before this step, int32 [batch]. None
                for the lengths of ``inputs``: a cache with an entry for several tokens
                may count entries there.
            workspace: Memory for ``splits``, int32 [total, splits, 2 * k] or [total,
                heads, splits, 2 * k]. None without splits.
            device: The device whose tensors it reads.
        """
        step = take_step(inputs, self._spec.cache, 0, device)
        written = {"out": out, "tokens": tokens, "workspace": workspace}
        check_selection(self._spec, scores, written)
        check_rows(step.offsets, scores=scores, **written)
        totals = read_totals(inputs, lengths)
        check_columns(totals, ("scores", scores), self._spec.count_candidates)
        check_selected_entries(self._spec, inputs, step.blocks, totals)
        others = {"scores": scores, "lengths": lengths, **step.tables}
        check_elements_apart(**written)
        check_apart(written, others)
        given = (out, tokens, lengths, workspace)
        form = replace(
            self._spec,
            has_heads=len(get_sizes(scores)) == 3,
            has_tokens=tokens is not None,
            has_lengths=lengths is not None,
        )
        optional = (array for array in given if array is not None)
        self._take_form(form)._call(*step.operands, scores, step.offsets, *optional)


def check_selection(
    spec: SelectionSpec, scores: Array, written: Mapping[str, Array | None]
) -> None:
    """Raises ``ValueError`` for sizes that contradict each other.

    ``written`` are ``out``, ``tokens`` and ``workspace``.
    """
    workspace = written["workspace"]
    sizes, columns = get_sizes(written["out"]), spec.columns
    needed = *sizes[:-1], spec.splits, 2 * spec.k
    if workspace is None and spec.splits > 1:
        raise ValueError(
            f"this operation was made with splits={spec.splits}: expects 'workspace', "
            f"int32 {list(needed)}"
        )
    check_given("workspace", workspace, spec.splits > 1)
    if sizes and sizes[-1] != columns:
        raise ValueError(
            f"expects 'out' to have {columns} columns for 'k' ({spec.k}), got "
            f"{sizes[-1]}"
        )
    check_leading(sizes[:-1], "'out'", scores=scores)
    check_leading(sizes, "'out'", tokens=written["tokens"])
    found = get_sizes(workspace)
    if sizes and found and found != needed:
        raise ValueError(
            f"expects 'workspace' to have the shape {list(needed)}, got {list(found)}"
        )


def check_columns(
    totals: np.ndarray | None,
    scores: tuple[str, Array],
    count: Callable[[int], int],
) -> None:
    """Raises ``ValueError`` if scores lack columns.

    Args:
        totals: As ``read_totals`` returns them.
        scores: The array of scores with its name.
        count: The function that counts the columns of a row that sees so many tokens.
    """
    name, array = scores
    sizes = get_sizes(array)
    if totals is None or not sizes or not totals.size:
        return
    sequence = int(totals.argmax())
    columns = count(int(totals[sequence]))
    if columns > sizes[-1]:
        raise ValueError(
            f"expects {name!r} to have a column for each of {columns} candidates of "
            f"sequence {sequence}, got {sizes[-1]}"
        )


def check_selected_entries(
    spec: SelectionSpec, inputs: StepInputs, blocks: Array, totals: np.ndarray | None
) -> None:
    """Raises ``ValueError`` if the table lacks pages of what may be selected."""
    entries = None if totals is None else spec.count_entries(totals)
    is_entry = spec.width == 1 or spec.expand
    check_entries(inputs, blocks, entries, "tokens" if is_entry else "entries")


def read_totals(inputs: StepInputs, lengths: Array | None) -> np.ndarray | None:
    """Reads the tokens that the last new token of each sequence sees, int64 [batch].

    0 for a sequence without new tokens; None if lengths or offsets are not in host
    memory.

    Args:
        inputs: The step.
        lengths: The tokens of each sequence before the step; None for those of
            ``inputs``.

    Raises:
        TypeError: ``lengths`` is no array of integers of 32 bits.
        ValueError: ``lengths`` has another size than the batch, or is negative.
    """
    new = count_new(inputs)
    if lengths is None:
        totals = inputs.totals
        return totals if totals is None or new is None else np.where(new > 0, totals, 0)
    check_int32(1, lengths=lengths)
    (batch,), sizes = get_sizes(inputs.lengths), get_sizes(lengths)
    if sizes != (batch,):
        raise ValueError(
            f"expects 'lengths' to have a number for each of {batch} sequences, got an "
            f"array of shape {sizes}"
        )
    numbers = read_if_integers(lengths)
    if numbers is None or new is None:
        return None
    if numbers.min(initial=0) < 0:
        sequence = int(numbers.argmin())
        raise ValueError(
            f"expects 'lengths' not to be negative, got {numbers[sequence]} for sequence "
            f"{sequence}"
        )
    return np.where(new > 0, numbers.astype(np.int64) + new, 0)


@remember
def top_rows(
    params: KVCacheParams,
    k: int,
    *,
    width: int = 1,
    whole: bool = False,
    expand: bool = False,
    tail: bool = False,
    first: int = 0,
    last: int = 0,
    splits: int = 1,
    target: str = "cpu",
    separate: bool = False,
    table: str = "dense",
    block_threads: int | None = None,
    bounds_checks: bool = False,
    threads: int | None = None,
) -> TopRows:
    """The operation that selects the rows with the largest scores.

    Each new token at position p selects at most ``k`` candidates: blocks of ``width``
    tokens, from the first token on. A larger score is first, and of equal scores the
    candidate with earlier tokens. -0 equals 0, and NaN comes after all numbers.

    Args:
        params: The parameters of the paged cache that is attended to.
        k: The most candidates that are selected, up to 4096.
        width: The tokens of a candidate.
        whole: Whether all tokens of a candidate are at p or before, instead of one.
        expand: Whether the rows are those of the tokens of candidates at p or before.
            Otherwise the cache has a row for each candidate.
        tail: Whether the tokens after the last whole candidate, up to p, follow. Needs
            ``whole`` and ``expand``.
        first: The number of first candidates that are always selected.
        last: The number of last candidates that are always selected.
        splits: The splits of a row of scores, from which thread blocks select in
            parallel, up to 256, for few rows of many columns. More than 1 needs a
            ``workspace``; the result is the same.
        target: As in ``jit``.
        separate: As for ``append``, like ``table``; values are not read.
        table: As for ``append``.
        block_threads: On a GPU, the threads of a thread block: a multiple of 32 from 32
            to 1024; 1024 by default.
        bounds_checks: As in ``jit``.
        threads: As in ``jit``.

    Raises:
        ValueError: The cache is not paged, or an argument is out of range.
        TypeError: An argument is not a number, or not a flag.
    """
    check_flag(bounds_checks=bounds_checks)
    cache = CacheForm.of(params, separate, None, table, keys_only=True)
    check_paged(params)
    tiling = Tiling(block_threads).checked()
    spec = SelectionSpec(
        cache,
        k,
        width=width,
        whole=whole,
        expand=expand,
        tail=tail,
        first=first,
        last=last,
        splits=splits,
        tiling=tiling,
    )
    return make(TopRows, spec.checked(), target, bounds_checks, threads)
