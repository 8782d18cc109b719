"""Times of calls: medians need many, which begin when the device has several of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from measure import brief

Call = Callable[[int], Any]
"""A call with the number of a set of arrays."""


class HostTimer:
    """Times of a target of the host: only that calls work."""

    def __init__(self, call: Call, sets: int, has_graph: bool = True) -> None:
        start = time.perf_counter()
        call(0)
        self.single = [1e3 * (time.perf_counter() - start)]
        self.replayed: list[float] = []
        self.note, self.host_us = "", 0.0

    def take(self) -> None:
        pass


class DeviceTimer:
    """Times between events: around each call, and of a CUDA graph of many calls."""

    def __init__(self, call: Call, sets: int, has_graph: bool = True) -> None:
        self._call, self._sets = call, sets
        self.single: list[float] = []
        self.replayed: list[float] = []
        self.note, self.host_us = "", 0.0
        for i in range(3):
            call(i % sets)
        torch.cuda.synchronize()
        once = self._measure(5)
        about = max(statistics.median(once), 1e-3)
        self._count = int(min(max(20 / about, 5), 40))
        self._in_graph = min(max(self._count, sets), 64)
        self._graph: Any = torch.cuda.CUDAGraph() if has_graph else None
        if not has_graph:
            return
        try:
            with torch.cuda.graph(self._graph):
                for i in range(self._in_graph):
                    call(i % sets)
            self._graph.replay()
            torch.cuda.synchronize()
        except Exception as error:
            self._graph, self.note = None, f"no graph: {brief(error)}"

    def _measure(self, count: int) -> list[float]:
        """Milliseconds of calls, which the device begins when it has several of them."""
        events = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
        torch.cuda._sleep(1_000_000 + count * 200_000)  # about 0.1 ms a call
        events[0].record()
        start = time.perf_counter()
        for i, event in enumerate(events[1:]):
            self._call(i % self._sets)
            event.record()
        self.host_us = 1e6 * (time.perf_counter() - start) / count
        torch.cuda.synchronize()
        return [a.elapsed_time(b) for a, b in zip(events, events[1:])]

    def take(self) -> None:
        """One turn of this contender."""
        self.single += self._measure(self._count)
        if self._graph is None:
            return
        for _ in range(3):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            self._graph.replay()
            end.record()
            torch.cuda.synchronize()
            self.replayed.append(begin.elapsed_time(end) / self._in_graph)
