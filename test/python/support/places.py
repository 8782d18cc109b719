"""The folders of the checkout."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
# scripts/check-sanitized tests another one.
BUILD = ROOT / os.environ.get("KVCACHE_TEST_BUILD", "build")
EXAMPLES = ROOT / "examples"
KERNELS = ROOT / "benchmarks" / "kernels"
OPT = BUILD / "bin" / "kvcache-opt"
