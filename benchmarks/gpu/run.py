#!/usr/bin/env python3
"""Runs the benchmarks of a pack on this machine's GPU: whether every contender is right, and how fast it is.

Needs Python 3.10, NumPy and cuda-bindings. Triton and FlashInfer take part where they are installed. Of each work there
are three cases: sequences at the edges (0 tokens, 1, a page and one more), which are not timed; ragged ones; full ones.
CUDA_VISIBLE_DEVICES chooses the GPU.

examples:
  python run.py
  python run.py --works gather,gather_fp8 --repetitions 200 --json results.json
  python run.py --batch 16 --context 8192 --without FlashInfer
"""

import importlib.util
import sys
from pathlib import Path

if sys.version_info < (3, 10):
    sys.exit("error: expects Python 3.10 or newer, got {}.{}".format(*sys.version_info))
if not importlib.util.find_spec("numpy"):
    sys.exit("error: the package numpy is missing; install it by: python -m pip install numpy")

# In a pack this file is beside the package, in the repository in it.
sys.path.insert(0, str(Path(__file__).resolve().parent / ("." if Path(__file__).with_name("gpu").exists() else "..")))

from gpu.command import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent, description=__doc__))
