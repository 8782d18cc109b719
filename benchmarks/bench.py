#!/usr/bin/env python3
"""Compares our compiler with nvcc, NVRTC and Triton on the same works, side by side in one run.

Contenders take turns: whole processes from a source file to a PTX file, and compilers that are loaded already. One
ptxas assembles what they make. Nothing runs on a GPU. The report goes to standard output, progress to standard error.
DIR gets results.json, with all figures and where they come from, report.md and plot.svg. What is not installed is left
out, and said. The other compilers come from PyPI into build/bench-venv (2 GB), but for nvcc.

works:
{works}
  linear               modules of 10 to 10,000 kvcache ops, by us, and as one kernel by nvcc
  calls                calls from Python with arrays of several libraries, of ours and through TVM-FFI alone

examples:
  scripts/bench
  scripts/bench --works gather,decode --chips sm_90a --runs 21
  scripts/bench --works linear
  scripts/bench --out /tmp/results --markdown
  scripts/bench append --help       # kernels of kvcache.append beside others
  scripts/bench attention --help    # kernels of kvcache.attention beside FlashInfer's
  scripts/bench calls --help        # calls of operations on the CPU beside PyTorch's
  scripts/bench cpu --help          # operations on the CPU beside memcpy and PyTorch
  scripts/bench manager --help      # page managers on the CPU, beside vLLM's and SGLang's
  scripts/bench transfer --help     # pages from another process, beside NIXL alone
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from command import Command, parse_names
from measure import say
from provenance import BUILD, FOLDER
from works import CHIPS, WORKS

LINEAR, CALLS = "linear", "calls"
RECORD = FOLDER / "results/compile.json"
PICTURE = FOLDER.parent / "docs/images/compile-time.svg"


def make_command() -> Command:
    works = "\n".join(f"  {work.name:20} {work.title}" for work in WORKS.values())
    command = Command("scripts/bench", (__doc__ or "").format(works=works))
    known = [*WORKS, LINEAR, CALLS]
    command.add("--works", type=parse_names(known), default=known, metavar="WORK,…", help="(default: all)")
    command.add_chips(*CHIPS)
    command.add_count("--runs", 9, "counted rounds")
    command.add("--out", type=Path, metavar="DIR", default=BUILD / "bench", help="default: build/bench")
    command.add("--record", action="store_true", help="write benchmarks/results/compile.json, and its picture")
    return command


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        options = make_command().parse(arguments)
        import compare  # not before, so that --help needs no build
        import kvcache
    except ImportError as error:
        sys.exit(f"error: {error}\n  scripts/bench builds what is needed, or run with PYTHONPATH=build/python")
    works = [WORKS[name] for name in options.works if name in WORKS]
    if CALLS in options.works:
        import calls

        print(calls.measure(200 * options.runs).render(markdown=True), end="\n\n")
    if options.works == [CALLS]:
        return 0
    try:
        comparison = compare.run(works, options.chips, options.runs, LINEAR in options.works)
    except kvcache.ToolchainError as error:
        sys.exit(f"error: {error}")
    comparison.write(options.out)
    if options.record:
        comparison.write_record(RECORD, PICTURE)
    if options.json:
        comparison.record.save(options.json)
    print(comparison.render() if options.markdown else f"{comparison.record.render(False)}\n", end="")
    say(f"bench: written: {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
