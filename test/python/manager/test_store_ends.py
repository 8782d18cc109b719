"""Tests of managers whose store never ends a copy, and of interrupts of what they write."""

import itertools
import threading
from concurrent.futures import Future

import pytest
from faulty_store import FaultyStore
from kvcache.pages.guarded_store import GuardedStore
from kvcache.pages.records import Records
from manager_model import Configuration
from store_machine import Machine, check_end, check_references


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


class Stuck(FaultyStore):
    """A store of which one call does not return until ``freed`` is set."""

    deadline = 0.1

    def __init__(self, values, name):
        super().__init__(values, 0)
        self.name, self.freed, self.calls = name, threading.Event(), []

    def stop(self, name):
        self.calls.append(name)
        if name == self.name:
            self.freed.wait()

    def find(self, keys):
        self.stop("find")
        return super().find(keys)

    def begin_put(self, keys, buffers):
        self.stop("begin_put")
        return StuckCopy(self, super().begin_put(keys, buffers))

    def begin_get(self, keys, buffers):
        self.stop("begin_get")
        return StuckCopy(self, super().begin_get(keys, buffers))

    def remove(self, keys):
        self.stop("remove")
        super().remove(keys)


class StuckCopy:
    """A copy whose polls do not return while its store is stuck in them."""

    def __init__(self, store, copy):
        self.store, self.copy = store, copy

    @property
    def done(self):
        self.store.stop("done")
        return self.copy.done

    def poll(self):
        self.store.stop("poll")
        return self.copy.poll()

    def wait(self):
        self.copy.wait()


@pytest.mark.parametrize("name", ["find", "begin_put", "begin_get", "poll", "done"])
def test_call_that_never_returns_is_given_up(clock, name):
    values = {}
    Machine(FaultyStore(values, 0)).serve(range(9))
    store = Stuck(values, name)
    machine = Machine(store, Configuration(num_pages=60, max_seq_len=64))
    with pytest.warns(RuntimeWarning, match=rf"'{name}' of the store did not end in 0\.1 seconds") as warned:
        is_read = name != "begin_put"
        assert machine.serve(range(9), flush=False) == (0 if is_read else 8)
        assert machine.serve(range(20, 29), flush=False) == 0
    begun = [*store.calls]
    assert begun[-1] == name
    check_references(machine.manager)
    assert machine.manager.num_free_pages == machine.manager.num_pages
    for first in (30, 40):  # meanwhile no call begins
        assert machine.serve(range(first, first + 9), flush=False) == 0
    assert store.calls == begun and len(warned) == 1
    store.freed.set()
    machine.manager._tier._store._free.result()
    clock[0] += 600
    machine.manager.flush()
    machine.manager.reset_prefix_cache()
    for first in (0, 20, 30, 40):
        assert machine.serve(range(first, first + 9)) == 8
    check_end([machine.manager])


def test_remove_that_never_returns_is_given_up():
    store = Stuck({b"k": b""}, "remove")
    guarded = GuardedStore(store)
    with pytest.warns(RuntimeWarning, match=r"'remove' of the store did not end in 0\.1 seconds"):
        guarded.remove([b"k"])
    assert guarded.find([b"k"]) == [False] and store.calls == ["remove"]
    store.freed.set()
    while guarded.is_late:  # until the call has returned
        assert guarded.find([b"k"]) == [False]
    assert not store.values and store.calls == ["remove", "find"]


def test_interrupt_of_a_call_leaves_the_next_one(monkeypatch):
    store = Stuck({b"k": b""}, "find")
    guarded = GuardedStore(store)

    def interrupt(*given):
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(Future, "result", interrupt)
    with pytest.raises(KeyboardInterrupt):
        guarded.find([b"k"])
    store.freed.set()
    assert guarded.find([b"k"]) == [True]


def test_store_that_keeps_its_deadline_is_called_in_this_thread():
    threads = []

    class Kept(FaultyStore):
        keeps_deadline = True

        def find(self, keys):
            threads.append(threading.current_thread())
            return super().find(keys)

    Machine(Kept({}, 0)).serve(range(9))
    assert {*threads} == {threading.current_thread()}


def test_thread_of_calls_ends_with_its_store():
    guarded = GuardedStore(FaultyStore({}, 0))
    assert guarded.find([b"k"]) == [False]
    thread = guarded._thread.submit(threading.current_thread).result()
    del guarded
    thread.join(60)
    assert not thread.is_alive()


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
