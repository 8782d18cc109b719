# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A guard of stores, so that their errors are values that are missing."""

from __future__ import annotations

import asyncio
import math
import reprlib
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import numpy as np

from ..checks import check_positive_real
from .store_thread import StoreThread
from .stores import Store

_texts = reprlib.Repr()  # short, and raises nothing
_texts.maxother = 200
_LIMIT = 60.0  # seconds of a call or a copy, if a store has no deadline


def find_limit(store: Store) -> float:
    """The seconds after which calls and copies of a store have ended."""
    with suppress(Exception):  # there is none, or it is no such number
        deadline: Any = getattr(store, "deadline")
        check_positive_real(deadline=deadline)
        return float(deadline)
    return _LIMIT


def _keeps_deadline(store: Store) -> bool:
    """Whether each call of a store returns at its deadline."""
    with suppress(Exception):  # it does not say so
        return getattr(store, "keeps_deadline") is True
    return False


class GuardedStore:
    """A store whose calls raise nothing, and answer for each key.

    Where the other store raises, or answers with anything but a bool for each key, all
    answers are False. So are those of a call or a copy that lasts longer than ``limit``.
    It warns of the first such error.

    A thread makes the calls, so that the caller can give one up. Until that call has
    returned, there are no others.

    Args:
        store: The other store. Where its ``keeps_deadline`` is True, the caller's thread
            makes the calls.
        limit: The seconds after which calls and copies are given up; ``find_limit`` by
            default. The caller's thread makes calls that are never given up.

    Attributes:
        is_late: Whether the last call did not return in time, or could not be made.
    """

    def __init__(self, store: Store, limit: float | None = None) -> None:
        self._store = store
        self.limit = find_limit(store) if limit is None else limit
        self.is_late = False
        self._has_warned = False
        self._is_direct = self.limit == math.inf or _keeps_deadline(store)
        self._thread: StoreThread | None = None
        self._free: Future[bool] | None = None  # done when a call that was given up has returned

    def find(self, keys: Sequence[bytes]) -> list[bool]:
        """Returns whether the store has each key."""
        return self.parse("find", self.call("find", lambda: self._store.find(keys)), len(keys))

    def begin_put(self, keys: Sequence[bytes], buffers: Sequence[memoryview]) -> GuardedCopy:
        """Begins to store values."""
        copy = self.call("begin_put", lambda: self._store.begin_put(keys, buffers))
        return GuardedCopy(self, copy, len(keys))

    def begin_get(self, keys: Sequence[bytes], buffers: Sequence[memoryview]) -> GuardedCopy:
        """Begins to read values into buffers of their sizes."""
        copy = self.call("begin_get", lambda: self._store.begin_get(keys, buffers))
        return GuardedCopy(self, copy, len(keys))

    def remove(self, keys: Sequence[bytes]) -> None:
        """Removes values, if they are there."""
        self.call("remove", lambda: self._store.remove(keys))

    def close(self) -> None:
        """Closes the store."""
        self.call("close", self._store.close)

    def call(self, name: str, function: Callable[[], Any], is_direct: bool = False) -> Any:
        """Makes a call of the store; returns None if it raises or is late."""
        try:
            return function() if is_direct or self._is_direct else self._call(name, function)
        except (Exception, asyncio.CancelledError) as error:
            self.warn(f"{name!r} of the store raised {_texts.repr(error)}")
            return None

    def _call(self, name: str, function: Callable[[], Any]) -> Any:
        """Makes a call in the thread, unless that is still in one that was given up."""
        self.is_late = self._free is not None and not self._free.done()
        if self.is_late:
            return None
        try:
            thread = self._thread = self._thread or self._start_thread()
        except RuntimeError:  # there are too many threads, or the process exits
            return function()
        future = thread.submit(function)
        try:
            return future.result(min(self.limit, threading.TIMEOUT_MAX))
        except TimeoutError:
            if future.done():  # the call raised it
                raise
        future.cancel()  # if the thread is still in a call whose caller was interrupted
        self._free, self.is_late = thread.submit(bool), True
        self.warn(f"{name!r} of the store did not end in {self.limit:g} seconds")
        return None

    def _start_thread(self) -> StoreThread:
        thread = StoreThread()
        weakref.finalize(self, thread.end)
        return thread

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
        is_late: Whether that was because it lasted too long.
    """

    def __init__(self, store: GuardedStore, copy: Any, count: int) -> None:
        self._store = store
        self._copy = copy  # None where the store raised, so that it has no 'poll'
        self._end = time.monotonic() + store.limit
        self.done = [False] * count
        self.is_late = copy is None and store.is_late
        self._is_over = self.is_abandoned = self.is_late

    def poll(self) -> bool:
        """Returns whether the copy has ended or is given up; never waits."""
        if not self._is_over:
            self._is_over = self._store.call("poll", lambda: bool(self._copy.poll()))
            done = None
            if self._is_over:
                done = self._store.call("done", lambda: self._copy.done)
            if self._is_over is None or self._store.is_late:
                self.is_late = self._store.is_late
                self._abandon()
            elif self._is_over:
                self.done = self._store.parse("done", done, len(self.done))
            elif time.monotonic() >= self._end:
                self._store.warn(f"a copy of the store did not end in {self._store.limit:g} seconds")
                self.is_late = True
                self._abandon()
        return self._is_over

    def wait(self) -> None:
        """Waits until ``poll`` returns True, at most as long as the other store does."""
        if self.poll():
            return
        # The other store's 'wait' may hang.
        waiter = threading.Thread(target=self._wait, name="kvcache-store-wait", daemon=True)
        try:
            waiter.start()
        except RuntimeError:  # there are too many threads, or the process exits
            self._wait()
        else:
            left = max(self._end - time.monotonic(), 0)
            waiter.join(min(left, threading.TIMEOUT_MAX))
        if not self.poll():
            self._store.warn("'wait' of the store returned before the end of its copy")
            self._abandon()

    def _wait(self) -> None:
        self._store.call("wait", lambda: self._copy.wait(), is_direct=True)

    def _abandon(self) -> None:
        self._is_over = self.is_abandoned = True
