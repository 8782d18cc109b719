"""What the benchmarks need of a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .arguments import TensorMap


class DeviceError(RuntimeError):
    """There is no device, or it failed."""


class OutOfMemoryError(DeviceError):
    """The device has not enough memory."""


@dataclass(frozen=True)
class Facts:
    """What a device says about itself. ``clock_bandwidth`` is what its memory could do by clock and width, or 0."""

    name: str
    bus_id: str
    capability: tuple[int, int]
    driver: str
    multiprocessors: int
    memory_bytes: int
    l2_bytes: int
    clock_bandwidth: float  # bytes per second


Grid = tuple[int, int, int]


class Device(Protocol):
    """A GPU with one stream. Handles are opaque; addresses are numbers.

    Everything may raise ``DeviceError``; what a kernel does wrong is seen by ``synchronize`` and ``download``.
    """

    facts: Facts
    stream: Any

    def load(self, cubin: bytes, kernel: str, shared_bytes: int) -> Any:
        """A kernel to launch with so much dynamic shared memory."""

    def prepare(self, kernel: Any, grid: Grid, block: Grid, shared_bytes: int, arguments: Sequence[bytes]
                ) -> Callable[[], None]:
        """What launches the kernel, again and again, with arguments of the sizes that it takes."""

    def allocate(self, size: int) -> int: ...

    def free(self, address: int) -> None: ...

    def upload(self, address: int, array: np.ndarray) -> None: ...

    def download(self, array: np.ndarray, address: int) -> None: ...

    def fill(self, address: int, byte: int, size: int) -> None: ...

    def copy(self, to: int, source: int, size: int) -> None:
        """Copies from memory of the device to memory of the device."""

    def encode(self, tensor_map: TensorMap) -> bytes:
        """The 128 bytes of a descriptor."""

    def mark(self) -> Any:
        """A point in the stream."""

    def milliseconds(self, start: Any, end: Any) -> float:
        """The time between two points that the stream has passed."""

    def synchronize(self) -> None: ...

    def close(self) -> None: ...
