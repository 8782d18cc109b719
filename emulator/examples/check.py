#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches a kernel of CUDA C++ or LLVM IR on the emulator, and prints the sanitizer's report.

A .cu file is compiled with clang; other files are LLVM IR for NVPTX, such as Triton's .llir. The arguments are those of
the kernel: a number; an array of zeros as `float32[8,64]`; `random:float32[8,64]`; `empty:float32[8,64]`, which is
uninitialized; or the path of a .npy file. The exit status is 1 if the kernel has an error.

examples:
  emulator/examples/check.py emulator/examples/shift.cu shift 'random:float32[128]' 'float32[128]' --block 128
  emulator/examples/check.py kernel.llir decode q.npy k.npy 'empty:float16[2,32]' 3 0 0 --chip sm_80 --grid 2 --shared-bytes 2560
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np

import kvcache

_ARRAY = re.compile(r"(?:(?P<contents>random|empty):)?(?P<dtype>\w+)\[(?P<shape>\d+(?:,\d+)*)\]")


def read_source(path: Path, chip: str, options: list[str]) -> bytes:
    """Returns the LLVM IR of a file, compiled first if it is CUDA C++."""
    if path.suffix != ".cu":
        return path.read_bytes()
    clang = shutil.which("clang-22") or shutil.which("clang")
    if not clang:
        raise SystemExit("error: clang is missing, which compiles CUDA C++")
    command = [clang, "-x", "cuda", "--cuda-device-only", f"--cuda-gpu-arch={chip}", "-S", "-emit-llvm", "-O1", "-g"]
    headers = ["-Wno-unknown-cuda-version"]
    if not options:
        # Without an installation of CUDA, its headers, its math library and its version of PTX are missing.
        headers += ["-nocudainc", "-nocudalib", "--cuda-feature=+ptx88"]
    result = subprocess.run([*command, *headers, *options, path, "-o", "-"], capture_output=True, check=False)
    if result.returncode:
        raise SystemExit(result.stderr.decode())
    return result.stdout


def make_argument(text: str, module: kvcache.EmulatedModule) -> object:
    """Returns the number or the array that an argument of the command line describes."""
    if text.endswith(".npy"):
        return np.load(text)
    match = _ARRAY.fullmatch(text)
    if not match:
        return int(text, 0) if re.fullmatch(r"-?(0x)?[0-9a-fA-F]+", text) else float(text)
    dtype = np.dtype(getattr(ml_dtypes, match["dtype"], match["dtype"]))
    shape = tuple(map(int, match["shape"].split(",")))
    if match["contents"] == "random":
        return np.random.default_rng(0).standard_normal(shape).astype(dtype)
    return module.empty(shape, dtype) if match["contents"] else np.zeros(shape, dtype)


def parse_sides(text: str) -> tuple[int, ...]:
    """Returns one to three sizes, such as those of `4,2`."""
    return tuple(map(int, text.split(",")))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="CUDA C++ (.cu), or LLVM IR for NVPTX")
    parser.add_argument("kernel", help="the name of the kernel")
    parser.add_argument("arguments", nargs="*", help="a value for each parameter")
    parser.add_argument("--chip", default="sm_90a", help="the chip to emulate (default: %(default)s)")
    parser.add_argument("--grid", type=parse_sides, default=(1,), help="thread blocks (default: 1)")
    parser.add_argument("--block", type=parse_sides, help="threads of a block, unless the kernel fixes them")
    parser.add_argument("--cluster", type=parse_sides, help="thread blocks of a cluster")
    parser.add_argument("--shared-bytes", type=int, default=0, help="dynamic shared memory (default: 0)")
    parser.add_argument("--clang", default="", help="options for clang, such as --cuda-path=/usr/local/cuda")
    args = parser.parse_args()
    try:
        source = read_source(args.file, args.chip, args.clang.split())
        module = kvcache.emulate(source, args.chip, str(args.file))
        values = [make_argument(text, module) for text in args.arguments]
        options = {"cluster": args.cluster, "shared_bytes": args.shared_bytes}
        module.kernel(args.kernel).launch(args.grid, args.block, *values, **options)
    except (kvcache.Error, OSError, OverflowError, TypeError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{args.kernel}: no error")
    return 0


if __name__ == "__main__":
    sys.exit(main())
