# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The time without copies after a copy of a store was given up."""

from __future__ import annotations

import time

_FIRST_SECONDS = 60.0
_MOST_SECONDS = 600.0


class Rest:
    """A time in which no copy begins, since the last one did not end.

    It doubles with each copy that is given up after it, until a copy ends.
    """

    def __init__(self) -> None:
        self._seconds = _FIRST_SECONDS
        self._end = 0.0

    def is_on(self) -> bool:
        return time.monotonic() < self._end

    def begin(self) -> None:
        """Begins a rest, unless it has begun."""
        if not self.is_on():
            self._end = time.monotonic() + self._seconds
            self._seconds = min(2 * self._seconds, _MOST_SECONDS)

    def cancel(self) -> None:
        """Ends the rest; the next one is not shorter."""
        self._end = 0.0

    def reset(self) -> None:
        """Makes the next rest a short one, since a copy has ended."""
        self._seconds = _FIRST_SECONDS
