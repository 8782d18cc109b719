"""Caches whose pages are transferred, and the transports between them."""

import itertools

import kvcache
import numpy as np
from kvcache import transfer

LAYOUTS = [None, "HND", "LBHNC", "LBNHC", "LHBNC", "BLHNC", "BLNHC", "BHLNC"]
NAMES = itertools.count()
PAGE = 4


def make_cache(num_pages=8, layout=None, quantized=False, **fields):
    config = kvcache.KVCacheQuantizationConfig("f32", 8) if quantized else None
    params = kvcache.KVCacheParams(
        "f8E4M3FN" if quantized else "bf16",
        n_kv_heads=fields.pop("n_kv_heads", 2),
        head_dim=16,
        page_size=PAGE,
        total_num_layers=3,
        kvcache_quant_config=config,
        **fields,
    )
    if layout:
        params = params.with_layout(kvcache.Layout.from_name(layout))
    cache = kvcache.PagedKVCacheManager(
        params, max_batch_size=8, max_seq_len=256, num_pages=num_pages
    )
    fill(cache)
    return cache


def fill(cache, seed=0):
    for tensor in (*cache.blocks, *cache.scales):
        tensor[...] = np.random.default_rng(seed).integers(1, 100, tensor.shape)


def add(cache, request, tokens):
    cache.claim(request, tokens)
    cache.step([request])


class Local(transfer.LocalTransport):
    """A local transport that rejects empty transfers, as engines do."""

    def post(self, peer, source, target):
        assert len(source)
        return super().post(peer, source, target)


def local(**options):
    return Local(f"machine {next(NAMES)}", **options)


class PageTransport(Local):
    """A transport that also takes pages by number, if they are contiguous."""

    def __init__(self, **options):
        super().__init__(f"machine {next(NAMES)}", **options)
        self.posted = []

    def post_pages(self, peer, source, source_pages, target, target_pages):
        assert len(source_pages)
        self.posted.append((source_pages.tolist(), target_pages.tolist()))
        if not all(region.has_whole_pages for region in source):
            return None
        tables = (
            np.concatenate([region.describe(pages) for region in regions])
            for regions, pages in ((source, source_pages), (target, target_pages))
        )
        return self.post(peer, *tables)


def contents(cache, request):
    """The contents of a sequence in the cache, as bytes in the order of its dimensions."""
    states = {state.request: state for state in cache.snapshot().sequences}
    pages = [page.index for page in states[request].pages]
    return [
        np.ascontiguousarray(tensor[pages]).tobytes()
        for tensor in (*cache.blocks, *cache.scales)
    ]


def run(cache, message, transport, **options):
    moved = transfer.fetch(cache, message, transport, **options)
    while not moved.poll():
        pass
    return moved
