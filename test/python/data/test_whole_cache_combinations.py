"""Tests of append, gather, copy and copy_pages on caches of any format, layout, page size and table.

KVCACHE_COMBINATIONS is the number of combinations, instead of a few.
"""

import os
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from programs import examples
from whole_caches import LAYER, LAYERS, Cache, as_uint, decode_rows, encode_rows, write_module

import kvcache
from kvcache import KVCacheParams, KVCacheQuantizationConfig, Layout

COUNT = int(os.environ.get("KVCACHE_COMBINATIONS", "8"))
SCALES = ("f32", "f16", "bf16", "f8E8M0FNU", "f8E4M3FN")
GRANULARITIES = (8, 16, 32, 64)
FORMATS = [
    *((dtype, None, None) for dtype in ("f32", "f16", "bf16", "f8E4M3FN", "f8E5M2")),
    *((dtype, scale, size) for dtype in ("f8E4M3FN", "f8E5M2", "i8") for scale in SCALES for size in GRANULARITIES),
    ("f4E2M1FN", "f8E4M3FN", 16),
    ("f4E2M1FN", "f8E8M0FNU", 32),
    *(("i4", scale, size) for scale in ("f32", "f16", "bf16") for size in GRANULARITIES),
]
LAYOUTS = ("NHD", "HND", "LBHNC", "LBNHC", "LHBNC", "BLHNC", "BLNHC", "BHLNC")
PAGE_SIZES = (1, 2, 3, 4, 7, 8, 16, 32)
HEAD_SIZES = (16, 32, 48, 64, 80, 128)
TABLES = ("dense", "csr", "rows")
TARGETS = ("cpu", "cpu", "emulator:sm_80", "emulator:sm_90a", "emulator:sm_100a")
DENSE = st.sampled_from(("f32", "f16", "bf16"))
ROWS = st.tuples(st.integers(0, 40), st.integers(0, 4))
BLOCK_THREADS = st.sampled_from((None, 32, 64, 96, 480, 1024))
HEADS_PER_THREAD = st.sampled_from((None, 1, 2, 3, 32))


@dataclass(frozen=True)
class Options:
    power_of_two: bool
    static_a: bool
    static_b: bool
    slots: str
    ragged: bool
    heads: tuple[int, int, int]
    block_threads: int | None
    heads_per_thread: int | None


@st.composite
def draw_cache(draw, heads, head_size, is_mla):
    dtype, scale, granularity = draw(st.sampled_from(FORMATS))
    config = None
    if scale:
        config = KVCacheQuantizationConfig(scale, granularity, scale if dtype == "i4" else None)
    params = KVCacheParams(
        dtype, heads, head_size, page_size=draw(st.sampled_from(PAGE_SIZES)), total_num_layers=LAYERS,
        kvcache_quant_config=config, is_mla=is_mla, enable_prefix_caching=False,
    )  # fmt: skip
    name = "NHD" if is_mla else draw(st.sampled_from(LAYOUTS))
    if name != "NHD":
        layout = Layout.from_name(name)
        params = params.with_layout(layout, layout if config else None)
    is_open = name == "NHD" and draw(st.booleans())
    return Cache(params, draw(st.sampled_from(TABLES)), is_open)


def may_be_static(cache):
    config = cache.params.kvcache_quant_config
    return cache.params.dtype_shorthand.startswith("f8") if config is None else not config.zero_point_dtype


def may_be_powers(cache):
    config = cache.params.kvcache_quant_config
    scale = kvcache.dtypes.mlir_name(config.scale_dtype) if config else None
    return scale in ("f32", "bf16", "f8E8M0FNU") and not config.zero_point_dtype


@st.composite
def draw_combination(draw):
    is_mla = draw(st.booleans()) and draw(st.booleans())
    heads = 1 if is_mla else draw(st.integers(1, 3))
    head_size = draw(st.sampled_from(HEAD_SIZES))
    a, b = (draw(draw_cache(heads, head_size, is_mla)) for _ in "ab")
    count = draw(st.integers(1, heads))
    options = Options(
        power_of_two=may_be_powers(a) and draw(st.booleans()),
        static_a=may_be_static(a) and draw(st.booleans()),
        static_b=may_be_static(b) and draw(st.booleans()),
        slots=draw(st.sampled_from(("", "i32", "i64"))),
        ragged=draw(st.booleans()),
        heads=(draw(st.integers(0, heads - count)), draw(st.integers(0, heads - count)), count),
        block_threads=draw(BLOCK_THREADS),
        heads_per_thread=draw(HEADS_PER_THREAD),
    )
    sequences = draw(st.lists(ROWS, min_size=1, max_size=3))
    return a, b, options, sequences, draw(DENSE), draw(DENSE), draw(st.sampled_from(TARGETS))


