#!/usr/bin/env python3
"""Compares our compiler with nvcc on the same kernel, side by side in one run.

For each chip: the wall time of the whole process from source to PTX (medians of alternating runs), the registers, and
the SASS instructions that one ptxas makes of either PTX. NOPs after the end of a kernel are not counted.

examples:
  scripts/bench
  scripts/bench --chips sm_90a --runs 21 --json bench.json
"""

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def find_tool(name: str, hint: str) -> str:
    """The path of a tool: in the build tree, its Python environment, CUDA_HOME or PATH."""
    folders = [ROOT / "build/bin", ROOT / "build/venv/bin"]
    if "CUDA_HOME" in os.environ:
        folders.append(Path(os.environ["CUDA_HOME"]) / "bin")
    for folder in folders:
        if (folder / name).exists():
            return str(folder / name)
    found = shutil.which(name)
    if not found:
        sys.exit(f"bench: '{name}' is missing: {hint}")
    return found


def run(command: list[str]) -> tuple[float, str]:
    """Runs a command; gives its wall time in milliseconds and its output."""
    start = time.perf_counter()
    result = subprocess.run(command, capture_output=True, text=True)
    milliseconds = (time.perf_counter() - start) * 1e3
    if result.returncode:
        sys.exit(f"bench: {' '.join(command)} failed:\n{result.stderr}")
    return milliseconds, result.stdout + result.stderr


def first_line_with(text: str, word: str) -> str:
    return next((line.strip() for line in text.splitlines() if word in line), text.strip())


class Bench:
    def __init__(self, runs: int):
        self.runs = runs
        self.opt = find_tool("kvcache-opt", "run scripts/setup.sh --build")
        self.nvcc = find_tool("nvcc", "install the CUDA 13 toolkit, or set CUDA_HOME")
        self.ptxas = find_tool("ptxas", "run scripts/setup.sh")
        self.nvdisasm = find_tool("nvdisasm", "run scripts/setup.sh")

    def compilers(self, chip: str, folder: Path) -> dict[str, tuple[list[str], Path]]:
        """Each contender's command, and the PTX file that it writes."""
        ours, theirs = folder / "ours.ptx", folder / "nvcc.ptx"
        return {
            "kvcache-opt": ([self.opt, str(ROOT / "examples/gather.mlir"), f"--kvcache-to-ptx=chip={chip}",
                             "--emit-ptx", "-o", str(ours)], ours),
            "nvcc": ([self.nvcc, "-ptx", "-O3", f"-arch={chip}", str(ROOT / "benchmarks/peers/gather.cu"),
                      "-o", str(theirs)], theirs),
        }

    def measure(self, chip: str) -> list[dict]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            contenders = self.compilers(chip, folder)
            times: dict[str, list[float]] = {key: [] for key in contenders}
            for turn in range(self.runs + 1):  # the first is a warm-up
                for key, (command, _) in contenders.items():
                    milliseconds, _ = run(command)
                    if turn:
                        times[key].append(milliseconds)
            return [{"kernel": "gather", "chip": chip, "compiler": key, "milliseconds": statistics.median(times[key]),
                     "fastest": min(times[key]), "slowest": max(times[key]), **self.facts(chip, ptx, folder)}
                    for key, (_, ptx) in contenders.items()]

    def facts(self, chip: str, ptx: Path, folder: Path) -> dict:
        cubin = folder / "kernel.cubin"
        _, report = run([self.ptxas, "-v", f"-arch={chip}", str(ptx), "-o", str(cubin)])
        _, sass = run([self.nvdisasm, "-c", str(cubin)])
        instructions = [line for line in sass.splitlines() if re.match(r"\s+/\*[0-9a-f]{4,}\*/", line)]
        return {
            "sass": sum(not re.search(r"\bNOP\b", line) for line in instructions),
            "registers": int(re.search(r"Used (\d+) registers", report).group(1)),
            "spill_bytes": sum(map(int, re.findall(r"(\d+) bytes spill", report))),
            "ptx": sum(bool(re.match(r"\t(?!\.|//)", line)) for line in ptx.read_text().splitlines()),
        }

    def provenance(self) -> dict:
        commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
        cpu = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                    if line.startswith("model name")), platform.processor())
        return {
            "date": time.strftime("%Y-%m-%d"),
            "commit": commit.stdout.strip() or "unknown",
            "cpu": f"{os.cpu_count()} x {cpu}",
            "llvm": first_line_with(run([self.opt, "--version"])[1], "LLVM version"),
            "nvcc": first_line_with(run([self.nvcc, "--version"])[1], "release"),
            "ptxas": first_line_with(run([self.ptxas, "--version"])[1], "release"),
            "runs": self.runs,
        }


def print_table(rows: list[dict]) -> None:
    columns = [("kernel", "kernel", "s"), ("chip", "chip", "s"), ("compiler", "compiler", "s"),
               ("milliseconds", "ms to PTX", ".0f"), ("ptx", "PTX", "d"), ("sass", "SASS", "d"),
               ("registers", "registers", "d"), ("spill_bytes", "spills", "d")]
    cells = [[title for _, title, _ in columns]]
    cells += [[format(row[key], spec) for key, _, spec in columns] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    for row in cells:
        print("  ".join(cell.ljust(width) if spec == "s" else cell.rjust(width)
                        for cell, width, (_, _, spec) in zip(row, widths, columns)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chips", default="sm_80,sm_90a,sm_100a", help="comma-separated (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=9, help="counted runs of each compiler (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="also write the results, with provenance, to this file")
    args = parser.parse_args()
    if args.runs < 1:
        parser.error("--runs must be at least 1")

    bench = Bench(args.runs)
    provenance = bench.provenance()
    rows = []
    for chip in args.chips.split(","):
        print(f"measuring {chip} …", file=sys.stderr)
        rows += bench.measure(chip)
    for key, value in provenance.items():
        print(f"{key + ':':8} {value}")
    print()
    print_table(rows)
    for ours, theirs in zip(rows[::2], rows[1::2]):
        print(f"\n{ours['chip']}: {ours['milliseconds'] / theirs['milliseconds']:.2f} of nvcc's time, "
              f"{ours['sass'] / theirs['sass']:.2f} of its instructions", end="")
    print()
    if args.json:
        args.json.write_text(json.dumps({"provenance": provenance, "results": rows}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
