# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options that the backends of engines share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..checks import check_size, check_string

MOST = 2**20
"""The most tokens of a split, and splits of a row."""


def check_names(given: Iterable[str], known: Iterable[str], place: str) -> None:
    """Raises ``ValueError`` for a name that is not known; ``place`` has the options."""
    names = list(known)
    for name in given:
        if name not in names:
            raise ValueError(
                f"expects the options in {place} to be of {', '.join(names)}, got "
                f"{name!r}"
            )


def read_splits(
    given: Mapping[str, Any], is_on_gpu: bool, max_splits: int
) -> dict[str, Any]:
    """Reads the target, and the tokens and the number of splits, with their defaults.

    Raises:
        TypeError: An option has the wrong type.
        ValueError: An option is out of range.
    """
    target = given.get("target", "cuda" if is_on_gpu else "cpu")
    check_string(target=target)
    split_tokens = given.get("split_tokens", 0 if target == "cpu" else 256)
    if split_tokens != 0:
        check_size(MOST, split_tokens=split_tokens)
    max_splits = given.get("max_splits", max_splits)
    check_size(MOST, max_splits=max_splits)
    return {"target": target, "split_tokens": split_tokens, "max_splits": max_splits}
