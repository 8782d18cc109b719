"""Tests of transfers between caches that differ in dtype, layout, page size, or devices."""

import dataclasses
import re

import kvcache
import ml_dtypes
import numpy as np
import pytest
from kvcache import transfer
from kvcache.pages.leases import Lease
from kvcache.pages.group_tables import GroupTable
from kvcache.pages.tables import CachedSequence
from kvcache.transfer import staging
from transfers import local

TOKENS = [*range(50, 61)]
HEADS, LAYERS, SIZE = 4, 2, 16
QUANTIZED = kvcache.KVCacheQuantizationConfig("f32", 8)
BASE = kvcache.KVCacheParams(
    "f32", n_kv_heads=HEADS, head_dim=SIZE, page_size=4, total_num_layers=LAYERS
)
HND = kvcache.Layout.from_name("HND")
ENDS = {
    "dtypes": ({"dtype": "bf16"}, {}),
    "page sizes": ({}, {"page_size": 3}),
    "larger pages": ({"page_size": 2}, {"page_size": 8}),
    "layouts": ({"layout": HND}, {}),
    "layers outside of pages": ({}, {"layout": kvcache.Layout.from_name("LBHNC")}),
    "more devices": ({}, {"n_devices": 4}),
    "fewer devices": ({"n_devices": 4}, {"n_devices": 2}),
    "devices with the same heads": ({"n_devices": 8}, {}),
    "devices that begin to share heads": ({}, {"n_devices": 8}),
    "scales": ({"dtype": "f8E4M3FN", "kvcache_quant_config": QUANTIZED}, {}),
    "all": (
        {"dtype": "f8E4M3FN", "kvcache_quant_config": QUANTIZED, "n_devices": 2, "page_size": 8},
        {"dtype": "bf16", "layout": HND, "n_devices": 4, "page_size": 3},
    ),
    "one latent row": (
        {"is_mla": True, "n_kv_heads": 1, "dtype": "bf16", "page_size": 8},
        {"is_mla": True, "n_kv_heads": 1},
    ),
}  # fmt: skip


def make(fields, num_pages=12, seed=0, **more):
    params = dataclasses.replace(BASE, **fields, **more)
    cache = kvcache.PagedKVCacheManager(
        params, max_batch_size=4, max_seq_len=64, num_pages=num_pages
    )
    for tensors in (cache.blocks, cache.scales):
        for device, tensor in enumerate(tensors):
            first = device * params.n_kv_heads // params.n_devices
            for head in range(tensor.shape[4]):
                # Values exact in bf16 and fp8, equal on each device with the head.
                values = tensor[:, :, :, :, head]
                draw = np.random.default_rng((seed, first + head))
                drawn = draw.integers(1, 9, values.shape)
                values[...] = drawn.astype(np.float32)
    return cache


def read(cache, request):
    """The values of a sequence: [roles, layers, tokens, heads of the model, elements]."""
    params = cache.params
    states = {state.request: state for state in cache.snapshot().sequences}
    pages = [page.index for page in states[request].pages]
    count, per_device = states[request].length, params.n_kv_heads_per_device
    heads = {}
    for device, blocks in enumerate(cache.blocks):
        values = np.asarray(blocks[pages], np.float32)
        if cache.scales:
            scales = np.asarray(cache.scales[device][pages], np.float32)
            values = values * scales.repeat(QUANTIZED.quantization_granularity, -1)
        # [roles, layers, pages, tokens of a page, heads, elements]
        values = values.transpose(1, 2, 0, 3, 4, 5)
        values = values.reshape(*values.shape[:2], -1, *values.shape[4:])[:, :, :count]
        first = device * params.n_kv_heads // params.n_devices
        for head in range(per_device):
            known = heads.setdefault(first + head, values[..., head, :])
            assert np.array_equal(known, values[..., head, :]), "devices disagree"
    return np.stack([heads[head] for head in sorted(heads)], 3)


def begin(source, target, tokens=TOKENS, **options):
    source.claim("gap", range(5))
    source.claim("r", tokens)
    source.step(["r"])
    lease = source.export("r", seconds=60)
    here, there = local(), local()
    message = transfer.offer(source, lease, here)
    moved = transfer.fetch(target, message, there, request="r", **options)
    while not moved.poll():
        pass
    return moved, lease, (here, there)


