"""Tests of groups of layers in one pool: parameters, histories, and wrong managers."""

from collections import Counter

import kvcache
import numpy as np
import pytest
from group_histories import GroupHistory, run_one
from group_model import KINDS, Groups, draw_groups
from hypothesis import given
from hypothesis import strategies as st
from kvcache import KVCacheParams, MultiKVCacheParams, reach
from kvcache.cache.reach import Reach
from kvcache.pages.exchange import PageExchange
from kvcache.pages.files import PageFile
from kvcache.pages import growth, matches
from kvcache.pages.growth import Growth
from kvcache.pages.pool import PagePool
from kvcache.pages.caching import PageCaching
from kvcache.pages.swaps import Swap
from kvcache.pages.group_tables import GroupTable
from kvcache.pages.tables import CachedSequence
from programs import examples


def group(kind=reach.full, layers=(0,), page_size=4, **fields):
    options = {"dtype": "f32", "n_kv_heads": 2, "head_dim": 4, "page_size": page_size}
    return KVCacheParams(**options | fields, reach=kind, layer_ids=layers)


def make(*groups, num_pages=8, **options):
    params = MultiKVCacheParams(groups, **options)
    return kvcache.PagedKVCacheManager(
        params, max_batch_size=4, max_seq_len=64, num_pages=num_pages
    )


# --- Parameters -------------------------------------------------------------------


def test_a_page_has_room_for_a_page_of_any_group():
    params = MultiKVCacheParams(
        [
            group(layers=(0, 5), page_size=4),
            group(reach.window(9), (1, 2, 3), page_size=2),
            group(reach.state, (4,), page_size=8, head_dim=300),
        ],
        shared={6: 5, 7: 1},
    )
    # 64 bytes for a token and layer: pages of 512 and 384, and a state of 4800.
    assert params.bytes_per_page == 4 * 1536
    full, window, state = params.groups
    assert full.split * full.params.bytes_per_block == params.bytes_per_page
    assert window.split * window.params.bytes_per_block == params.bytes_per_page
    assert (full.border, window.border) == (4 * full.split, 2 * window.split)
    assert (state.split, state.border, state.params.page_size) == (1, 8, 1)
    assert state.params.bytes_per_block <= params.bytes_per_page
    assert [params.locate(layer) for layer in range(8)] == [
        *((0, 0), (1, 0), (1, 1), (1, 2), (2, 0), (0, 1), (0, 1), (1, 0))
    ]
    with pytest.raises(ValueError, match="no group has layer 8"):
        params.locate(8)


QUANTIZED = kvcache.KVCacheQuantizationConfig("f32", 4)


@pytest.mark.parametrize(
    "groups, options, message",
    [
        ([], {}, "at least one group"),
        ([group(), group()], {}, "layer 0 is in several groups"),
        (
            [group(), KVCacheParams("f32", 2, 4, page_size=4, total_num_layers=1)],
            {},
            "1 needs",
        ),
        ([group(), group(layers=(1,), n_devices=2)], {}, "'n_devices' to be equal"),
        (
            [group(), group(layers=(1,), enable_prefix_caching=True)],
            {},
            "'enable_prefix_caching' to be equal",
        ),
        ([group()], {"shared": {0: 0}}, "layer 0 has a cache of its own"),
        ([group()], {"shared": {1: 2}}, "shares the cache of layer 2, which has none"),
        (
            [group(layout=kvcache.Layout.from_name("LBHNC"), layers=(0, 1))],
            {},
            "begin with pages, but group 0 has layer",
        ),
    ],
)
def test_groups_that_do_not_fit_together(groups, options, message):
    with pytest.raises(ValueError, match=message):
        MultiKVCacheParams(groups, **options)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: reach.window(0), ValueError, "'tokens' to be positive"),
        (lambda: reach.window(4, sinks=-1), ValueError, "'sinks' not to be negative"),
        (lambda: reach.chunk(2.5), TypeError, "'tokens' to be an integer"),
        (lambda: group("full"), TypeError, "'reach' to be a Reach"),
        (lambda: group(layers=(1, 1)), ValueError, "different layers"),
        (lambda: group(layers=(1,), total_num_layers=2), ValueError, "to be 1"),
    ],
)
def test_invalid_reaches_and_layers_are_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


# --- Tables and tensors -----------------------------------------------------------


def test_a_page_of_the_pool_is_several_pages_of_kernels():
    cache = make(group(layers=(0,)), group(reach.window(64), (1, 2), page_size=4))
    assert [g.split for g in cache.params.groups] == [2, 1]
    cache.claim("a", range(12))
    full, window = cache.inputs(["a"]).groups
    # The first page of the pool is 0.
    assert full.lut[0, :5].tolist() == [0, 1, 2, 3, 16]
    assert window.lut[0, :5].tolist() == [2, 3, 4, 8, 8]
    assert full.blocks[0].shape == (18, 2, 1, 4, 2, 4)
    assert window.blocks[0].shape == (9, 2, 2, 4, 2, 4)
    assert all(inputs.blocks[0].flags.c_contiguous for inputs in (full, window))
    assert np.shares_memory(full.blocks[0][2:4], window.blocks[0][1])


