#!/usr/bin/env python3
"""Runs the suite of a pack: tests of kernels, vLLM, transformers and JAX, tokens per second, and operations.

Needs the version of Python that the pack was made for, PyTorch and transformers. Nothing is downloaded: missing
packages come from the pack. A stage whose packages are missing is absent. The status is 1 if a stage fails, and 2 if
none runs.

examples:
  python run.py --minutes 10 --results results
  python run.py --minutes 3 --only kernels,operations
  python run.py --target emulator:sm_90a --small      # without a GPU
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
MANIFEST = HERE / "manifest.json"
REPO = HERE / "repo" if MANIFEST.exists() else HERE.parents[1]
sys.path.insert(0, str(REPO / "benchmarks"))

from gpu_suite.stages import STAGES, Options, Paths, run_all  # noqa: E402
from provenance import read_gpu  # noqa: E402
from record import Record  # noqa: E402


def find_packages() -> tuple[Path, ...]:
    """The folders for Python's path: ``kvcache``, and the pack's packages that the machine lacks.

    The folder of a package has the name of its module.
    """
    if not MANIFEST.exists():
        return (REPO / "build/python",)
    wanted = json.loads(MANIFEST.read_text())["python"]
    found = "{}.{}".format(*sys.version_info)
    if wanted != found:
        sys.exit(f"error: the pack is for Python {wanted}, got {found}: set PYTHON to another one")
    more = sorted(path for path in (HERE / "packages").glob("*") if not find_spec(path.name))
    return HERE / "site", *more


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="run.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [stage.name for stage in STAGES]
    parser.add_argument("--minutes", type=float, default=10, help="the time of all stages (default: %(default)s)")
    parser.add_argument("--target", default="cuda", help="as in kvcache.jit (default: %(default)s)")
    parser.add_argument("--small", action="store_true", help="few cases of few tokens")
    parser.add_argument("--only", default="", metavar="STAGE,…", help=f"some of {', '.join(names)}")
    parser.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, 16), help="processes of tests")
    parser.add_argument("--results", type=Path, default=Path("results"), help="a folder (default: %(default)s)")
    options = parser.parse_args(arguments)
    only = [name for name in options.only.split(",") if name]
    if unknown := [name for name in only if name not in names]:
        parser.error(f"unknown stage {unknown[0]!r}; known are {', '.join(names)}")
    if not 0 < options.minutes < math.inf:
        parser.error(f"expects '--minutes' to be positive and finite, got {options.minutes}")
    packages = find_packages()
    sys.path += map(str, packages)  # stages ask for their modules
    try:
        options.results.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"expects '--results' to be a folder, got '{options.results}': {error.strerror}")
    paths = Paths(REPO, packages, options.results.resolve())
    gpu = read_gpu()
    record = Record("scripts/on-gpu run", driver=gpu.get("driver"))
    if MANIFEST.exists():
        record.commit = json.loads(MANIFEST.read_text())["commit"]
    limits = Options(options.minutes, options.target, options.small, max(options.jobs, 1))
    outcomes = run_all(paths, limits, only, record)
    print(record.render(False))
    for outcome in outcomes:
        if outcome.output:
            print(f"\n{outcome.stage}, {outcome.status}:\n{outcome.output}")
    if all(outcome.status == "absent" for outcome in outcomes):
        return 2
    return int(any(outcome.status in ("failed", "out of time") for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
