"""Random histories of a page manager."""

import random

import numpy as np
from checked_manager import CheckedManager

# Python's hashes of the first and the last are equal.
ALPHABET = (0, 1, 2**61 - 1)
SALTS = (b"", b"adapter")


class History:
    """Draws valid operations, and some invalid ones."""

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
        """Chooses a request whose sequence ``is_wanted`` accepts, or None."""
        sequences = self.checked.sequences.items()
        wanted = [request for request, sequence in sequences if is_wanted(sequence)]
        return self.random.choice(wanted) if wanted else None

    def draw_tokens(self, most):
        """Draws some tokens, more often few than many."""
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
        """Accepts the first pending tokens of one or two requests, or of their drafts."""
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
        """Forks a request without pending tokens; forks grow if there is room."""
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
        """Calls a method on an unknown sequence, or in a wrong state."""
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
