# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The regions of memory of a cache, for transports that send and receive pages."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..cache.groups import LayerGroup, MultiKVCacheParams, as_layer_groups
from ..cache.layouts import DIMS
from ..cache.params import KVCacheParams
from ..devices.tensors import find_address


@dataclass(frozen=True)
class Region:
    """One tensor of a cache on one device; all distances in bytes.

    Attributes:
        tensor: ``"blocks"`` or ``"scales"``.
        device: The number of the device among those of the manager.
        address: The address of the first byte.
        size: Bytes from the first to the last one.
        pages: The number of pages, without the null page.
        page_stride: The distance between two pages.
        page_bytes: Bytes of a page, all layers; more than ``page_stride`` if layers lie
            outside of pages.
        layers: The number of layers.
        layer_stride: The distance between two layers.
        order: The dimensions from the slowest to the fastest.
        shape: The sizes of the dimensions of ``DIMS``, including the null page.
        strides: The distances along the dimensions of ``DIMS``.
        itemsize: Bytes of an element.
        fingerprint: A hash of the format of a page's bytes. Caches with equal
            fingerprints exchange pages as they are.
    """

    tensor: str
    device: int
    address: int
    size: int
    pages: int
    page_stride: int
    page_bytes: int
    layers: int
    layer_stride: int
    order: tuple[str, ...]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    fingerprint: str

    # The generated one hashes all fields, and transports look regions up in each
    # transfer.
    def __hash__(self) -> int:
        return self.address

    @property
    def has_whole_pages(self) -> bool:
        """Whether all bytes of a page, and no others, are contiguous."""
        return self.order[0] == "page" and self.page_bytes == self.page_stride

    def contains(self, address: int, length: int) -> bool:
        """Returns whether ``length`` bytes at ``address`` are in the region."""
        return self.address <= address and address + length <= self.address + self.size

    def describe(
        self,
        pages: np.ndarray,
        layers: np.ndarray | None = None,
        heads: np.ndarray | None = None,
    ) -> np.ndarray:
        """The bytes of pages, as from ``PagedKVCacheManager.descriptors``, not
        merged."""
        if layers is None and heads is None and self.has_whole_pages:
            starts = self.address + pages.astype(np.int64) * self.page_stride
            return self._list_runs(starts, self.page_bytes)
        numbers = {
            dim: np.arange(size)
            for dim, size in zip(DIMS, self.shape, strict=True)
            if dim != "page"
        }
        numbers["page"] = pages.astype(np.int64)
        for dim, part in (("layer", layers), ("head", heads)):
            if part is not None:
                numbers[dim] = part
        strides = dict(zip(DIMS, self.strides, strict=True))
        address, length, outer = self.address, self.itemsize, list(self.order)
        # From the fastest dimension on, contiguous bytes become one run.
        while outer and outer[-1] != "page":
            taken, stride = numbers[outer[-1]], strides[outer[-1]]
            if len(taken) > 1 and (stride != length or np.any(np.diff(taken) != 1)):
                break
            address += int(taken[0]) * stride
            length *= len(taken)
            outer.pop()
        addresses = np.array([address], np.int64)
        for dim in outer:
            addresses = np.add.outer(addresses, numbers[dim] * strides[dim]).reshape(-1)
        return self._list_runs(addresses, length)

    def _list_runs(self, addresses: np.ndarray, length: int) -> np.ndarray:
        table = np.empty((len(addresses), 3), np.int64)
        table[:, 0], table[:, 1], table[:, 2] = addresses, length, self.device
        return table


def list_regions(
    params: KVCacheParams | MultiKVCacheParams,
    num_pages: int,
    blocks: Sequence[Any],
    scales: Sequence[Any],
) -> tuple[Region, ...]:
    """The regions of a manager's tensors: blocks, then scales."""
    fingerprint = make_fingerprint(params)
    if isinstance(params, MultiKVCacheParams):
        return tuple(
            _make_region(
                name, i % params.n_devices_per_stage, each, num_pages, fingerprint
            )
            for name, tensors in (("blocks", blocks), ("scales", scales))
            for i, each in enumerate(map(_as_elements, tensors))
        )
    kinds = [("blocks", blocks, params.shape_per_block, params.layout)]
    if params.kvcache_quant_config:
        shape = params.shape_per_scale_block
        kinds.append(("scales", scales, shape, params.scale_layout))
    return tuple(
        _make_region(
            name, device, tensor, num_pages, fingerprint, params.order_of(layout, shape)
        )
        for name, tensors, shape, layout in kinds
        for device, tensor in enumerate(tensors)
    )


def _as_elements(tensor: Any) -> Any:
    """Views bytes [pages, bytes] with the dimensions of ``DIMS``."""
    pages, size = tensor.shape
    return tensor.reshape((pages, *[1] * (len(DIMS) - 2), size))


