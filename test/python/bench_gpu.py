"""What the tests of the benchmarks on a GPU have in common; `packed` is in conftest.py."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "benchmarks/kernels"
CHIP = "sm_100a"
