"""Few combinations of many properties."""

import itertools
import os


def pairwise(*axes, together=()):
    """Combinations of one value of each axis, with every two values of two axes in one.

    So are every values of the axes whose numbers ``together`` gives. All combinations, if
    KVCACHE_COMBINATIONS is their number or more.
    """
    everything = list(itertools.product(*axes))
    if len(everything) <= int(os.environ.get("KVCACHE_COMBINATIONS", "0")):
        return everything

    def parts(combination):
        numbered = tuple(enumerate(combination))
        return {
            *itertools.combinations(numbered, 2),
            tuple(numbered[axis] for axis in together),
        }

    all_parts = {combination: parts(combination) for combination in everything}
    missing = set().union(*all_parts.values())
    chosen = []
    while missing:
        best = max(all_parts, key=lambda combination: len(all_parts[combination] & missing))
        missing -= all_parts[best]
        chosen.append(best)
    return chosen


def take_turns(first, second, count):
    """Pairs of each value of ``first`` with ``count`` values of ``second``, which take turns."""
    turns = itertools.cycle(second)
    return [(value, next(turns)) for value in first for _ in range(count)]
