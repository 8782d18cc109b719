"""Prints the commands of workflows, for shellcheck: one function for each step."""

import re
import sys
from pathlib import Path

from ruamel.yaml import YAML

_EXPRESSION = re.compile(r"\$\{\{.*?\}\}")
"""Text that a workflow replaces before it runs a command."""


def main() -> int:
    print("set -eo pipefail")
    for path in map(Path, sys.argv[1:]):
        jobs = YAML(typ="safe").load(path)["jobs"]
        for name, job in jobs.items():
            for number, step in enumerate(job.get("steps", [])):
                if "run" in step:
                    command = _EXPRESSION.sub("VALUE", step["run"]).strip()
                    label = re.sub(r"\W", "_", f"{path.stem}_{name}_{number}")
                    print(f"{label}() {{\n{command}\n}}\n{label}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
