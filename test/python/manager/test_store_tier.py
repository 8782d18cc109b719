"""Tests of a store as a tier of managers, with faults at each of its calls."""

import asyncio
import itertools
import random
import warnings
from collections import Counter
from contextlib import nullcontext
from types import SimpleNamespace

import kvcache
import numpy as np
import pytest
from failing_memory import FailingMemory
from faulty_store import FaultyStore
from kvcache.pages.records import Records
from kvcache.pages.stores import Store, StoreCopy
from manager_model import Configuration
from store_machine import Machine, check_end, check_references


def test_pages_outlive_the_manager():
    values = {}
    assert isinstance(FaultyStore(values, 0), Store)
    first = Machine(FaultyStore(values, 0))
    assert first.serve(range(9)) == 0 and len(values) == 4
    assert first.manager.stats.pages_to_store == 4
    second = Machine(FaultyStore(values, 1))
    assert second.manager.match(range(9)) == 0
    assert second.serve(range(9)) == 8
    stats = second.manager.stats
    assert (stats.pages_from_store, stats.pages_to_store, stats.tokens_looked_up_in_store) == (4, 0, 8)
    assert second.serve([*range(6), 50, 51, 52]) == 6
    assert second.manager.stats.pages_to_store == 1


def test_tokens_of_a_partly_copied_page_count_once_for_the_store():
    values = {}
    Machine(FaultyStore(values, 0)).serve(range(9))
    machine = Machine(FaultyStore(values, 1))
    machine.manager.prefetch(range(9)).wait()
    counts = []
    for tokens, found in (([0, 1, 2, 50, 51], 3), (range(9), 8), (range(9), 8)):
        assert machine.serve(tokens) == found
        stats = machine.manager.stats
        counts.append((stats.tokens_looked_up_in_store, stats.tokens_found_in_store))
    assert counts == [(4, 2), (10, 8), (10, 8)]


def test_evicted_pages_come_back():
    machine = Machine(FaultyStore({}, 0))
    prompts = [[i] * 9 for i in range(6)]
    for prompt in prompts:
        assert machine.serve(prompt) == 0
    assert machine.manager.stats.pages_evicted
    for prompt in prompts:
        assert machine.serve(prompt) == 8


@pytest.mark.parametrize(
    "change",
    [
        {"name": "model@2"},
        {"configuration": Configuration(max_seq_len=64, format="bf16")},
        {"configuration": Configuration(max_seq_len=64, page_size=4)},
        {"configuration": Configuration(max_seq_len=64, devices=2)},
        {"configuration": Configuration(max_seq_len=64, is_mla=True)},
    ],
    ids=str,
)
def test_other_models_and_formats_share_nothing(change):
    values = {}
    Machine(FaultyStore(values, 0)).serve(range(9))
    assert Machine(FaultyStore(values, 0), **change).serve(range(9)) == 0


def test_salts_share_nothing():
    values = {}
    Machine(FaultyStore(values, 0)).serve(range(9), b"one")
    assert Machine(FaultyStore(values, 0)).serve(range(9)) == 0
    assert Machine(FaultyStore(values, 0)).serve(range(9), b"other") == 0
    assert Machine(FaultyStore(values, 0)).serve(range(9), b"one") == 8


@pytest.mark.parametrize("format", ["fp8", "nvfp4", "u16"])
def test_all_tensors_are_stored(format):
    configuration, values = Configuration(max_seq_len=64, format=format, devices=2), {}
    Machine(FaultyStore(values, 0), configuration).serve(range(9))
    assert Machine(FaultyStore(values, 0), configuration).serve(range(9)) == 8


@pytest.mark.parametrize("seed", range(30))
def test_faults_lose_no_page_and_show_no_wrong_one(seed):
    run_history(seed)