class Run:
    """A combination with its memory: the bytes of both caches, and those expected."""

    def __init__(self, a, b, options, sequences, dense, out, target):
        self.rng = np.random.default_rng(len(sequences))
        self.a, self.b, self.options, self.sequences = a, b, options, sequences
        self.dense, self.out = (kvcache.dtypes.dtype(name) for name in (dense, out))
        self.program = kvcache.jit(write_module(a, b, dense, out, options), target=target)
        self.ends = [length + new for length, new in sequences]
        self.offsets = np.concatenate([[0], np.cumsum([new for _, new in sequences])]).astype(np.int32)
        self.sides = [self.make_side(cache) for cache in (a, b)]
        heads = a.params.n_kv_heads_per_device
        self.factors = self.rng.uniform(0.3, 3, (len(a.roles), heads)).astype(np.float32)

    def make_side(self, cache):
        """The table, the tensors, and their expected bytes."""
        used = max(-(-max(self.ends) // cache.params.page_size), 1)
        pages = len(self.ends) * used + 1
        table = self.rng.permutation(pages - 1).astype(np.uint32).reshape(-1, used)
        tensors = cache.make_memory(pages, self.rng)
        return table, tensors, [as_uint(tensor).copy() for tensor in tensors]

    def draw_rows(self, count, dtype=np.float32):
        shape = count, self.a.params.n_kv_heads_per_device, self.a.params.head_dim
        return (self.rng.standard_normal(shape) * 2).astype(dtype)

    def find_places(self, cache, table, b, tokens):
        return [(table[b, t // cache.params.page_size], t % cache.params.page_size) for t in tokens]

    def describe(self, side):
        """The first arguments of the functions."""
        cache, (table, tensors, _) = (self.a, self.b)[side], self.sides[side]
        lengths, news = np.array(self.sequences, np.uint32).T
        maxima = int(news.max()), int(lengths.max())
        return tensors[0], lengths.copy(), *cache.write_table(table), *maxima, *tensors[1:]

    def check(self, side):
        _, tensors, expected = self.sides[side]
        for tensor, wanted in zip(tensors, expected):
            np.testing.assert_array_equal(as_uint(tensor), wanted)

    def static(self, role, wanted):
        return self.factors[role] if wanted else None

    def store(self, side, role, places, encoded):
        """Stores the model's rows of elements, and of scales unless they are None."""
        cache, (_, _, expected) = (self.a, self.b)[side], self.sides[side]
        for i, place in enumerate(places):
            cache.put(expected, role, place, [part[i] for part in encoded if part is not None])

    def fill(self):
        """Fills all tokens with numbers, also skipped ones."""
        table, tensors, expected = self.sides[0]
        for b, end in enumerate(self.ends):
            places = self.find_places(self.a, table, b, range(end))
            for role in range(len(self.a.roles)):
                if places:
                    self.store(0, role, places, encode_rows(self.a.params, self.draw_rows(end)))
        for tensor, wanted in zip(tensors, expected):
            as_uint(tensor)[...] = wanted

    def append(self):
        table, total = self.sides[0][0], int(self.offsets[-1])
        rows = [self.draw_rows(total + 2, self.dense) for _ in self.a.roles]
        places = [
            place
            for b, (length, new) in enumerate(self.sequences)
            for place in self.find_places(self.a, table, b, range(length, length + new))
        ]
        slots = np.zeros(total + 2, self.options.slots.replace("i", "int") or "int32")
        kept = np.ones(total, bool)
        if self.options.slots:
            places = [places[i] for i in self.rng.permutation(total)]
            kept = self.rng.random(total) < 0.8
            size = self.a.params.page_size
            numbers = [page * size + offset for page, offset in places]
            slots[:total] = np.where(kept, np.array(numbers, np.int64), -1)
        self.program.call("append", *self.describe(0), LAYER, *rows, self.offsets, slots, *self.factors)
        used = [place for place, is_kept in zip(places, kept) if is_kept]
        for role, new in enumerate(rows):
            static = self.static(role, self.options.static_a)
            if used:
                values = new[:total][kept].astype(np.float32)
                encoded = encode_rows(self.a.params, values, self.options.power_of_two, static)
                self.store(0, role, used, encoded)
        self.check(0)

    def read(self, b, role, tokens):
        """Reads tokens of the first cache, as f32 and as stored."""
        table, tensors, _ = self.sides[0]
        stored = self.a.get(tensors, role, self.find_places(self.a, table, b, tokens))
        return decode_rows(self.a.params, *stored, self.static(role, self.options.static_a)), stored

    def gather(self):
        """Gathers to outputs with room for fewer or more tokens."""
        batch, heads, size = len(self.ends), self.a.params.n_kv_heads_per_device, self.a.params.head_dim
        room = [max(end + extra, 0) for end, extra in zip(self.ends, (1, -2, 4))]
        longest = max(self.ends) + 1
        offsets = np.concatenate([[0], np.cumsum(room)]).astype(np.int32)
        shape = (offsets[-1] + 2,) if self.options.ragged else (batch, longest)
        outs = [np.full((*shape, heads, size), 7, self.out) for _ in self.a.roles]
        self.program.call("gather", *self.describe(0), LAYER, *outs, self.offsets, offsets, *self.factors)
        for role, out in enumerate(outs):
            for b, end in enumerate(self.ends):
                got = out[offsets[b] : offsets[b + 1]] if self.options.ragged else out[b]
                shown = min(end, len(got))
                wanted, _ = self.read(b, role, range(shown))
                np.testing.assert_array_equal(as_uint(got[:shown]), as_uint(wanted.astype(self.out)))
                assert not as_uint(got[shown:]).any()
            if self.options.ragged:
                assert (out[offsets[-1] :] == 7).all()

    def copy(self):
        begin = np.array([min(1, end) for end in self.ends], np.int32)
        end = np.array(self.ends, np.int32)
        given = *self.describe(0), *self.describe(1), LAYER, begin, end, *self.factors
        self.program.call("copy", *given)
        first, second, count = self.options.heads
        _, _, expected = self.sides[1]
        for role in range(len(self.a.roles)):
            for b in range(len(self.ends)):
                tokens = range(begin[b], end[b])
                values, stored = self.read(b, role, tokens)
                if not len(tokens):
                    continue
                found = self.encode(role, values, stored)
                places = self.find_places(self.b, self.sides[1][0], b, tokens)
                for i, (page, offset) in enumerate(places):
                    for tensor, part in zip(expected, found):
                        tensor[page, role, LAYER, offset, second : second + count] = part[i]
        self.check(0)
        self.check(1)

    def copy_pages(self):
        """Copies all layers of pages, with their scales; pairs with a negative page are skipped."""
        _, tensors, expected = self.sides[0]
        pairs = self.rng.permutation(len(tensors[0]))
        pairs = pairs[: len(pairs) // 2 * 2].reshape(-1, 2).astype(np.int32)
        for tensor in expected:
            tensor[pairs[:, 1]] = tensor[pairs[:, 0]]
        skipped = np.stack([pairs[:, 1], np.full(len(pairs), -1, np.int32)], 1)
        pairs = np.concatenate([pairs, skipped, skipped[:, ::-1]])
        self.program.call("copy_pages", *self.describe(0), LAYER, pairs, *self.factors)
        self.check(0)

    def encode(self, role, values, stored):
        """Encodes the copied heads in the format of the other cache."""
        first, second, count = self.options.heads
        a, b = self.a.params, self.b.params
        is_one = (a.dtype, a.kvcache_quant_config) == (b.dtype, b.kvcache_quant_config)
        if is_one and not (self.options.static_a or self.options.static_b):
            return [as_uint(part[:, first : first + count]) for part in stored if part is not None]
        factors = self.static(role, self.options.static_b)
        factors = None if factors is None else factors[second : second + count]
        encoded = encode_rows(b, values[:, first : first + count], static=factors)
        return [part for part in encoded if part is not None]


@pytest.mark.long
@examples(COUNT)
@given(draw_combination())
def test_combinations(combination):
    event(combination[-1])
    run = Run(*combination)
    run.fill()
    run.append()
    run.gather()
    run.copy()
    run.copy_pages()
