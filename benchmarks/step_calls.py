#!/usr/bin/env python3
"""Times calls of operations on the CPU, where the work is that of one token: the rest is the cost of the call.

A step has one sequence with one new token, of 8 heads of 128 bf16 elements, and attention has 32 query heads. Contenders
take turns in each round; the table has medians (least) of CPU time. PyTorch writes keys and values with two calls of
`index_put_`, and attends with `scaled_dot_product_attention` to one contiguous token. Without rows, an operation
computes nothing. `flash_attn_with_kvcache` is that of kvcache.torch; it appends a token and attends. FlashInfer's calls
need a GPU, and so do those of vLLM's wheel. `scripts/bench calls` installs PyTorch; without it, its columns are empty.

Calls for CUDA end in the driver of the tests, which does nothing: the time is that of our code up to it. The chip is sm_80,
as newer ones need descriptors, which are the driver's work.

A process starts Python, and ends after an import, or after the first call of an operation that is stored on disk. It
finds its byte code, as in an installed package.

examples:
  scripts/bench calls
  scripts/bench calls --rounds 31 --markdown
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from command import HINT, Command
from measure import HostClock, say, spread, take_turns
from provenance import BUILD, list_versions
from record import Record
from report import Table

try:
    import kvcache
    import ml_dtypes
    import numpy as np
    from calls import open_standin, place
except ImportError as error:
    sys.exit(f"error: {error}\n  {HINT}")
try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

HEADS, QUERY_HEADS, SIZE, LAYERS = 8, 32, 128, 64
FLASH = "flash_attn_with_kvcache"
STANDIN = BUILD / "test" / "Runtime" / "libfake_cuda.so"
"""The driver of the tests, where they are built."""
TIMES = "{:.2f} ({:.2f})"
COLUMNS = "ml_dtypes", "torch", "PyTorch"

Call = Callable[[], Any]

IMPORTS = "import numpy, ml_dtypes"
PROCESSES = {
    "import of NumPy and ml_dtypes": IMPORTS,
    "import of kvcache": "import kvcache",
    "import of all of kvcache": "import kvcache; [getattr(kvcache, name) for name in kvcache.__all__]",
    "first append, stored on disk": f"""{IMPORTS}, kvcache as k
params = k.KVCacheParams("bf16", {HEADS}, {SIZE}, page_size=16, total_num_layers=1)
blocks = numpy.zeros((2, 2, 1, 16, {HEADS}, {SIZE}), ml_dtypes.bfloat16)
new = numpy.ones((1, {HEADS}, {SIZE}), ml_dtypes.bfloat16)
step = k.StepInputs.of(blocks=blocks, lengths=numpy.zeros(1, int), lut=numpy.ones((1, 1), int), row_offsets=numpy.arange(2))
k.ops.append(params)(step, 0, new, new)
assert blocks[1, :, 0, 0].all()""",
}


def make_params() -> kvcache.KVCacheParams:
    return kvcache.KVCacheParams("bf16", HEADS, SIZE, page_size=16, total_num_layers=2)


def list_calls(
    zeros: Callable[[tuple[int, ...]], Any], integers: Callable[[Any], Any], target: str = "cpu"
) -> dict[str, Call]:
    """Calls of ours by title, with arrays of a library.

    Args:
        zeros: Makes an array of bf16.
        integers: Makes an array of int32.
        target: The target of the operations.
    """
    append = kvcache.ops.append(make_params(), target=target)
    attend = kvcache.ops.attention(make_params(), QUERY_HEADS, target=target)
    split = kvcache.ops.attention(make_params(), QUERY_HEADS, target=target, split_tokens=256)
    blocks = zeros((4, 2, 2, 16, HEADS, SIZE))

    def make_step(rows: int) -> kvcache.StepInputs:
        return kvcache.StepInputs.of(
            blocks=blocks,
            lengths=integers([0] * rows),
            lut=integers(np.array([[2, 0]])[:rows]),
            row_offsets=integers([0, 1][: rows + 1]),
            max_seq_length=1,
            max_cache_length=0,
        )

    step, empty = make_step(1), make_step(0)
    k, v, q, out = zeros((1, HEADS, SIZE)), zeros((1, HEADS, SIZE)), zeros((1, QUERY_HEADS, SIZE)), zeros((1, QUERY_HEADS, SIZE))
    no_q, no_out = zeros((0, QUERY_HEADS, SIZE)), zeros((0, QUERY_HEADS, SIZE))
    bound_append, bound_attend = append.bind(step, 1), attend.bind(step, 1, scale=0.1)
    bound_empty, bound_split = attend.bind(empty, 1, scale=0.1), split.bind(step, 1, scale=0.1)

    def run_layers() -> None:
        for _ in range(LAYERS):
            append(step, 1, k, v)
            attend(step, 1, q, out=out, scale=0.1)

    return {
        "append": lambda: append(step, 1, k, v),
        "append, bound": lambda: bound_append(k, v),
        "attention": lambda: attend(step, 1, q, out=out, scale=0.1),
        "attention, bound": lambda: bound_attend(q, out=out),
        "attention with splits, bound": lambda: bound_split(q, out=out),
        "attention without rows": lambda: attend(empty, 1, no_q, out=no_out, scale=0.1),
        "attention without rows, bound": lambda: bound_empty(no_q, out=no_out),
        f"append and attention of {LAYERS} layers": run_layers,
    }


def list_lookups() -> dict[str, Call]:
    """Look-ups of operations, by title."""
    equal = make_params()  # to the one of the first call
    return {"operation of equal parameters": lambda: kvcache.ops.append(equal)}


def list_flash_calls() -> dict[str, Call]:
    """Calls with FlashAttention's arguments, by title."""
    from kvcache.torch import flash_attn_with_kvcache

    keys, values = torch.zeros(2, 4, 16, HEADS, SIZE, dtype=torch.bfloat16)
    k, v = torch.zeros(2, 1, 1, HEADS, SIZE, dtype=torch.bfloat16)
    q = torch.zeros(1, 1, QUERY_HEADS, SIZE, dtype=torch.bfloat16)
    lengths, table = torch.zeros(1, dtype=torch.int32), torch.tensor([[2, 0]], dtype=torch.int32)
    options = {"cache_seqlens": lengths, "block_table": table, "causal": True}
    return {FLASH: lambda: flash_attn_with_kvcache(q, keys, values, k, v, **options)}


