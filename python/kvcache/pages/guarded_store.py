# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A guard of stores, so that their errors are values that are missing."""

from __future__ import annotations

import reprlib
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from .stores import Store


_texts = reprlib.Repr()  # short, and raises nothing
_texts.maxother = 200


class GuardedStore:
    """A store whose calls raise nothing, and answer for each key.

    Where the other store raises, or answers with anything but a bool for each key, all
    answers are False. It warns of the first such error.

    Args:
        store: The other store.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._has_warned = False

    def find(self, keys: Sequence[bytes]) -> list[bool]:
        """Returns whether the store has each key."""
        return self.parse("find", self.call("find", lambda store: store.find(keys), self._store), len(keys))

    def begin_put(self, keys: Sequence[bytes], buffers: Sequence[memoryview]) -> GuardedCopy:
        """Begins to store values."""
        copy = self.call("begin_put", lambda store: store.begin_put(keys, buffers), self._store)
        return GuardedCopy(self, copy, len(keys))

    def begin_get(self, keys: Sequence[bytes], buffers: Sequence[memoryview]) -> GuardedCopy:
        """Begins to read values into buffers of their sizes."""
        copy = self.call("begin_get", lambda store: store.begin_get(keys, buffers), self._store)
        return GuardedCopy(self, copy, len(keys))

    def remove(self, keys: Sequence[bytes]) -> None:
        """Removes values, if they are there."""
        self.call("remove", lambda store: store.remove(keys), self._store)

    def close(self) -> None:
        """Closes the store."""
        self.call("close", lambda store: store.close(), self._store)

    def call(self, name: str, function: Callable[..., Any], *arguments: object) -> Any:
        """Calls a function of the store; returns None if it raises."""
        try:
            return function(*arguments)
        except Exception as error:
            self.warn(f"{name!r} of the store raised {_texts.repr(error)}")
            return None

    def parse(self, name: str, answer: Any, count: int) -> list[bool]:
        """Parses the answers for some keys; all are False if they are malformed."""
        with suppress(Exception):  # of an answer's own methods
            flags = list(answer) if isinstance(answer, list | tuple | np.ndarray) else []
            if len(flags) == count and all(isinstance(flag, bool | np.bool_) for flag in flags):
                return [bool(flag) for flag in flags]
        self.warn(f"expects a bool for each of {count} keys in {name!r}, got {_texts.repr(answer)}")
        return [False] * count

    def warn(self, text: str) -> None:
        """Warns of the first error."""
        if not self._has_warned:
            self._has_warned = True
            with suppress(RuntimeWarning):  # where warnings are errors
                warnings.warn(f"{text}; its values count as missing", RuntimeWarning, stacklevel=2)


class GuardedCopy:
    """A copy of a ``GuardedStore``.

    Attributes:
        done: Whether each value was copied; final once ``poll`` returns True.
        is_abandoned: Whether it ended without the other store's copy, which may still
            use the buffers.
    """

    def __init__(self, store: GuardedStore, copy: Any, count: int) -> None:
        self._store = store
        self._copy = copy  # None where the store raised, so that it has no 'poll'
        self._is_over = False
        self.done = [False] * count
        self.is_abandoned = False

    def poll(self) -> bool:
        """Returns whether the copy has ended; never waits."""
        if not self._is_over:
            self._is_over = self._store.call("poll", lambda copy: bool(copy.poll()), self._copy)
            if self._is_over is None:
                self._abandon()
            elif self._is_over:
                done = self._store.call("done", lambda copy: copy.done, self._copy)
                self.done = self._store.parse("done", done, len(self.done))
        return self._is_over

    def wait(self) -> None:
        """Waits until ``poll`` returns True, at most as long as the other store does."""
        if not self.poll():
            self._store.call("wait", lambda copy: copy.wait(), self._copy)
            if not self.poll():
                self._store.warn("'wait' of the store returned before the end of its copy")
                self._abandon()

    def _abandon(self) -> None:
        self._is_over = self.is_abandoned = True
