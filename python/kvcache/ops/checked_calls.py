# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of operations that the extension checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .._native import extension
from ..execution.runtime import JitModule
from ..pages.inputs import make_form
from .cache_forms import CacheForm
from .constant_arrays import place_scale

_TABLE_LETTERS = {"lengths": "n", "lut": "t", "table_index": "x"}
_WITHOUT_TABLE = ("slots", "kv_lengths", "rows")
"""Arguments of operations that do not read the pages of sequences."""


def make_checked_call(
    program: JitModule,
    name: str,
    cache: CacheForm,
    parameters: Mapping[str, tuple[str, int]],
    *,
    workspace_bytes: tuple[int, int] = (0, 0),
    find_workspace: Callable[[int, int, int | None], Any] | None = None,
) -> Callable[..., bool] | None:
    """Makes a call for a function of an operation on a layer.

    The call returns False if a check of Python may fail, or if only Python can check.
    It is None if the function can't be called without TVM-FFI, or has arguments that are
    not among the parameters.

    Args:
        program: The program, for the CPU or for GPUs.
        name: The name of the function.
        cache: The form of the cache.
        parameters: The kind and the elements of each parameter after the layer, as for
            ``_kvcache.checked_call``.
        workspace_bytes: The bytes of a workspace for each sequence, and those for all.
        find_workspace: The function that finds a workspace, as for
            ``_kvcache.checked_call``.
    """
    native = program.native(name)
    arguments = program.signature(name).arguments
    places = {argument.name: argument.index for argument in arguments}
    offsets = places.pop("row_offsets")
    known = {*cache.arguments, *parameters}
    if native is None or not places.keys() <= known:
        return None
    letters = {**_TABLE_LETTERS, **dict.fromkeys(cache.tensors, "c")}
    operands = [each for each in cache.arguments if each != "layer"]
    has_slots = "slots" in places and cache.table == "dense"
    made: Callable[..., bool] = extension().checked_call(
        native,
        [
            (each, places.get(each, -1), kind, elements)
            for each, (kind, elements) in parameters.items()
        ],
        "".join(letters.get(each, "i") for each in operands),
        make_form(cache.separate, cache.table, len(operands)),
        make_form(cache.separate, "", len(operands)) if has_slots else "",
        places.get("layer", -1),
        offsets,
        places.keys().isdisjoint(_WITHOUT_TABLE),
        workspace_bytes,
        place_scale,
        find_workspace,
    )
    return made
