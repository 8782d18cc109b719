"""The command line of the machine with the compiler: `scripts/bench-gpu pack` and `check`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import kvcache
from command import CHIPS, Command

from . import emulate, pack
from .command import add_works
from .inputs import KINDS
from .kernels import OURS
from .works import WORKS


def _check_all(works: Sequence[str], chips: Sequence[str]) -> int:
    """Prints a line for each check; fails where one does."""
    failures = 0
    for name in works:
        for chip in chips:
            for kind in KINDS:
                try:
                    error = emulate.check(WORKS[name], pack.FOLDER / f"kernels/{name}.mlir", chip, kind)
                except (kvcache.Error, OSError, ValueError, TypeError) as failure:
                    error = str(failure).strip()
                print(f"{name}, {chip}, {kind}: {error or 'right'}", flush=True)
                failures += error is not None
    return 1 if failures else 0


def main(arguments: Sequence[str] | None = None) -> int:
    command = Command("scripts/bench-gpu", __doc__)
    command.add("command", choices=["pack", "check"], help="make a pack for a machine with a GPU, or run the emulator")
    command.add("file", type=Path, nargs="?", metavar="FILE.tar.gz", help="the pack")
    command.add_chips(*CHIPS)
    add_works(command)
    command.add("--wheels", metavar="VERSION", nargs="?", const="{}.{}".format(*sys.version_info),
                help="put NumPy and cuda-bindings into it, for this version of Python (default: %(const)s)")
    options = command.parser.parse_args(arguments)
    if options.command == "check":
        return _check_all(options.works, options.chips)
    if not options.file or not options.file.absolute().parent.is_dir():
        command.parser.error(f"expects FILE.tar.gz in a folder that is there, got '{options.file}'")
    try:
        made = pack.write(options.file, options.works, options.chips, options.wheels)
    except (kvcache.Error, OSError, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{options.file}: {len(made.images)} kernels for {', '.join(made.chips)}; {len(made.missing)} missing")
    return 1 if any(entry["contender"] == OURS for entry in made.missing) else 0


if __name__ == "__main__":
    sys.exit(main())
