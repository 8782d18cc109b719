# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The thread that makes all calls of a store, one after another."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeAlias, TypeVar

_T = TypeVar("_T")

Call: TypeAlias = tuple[Future[Any], Callable[..., Any], list[Any]]
Calls: TypeAlias = "queue.SimpleQueue[Call | None]"
"""The calls that wait, and None for the end."""


class StoreThread:
    """A daemon thread that makes calls in their order, so that one that hangs blocks no exit.

    Raises ``RuntimeError`` where no thread can start.
    """

    def __init__(self) -> None:
        self._calls: Calls = queue.SimpleQueue()
        name = "kvcache-store-calls"
        threading.Thread(target=_work, args=[self._calls], name=name, daemon=True).start()

    def submit(self, function: Callable[..., _T], *arguments: Any) -> Future[_T]:
        """Asks for a call after those that wait."""
        future: Future[_T] = Future()
        kept = [*arguments]
        future.add_done_callback(lambda _: kept.clear())  # a cancelled call keeps no buffer
        self._calls.put((future, function, kept))
        return future

    def end(self) -> None:
        """Ends the thread after the calls that wait."""
        self._calls.put(None)


def _work(calls: Calls) -> None:
    while call := calls.get():
        _run(*call)
        del call  # keeps no buffer while there is no call


def _run(future: Future[Any], function: Callable[..., Any], arguments: list[Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(function(*arguments))
    except BaseException as error:  # for whoever asks for the result
        future.set_exception(error)
