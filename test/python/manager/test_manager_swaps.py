"""Tests of asynchronous swaps: pages in use meanwhile, and the state after failures."""

import kvcache
import numpy as np
import pytest
from delayed_memory import DelayedMemory
from kvcache.pages import pool
from manager_model import Configuration

TOKENS = [1, 2, 3, 4, 5]


def make(chance=0.0, memory=None, **options):
    configuration = Configuration(page_size=2, host_pages=4, **options)
    memory = DelayedMemory(0, chance) if memory is None else memory
    cache = kvcache.PagedKVCacheManager(
        configuration.params, max_batch_size=4, max_seq_len=16, num_pages=6, memory=memory
    )
    cache.claim("a", TOKENS)
    for i, page in enumerate(cache.inputs(["a"]).lut[0, :3]):
        write(cache, page, i + 1)
    cache.step(["a"])
    return cache, memory


def write(cache, page, value):
    for tensor in (*cache.blocks, *cache.scales):
        tensor[page].view(np.uint8)[...] = value


def read(cache, request="a"):
    """The contents of the pages of a sequence, and whether they are on the device."""
    (state,) = (s for s in cache.snapshot().sequences if s.request == request)
    values = []
    for address in state.pages:
        assert address.place is kvcache.Place.DEVICE
        (value,) = {
            int(v) for t in cache.blocks for v in np.unique(t[address.index].view("u1"))
        }
        values.append(value)
    return values


def poll_to_the_end(swap):
    for _ in range(1000):
        if swap.poll():
            return
    raise AssertionError("the swap does not end")


def test_pages_are_free_when_their_copies_have_ended():
    cache, memory = make()
    swap = cache.begin_swap_out("a")
    assert isinstance(memory, kvcache.AsyncMemory) and memory.under_way
    with pytest.raises(ValueError, match="request 'a' is swapped out: swap it in first"):
        cache.grow("a", [6])
    assert cache.num_free_pages == 3 and not cache.can_claim(range(10, 20))
    poll_to_the_end(swap)
    assert cache.num_free_pages == 6 and cache.stats.pages_to_host == 3
    cache.claim("b", range(10, 20))
    cache.release("b")
    back = cache.begin_swap_in("a")
    assert cache.num_free_pages == 3 and repr(back).startswith("<swap of 'a', 1 copies")
    assert not cache.snapshot().sequences[0].is_resident
    back.wait()
    assert read(cache) == [1, 2, 3] and not memory.under_way
    assert swap.poll() and back.poll()


def test_pages_that_others_have_found_stay():
    cache, _ = make()
    swap = cache.begin_swap_out("a")
    assert cache.claim("b", TOKENS) >= 4
    swap.wait()
    assert read(cache, "b")[:2] == [1, 2]
    assert cache.stats.pages_to_host == 1
    cache.swap_in("a")
    assert read(cache) == [1, 2, 3]


def test_a_manager_that_moves_them_is_found(monkeypatch):
    end_move = pool.PagePool.end_move
    monkeypatch.setattr(
        pool.PagePool,
        "end_move",
        lambda self, pages, place, indices, moves: end_move(
            self, pages, place, indices, lambda page: True
        ),
    )
    with pytest.raises(AssertionError):
        test_pages_that_others_have_found_stay()


@pytest.mark.parametrize("way", ["out", "in"])
def test_a_copy_that_fails_changes_nothing(way):
    cache, memory = make(chance=1.0 if way == "out" else 0.0)
    if way == "in":
        cache.swap_out("a")
        memory.chance = 1.0
    before, free = cache.snapshot(), cache.num_free_pages
    swap = getattr(cache, f"begin_swap_{way}")("a")
    with pytest.raises(OSError, match="out of order"):
        swap.wait()
    assert cache.snapshot() == before and cache.num_free_pages == free
    memory.chance = 0.0
    getattr(cache, f"begin_swap_{way}")("a").wait()
    if way == "out":
        cache.swap_in("a")
    assert read(cache) == [1, 2, 3]


def fail_at_the_second_tensor(way):
    cache, memory = make(devices=2)
    if way == "in":
        cache.swap_out("a")
    before, free = cache.snapshot(), cache.num_free_pages
    memory.fail_at = 1
    with pytest.raises(BaseException) as raised:
        getattr(cache, f"begin_swap_{way}")("a")
    assert raised.value is memory.raised
    assert not memory.under_way, "a copy goes on"
    assert cache.snapshot() == before and cache.num_free_pages == free


@pytest.mark.parametrize("way", ["out", "in"])
def test_copies_that_have_begun_are_waited_for_if_the_next_does_not_begin(way):
    fail_at_the_second_tensor(way)


def test_a_manager_that_does_not_wait_for_them_is_found(monkeypatch):
    monkeypatch.setattr(pool, "_drain", lambda copies: None)
    with pytest.raises(AssertionError, match="a copy goes on"):
        fail_at_the_second_tensor("out")


@pytest.mark.parametrize("way", ["out", "in"])
def test_sequences_may_be_released_during_a_swap(way):
    cache, _ = make()
    if way == "in":
        cache.swap_out("a")
    swap = getattr(cache, f"begin_swap_{way}")("a")
    cache.release("a")
    cache.claim("a", [7])
    assert cache.num_free_pages < 5, "the pages are taken until the copies end"
    swap.wait()
    assert cache.num_free_pages == 5 and cache.tokens("a").tolist() == [7]
    assert sum(page.references for page in cache.snapshot().pages) == 1


def test_a_sequence_has_one_swap_at_a_time():
    cache, _ = make()
    swap = cache.begin_swap_out("a")
    for again in cache.begin_swap_in, cache.swap_in:
        with pytest.raises(ValueError, match="request 'a' is being swapped: poll its swap"):
            again("a")
    swap.wait()
    cache.swap_in("a")


def test_without_asynchronous_copies_a_swap_has_ended_when_it_begins():
    cache, _ = make(memory=kvcache.NumPyMemory())
    swap = cache.begin_swap_out("a")
    assert swap.poll() and cache.num_free_pages == 6
    assert cache.begin_swap_in("a").poll() and read(cache) == [1, 2, 3]
