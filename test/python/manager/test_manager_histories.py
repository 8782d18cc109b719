"""Random histories of page managers, each held to a model after every operation."""

import random
from collections import Counter

import numpy as np
import pytest
from checked_manager import CheckedManager
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from manager_model import FORMATS, Configuration
from programs import examples

import kvcache
from kvcache.growth import Growth
from kvcache.memory import NumPyMemory
from kvcache.pages import PagePool
from kvcache.prefixes import Prefix
from kvcache.tables import Sequence
from kvcache.tokens import count_common

# Python's hashes of the first and the last are equal.
ALPHABET = (0, 1, 2**61 - 1)
SALTS = (b"", b"adapter")


@st.composite
def configurations(draw):
    """Caches so small that pages run out all the time."""
    page_size = draw(st.sampled_from((1, 2, 3, 16)))
    num_pages = draw(st.integers(1, 12))
    prefix_caching = draw(st.sampled_from((True, True, False)))
    return Configuration(
        page_size=page_size,
        num_pages=num_pages,
        max_batch_size=draw(st.integers(1, 4)),
        max_seq_len=draw(st.integers(1, page_size * min(num_pages + 1, 8))),
        format=draw(st.sampled_from(sorted(FORMATS))),
        is_mla=draw(st.booleans()),
        devices=draw(st.integers(1, 2)),
        prefix_caching=prefix_caching,
        host_pages=prefix_caching * draw(st.sampled_from((0, 1, 3, 8, 30))),
    )


