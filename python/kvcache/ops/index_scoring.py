# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operation that scores tokens for sparse attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..cache.params import KVCacheParams
from ..checks import check_flag, check_size
from ..dtypes import DTypeLike
from ..execution.arrays import Array
from ..pages.inputs import StepInputs
from .arguments import (
    MXFP4,
    Tiling,
    attributes_text,
    check_given,
    check_index_queries,
    dense_dtype,
    rows_type,
)
from .array_checks import check_entries, check_rows, get_sizes
from .cache_forms import NUMBERS, CacheForm, write_function
from .making import make, remember
from .operations import LayerOperation
from .overlaps import check_apart, check_elements_apart
from .selection import MOST_WIDTH, check_columns, read_totals
from .steps import take_step

_MOST_HEADS = 64
_ELEMENTS = 32


@dataclass(frozen=True)
class IndexSpec:
    """The spec of an operation that scores tokens.

    ``dtype`` is the MLIR type of queries. ``heads``, ``relu``, ``sum_heads``, ``width``,
    ``block`` and ``weights`` are the arguments of ``index_scores``. ``has_lengths`` is
    whether a call takes ``lengths``.
    """

    cache: CacheForm
    dtype: str
    heads: int
    relu: bool = False
    sum_heads: bool = False
    width: int = 1
    block: int | None = None
    weights: bool = False
    tiling: Tiling = Tiling()
    has_lengths: bool = False

    def checked(self) -> IndexSpec:
        """Returns the spec with Python's numbers, or raises what contradicts it."""
        check_flag(relu=self.relu, sum_heads=self.sum_heads, weights=self.weights)
        check_size(_MOST_HEADS, index_heads=self.heads)
        check_size(MOST_WIDTH, width=self.width)
        if self.block is not None:
            check_size(MOST_WIDTH, block=self.block)
        params = self.cache.params
        if params.n_kv_heads_per_device != 1:
            raise ValueError(
                "expects a cache of one head, got "
                f"{params.n_kv_heads_per_device} heads on a device"
            )
        if params.head_dim % _ELEMENTS:
            raise ValueError(
                f"expects 'head_dim' to be a multiple of {_ELEMENTS}, got "
                f"{params.head_dim}"
            )
        config = params.kvcache_quant_config
        if config is not None and config.zero_point_dtype is not None:
            raise ValueError("expects a cache without zero points")
        return replace(
            self,
            heads=int(self.heads),
            relu=bool(self.relu),
            sum_heads=bool(self.sum_heads),
            width=int(self.width),
            has_lengths=self.has_lengths or self.width > 1,
            block=None if self.block is None else int(self.block),
            weights=bool(self.weights),
        )

    @property
    def has_q_scales(self) -> bool:
        """Whether queries are MXFP4: pairs in bytes, with scales."""
        return self.dtype == MXFP4

    def count_columns(self, tokens: int) -> int:
        """The columns of a row that sees so many tokens."""
        return -(-(tokens // self.width) // (self.block or 1))

    @property
    def attributes(self) -> list[str]:
        """The attributes of the op."""
        flags = {"relu": self.relu, "sum_heads": self.sum_heads}
        return [
            *(name for name, flag in flags.items() if flag),
            *([f"width = {self.width}"] if self.width > 1 else []),
            *([f"block = {self.block}"] if self.block is not None else []),
            *self.tiling.attributes,
        ]


def check_lengths(spec: IndexSpec, lengths: Array | None) -> None:
    """Raises ``ValueError`` for a call that leaves the tokens of entries open."""
    if spec.width > 1 and lengths is None:
        raise ValueError(
            f"expects 'lengths' with 'width' ({spec.width}): the cache counts entries"
        )


def check_q_scales(spec: IndexSpec, q_scales: Array | None) -> None:
    """Raises ``ValueError`` if scales are missing, or not expected."""
    if q_scales is None and spec.has_q_scales:
        raise ValueError(
            f"this operation was made with dtype={spec.dtype!r}: expects 'q_scales'"
        )
    check_given("q_scales", q_scales, spec.has_q_scales)


def check_scored_entries(
    spec: IndexSpec, inputs: StepInputs, blocks: Array, totals: np.ndarray | None
) -> None:
    """Raises ``ValueError`` if the table lacks pages of what is scored."""
    entries = None if totals is None else totals // spec.width
    check_entries(inputs, blocks, entries, "entries" if spec.width > 1 else "tokens")


def index_scores_types(spec: IndexSpec, out: str = "out") -> dict[str, str]:
    """The types of the arrays of the op, by their names in the function."""
    heads = "" if spec.sum_heads else f"x{spec.heads}"
    strides = "?, 1" if spec.sum_heads else "?, ?, 1"
    size = spec.cache.params.head_dim
    q = (size // 2, "i8") if spec.has_q_scales else (size, spec.dtype)
    q_scales = rows_type("?", spec.heads, size // _ELEMENTS, "f8E8M0FNU")
    return {
        "q": rows_type("?", spec.heads, *q),
        "row_offsets": NUMBERS,
        out: f"memref<?{heads}x?xf32, strided<[{strides}]>>",
        **(
            {"weights": f"memref<?x{spec.heads}xf32, strided<[?, 1]>>"}
            if spec.weights
            else {}
        ),
        **({"token_lengths": NUMBERS} if spec.has_lengths else {}),
        **({"q_scales": q_scales} if spec.has_q_scales else {}),
    }


def write_index_scores(spec: IndexSpec, out: str = "out") -> str:
    """Writes the op, which scores the keys of ``%key_view``."""
    types = index_scores_types(spec, out)
    weights = " weights %weights" if spec.weights else ""
    lengths = " lengths %token_lengths" if spec.has_lengths else ""
    q_scales = " q_scales %q_scales" if spec.has_q_scales else ""
    operands = [types["q"], spec.cache.view_types["key_view"], *list(types.values())[1:]]
    return (
        f"kvcache.index_scores %q, %key_view rows %row_offsets outs(%{out}){weights}"
        f"{lengths}{q_scales}{attributes_text(spec.attributes)}\n      : {', '.join(operands)}"
    )


def index_scores_source(spec: IndexSpec, mutates: Sequence[str]) -> str:
    types = index_scores_types(spec)
    lines = [*spec.cache.views(), write_index_scores(spec)]
    return write_function("index_scores", spec.cache.arguments, types, mutates, lines)


class IndexScores(LayerOperation):
    write = staticmethod(index_scores_source)
    functions = ("index_scores",)
    mutates = ("out",)
    parameters = dict.fromkeys(("q", "weights", "out", "lengths", "q_scales"), "")
    positional = ("q",)
    _checked = None  # Only Python checks calls.

    def __call__(
        self,
        inputs: StepInputs,
        layer: int,
        q: Array,
        *,
        weights: Array | None = None,
        out: Array,
        lengths: Array | None = None,
        q_scales: Array | None = None,
        device: int = 0,
    ) -> None:
        """Scores the tokens of a layer of the cache for each new token.

        The first call with ``lengths`` compiles a function for this form.

        Args:
            inputs: As for ``append``, after the keys of the step are appended.
            layer: The index of the layer in the cache.
            q: The queries, [total, index_heads, head_dim], in the dtype of the
                operation; of MXFP4 int8 or uint8, [total, index_heads, head_dim / 2],
                with the first of two elements in the low bits.
            weights: The factor of each head, float32 [total, index_heads], if it was
                made with weights.
            out: The scores, float32 [total, n] with ``sum_heads``, or [total,
                index_heads, n], written up to the last token that each row sees. Other
                columns, and rows after the new tokens, stay as they are.
            lengths: The tokens of each sequence before this step, int32 [batch]; needed
                with ``width``. None for the lengths of ``inputs``.
            q_scales: The scales of queries of MXFP4, float8_e8m0fnu [total,
                index_heads, head_dim / 32].
            device: The device whose tensors it reads.
        """
        spec: IndexSpec = self._spec
        check_given("weights", weights, spec.weights)
        check_q_scales(spec, q_scales)
        check_lengths(spec, lengths)
        step = take_step(inputs, spec.cache, layer, device)
        totals = read_totals(inputs, lengths)
        check_scored_entries(spec, inputs, step.blocks, totals)
        check_rows(step.offsets, q=q, q_scales=q_scales, weights=weights, out=out)
        self._check_heads(out)
        check_columns(totals, ("out", out), spec.count_columns)
        optional = {"weights": weights, "lengths": lengths, "q_scales": q_scales}
        check_elements_apart(out=out)
        check_apart({"out": out}, {"q": q, **optional, **step.tensors, **step.tables})
        given = (array for array in optional.values() if array is not None)
        operation = self._take_form(replace(spec, has_lengths=lengths is not None))
        operation._call_on_layer(inputs, layer, step, q, step.offsets, out, *given)

    def _check_heads(self, out: Array) -> None:
        """Raises ``ValueError`` unless scores have the heads of queries."""
        sizes, heads = get_sizes(out), self._spec.heads
        rank = 2 if self._spec.sum_heads else 3
        if sizes and (len(sizes) != rank or rank == 3 and sizes[1] != heads):
            shape = "[total, n]" if rank == 2 else f"[total, {heads}, n]"
            raise ValueError(f"expects 'out' to have the shape {shape}, got {list(sizes)}")


@remember
def index_scores(
    params: KVCacheParams,
    index_heads: int,
    *,
    relu: bool = False,
    sum_heads: bool = False,
    width: int = 1,
    block: int | None = None,
    weights: bool = False,
    dtype: DTypeLike | None = None,
    target: str = "cpu",
    separate: bool = False,
    table: str = "dense",
    block_threads: int | None = None,
    bounds_checks: bool = False,
    threads: int | None = None,
) -> IndexScores:
    """The operation that scores the tokens of a layer, for ``top_rows``.

    The score of a head is the product of its query and a token's key, in f32.

    Args:
        params: The parameters of a paged cache of index keys, with one head of a
            multiple of 32 elements, without zero points.
        index_heads: The number of heads of queries, up to 64.
        relu: Whether scores of heads below 0 become 0, before weights.
        sum_heads: Whether scores of heads are added.
        width: The tokens that a row of the cache stands for.
        block: The rows of the cache of which a column has the largest score. None for a
            column for each row.
        weights: Whether calls give a factor for each new token and head.
        dtype: The type of queries: f32, f16, bf16, fp8, or f4E2M1FN for MXFP4 with
            scales. By default f32, f16 or bf16 as the cache, otherwise bf16.
        target: As in ``jit``.
        separate: As for ``append``, like ``table``; values are not read.
        table: As for ``append``.
        block_threads: As for ``append``.
        bounds_checks: As in ``jit``.
        threads: As in ``jit``.

    Raises:
        ValueError: The cache is not paged, or an argument is out of range.
        TypeError: An argument is not a number, or not a flag.
    """
    check_flag(bounds_checks=bounds_checks)
    cache = CacheForm.of(params, separate, None, table, keys_only=True)
    name = dense_dtype(params, None)
    if dtype is not None:
        name = check_index_queries("dtype", dtype)
    tiling = Tiling(block_threads).checked()
    spec = IndexSpec(
        cache,
        name,
        index_heads,
        relu=relu,
        sum_heads=sum_heads,
        width=width,
        block=block,
        weights=weights,
        tiling=tiling,
    )
    return make(IndexScores, spec.checked(), target, bounds_checks, threads)
