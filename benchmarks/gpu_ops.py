#!/usr/bin/env python3
"""Runs the operations of kvcache.ops on a GPU: checks each against float64, then times it beside PyTorch and Triton.

Needs kvcache, PyTorch, and a GPU of the target's kind. One process runs the works one after the other; where it dies or
takes too long, another one goes on with the next work. Other processes compile the operations before.

Times are medians: ms of single calls between two events, and graph of the calls of a CUDA graph, divided by their number.
GB/s and TFLOP/s are those of the smaller one, of the bytes of the cache that are needed, each once, and of queries and
results. Peaks are those of data sheets. An error is relative to the length of a head's output for attention, and to the
largest element of a head for append; it is wrong above its bound.

examples:
  python benchmarks/gpu_ops.py --json results.json --seconds 240
  python benchmarks/gpu_ops.py --only 'MLA|prompt' --json mla.json
  python benchmarks/gpu_ops.py --show results.json --markdown
  FLASHINFER_DECODE=batch_decode.so FLASHINFER_MLA=batch_mla.so python benchmarks/gpu_ops.py    # see gpu_ops_peers.py
  PYTHONPATH=build/python build/venv/bin/python benchmarks/gpu_ops.py --compile       # code, registers, spills
  PYTHONPATH=build/python PYTHON benchmarks/gpu_ops.py --target cpu --small           # with PyTorch, without a GPU
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

CHIP = "sm_90a"
PEAKS = {"H100": (3.35e12, 989e12), "H200": (4.8e12, 989e12), "GH200": (4.9e12, 989e12), "B200": (7.67e12, 2250e12)}
"""Bytes, and operations of bf16, per second, by words of the device's name."""
MARK, PROGRESS, LOST = "RESULT ", "AT ", "LOST "
CEILINGS = "ceilings"
NO_GRAPH = "no graph: "
PEERS = "PyTorch", "Triton", "FlashInfer"
WIDTHS = (44, 20, 8, 9, 9, 7, 5, 7, 5, 9)
TITLES = ("work", "contender", "status", "ms", "graph", "GB/s", "peak", "TFLOPS", "peak", "error")


# --- What works need -----------------------------------------------------------------


def read_options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default=f"cuda:{CHIP}", help="as in kvcache.jit; default %(default)s")
    parser.add_argument("--only", default="", help="a regular expression for the names of works")
    parser.add_argument("--json", type=Path, help="a file for the results, written after each work")
    parser.add_argument("--seconds", type=float, default=240, help="for all, default %(default)s")
    parser.add_argument("--work-seconds", type=float, default=25, help="for one work, default %(default)s")
    parser.add_argument("--small", action="store_true", help="few sequences of few tokens")
    parser.add_argument("--no-peers", action="store_true", help="only operations of kvcache")
    parser.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, 12), help="processes that compile first")
    parser.add_argument("--list", action="store_true", help="prints the names of the works")
    parser.add_argument("--compile", action="store_true", help="only compiles, and prints what the kernels take")
    parser.add_argument("--show", type=Path, help="prints the table of a file of results")
    parser.add_argument("--markdown", action="store_true", help="the table of --show in Markdown")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--prepare", type=int, nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def find_works(options: argparse.Namespace) -> list[Any]:
    import dataclasses

    from gpu_ops_works import WORKS

    works = [work for work in WORKS if re.search(options.only, work.name)]
    if options.no_peers:
        works = [dataclasses.replace(work, peers=()) for work in works]
    return [work.shrink() for work in works] if options.small else works


# --- Processes that compile ----------------------------------------------------------


def prepare(options: argparse.Namespace, first: int, step: int) -> None:
    """Compiles some works into the caches on disk, ours and the driver's."""
    for work in find_works(options)[first::step]:
        for variant in work.variants:
            try:
                op = work.make(variant, options.target)
                if options.target.startswith("cuda"):
                    op.program.load(0)
            except Exception as error:  # the work says so again
                print(f"{work.name}, {variant.name}: {error}", file=sys.stderr)


def start_again(options: argparse.Namespace, *more: str, **pipes: Any) -> subprocess.Popen[str]:
    """This program with the same works."""
    command = [sys.executable, __file__, "--target", options.target, "--only", options.only, *more]
    command += ["--small"] * options.small + ["--no-peers"] * options.no_peers
    return subprocess.Popen(command, text=True, **pipes)