@pytest.mark.parametrize("ends", ENDS)
def test_values_are_converted_to_another_format(ends):
    fields = ENDS[ends]
    source, target = make(fields[0]), make(fields[1], seed=1)
    target.claim("other", range(7))
    target.step(["other"])
    before = read(target, "other")
    moved, lease, _ = begin(source, target)
    assert "r" not in target
    moved.finish(lease.end())
    expected, found = read(source, "r"), read(target, "r")
    if source.scales and target.params.dtype_shorthand == "bf16":
        expected = expected.astype(ml_dtypes.bfloat16).astype(np.float32)
    assert found.shape == expected.shape and np.array_equal(found, expected)
    assert target.tokens("r").tolist() == TOKENS
    assert np.array_equal(read(target, "other"), before)


def test_cached_pages_of_another_format_are_not_read():
    cached = {"enable_prefix_caching": True}
    source, target = make({"page_size": 3}), make({"page_size": 2}, **cached)
    target.claim("first", TOKENS[:8])
    target.step(["first"])
    held = read(target, "first")
    moved, lease, _ = begin(source, target)
    assert moved.reception.found == 8
    assert moved.bytes == 2 * source.params.bytes_per_block  # tokens 6 to 10
    moved.finish(lease.end())
    found = read(target, "r")
    assert np.array_equal(found[:, :, :8], held)
    assert np.array_equal(found[:, :, 8:], read(source, "r")[:, :, 8:])


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"n_kv_heads": 2}, "its 'n_kv_heads' is 4, and 2 here"),
        ({"head_dim": 32}, "its 'head_dim' is 16, and 32 here"),
        ({"total_num_layers": 3}, r"its layers are \[0, 1\], and \[0, 1, 2\] here"),
    ],
)
def test_other_models_are_refused(fields, message):
    target = make(fields)
    with pytest.raises(transfer.TransferRefused, match=message):
        begin(make({}), target)
    assert target.num_free_pages == 12


@pytest.mark.parametrize(("size", "message"), [
    (2**16, "expects tensors of"),
    (2**16 + 1, "its pages have 65537 tokens, more than 65536"),
])  # fmt: skip
def test_pages_larger_than_a_cache_s_are_refused(size, message):
    """Memory for them would be allocated before a byte arrives."""
    source, target = make({}), make({})
    there = transfer.LocalTransport("there")
    source.claim("r", TOKENS)
    source.inputs(["r"])
    source.step(["r"])
    sent = transfer.offer(source, source.export("r", seconds=9), there)
    offer = transfer.Offer.from_bytes(sent)
    pages = re.sub("page_size = \\d+", f"page_size = {size}", offer.type)
    region = dataclasses.replace(offer.regions[0], fingerprint="other")
    forged = offer._replace(type=pages, pages=offer.pages[:1], regions=(region,))
    with pytest.raises(transfer.TransferRefused, match=message):
        transfer.fetch(target, forged.to_bytes(), transfer.LocalTransport("here"), request="r")
    assert target.num_free_pages == 12


WINDOW = kvcache.reach.window(4, sinks=2)


def test_conversion_skips_tokens_that_no_token_reaches():
    """Tokens 0, 1 and those from 8 on of 11 are reached, in pages of 3."""
    source, target = make({"page_size": 3, "reach": WINDOW}), make({"reach": WINDOW})
    moved, lease, _ = begin(source, target)
    assert moved.bytes == 3 * source.params.bytes_per_block
    moved.finish(lease.end())
    assert target.num_free_pages == 12 - 2 and source.num_free_pages == 12 - 3 - 2
    found, expected = (read_reached(each) for each in (target, source))
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("length", [11, 12, 13])
def test_conversion_skips_pages_that_no_token_reaches(length):
    ends = {"reach": kvcache.reach.window(1)}
    source, target = make({**ends, "page_size": 3, "dtype": "bf16"}), make(ends)
    moved, lease, _ = begin(source, target, tokens=range(length))
    assert moved.bytes == (length != 12) * source.params.bytes_per_block
    moved.finish(lease.end())
    assert target.tokens("r").tolist() == list(range(length))
    assert target.num_free_pages == 12 - (length != 12)