class History:
    """Draws operations that have a meaning, and some that have none."""

    def __init__(self, seed, *arguments, **options):
        self.random = random.Random(seed)
        self.checked = CheckedManager(*arguments, **options)
        self.max_seq_len = self.checked.manager.max_seq_len
        self.count = 0
        self.prompts = [self.random.choices(ALPHABET, k=self.max_seq_len) for _ in "123"]

    ACTIONS = {
        "claim": 4, "grow": 4, "grow_batch": 3, "step": 8, "fork": 1, "commit": 1, "truncate": 2, "release": 3,
        "swap_out": 2, "swap_in": 2, "reset": 0.1, "misuse": 1,
    }  # fmt: skip

    def run(self, steps):
        names, weights = zip(*self.ACTIONS.items())
        for name in self.random.choices(names, weights, k=steps):
            getattr(self, name)()
        return self.checked.events

    def choose(self, is_wanted=lambda sequence: True):
        """A request whose sequence is as it has to be, or None."""
        sequences = self.checked.sequences.items()
        wanted = [request for request, sequence in sequences if is_wanted(sequence)]
        return self.random.choice(wanted) if wanted else None

    def draw_tokens(self, most):
        """Some tokens, more often few than many."""
        count = self.random.randint(0, self.random.randint(0, most))
        return self.random.choices(ALPHABET, (8, 2, 1), k=count)

    def new_request(self):
        self.count += 1
        return self.count

    def claim(self):
        if len(self.checked.sequences) >= 6:
            return self.release()
        prompt = self.random.choice(self.prompts)
        tokens = prompt[: self.random.randint(0, self.max_seq_len)]
        tokens += self.draw_tokens(self.max_seq_len - len(tokens))
        salt = self.random.choices(SALTS, (3, 1))[0]
        self.checked.claim(self.new_request(), tokens, salt)

    def grow(self):
        if request := self.choose(lambda s: s.is_resident):
            room = self.max_seq_len - len(self.checked.sequences[request].tokens)
            self.checked.grow(request, self.draw_tokens(min(room, 8)))

    def grow_batch(self):
        sequences = self.checked.sequences
        ready = [request for request in sequences if sequences[request].is_resident]
        requests = self.random.sample(ready, self.random.randint(0, len(ready)))
        lengths = [len(sequences[request].tokens) for request in requests]
        most = self.max_seq_len - max(lengths, default=0)
        tokens = [self.draw_tokens(min(most, 8)) for _ in requests]
        if most and self.random.random() < 0.5:  # a decode step
            tokens = np.array([self.random.choices(ALPHABET, k=1) for _ in requests])
            tokens = tokens.reshape(-1, 1)
        self.checked.grow_batch(requests, tokens)

    def step(self):
        sequences = self.checked.sequences.items()
        ready = [r for r, s in sequences if s.is_resident and s.pending]
        most = min(len(ready), self.checked.manager.max_batch_size)
        if most:
            count = self.random.randint(1, most)
            self.checked.step(self.random.sample(ready, count))

    def fork(self):
        if request := self.choose(lambda s: not s.pending):
            drafts = [self.new_request() for _ in range(self.random.choice((1, 1, 2)))]
            self.checked.fork(request, *drafts)

    def commit(self):
        """What one or two requests, or drafts of them, have pending, is accepted in part."""
        requests, tokens, drafts = [], [], []
        for request in self.draw_committed():
            group = self.draft(request)
            base = self.checked.sequences[request].length
            chosen = self.checked.sequences[self.random.choice([request, *group])]
            end = self.random.randint(base, len(chosen.tokens))
            requests.append(request)
            tokens.append(chosen.tokens[base:end])
            drafts.append(group)
        if requests:
            self.checked.commit(requests, tokens, drafts)

    def draw_committed(self):
        sequences = self.checked.sequences
        ready = [request for request in sequences if sequences[request].is_resident]
        return self.random.sample(ready, min(len(ready), self.random.choice((1, 1, 2))))

    def draft(self, request):
        """Forks a request that has nothing pending; forks for which there is room grow."""
        if self.checked.sequences[request].pending or len(self.checked.sequences) >= 9:
            return ()
        drafts = tuple(self.new_request() for _ in range(self.random.choice((1, 2, 3))))
        self.checked.fork(request, *drafts)
        room = self.max_seq_len - len(self.checked.sequences[request].tokens)
        tokens = [self.draw_tokens(min(room, 8)) for _ in drafts]
        self.checked.grow_batch(drafts, tokens)
        if self.random.random() < 0.3:
            pending = [d for d in drafts if self.checked.sequences[d].pending]
            if pending:
                self.checked.step(pending[:1])
        return drafts

    def truncate(self):
        if request := self.choose():
            length = len(self.checked.sequences[request].tokens)
            self.checked.truncate(request, self.random.randint(0, length))

    def release(self):
        if request := self.choose():
            self.checked.release(request)

    def swap_out(self):
        if self.checked.can_swap and (request := self.choose(lambda s: s.is_resident)):
            self.checked.swap_out(request)

    def swap_in(self):
        if request := self.choose(lambda s: not s.is_resident):
            self.checked.swap_in(request)

    def reset(self):
        self.checked.reset_prefix_cache()

    def misuse(self):
        """Anything done to a sequence that is not there, or not ready for it."""
        request = self.choose()
        if request is None:
            self.checked.misuse(ValueError, "no request", "release", 0)
            return
        sequence, misuse = self.checked.sequences[request], self.checked.misuse
        total = len(sequence.tokens)
        misuse(ValueError, "claimed already", "claim", request, [1])
        misuse(ValueError, "expects 'length'", "truncate", request, total + 1)
        too_long = [1] * (self.max_seq_len + 1)
        misuse(ValueError, "max_seq_len", "claim", 0, too_long)
        if not sequence.is_resident:
            misuse(ValueError, "swapped out", "grow", request, [1])
            misuse(ValueError, "swapped out", "step", [request])
        elif not sequence.pending:
            misuse(ValueError, "no pending", "inputs", [request])
            misuse(ValueError, "no pending", "step", [request])
        else:
            misuse(ValueError, "pending tokens", "fork", request, 0)


@pytest.mark.parametrize("has_failures", [False, True])
@given(configuration=configurations(), seed=st.integers(0, 2**32))
@examples(12)
def test_histories(configuration, seed, has_failures):
    """Failing calls, and those that only look, change nothing that comes later."""
    History(seed, configuration, has_twin=True, has_failures=has_failures).run(250)


