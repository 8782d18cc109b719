# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The socket that sends batches of events to routers."""

from __future__ import annotations

from typing import Any

from .hashes import import_extra


class Feed:
    """Sends batches to all subscribers, and waits for none.

    Its caller holds a lock, because one thread at a time may use the socket.

    Args:
        socket: An XPUB socket: a PUB socket that receives subscriptions.
    """

    def __init__(self, socket: Any) -> None:
        self.socket = socket
        self._zmq: Any = import_extra("zmq")
        socket.xpub_verbose = True  # also second subscriptions to a topic

    def send(self, frames: list[bytes]) -> None:
        """Sends the frames of a batch, unless a subscriber's queue is full."""
        try:
            self.socket.send_multipart(frames, self._zmq.NOBLOCK)
        except self._zmq.ZMQError:
            pass  # subscribers find a gap, and ask for a replay

    def has_new_subscriber(self) -> bool:
        """Returns whether there was a subscription since the last call."""
        is_new = False
        while True:
            try:
                is_new |= self.socket.recv(self._zmq.NOBLOCK).startswith(b"\1")
            except self._zmq.ZMQError:  # no more messages
                return is_new

    def close(self) -> None:
        """Closes the socket; waiting batches are sent for a second at most."""
        self.socket.close(linger=1000)
