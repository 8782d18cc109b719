# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A line on a terminal that says how far the tuner is."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

_WIDTH = 24


class Progress:
    """A line on standard error, which is replaced after each config.

    Args:
        is_shown: Whether there is a line; None if standard error is a terminal.
    """

    def __init__(self, is_shown: bool | None) -> None:
        self._is_shown = sys.stderr.isatty() if is_shown is None else is_shown
        self._count, self._total, self._end = 0, 0, 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_shown and self._count:
            print(file=sys.stderr)

    def begin(self, total: int, end: float) -> None:
        """Sets the number of configs, and when the time is over."""
        self._total, self._end = total, end

    def step(self, gain: float) -> None:
        """Shows that another config was measured."""
        self._count += 1
        self._total = max(self._total, self._count)
        if self._is_shown:
            left = max(self._end - time.monotonic(), 0)
            filled = _WIDTH * self._count // self._total
            bar = "#" * filled + "." * (_WIDTH - filled)
            print(
                f"\r[{bar}] {self._count} of {self._total} configs, best {gain:.2f}x, "
                f"{left:.0f} s left ",
                end="",
                file=sys.stderr,
                flush=True,
            )
