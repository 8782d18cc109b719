"""Tests of random histories of page managers, compared with a model after every operation."""

from collections import Counter

import pytest
from checked_manager import CheckedManager
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from manager_histories import ALPHABET, SALTS, History
from manager_model import FORMATS, Configuration
from programs import examples


@st.composite
def configurations(draw):
    """Draws caches so small that pages often run out."""
    page_size = draw(st.sampled_from((1, 2, 3, 16)))
    num_pages = draw(st.integers(1, 12))
    return Configuration(
        page_size=page_size,
        num_pages=num_pages,
        max_batch_size=draw(st.integers(1, 4)),
        max_seq_len=draw(st.integers(1, page_size * min(num_pages + 1, 8))),
        format=draw(st.sampled_from(sorted(FORMATS))),
        is_mla=draw(st.booleans()),
        devices=draw(st.integers(1, 2)),
        prefix_caching=draw(st.sampled_from((True, True, False))),
        host_pages=draw(st.sampled_from((0, 1, 3, 8, 30))),
    )


@pytest.mark.long
@pytest.mark.parametrize("has_failures", [False, True])
@given(configuration=configurations(), seed=st.integers(0, 2**32))
@examples(12)
def test_histories(configuration, seed, has_failures):
    """Failing and read-only calls do not change later results."""
    History(seed, configuration, has_twin=True, has_failures=has_failures).run(250)


@pytest.mark.slow
@given(configuration=configurations(), seed=st.integers(0, 2**32))
@settings(examples(2), phases=[Phase.generate])  # each is too long to shrink
def test_long_histories(configuration, seed):
    History(seed, configuration).run(10_000)


@pytest.mark.long
def test_histories_cover_all_events():
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
    """Short histories that Hypothesis draws, and shrinks if they fail."""

    tokens = st.lists(st.sampled_from(ALPHABET), max_size=8)
    indices = st.integers(0, 5)

    @initialize(configuration=st.sampled_from(SOME), has_failures=st.booleans())
    def begin(self, configuration, has_failures):
        self.checked = CheckedManager(configuration, has_failures=has_failures)
        self.count = 0

    def choose(self, index, is_wanted=lambda sequence: True):
        """Draws a request whose sequence ``is_wanted`` accepts, or None."""
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
        """Grows forks, and accepts the first tokens of the last one."""
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
