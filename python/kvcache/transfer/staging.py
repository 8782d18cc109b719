# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Staging of pages of another format: read to other memory, then converted."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..cache.groups import MultiKVCacheParams
from ..cache.layouts import DIMS, Layout
from ..cache.params import KVCacheParams
from ..cache.reach import Reach
from ..execution.runtime import JitModule, jit
from ..pages.leases import Reception
from ..pages.manager import PagedKVCacheManager
from ..pages.regions import Region, describe_groups
from .offers import Offer

_PADDING = 16  # more columns of a table than its sequence has, as the ops expect

_MOST_PAGE_TOKENS = 1 << 16


class Staging:
    """The pages of an offer in separate memory, until they are converted.

    The dtype and its scales, the layout, the page size, and the number of devices that
    share the heads may differ.

    Args:
        cache: The manager that gets the pages.
        offer: The offer of the pages.
        reception: The reserved pages of the cache.
        target: The target for which the conversion is compiled, as in ``jit``.

    Raises:
        ValueError: The caches differ in more.
    """

    def __init__(
        self,
        cache: PagedKVCacheManager,
        offer: Offer,
        reception: Reception,
        target: str,
    ) -> None:
        params = cache.params
        if isinstance(params, MultiKVCacheParams) or not offer.type:
            raise ValueError(
                "pages of several groups of layers are not converted, and "
                + _find_difference(offer.groups, describe_groups(params))
            )
        self._params = params
        self._source = read_params(offer)
        _check_convertible(self._source, params)
        self._reception = reception
        self._cache = cache
        self._target = target
        self._total = len(offer.tokens)
        _check_page_size(self._source, self._total)
        self.numbers = self._choose_pages(offer, params.reach)
        self._staged = PagedKVCacheManager(
            self._source,
            max_batch_size=1,
            max_seq_len=self._total,
            num_pages=max(len(self.numbers), 1),
            memory=cache.memory,
        )
        self._programs = self._compile()

    def _choose_pages(self, offer: Offer, reach: Reach) -> np.ndarray:
        """The numbers of the lent pages with a token that is missing here."""
        size = self._source.page_size
        assert size is not None
        expected = -(-self._total // size)
        if len(offer.pages) != expected:
            raise ValueError(
                f"expects {expected} pages for its tokens, got {len(offer.pages)}"
            )
        numbers = np.arange(self._reception.found // size, expected)
        is_lent = offer.pages[numbers] >= 0
        first = reach.first(self._total) // size
        is_reached = (numbers >= first) | (numbers < -(-reach.sinks // size))
        if not is_lent[is_reached].all():
            raise ValueError("it lacks pages that later tokens reach")
        # Pages here may begin before the first page that is lent.
        gone = max([first * size, *offer.gone])
        self._reception.gone = (gone if gone > self._reception.found else 0,)
        return numbers[is_lent]

    @property
    def regions(self) -> tuple[Region, ...]:
        return self._staged.regions()

    def describe(self) -> np.ndarray:
        """The bytes of the staged pages."""
        return self._staged.descriptors(np.arange(len(self.numbers)))

    def convert(self) -> None:
        """Converts the staged pages to pages of the cache."""
        if not len(self.numbers):  # no later token reaches any
            return
        upload, cache = self._cache.memory.upload, self._cache
        begin = upload(np.array([self._reception.found], np.int32))
        end = upload(np.array([self._total], np.int32))
        tables = [
            upload(_make_table(numbers, pages, manager.null_page))
            for numbers, pages, manager in (
                (self.numbers, np.arange(len(self.numbers)), self._staged),
                (self._reception.numbers, self._reception.pages, cache),
            )
        ]
        lengths = upload(np.array([self._total], np.uint32))
        bounds = 1, self._total
        for (source, target), program in self._programs:
            ends: list[Any] = []
            for manager, device, table in (
                (self._staged, source, tables[0]),
                (cache, target, tables[1]),
            ):
                scales = manager.scales[device : device + 1]
                ends += [manager.blocks[device], lengths, table, *bounds, *scales]
            for layer in range(len(self._params.layers)):
                program.call("convert", *ends, layer, begin, end)

    def _compile(self) -> list[tuple[tuple[int, int], JitModule]]:
        """Compiles a program for each pair of devices with common heads."""
        programs = []
        for target in range(self._params.n_devices_per_stage):
            wanted = _list_heads(self._params, target)
            for source in range(self._source.n_devices_per_stage):
                given = _list_heads(self._source, source)
                first = max(wanted.start, given.start)
                count = min(wanted.stop, given.stop) - first
                # Heads of several devices come from the first of them.
                if count > 0 and not (
                    source and _list_heads(self._source, source - 1) == given
                ):
                    heads = first - given.start, first - wanted.start, count
                    program = _make_program(
                        self._source, self._params, heads, self._target
                    )
                    programs.append(((source, target), program))
        return programs


def read_params(offer: Offer) -> KVCacheParams:
    """Reads the parameters of the cache of an offer."""
    orders = {region.tensor: region.order for region in offer.regions}
    layouts = {
        name: None if orders.get(tensor, DIMS) == DIMS else Layout(orders[tensor])
        for name, tensor in (("layout", "blocks"), ("scale_layout", "scales"))
    }
    return KVCacheParams.from_type(
        offer.type,
        n_kv_heads=offer.heads,
        n_devices=max(region.device for region in offer.regions) + 1,
        layer_ids=offer.layers,
        **layouts,
    )


def _check_convertible(source: KVCacheParams, target: KVCacheParams) -> None:
    for name in ("n_kv_heads", "head_dim", "is_mla"):
        one, other = getattr(source, name), getattr(target, name)
        if one != other:
            raise ValueError(f"its {name!r} is {one}, and {other} here")
    if list(source.layers) != list(target.layers):
        raise ValueError(
            f"its layers are {list(source.layers)}, and {list(target.layers)} here"
        )
    for params in (source, target):
        config = params.kvcache_quant_config
        if config and config.token_granularity > 1:
            raise ValueError("tokens that share their scales are not converted")


def _check_page_size(source: KVCacheParams, total: int) -> None:
    """Raises ``ValueError`` for pages with far more tokens than the sequence."""
    size, most = source.page_size or 0, max(total, _MOST_PAGE_TOKENS)
    if size > most:
        raise ValueError(f"its pages have {size} tokens, more than {most}")


def _find_difference(theirs: tuple[str, ...], own: tuple[str, ...]) -> str:
    """Describes the difference between the groups of two caches."""
    if len(theirs) != len(own):
        return f"it has {len(theirs)} of them, and {len(own)} here"
    pairs = enumerate(zip(theirs, own, strict=True))
    number, pair = next((i, pair) for i, pair in pairs if pair[0] != pair[1])
    parts = [text.split("; ") for text in pair]
    one, other = (
        ", ".join(part for part in parts[i] if part not in parts[1 - i]) for i in (0, 1)
    )
    return f"its group {number} has {one}, and {other} here"


def _list_heads(params: KVCacheParams, device: int) -> range:
    """The heads of the model on a device."""
    first = 0
    if not params.is_mla:
        first = device * params.n_kv_heads // params.n_devices_per_stage
    return range(first, first + params.n_kv_heads_per_device)


def _make_table(numbers: np.ndarray, pages: np.ndarray, null_page: int) -> np.ndarray:
    """Makes the lookup table of one sequence with some of its pages."""
    columns = -(-(int(numbers[-1]) + 1) // 8) * 8 + _PADDING
    table = np.full((1, columns), null_page, np.uint32)
    table[0, numbers] = pages
    return table


@functools.lru_cache(maxsize=64)
def _make_program(
    source: KVCacheParams,
    target: KVCacheParams,
    heads: tuple[int, int, int],
    jit_target: str,
) -> JitModule:
    return jit(_write_source(source, target, heads), target=jit_target, cached=True)


def _write_source(
    source: KVCacheParams, target: KVCacheParams, heads: tuple[int, int, int]
) -> str:
    """The source of a function that copies heads of a layer between caches."""
    arguments, lines = [], []
    roles = ("key",) if source.is_mla else ("key", "value")
    for name, params in (("from", source), ("to", target)):
        arguments += [
            f"%{name}: {params.blocks_type}",
            f"%{name}_lengths: memref<?xi32>",
            f"%{name}_lut: memref<?x?xi32>",
            f"%{name}_seq: i32",
            f"%{name}_cache: i32",
        ]
        types, scales = [params.blocks_type, "memref<?xi32>", "memref<?x?xi32>"], ""
        if params.kvcache_quant_config:
            arguments.append(f"%{name}_scales: {params.scales_type}")
            types.append(params.scales_type)
            scales = f" scales %{name}_scales"
        lines.append(
            f"%{name}_all = kvcache.paged_collection %{name}, %{name}_lengths, "
            f"%{name}_lut, %{name}_seq, %{name}_cache{scales} : {', '.join(types)} -> "
            f"{params.collection_type}"
        )
        lines += [
            f"%{name}_{role} = kvcache.paged_view {role} %{name}_all[%layer] : "
            f"{params.collection_type}"
            for role in roles
        ]
    counts = dict(zip(("source_head", "target_head", "heads"), heads, strict=True))
    options = ", ".join(f"{name} = {value} : i64" for name, value in counts.items())
    lines += [
        f"kvcache.copy %from_{role} to %to_{role} begin %begin end %end {{{options}}} : "
        f"{source.cache_type}, {target.cache_type}, memref<?xi32>, memref<?xi32>"
        for role in roles
    ]
    arguments += ["%layer: index", "%begin: memref<?xi32>", "%end: memref<?xi32>"]
    body = "\n  ".join(lines)
    return f"func.func @convert({', '.join(arguments)}) {{\n  {body}\n  return\n}}\n"
