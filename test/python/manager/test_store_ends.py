"""Tests of managers whose store never ends a copy, and of interrupts of what they write."""

import itertools
import threading

import pytest
from faulty_store import FaultyStore
from kvcache.pages.records import Records
from manager_model import Configuration
from store_machine import Machine


class Copy:
    """A copy that never ends."""

    done = [True]

    def poll(self):
        return False

    def wait(self):
        pass


class Hanging(FaultyStore):
    """A store whose copies end only if it does not hang."""

    def __init__(self, values, **fields):
        super().__init__(values, 0)
        self.buffers, self.hangs = [], True
        vars(self).update(fields)

    def begin_put(self, keys, buffers):
        if not self.hangs:
            return super().begin_put(keys, buffers)
        self.buffers += buffers
        return Copy()

    def begin_get(self, keys, buffers):
        return Copy() if self.hangs else super().begin_get(keys, buffers)


@pytest.mark.parametrize("fields, limit", [({}, 60), ({"deadline": 5}, 5), ({"deadline": "soon"}, 60)], ids=str)
def test_put_that_never_ends_is_given_up(clock, fields, limit):
    values = {}
    store = Hanging(values, **fields)
    machine = Machine(store, Configuration(num_pages=60, max_seq_len=64))
    tier = machine.manager._tier
    machine.serve(range(9), flush=False)
    assert len(store.buffers) == 4 and not machine.manager.stats.pages_to_store
    before = [bytes(buffer) for buffer in store.buffers]
    clock[0] += limit - 1
    tier.writer.save()
    with pytest.warns(RuntimeWarning, match=f"did not end in {limit} seconds") as warned:
        clock[0] += 1
        tier.writer.save()
    for rest in (60, 120):  # no other put begins meanwhile
        clock[0] += rest - 1
        tier.writer.save()
        assert len(store.buffers) == len(before)
        clock[0] += 1
        tier.writer.save()
        before += [bytes(buffer) for buffer in store.buffers[len(before) :]]
        assert len(store.buffers) == len(before)
        clock[0] += limit
        tier.writer.save()
    store.hangs = False
    clock[0] += 240
    for number in range(9):  # more than a copy's polls
        machine.serve([30 + number], flush=False)
    assert len(values) == machine.manager.stats.pages_to_store == 4
    assert [bytes(buffer) for buffer in store.buffers] == before and len(before) == 12 and len(warned) == 1
    assert Machine(FaultyStore(values, 0)).serve(range(9)) == 8


def test_get_that_never_ends_is_given_up(clock):
    values = {}
    Machine(FaultyStore(values, 0)).serve(range(9))
    machine = Machine(Hanging(values))
    prefetch = machine.manager.prefetch(range(9))
    clock[0] += 59
    assert not prefetch.poll()
    clock[0] += 1
    with pytest.warns(RuntimeWarning, match="did not end in 60 seconds"):
        assert prefetch.poll()
    assert machine.manager.num_free_pages == machine.manager.num_pages
    machine.manager._tier._store._store.hangs = False
    assert machine.manager.prefetch(range(9)).poll() and not machine.manager.match(range(9))  # no read begins
    clock[0] += 60
    assert machine.serve(range(9)) == 8


def test_wait_that_never_ends_is_given_up(monkeypatch):
    monkeypatch.setattr(Copy, "wait", lambda copy: threading.Event().wait())
    machine = Machine(Hanging({}, deadline=0.1))
    machine.manager.claim("kept", range(9))
    machine.manager.step(["kept"])
    with pytest.warns(RuntimeWarning, match=r"did not end in 0\.1 seconds"):
        machine.manager.flush()
    assert not machine.manager.stats.pages_to_store


def test_copies_end_where_no_thread_starts(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    values = {}
    Machine(FaultyStore(values, 0)).serve(range(9))
    assert Machine(FaultyStore(values, 0)).serve(range(9)) == 8


class InterruptedListener:
    """A listener that is interrupted once."""

    errors = (KeyboardInterrupt,)

    def begin(self, groups):
        self.pages = set()

    def publish(self, changed):
        self.pages |= {*changed} if not self.errors else set()
        for error in self.errors:
            self.errors = ()
            raise error


def test_interrupt_of_a_listener_loses_no_page():
    values, listener = {}, InterruptedListener()
    machine = Machine(FaultyStore(values, 0), events=listener)
    machine.manager.claim("kept", range(9))
    with pytest.raises(KeyboardInterrupt):
        machine.manager.step(["kept"])
    machine.manager.flush()
    assert len(values) == machine.manager.stats.pages_to_store == 4
    machine.manager.reset_prefix_cache()
    assert len(listener.pages) == 4


def test_pages_with_other_tokens_are_stored_again():
    """A page leaves the tree when its sequence is cut, and is cached with other tokens."""
    values = {}
    manager = Machine(FaultyStore(values, 0)).manager
    manager.claim("a", range(8))
    manager.step(["a"])
    manager.flush()
    stored = len(values)
    manager.truncate("a", 5)
    manager.grow("a", [70, 80, 90, 91])
    manager.step(["a"])
    manager.flush()
    assert len(values) > stored
    assert Machine(FaultyStore(values, 0)).manager.claim("b", [0, 1, 2, 3, 4, 70, 80, 90, 91]) == 8


def test_interrupt_while_pages_are_read_loses_none(monkeypatch):
    """The copy of each page in turn is interrupted."""
    for failing in range(4):
        values = {}
        machine = Machine(FaultyStore(values, 0))
        machine.manager.claim("kept", range(9))
        calls = itertools.count()

        def fill(*given, fill=Records.fill):
            if next(calls) == failing:
                raise KeyboardInterrupt
            fill(*given)

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Records, "fill", fill)
            machine.manager.step(["kept"])
        machine.manager.flush()
        assert len(values) == machine.manager.stats.pages_to_store == 4
