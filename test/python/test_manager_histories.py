"""Random histories of page managers, each held to a model after every operation."""

import random
from collections import Counter

import pytest
from checked_manager import CheckedManager
from hypothesis import given
from hypothesis import strategies as st
from manager_model import FORMATS, Configuration
from programs import examples

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
        "claim": 4, "grow": 6, "step": 8, "fork": 1, "truncate": 2, "release": 3,
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

    def step(self):
        sequences = self.checked.sequences.items()
        ready = [r for r, s in sequences if s.is_resident and s.pending]
        most = min(len(ready), self.checked.manager.max_batch_size)
        if most:
            count = self.random.randint(1, most)
            self.checked.step(self.random.sample(ready, count))

    def fork(self):
        if request := self.choose(lambda s: not s.pending):
            self.checked.fork(request, self.new_request())

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


@given(configuration=configurations(), seed=st.integers(0, 2**32))
@examples(12)
def test_histories(configuration, seed):
    History(seed, configuration, has_twin=True).run(300)
