# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tensors of a cache, on the device and in host memory."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import dtypes
from ..cache.groups import LayerGroup, MultiKVCacheParams, as_layer_groups, scale_bytes
from ..cache.layouts import DIMS, Layout, permute
from ..cache.params import KVCacheParams
from ..checks import check_gibibytes, check_instance, check_path, check_positive
from .files import PageFile
from .memory import AsyncMemory, Copy, Memory, NumPyMemory
from .snapshot import PageAddress, Place


class PageStore:
    """The pages of one tensor: on the device, on the host, and in a file.

    On the device, the null page follows the others. There, the dimensions are in
    ``order``; ``tensor`` has the dimensions of ``DIMS``.
    """

    def __init__(
        self,
        memory: Memory,
        shape: tuple[int, ...],
        dtype: np.dtype,
        num_pages: int,
        num_host_pages: int,
        order: tuple[str, ...] = DIMS,
    ) -> None:
        self._memory = memory
        whole = (num_pages + 1, *shape)
        if order == DIMS:
            self.tensor = memory.allocate(whole, dtype)
        else:
            stored = memory.allocate(
                tuple(whole[DIMS.index(dim)] for dim in order), dtype
            )
            self.tensor = permute(stored, [order.index(dim) for dim in DIMS])
        allocate = NumPyMemory().allocate
        if isinstance(memory, AsyncMemory):
            allocate = memory.allocate_host
        self._host = allocate((num_host_pages, *shape), dtype)
        self.page_bytes = math.prod(shape) * dtype.itemsize
        self._file: PageFile | None = None
        self._start = 0

    def use(self, file: PageFile, start: int) -> None:
        """Keeps this tensor's bytes from byte ``start`` of each page of a file on."""
        self._file, self._start = file, start

    def copy(self, source: PageAddress, target: PageAddress) -> None:
        """Copies a page to or from the device, or from the host to the file."""
        if target.place is Place.DISK:
            assert self._file
            self._file.write(target.index, self._start, self._host[source.index])
        elif target.place is Place.HOST:
            into = self._host[target.index]
            self._memory.read_page(self.tensor, source.index, into)
        elif source.place is Place.DEVICE:
            self._memory.copy_page(self.tensor, source.index, target.index)
        else:
            values = self.load(source)
            self._memory.write_page(self.tensor, target.index, values)

    def begin_copies(
        self, place: Place, sources: Sequence[int], targets: Sequence[int]
    ) -> Copy:
        """Begins to copy pages to ``place``: from the host to the device, or back."""
        memory = self._memory
        assert isinstance(memory, AsyncMemory)
        if place is Place.HOST:
            return memory.begin_read(self.tensor, sources, self._host, targets)
        return memory.begin_write(self.tensor, targets, self._host, sources)

    def save(self, address: PageAddress, into: np.ndarray) -> None:
        """Copies a page of any place to bytes in host memory."""
        shaped = into.view(self._host.dtype).reshape(self._host.shape[1:])
        if address.place is Place.DEVICE:
            self._memory.read_page(self.tensor, address.index, shaped)
        else:
            shaped[...] = self.load(address)

    def restore(self, values: np.ndarray, page: int) -> None:
        """Copies bytes in host memory to a page of the device."""
        shaped = values.view(self._host.dtype).reshape(self._host.shape[1:])
        self._memory.write_page(self.tensor, page, shaped)

    def load(self, address: PageAddress) -> np.ndarray:
        """Reads a page that is not on the device into host memory."""
        if address.place is Place.HOST:
            page: np.ndarray = self._host[address.index]
            return page
        assert self._file
        values = np.empty(self._host.shape[1:], self._host.dtype)
        self._file.read(address.index, self._start, values)
        return values


def parse_disk(
    folder: str | os.PathLike[str] | None, space: float | None, num_host_pages: int
) -> int:
    """Checks the arguments of the disk; returns the bytes of the file."""
    if (folder is None) != (space is None):
        raise ValueError("expects both 'disk_folder' and 'disk_space_gb', or none")
    if folder is None or space is None:
        return 0
    check_path(disk_folder=folder)
    check_gibibytes(disk_space_gb=space)
    if not num_host_pages:
        raise ValueError("'disk_folder' needs 'enable_kvcache_swapping_to_host'")
    if not os.fspath(folder):
        raise ValueError("expects 'disk_folder' to name a folder, got ''")
    return int(space * 2**30)