def run_history(seed):
    """Three processes with one store of which many calls fail."""
    draw, values = random.Random(seed), {}
    configuration = Configuration(max_seq_len=64, num_pages=draw.choice((10, 20)), host_pages=draw.choice((0, 6)))
    events = Counter()
    stores = [FaultyStore(values, seed + i, draw.choice((0, 0.05, 0.3)), draw.choice((20, 10**9))) for i in range(3)]
    machines = [Machine(store, configuration) for store in stores]
    prompts = [draw.choices(range(3), k=16) for _ in range(5)]
    prefetches = []
    for _ in range(60):
        number = draw.randrange(3)
        machine = machines[number]
        tokens = draw.choice(prompts)[: draw.randint(1, 16)]
        action = draw.choice(("serve", "serve", "serve", "prefetch", "poll", "restart", "vanish"))
        if action == "serve":
            events["found"] += machine.serve(tokens, flush=draw.random() < 0.5) > 0
        elif action == "prefetch" and len(prefetches) < 2 and machine.manager.num_free_pages > 8:
            prefetches.append((machine, machine.manager.prefetch(tokens)))
        elif action == "poll" and prefetches:
            events["prefetched"] += prefetches[0][1].poll()
        elif action == "restart" and not prefetches:
            events["pages from store"] += machine.manager.stats.pages_from_store
            events["pages to store"] += machine.manager.stats.pages_to_store
            machines[number] = Machine(stores[number], configuration)
        elif values:
            events["vanished"] += 1
            del values[draw.choice([*values])]
        prefetches = [(m, p) for m, p in prefetches if not p.poll()]
        for each in machines:
            check_references(each.manager)
    for machine, prefetch in prefetches:
        prefetch.wait()
        machine.serve(prompts[0])
    check_end(each.manager for each in machines)
    for store in stores:
        events.update(store.failed)
    return events


def test_histories_cover_all_events():
    events = sum((run_history(seed) for seed in range(20)), Counter())
    names = "found", "prefetched", "pages from store", "pages to store", "vanished", "find", "put", "get", "lie"
    assert set(events) == {*names}


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_failing_memory_leaves_the_manager_as_it_was(error):
    """Errors are as if the store lacked a page, and interrupts are raised."""
    values = {}
    Machine(FaultyStore(values, 0)).serve(range(9))
    memory = FailingMemory()
    memory.errors = itertools.repeat(error)
    machine = Machine(FaultyStore(values, 0), memory=memory)
    failures = 0
    for failure, found in memory.fail_in_turn(lambda: machine.manager.claim("r", range(9))):
        check_references(machine.manager)
        failures += failure is not None
        if failure:
            assert machine.manager.num_free_pages == machine.manager.num_pages
        assert ("r" in machine.manager) == (failure is None)
    assert bool(failures) == (error is KeyboardInterrupt)
    machine.finish(range(9), found)
    assert machine.serve(range(9)) == 8


def test_prefetch_works_while_others_run():
    values = {}
    Machine(FaultyStore(values, 0)).serve(range(13))
    machine = Machine(FaultyStore(values, 3))
    prefetch = machine.manager.prefetch(range(13))
    assert isinstance(prefetch, kvcache.Prefetch)
    polls = 0
    while not prefetch.poll():
        machine.serve([30 + polls], flush=False)
        polls += 1
    assert prefetch.poll() and machine.manager.match(range(13)) == 12
    assert machine.manager.prefetch(range(13)).poll()
    assert machine.manager.prefetch([]).poll() and machine.manager.prefetch([9, 9, 9]).poll()


def test_cancelled_prefetch_keeps_what_has_come():
    values = {}
    big = Configuration(num_pages=60, max_seq_len=64)
    Machine(FaultyStore(values, 0), big).serve(range(41))
    machine = Machine(FaultyStore(values, 3), big)
    with machine.manager.prefetch(range(41)) as prefetch:
        while machine.manager.stats.pages_to_store or not prefetch._copied:
            prefetch.poll()
    assert prefetch.poll() and machine.manager.num_free_pages == 60
    found = machine.manager.match(range(41))
    assert found == 2 * machine.manager.stats.pages_from_store == 32
    assert machine.serve(range(41)) == 40
    prefetch.cancel()