def _make_region(
    name: str,
    device: int,
    tensor: Any,
    num_pages: int,
    fingerprint: str,
    order: tuple[str, ...] = DIMS,
) -> Region:
    address, strides, itemsize = locate(tensor)
    shape = tuple(map(int, tensor.shape))
    reaches = [(size - 1) * stride for size, stride in zip(shape, strides, strict=True)]
    page, layer = DIMS.index("page"), DIMS.index("layer")
    return Region(
        name,
        device,
        address,
        size=sum(reaches) + itemsize,
        pages=num_pages,
        page_stride=strides[page],
        page_bytes=math.prod(shape) // shape[page] * itemsize,
        layers=shape[layer],
        layer_stride=strides[layer],
        order=order,
        shape=shape,
        strides=strides,
        itemsize=itemsize,
        fingerprint=fingerprint,
    )


def describe_all(
    regions: Sequence[Region],
    pages: np.ndarray,
    layers: np.ndarray | None = None,
    heads: np.ndarray | None = None,
) -> np.ndarray:
    """The bytes of pages in all regions, as from ``Region.describe``."""
    tables = [each.describe(pages, layers, heads) for each in regions]
    return tables[0] if len(tables) == 1 else np.concatenate(tables)


def locate(tensor: Any) -> tuple[int, tuple[int, ...], int]:
    """The address of a tensor of any library, its strides and itemsize in bytes."""
    if isinstance(tensor, np.ndarray):
        return int(tensor.ctypes.data), tensor.strides, tensor.itemsize
    import tvm_ffi  # loads PyTorch, where that is installed

    view = tvm_ffi.from_dlpack(tensor)
    size = view.dtype.bits * view.dtype.lanes // 8
    return find_address(view), tuple(stride * size for stride in view.strides), size


def make_fingerprint(params: KVCacheParams | MultiKVCacheParams) -> str:
    """A hash of the format of a page's bytes."""
    fields = describe_groups(params)
    return hashlib.sha256(json.dumps(fields).encode()).hexdigest()[:16]


def describe_groups(params: KVCacheParams | MultiKVCacheParams) -> tuple[str, ...]:
    """The format of a page's bytes for each group, as fields separated by ``; ``."""
    return tuple(map(_describe, as_layer_groups(params)))


def _describe(group: LayerGroup) -> str:
    params = group.params
    fields: dict[str, Any] = {
        "layers": list(params.layers),
        "reach": group.reach,
        "type": params.collection_type,
        "block": params.shape_per_block,
        "storage": params.storage_dtype,
        "order": params.order_of(params.layout, params.shape_per_block),
        "devices": params.n_devices_per_stage,
        "pages in one": group.split,
    }
    if params.kvcache_quant_config:
        shape = params.shape_per_scale_block
        fields["scales"] = shape, params.order_of(params.scale_layout, shape)
    return "; ".join(f"{name} {value}" for name, value in fields.items())


def merge(descriptors: np.ndarray) -> np.ndarray:
    """Merges descriptors [n, 3] that are contiguous in memory."""
    return _merge(descriptors)[0]


def _merge(*tables: np.ndarray) -> tuple[np.ndarray, ...]:
    """Merges the rows of tables of equal lengths that are contiguous in all tables."""
    if len(tables[0]) < 2:
        return tables
    is_first = np.zeros(len(tables[0]), np.bool_)
    is_first[0] = True
    for table in tables:
        address, length, device = table.T
        is_first[1:] |= address[1:] != address[:-1] + length[:-1]
        is_first[1:] |= device[1:] != device[:-1]
    if is_first.all():
        return tables
    firsts = is_first.nonzero()[0]
    lengths = np.add.reduceat(tables[0][:, 1], firsts)
    merged = tuple(table[firsts] for table in tables)
    for table in merged:
        table[:, 1] = lengths
    return merged


def pair(source: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, ...]:
    """Splits the descriptors of the same bytes at two ends to equal lengths.

    Bytes that are contiguous at one end need not be at the other. Descriptors are
    merged where both ends are contiguous, and split where one is not.

    Raises:
        ValueError: The ends differ in their bytes.
    """
    if len(source) != len(target) or (source[:, 1] != target[:, 1]).any():
        source, target = _equalize(source, target)
    return _merge(source, target)


def _equalize(source: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Splits two lists of descriptors of the same bytes to equal lengths."""
    ends = [each[:, 1].cumsum() for each in (source, target)]
    totals = [int(end[-1]) if len(end) else 0 for end in ends]
    if totals[0] != totals[1]:
        raise ValueError(
            f"expects as many bytes at both ends, got {totals[0]} and {totals[1]}"
        )
    stops = np.concatenate(ends)
    stops.sort()
    is_last = np.ones(len(stops), np.bool_)
    is_last[:-1] = stops[1:] != stops[:-1]
    stops = stops[is_last]
    starts = np.zeros_like(stops)
    starts[1:] = stops[:-1]
    return (
        _split(source, ends[0], starts, stops),
        _split(target, ends[1], starts, stops),
    )


def _split(
    side: np.ndarray, ends: np.ndarray, starts: np.ndarray, stops: np.ndarray
) -> np.ndarray:
    if len(stops) == len(side):
        return side
    rows = ends.searchsorted(starts, side="right")
    parts = side[rows]
    parts[:, 0] += starts - (ends[rows] - parts[:, 1])
    parts[:, 1] = stops - starts
    return parts
