# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the emulator counts: the requests of kernels to memory.

The names are those of Nsight Compute where it has one.
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
        count: Instructions, each by the thread that issues it.
        global_bytes: Bytes in global memory, of what is in bounds.
        shared_bytes: Bytes in shared memory, zeros that fill up included.
    """

    count: int
    global_bytes: int
    shared_bytes: int


@dataclass(frozen=True)
class ProductMeter:
    """The products of tensor cores of one kind, whose matrices are in shared memory.

    Attributes:
        count: Instructions, each by the warpgroup or the thread that issues it.
        operations: Multiplications and additions.
        shared_bytes: Bytes of the matrices that they read from shared memory.
    """

    count: int
    operations: int
    shared_bytes: int


@dataclass(frozen=True)
class BarrierMeter:
    """The mbarriers at one offset in shared memory, of all blocks.

    Attributes:
        phases: Phases that have completed.
        bytes: Bytes that these phases have expected of copies.
        place: Where they are, such as ``"byte 0 of shared @full"``.
    """

    phases: int
    bytes: int
    place: str

    @property
    def bytes_per_phase(self) -> float:
        """Bytes that a phase expects on average."""
        return self.bytes / self.phases if self.phases else 0.0


@dataclass(frozen=True)
class LaunchMeter:
    """What one launch of a kernel asked of memory, over all its blocks.

    A request is an instruction of a warp that accesses memory; it counts once, however
    many of its lanes are active. Atomics count as read and written.

    Attributes:
        kernel: The names of the module and of the kernel, as ``"@module::@kernel"``.
        chip: The chip that is emulated.
        grid: Blocks in x, y and z.
        block: Threads of a block in x, y and z.
        global_bytes_read: Bytes that threads and copies have read from global memory:
            those that they asked for, so that a byte counts for each thread.
        global_bytes_written: Bytes written, likewise.
        global_sectors_read: Sectors of 32 bytes of global memory that the requests and
            copies have read. A request counts a sector once, and each request anew.
        global_sectors_written: Sectors written, likewise.
        global_requests: Loads, stores and atomics of global memory, by warp, and
            cp.async; tensor and bulk copies are not among them.
        shared_requests: The same of shared memory, with ldmatrix and stmatrix.
        shared_wavefronts: Passes through the 32 banks of 4 bytes that they take.
        bank_conflicts: Those of the passes that accesses without conflicts would not
            have taken.
        copies: By kind: ``"async_copy"`` (cp.async), ``"tensor_load"``,
            ``"tensor_gather4"``, ``"tensor_store"``, ``"tensor_scatter4"``,
            ``"bulk_load"``, ``"bulk_store"``, ``"prefetch"``, ``"tensor_memory_copy"``
            (tcgen05.cp). Kinds that the kernel doesn't use are not there.
        products: By kind: ``"wgmma"`` and ``"tcgen05"``, likewise.
        barriers: By the offset of the mbarrier in a block's shared memory, in bytes.
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
    """The launches of a call, in their order. ``str`` of it is a table of each."""

    def __str__(self) -> str:
        return "\n\n".join(map(str, self))


def _align(rows: list[tuple[str, str, str]]) -> list[str]:
    names, numbers = (max(len(row[column]) for row in rows) for column in (0, 1))
    return [
        f"  {name:<{names}}  {number:>{numbers}} {unit}".rstrip()
        for name, number, unit in rows
    ]


def parse_launches(text: str) -> Launches:
    """Reads what ``kvcacheEmulatorTakeMeter`` returns."""
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