def test_more_pages_than_there_is_room_for_come_in_part():
    values = {}
    big = Machine(FaultyStore(values, 0), Configuration(num_pages=30, max_seq_len=64))
    big.serve(range(41))
    machine = Machine(FaultyStore(values, 0))
    machine.manager.claim("busy", range(50, 59))
    machine.manager.prefetch(range(41)).wait()
    assert machine.manager.stats.pages_from_store == machine.manager.num_free_pages == 3
    assert machine.manager.match(range(5)) == 4


def test_full_store_refuses_pages():
    values = {}
    machine = Machine(FaultyStore(values, 0, most=3))
    machine.serve(range(13))
    assert len(values) == machine.manager.stats.pages_to_store == 3
    assert Machine(FaultyStore(values, 0)).serve(range(13)) == 6


def test_refused_pages_are_offered_again_later(clock):
    values = {}
    store = FaultyStore(values, 0, most=3)
    machine = Machine(store)
    machine.manager.claim("kept", range(13))
    machine.manager.step(["kept"])
    machine.manager.flush()
    store.most = 100
    for seconds, count in ((30, 4), (31, 7)):  # in each step one token more
        clock[0] += seconds
        machine.manager.grow("kept", [1])
        machine.manager.step(["kept"])
        for _ in range(9):  # as above; 'flush' would offer all
            machine.manager._tier.writer.save()
        assert len(values) == machine.manager.stats.pages_to_store == count


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_flush_offers_refused_pages_once_more(monkeypatch, error):
    """A step's pages are refused, or an interrupt ends their call."""
    values = {}
    store = FaultyStore(values, 0, most=0)
    machine = Machine(store)
    machine.manager.claim("kept", range(13))

    def interrupt(*given):
        raise error

    with monkeypatch.context() as patch, pytest.raises(error) if error else nullcontext():
        if error:
            patch.setattr(FaultyStore, "begin_put", interrupt)
        machine.manager.step(["kept"])
    for _ in range(9):  # more than a copy's polls
        machine.manager._tier.writer.save()
    store.most = 100
    machine.manager.flush()
    assert len(values) == machine.manager.stats.pages_to_store == 6


def test_pages_that_could_not_be_read_are_offered_again_later(monkeypatch, clock):
    machine = Machine(FaultyStore({}, 0))
    machine.manager.claim("kept", range(9))
    with monkeypatch.context() as patch:
        patch.setattr(Records, "fill", raise_error)
        machine.manager.step(["kept"])
        machine.manager.flush()
    for seconds, count in ((30, 1), (31, 5)):  # the first step fills a page more
        clock[0] += seconds
        machine.manager.grow("kept", [1])
        machine.manager.step(["kept"])
        for _ in range(9):  # as above; 'flush' would offer all
            machine.manager._tier.writer.save()
        assert machine.manager.stats.pages_to_store == count


def test_any_number_of_pages_waits():
    params = kvcache.KVCacheParams("bf16", 1, 8, page_size=2, total_num_layers=1, enable_prefix_caching=True)
    values = {}
    manager = kvcache.PagedKVCacheManager(
        params, max_batch_size=1, max_seq_len=8000, num_pages=4000, store=FaultyStore(values, 0), store_name="model"
    )
    manager.claim("long", range(6001))
    manager.step(["long"])
    manager.flush()
    assert len(values) == manager.stats.pages_to_store == 3000


def test_publisher_sees_pages_of_the_store():
    class Listener:
        def __init__(self):
            self.pages = set()

        def begin(self, groups):
            pass

        def publish(self, changed):
            self.pages |= {page for page in changed if page.prefix}

    values, listener = {}, Listener()
    Machine(FaultyStore(values, 0)).serve(range(9))
    Machine(FaultyStore(values, 0), events=listener).manager.prefetch(range(9)).wait()
    assert len(listener.pages) == 4


