"""Random histories one after another, for a number of steps."""

import itertools
import sys
import time
from collections import Counter


def run_from_command_line(draw, run, length):
    """Runs histories of ``length`` steps for ``STEPS [FIRST_SEED]``; counts events.

    ``draw(seed)`` gives the caches of a history, and ``run(seed, caches)`` its events.
    """
    steps, seed = map(int, [*sys.argv[1:], "0"][:2])
    events, done, start = Counter(), 0, time.monotonic()
    for seed in itertools.count(seed):
        if done >= steps:
            break
        caches = draw(seed)
        try:
            events += run(seed, caches)
        except BaseException:
            print(f"seed {seed}: {caches}", flush=True)
            raise
        done += length
        if seed % 25 == 24:
            print(f"{done:,} steps, {time.monotonic() - start:.0f} s", flush=True)
    for name, count in sorted(events.items()):
        print(f"{count:>10,}  {name}")
