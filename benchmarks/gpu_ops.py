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
import dataclasses
import json
import multiprocessing
import os
import re
import sys
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from command import Command
from measure import Result, brief, say
from provenance import read_gpu
from record import Record
from report import Table

CHIP = "sm_90a"
PEAKS = {"H100": (3.35e12, 989e12), "H200": (4.8e12, 989e12), "GH200": (4.9e12, 989e12), "B200": (7.67e12, 2250e12)}
"""Bytes, and operations of bf16, per second, by words of the device's name."""
CEILINGS = "ceilings"
NO_GRAPH = "no graph: "
PEERS = "PyTorch", "Triton", "FlashInfer"


def make_command() -> Command:
    command = Command("gpu_ops.py", __doc__)
    command.add("--target", default=f"cuda:{CHIP}", help="as in kvcache.jit; default %(default)s")
    command.add("--only", default="", help="a regular expression for the names of works")
    command.add("--seconds", type=float, default=240, help="for all, default %(default)s")
    command.add("--work-seconds", type=float, default=25, help="for one work, default %(default)s")
    command.add("--small", action="store_true", help="few sequences of few tokens")
    command.add("--no-peers", action="store_true", help="only operations of kvcache")
    command.add_count("--jobs", min(os.cpu_count() or 1, 12), "processes that compile first")
    command.add("--list", action="store_true", help="prints the names of the works")
    command.add("--compile", action="store_true", help="only compiles, and prints what the kernels take")
    command.add("--show", type=Path, help="prints the table of a file of results")
    return command


def find_works(options: argparse.Namespace) -> list[Any]:
    from gpu_ops_works import WORKS

    works = [work for work in WORKS if re.search(options.only, work.name)]
    if options.no_peers:
        works = [dataclasses.replace(work, peers=()) for work in works]
    return [work.shrink() for work in works] if options.small else works


# --- Processes that compile ------------------------------------------------------------------------------------------

PROCESSES = multiprocessing.get_context("spawn")


def prepare(options: argparse.Namespace, first: int) -> None:
    """Compiles every ``jobs``-th work into the caches on disk, ours and the driver's."""
    for work in find_works(options)[first :: options.jobs]:
        for variant in work.variants:
            try:
                op = work.make(variant, options.target)
                if options.target.startswith("cuda"):
                    op.program.load(0)
            except Exception as error:  # the work says so again
                say(f"{work.name}, {variant.name}: {error}")


