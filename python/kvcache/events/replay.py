# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The thread that answers requests for past batches and snapshots."""

from __future__ import annotations

import threading
from typing import Any

from .hashes import import_extra
from .log import SNAPSHOT, EventLog, Frames

_END = b"\xff" * 8


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
                except Exception:
                    continue  # the client is gone, or its answer can't be made

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