def test_a_window_gives_its_pages_to_the_group_that_reaches_all():
    cache = make(group(), group(reach.window(4), (1,)), num_pages=10)
    cache.claim("a", [])
    for token in range(32):
        cache.grow("a", [token])
        cache.step(["a"])
    assert cache.num_free_pages == 10 - 8 - 1
    with pytest.raises(
        ValueError, match="can't be truncated to 20 tokens: pages that group 1"
    ):
        cache.truncate("a", 20)
    cache.truncate("a", 0)
    assert cache.num_free_pages == 10


def test_state_with_pending_tokens_rejects_truncation():
    cache = make(group(reach.state))
    cache.claim("a", [1, 2])
    cache.step(["a"])
    cache.grow("a", [3, 4])
    cache.truncate("a", 2)
    cache.grow("a", [3, 4])
    cache.inputs(["a"])
    with pytest.raises(ValueError, match="its state already includes later tokens"):
        cache.truncate("a", 2)
    cache.step(["a"])
    assert cache.num_free_pages == 7


def test_state_takes_its_own_bytes():
    params = group(reach.state, page_size=16)
    cache = kvcache.PagedKVCacheManager(
        params, max_batch_size=1, max_seq_len=64, cache_bytes=11 * params.bytes_per_block
    )
    assert params.bytes_per_block == cache.blocks[0][0].nbytes == 2 * 2 * 4 * 4
    assert cache.num_pages == 10 and cache.blocks[0].shape == (11, 2, 1, 1, 2, 4)


def test_a_snapshot_serves_a_prefix_at_its_border_only():
    options = {"enable_prefix_caching": True}
    cache = make(group(**options), group(reach.state, (1,), **options))
    cache.claim("a", range(8))
    cache.step(["a"])  # a snapshot after 8 tokens, none after 4
    assert cache.match(range(12)) == 8
    assert cache.match([*range(7), 99, 100]) == 0


@pytest.mark.parametrize("has_room", [True, False])
def test_a_prefix_without_reached_pages_keeps_its_place_while_others_make_room(has_room):
    """After a chunk, its tokens are not reached: the next ones may take all its pages."""
    cache = make(group(reach.chunk(8), enable_prefix_caching=True), num_pages=2)
    cache.claim("a", range(8))
    cache.step(["a"])
    cache.release("a")
    if has_room:
        assert cache.claim("b", range(13)) == 8
        cache.step(["b"])
    else:
        with pytest.raises(kvcache.OutOfPagesError):
            cache.claim("b", range(17))
        assert cache.claim("b", range(3)) == 0
    cache.release("b")
    cache.reset_prefix_cache()
    assert cache.num_free_pages == 2 and not cache.snapshot().pages


@pytest.mark.parametrize("kind", [reach.window(1), reach.chunk(4)], ids=str)
def test_gone_tokens_that_no_token_reaches_are_ignored(kind):
    cache = make(group(kind))
    cache.claim("a", range(12))
    cache.step(["a"])
    with pytest.raises(ValueError, match="can't be truncated"):
        cache.truncate("a", 7)
    cache.truncate("a", 4)
    for length in (8, 12):
        cache.grow("a", range(length - 4, length))
        assert cache.num_free_pages == 7
        cache.step(["a"])
        assert cache.num_free_pages == 8


# --- Histories --------------------------------------------------------------------


@pytest.mark.long
@given(seed=st.integers(0, 2**32))
@examples(20)
def test_histories(seed):
    GroupHistory(seed, draw_groups(seed), has_failures=seed % 3 == 0).run(120)


@pytest.mark.slow
def test_long_histories():
    for seed in range(3):
        run_one(seed, draw_groups(seed))


