"""The model of a page manager with groups of layers: small caches, reach and memory.

Reach is computed by brute force. Values identify their tokens: every token writes one derived from
all before it, and a state is the value of the last token.
"""

import functools
import random
import tempfile
from dataclasses import dataclass, field

import kvcache
import numpy as np
import pytest
from kvcache import reach
from kvcache.pages.files import PageFile
from manager_model import Sequence

STATE = reach.state
# The rows of a group: keys and values by default, or latent rows, or index keys of fp8 with scales.
FORMS = {
    "latent": {"n_kv_heads": 1, "is_mla": True, "head_dim": 6},
    "index": {"n_kv_heads": 1, "is_mla": True},
}


@dataclass(frozen=True)
class Groups:
    """A small cache: reach, layers and tokens per page of each group, and perhaps its form.

    ``host_pages`` turns swapping on.
    """

    kinds: tuple = ((reach.full, 2, 2), (reach.window(3), 1, 2))
    num_pages: int = 16
    max_seq_len: int = 24
    prefix_caching: bool = True
    host_pages: int = 0
    devices: int = 1
    quantized: bool = False
    disk_pages: int = 0

    @property
    def params(self):
        params = kvcache.MultiKVCacheParams(self.list_params())
        if not self.host_pages:
            return params
        space = (self.host_pages + 0.5) * params.bytes_per_block / 2**30
        more = {
            "enable_kvcache_swapping_to_host": True,
            "host_kvcache_swap_space_gb": space,
        }
        return kvcache.MultiKVCacheParams(self.list_params(**more))

    def list_params(self, **more):
        first, scales = 0, kvcache.KVCacheQuantizationConfig("f32", 4)
        result = []
        for kind, layers, page_size, *form in self.kinds:
            rows = FORMS[form[0]] if form else {"n_kv_heads": 2, "head_dim": 2}
            is_quantized = self.quantized and not kind.is_state and not form or form == ["index"]
            if is_quantized:
                rows = rows | {"head_dim": 8, "kvcache_quant_config": scales}
            result.append(
                kvcache.KVCacheParams(
                    "f8E4M3FN" if is_quantized else "f32",
                    page_size=page_size,
                    n_devices=self.devices,
                    enable_prefix_caching=self.prefix_caching,
                    reach=kind,
                    layer_ids=range(first, first + layers),
                    **rows,
                    **more,
                )
            )
            first += layers
        return result

    def make(self, memory=None, **options):
        params, disk = self.params, {}
        if self.disk_pages:
            space = (self.disk_pages + 0.5) * params.bytes_per_block / 2**30
            disk = {"disk_folder": tempfile.gettempdir(), "disk_space_gb": space}
        with pytest.MonkeyPatch.context() as patch:
            if memory is not None:
                make = functools.partial(FailingFile, memory)
                patch.setattr(kvcache.pages.storage, "PageFile", make)
            return kvcache.PagedKVCacheManager(
                params, max_batch_size=4, max_seq_len=self.max_seq_len,
                num_pages=self.num_pages, memory=memory, **disk, **options,
            )  # fmt: skip


class FailingFile(PageFile):
    """A file that fails when its memory does."""

    def __init__(self, memory, *arguments):
        super().__init__(*arguments)
        self.memory = memory

    def write(self, page, start, values):
        if self.memory.count():
            super().write(page, start, np.full_like(values.view(np.uint8), 0x5A))
            self.memory.fail()
        super().write(page, start, values)

    def read(self, page, start, into):
        return (
            self.memory.fail(into)
            if self.memory.count()
            else super().read(page, start, into)
        )


def reaches(kind, position, token):
    """Returns whether the token at a position reaches another one, before or after it."""
    if kind.kind == "window":
        return token > position - kind.tokens or token < kind.sinks
    return kind.kind == "full" or token // kind.tokens == position // kind.tokens


def is_reached_from(kind, length, token):
    """Returns whether any token from ``length`` on reaches another one."""
    ends = range(length, length + 60)  # further than any chunk or window
    return any(reaches(kind, position, token) for position in ends)


@dataclass
class Modeled(Sequence):
    """A sequence with ``given``: whether kernels got the pending tokens."""

    given: bool = field(default=False, init=False)

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.given = False

    def copy(self):
        return Modeled(self.salt, self.tokens, self.length, self.is_resident)


