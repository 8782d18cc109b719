"""Where the parts of the checkout are."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BUILD = ROOT / "build"
EXAMPLES = ROOT / "examples"
KERNELS = ROOT / "benchmarks" / "kernels"
