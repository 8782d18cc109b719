"""Tests of interrupts at any line of a call, after which pages are counted."""

import random
import sys
from collections import Counter
from types import SimpleNamespace

import kvcache
import pytest
from kvcache.pages import recount
from manager_model import Configuration

MOST = 40  # lines of a call before its interrupt; more calls are not interrupted
REACHES = kvcache.reach.full, kvcache.reach.window(3), kvcache.reach.chunk(4)
GROUPS = kvcache.MultiKVCacheParams(
    [
        kvcache.KVCacheParams(
            dtype="f32", n_kv_heads=1, head_dim=4, page_size=2, layer_ids=[i], reach=each, enable_prefix_caching=True
        )
        for i, each in enumerate(REACHES)
    ]
)
CONFIGURATIONS = {
    "one place": Configuration(num_pages=16, max_seq_len=32),
    "two places": Configuration(num_pages=12, host_pages=6, max_seq_len=32),
    "groups": SimpleNamespace(params=GROUPS, num_pages=30),
}


class Interrupt:
    """Raises ``KeyboardInterrupt`` before a line of the manager's code."""

    def __init__(self, number):
        self.left = number

    def trace(self, frame, event, argument):
        if "/kvcache/pages/" not in frame.f_code.co_filename:
            return None
        if event == "line":
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt
        return self.trace

    def __enter__(self):
        sys.settrace(self.trace)

    def __exit__(self, *error):
        sys.settrace(None)


class History:
    """Random calls of a manager, any of which may be interrupted."""

    def __init__(self, configuration, seed):
        self.manager = kvcache.PagedKVCacheManager(
            configuration.params,
            max_batch_size=8,
            max_seq_len=32,
            num_pages=configuration.num_pages,
            memory=kvcache.NumPyMemory(),
            max_retained_share=0.5,
        )
        self.has_host = self.manager.num_host_pages > 0
        self.random, self.names, self.count = random.Random(seed), [], 0

    def draw(self, most):
        return [self.random.randint(0, 1) for _ in range(self.random.randint(1, most))]

    def begin(self):
        self.count += 1
        self.names.append(f"r{self.count}")
        return self.names[-1]

    def choose(self):
        """Chooses a call; returns its requests, its function and its arguments."""
        manager, draw = self.manager, self.random
        states = manager._sequences
        live, resident = [*states], [name for name in states if states[name].is_resident]
        kind = draw.choice(["claim", "claim", "grow", "batch", "step", "step", "fork", "cut", "release", "swap"])
        if not resident or kind == "claim":
            retain = [kvcache.Retain(6, 50, 60.0)] * draw.randint(0, 1)
            return [name := self.begin()], lambda: manager.claim(name, self.draw(9), retain=retain)
        name = draw.choice(resident)
        pending = [each for each in resident if states[each].pending][:8]
        if kind == "batch":
            return resident, lambda: manager.grow_batch(resident, self.draw_each(resident))
        if kind == "step" and pending:
            return pending, lambda: manager.step(pending)
        if kind == "fork" and name not in pending:
            return [name, new := self.begin()], lambda: manager.fork(name, new)
        if kind == "cut":
            return [name], lambda: manager.truncate(name, draw.randint(0, states[name].total))
        if kind == "release":
            return [name], lambda: manager.release(name)
        if kind == "swap" and self.has_host:
            moved = draw.choice(live)
            swap = manager.swap_out if moved in resident else manager.swap_in
            return [moved], lambda: swap(moved)
        return [name], lambda: manager.grow(name, self.draw(5))

    def draw_each(self, names):
        return [self.random.randint(0, 1) for _ in names]

    def call(self, line=None):
        """Makes a call, which is interrupted before a line; returns whether it was."""
        requests, function = self.choose()
        try:
            if line is None:
                function()
            else:
                with Interrupt(line):
                    function()
        except (kvcache.OutOfPagesError, ValueError):
            pass
        except KeyboardInterrupt:
            for request in requests:
                if request in self.manager:
                    self.manager.release(request)
            return True
        return False

    def count_pages(self):
        """Counts the addresses that are unused, or of a page that is in use or cached."""
        manager = self.manager
        pages = {page for sequence in manager._sequences.values() for page in sequence.list_pages()}
        nodes = [*manager._roots.values()]
        while nodes:
            node = nodes.pop()
            nodes += node.list_children()
            pages.update(node.list_pages())
        counts = Counter((page.place, page.index) for page in pages)
        for place, free in manager._pool._free.items():
            counts.update((place, i) for i in [*free._returned, *range(free._begun, free.size)])
        return counts

    def check(self):
        """Checks that no page is lost or shared."""
        sizes = {place: free.size for place, free in self.manager._pool._free.items()}
        assert self.count_pages() == Counter((place, i) for place, size in sizes.items() for i in range(size))

    def end(self):
        for name in self.names:
            if name in self.manager:
                self.manager.release(name)
        self.manager.reset_prefix_cache()
        assert self.manager._pool.count_unused() == self.manager.num_pages


def run(name, seed):
    """Interrupts a call, and goes on; returns whether the call was long enough for it."""
    history = History(CONFIGURATIONS[name], seed)
    for _ in range(history.random.randint(5, 25)):
        history.call()
    history.check()
    is_interrupted = history.call(history.random.randint(1, MOST))
    assert max(history.count_pages().values()) == 1  # nothing is shared, even before this:
    history.manager.reset_prefix_cache()
    history.check()
    for _ in range(10):
        history.call()
        history.check()
    history.end()
    return is_interrupted


@pytest.mark.long
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_interrupt_of_a_call_loses_and_shares_no_page(name):
    assert sum(run(name, seed) for seed in range(500)) > 300


def test_reset_without_a_recount_is_found(monkeypatch):
    monkeypatch.setattr(recount, "recount", lambda *given: None)
    with pytest.raises((AssertionError, KeyError, IndexError, StopIteration)):
        for seed in range(200):
            run("one place", seed)
