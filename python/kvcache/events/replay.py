# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The last batches of events, and the thread that answers requests for them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

from .hashes import import_extra
from .index import CLEARED, BlockIndex, Event

SNAPSHOT = b"snapshot-v1"
"""The request for all blocks, and the second frame of its header."""

_END = b"\xff" * 8
_CHUNK = 4096  # blocks per batch of a snapshot

Frames = list[bytes]


class EventLog:
    """Numbers batches of events, and keeps the last ones.

    The lock keeps the batches and the index of blocks equal: a snapshot has all batches
    up to its number, and no later one.

    Args:
        size: Batches to keep.
        topic: The first frame of each batch.
        rank: The data-parallel rank in each batch.
        encode: Encodes a batch.
    """

    def __init__(self, size: int, topic: bytes, rank: int, encode: Any) -> None:
        self.lock = threading.Lock()
        # Routers drop batches with older numbers, also those of a former process.
        self.epoch = self.next = time.time_ns() // 1_000_000
        self.index: BlockIndex | None = None
        self._batches: deque[Frames] = deque(maxlen=size)
        self._topic = topic
        self._rank = rank
        self._encode = encode

    def add(self, events: list[Event]) -> Frames:
        """Adds a batch; returns its frames. The caller holds the lock."""
        frames = self._make_batch(self.next, events)
        self.next += 1
        self._batches.append(frames)
        return frames

    def list_replay(self, start: int) -> Iterator[Frames]:
        """Yields the batches from a number on.

        If the log has dropped some of them, a snapshot takes their place.
        """
        with self.lock:
            batches, end = list(self._batches), self.next
            first = end - len(batches)
            is_complete = start >= first or first == self.epoch
            blocks = self.index.list_blocks() if self.index and not is_complete else []
        if is_complete:
            yield from batches[max(start - first, 0) :]
            return
        assert self.index
        size = max(_CHUNK, -(-len(blocks) // len(batches)))
        chunks = list(self.index.make_snapshot(blocks, size)) or [[]]
        for number, events in enumerate(chunks, end - len(chunks)):
            is_first = number == end - len(chunks)
            yield self._make_batch(number, [CLEARED, *events] if is_first else events)

    def list_snapshot(self) -> Iterator[Frames]:
        """Yields a header, then batches that store all blocks."""
        with self.lock:
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


class ReplayServer:
    """Answers requests for past batches and snapshots, in a thread.

    A request has an empty frame, and the number of a batch or ``SNAPSHOT``. Others are
    ignored. A client that does not read loses answers, and delays no other.

    Args:
        context: The context of ZeroMQ, whose end ends the thread.
        socket: A bound ROUTER socket, which the thread closes.
        log: The batches.
    """

    def __init__(self, context: Any, socket: Any, log: EventLog) -> None:
        self._socket = socket
        self._log = log
        self._thread = threading.Thread(
            target=self._serve, name="kvcache-events", daemon=True
        )
        self._thread.start()

    def join(self) -> None:
        """Waits for the end of the thread, after that of the context."""
        self._thread.join()

    def _serve(self) -> None:
        zmq = import_extra("zmq")
        with self._socket:
            self._socket.linger = 0
            while True:
                try:
                    self._answer(self._socket.recv_multipart())
                except zmq.ContextTerminated:
                    return
                except zmq.ZMQError:
                    continue  # the client is gone

    def _answer(self, request: Frames) -> None:
        if len(request) != 3 or request[1]:
            return
        client, _, wanted = request
        if wanted == SNAPSHOT:
            answers = self._log.list_snapshot()
        elif len(wanted) == 8:
            answers = self._log.list_replay(int.from_bytes(wanted, "big"))
        else:
            return
        for frames in answers:
            self._socket.send_multipart([client, b"", *frames])
        self._socket.send_multipart([client, b"", b"", _END, b""])
