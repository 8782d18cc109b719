"""Checks modules of random programs: ``run_programs.py SEED COUNT``, one line of JSON each.

A process of its own, because what it finds may end it: the line that says which module
begins comes first.
"""

import json
import sys
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test" / "python" / "support"), str(ROOT / "test" / "fuzz")]

from check_programs import check_module  # noqa: E402

PROGRAMS = 16


def say(**fields):
    print(json.dumps(fields), flush=True)


def main(first, count, seconds):
    end = time.monotonic() + seconds
    for seed in range(first, first + count):
        if time.monotonic() > end:
            return
        say(begins=seed)
        try:
            for variant, program, error in check_module(seed, PROGRAMS):
                say(seed=seed, variant=str(variant), program=program, error=error)
        except Exception:
            say(seed=seed, variant="python", program=None, error=traceback.format_exc(limit=-4))
        say(ends=seed, programs=PROGRAMS)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
