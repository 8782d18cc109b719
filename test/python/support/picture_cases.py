"""Snapshots to draw, and queries of their pictures."""

from xml.etree import ElementTree

import numpy as np

import kvcache
from kvcache import CacheSnapshot, PageAddress, PageState, Place, SequenceState
from kvcache.pictures import draw_pages, draw_row, draw_tile

SVG = "{http://www.w3.org/2000/svg}"
LLAMA = {"dtype": "bf16", "n_kv_heads": 8, "head_dim": 128, "page_size": 64, "total_num_layers": 32}
MLA = {"dtype": "f8E4M3FN", "n_kv_heads": 1, "head_dim": 640, "page_size": 64, "total_num_layers": 61, "is_mla": True}
QUANTIZED = {**LLAMA, "dtype": "f8E4M3FN", "n_devices": 2, "kvcache_quant_config": kvcache.KVCacheQuantizationConfig("f32", 32)}
INT4 = {**LLAMA, "dtype": "i4", "kvcache_quant_config": kvcache.KVCacheQuantizationConfig("f16", 32, "f16")}
NVFP4 = {**LLAMA, "dtype": "f4E2M1FN", "kvcache_quant_config": kvcache.KVCacheQuantizationConfig("f8E4M3FN", 16)}


def device(index):
    return PageAddress(Place.DEVICE, index)


def host(index):
    return PageAddress(Place.HOST, index)


def snapshot(pages=(), sequences=(), page_size=16, num_pages=12, num_host_pages=0):
    return CacheSnapshot(page_size, num_pages, num_host_pages, num_pages, tuple(pages), tuple(sequences))


def small_snapshot(names=("chat", "code", "swapped")):
    """Two sequences with a page in common, one in the swap space, two cached pages."""
    pages = [
        PageState(device(0), 2, True, 16),
        PageState(device(3), 1, True, 16),
        PageState(device(4), 1, False, 5),
        PageState(device(7), 1, False, 0),
        PageState(device(9), 0, True, 16),
        PageState(host(1), 1, False, 12),
        PageState(host(2), 0, True, 16),
    ]
    sequences = [
        SequenceState(names[0], (device(0), device(3), device(4)), 37, 3, True),
        SequenceState(names[1], (device(0), device(7)), 16, 9, True),
        SequenceState(names[2], (host(1),), 12, 0, False),
    ]
    return snapshot(pages, sequences, num_host_pages=4)


def large_snapshot(num_pages, num_sequences, per_sequence):
    """Sequences with three pages in common, and cached pages among the others."""
    ids = np.random.default_rng(0).permutation(num_pages).tolist()
    common, own, rest = ids[:3], ids[3 : 3 + num_sequences * per_sequence], ids[3 + num_sequences * per_sequence :]
    pages = [PageState(device(page), num_sequences, True, 64) for page in common]
    pages += [PageState(device(page), 1, False, 64) for page in own]
    pages += [PageState(device(page), 0, True, 64) for page in rest[::2]]
    tokens = 64 * (3 + per_sequence)
    sequences = [
        SequenceState(f"a request with a long name, number {i}", tuple(map(device, common + own[i::num_sequences])), tokens - 9, 9, True)
        for i in range(num_sequences)
    ]
    return snapshot(pages, sequences, page_size=64, num_pages=num_pages)


PICTURES = {
    "no-sequences": lambda: draw_pages(snapshot()),
    "small": lambda: draw_pages(small_snapshot()),
    "strange-names": lambda: draw_pages(small_snapshot(("<b>&\"'", "\x00\n\ud800\u202e", "長いＡＢ" * 20))),
    "16-sequences": lambda: draw_pages(large_snapshot(400, 16, 17)),
    "2000-pages": lambda: draw_pages(large_snapshot(2000, 4, 180)),
    "keys": lambda: draw_row(kvcache.KVCacheParams(**LLAMA)),
    "quantized": lambda: draw_row(kvcache.KVCacheParams(**QUANTIZED)),
    "nvfp4": lambda: draw_row(kvcache.KVCacheParams(**NVFP4)),
    "rope": lambda: draw_row(kvcache.KVCacheParams(**MLA), padded_depth=512, rope_columns=64),
    "wide-heads": lambda: draw_row(kvcache.KVCacheParams("f32", 32, 2048, page_size=16)),
    "small-heads": lambda: draw_row(kvcache.KVCacheParams("f16", 3, 5, page_size=1)),
    "tile": lambda: draw_tile((24, 128), "bf16", "128b", read=(8, 72)),
    "half-a-chunk": lambda: draw_tile((8, 48), "f16", "64b", read=None),
}


def parse(picture):
    return ElementTree.fromstring(picture.svg.encode())


def find_by_class(root, tag, name):
    return [element for element in root.iter(SVG + tag) if name in element.get("class", "").split()]


def texts(element):
    return [text.text for text in element.iter(SVG + "text")]


def number(element, name):
    return float(element.get(name))


def tips(root, name):
    return [group.find(SVG + "title").text for group in find_by_class(root, "g", name)]
