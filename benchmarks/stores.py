#!/usr/bin/env python3
"""Compares kvcache.stores.Folder with one write or read of the same bytes and one xxh3-128: CPU time, medians of the rounds.

The values are pages of 2 MiB, in files of a temporary folder. In a round, each contender writes all values to new files,
and reads them into the same buffers. The page cache of the machine is warm. CPU time is that of all threads. --objects
adds kvcache.stores.NIXLObjects beside NIXL alone, with moto as S3, by elapsed time.

examples:
  scripts/bench stores
  scripts/bench stores --folder /dev/shm --rounds 20
  scripts/bench stores --objects
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import object_stores
from command import Command
from provenance import list_versions
from record import Record
from report import Table

SIZE = 2 << 20
COUNT = 32


class Plain:
    """One call of the system and one digest for each value."""

    def __init__(self, path: Path) -> None:
        import xxhash

        self._digest = xxhash.xxh3_128_digest
        self._path = path
        path.mkdir()

    def put(self, values: list[np.ndarray]) -> None:
        for number, value in enumerate(values):
            self._digest(value)
            file = os.open(self._path / str(number), os.O_CREAT | os.O_WRONLY, 0o600)
            assert os.pwrite(file, value, 0) == SIZE
            os.close(file)

    def get(self, buffers: list[np.ndarray]) -> None:
        for number, buffer in enumerate(buffers):
            file = os.open(self._path / str(number), os.O_RDONLY)
            assert os.preadv(file, [buffer], 0) == SIZE
            os.close(file)
            self._digest(buffer)


class Store:
    """Ours, which finds wrong values, keeps a limit of bytes, and shows no half file."""

    def __init__(self, path: Path) -> None:
        from kvcache.stores import Folder

        self._folder = Folder(path, 1 << 40, deadline=60.0)
        for number in range(256):  # as after some values
            (path / f"{number:02x}").mkdir()
        self._keys = [os.urandom(32) for _ in range(COUNT)]

    def put(self, values: list[np.ndarray]) -> None:
        copy = self._folder.begin_put(self._keys, [value.data for value in values])
        copy.wait()
        assert all(copy.done)

    def get(self, buffers: list[np.ndarray]) -> None:
        copy = self._folder.begin_get(self._keys, [buffer.data for buffer in buffers])
        copy.wait()
        assert all(copy.done)


CONTENDERS: dict[str, Callable[[Path], Plain | Store]] = {"Folder": Store, "one call and one digest": Plain}


def allocate() -> list[np.ndarray]:
    """Memory of values, in use and aligned as a manager's is. Reads to other memory are slower on some processors."""
    memories = [np.ones(SIZE + 64, np.uint8) for _ in range(COUNT)]
    starts = (-memory.ctypes.data % 64 for memory in memories)
    return [memory[start : start + SIZE] for start, memory in zip(starts, memories, strict=True)]


def timed(call: Callable[[list[np.ndarray]], None], arrays: list[np.ndarray]) -> float:
    """The rate of a call in GB per second of CPU time."""
    start = time.process_time()
    call(arrays)
    return COUNT * SIZE / (time.process_time() - start) / 1e9


def run_round(root: Path, values: list[np.ndarray], turn: int) -> dict[str, tuple[float, float]]:
    """The rates of writing and reading of each contender, which take turns to be first."""
    rates = {}
    for name in sorted(CONTENDERS, reverse=turn % 2 > 0):
        contender = CONTENDERS[name](root / name.replace(" ", "-"))
        buffers = allocate()
        rates[name] = timed(contender.put, values), timed(contender.get, buffers)
        assert all((value == buffer).all() for value, buffer in zip(values, buffers, strict=True))
    return rates


def tabulate(contenders: Iterable[str], rounds: list[dict[str, tuple[float, float]]]) -> Table:
    """The rates of two contenders, and the ratio of the first to the second."""
    names = [*contenders]
    table = Table("pages of 2 MiB", *((f"{name}, GB/s", "{:.2f}") for name in names), ("ratio of a round", "{:.2f}"))
    for number, work in enumerate(("written", "read")):
        pairs = [[rates[name][number] for name in names] for rates in rounds]
        rates = map(statistics.median, zip(*pairs, strict=True))
        table.add(work, *([rate] for rate in rates), [statistics.median(ours / plain for ours, plain in pairs)])
    return table


def run_folders(folder: str | None, values: list[np.ndarray], turns: int) -> list[dict[str, tuple[float, float]]]:
    """The rates of the contenders with files, in each round."""
    rounds = []
    for turn in range(turns):
        root = Path(tempfile.mkdtemp(dir=folder))
        try:
            rounds.append(run_round(root, values, turn))
        finally:
            shutil.rmtree(root)
    return rounds


def measure(options: argparse.Namespace) -> Record:
    rng = np.random.default_rng(0)
    values = allocate()
    for value in values:
        value[:] = rng.integers(0, 256, SIZE, np.uint8)
    tables = {"stores": tabulate(CONTENDERS, run_folders(options.folder, values, options.rounds))}
    packages = ["numpy", "xxhash"]
    if options.objects:
        with object_stores.Server() as server:
            rounds = [object_stores.run_round(server.options, values, turn) for turn in range(options.rounds)]
        tables["objects"] = tabulate(object_stores.CONTENDERS, rounds)
        packages += ["nixl_cu12", "moto"]
    return Record(
        "scripts/bench stores",
        tables,
        software=list_versions(*packages),
        runs=f"{COUNT} values in each of {options.rounds} rounds; medians of rates, per second of CPU time for files and "
        "of elapsed time for objects, and of ratios",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    command = Command("scripts/bench stores", __doc__, "stores")
    command.add("--folder", metavar="PATH", help="where files are made (default: the system's folder)")
    command.add("--objects", action="store_true", help="measure objects in S3 as well")
    command.add_count("--rounds", 12, "of each contender")
    return command.run(measure, command.parse(arguments))


if __name__ == "__main__":
    sys.exit(main())