def share_file(
    stores: Sequence[PageStore], folder: str | os.PathLike[str], space: int
) -> int:
    """Makes a file of ``space`` bytes for tensors; returns its number of pages."""
    page_bytes = sum(store.page_bytes for store in stores)
    pages = space // page_bytes
    if not pages:
        raise ValueError(
            f"expects 'disk_space_gb' to hold at least one page of {page_bytes} bytes, "
            f"got {space} bytes"
        )
    file, start = PageFile(folder, pages, page_bytes), 0
    for store in stores:
        store.use(file, start)
        start += store.page_bytes
    return pages


def check_paged(params: KVCacheParams | MultiKVCacheParams) -> None:
    """Raises ``TypeError`` or ``ValueError`` unless parameters are of a paged cache."""
    if isinstance(params, MultiKVCacheParams):
        return
    check_instance(KVCacheParams, params=params)
    if not params.is_paged:
        raise ValueError("expects 'params' of a paged cache, got a continuous one")


def count_pages(
    params: KVCacheParams | MultiKVCacheParams,
    num_pages: int | None,
    cache_bytes: int | None,
) -> int:
    """The pages of a device, without the null page, from one of the two arguments."""
    if num_pages is not None and cache_bytes is None:
        check_positive(num_pages=num_pages)
        return int(num_pages)
    if cache_bytes is None or num_pages is not None:
        raise ValueError("expects either 'num_pages' or 'cache_bytes'")
    check_positive(cache_bytes=cache_bytes)
    fitting = int(cache_bytes) // params.bytes_per_block
    if fitting < 2:
        raise ValueError(
            "expects 'cache_bytes' to hold at least one page and the null page of "
            f"{params.bytes_per_block} bytes each, got {cache_bytes}"
        )
    return fitting - 1


class GroupTensors(NamedTuple):
    """The tensors of a group of layers on each device, as kernels use them."""

    blocks: tuple[Any, ...]
    scales: tuple[Any, ...]


class Storage(NamedTuple):
    """The tensors of a cache whose pages move, and each group's views of them."""

    blocks: list[PageStore]
    scales: list[PageStore]
    groups: tuple[GroupTensors, ...]


def allocate_storage(
    params: KVCacheParams | MultiKVCacheParams,
    memory: Memory,
    num_pages: int,
    num_host_pages: int,
) -> Storage:
    """Allocates the memory of all pages on each device, and on the host."""

    def allocate(
        shape: Sequence[int], dtype: np.dtype, order: tuple[str, ...] = DIMS
    ) -> list[PageStore]:
        counts = num_pages, num_host_pages
        return [
            PageStore(memory, tuple(shape), dtype, *counts, order)
            for _ in range(params.n_devices_per_stage)
        ]

    if isinstance(params, MultiKVCacheParams):
        byte = np.dtype(np.uint8)
        raw = allocate([params.bytes_per_page], byte)
        raw_scales = {size: allocate([size], byte) for size in params.scale_sizes}
        views = tuple(
            _view_group(group, memory, num_pages + 1, raw, raw_scales)
            for group in params.groups
        )
        return Storage(raw, [each for s in raw_scales.values() for each in s], views)
    (group,) = as_layer_groups(params)
    tensors = [
        allocate(shape, dtype, params.order_of(layout, shape))
        for shape, dtype, layout in _describe_tensors(group.params)
    ]
    blocks, scales = tensors[0], [each for stores in tensors[1:] for each in stores]
    view = GroupTensors(
        tuple(store.tensor for store in blocks), tuple(store.tensor for store in scales)
    )
    return Storage(blocks, scales, (view,))


def _describe_tensors(
    params: KVCacheParams,
) -> list[tuple[list[int], np.dtype, Layout | None]]:
    """The shape of a page, the dtype and the layout, for blocks and for scales."""
    tensors = [(params.shape_per_block, params.storage_dtype, params.layout)]
    if config := params.kvcache_quant_config:
        dtype = dtypes.dtype(config.scale_dtype)
        tensors.append((params.shape_per_scale_block, dtype, params.scale_layout))
    return tensors


def _view_group(
    group: LayerGroup,
    memory: Memory,
    num_pages: int,
    raw: list[PageStore],
    raw_scales: dict[int, list[PageStore]],
) -> GroupTensors:
    """Views the pages of a pool as the tensors of a group."""
    stores = [raw, raw_scales.get(scale_bytes(group), [])]
    kinds = []
    for (shape, dtype, layout), tensors in zip(
        _describe_tensors(group.params), stores, strict=False
    ):
        order = group.params.order_of(layout, shape)
        stored = [num_pages * group.split, *shape]
        stored = [stored[DIMS.index(dim)] for dim in order]
        axes = [order.index(dim) for dim in DIMS]
        views = (memory.view(each.tensor, tuple(stored), dtype) for each in tensors)
        kinds.append(tuple(permute(view, axes) for view in views))
    return GroupTensors(kinds[0], kinds[1] if len(kinds) > 1 else ())
