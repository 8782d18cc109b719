# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operation that summarizes groups of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..cache.params import KVCacheParams
from ..checks import check_flag, check_size
from ..dtypes import DTypeLike
from ..execution.arrays import Array
from ..pages.inputs import StepInputs
from .arguments import Tiling, attributes_text, dense_dtype, rows_type
from .array_checks import check_rows, check_table
from .cache_forms import NUMBERS, CacheForm, write_function
from .making import make, remember
from .operations import LayerOperation
from .overlaps import check_apart
from .selection import MOST_WIDTH
from .steps import take_step

_KINDS = ("mean", "min_max")


@dataclass(frozen=True)
class PoolSpec:
    """The spec of an operation that summarizes groups of tokens.

    ``width`` and ``kind`` are the arguments of ``pool``.
    """

    cache: CacheForm
    width: int
    kind: str
    tiling: Tiling

    @property
    def columns(self) -> int:
        """The elements of a summary of a head."""
        return self.cache.params.head_dim * (2 if self.kind == "min_max" else 1)


def pool_source(spec: PoolSpec, dtype: str, mutates: Sequence[str]) -> str:
    heads = spec.cache.params.n_kv_heads_per_device
    types = {"row_offsets": NUMBERS, "out": rows_type("?", heads, spec.columns, dtype)}
    flags = ["min_max"] if spec.kind == "min_max" else []
    attributes = [*flags, f"width = {spec.width}", *spec.tiling.attributes]
    operands = [spec.cache.view_types["key_view"], *types.values()]
    body = (
        f"kvcache.pool %key_view rows %row_offsets outs(%out){attributes_text(attributes)}"
        f"\n      : {', '.join(operands)}"
    )
    lines = [*spec.cache.views(), body]
    return write_function("pool", spec.cache.arguments, types, mutates, lines)


class Pool(LayerOperation):
    write = staticmethod(pool_source)
    functions = ("pool",)
    mutates = ("out",)
    parameters = dict.fromkeys(("out",), "")
    positional = ()
    _checked = None  # Only Python checks calls.

    def __call__(
        self, inputs: StepInputs, layer: int, *, out: Array, device: int = 0
    ) -> None:
        """Summarizes the groups whose last tokens are new.

        Args:
            inputs: As for ``append``, after the keys of the step are appended.
            layer: The index of the layer in the cache.
            out: The summaries, [total, heads, head_dim] or, with ``"min_max"``, [total,
                heads, 2 * head_dim]. Rows of tokens that close a group are written;
                others stay as they are.
            device: The device whose tensors it reads.
        """
        step = take_step(inputs, self._spec.cache, layer, device)
        check_table(inputs, step.blocks)
        check_rows(step.offsets, out=out)
        check_apart({"out": out}, {**step.tensors, **step.tables})
        self._call_on_layer(inputs, layer, step, step.offsets, out)


@remember
def pool(
    params: KVCacheParams,
    width: int,
    *,
    kind: str = "mean",
    dtype: DTypeLike | None = None,
    target: str = "cpu",
    separate: bool = False,
    table: str = "dense",
    block_threads: int | None = None,
    bounds_checks: bool = False,
    threads: int | None = None,
) -> Pool:
    """The operation that summarizes the keys of groups of ``width`` tokens.

    ``append`` with slots writes the summaries to a cache that ``index_scores`` reads.

    Args:
        params: The parameters of a paged cache.
        width: The tokens of a group.
        kind: ``"mean"``, or ``"min_max"`` for the largest elements and then the smallest
            ones.
        dtype: The type of summaries: f32, f16 or bf16. By default that of the cache, or
            bf16 if its elements have 8 bits or less.
        target: As in ``jit``.
        separate: As for ``append``, like ``table``.
        table: As for ``append``.
        block_threads: As for ``append``.
        bounds_checks: As in ``jit``.
        threads: As in ``jit``.

    Raises:
        ValueError: The cache is not paged, or an argument is out of range.
        TypeError: An argument is not a number, or not a flag.
    """
    check_flag(bounds_checks=bounds_checks)
    check_size(MOST_WIDTH, width=width)
    if kind not in _KINDS:
        known = " or ".join(map(repr, _KINDS))
        raise ValueError(f"expects 'kind' to be {known}, got {kind!r}")
    cache = CacheForm.of(params, separate, None, table)
    name = dense_dtype(params, dtype)
    spec = PoolSpec(cache, int(width), kind, Tiling(block_threads).checked())
    return make(Pool, spec, name, target, bounds_checks, threads)
