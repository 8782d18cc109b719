# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options that the backends of engines share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from ..checks import check_size, check_string
from ..ops.splits import MOST, StepBounds


def check_names(given: Iterable[str], known: Iterable[str], place: str) -> None:
    """Raises ``ValueError`` for a name that is not known; ``place`` has the options."""
    names = list(known)
    for name in given:
        if name not in names:
            raise ValueError(
                f"expects the options in {place} to be of {', '.join(names)}, got "
                f"{name!r}"
            )


def read_target(given: Mapping[str, Any], is_on_gpu: bool) -> str:
    """Reads the target. Raises ``TypeError`` unless it is a string."""
    target = given.get("target", "cuda" if is_on_gpu else "cpu")
    check_string(target=target)
    return str(target)


@dataclass(frozen=True)
class EngineSplits:
    """The splits of an engine's sequences.

    Attributes:
        tokens: Tokens per split; 0 for no splits, and None to choose them from the
            bounds of the engine's steps.
        most: The most splits of a query row, if ``tokens`` are given.
        bounds: The bounds of the engine's steps.
    """

    tokens: int | None
    most: int | None
    bounds: StepBounds

    @classmethod
    def read(cls, given: Mapping[str, Any], bounds: StepBounds) -> Self:
        """Reads the options ``split_tokens`` and ``max_splits``.

        Raises:
            TypeError: An option has the wrong type.
            ValueError: An option is out of range.
        """
        tokens, most = given.get("split_tokens"), given.get("max_splits")
        if tokens is not None and tokens != 0:
            check_size(MOST, split_tokens=tokens)
        if most is not None:
            check_size(MOST, max_splits=most)
            if not tokens:
                raise ValueError("expects 'max_splits' only with 'split_tokens'")
        return cls(tokens, most, bounds)

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of ``ops.attention``."""
        if self.tokens is None:
            sequences, tokens = self.bounds
            return {"max_batch_size": sequences, "max_seq_len": tokens}
        return {"split_tokens": self.tokens or None, "max_splits": self.most}
