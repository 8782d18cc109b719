#!/usr/bin/env python3
"""Writes a wheel again as one for the stable ABI of Python 3.12 and newer."""

import re
import sys
from pathlib import Path

from auditwheel.wheeltools import InWheelCtx

TAG = "cp312-abi3"


def mark(wheel: Path, folder: Path) -> Path:
    """Writes the wheel into the folder, and returns its path; its contents stay as they are."""
    name, version, _, _, platform = wheel.stem.split("-")
    marked = folder / f"{name}-{version}-{TAG}-{platform}.whl"
    folder.mkdir(parents=True, exist_ok=True)
    with InWheelCtx(wheel, marked) as context:
        (facts,) = Path(context.path).glob("*.dist-info/WHEEL")
        facts.write_text(re.sub(r"(?m)^Tag: \S+-\S+-", f"Tag: {TAG}-", facts.read_text()))
    return marked


if __name__ == "__main__":
    mark(Path(sys.argv[1]), Path(sys.argv[2]))
