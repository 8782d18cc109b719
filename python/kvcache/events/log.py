# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The last batches of events, and the thread that makes them."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from .feed import Feed
from .index import CLEARED, BlockIndex, Change, Event

SNAPSHOT = b"snapshot-v1"
"""The request for all blocks, and the second frame of its header."""

_CHUNK = 4096  # blocks per batch of a snapshot
_LATE = 100_000  # changes that wait; a step with more of them waits itself
_PAUSE = 5e-5  # seconds in which other threads get Python's lock
_GREETING = 0.1  # seconds until a new subscriber gets a batch
_logger = logging.getLogger(__name__)

Frames = list[bytes]


class EventLog:
    """Makes and numbers batches of events, and keeps the last ones.

    Changes wait until ``settle`` makes a batch of each list of them. The lock keeps the
    batches and the index of blocks equal: a snapshot has all batches up to its number,
    and no later one.

    Args:
        size: Batches to keep.
        topic: The first frame of each batch.
        rank: The data-parallel rank in each batch.
        encode: Encodes a batch.
        feed: The socket of batches.

    Attributes:
        epoch: The number of the first batch.
        next: The number of the next one.
        index: The blocks, once there is a manager.
        waiting: Changes of steps, of which no batch was made yet.
        is_closed: Whether no batch is made any more.
    """

    def __init__(
        self,
        size: int,
        topic: bytes,
        rank: int,
        encode: Any,
        feed: Feed,
    ) -> None:
        self._lock = threading.Lock()
        # Routers drop batches with older numbers, also those of a former process.
        self.epoch = self.next = time.time_ns() // 1_000_000
        self.index: BlockIndex | None = None
        self.waiting = deque[list[Change]]()
        self._batches: deque[Frames] = deque(maxlen=size)
        self._topic = topic
        self._rank = rank
        self._encode = encode
        self._feed = feed
        self.is_closed = False

    def begin(self, index: BlockIndex) -> None:
        """Begins the blocks of a manager; routers forget all others."""
        with self._lock:
            self.index = index
            self._add([CLEARED])

    def settle(self, pause: Callable[[], None] = lambda: None) -> None:
        """Makes batches of the changes that wait; calls ``pause`` after some blocks."""
        with self._lock:
            while self.waiting and not self.is_closed:
                assert self.index
                try:
                    events = self.index.update(self.waiting.popleft(), pause)
                    if events:
                        self._add(events)
                except Exception:
                    _logger.exception("a step's events are lost, so routers get all blocks anew")
                    self._resend(self.index)

    def _resend(self, index: BlockIndex) -> None:
        """Sends all blocks anew; if that fails as well, they are forgotten."""
        try:
            self._add([CLEARED])
            for events in index.make_snapshot(index.list_blocks(), _CHUNK):
                self._add(events)
        except Exception:
            index.clear()
            self._add([CLEARED])

    def greet(self) -> None:
        """Makes a batch without events for new subscribers, which then find a gap."""
        with self._lock:
            if not self.is_closed and self._feed.has_new_subscriber():
                self._add([])

    def close(self) -> None:
        """Makes no more batches, and closes the socket."""
        with self._lock:
            self.is_closed = True
            self._feed.close()

    def _add(self, events: list[Event]) -> None:
        frames = self._make_batch(self.next, events)
        self.next += 1
        self._batches.append(frames)
        self._feed.send(frames)

    def list_replay(self, start: int) -> Iterator[Frames]:
        """Yields the batches from a number on.

        If the log has dropped some of them, a snapshot takes their place. Without a
        manager, batches have no events, and the last ones suffice.
        """
        self.settle()
        with self._lock:
            batches, end = list(self._batches), self.next
            first = end - len(batches)
            is_complete = start >= first or first == self.epoch
            index = None if is_complete else self.index
            blocks = index.list_blocks() if index else []
        if not index:
            yield from batches[max(start - first, 0) :]
            return
        size = max(_CHUNK, -(-len(blocks) // len(batches)))
        chunks = list(index.make_snapshot(blocks, size)) or [[]]
        for number, events in enumerate(chunks, end - len(chunks)):
            is_first = number == end - len(chunks)
            yield self._make_batch(number, [CLEARED, *events] if is_first else events)

    def list_snapshot(self) -> Iterator[Frames]:
        """Yields a header, then batches that store all blocks."""
        self.settle()
        with self._lock:
            resume = self.next
            blocks = self.index.list_blocks() if self.index else []
        header = {"epoch": self.epoch, "resume_seq": resume, "blocks": len(blocks)}
        yield [SNAPSHOT, resume.to_bytes(8, "big"), self._encode(header)]
        if self.index:
            for events in self.index.make_snapshot(blocks, _CHUNK):
                yield self._make_batch(resume, events)

    def _make_batch(self, number: int, events: list[Event]) -> Frames:
        batch = [time.time(), events, self._rank]
        return [self._topic, number.to_bytes(8, "big"), self._encode(batch)]


class Sender:
    """Makes batches of the changes of steps, in a thread.

    The thread often gives Python's lock away, so that it delays no step.

    Args:
        log: The log that makes and sends them.
        end: Closes all else; called after ``abandon``.
    """

    def __init__(self, log: EventLog, end: Callable[[], None]) -> None:
        self._log = log
        self._end = end
        self._waiting = 0  # changes, at least
        self._wakes = threading.Event()
        self._is_closed = self._is_abandoned = False
        self._thread = threading.Thread(target=self._run, name="kvcache-sender", daemon=True)
        self._thread.start()

    def add(self, changes: list[Change]) -> None:
        """Adds the changes of a step."""
        self._log.waiting.append(changes)
        self._waiting += len(changes)
        if self._waiting > _LATE:
            self._log.settle()
            self._waiting = 0
        else:
            self._wakes.set()

    def close(self) -> None:
        """Sends what waits, and ends the thread."""
        self._is_closed = True
        self._wakes.set()
        self._thread.join()
        self._log.settle()

    def abandon(self) -> None:
        """Lets the thread end soon, and then close all itself.

        It takes no lock, since Python may collect a publisher anywhere in any thread.
        """
        self._is_closed = self._is_abandoned = True

    def _run(self) -> None:
        while not self._is_closed:
            self._wakes.wait(_GREETING)
            self._wakes.clear()
            self._waiting = 0
            with suppress(Exception):  # such as of an encoder; the next batch shows a gap
                self._log.settle(self._pause)
                self._log.greet()
        if self._is_abandoned:
            with suppress(Exception):
                self._log.settle()
            self._end()

    def _pause(self) -> None:
        if self._waiting <= _LATE and not self._is_closed:
            time.sleep(_PAUSE)
