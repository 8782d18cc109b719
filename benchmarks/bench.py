#!/usr/bin/env python3
"""Compares our compiler with nvcc, NVRTC and Triton on the same works, side by side in one run.

Contenders take turns: whole processes from a source file to a PTX file, and compilers that are loaded already. One
ptxas assembles what they make. Nothing runs on a GPU. The report comes to standard output, progress to standard error.
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
  scripts/bench cpu --help          # operations on the CPU beside memcpy and PyTorch
  scripts/bench manager --help      # page managers on the CPU, ours and vLLM's
  scripts/bench transfer --help     # pages from another process, beside NIXL alone
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from works import CHIPS, FOLDER, WORKS

LINEAR = "linear"
CALLS = "calls"
RECORD = FOLDER / "results/compile.json"
PICTURE = FOLDER.parent / "docs/images/compile-time.svg"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser()
    options = parser.parse_args(arguments)
    try:
        import compare  # not before, so that --help needs no build
        import kvcache
    except ImportError as error:
        sys.exit(f"error: {error}\n  scripts/bench builds what is needed, or run with PYTHONPATH=build/python")
    for chip in options.chips:
        if chip not in kvcache.chips():
            parser.error(f"unknown chip {chip!r}; known are {', '.join(kvcache.chips())}")

    works = [WORKS[name] for name in options.works if name not in (LINEAR, CALLS)]
    if CALLS in options.works:
        import calls

        print(calls.render(calls.measure(200 * options.runs)))
    if options.works == [CALLS]:
        return 0
    try:
        comparison = compare.run(works, options.chips, options.runs, LINEAR in options.works)
    except kvcache.ToolchainError as error:
        sys.exit(f"error: {error}")
    comparison.write(options.out)
    if options.record:
        comparison.write_record(RECORD, PICTURE)
    print(comparison.render(options.markdown), end="")
    compare.say(f"written: {options.out}")
    return 0


def make_parser() -> argparse.ArgumentParser:
    works = "\n".join(f"  {work.name:20} {work.title}" for work in WORKS.values())
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description=(__doc__ or "").format(works=works),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    known = [*WORKS, LINEAR, CALLS]
    add = parser.add_argument
    add("--works", type=_list_of(known), default=known, metavar="WORK,…", help="those to compare (default: all)")
    add("--chips", type=_list_of(), default=CHIPS, metavar="CHIP,…", help=f"default: {','.join(CHIPS)}")
    add("--runs", type=_positive, default=9, metavar="N", help="counted rounds (default: %(default)s)")
    add("--out", type=Path, metavar="DIR", default=FOLDER.parent / "build/bench", help="default: build/bench")
    add("--record", action="store_true", help="write benchmarks/results/compile.json, and the picture of the docs")
    add("--markdown", action="store_true", help="print the report as Markdown")
    return parser


def _list_of(known: Sequence[str] = ()) -> Callable[[str], list[str]]:
    """A parser of names that commas separate, of the known ones if there are any."""

    def parse(text: str) -> list[str]:
        names = list(dict.fromkeys(name.strip() for name in text.split(",")))
        for name in names:
            if known and name not in known:
                raise argparse.ArgumentTypeError(f"unknown name {name!r}; known are {', '.join(known)}")
        return names

    return parse


def _positive(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"expects a positive number, got {text!r}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
