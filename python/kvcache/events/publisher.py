# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The publisher of a manager's cached pages, in vLLM's format over ZeroMQ."""

from __future__ import annotations

import ipaddress
import re
import sys
import weakref
from collections.abc import Iterable
from functools import partial
from typing import Any, Self

from ..cache.groups import LayerGroup
from ..checks import check_flag, check_integer, check_size, check_string, check_text
from ..pages.prefixes import Page
from .feed import Feed
from .hashes import BlockHasher, import_extra
from .index import BlockIndex, Change
from .log import EventLog, Sender
from .replay import ReplayServer

_QUEUE = 100_000  # batches that wait for a slow client, as in vLLM


class Publisher:
    """Publishes the cached pages of a manager to routers, as vLLM does.

    Pass it to ``PagedKVCacheManager`` as ``events``. Each ``step`` sends a batch with
    the pages that were cached, moved and dropped. Events contain the tokens of users,
    so endpoints are on this machine unless ``public`` is set. A thread hashes and sends
    the pages, so steps wait for neither, unless it is 100,000 pages late. A client that
    is too slow misses batches, and repairs its state from ``replay``. A new client gets
    a batch without events, so that it finds what it has missed.

    Args:
        endpoint: The endpoint of the batches, such as ``"tcp://127.0.0.1:5557"`` or
            ``"ipc:///run/events"``. A port ``*`` is chosen by the system.
        replay: The endpoint that answers requests for past batches and for snapshots.
        bind: Whether to bind ``endpoint``, or else to connect to it.
        public: Whether endpoints may be reached from other machines.
        topic: The first frame of each batch, such as llm-d's ``"kv@pod@model"``.
        rank: The data-parallel rank in each batch; ports are not shifted by it.
        block_hash: The hash of blocks, as for ``block_hashes``.
        seed: The seed of the hash, as for ``block_hashes``.
        kept_batches: The number of past batches that ``replay`` has.

    Attributes:
        endpoint: The endpoint with its actual port.
        replay: The endpoint of past batches and snapshots, or None.
        num_batches: The number of batches so far, after those of all steps are sent.

    Raises:
        ValueError: An endpoint is malformed, or public although ``public`` is not set.
        OSError: An endpoint is in use, or can't be bound.
        ModuleNotFoundError: ``pip install kvcache[events]`` is missing.
    """

    def __init__(
        self,
        endpoint: str = "tcp://127.0.0.1:5557",
        *,
        replay: str | None = None,
        bind: bool = True,
        public: bool = False,
        topic: str = "",
        rank: int = 0,
        block_hash: str = "sha256_cbor",
        seed: str | None = None,
        kept_batches: int = 10_000,
    ) -> None:
        check_text(topic=topic)
        check_flag(bind=bind, public=public)
        check_integer(rank=rank)
        if not 0 <= rank < 1 << 31:
            raise ValueError(f"expects 'rank' to be 0 to 2^31 - 1, got {rank}")
        check_size(sys.maxsize, kept_batches=kept_batches)
        _check_endpoint("endpoint", endpoint, public)
        if replay is not None:
            _check_endpoint("replay", replay, public)
        self._zmq, msgspec = import_extra("zmq"), import_extra("msgspec")
        self._hasher = BlockHasher(block_hash, seed)
        encode = msgspec.msgpack.Encoder().encode
        self._context = self._zmq.Context()
        self._server: ReplayServer | None = None
        self.replay: str | None = None
        try:
            socket = self._open(self._zmq.XPUB, "endpoint", endpoint, bind)
            self.endpoint = _get_endpoint(socket, endpoint, bind)
            self._log = EventLog(
                int(kept_batches), topic.encode(), int(rank), encode, Feed(socket)
            )
            if replay is not None:
                router = self._open(self._zmq.ROUTER, "replay", replay)
                self.replay = _get_endpoint(router, replay)
                self._server = ReplayServer(self._context, router, self._log)
        except BaseException:
            self._context.destroy(linger=0)
            raise
        self._end = partial(_end, self._log, self._context)
        self._sender = Sender(self._log, self._end)
        finalizer: Any = weakref.finalize(self, self._sender.abandon)
        finalizer.atexit = False

    def _open(self, kind: int, name: str, endpoint: str, bind: bool = True) -> Any:
        socket = self._context.socket(kind)
        socket.sndhwm = _QUEUE
        socket.ipv6 = "[" in endpoint
        try:
            (socket.bind if bind else socket.connect)(endpoint)
        except self._zmq.ZMQError as error:
            socket.close(linger=0)
            verb = "bind" if bind else "connect to"
            message = f"can't {verb} {name!r} {endpoint!r}: {error.strerror}"
            raise OSError(error.errno, message) from error
        return socket

    @property
    def num_batches(self) -> int:
        self._log.settle()
        return self._log.next - self._log.epoch

    def begin(self, groups: tuple[LayerGroup, ...]) -> None:
        """Begins to publish a manager with these groups; the manager calls it.

        Raises ``ValueError`` for a second manager, and if the publisher is closed.
        """
        if self._log.is_closed:
            raise ValueError("the publisher is closed")
        if self._log.index:
            raise ValueError("the publisher has a manager already: make one for each")
        self._log.begin(BlockIndex(groups, self._hasher))

    def publish(self, changed: Iterable[Page]) -> None:
        """Publishes pages that changed, unless closed; the manager calls it."""
        if not self._log.is_closed:
            self._sender.add([Change(page, page.prefix, page.place) for page in changed])

    def flush(self) -> None:
        """Waits until the pages of all steps so far have been sent."""
        self._log.settle()

    def close(self) -> None:
        """Sends waiting batches for at most a second, and closes the endpoints."""
        if self._log.is_closed:
            return
        self._sender.close()
        self._end()
        if self._server:
            self._server.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _end(log: EventLog, context: Any) -> None:
    """Closes the sockets of a publisher, and ends its thread of replays."""
    log.close()
    context.term()


def _get_endpoint(socket: Any, given: str, bind: bool = True) -> str:
    return socket.last_endpoint.decode() if bind else given


def _check_endpoint(name: str, endpoint: str, public: bool) -> None:
    """Raises ``ValueError`` for an invalid endpoint, or one that is not ``public``."""
    check_string(**{name: endpoint})
    if re.fullmatch(r"ipc://.+", endpoint):
        return
    match = re.fullmatch(r"tcp://\[?([^\]]+)\]?:(\d{1,5}|\*)", endpoint)
    if not match or (match[2] != "*" and int(match[2]) >= 1 << 16):
        raise ValueError(
            f"expects {name!r} to be tcp://HOST:PORT or ipc://PATH, got {endpoint!r}"
        )
    if public:
        return
    host = match[1]
    try:
        is_local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_local = host == "localhost"
    if not is_local:
        raise ValueError(
            f"expects {name!r} on this machine, such as tcp://127.0.0.1:5557, unless "
            f"'public' is set: events contain users' tokens, got {endpoint!r}"
        )
