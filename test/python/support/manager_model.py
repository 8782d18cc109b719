"""The model of a page manager's sequences and memory, in plain Python and NumPy.

``Sequence`` has tokens, but no pages. The value of a token is derived from the salt and all tokens
up to it. So memory identifies its tokens, and wrongly shared pages are found.
"""

from dataclasses import dataclass

import numpy as np

import kvcache

FORMATS = {
    "f32": ("f32", 2, None),
    "bf16": ("bf16", 4, None),
    "i64": ("i64", 8, None),
    "u16": ("uint16", 8, None),
    "fp8": ("f8E4M3FN", 8, ("f32", 4)),
    "nvfp4": ("f4E2M1FN", 16, ("f8E4M3FN", 16)),
}
"""The dtype, elements of a head, and dtype and granularity of the scales."""


@dataclass(frozen=True)
class Configuration:
    """A small cache; ``host_pages`` turns swapping on."""

    page_size: int = 2
    num_pages: int = 8
    max_batch_size: int = 4
    max_seq_len: int = 16
    format: str = "f32"
    is_mla: bool = False
    devices: int = 1
    prefix_caching: bool = True
    host_pages: int = 0

    @property
    def params(self):
        dtype, head_dim, scales = FORMATS[self.format]
        options = {
            "dtype": dtype,
            "n_kv_heads": 2,
            "head_dim": head_dim,
            "page_size": self.page_size,
            "n_devices": self.devices,
            "total_num_layers": 2,
            "is_mla": self.is_mla,
            "enable_prefix_caching": self.prefix_caching,
            "kvcache_quant_config": scales and kvcache.KVCacheQuantizationConfig(*scales),
        }
        if not self.host_pages:
            return kvcache.KVCacheParams(**options)
        page_bytes = kvcache.KVCacheParams(**options).bytes_per_block
        return kvcache.KVCacheParams(
            **options,
            enable_kvcache_swapping_to_host=True,
            host_kvcache_swap_space_gb=(self.host_pages + 0.5) * page_bytes / 2**30,
        )

    def make(self, manager=None, memory=None):
        """Makes a manager of this configuration, or of another class."""
        return (manager or kvcache.PagedKVCacheManager)(
            self.params,
            max_batch_size=self.max_batch_size,
            max_seq_len=self.max_seq_len,
            num_pages=self.num_pages,
            memory=memory,
        )


MASK = (1 << 64) - 1


def prefix_values(salt, tokens, before=()):
    """Computes a 64-bit value for each token, from all up to it, including ``before``."""
    value = before[-1] if before else int.from_bytes(b"\x01" + salt, "big")
    values = []
    for token in tokens:
        value = ((value ^ token) * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03) & MASK
        value ^= value >> 29
        values.append(value)
    return values


class Sequence:
    """The tokens of a sequence, of which the first ``length`` are in the cache."""

    def __init__(self, salt, tokens=(), length=0, is_resident=True):
        self.salt = salt
        self.tokens = list(tokens)
        self.values = prefix_values(salt, self.tokens)
        self.length = length
        self.is_resident = is_resident

    @property
    def pending(self):
        return len(self.tokens) - self.length

    def grow(self, tokens):
        self.values += prefix_values(self.salt, tokens, self.values)
        self.tokens += tokens

    def truncate(self, length):
        del self.tokens[length:], self.values[length:]
        self.length = min(self.length, length)

    def copy(self):
        return Sequence(self.salt, self.tokens, self.length, self.is_resident)


class Contents:
    """Reads and writes tokens in all tensors of a manager, as kernels would."""

    def __init__(self, manager):
        self.slots = [as_slots(tensor) for tensor in (*manager.blocks, *manager.scales)]
        rng = np.random.default_rng(5)
        self.patterns = [
            rng.integers(0, 256, slots.shape[2:], np.uint8) for slots in self.slots
        ]

    def expected(self, pattern, values):
        chosen = np.array(values, np.uint64)[:, None].view(np.uint8)
        chosen = chosen[:, np.arange(pattern.size) % 8]
        return chosen.reshape(-1, *pattern.shape) ^ pattern

    def write(self, pages, offsets, values):
        """Writes a token's value at each offset of a page."""
        for slots, pattern in zip(self.slots, self.patterns, strict=True):
            slots[pages, offsets] = self.expected(pattern, values)

    def find_wrong(self, pages, offsets, values):
        """The (page, offset) pairs that hold other values."""
        wrong = set()
        for slots, pattern in zip(self.slots, self.patterns, strict=True):
            same = slots[pages, offsets] == self.expected(pattern, values)
            for i in np.flatnonzero(~same.all((1, 2, 3, 4))):
                wrong.add((int(pages[i]), int(offsets[i])))
        return wrong

    def is_zero(self, page):
        return not any(slots[page].any() for slots in self.slots)


def as_slots(tensor):
    """Views a tensor's bytes as [pages, tokens, kinds, layers, heads, bytes of a head]."""
    return tensor.view(np.uint8).transpose(0, 3, 1, 2, 4, 5)