class Slots:
    """The memory of one group: a value in each slot of each tensor."""

    def __init__(self, manager, number):
        group = manager.params.groups[number]
        self.kind, self.split = group.reach, group.split
        self.size = group.params.page_size
        self.pages = 1 << 62 if group.reach.is_state else self.size * self.split
        self.border = group.border
        tensors = manager.group_tensors[number]
        # [pages, roles, layers, tokens, heads]: 8 bytes of blocks, and of scales.
        self.tensors = [
            tensor.view(np.uint64)[..., 0] for tensor in (*tensors.blocks, *tensors.scales)
        ]

    def locate(self, unit, tokens):
        """The kernels' pages and the offsets of tokens in a page of the pool."""
        tokens = np.asarray(tokens, np.int64)
        if self.kind.is_state:
            return np.full(len(tokens), unit), np.zeros(len(tokens), np.int64)
        within = tokens % self.pages
        return unit * self.split + within // self.size, within % self.size

    def write(self, pages, offsets, values):
        written = np.array(values, np.uint64)[:, None, None, None]
        for tensor in self.tensors:
            tensor[pages, :, :, offsets] = written

    def holds(self, pages, offsets, values):
        expected = np.array(values, np.uint64)[:, None, None, None]
        return all(
            (tensor[pages, :, :, offsets] == expected).all() for tensor in self.tensors
        )


def run_kernel(slots, row, sequence):
    """Reads the tokens that new ones reach, and writes these, as kernels of a group do."""
    length, total = sequence.length, len(sequence.tokens)
    if slots.kind.is_state:
        if length and not sequence.given:
            assert slots.holds([row[0]], [0], [sequence.values[length - 1]]), "state"
        slots.write([row[0]], [0], [sequence.values[-1]])
        return
    tokens = range(length, total)
    table = np.array(row)
    slots.write(table[np.array(tokens) // slots.size], np.array(tokens) % slots.size,
                sequence.values[length:])  # fmt: skip
    reached = [
        t for t in range(total)
        if any(reaches(slots.kind, p, t) for p in tokens if p >= t)
    ]  # fmt: skip
    pages, offsets = (
        table[np.array(reached) // slots.size],
        np.array(reached) % slots.size,
    )
    assert slots.holds(pages, offsets, [sequence.values[t] for t in reached]), "reached"


def serves(slots, ends, values, length):
    """Returns whether a group has all pages that tokens from ``length`` on reach.

    ``ends`` has the values of the last tokens of its pages.
    """
    if slots.kind.is_state:
        return values[length - 1] in ends
    for number in range(length // slots.pages):
        tokens = range(number * slots.pages, (number + 1) * slots.pages)
        if any(is_reached_from(slots.kind, length, t) for t in tokens):
            if values[tokens[-1]] not in ends:
                return False
    return True


KINDS = (
    ((reach.full, 2, 2), (reach.window(3), 1, 2)),
    ((reach.full, 1, 2), (reach.window(5, sinks=1), 1, 1), (reach.chunk(6), 1, 2)),
    ((reach.full, 1, 4), (STATE, 1, 4)),
    ((reach.window(4, sinks=3), 1, 2), (STATE, 2, 4), (reach.full, 2, 2)),
    ((reach.window(4), 2, 3), (reach.chunk(8), 3, 2)),
    ((STATE, 1, 2),),
    ((reach.window(6), 1, 2),),
    ((reach.chunk(6), 1, 3), (reach.window(1), 1, 2)),
    ((reach.full, 2, 2, "latent"), (reach.full, 2, 2, "index")),
    ((reach.window(4), 1, 2, "latent"), (reach.window(6), 1, 6, "index")),
    ((reach.full, 1, 2),),
)


def draw_groups(seed):
    """Draws the caches of long histories."""
    draw = random.Random(seed)
    prefix_caching = draw.random() < 0.8
    host_pages = draw.choice((0, 0, 3, 12, 40))
    return Groups(
        draw.choice(KINDS),
        num_pages=draw.choice((6, 12, 20, 40)),
        max_seq_len=draw.choice((8, 24, 31)),
        prefix_caching=prefix_caching,
        host_pages=host_pages,
        devices=draw.choice((1, 1, 2)),
        quantized=draw.random() < 0.3,
        disk_pages=draw.choice((0, 2, 8, 30)) if host_pages else 0,
    )