def prepare_all(options: argparse.Namespace, deadline: float) -> None:
    processes = [start_again(options, "--prepare", str(i), str(options.jobs)) for i in range(options.jobs)]
    for process in processes:
        try:
            process.wait(max(deadline - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            process.kill()


def compile_only(options: argparse.Namespace) -> int:
    """What the kernels take of a chip; 1 if one spills."""
    chip = options.target.partition(":")[2] or CHIP
    found = 0
    for work in find_works(options):
        for variant in work.variants:
            compiled = work.make(variant, "cpu").compile(chip, "cubin")
            for kernel in compiled.kernels.values():
                found |= kernel.spill_bytes > 0
                print(
                    f"{work.name:44} {variant.name:16} {kernel.registers:4} registers, "
                    f"{kernel.spill_bytes} bytes spilled",
                    flush=True,
                )
    return found


# --- The process that runs -----------------------------------------------------------


def work_off(options: argparse.Namespace) -> None:
    """Runs the works whose names arrive, and answers with a line of JSON for each."""
    import gc

    import gpu_ops_run
    import gpu_ops_timing
    import torch

    by_name = {work.name: work for work in find_works(options)}
    is_cuda = options.target.startswith("cuda")
    moment = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    facts: dict[str, Any] = {"date": moment, "torch": torch.__version__, "device": "the host"}
    if is_cuda:
        properties = torch.cuda.get_device_properties(0)
        facts.update(
            device=properties.name, multiprocessors=properties.multi_processor_count, l2=gpu_ops_run.find_l2(),
            memory=properties.total_memory, cuda=torch.version.cuda,
        )  # fmt: skip
        torch.zeros(1, device="cuda")
    print(MARK + json.dumps(facts), flush=True)
    for line in sys.stdin:
        name, left_out, no_graph = json.loads(line)
        try:
            if name == CEILINGS:
                results = gpu_ops_run.run_ceilings()
            else:
                results = gpu_ops_run.run(by_name[name], options.target, left_out, no_graph, report)
        except Exception as error:
            note = gpu_ops_timing.brief(error)
            if is_cuda and is_lost():
                print(LOST + note, flush=True)
                os._exit(1)
            results = [{"work": name, "contender": "", "status": "failed", "note": note}]
        gc.collect()
        if is_cuda:
            try:
                torch.cuda.empty_cache()
            except Exception:  # a capture has failed, and PyTorch's allocator still waits for its end
                print(MARK + json.dumps(results), flush=True)
                return
        print(MARK + json.dumps(results), flush=True)


def is_lost() -> bool:
    """Whether nothing runs in this process's context any more, because a kernel has failed."""
    import torch

    try:
        return bool(torch.ones(1, device="cuda").item() != 1)
    except Exception:  # PyTorch has several
        return True


def report(contender: str) -> None:
    """Says what runs now, in case that it ends the process."""
    print(PROGRESS + contender, flush=True)


class Worker:
    """A process that runs works, and a thread that reads its answers. ``at`` is the contender that it has come to."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._process = start_again(options, "--worker", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._answers: queue.Queue[str | None] = queue.Queue()
        self.at = self.why = ""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            if line.startswith(MARK):
                self._answers.put(line.removeprefix(MARK))
            elif line.startswith(PROGRESS):
                self.at = line.removeprefix(PROGRESS).rstrip("\n")
            elif line.startswith(LOST):
                self.why = line.removeprefix(LOST).rstrip("\n")
        self._answers.put(None)

    def send(self, name: str, left_out: list[str], no_graph: list[str]) -> None:
        assert self._process.stdin
        self.at = self.why = ""
        try:
            self._process.stdin.write(json.dumps([name, left_out, no_graph]) + "\n")
            self._process.stdin.flush()
        except OSError:
            pass  # it has ended, and has no answer

    def take(self, seconds: float) -> Any:
        """An answer; None where the process has ended, or was ended because it took too long."""
        try:
            answer = self._answers.get(timeout=max(seconds, 0.1))
        except queue.Empty:
            answer = None
        if answer is None:
            self.end()
        return None if answer is None else json.loads(answer)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


# --- Results -------------------------------------------------------------------------


def rate(result: dict[str, Any], device: str) -> dict[str, Any]:
    """The result with rates, and parts of the peaks of the device."""
    times = [result[key] for key in ("ms", "graph_ms") if result.get(key)]
    if not times or result.get("status") == "wrong":
        return result
    seconds = min(times) / 1e3
    words = re.split(r"[\s-]", device)
    bandwidth, tensor = next((peaks for name, peaks in PEAKS.items() if name in words), (0.0, 0.0))
    rates = {"gbps": result["bytes"] / seconds / 1e9, "tflops": result["flops"] / seconds / 1e12}
    if bandwidth:
        rates.update(of_bandwidth=result["bytes"] / seconds / bandwidth, of_tensor=result["flops"] / seconds / tensor)
    return {**result, **rates}


def cells(result: dict[str, Any]) -> tuple[str, ...]:
    """The row of the table; the note takes the place of what is missing."""

    def number(key: str, form: str) -> str:
        value = result.get(key)
        return "" if value is None else format(value, form)

    has_flops = bool(result.get("flops"))
    return (
        result["work"], result["contender"], result["status"], number("ms", ".4f"), number("graph_ms", ".4f"),
        number("gbps", ".0f"), number("of_bandwidth", ".0%"), number("tflops", ".0f") if has_flops else "",
        number("of_tensor", ".0%") if has_flops else "", number("error", ".1e"),
    )  # fmt: skip


def show_row(row: tuple[str, ...], note: str = "") -> None:
    parts = [cell.ljust(width) if i < 3 else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, WIDTHS))]
    print(" ".join(parts).rstrip() + (f"  ({note})" if note else ""), flush=True)


def show(path: Path, markdown: bool) -> None:
    """The table of a file."""
    found = json.loads(path.read_text())
    print(", ".join(f"{name}: {value}" for name, value in found["facts"].items()), end="\n\n")
    rows = [TITLES, *(cells(result) for result in found["results"])]
    if not markdown:
        for row, result in zip(rows, [{}, *found["results"]]):
            show_row(row, result.get("note", ""))
        return
    rows.insert(1, tuple("---" if i < 3 else "--:" for i in range(len(TITLES))))
    for row in rows:
        print(f"| {' | '.join(row)} |")


def find_driver() -> dict[str, Any]:
    """The version of the driver and what the GPU is set to, where NVIDIA's tool tells."""
    fields = "driver_version,clocks.max.sm,clocks.max.mem,power.limit"
    try:
        command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"]
        found = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(zip(fields.split(","), (value.strip() for value in found.stdout.splitlines()[0].split(","))))


def save(path: Path | None, facts: dict[str, Any], results: list[dict[str, Any]]) -> None:
    if path is None:
        return
    temporary = path.with_suffix(".part")
    temporary.write_text(json.dumps({"facts": facts, "results": results}, indent=1))
    temporary.replace(path)


def run(options: argparse.Namespace) -> int:
    begin = time.monotonic()
    deadline = begin + options.seconds
    names = [work.name for work in find_works(options)]
    left_out: dict[str, list[str]] = {}
    no_graph: set[str] = set()
    facts: dict[str, Any] = find_driver()
    worker = Worker(options)
    prepare_all(options, begin + options.seconds / 3)
    facts["prepared_s"] = round(time.monotonic() - begin, 1)
    if options.target.startswith("cuda"):
        names.insert(0, CEILINGS)
    results: list[dict[str, Any]] = []
    failed_starts = 0
    is_started = False
    show_row(TITLES)
    while names and time.monotonic() < deadline and failed_starts < 3:
        if not is_started:
            found = worker.take(min(120, deadline - time.monotonic()))
            if found is None:
                failed_starts += 1
                worker = Worker(options)
                continue
            facts.update(found)
            is_started = True
        name = names.pop(0)
        start = time.monotonic()
        worker.send(name, left_out.get(name, []), sorted(no_graph))
        answer = worker.take(min(options.work_seconds, deadline - start))
        if answer is None:
            why = worker.why or f"the process ended, or was ended, after {time.monotonic() - start:.0f} s"
            answer = [{"work": name, "contender": worker.at, "status": "failed", "note": why}]
            if worker.at or name not in left_out:  # the others take another turn, when all works had theirs
                left_out.setdefault(name, []).append(worker.at)
                names.append(name)
            worker, is_started = Worker(options), False
        failures = {result["contender"] for result in answer if NO_GRAPH in result.get("note", "")}
        if failures - no_graph and is_started:  # what failed may have left this process in disorder
            no_graph |= failures
            worker.end()
            worker, is_started = Worker(options), False
        for number, result in enumerate(answer):
            result["work_s"] = round(time.monotonic() - start, 2)
            results.append(rate(result, facts["device"]))
            row = cells(results[-1])
            show_row(row if number == 0 else ("", *row[1:]), result.get("note", ""))
        save(options.json, facts, results)
    worker.end()
    facts["total_s"] = round(time.monotonic() - begin, 1)
    save(options.json, facts, results)
    print(", ".join(f"{name}: {value}" for name, value in facts.items()))
    if names:
        print(f"not run: {', '.join(names)}")
    bad = [result for result in results if result["status"] in ("wrong", "failed")]
    for result in bad:
        print(f"{result['status']}: {result['work']}, {result['contender']}: {result.get('note', '')}")
    ours = [result for result in bad if not result["contender"].startswith(PEERS)]
    return int(bool(ours or names))


def main(arguments: list[str] | None = None) -> int:
    options = read_options(arguments)
    if options.show:
        show(options.show, options.markdown)
    elif options.list:
        print("\n".join(work.name for work in find_works(options)))
    elif options.prepare:
        prepare(options, *options.prepare)
    elif options.worker:
        work_off(options)
    elif options.compile:
        return compile_only(options)
    else:
        return run(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