@pytest.mark.slow
@given(configuration=configurations(), seed=st.integers(0, 2**32))
@settings(examples(4), phases=[Phase.generate])  # each is too long to be made shorter
def test_long_histories(configuration, seed):
    History(seed, configuration).run(10_000)


def test_histories_come_across_everything():
    events = Counter()
    for host_pages in (0, 4):
        for seed in range(4):
            configuration = Configuration(num_pages=7, host_pages=host_pages)
            events += History(seed, configuration, has_failures=True).run(500)
    changes = "claim", "grow", "grow_batch", "inputs", "swap_out", "swap_in"
    assert set(events) == {
        *(f"{name} failed in the memory" for name in changes),
        "evicted for a call that failed",
        *("claim", "grow", "step", "fork", "truncate", "release", "swap_out", "swap_in"),
        *("reset_prefix_cache", "misuse", "claim out of pages", "grow out of pages"),
        *("grow_batch", "grow_batch out of pages", "pages copied before a batch writes"),
        *("tokens looked up", "tokens found", "commit", "commit_batch"),
        *("swap_out out of pages", "swap_in out of pages", "pages in use shared"),
        *("pages kept found", "pages of the host found", "pages begun by copies"),
        *("pages copied before a write", "pages evicted"),
    }


SOME = (
    Configuration(),
    Configuration(host_pages=4),
    Configuration(page_size=3, num_pages=5, format="fp8", devices=2, host_pages=2),
    Configuration(prefix_caching=False),
)


