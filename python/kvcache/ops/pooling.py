# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operation that summarizes blocks of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..cache.params import KVCacheParams
from ..checks import check_flag, check_size
from ..dtypes import DTypeLike
from ..execution.arrays import Array
from ..pages.inputs import StepInputs
from .arguments import Tiling, attributes_text, dense_dtype, rows_type
from .array_checks import check_entries, check_rows, check_table, count_new
from .cache_forms import NUMBERS, CacheForm, write_function
from .making import make, remember
from .operations import LayerOperation
from .overlaps import check_apart
from .selection import MOST_WIDTH
from .steps import take_step

_KINDS = ("mean", "min_max", "gated")


@dataclass(frozen=True)
class PoolSpec:
    """The spec of an operation that summarizes blocks of tokens.

    ``dtype`` is the MLIR type of summaries and of new keys. ``width``, ``kind`` and
    ``overlap`` are the arguments of ``pool``. ``has_new`` is whether a call takes
    ``new``.
    """

    cache: CacheForm
    dtype: str
    width: int
    kind: str
    overlap: bool = False
    tiling: Tiling = Tiling()
    has_new: bool = False

    def checked(self) -> PoolSpec:
        """Returns the spec with Python's numbers, or raises what contradicts it."""
        check_size(MOST_WIDTH, width=self.width)
        check_flag(overlap=self.overlap)
        if self.kind not in _KINDS:
            known = ", ".join(map(repr, _KINDS))
            raise ValueError(f"expects 'kind' to be one of {known}, got {self.kind!r}")
        if self.overlap and self.kind != "gated":
            raise ValueError(
                f"expects 'overlap' only with the kind 'gated', got {self.kind!r}"
            )
        size = self.cache.params.head_dim
        if self.kind == "gated" and size % self.gated_parts:
            raise ValueError(
                f"expects 'head_dim' to be a multiple of {self.gated_parts}, got {size}"
            )
        return replace(self, width=int(self.width), overlap=bool(self.overlap))

    @property
    def gated_parts(self) -> int:
        """The parts of a key of which each is as long as a gated summary."""
        return 4 if self.overlap else 2

    @property
    def columns(self) -> int:
        """The elements of a summary of a head."""
        size = self.cache.params.head_dim
        if self.kind == "gated":
            return size // self.gated_parts
        return size * (2 if self.kind == "min_max" else 1)

    @property
    def attributes(self) -> list[str]:
        """The attributes of the op."""
        return [
            *([] if self.kind == "mean" else [self.kind]),
            *(["overlap"] if self.overlap else []),
            f"width = {self.width}",
            *self.tiling.attributes,
        ]


def pool_source(spec: PoolSpec, mutates: Sequence[str]) -> str:
    params = spec.cache.params
    heads = params.n_kv_heads_per_device
    types = {
        "row_offsets": NUMBERS,
        "out": rows_type("?", heads, spec.columns, spec.dtype),
        **(
            {"new": rows_type("?", heads, params.head_dim, spec.dtype)}
            if spec.has_new
            else {}
        ),
    }
    new = " new %new" if spec.has_new else ""
    operands = [spec.cache.view_types["key_view"], *types.values()]
    body = (
        f"kvcache.pool %key_view rows %row_offsets outs(%out){new}"
        f"{attributes_text(spec.attributes)}\n      : {', '.join(operands)}"
    )
    lines = [*spec.cache.views(), body]
    return write_function("pool", spec.cache.arguments, types, mutates, lines)


class Pool(LayerOperation):
    write = staticmethod(pool_source)
    functions = ("pool",)
    mutates = ("out",)
    parameters = dict.fromkeys(("out", "new"), "")
    positional = ()
    _checked = None  # Only Python checks calls.

    def __call__(
        self,
        inputs: StepInputs,
        layer: int,
        *,
        out: Array,
        new: Array | None = None,
        device: int = 0,
    ) -> None:
        """Summarizes the blocks whose last tokens are new.

        The first call with ``new`` compiles a function for this form.

        Args:
            inputs: As for ``append``, after the keys of the step are appended. With
                ``new``, only the tokens before the step need pages.
            layer: The index of the layer in the cache.
            out: The summaries, [total, heads, columns]. The columns are ``head_dim``,
                ``2 * head_dim`` with ``"min_max"``, half of it with ``"gated"``, and a
                quarter with ``overlap``. Rows of tokens that close a block are written;
                others stay as they are.
            new: The keys of this step, [total, heads, head_dim], in the dtype of
                ``out``. None to read them in the cache.
            device: The device whose tensors it reads.
        """
        step = take_step(inputs, self._spec.cache, layer, device)
        if new is None:
            check_table(inputs, step.blocks)
        else:
            check_entries(inputs, step.blocks, _read_lengths(inputs))
        check_rows(step.offsets, out=out, new=new)
        check_apart({"out": out}, {"new": new, **step.tensors, **step.tables})
        operation = self._take_form(replace(self._spec, has_new=new is not None))
        optional = () if new is None else (new,)
        operation._call_on_layer(inputs, layer, step, step.offsets, out, *optional)


def _read_lengths(inputs: StepInputs) -> np.ndarray | None:
    """The tokens of each sequence before the step; None if they can't be read."""
    totals, new = inputs.totals, count_new(inputs)
    return None if totals is None or new is None else totals - new


@remember
def pool(
    params: KVCacheParams,
    width: int,
    *,
    kind: str = "mean",
    overlap: bool = False,
    dtype: DTypeLike | None = None,
    target: str = "cpu",
    separate: bool = False,
    table: str = "dense",
    block_threads: int | None = None,
    bounds_checks: bool = False,
    threads: int | None = None,
) -> Pool:
    """The operation that summarizes the keys of blocks of ``width`` tokens.

    ``append`` with slots writes the summaries to a cache that ``index_scores`` reads.

    Args:
        params: The parameters of a paged cache.
        width: The tokens of a block.
        kind: ``"mean"``, or ``"min_max"`` for the largest elements and then the smallest
            ones. ``"gated"`` for means with weights: the first half of the elements of a
            key are values, and the exponentials of the other half their weights.
        overlap: With ``"gated"``, whether a summary includes the previous block, as in
            DeepSeek V4. Values and weights have two halves then: the first ones are for
            the next block, and the second ones for the token's own block.
        dtype: The type of summaries and of ``new``: f32, f16 or bf16. By default that of
            the cache, or bf16 if its elements have 8 bits or less.
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
    name = dense_dtype(params, dtype)
    tiling = Tiling(block_threads).checked()
    spec = PoolSpec(cache, name, width, kind, overlap, tiling)
    return make(Pool, spec.checked(), target, bounds_checks, threads)