def run_some():
    events = Counter()
    for seed, kinds in enumerate(KINDS[:-1] * 4):
        host_pages = (0, 3)[seed % 2]
        groups = Groups(
            kinds, num_pages=(24, 10)[seed // 20], host_pages=host_pages,
            disk_pages=host_pages and seed % 3 * 6,
        )  # fmt: skip
        events += GroupHistory(seed, groups, has_failures=seed % 5 == 4).run(150)
    for seed, kinds in enumerate(KINDS[:4]):
        history = GroupHistory(seed, Groups(kinds, num_pages=14, host_pages=14), True)
        events += history.run(400, history.SWAPS)
    return events


@pytest.mark.long
def test_histories_cover_all_events():
    events = run_some()
    changes = "claim", "grow", "grow_batch", "swap_out", "swap_in"
    assert set(events) >= {
        *(f"{name} failed in the memory" for name in (*changes, "inputs")),
        *(f"{name} out of pages" for name in changes),
        *changes,
        *(f"begin_swap_{way} failed in the memory" for way in ("out", "in")),
        *(
            f"swaps to the {end} {how}"
            for end in ("host", "device")
            for how in ("done", "failed")
        ),
        *("swaps of released sequences", "begin_swap_out out of pages"),
        *("step", "fork", "commit", "truncate", "release", "inputs", "asked"),
        *("truncated within", "not truncated", "pages freed before windows"),
        *(
            "prefixes found",
            "longest prefixes found",
            "pages sent",
            "pages found by the peer",
        ),
    }


# --- Wrong managers ---------------------------------------------------------------


def nothing(function):
    return lambda *arguments, **options: None


def keep_first(function):
    return lambda self, length: min(function(self, length) + 1, length)


def forget_sinks(function):
    def changed(self, *arguments):
        sinks, self._sinks = self._sinks, 0
        try:
            return function(self, *arguments)
        finally:
            self._sinks = sinks

    return changed


def miss_nothing(function):
    return lambda *arguments: 0


def miss_one(function):
    return lambda *arguments: 1


def without_group(function):
    def changed(group, *arguments):
        return function(group, *arguments) if group.number else 0

    return changed


def without_copy(function):
    return lambda self, page: False


def always_true(function):
    return lambda *arguments, **options: None


def cache_unsent(function):
    def changed(self, reception, is_filled):
        free_unreached = self._growth.free_unreached
        self._growth.free_unreached = lambda *arguments: None
        try:
            return function(self, reception, is_filled)
        finally:
            self._growth.free_unreached = free_unreached

    return changed


def reverse_copies(function):
    def changed(plans, spare):
        return [dict(reversed(copies.items())) for copies in function(plans, spare)]

    return changed


def mix_groups(function):
    def changed(self, rows, total):
        table = function(self, rows, total)
        return table[:, ::-1] if self.number else table

    return changed


def find_last_of_all(function):
    def changed(self, place, kept, moving=None):
        for page in self._cached[place]:
            if page.prefix and page not in kept and not page.prefix.has_children():
                return page
        return None

    return changed


def remove_all(function):
    def changed(self, page):
        for forgotten in list(page.prefix.remove()) if page.prefix else ():
            self._settle(forgotten)
        return 0

    return changed


def free_at_once(function):
    """Frees the addresses of a swap before its copies have ended."""

    def begin(self, pages, place, kept=()):
        indices, copies = function(self, pages, place, kept)
        for index in indices:
            self._free[place].add(index)
        return indices, copies

    return begin


def move_at_once(function):
    """Moves pages to their new addresses when the copies have only begun."""

    def begin(self, pages, place, kept=()):
        indices, copies = function(self, pages, place, kept)
        self._readdress(pages, place, indices)
        return [page.index for page in pages], copies

    return begin


def keep_addresses(function):
    """Loses the pages of a move that is undone."""

    def changed(self, pages, place, indices, moves):
        for page, index in zip(pages, indices, strict=True):
            if moves(page):
                self._readdress([page], place, [index])

    return changed


def swallow_errors(function):
    def poll(self):
        try:
            return function(self)
        except OSError:
            return True

    return poll


def write_elsewhere(function):
    return lambda self, page, start, values: function(self, 0, start, values)


FAULTS = {
    "writes pages over others in the file": (PageFile, "write", write_elsewhere),
    "frees a page too many": (Reach, "first", keep_first),
    "frees nothing before a window": (Growth, "_free_all_unreached", nothing),
    "frees sinks": (GroupTable, "free_unreached", forget_sinks),
    "takes each prefix for one of all groups": (matches, "_count_reached", miss_nothing),
    "finds no prefix": (matches, "_count_reached", miss_one),
    "asks all groups but the first": (matches, "_count_reached", without_group),
    "writes to shared states": (Growth, "_is_copied", without_copy),
    "caches nothing": (PageCaching, "_cache", nothing),
    "cuts whatever it is given": (CachedSequence, "find_obstacle", always_true),
    "caches what was not sent": (PageExchange, "_end_reception", cache_unsent),
    "gives copies to others": (growth, "choose_copies", reverse_copies),
    "reads tables backwards": (GroupTable, "gather", mix_groups),
    "drops pages that are being moved": (PagePool, "_find_last", find_last_of_all),
    "forgets all after a page of a window": (PagePool, "forget", remove_all),
    "writes over pages that are being moved": (PagePool, "begin_move", free_at_once),
    "shows pages before they are there": (PagePool, "begin_move", move_at_once),
    "loses the room of failed swaps": (PagePool, "end_move", keep_addresses),
    "takes failed swaps for done": (Swap, "poll", swallow_errors),
}


FOUND = AssertionError, IndexError, TypeError, AttributeError, pytest.fail.Exception


@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_managers_are_found(monkeypatch, fault):
    owner, name, change = FAULTS[fault]
    monkeypatch.setattr(owner, name, change(getattr(owner, name)))
    with pytest.raises(FOUND):
        run_some()
