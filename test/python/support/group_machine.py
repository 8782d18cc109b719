"""A manager of several groups with a store, kernels that check what they read, and a model."""

import math

from group_model import Modeled, Slots, run_kernel, serves


class GroupMachine:
    """A manager of a process. Its kernels check all tokens that new ones reach."""

    def __init__(self, store, groups, memory=None):
        self.manager = groups.make(memory, store=store, store_name="model")
        self.slots = [Slots(self.manager, number) for number in range(len(groups.kinds))]

    def serve(self, tokens, model=None, cut=None, salt=b""):
        """Processes a prompt in one step, or in two; returns how many tokens were found."""
        sequence = Modeled(salt, tokens[:cut])
        sequence.length = found = self.manager.claim("r", tokens[:cut], salt=salt)
        self.finish(sequence, model)
        if cut is not None:
            sequence.grow(tokens[cut:])
            sequence.length += self.manager.grow("r", tokens[cut:])
            self.finish(sequence, model)
        self.manager.release("r")
        return found

    def finish(self, sequence, model=None):
        """Runs kernels on the pending tokens of the request."""
        if not sequence.pending:
            return
        sequence.given = False
        for slots, given in zip(self.slots, self.manager.inputs(["r"]).groups, strict=True):
            run_kernel(slots, given.lut[0].tolist(), sequence)
        self.manager.step(["r"])
        if model:
            model.add(self.slots, sequence)
        sequence.length = len(sequence.tokens)


class CompletePages:
    """The pages that machines have completed: groups and values of last tokens.

    A step completes each page that its tokens fill, and the state at its end.
    """

    def __init__(self, pages=()):
        self.pages = set(pages)

    def add(self, slots, sequence):
        """Adds the pages that the pending tokens of a sequence complete."""
        total = len(sequence.tokens)
        for number, each in enumerate(slots):
            ends = [total] if each.kind.is_state else range(sequence.length + 1, total + 1)
            self.pages |= {(number, sequence.values[end - 1]) for end in ends if end % each.border == 0}

    def find_longest(self, slots, tokens, salt=b""):
        """Finds the most tokens before the last one that the pages serve, by brute force."""
        values, step = Modeled(salt, tokens).values, math.lcm(*(each.border for each in slots))
        ends = [{value for group, value in self.pages if group == number} for number in range(len(slots))]
        for length in range((len(tokens) - 1) // step * step, 0, -step):
            if all(serves(each, known, values, length) for each, known in zip(slots, ends, strict=True)):
                return length
        return 0
