# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The configs that the compiler admits for an operation on a chip."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .._native import extension, report
from ..errors import CompileError
from ..ops.attention_config import AttentionConfig
from ..ops.attention_operation import Attention

_OTHER_BITS: Mapping[str, Sequence[Any]] = {
    "mma": (None, "none", "mma_sync", "wgmma", "tcgen05"),
    "swap_ab": (None, False, True),
    "keys": (None, 32, 64, 96, 128),
    "dequant": (None, "tile", "registers"),
    "schedule": (None, "prefetch", "seesaw", "roles", "pair"),
}
"""Values of the fields that decide the bits of results on every chip."""

_KERNELS: Mapping[str, Sequence[Any]] = {
    "rows": (16, 32, 64, 128, 256),
    "stages": (1, 2, 3, 4),
    "schedule": ("prefetch", "pipelined", "ping_pong"),
    "convert_loads": (None, 2, 4, 8),
    "raw_stages": (None, 0, 1, 2),
}
"""Values of the fields that decide the code of a kernel on tensor cores.

None leaves a field to the compiler."""

_MOST_BLOCKS = 8
"""Thread blocks of a multiprocessor in a persistent kernel, at most."""
_HINTS = None, "evict_first", "evict_normal"


@dataclass(frozen=True)
class Plan:
    """The choices of the compiler for an operation on a chip.

    Attributes:
        shape: The key of the operation in tuning files.
        config: All fields of its config.
        bits: The fields that decide the bits of results.
    """

    shape: str
    config: AttentionConfig
    bits: AttentionConfig


def plan(operation: Attention, chip: str) -> Plan:
    """Plans an operation. Raises ``CompileError`` if the chip can't have its config."""
    source = operation.write_source(chip).encode()
    plans, diagnostics = extension().plan_attention(source, "<tuning>", chip)
    report(diagnostics, plans is not None, stacklevel=2)
    ((shape, config, bits),) = plans
    return Plan(shape, AttentionConfig.parse(config), AttentionConfig.parse(bits))


def list_kernels(
    operation: Attention, chip: str, planned: Plan, allow_other_bits: bool
) -> list[AttentionConfig]:
    """The complete configs of different kernels, the planned one first.

    Those after it change one field, then two, and so on. All have the bits of the
    planned one unless others are allowed.
    """
    found = {planned.config: None}
    bases = [planned.bits]
    if allow_other_bits:
        bases += _list_bits(operation, chip)
    for base in bases:
        axes = _choose_axes(base, planned.config)
        for config in _list_admitted(operation, chip, base, axes):
            if allow_other_bits or config.bits == planned.bits:
                found[config.config] = None
    first, *others = found
    return [first, *sorted(others, key=lambda config: _count_changes(config, first))]


def list_launches(
    operation: Attention, chip: str, config: AttentionConfig, multiprocessors: int
) -> list[AttentionConfig]:
    """The configs of a kernel with other thread blocks or hints, without this one."""
    axes: dict[str, Sequence[Any]] = {"l2_hint": _HINTS}
    if config.persistent:
        each = max(multiprocessors, 1)
        axes["persistent"] = [None, 0, *(each * count for count in range(1, _MOST_BLOCKS + 1))]
    base = replace(config, **dict.fromkeys(axes))
    found = (found.config for found in _list_admitted(operation, chip, base, axes))
    return [other for other in dict.fromkeys(found) if other != config]


def _list_bits(operation: Attention, chip: str) -> list[AttentionConfig]:
    """The fields that decide bits, of all configs that the chip can have."""
    admitted = _list_admitted(operation, chip, AttentionConfig(), _OTHER_BITS)
    return list(dict.fromkeys(found.bits for found in admitted))


def _choose_axes(
    bits: AttentionConfig, planned: AttentionConfig
) -> dict[str, Sequence[Any]]:
    """The fields of kernels that may have several values."""
    if bits.mma == "none":
        return {}
    optional = {"convert_loads": planned.convert_loads, "raw_stages": planned.raw_stages}
    return {
        name: values for name, values in _KERNELS.items() if optional.get(name, True)
    }


def _list_admitted(
    operation: Attention,
    chip: str,
    base: AttentionConfig,
    axes: Mapping[str, Sequence[Any]],
) -> Iterator[Plan]:
    """Plans the operation with each combination of values that the chip can have.

    Fields of ``base`` and of the operation's own config stay as they are.
    """
    given = operation.spec.config.given
    fixed = {**base.given, **given}
    free = {name: values for name, values in axes.items() if name not in fixed}
    for values in itertools.product(*free.values()):
        try:
            config = AttentionConfig(**fixed, **dict(zip(free, values)))
            found = plan(operation.with_config(config), chip)
        except (CompileError, ValueError):
            continue
        yield found


def _count_changes(config: AttentionConfig, other: AttentionConfig) -> int:
    fields = config.given.keys() | other.given.keys()
    return sum(getattr(config, name) != getattr(other, name) for name in fields)