class ManagerMachine(RuleBasedStateMachine):
    """Short histories that Hypothesis chooses, and makes shorter where they fail."""

    tokens = st.lists(st.sampled_from(ALPHABET), max_size=8)
    indices = st.integers(0, 5)

    @initialize(configuration=st.sampled_from(SOME), has_failures=st.booleans())
    def begin(self, configuration, has_failures):
        self.checked = CheckedManager(configuration, has_failures=has_failures)
        self.count = 0

    def choose(self, index, is_wanted=lambda sequence: True):
        """A request whose sequence is as it has to be, or None."""
        sequences = self.checked.sequences
        wanted = [request for request in sequences if is_wanted(sequences[request])]
        return wanted[index % len(wanted)] if wanted else None

    def new_request(self):
        self.count += 1
        return self.count

    @rule(tokens=tokens, salt=st.sampled_from(SALTS))
    def claim(self, tokens, salt):
        tokens = tokens[: self.checked.manager.max_seq_len]
        self.checked.claim(self.new_request(), tokens, salt)

    @rule(tokens=st.lists(st.sampled_from(ALPHABET), min_size=1, max_size=12))
    def prefill(self, tokens):
        request = self.new_request()
        if self.checked.claim(request, tokens) is not None:
            self.checked.step([request])

    @rule(index=indices, tokens=tokens)
    def grow(self, index, tokens):
        if request := self.choose(index, lambda s: s.is_resident):
            length = len(self.checked.sequences[request].tokens)
            room = self.checked.manager.max_seq_len - length
            self.checked.grow(request, tokens[:room])

    @rule(tokens=st.lists(tokens, max_size=4))
    def grow_batch(self, tokens):
        sequences = self.checked.sequences
        requests = [request for request in sequences if sequences[request].is_resident]
        requests = requests[: len(tokens)]
        room = self.checked.manager.max_seq_len
        tokens = [
            more[: room - len(sequences[request].tokens)]
            for request, more in zip(requests, tokens)
        ]
        self.checked.grow_batch(requests, tokens)

    @rule(index=indices, count=st.integers(1, 4))
    def step(self, index, count):
        sequences = self.checked.sequences.items()
        ready = [r for r, s in sequences if s.is_resident and s.pending]
        if batch := ready[index:][: min(count, self.checked.manager.max_batch_size)]:
            self.checked.step(batch)

    @rule(index=indices)
    def fork(self, index):
        if request := self.choose(index, lambda s: not s.pending):
            self.checked.fork(request, self.new_request())

    @rule(index=indices, tokens=st.lists(tokens, min_size=1, max_size=3))
    def speculate(self, index, tokens):
        """Forks grow, and a part of the last one is accepted."""
        if request := self.choose(index, lambda s: s.is_resident and not s.pending):
            base = self.checked.sequences[request].length
            room = self.checked.manager.max_seq_len - base
            tokens = [more[:room] for more in tokens]
            drafts = tuple(self.new_request() for _ in tokens)
            self.checked.fork(request, *drafts)
            if self.checked.grow_batch(drafts, tokens):
                accepted = tokens[-1][: len(tokens[-1]) // 2 + 1]
                self.checked.commit([request], [accepted], [drafts])

    @rule(index=indices, length=st.integers(0, 16))
    def truncate(self, index, length):
        if request := self.choose(index):
            length = min(length, len(self.checked.sequences[request].tokens))
            self.checked.truncate(request, length)

    @rule(index=indices)
    def release(self, index):
        if request := self.choose(index):
            self.checked.release(request)

    @rule(index=indices)
    def swap_out(self, index):
        request = self.choose(index, lambda s: s.is_resident)
        if self.checked.can_swap and request:
            self.checked.swap_out(request)

    @rule(index=indices)
    def swap_in(self, index):
        if request := self.choose(index, lambda s: not s.is_resident):
            self.checked.swap_in(request)

    @rule()
    def reset(self):
        self.checked.reset_prefix_cache()


TestManagerMachine = ManagerMachine.TestCase
TestManagerMachine.settings = settings(examples(40), stateful_step_count=40)


# Managers that are wrong in one place


def nothing(*arguments, **options):
    pass


def claim_without_salt(claim):
    return lambda self, request, tokens=(), salt=b"": claim(self, request, tokens)


def evict_latest(settle):
    def changed(self, page):
        settle(self, page)
        for cached in self._cached.values():
            if page in cached:
                cached.move_to_end(page, last=False)

    return changed


def forget_only_unused(forget):
    return lambda self, page: None if page.references else forget(self, page)


class Hashed(dict):
    """Finds tokens by a hash of them."""

    def get(self, tokens):
        return super().get(self.hash(tokens))

    def __getitem__(self, tokens):
        return super().__getitem__(self.hash(tokens))

    def __setitem__(self, tokens, prefix):
        super().__setitem__(self.hash(tokens), prefix)

    def __delitem__(self, tokens):
        super().__delitem__(self.hash(tokens))

    def hash(self, tokens):
        return hash(tuple(np.frombuffer(tokens, ">i8").tolist()))


def find_by_hash(initialize):
    def changed(self, *arguments):
        initialize(self, *arguments)
        self.children = Hashed()

    return changed


def disturb_on_failure(claim):
    def changed(self, *arguments, **options):
        try:
            return claim(self, *arguments, **options)
        except kvcache.OutOfPagesError:
            for cached in self._pool._cached.values():
                if cached:
                    cached.move_to_end(next(iter(cached)))
            raise

    return changed


def forget_on_failure(claim):
    def changed(self, *arguments, **options):
        try:
            return claim(self, *arguments, **options)
        except kvcache.OutOfPagesError:
            self.reset_prefix_cache()
            raise

    return changed


def bring_nothing(provide):
    def changed(self, count, brought=(), **options):
        return provide(self, count, **options)

    return changed


def lose_on_failure(take):
    def changed(self, place, *arguments):
        try:
            return take(self, place, *arguments)
        except BaseException:
            self._free[place].pop()
            raise

    return changed


def forget_before(provide):
    def changed(self, *arguments, brought=(), **options):
        self.forget_unreferenced()
        return provide(self, *arguments, brought=[], **options)

    return changed


def move_one_by_one(move):
    def changed(self, pages, *arguments, **options):
        for page in pages:
            move(self, [page], *arguments, **options)

    return changed


def reverse_table(inputs):
    def changed(self, requests):
        result = inputs(self, requests)
        result.lut[:] = result.lut[::-1].copy()
        return result

    return changed


def ignore(function):
    return nothing


def find_none(function):
    return lambda *arguments: {}


def copy_all(function):
    return lambda self, closed: {s: w for s in closed if (w := self._get_written(s))}


def copy_open(copy):
    def changed(self, sequence):
        was_open = self._table.open[sequence.row]
        new = copy(self, sequence)
        self._table.open[[sequence.row, new.row]] = was_open
        return new

    return changed


def keep_all(commit):
    def changed(self, sequence, source, length):
        commit(self, sequence, source, len(source.tokens))

    return changed


def without_finish(commit):
    def changed(self, sequence, source, length):
        commit(self, sequence, source, length)
        if sequence.pages and sequence.pages[-1].prefix:
            self._pool.forget(sequence.pages[-1])

    return changed


def take_needed(count):
    return lambda self, plan: plan.needed


def find_after(find):
    def changed(self, tokens):
        after = [key for key in self._order if key >= tokens][:1]
        page = self.children[after[0]].page if after else None
        return page, count_common(after[0], tokens) if after else 0

    return changed


def keep_columns(cut):
    def changed(self, length):
        rows = self.table.pages.copy()
        pages = cut(self, length)
        self.table.pages = rows
        return pages

    return changed


def never(function):
    return lambda *arguments: False


Manager = kvcache.PagedKVCacheManager
FAULTS = {
    "writes to shared pages": (Growth, "_is_copied", never),
    "lets a batch write to shared pages": (Growth, "_find_copied", find_none),
    "copies pages of one sequence": (Growth, "_find_copied", copy_all),
    "takes each page for its sequence's own": (Growth, "copy", copy_open),
    "leaves pages in the table": (Sequence, "cut", keep_columns),
    "finds only longer beginnings": (Prefix, "find_similar", find_after),
    "keeps all of a draft": (Growth, "commit", keep_all),
    "keeps the request of a draft": (Sequence, "exchange", ignore),
    "publishes nothing that is accepted": (Growth, "commit", without_finish),
    "counts free pages as taken": (Growth, "count_taken", take_needed),
    "copies nothing": (NumPyMemory, "copy_page", ignore),
    "copies nothing to the host": (NumPyMemory, "read_page", ignore),
    "copies nothing from the host": (NumPyMemory, "write_page", ignore),
    "ignores salts": (Manager, "claim", claim_without_salt),
    "finds tokens by hash": (Prefix, "__init__", find_by_hash),
    "counts no second reference": (PagePool, "refer", ignore),
    "releases nothing": (PagePool, "release", ignore),
    "merges without a reference": (PagePool, "merge", ignore),
    "forgets nothing that is written": (PagePool, "forget", forget_only_unused),
    "leaves pages on the host": (PagePool, "provide", bring_nothing),
    "evicts the latest": (PagePool, "_settle", evict_latest),
    "publishes nothing": (Growth, "_publish", ignore),
    "forgets prefixes on failure": (Manager, "claim", forget_on_failure),
    "disturbs the order on failure": (Manager, "claim", disturb_on_failure),
    "loses pages when a copy fails": (PagePool, "_take_addresses", lose_on_failure),
    "makes room before it is needed": (PagePool, "provide", forget_before),
    "moves pages one by one": (PagePool, "move", move_one_by_one),
    "reverses the table": (Manager, "inputs", reverse_table),
}


def run_some():
    for seed in range(8):
        for host_pages in (0, 4):
            configuration = Configuration(num_pages=7, host_pages=host_pages)
            options = {"has_twin": True, "has_failures": seed % 2 > 0}
            History(seed, configuration, **options).run(150)


def test_the_right_manager_passes():
    run_some()


@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_managers_are_found(monkeypatch, fault):
    owner, name, change = FAULTS[fault]
    monkeypatch.setattr(owner, name, change(getattr(owner, name)))
    with pytest.raises((AssertionError, IndexError)):
        run_some()
