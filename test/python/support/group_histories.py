#!/usr/bin/env python3
"""Random histories of a page manager with groups of layers, compared with a model.

The model has tokens, and computes the tokens that each reaches by brute force. Every token writes a
value derived from all before it, in all layers and heads of each group. A state is the value of the
last token. So the contents of memory identify their tokens.

As a program, this runs histories for a number of steps, from a seed on:

  PYTHONPATH=build/python build/venv/bin/python test/python/support/group_histories.py 1000000 0
"""

import itertools
import math
import random
from collections import Counter

import pytest
from delayed_memory import DelayedMemory
from group_invariants import check_pages, check_reachable, check_sequences, find_longest
from group_model import Modeled, Slots, draw_groups, is_reached_from, run_kernel
from kvcache import OutOfPagesError, Place, transfer
from long_histories import run_from_command_line

NAMES = itertools.count()
ALPHABET = (0, 1, 2**61 - 1)


class GroupHistory:
    """Draws operations, and checks all invariants after each.

    With ``has_failures``, each operation is first tried with each call of the memory failing.
    Copies of swaps are asynchronous then, and some fail.
    """

    ACTIONS = {
        "claim": 5, "grow": 4, "grow_batch": 4, "step": 10, "fork": 1, "speculate": 1, "truncate": 2,
        "release": 3, "swap_out": 2, "swap_in": 2, "begin_swap": 1, "poll": 2, "send": 1, "reset": 0.1, "ask": 1,
    }  # fmt: skip

    SWAPS = {**ACTIONS, "begin_swap": 10, "poll": 16}

    def __init__(self, seed, groups, has_failures=False):
        self.random = random.Random(seed)
        self.memory = DelayedMemory(seed) if has_failures else None
        self.manager = groups.make(self.memory)
        self.peer = groups.make()
        self.groups = groups
        counts = range(len(groups.kinds))
        self.slots = [Slots(self.manager, number) for number in counts]
        self.peer_slots = [Slots(self.peer, number) for number in counts]
        self.has_state = any(slots.kind.is_state for slots in self.slots)
        self.step_tokens = math.lcm(*(slots.border for slots in self.slots))
        self.is_plain = len(self.slots) == 1 and self.slots[0].kind.kind == "full"
        names = [f"history {next(NAMES)}" for _ in "12"]
        self.transports = [transfer.LocalTransport(name) for name in names]
        self.sequences, self.events, self.count = {}, Counter(), 0
        self.swaps = {}  # unfinished swaps: the sequence, its target, and pages
        self.prompts = [self.random.choices(ALPHABET, k=groups.max_seq_len) for _ in "123"]
        self.check()

    def run(self, steps, actions=ACTIONS):
        names, weights = zip(*actions.items())
        for name in self.random.choices(names, weights, k=steps):
            getattr(self, name)()
        return self.events

    # --- Random choices -----------------------------------------------------------

    def choose(self, is_wanted=lambda sequence: True):
        wanted = [r for r, sequence in self.sequences.items() if is_wanted(sequence)]
        return self.random.choice(wanted) if wanted else None

    def draw(self, most):
        count = self.random.randint(0, self.random.randint(0, most))
        return self.random.choices(ALPHABET, (8, 2, 1), k=count)

    def room(self, *requests):
        longest = max((len(self.sequences[r].tokens) for r in requests), default=0)
        return self.groups.max_seq_len - longest

    def new(self):
        self.count += 1
        return self.count

    # --- Operations ---------------------------------------------------------------

    def call(self, name, *arguments, **options):
        """Returns whether there was room, and the result."""
        method = getattr(self.manager, name)
        before = self.manager.num_free_pages
        try:
            if self.memory is None:
                result = method(*arguments, **options)
            else:
                for failure, result in self.memory.fail_in_turn(
                    lambda: method(*arguments, **options)
                ):
                    if failure:
                        self.events[f"{name} failed in the memory"] += 1
                        assert self.manager.num_free_pages == before
                        self.check()
        except OutOfPagesError as error:
            assert error.needed > error.available
            self.events[f"{name} out of pages"] += 1
            self.check()
            return False, None
        self.events[name] += 1
        return True, result

    def claim(self):
        if len(self.sequences) >= 6:
            return self.release()
        prompt = self.random.choice(self.prompts)
        tokens = prompt[: self.random.randint(0, len(prompt))]
        tokens += self.draw(len(prompt) - len(tokens))
        salt = self.random.choices((b"", b"adapter"), (3, 1))[0]
        sequence = Modeled(salt, tokens)
        free = self.manager.num_free_pages
        questions = "can_claim", "match", "pages_needed"
        can_claim, match, needed = (
            getattr(self.manager, name)(tokens, salt=salt) for name in questions
        )
        best = find_longest(self, sequence, 0)
        request = self.new()
        done, found = self.call("claim", request, tokens, salt=salt)
        assert can_claim == (needed <= free)
        # A failed attempt may have evicted a prefix of which no token is reached.
        is_certain = self.memory is None or self.is_any_reached(match)
        assert done == can_claim or (can_claim and not is_certain)
        if not done:
            return
        if self.memory is None:
            assert found == match
            taken = free - self.manager.num_free_pages
            assert taken <= needed if self.groups.host_pages else taken == needed
        self.check_found(found, best)
        sequence.length = found
        self.sequences[request] = sequence
        self.check()

    def check_found(self, found, best):
        """Checks the length of a found prefix.

        It is shorter than the longest only if a state has no room to stay, or if no later token
        reaches the prefix, which may be evicted."""
        self.events["prefixes found"] += found > 0
        if not self.is_plain:
            assert found <= best
            has_room = self.manager.num_free_pages > 1 or not self.has_state
            is_simple = self.memory is None and not self.groups.host_pages
            if is_simple and has_room and self.is_any_reached(best):
                assert found == best, "a longer prefix is there"
                self.events["longest prefixes found"] += found > 0

    def is_any_reached(self, length):
        """Returns whether tokens from ``length`` on reach a token of a prefix; True if empty."""
        return not length or any(
            slots.kind.is_state or is_reached_from(slots.kind, length, token)
            for slots in self.slots
            for token in range(length)
        )

    def grow(self):
        if request := self.choose(lambda s: s.is_resident):
            tokens = self.draw(min(self.room(request), 8))
            done, found = self.call("grow", request, tokens)
            if done:
                sequence = self.sequences[request]
                sequence.grow(tokens)
                sequence.length += found
                self.events["grown by a prefix"] += found > 0
                self.check()

    def grow_batch(self):
        ready = [r for r, s in self.sequences.items() if s.is_resident]
        requests = self.random.sample(ready, self.random.randint(0, len(ready)))
        most = min(self.room(*requests), 8)
        tokens = [self.draw(most) for _ in requests]
        if most and self.random.random() < 0.5:
            tokens = [self.random.choices(ALPHABET, k=1) for _ in requests]
        self.grow_all(requests, tokens)

    def grow_all(self, requests, tokens):
        expected = self.manager.can_grow_batch(requests, tokens)
        done, _ = self.call("grow_batch", requests, tokens)
        assert done == expected
        if done:
            for request, more in zip(requests, tokens):
                self.sequences[request].grow(more)
            self.check()
        return done

    def step(self):
        ready = [r for r, s in self.sequences.items() if s.is_resident and s.pending]
        if ready:
            requests = self.random.sample(ready, self.random.randint(1, min(4, len(ready))))
            self.write(requests)
            self.call("step", requests)
            for request in requests:
                sequence = self.sequences[request]
                sequence.length, sequence.given = len(sequence.tokens), False
            self.check()

    def write(self, requests):
        """Acts as kernels: reads the tokens that new tokens reach, and writes these."""
        inputs = self.call("inputs", requests)[1]
        batch = [self.sequences[request] for request in requests]
        pending = sum((s.tokens[s.length :] for s in batch), [])
        assert inputs.tokens.tolist() == pending
        assert inputs.lengths.tolist() == [s.length for s in batch]
        for slots, given in zip(self.slots, inputs.groups, strict=True):
            assert given.row_offsets.tolist() == inputs.row_offsets.tolist()
            for row, sequence in zip(given.lut.tolist(), batch, strict=True):
                run_kernel(slots, row, sequence)
        for sequence in batch:
            sequence.given = True

    def fork(self):
        if request := self.choose(lambda s: not s.pending):
            drafts = [self.new() for _ in range(self.random.choice((1, 1, 2)))]
            self.call("fork", request, *drafts)
            for draft in drafts:
                self.sequences[draft] = self.sequences[request].copy()
            self.check()

    def speculate(self):
        """Grows and writes forks; accepts the tokens of one, or its first tokens."""
        request = self.choose(lambda s: s.is_resident and not s.pending)
        if request is None or len(self.sequences) >= 8:
            return
        drafts = [self.new() for _ in range(self.random.choice((1, 2)))]
        self.call("fork", request, *drafts)
        for draft in drafts:
            self.sequences[draft] = self.sequences[request].copy()
        tokens = [self.draw(min(self.room(request), 6)) for _ in drafts]
        if not self.grow_all(drafts, tokens):
            return
        for draft in drafts:
            if self.sequences[draft].pending:
                self.write([draft])
        base = self.sequences[request].length
        chosen = self.sequences[self.random.choice([request, *drafts])]
        end = self.random.randint(base, len(chosen.tokens))
        if self.has_state:
            end = self.random.choice((base, len(chosen.tokens)))
        self.call("commit", request, chosen.tokens[base:end], drafts)
        sequence = self.sequences[request]
        sequence.grow(chosen.tokens[base:end])
        sequence.length = len(sequence.tokens)
        for draft in drafts:
            del self.sequences[draft]
        self.check()

    def truncate(self):
        request = self.choose()
        if request is None:
            return
        sequence = self.sequences[request]
        length = self.random.randint(0, len(sequence.tokens))
        if self.random.random() < 0.3:
            length = sequence.length
        if self.can_truncate(request, sequence, length):
            self.call("truncate", request, length)
            sequence.truncate(length)
            if not length:
                sequence.given = False
            self.events["truncated within"] += 0 < length
        else:
            with pytest.raises(ValueError, match="can't be truncated"):
                self.manager.truncate(request, length)
            self.events["not truncated"] += 1
        self.check()

    def can_truncate(self, request, sequence, length):
        if length in (0, len(sequence.tokens)):
            return True
        if self.has_state and (sequence.given or length < sequence.length):
            return False
        state = next(s for s in self.manager.snapshot().sequences if s.request == request)
        groups = state.groups or (state.pages,)
        for slots, pages in zip(self.slots, groups, strict=True):
            if slots.kind.is_state:
                continue
            for token in range(length):
                if is_reached_from(slots.kind, length, token):
                    if pages[token // slots.pages] is None:
                        return False
        return True

    def release(self):
        if request := self.choose():
            self.call("release", request)
            del self.sequences[request]
            self.check()

    def is_moving(self, sequence):
        return any(moving is sequence for moving, *_ in self.swaps.values())

    def begin_swap(self):
        """Begins an asynchronous swap; each sequence has at most one."""
        if not self.groups.host_pages or (request := self.choose()) is None:
            return
        sequence = self.sequences[request]
        place = Place.HOST if sequence.is_resident else Place.DEVICE
        name = "begin_swap_out" if sequence.is_resident else "begin_swap_in"
        if self.is_moving(sequence):
            for refused in ("begin_swap_in", "swap_in"):
                with pytest.raises(ValueError, match="poll its swap first"):
                    getattr(self.manager, refused)(request)
            return
        if self.memory:
            self.memory.begun.clear()
        done, swap = self.call(name, request)
        if not done:
            return
        if self.memory is None:
            assert swap.poll()
            sequence.is_resident = not sequence.is_resident
        else:
            sequence.is_resident = False
            count = self.memory.begun[-1] if self.memory.begun else 0
            self.swaps[swap] = sequence, place, count
        self.check()

    def poll(self):
        """Polls swaps in any order, also of released sequences."""
        if not self.swaps:
            return
        swap = self.random.choice(list(self.swaps))
        sequence, place, *_ = self.swaps[swap]
        try:
            has_ended, is_done = swap.poll(), True
        except OSError:
            has_ended, is_done = True, False
        if has_ended:
            del self.swaps[swap]
            sequence.is_resident = is_done == (place is Place.DEVICE)
            assert swap.poll(), "a swap that has ended stays so"
            what = "done" if is_done else "failed"
            self.events[f"swaps to the {place.value} {what}"] += 1
            is_known = any(each is sequence for each in self.sequences.values())
            self.events["swaps of released sequences"] += not is_known
        self.check()

    def swap_out(self):
        if self.groups.host_pages and (request := self.choose(lambda s: s.is_resident)):
            if self.call("swap_out", request)[0]:
                self.sequences[request].is_resident = False
            self.check()

    def swap_in(self):
        if request := self.choose(lambda s: not s.is_resident and not self.is_moving(s)):
            if self.call("swap_in", request)[0]:
                self.sequences[request].is_resident = True
            self.check()

    def send(self):
        """Sends a sequence to the peer, which must have the tokens that later tokens reach."""
        request = self.choose(lambda s: s.is_resident and not s.pending and s.tokens)
        if request is None:
            return
        sequence = self.sequences[request]
        lease = self.manager.export(request, seconds=1000)
        message = transfer.offer(self.manager, lease, self.transports[0])
        try:
            options = {"request": "sent", "salt": sequence.salt}
            moved = transfer.fetch(self.peer, message, self.transports[1], **options)
            while not moved.poll():
                pass
            moved.finish(lease.end())
        except OutOfPagesError:
            lease.end()
            self.peer.reset_prefix_cache()
            return
        (state,) = self.peer.snapshot().sequences
        assert (state.length, state.pending) == (sequence.length, 0)
        check_reachable(self.peer_slots, state, sequence)
        self.events["pages sent"] += len(moved.reception.pages)
        self.events["pages found by the peer"] += moved.reception.found > 0
        self.peer.release("sent")
        self.check()

    def reset(self):
        self.call("reset_prefix_cache")
        assert all(page.references for page in self.manager.snapshot().pages)
        self.check()

    def ask(self):
        """Checks that ``pages_evicted`` predicts evictions."""
        free = self.manager.num_free_pages
        count = self.random.randint(0, free)
        asked = self.manager.pages_evicted(count)
        self.events["asked"] += 1
        used = sum(p.address.place is Place.DEVICE for p in self.manager.snapshot().pages)
        used += sum(n for _, to, n in self.swaps.values() if to is Place.DEVICE)
        assert asked == max(0, count - (self.manager.num_pages - used))
        with pytest.raises(ValueError, match="expects 'pages'"):
            self.manager.pages_evicted(free + 1)

    def check(self):
        snapshot = self.manager.snapshot()
        check_sequences(self, snapshot)
        check_pages(self, snapshot)


def run_one(seed, groups):
    history = GroupHistory(seed, groups, has_failures=seed % 4 == 3)
    is_swapping = history.memory and groups.host_pages
    return history.run(2_000, history.SWAPS if is_swapping else history.ACTIONS)


if __name__ == "__main__":
    run_from_command_line(draw_groups, run_one, length=2_000)