def prepare_all(options: argparse.Namespace, deadline: float) -> None:
    processes = [PROCESSES.Process(target=prepare, args=(options, first)) for first in range(options.jobs)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(max(deadline - time.monotonic(), 0.1))
        process.kill()


def compile_only(options: argparse.Namespace) -> int:
    """Prints what the kernels take of a chip; 1 if one spills."""
    chip = options.target.partition(":")[2] or CHIP
    table = Table("work", "variant", "registers", "bytes spilled")
    for work in find_works(options):
        for variant in work.variants:
            for kernel in work.make(variant, "cpu").compile(chip, "cubin").kernels.values():
                table.add(work.name, variant.name, kernel.registers, kernel.spill_bytes)
    print(table.render(options.markdown))
    return int(any(row[-1] for row in table.rows))


# --- The process that runs -------------------------------------------------------------------------------------------


def serve(options: argparse.Namespace, connection: Connection) -> None:
    """Runs the works whose names arrive, and answers with the results of each.

    Messages are pairs: ``answer``, ``at`` with the contender that runs now, and ``lost`` with the reason.
    """
    os.dup2(2, 1)  # what others print is no table
    import gc

    import gpu_ops_bench
    import gpu_ops_run
    import torch

    by_name = {work.name: work for work in find_works(options)}
    is_cuda = options.target.startswith("cuda")
    connection.send(("answer", gpu_ops_bench.describe_device(is_cuda)))
    while True:
        name, left_out, no_graph = connection.recv()
        try:
            if name == CEILINGS:
                results = gpu_ops_run.run_ceilings()
            else:
                results = gpu_ops_run.run(
                    by_name[name], options.target, left_out, no_graph, lambda at: connection.send(("at", at))
                )
        except Exception as error:
            if is_cuda and is_lost():
                connection.send(("lost", brief(error)))
                os._exit(1)
            results = [Result(name, "", "", "failed", brief(error))]
        gc.collect()
        try:
            if is_cuda:
                torch.cuda.empty_cache()
        except Exception:  # a capture has failed, and PyTorch's allocator still waits for its end
            connection.send(("answer", results))
            return
        connection.send(("answer", results))


def is_lost() -> bool:
    """Returns whether a kernel has failed, so that nothing runs in the context of this process."""
    import torch

    try:
        return bool(torch.ones(1, device="cuda").item() != 1)
    except Exception:  # PyTorch has several
        return True


class Worker:
    """The process that runs works. ``at`` is the contender that it has reached, and ``why`` the reason of its end."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._connection, theirs = PROCESSES.Pipe()
        self._process = PROCESSES.Process(target=serve, args=(options, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self.at = self.why = ""

    def send(self, *message: Any) -> None:
        self.at = self.why = ""
        try:
            self._connection.send(message)
        except OSError:
            pass  # it has ended, and has no answer

    def take(self, seconds: float) -> Any:
        """Waits for an answer; None where the process has ended, or was ended because it took too long."""
        deadline = time.monotonic() + max(seconds, 0.1)
        try:
            while self._connection.poll(max(deadline - time.monotonic(), 0)):
                kind, value = self._connection.recv()
                if kind == "answer":
                    return value
                setattr(self, {"at": "at", "lost": "why"}[kind], value)
        except (EOFError, OSError):
            pass
        self.end()
        return None

    def end(self) -> None:
        self._process.kill()
        self._process.join()


# --- Results ---------------------------------------------------------------------------------------------------------


def rate(result: Result, device: str) -> None:
    """Adds rates to a result, and parts of the peaks of the device."""
    figures = result.figures
    times = [figures[key] for key in ("ms", "graph_ms") if figures.get(key)]
    if not times or result.status == "wrong":
        return
    seconds = min(times) / 1e3
    words = re.split(r"[\s-]", device)
    bandwidth, tensor = next((peaks for name, peaks in PEAKS.items() if name in words), (0.0, 0.0))
    figures |= {"gbps": figures["bytes"] / seconds / 1e9, "tflops": figures["flops"] / seconds / 1e12}
    if bandwidth:
        figures["bandwidth_part"] = figures["bytes"] / seconds / bandwidth
        figures["tensor_part"] = figures["flops"] / seconds / tensor


def tabulate(results: Sequence[Result]) -> Table:
    """Makes the table of rated results."""
    table = Table(
        "work", "contender", "status", ("ms", "{:.4f}"), ("graph", "{:.4f}"), ("GB/s", "{:.0f}"),
        ("of bandwidth", "{:.0%}"), ("TFLOPS", "{:.0f}"), ("of tensor cores", "{:.0%}"), ("error", "{:.1e}"), "note",
    )  # fmt: skip
    for result in results:
        hidden = () if result.figures.get("flops") else ("tflops", "tensor_part")
        keys = "ms", "graph_ms", "gbps", "bandwidth_part", "tflops", "tensor_part", "error"
        numbers = (None if key in hidden else result.figures.get(key) for key in keys)
        table.add(result.work, result.contender, result.status, *numbers, result.note)
    return table


class Run:
    """The run of all works, by one worker after the other.

    Attributes:
        left_out: By work, the contenders that have ended a process.
        no_graph: The contenders that get no CUDA graphs, as theirs have failed.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.names = [work.name for work in find_works(options)]
        if options.target.startswith("cuda"):
            self.names.insert(0, CEILINGS)
        self.left_out: dict[str, list[str]] = {}
        self.no_graph: set[str] = set()
        self.results: list[Result] = []
        self.facts: dict[str, Any] = read_gpu()
        self.record = Record("python benchmarks/gpu_ops.py", driver=self.facts.get("driver"))
        self.begin = time.monotonic()
        self.worker, self.is_started = Worker(options), False

    def restart(self) -> None:
        self.worker.end()
        self.worker, self.is_started = Worker(self.options), False

    def save(self) -> None:
        self.record.device = self.facts.get("device", "unknown")
        self.record.software = {name: self.facts[name] for name in ("torch", "cuda") if self.facts.get(name)}
        self.record.tables = {"operations": tabulate(self.results)}
        self.record.details = {"facts": self.facts, "results": self.results}
        if self.options.json:
            self.record.save(self.options.json)

    def run(self) -> None:
        """Runs as many works as the time allows."""
        deadline = self.begin + self.options.seconds
        prepare_all(self.options, self.begin + self.options.seconds / 3)
        self.facts["prepared_s"] = round(time.monotonic() - self.begin, 1)
        failed_starts = 0
        while self.names and time.monotonic() < deadline and failed_starts < 3:
            if not self.is_started:
                found = self.worker.take(min(120, deadline - time.monotonic()))
                if found is None:
                    failed_starts += 1
                    self.restart()
                    continue
                self.facts.update(found)
                self.is_started = True
            start = time.monotonic()
            for result in self.run_work(self.names.pop(0), min(self.options.work_seconds, deadline - start)):
                result.figures["work_s"] = round(time.monotonic() - start, 2)
                rate(result, self.facts["device"])
                self.results.append(result)
                cells = tabulate(self.results[-1:])
                say("  ".join(filter(None, cells.show(cells.rows[0]))))
            self.save()
        self.worker.end()
        self.facts["total_s"] = round(time.monotonic() - self.begin, 1)
        self.save()

    def run_work(self, name: str, seconds: float) -> list[Result]:
        """Runs a work. Where its process ends, the result has the reason, and other contenders get another turn."""
        start = time.monotonic()
        self.worker.send(name, self.left_out.get(name, []), sorted(self.no_graph))
        answer = self.worker.take(seconds)
        if answer is None:
            at = self.worker.at
            why = self.worker.why or f"the process ended, or was ended, after {time.monotonic() - start:.0f} s"
            if at or name not in self.left_out:  # when all works had theirs
                self.left_out.setdefault(name, []).append(at)
                self.names.append(name)
            self.restart()
            return [Result(name, "", at, "failed", why)]
        failures = {result.contender for result in answer if NO_GRAPH in result.note}
        if failures - self.no_graph:  # what failed may have left this process in disorder
            self.no_graph |= failures
            self.restart()
        return answer

    def present(self) -> int:
        """Prints the results; 1 where one of ours is wrong, or a work was not run."""
        print(self.record.render(self.options.markdown))
        print(", ".join(f"{name}: {value}" for name, value in self.facts.items()))
        if self.names:
            print(f"not run: {', '.join(self.names)}")
        bad = [result for result in self.results if result.status in ("wrong", "failed")]
        for result in bad:
            print(f"{result.status}: {result.work}, {result.contender}: {result.note}")
        return int(bool(self.names) or any(not result.contender.startswith(PEERS) for result in bad))


def main(arguments: list[str] | None = None) -> int:
    options = make_command().parse(arguments)
    if options.show:
        found = json.loads(options.show.read_text())
        print(", ".join(f"{name}: {value}" for name, value in found["facts"].items()), end="\n\n")
        print(tabulate([Result(**result) for result in found["results"]]).render(options.markdown))
        return 0
    if options.list:
        print("\n".join(work.name for work in find_works(options)))
        return 0
    if options.compile:
        return compile_only(options)
    run = Run(options)
    run.run()
    return run.present()


if __name__ == "__main__":
    sys.exit(main())
