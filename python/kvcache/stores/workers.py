# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Threads that copy values, and copies with a deadline."""

from __future__ import annotations

import queue
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeAlias

Job: TypeAlias = Callable[["Batch"], bool]
"""Copies one value; returns whether it did. What it raises counts as False."""


class Batch:
    """Values that threads copy until a deadline.

    When the deadline has passed, the batch has ended, and what is not copied is False.
    A thread that hangs in the file system then finds it ``is_over``.

    Attributes:
        done: Whether each value was copied.
        lock: Held while a thread writes to a buffer of the caller.
    """

    def __init__(self, count: int, seconds: float) -> None:
        self.done = [False] * count
        self.lock = threading.Lock()
        self._left = count
        self._end = time.monotonic() + seconds
        self._all = threading.Event()
        if not count:
            self._all.set()

    @property
    def is_over(self) -> bool:
        return self._all.is_set()

    def finish(self, number: int, is_copied: bool) -> None:
        """Records the end of one copy, unless the batch is over."""
        with self.lock:
            if self.is_over:
                return
            self.done[number] = is_copied
            self._left -= 1
            if not self._left:
                self._all.set()

    def poll(self) -> bool:
        """Returns whether all copies have ended, or the deadline has passed."""
        if not self.is_over and time.monotonic() >= self._end:
            self.end()
        return self.is_over

    def wait(self) -> None:
        """Waits until ``poll`` returns True."""
        seconds = max(self._end - time.monotonic(), 0)
        self._all.wait(min(seconds, threading.TIMEOUT_MAX))
        self.end()

    def end(self) -> None:
        """Ends the batch with what is copied so far."""
        with self.lock:
            self._all.set()


Jobs: TypeAlias = "queue.SimpleQueue[tuple[Batch, int, Job] | None]"
"""The jobs that wait, and None for each thread that ends."""


class Workers:
    """Daemon threads that run jobs, so that one that hangs blocks no exit.

    Args:
        threads: The number of threads.
        most: The most jobs that wait; more are refused.
    """

    def __init__(self, threads: int, most: int = 4096) -> None:
        self._jobs: Jobs = queue.SimpleQueue()
        self._most = most
        self._open: set[Batch] = set()
        self._is_closed = False
        for i in range(threads):
            name = f"kvcache-store-{i}"
            threading.Thread(target=_work, args=[self._jobs], name=name, daemon=True).start()
        self._threads = threads
        # No thread refers to this object, so those of a store that was not closed end too.
        self._end = weakref.finalize(self, _end_threads, self._jobs, threads)

    def begin(self, jobs: Sequence[Job], seconds: float) -> Batch:
        """Begins jobs as a batch with a deadline."""
        batch = Batch(len(jobs), seconds)
        self._open = {each for each in self._open if not each.poll()} | {batch}
        for number, job in enumerate(jobs):
            if self._is_closed or self._jobs.qsize() >= self._most:
                batch.finish(number, False)
            else:
                self._jobs.put((batch, number, job))
        return batch

    def begin_copies(
        self,
        copy: Callable[[bytes, memoryview, Batch], bool],
        keys: Sequence[bytes],
        buffers: Sequence[memoryview],
        seconds: float,
    ) -> Batch:
        """Begins copies of values between a store and buffers, as ``begin`` does."""
        pairs = zip(keys, buffers, strict=False)
        return self.begin([partial(copy, *pair) for pair in pairs], seconds)

    def remove(
        self, drop: Callable[[bytes, Batch], object], keys: Sequence[bytes], seconds: float
    ) -> None:
        """Calls ``drop`` for each key, at most until a deadline."""
        size = max(-(-len(keys) // self._threads), 1)
        parts = [keys[i : i + size] for i in range(0, len(keys), size)]
        self.begin([partial(_drop_all, drop, part) for part in parts], seconds).wait()

    def close(self) -> None:
        """Waits for unfinished batches, and ends the threads that do not hang."""
        self._is_closed = True
        for batch in self._open:
            batch.wait()
        self._open = set()
        self._end()


def _work(jobs: Jobs) -> None:
    while task := jobs.get():
        _run(*task)
        del task  # keeps no buffer of the caller while there is no job


def _end_threads(jobs: Jobs, threads: int) -> None:
    for _ in range(threads):
        jobs.put(None)


def _run(batch: Batch, number: int, job: Job) -> None:
    if batch.poll():
        return
    try:
        is_copied = job(batch)
    except Exception:  # a thread that ends would copy nothing any more
        is_copied = False
    batch.finish(number, is_copied)


def _drop_all(drop: Callable[[bytes, Batch], object], keys: Sequence[bytes], batch: Batch) -> bool:
    for key in keys:
        if batch.is_over:
            return False
        with suppress(Exception):  # such as of one that is not there
            drop(key, batch)
    return True
