"""The command line of the machine with the compiler: `scripts/bench-gpu pack` and `check`."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import kvcache

from . import emulate, pack
from .command import parse_works
from .inputs import KINDS
from .kernels import OURS
from .works import WORKS


def _parse_chips(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in kvcache.chips()]:
        raise argparse.ArgumentTypeError(f"unknown chip {unknown[0]!r}; known are {', '.join(kvcache.chips())}")
    return names


def _check_all(works: Sequence[str], chips: Sequence[str]) -> int:
    """Prints a line for each check; fails where one does."""
    failures = 0
    for name in works:
        for chip in chips:
            for kind in KINDS:
                try:
                    error = emulate.check(WORKS[name], pack.BENCHMARKS / f"kernels/{name}.mlir", chip, kind)
                except (kvcache.Error, OSError, ValueError, TypeError) as failure:
                    error = str(failure).strip()
                print(f"{name}, {chip}, {kind}: {error or 'right'}", flush=True)
                failures += error is not None
    return 1 if failures else 0


def main(arguments: Sequence[str] | None = None) -> int:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--chips", type=_parse_chips, default=list(pack.CHIPS), metavar="LIST",
                        help=f"comma-separated (default: {','.join(pack.CHIPS)})")
    shared.add_argument("--works", type=parse_works, default=list(WORKS), metavar="LIST",
                        help=f"comma-separated (default: {','.join(WORKS)})")
    parser = argparse.ArgumentParser(prog="scripts/bench-gpu", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack", parents=[shared], help="make a pack for a machine with a GPU")
    packing.add_argument("file", type=Path, metavar="FILE.tar.gz")
    packing.add_argument("--wheels", metavar="VERSION", nargs="?", const="{}.{}".format(*sys.version_info),
                         help="put NumPy and cuda-bindings into it, for this version of Python (default: %(const)s)")
    commands.add_parser("check", parents=[shared], help="run our kernels on the emulator")
    options = parser.parse_args(arguments)
    if options.command == "check":
        return _check_all(options.works, options.chips)
    if not options.file.absolute().parent.is_dir():
        parser.error(f"expects FILE.tar.gz in a folder that is there, got '{options.file}'")
    try:
        made = pack.write(options.file, options.works, options.chips, options.wheels)
    except (kvcache.Error, OSError, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{options.file}: {len(made.images)} kernels for {', '.join(made.chips)}; {len(made.missing)} missing")
    return 1 if any(entry["contender"] == OURS for entry in made.missing) else 0


if __name__ == "__main__":
    sys.exit(main())