def list_peers() -> dict[str, Call]:
    """Calls of PyTorch, by the title of ours."""
    keys, values, k, v = (torch.zeros(rows, HEADS, SIZE, dtype=torch.bfloat16) for rows in (64, 64, 1, 1))
    slot = (torch.tensor([32]),)
    q, one = (torch.zeros(1, heads, 1, SIZE, dtype=torch.bfloat16) for heads in (QUERY_HEADS, HEADS))
    attend = torch.nn.functional.scaled_dot_product_attention

    def append() -> None:
        keys.index_put_(slot, k)
        values.index_put_(slot, v)

    def run_layer() -> None:
        append()
        attend(q, one, one, enable_gqa=True)

    def run_layers() -> None:
        for _ in range(LAYERS):
            run_layer()

    return {
        "append": append,
        "attention": lambda: attend(q, one, one, enable_gqa=True),
        "attention without rows": lambda: attend(q[:, :, :0], one, one, enable_gqa=True),
        FLASH: run_layer,
        f"append and attention of {LAYERS} layers": run_layers,
    }


def list_contenders() -> dict[str, dict[str, Call]]:
    """The calls of each title, by column."""
    calls = {"ml_dtypes": list_calls(lambda shape: np.zeros(shape, ml_dtypes.bfloat16), lambda x: np.array(x, np.int32))}
    calls["ml_dtypes"] |= list_lookups()
    if torch is not None:
        calls["torch"] = list_calls(
            lambda shape: torch.zeros(shape, dtype=torch.bfloat16), lambda x: torch.tensor(x, dtype=torch.int32)
        )
        calls["torch"] |= list_flash_calls()
        calls["PyTorch"] = list_peers()
    titles = dict.fromkeys(title for own in calls.values() for title in own)
    return {title: {column: own[title] for column, own in calls.items() if title in own} for title in titles}


def repeat(call: Call, number: int) -> Callable[[int], None]:
    def run(turn: int) -> None:
        for _ in range(number):
            call()

    return run


def measure_calls(rounds: int, number: int) -> Table:
    """Microseconds of calls; a round has ``number`` of each."""
    table = Table("call", *((f"{title}, us", TIMES) for title in ("kvcache, ml_dtypes", "kvcache, torch", "PyTorch")))
    for title, calls in list_contenders().items():
        say(title)
        cells = time_contenders(calls, rounds, max(1, number // LAYERS) if "layers" in title else number)
        table.add(title, *(cells.get(column) for column in COLUMNS))
    return table


def time_contenders(calls: dict[str, Call], rounds: int, number: int) -> dict[str, list[float]]:
    """The median and the least microseconds of calls."""
    turns = {column: repeat(call, number) for column, call in calls.items()}
    times = take_turns(turns, rounds, clock=HostClock(time.thread_time))
    return {column: [1e3 * value / number for value in spread(found)[:2]] for column, found in times.items()}


def measure_launches(driver: Any, rounds: int, number: int) -> Table:
    """Microseconds of calls for CUDA, with a driver of the tests that is this process' driver."""
    table = Table("call for CUDA", ("kvcache, us", TIMES))
    calls = list_calls(
        lambda shape: place(driver, np.zeros(shape, ml_dtypes.bfloat16)),
        lambda x: place(driver, np.array(x, np.int32)),
        target="cuda:sm_80",
    )
    driver.fakeCudaSetIdle(True)
    try:
        for title, call in calls.items():
            if "layers" not in title and "without rows" not in title:
                say(f"{title}, CUDA")
                table.add(title, time_contenders({"": call}, rounds, number)[""])
    finally:
        driver.fakeCudaSetIdle(False)
    return table


def time_process(code: str) -> float:
    """Milliseconds of CPU time of a process of Python, which keeps its byte code."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def measure_processes(rounds: int) -> Table:
    table = Table("process", ("CPU time, ms", "{:.0f} ({:.0f})"))
    times: dict[str, list[float]] = {title: [] for title in PROCESSES}
    for turn in range(rounds + 1):  # the first stores the operation
        for title, code in PROCESSES.items():
            found = time_process(code)
            times[title] += [found] if turn else []
    for title, found in times.items():
        table.add(title, spread(found)[:2])
    return table


def measure(options: argparse.Namespace) -> Record:
    if torch is not None:
        torch.set_num_threads(1)
    tables = {
        "calls": measure_calls(options.rounds, options.number),
        "processes": measure_processes(options.rounds),
    }
    if STANDIN.exists():
        tables["launches"] = measure_launches(open_standin(str(STANDIN)), options.rounds, options.number)
    software = list_versions("numpy", "ml_dtypes", "torch", "apache-tvm-ffi")
    runs = f"{options.rounds} rounds of {options.number} calls"
    return Record("scripts/bench calls", tables, software=software, runs=runs)


def main(arguments: list[str] | None = None) -> int:
    command = Command("scripts/bench calls", __doc__, "calls")
    command.add_count("--rounds", 21, "counted rounds")
    command.add_count("--number", 2000, "calls in a round")
    return command.run(measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