def read_reached(cache):
    """The values of tokens 0, 1 and 8 to 10 of a sequence with a window."""
    (state,) = (s for s in cache.snapshot().sequences if s.request == "r")
    pages = np.array([page.index if page else -1 for page in state.groups[0]])
    tokens = np.array([0, 1, 8, 9, 10])
    size = cache.params.page_size
    assert (pages[tokens // size] >= 0).all()
    return cache.blocks[0][pages[tokens // size], :, :, tokens % size]


GAP = {"reach": kvcache.reach.window(4), "enable_prefix_caching": True}


def test_tokens_before_transferred_ones_stay_unreached():
    """The last three of 13 tokens are sent, to a page that lacks two tokens."""
    tokens = range(13)
    source = make({**GAP, "page_size": 1}, num_pages=30)
    target = make({**GAP, "page_size": 8})
    moved, lease, ends = begin(source, target, tokens)
    moved.finish(lease.end())
    target.fork("r", "fork")
    caches = [(target, "r"), (target, "fork")]
    for fields in ({"page_size": 8}, {"page_size": 8, "dtype": "bf16"}):
        there = make({**GAP, **fields})
        with target.export("fork", seconds=60) as lease:
            message = transfer.offer(target, lease, ends[1])
            moved = transfer.fetch(there, message, local(), request="r")
            while not moved.poll():
                pass
            moved.finish(lease.end())
        caches.append((there, "r"))
    for cache, request in caches:
        with pytest.raises(ValueError, match="tokens that group 0 reaches from there"):
            cache.truncate(request, 12)
        cache.grow(request, range(13, 18))
        cache.inputs([request])
        cache.step([request])
        assert cache.match(range(18)) == 0
        cache.release(request)
        assert not [page for page in cache.snapshot().pages if page.is_cached]


def test_pages_that_only_this_end_reaches_are_missed():
    target = make({"page_size": 3})
    with pytest.raises(transfer.TransferRefused, match="lacks pages that later tokens"):
        begin(make({"reach": WINDOW}), target)
    assert target.num_free_pages == 12


def make_groups(*fields):
    groups = [dataclasses.replace(BASE, total_num_layers=None, **each) for each in fields]
    return kvcache.PagedKVCacheManager(
        kvcache.MultiKVCacheParams(groups), max_batch_size=4, max_seq_len=64, num_pages=12
    )


FULL, WINDOWED = {"layer_ids": [0]}, {"layer_ids": [1], "reach": WINDOW}


@pytest.mark.parametrize(
    "other, message",
    [
        (
            [FULL, WINDOWED | {"page_size": 8}],
            "its group 0 has pages in one 1, and pages in one 2 here",
        ),
        (
            [FULL, WINDOWED | {"dtype": "bf16"}],
            "its group 1 has type .*f32.*, storage float32.*, and type .*bf16.* here",
        ),
        (
            [FULL, WINDOWED | {"reach": kvcache.reach.chunk(4)}],
            r"its group 1 has reach kvcache.reach.window\(4, sinks=2\), and reach "
            r"kvcache.reach.chunk\(4\) here",
        ),
        ([FULL], "it has 2 of them, and 1 here"),
    ],
)
def test_pages_of_several_groups_are_not_converted(other, message):
    target = make_groups(*other)
    with pytest.raises(transfer.TransferRefused, match=message) as error:
        begin(make_groups(FULL, WINDOWED), target)
    assert "pages of several groups of layers are not converted" in str(error.value)
    assert target.num_free_pages == 12


LATENT = {"is_mla": True, "n_kv_heads": 1, "head_dim": 48}
INDEX = LATENT | {"head_dim": 16, "dtype": "f8E4M3FN", "kvcache_quant_config": QUANTIZED, "layer_ids": [2, 3]}


def read_groups(cache, request):
    """The elements and the scales of a sequence in each group."""
    cache.grow(request, [0])
    tensors = []
    for number, group in enumerate(cache.inputs([request]).groups):
        tokens, page_size = np.arange(len(TOKENS)), cache.params.groups[number].params.page_size
        pages = np.asarray(group.lut)[0, tokens // page_size]
        tensors += [tensor[pages, :, :, tokens % page_size] for tensor in (*group.blocks, *group.scales)]
    return tensors


def test_index_keys_move_with_latent_rows():
    """They are groups of one pool, with pages of other sizes."""
    source, target = (make_groups(LATENT | {"layer_ids": [0, 1]}, INDEX) for _ in range(2))
    for tensor in (*source.blocks, *source.scales):
        bytes_ = tensor.view(np.uint8)
        bytes_[...] = np.random.default_rng(0).integers(0, 100, bytes_.shape)
    target.claim("other", range(7))
    target.step(["other"])
    moved, lease, _ = begin(source, target)
    moved.finish(lease.end())
    expected, found = read_groups(source, "r"), read_groups(target, "r")
    assert len(expected) == 3 and source.params.groups[0].split != source.params.groups[1].split
    for one, other in zip(expected, found, strict=True):
        assert one.any() and one.tobytes() == other.tobytes()


def test_format_includes_the_layers():
    """Two layers from 0 on are not layers 0 and 2."""
    target = make({"layer_ids": [0, 2]})
    with pytest.raises(
        transfer.TransferRefused, match=r"layers are \[0, 1\], and \[0, 2\]"
    ):
        begin(make({}), target)


def test_failed_conversion_frees_the_pages(monkeypatch):
    target = make({"page_size": 2})
    moved, lease, _ = begin(make({}), target)

    def fail(self):
        raise MemoryError("no room")

    monkeypatch.setattr(staging.Staging, "convert", fail)
    with pytest.raises(transfer.TransferFailed, match="request 'r' of peer.*no room"):
        moved.finish(lease.end())
    assert target.num_free_pages == 12 and "r" not in target


# --- Wrong stagings -------------------------------------------------------------------


def do_nothing(convert):
    return lambda self: None


def number_from_zero(choose):
    def changed(self, *arguments):
        numbers = choose(self, *arguments)
        return numbers - numbers[0]

    return changed


def choose_all(choose):
    """Also converts cached pages, and tokens that no token reaches."""
    return lambda self, offer, reach: np.arange(len(offer.pages))


def reverse(describe):
    return lambda self: describe(self)[::-1]


def first_program(compile_programs):
    return lambda self: compile_programs(self)[:1]


def heads_from_zero(list_heads):
    return lambda params, device: range(params.n_kv_heads_per_device)


def without_last_token(init):
    def changed(self, *arguments):
        init(self, *arguments)
        self._total -= 1

    return changed


def say_no(function):
    return lambda *arguments: False


def without_gaps(init):
    def changed(self, *arguments):
        init(self, *arguments)
        self.gone = ()

    return changed


def take_without_gaps(take):
    def changed(self, other):
        take(self, other)
        for group in self.table.groups:
            group.gone[self.row] = 0

    return changed


def overlook_gaps(find_obstacle):
    def changed(self, length, **options):
        obstacle = find_obstacle(self, length, **options)
        return obstacle if obstacle and obstacle.startswith("pages") else None

    return changed


def turn_tables(make_table):
    return lambda numbers, pages, null_page: make_table(numbers, pages[::-1], null_page)


FAULTS = {
    "converts nothing": (staging.Staging, "convert", do_nothing),
    "reads the first pages for later ones": (staging.Staging, "_choose_pages", number_from_zero),
    "reads all pages": (staging.Staging, "_choose_pages", choose_all),
    "mixes up the staged pages": (staging.Staging, "describe", reverse),
    "converts for one pair of devices": (staging.Staging, "_compile", first_program),
    "takes each device for the first": (staging, "_list_heads", heads_from_zero),
    "leaves the last token out": (staging.Staging, "__init__", without_last_token),
    "turns the tables round": (staging, "_make_table", turn_tables),
    "caches pages with gaps": (GroupTable, "has_gap", say_no),
    "lends gaps as tokens": (Lease, "__init__", without_gaps),
    "forgets the gaps of a fork": (CachedSequence, "take", take_without_gaps),
    "truncates into gaps": (CachedSequence, "find_obstacle", overlook_gaps),
}  # fmt: skip


def run_some():
    for ends in ("larger pages", "more devices", "fewer devices"):
        test_values_are_converted_to_another_format(ends)
    test_cached_pages_of_another_format_are_not_read()
    test_conversion_skips_tokens_that_no_token_reaches()
    test_tokens_before_transferred_ones_stay_unreached()


@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_stagings_are_found(monkeypatch, fault):
    owner, name, change = FAULTS[fault]
    monkeypatch.setattr(owner, name, change(getattr(owner, name)))
    with pytest.raises((AssertionError, pytest.fail.Exception, transfer.TransferError)):
        run_some()
