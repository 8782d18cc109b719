# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arguments of operations that the inputs of a step give."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..checks import check_instance, check_integer
from ..pages.inputs import StepInputs
from ..pages.step_tables import StepTable, check_index, check_offsets
from .array_checks import check_layer
from .cache_forms import CacheForm
from .constant_arrays import ConstantArray

_OFFSETS = ConstantArray((0, 2**31 - 1), (2,), "int32")
"""The offsets of a step without a table, in which all rows are new."""


def _make_table(kind: str) -> dict[str, ConstantArray]:
    """Makes the table of a step without one, for kernels that do not read it."""
    return {
        "lengths": ConstantArray(0, (1,), "int32"),
        "lut": ConstantArray(0, (1,) if kind == "csr" else (1, 1), "int32"),
        "table_index": ConstantArray(0, (2 if kind == "csr" else 1,), "int32"),
    }


@dataclass(frozen=True)
class Step:
    """The arguments of a function that a step gives.

    Attributes:
        operands: The first arguments, as ``CacheForm.arguments`` lists them.
        offsets: The offsets of rows, for kernels.
        tensors: The tensors of the cache, by name.
        tables: The arrays of integers, by name.
    """

    operands: tuple[Any, ...]
    offsets: Any
    tensors: dict[str, Any]
    tables: dict[str, Any]

    @property
    def blocks(self) -> Any:
        """The blocks of the cache, or those of the keys."""
        return self.operands[0]


def take_step(
    inputs: StepInputs,
    form: CacheForm,
    layer: int,
    device: int,
    *,
    needs_table: bool = True,
    has_layer: bool = True,
    name: str = "inputs",
) -> Step:
    """Takes the arguments that a step gives, for a layer or for all layers.

    ``name`` is that of the step in errors.
    """
    check_instance(StepInputs, **{name: inputs})
    if form.keys_only and inputs.value_blocks:
        inputs = replace(inputs, value_blocks=(), value_scales=())
    _check_form(inputs, form, needs_table)
    given = _take_cache(inputs, form, layer, device)
    if has_layer and not form.separate:
        check_layer(layer, given[0])
    names = [*form.blocks, "lengths", "lut", "max_seq", "max_cache", *form.scales]
    if inputs.table_index is not None:
        names.insert(names.index("lut") + 1, "table_index")
    if len(given) != len(names):
        found = len(given) - len(names) + len(form.scales)
        raise ValueError(
            f"expects {name!r} with {len(form.scales)} "
            f"tensor{'' if len(form.scales) == 1 else 's'} of scales, got {found}"
        )
    values: dict[str, Any] = {**dict(zip(names, given)), "layer": layer}
    offsets = inputs.placed_offsets
    _check_tables(inputs)
    if not inputs.has_table:
        values |= _make_table(form.table)
        offsets = _OFFSETS
    arguments = [name for name in form.arguments if has_layer or name != "layer"]
    return Step(
        tuple(values[name] for name in arguments),
        offsets,
        {name: values[name] for name in form.tensors},
        {"lengths": inputs.lengths, "lut": inputs.lut, "row_offsets": offsets},
    )


def _take_cache(
    inputs: StepInputs, form: CacheForm, layer: int, device: int
) -> tuple[Any, ...]:
    """Takes the tensors and the table of a step."""
    if not form.separate:
        return inputs.collection(device)
    check_integer(device=device)
    if device:
        raise ValueError(
            f"expects 'device' to be 0 for keys and values by layer, got {device}"
        )
    return inputs.views(layer)


def _check_tables(inputs: StepInputs) -> None:
    """Checks sizes, and offsets and indices in host memory, which may change in place."""
    if inputs.has_table:
        table = inputs.lengths, inputs.lut, inputs.placed_offsets
        StepTable(*table, inputs.table, inputs.table_index).check_counts()
    offsets = inputs.current_offsets
    if isinstance(offsets, np.ndarray):
        as_read = offsets.astype(np.uint32)  # by kernels
        check_offsets(as_read.astype(np.int64))
    if inputs.table_index is not None:
        check_index(inputs.table, inputs.table_index, inputs.lut)


def _check_form(inputs: StepInputs, form: CacheForm, needs_table: bool) -> None:
    """Raises ``ValueError`` for inputs of another form than that of an operation."""
    if inputs.is_separate != form.separate:
        expected, found = "'blocks'", "'keys'"
        if form.separate:
            expected, found = found, expected
        raise ValueError(
            f"this operation was made with separate={form.separate}: expects inputs of "
            f"{expected}, got {found}"
        )
    if form.separate and len(form.roles) != 1 + bool(inputs.value_blocks):
        raise ValueError(
            f"expects inputs {'with' if len(form.roles) > 1 else 'without'} 'values'"
        )
    if not inputs.has_table:
        if needs_table:
            raise ValueError(
                "expects inputs with 'lengths', 'lut' and 'row_offsets', got none: only "
                "'append' with slots and 'copy_pages' need none"
            )
    elif inputs.table != form.table:
        raise ValueError(
            f"this operation was made with table={form.table!r}: expects inputs with "
            f"such a table, got {inputs.table!r}"
        )