class Copy:
    """A copy of a store of one's own."""

    def __init__(self, done, polls=(True,)):
        self.polls, self.done = itertools.cycle(polls), done

    def poll(self):
        return next(self.polls)

    def wait(self):
        pass


def raise_error(*given):
    raise OSError("down")


def raise_cancelled(*given):
    raise asyncio.CancelledError


class Raising(Copy):
    poll = raise_error


class Silent(Exception):
    """An error without a text, and an answer without one."""

    def __str__(self):
        raise self

    __repr__ = __str__


def raise_silent(*given):
    raise Silent


ANSWERS = [raise_error, raise_silent, raise_cancelled, lambda *_: np.array(True), lambda *_: Silent(), lambda keys, *_: None, lambda keys, *_: [True], lambda keys, *_: [1] * len(keys)]
WRONG = {
    **{f"find {i}": ("find", answer) for i, answer in enumerate(ANSWERS)},
    **{
        f"{name} {i}": (name, answer)
        for name in ("begin_put", "begin_get")
        for i, answer in enumerate(
            (
                raise_error,
                raise_cancelled,
                lambda keys, *_: None,
                lambda keys, *_: Copy([True]),
                lambda keys, *_: Copy([True] * (len(keys) + 1)),
                lambda keys, *_: Copy(None),
                lambda keys, *_: Copy(np.array(True)),
                lambda keys, *_: Copy(["yes"] * len(keys)),
                lambda keys, *_: Raising([True] * len(keys)),
                lambda keys, *_: Copy([True] * len(keys), [False]),  # never ends
            )
        )
    },
}


@pytest.mark.parametrize("fault", WRONG)
def test_store_that_breaks_its_rules_has_no_pages(monkeypatch, fault):
    values, (name, answer) = {}, WRONG[fault]
    Machine(FaultyStore(values, 0)).serve(range(9))
    store = FaultyStore(values, 0)
    machine = Machine(store)
    monkeypatch.setattr(store, name, answer)
    with pytest.warns(RuntimeWarning, match="its values count as missing"):
        found = machine.serve(range(9), flush=False)
        machine.serve(range(20, 29))
    assert found == (8 if name == "begin_put" else 0)
    check_end([machine.manager])
    assert not machine.manager._prefetches
    monkeypatch.undo()
    assert machine.serve(range(9)) == 8


def test_store_that_raises_is_harmless_where_warnings_are_errors(monkeypatch):
    monkeypatch.setattr(FaultyStore, "find", raise_error)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Machine(FaultyStore({}, 0)).serve(range(9)) == 0


def test_invalid_arguments_are_rejected():
    store = FaultyStore({}, 0)
    assert isinstance(store.begin_get([], []), StoreCopy)
    with pytest.raises(TypeError, match="'store' to be a Store, got 3"):
        Machine(3)
    with pytest.raises(TypeError, match=r"to be a Store, got .* without 'begin_get', 'begin_put', 'remove'$"):
        Machine(SimpleNamespace(find=store.find, close=store.close))
    with pytest.raises(TypeError, match="'store' to be a Store, got <class '.*FaultyStore'>$"):
        Machine(FaultyStore)
    with pytest.raises(ValueError, match="'store' needs 'store_name'"):
        Machine(store, name="")
    with pytest.raises(TypeError, match="'store_name' to be a string, got 3"):
        Machine(store, name=3)
    with pytest.raises(ValueError, match="'store' needs 'enable_prefix_caching'"):
        Machine(store, Configuration(prefix_caching=False))
    with pytest.raises(ValueError, match="'prefetch' needs a manager with 'store'"):
        Machine(None).manager.prefetch([1, 2])
    machine = Machine(store)
    with pytest.raises(ValueError, match="max_seq_len"):
        machine.manager.prefetch(range(100))
    with pytest.raises(TypeError, match="'salt' to be bytes"):
        machine.manager.prefetch([1], salt="x")
