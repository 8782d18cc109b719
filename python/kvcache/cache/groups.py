# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layer groups, whose caches share one pool of pages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from .. import dtypes
from ..checks import check_instance, check_integer
from .params import KVCacheParams
from .reach import Reach

_COMMON = (
    "n_devices",
    "enable_prefix_caching",
    "enable_kvcache_swapping_to_host",
    "host_kvcache_swap_space_gb",
)


@dataclass(frozen=True)
class LayerGroup:
    """Layers that keep the same tokens, and their view of the pages of the pool.

    Attributes:
        params: The parameters of the cache as kernels use it. A state has rows of one
            token.
        reach: The tokens that later tokens reach.
        border: Tokens between two positions at which a prefix can end: tokens per page
            of the pool, or between two snapshots of a state.
        split: The number of kernels' pages in a page of the pool. They are consecutive,
            so a page of the pool is ``split`` entries of the lookup table.
    """

    params: KVCacheParams
    reach: Reach
    border: int
    split: int = 1

    @property
    def tokens(self) -> int:
        """Tokens per page of the pool; for a state, a number above any length."""
        return 1 << 62 if self.reach.is_state else self.border


def make_group(params: KVCacheParams, split: int = 1) -> LayerGroup:
    """Makes the layer group of some parameters."""
    border = params.page_size
    assert border is not None
    if params.reach.is_state:
        return LayerGroup(replace(params, page_size=1), params.reach, border, split)
    return LayerGroup(params, params.reach, border * split, split)


class MultiKVCacheParams:
    """The cache of a model whose layers are of several kinds, in one pool of pages.

    A page of the pool holds pages of any layer group, so that memory that one frees
    serves another. Its size is the least common multiple of the bytes of the groups'
    pages, so no byte is lost. In the table of a group, it is ``split`` consecutive
    pages. A page holds one block of states.

    Args:
        groups: The parameters of each layer group; paged, with different ``layer_ids``,
            and with the same devices, prefix caching and swapping. Layouts begin with
            pages.
        shared: The layers without a cache that read the cache of another layer (YOCO,
            CLA), as a dictionary from their numbers to the others.

    Attributes:
        groups: The layer groups, in the order given.
        shared: The layers without a cache, as given.

    Raises:
        ValueError: The groups do not fit together; the message states the rule.
        TypeError: A group is not a ``KVCacheParams``.
    """

    def __init__(
        self,
        groups: Sequence[KVCacheParams],
        *,
        shared: Mapping[int, int] | None = None,
    ) -> None:
        self._params = tuple(groups)
        _check_groups(self._params)
        self.bytes_per_page = _find_common_page(self._params)
        self.groups = tuple(
            make_group(
                params,
                (
                    1
                    if params.reach.is_state
                    else self.bytes_per_page // block_bytes(params)
                ),
            )
            for params in self._params
        )
        self._places = {
            layer: (number, row)
            for number, params in enumerate(self._params)
            for row, layer in enumerate(params.layers)
        }
        self.shared = dict(shared or {})
        self._check_shared()

    def _check_shared(self) -> None:
        for layer, other in self.shared.items():
            check_integer(layer=layer, other=other)
            if layer in self._places:
                raise ValueError(
                    f"layer {layer} has a cache of its own, and is in 'shared'"
                )
            if other not in self._places:
                raise ValueError(
                    f"layer {layer} shares the cache of layer {other}, which has none"
                )

    def locate(self, layer: int) -> tuple[int, int]:
        """Finds the group with a layer's cache, and the layer's index in it.

        Raises ``ValueError`` for a layer that neither has nor shares a cache.
        """
        place = self._places.get(self.shared.get(layer, layer))
        if place is None:
            raise ValueError(f"no group has layer {layer}")
        return place

    @property
    def enable_prefix_caching(self) -> bool:
        """Whether sequences with a common prefix share pages: equal in all groups."""
        return self._params[0].enable_prefix_caching

    @property
    def n_devices_per_stage(self) -> int:
        """The number of devices that share the heads of a layer."""
        return self._params[0].n_devices_per_stage

    @property
    def scale_sizes(self) -> tuple[int, ...]:
        """The bytes of the scales of a page of the pool on a device, each size once."""
        return tuple(sorted({size for g in self.groups if (size := scale_bytes(g))}))

    @property
    def bytes_per_block(self) -> int:
        """Bytes of a page of the pool, with scales, on all devices."""
        sizes = self.bytes_per_page, *self.scale_sizes
        return sum(sizes) * self.n_devices_per_stage

    @property
    def n_host_blocks(self) -> int:
        """Pages of the pool in the swap space; as in ``KVCacheParams``."""
        return self._params[0].count_host_pages(self.bytes_per_block)

    def __repr__(self) -> str:
        return (
            f"kvcache.MultiKVCacheParams({list(self._params)!r}, shared={self.shared})"
        )


def block_bytes(params: KVCacheParams) -> int:
    """Bytes of the blocks of a page, or of a state, on one device."""
    return math.prod(params.shape_per_block) * params.storage_dtype.itemsize


def scale_bytes(group: LayerGroup) -> int:
    """Bytes of the scales of a page of the pool on one device; 0 without."""
    config = group.params.kvcache_quant_config
    if not config:
        return 0
    size = math.prod(group.params.shape_per_scale_block) * group.split
    return size * dtypes.dtype(config.scale_dtype).itemsize


def _find_common_page(groups: Sequence[KVCacheParams]) -> int:
    pages = [block_bytes(params) for params in groups if not params.reach.is_state]
    states = [block_bytes(params) for params in groups if params.reach.is_state]
    common = math.lcm(*pages) if pages else 256
    return -(-max(states, default=1) // common) * common


def _check_groups(groups: Sequence[KVCacheParams]) -> None:
    if not groups:
        raise ValueError("expects at least one group")
    seen: set[int] = set()
    for number, params in enumerate(groups):
        check_instance(KVCacheParams, **{f"groups[{number}]": params})
        if not params.is_paged:
            raise ValueError(
                f"expects groups of paged caches, but group {number} is not"
            )
        if params.pipeline_parallel_degree > 1:
            raise ValueError(
                f"group {number} has stages: give the layers of one stage as 'layer_ids'"
            )
        if params.layer_ids is None and len(groups) > 1:
            raise ValueError(f"group {number} needs 'layer_ids'")
        _check_equal(groups[0], params, number)
        _check_order(params, number)
        if twice := seen.intersection(params.layers):
            raise ValueError(f"layer {min(twice)} is in several groups")
        seen.update(params.layers)


def _check_equal(first: KVCacheParams, params: KVCacheParams, number: int) -> None:
    for name in _COMMON:
        one, other = getattr(first, name), getattr(params, name)
        if one != other:
            raise ValueError(
                f"expects {name!r} to be equal in all groups, got {one} in group 0 and "
                f"{other} in group {number}"
            )


def _check_order(params: KVCacheParams, number: int) -> None:
    shapes = [(params.layout, params.shape_per_block)]
    if params.kvcache_quant_config:
        shapes.append((params.scale_layout, params.shape_per_scale_block))
    for layout, shape in shapes:
        order = params.order_of(layout, shape)
        if order[0] != "page":
            raise ValueError(
                f"expects layouts that begin with pages, but group {number} has "
                f"{', '.join(order)}"
            )


def as_layer_groups(
    params: KVCacheParams | MultiKVCacheParams,
) -> tuple[LayerGroup, ...]:
    """Returns the layer groups of a cache; one for ``KVCacheParams``."""
    if isinstance(params, MultiKVCacheParams):
        return params.groups
    return (make_group(params),)
