# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The emulator's meter, which counts the requests of kernels to memory.

Names are Nsight Compute's where it has one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class CopyMeter:
    """The copy instructions of one kind.

    Attributes:
        count: The number of instructions, counted by issuing thread.
        global_bytes: Bytes in global memory, only in bounds.
        shared_bytes: Bytes in shared memory, including zeros out of bounds.
    """

    count: int
    global_bytes: int
    shared_bytes: int


@dataclass(frozen=True)
class ProductMeter:
    """The MMAs of one kind, whose matrices are in shared memory.

    Attributes:
        count: The number of instructions, counted by issuing warpgroup or thread.
        operations: The number of multiplications and additions.
        shared_bytes: Bytes of the matrices read from shared memory.
    """

    count: int
    operations: int
    shared_bytes: int


@dataclass(frozen=True)
class BarrierMeter:
    """The mbarriers at one offset in shared memory, of all thread blocks.

    Attributes:
        phases: The number of completed phases.
        bytes: Transaction bytes that these phases expected of copies.
        place: The place, such as ``"byte 0 of shared @full"``.
    """

    phases: int
    bytes: int
    place: str

    @property
    def bytes_per_phase(self) -> float:
        """The average number of bytes that a phase expects."""
        return self.bytes / self.phases if self.phases else 0.0


@dataclass(frozen=True)
class LaunchMeter:
    """The requests of one launch of a kernel to memory, over all its thread blocks.

    A request is an instruction of a warp that accesses memory. It counts once for any
    number of active lanes. Atomics count as read and written.

    Attributes:
        kernel: The names of the module and of the kernel, as ``"@module::@kernel"``.
        chip: The chip that is emulated.
        grid: Thread blocks in x, y and z.
        block: Threads per thread block in x, y and z.
        global_bytes_read: Bytes that threads and copies requested from global memory; a
            byte counts once per thread.
        global_bytes_written: Bytes written, likewise.
        global_sectors_read: Sectors of 32 bytes of global memory that requests and
            copies read. Each request counts a sector once.
        global_sectors_written: Sectors written, likewise.
        global_requests: Loads, stores and atomics of global memory by warps, and
            cp.async, without tensor and bulk copies.
        shared_requests: Loads, stores and atomics of shared memory, with ldmatrix and
            stmatrix.
        shared_wavefronts: Passes of these through the 32 banks of 4 bytes.
        bank_conflicts: Passes in excess of those without conflicts.
        copies: The meters of copies by kind: ``"async_copy"`` (cp.async),
            ``"tensor_load"``, ``"tensor_gather4"``, ``"tensor_store"``,
            ``"tensor_scatter4"``, ``"bulk_load"``, ``"bulk_store"``, ``"prefetch"``,
            ``"tensor_memory_copy"`` (tcgen05.cp). Unused kinds are missing.
        products: The meters of MMAs by kind: ``"wgmma"`` and ``"tcgen05"``.
        barriers: The meters of mbarriers by their offset in shared memory, in bytes.
    """

    kernel: str
    chip: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    global_bytes_read: int = 0
    global_bytes_written: int = 0
    global_sectors_read: int = 0
    global_sectors_written: int = 0
    global_requests: int = 0
    shared_requests: int = 0
    shared_wavefronts: int = 0
    bank_conflicts: int = 0
    copies: Mapping[str, CopyMeter] = field(
        default_factory=lambda: MappingProxyType({})
    )
    products: Mapping[str, ProductMeter] = field(
        default_factory=lambda: MappingProxyType({})
    )
    barriers: Mapping[int, BarrierMeter] = field(
        default_factory=lambda: MappingProxyType({})
    )

    def __str__(self) -> str:
        """Returns an aligned table."""
        return "\n".join([self._describe_launch(), *_align(self._list_rows())])

    def _describe_launch(self) -> str:
        grid, block = (" x ".join(map(str, sides)) for sides in (self.grid, self.block))
        return f"{self.kernel} on {self.chip}: {grid} blocks of {block} threads"

    def _list_rows(self) -> list[tuple[str, str, str]]:
        rows = [
            ("global read", self.global_bytes_read, "bytes"),
            ("", self.global_sectors_read, "sectors"),
            ("global written", self.global_bytes_written, "bytes"),
            ("", self.global_sectors_written, "sectors"),
            ("global requests", self.global_requests, ""),
            ("shared requests", self.shared_requests, ""),
            ("shared wavefronts", self.shared_wavefronts, ""),
            ("bank conflicts", self.bank_conflicts, ""),
        ]
        for kind, copy in self.copies.items():
            rows.append((kind.replace("_", " "), copy.count, "instructions"))
            rows.append(("", copy.global_bytes, "bytes in global memory"))
            rows.append(("", copy.shared_bytes, "bytes in shared memory"))
        for kind, product in self.products.items():
            rows.append((kind, product.count, "instructions"))
            rows.append(("", product.operations, "operations"))
            rows.append(("", product.shared_bytes, "bytes in shared memory"))
        for barrier in self.barriers.values():
            rows.append((f"mbarrier at {barrier.place}", barrier.phases, "phases"))
            rows.append(("", barrier.bytes, "bytes"))
        return [(name, f"{number:,}", unit) for name, number, unit in rows]


class Launches(tuple[LaunchMeter, ...]):
    """The launches of a call, in their order. ``str`` returns a table of each."""

    def __str__(self) -> str:
        return "\n\n".join(map(str, self))


def _align(rows: list[tuple[str, str, str]]) -> list[str]:
    names, numbers = (max(len(row[column]) for row in rows) for column in (0, 1))
    return [
        f"  {name:<{names}}  {number:>{numbers}} {unit}".rstrip()
        for name, number, unit in rows
    ]


def parse_launches(text: str) -> Launches:
    """Parses the result of ``kvcacheEmulatorTakeMeter``."""
    return Launches(map(_parse_launch, json.loads(text)))


def _parse_launch(described: dict[str, Any]) -> LaunchMeter:
    fields = dict(described)
    fields["grid"] = tuple(fields["grid"])
    fields["block"] = tuple(fields["block"])
    fields["copies"] = MappingProxyType(
        {kind: CopyMeter(**copy) for kind, copy in fields["copies"].items()}
    )
    fields["products"] = MappingProxyType(
        {kind: ProductMeter(**meter) for kind, meter in fields["products"].items()}
    )
    fields["barriers"] = MappingProxyType(
        {int(at): BarrierMeter(**meter) for at, meter in fields["barriers"].items()}
    )
    return LaunchMeter(**fields)
