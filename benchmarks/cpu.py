#!/usr/bin/env python3
"""Times whole-cache operations on one core of the CPU, beside streams of their bytes and peers.

Each contender is compared with NumPy first, and takes its turn in each round. The table has medians (least) of
milliseconds of CPU time. Streams are a plain loop that reads and writes as many bytes as the operation, and computes
nothing: for attention those of the cache, which it reads; for copies elements that are read and written. Rates are of
all these bytes. PyTorch's scaled_dot_product_attention gets a contiguous copy of keys and values, which it does not
have to gather: from bf16, its fastest of bf16 and f32 arrays. OpenVINO's PagedAttention has blocks of 32 tokens, and
appends the last tokens again. `scripts/bench cpu` installs both; without them, their columns are empty. A first call
compiles, with nothing on disk. Prompts have their part of what plain loops of multiply-adds, and of the fastest
instruction, do. They run again in a process for each lower instruction set, in which kvcache and PyTorch have no other.
The last table has times of the wall with one and two threads. The record is that of the CPU's level, as others have
other loops.

examples:
  scripts/bench cpu
  scripts/bench cpu --rounds 21 --markdown
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from command import HINT, Command
from matrix_rate import measure_rates
from measure import Contender, HostClock, say, spread, take_turns, verify
from memory_stream import make_stream
from provenance import list_versions
from record import Record
from report import Table

try:
    import kvcache
    import ml_dtypes
    import numpy as np
    import tvm_ffi
    from kvcache import _native
    from kvcache.compilation import processors
except ImportError as error:
    sys.exit(f"error: {error}\n  {HINT}")
try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]
try:
    from peers import openvino_attention
except ImportError:
    openvino_attention = None  # type: ignore[assignment]

PAGE = 16
TIMES = "{:.1f} ({:.1f})"
ISAS = {
    "AVX-512": {
        "KVCACHE_CPU": "x86-64-v4",
        "ATEN_CPU_CAPABILITY": "avx512",
        "ONEDNN_MAX_CPU_ISA": "AVX512_CORE",
        "MKL_ENABLE_INSTRUCTIONS": "AVX512",
    },
    "AVX2": {
        "KVCACHE_CPU": "x86-64-v3",
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    },
}
"""By instruction set: the environment in which kvcache and PyTorch have no others, and no matrix instructions."""
REST = 0.02
"""Seconds before each call with threads, in which those of the call before stop to wait for work."""
MOST_ERROR = 2e-2
"""The largest error of attention relative to the largest element of a head."""


@dataclass(frozen=True)
class Shape:
    """Attention of the last ``new`` tokens of each of ``batch`` sequences of ``tokens``."""

    title: str
    batch: int
    tokens: int
    heads: int
    query_heads: int
    size: int = 128
    new: int = 1
    dtype: str = "bf16"
    is_saved: bool = False
    """Whether the operation is that of a saved library."""

    @property
    def operations(self) -> int:
        """The operations of both products, for the tokens that each row sees."""
        seen = sum(range(self.tokens - self.new + 1, self.tokens + 1))
        return 4 * self.batch * self.query_heads * self.size * seen


SHAPES = [
    Shape("decode, 8 x 4,096 tokens, 32 over 8 heads", 8, 4096, 8, 32),
    Shape("decode, 8 x 4,096 tokens, 32 over 8 heads, saved library", 8, 4096, 8, 32, is_saved=True),
    Shape("decode, 8 x 4,096 tokens, 32 over 8 heads, f32", 8, 4096, 8, 32, dtype="f32"),
    Shape("decode, 1 x 32,768 tokens, 32 over 8 heads", 1, 32768, 8, 32),
    Shape("decode, 8 x 4,096 tokens, 8 over 8 heads", 8, 4096, 8, 8),
    Shape("decode, 8 x 4,096 tokens, 16 over 1 head", 8, 4096, 1, 16),
    Shape("decode, 32 x 512 tokens, 32 over 8 heads of 64", 32, 512, 8, 32, 64),
]

PROMPTS = [
    Shape("prompt of 512, 32 over 8 heads", 1, 512, 8, 32, new=512),
    Shape("64 tokens after 2,048, 32 over 8 heads", 1, 2048 + 64, 8, 32, new=64),
    Shape("prompt of 2,048, 32 over 8 heads", 1, 2048, 8, 32, new=2048),
]


THREADED = [SHAPES[0], SHAPES[3], *PROMPTS]
"""The works that run with one thread and with two."""


@dataclass(frozen=True)
class Format:
    """A format of a cache, and the error of its elements relative to the largest of a head."""

    title: str
    dtype: str
    config: Any = None
    error: float = 0.0

    @property
    def rows(self) -> str:
        """The format of new and gathered rows."""
        return "f32" if self.dtype == "f32" else "bf16"


FORMATS = [
    Format("bf16", "bf16"),
    Format("f32", "f32"),
    Format("fp8", "f8E4M3FN", kvcache.KVCacheQuantizationConfig("f32", 128), 2**-4),
    Format("int8", "i8", kvcache.KVCacheQuantizationConfig("f32", 128), 2**-7),
    Format("int4", "i4", kvcache.KVCacheQuantizationConfig("f16", 32, "f16"), 2**-3),
]


class SavedProgram:
    """The functions of a program from a saved library."""

    def __init__(self, program: Any) -> None:
        self._program = program
        with tempfile.TemporaryDirectory() as folder:
            program.save_library(f"{folder}/functions.so")
            self._library = tvm_ffi.load_module(f"{folder}/functions.so")

    def signature(self, name: str) -> Any:
        return self._program.signature(name)

    def native(self, name: str) -> None:
        """Calls are those of TVM-FFI."""

    def call(self, name: str, *arguments: Any) -> None:
        getattr(self._library, name)(*self.signature(name).adapt(arguments))


def save(operation: Any) -> Any:
    """Returns the operation with the functions of a saved library."""
    saved = copy.copy(operation)
    vars(saved).pop("_checked", None)  # the checked call of the other program
    saved.program = SavedProgram(operation.program)
    return saved


def fill(shape: Shape) -> tuple[Any, Any, Any]:
    """Makes a cache of one layer with random numbers: its parameters, inputs, and dense keys and values."""
    params = kvcache.KVCacheParams(shape.dtype, shape.heads, shape.size, page_size=PAGE, total_num_layers=1)
    pages = shape.batch * -(-shape.tokens // PAGE)
    manager = kvcache.PagedKVCacheManager(params, max_batch_size=shape.batch, max_seq_len=shape.tokens, num_pages=pages)
    (blocks,) = manager.blocks
    blocks[...] = np.random.default_rng(1).standard_normal(blocks.shape, np.float32).astype(blocks.dtype)
    requests = range(shape.batch)
    for request in requests:
        manager.claim(request, np.arange(shape.tokens - shape.new))
    if shape.tokens > shape.new:
        manager.step(list(requests))
    for request in requests:
        manager.grow(request, np.arange(shape.new))
    inputs = manager.inputs(list(requests))
    paged = blocks[np.asarray(inputs.lut)[:, : -(-shape.tokens // PAGE)], :, 0].swapaxes(2, 3)
    flat = paged.reshape(shape.batch, -1, 2, shape.heads, shape.size)[:, : shape.tokens]
    return params, inputs, [np.ascontiguousarray(flat[:, :, role]) for role in range(2)]


def attend(shape: Shape, q: Any, keys: Any, values: Any, scale: float) -> Any:
    """Computes attention in NumPy, in f32."""
    group = shape.query_heads // shape.heads
    rows = q.astype(np.float32).reshape(shape.batch, shape.new, shape.heads, group, shape.size).transpose(0, 2, 3, 1, 4)
    k, v = (x.astype(np.float32).swapaxes(1, 2)[:, :, None] for x in (keys, values))
    scores = scale * rows @ k.swapaxes(-1, -2)
    positions = np.arange(shape.tokens - shape.new, shape.tokens)
    scores = np.where(np.arange(shape.tokens) <= positions[:, None], scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    out = weights @ v / weights.sum(-1, keepdims=True)
    return out.transpose(0, 3, 1, 2, 4).reshape(q.shape)


def check_close(got: Callable[[], Any], wanted: Any) -> str | None:
    error = np.abs(got() - wanted).max() / np.abs(wanted).max()
    return None if error <= MOST_ERROR else f"an error of {error:.1e}"


def make_streams(read: int, written: int) -> Contender:
    run = make_stream(read, written)
    return Contender("streams", lambda turn: run())


def make_attention(shape: Shape, threads: int = 1) -> tuple[list[Contender], int]:
    params, inputs, (keys, values) = fill(shape)
    operation = kvcache.ops.attention(params, shape.query_heads, threads=threads)
    if shape.is_saved:
        operation = save(operation)
    q = np.random.default_rng(2).standard_normal((shape.batch * shape.new, shape.query_heads, shape.size), np.float32)
    q = q.astype(keys.dtype)
    out, scale = np.empty_like(q), shape.size**-0.5
    wanted = attend(shape, q, keys, values, scale)
    contenders = [
        Contender(
            "kvcache",
            lambda turn: operation(inputs, 0, q, out=out, scale=scale),
            lambda: check_close(lambda: out.astype(np.float32), wanted),
            lambda: out.fill(np.nan),
        ),
        make_streams(2 * keys.nbytes, 0),
    ]
    if torch is not None:
        arrays = [as_torch(array) for array in (q, keys, values)]
        arrays[0] = arrays[0].reshape(shape.batch, shape.new, shape.query_heads, shape.size)
        names = ("f32",) if shape.dtype == "f32" else ("bf16", "f32")
        contenders += [make_torch(shape, arrays, scale, wanted, name) for name in names]
    # No variable limits OpenVINO's instructions, and its runs have one thread.
    if openvino_attention is not None and not shape.is_saved and not find_isa() and threads == 1:
        contenders.append(make_openvino(shape, q, keys, values, scale, wanted))
    return contenders, 2 * keys.nbytes


def list_levels() -> list[str]:
    """Returns the levels of CPUs that code may have here, from the lowest to the fastest."""
    names = [level.name for level in processors.find_levels()]
    return names[: names.index(_native.extension().cpu_level()) + 1] if all(names) else [platform.machine()]


def find_isa() -> str | None:
    """Returns the instruction set that this process is limited to."""
    return next((name for name, limits in ISAS.items() if limits.items() <= os.environ.items()), None)


def as_torch(array: Any) -> Any:
    if array.dtype == np.float32:
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)


def make_torch(shape: Shape, arrays: list[Any], scale: float, wanted: Any, name: str) -> Contender:
    dtype = torch.bfloat16 if name == "bf16" else torch.float32
    q, k, v = (x.transpose(1, 2).to(dtype).contiguous() for x in arrays)
    seen = torch.arange(shape.tokens) <= torch.arange(shape.tokens - shape.new, shape.tokens)[:, None]
    is_causal = shape.new == shape.tokens
    mask = None if shape.new == 1 or is_causal else seen
    outs: dict[str, Any] = {}

    def call(turn: int) -> None:
        outs["last"] = torch.nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=is_causal, scale=scale, enable_gqa=shape.query_heads > shape.heads
        )

    def read() -> Any:
        return outs["last"].transpose(1, 2).float().numpy().reshape(wanted.shape)

    return Contender(f"PyTorch {name}", call, lambda: check_close(read, wanted))


def make_openvino(shape: Shape, q: Any, keys: Any, values: Any, scale: float, wanted: Any) -> Contender:
    rows = q.reshape(shape.batch, shape.new, shape.query_heads, shape.size)
    attention = openvino_attention.PagedAttention(rows, keys, values, scale)
    check = partial(check_close, lambda: attention.read().reshape(q.shape), wanted)
    return Contender("OpenVINO", lambda turn: attention.run(), check)


def make_rows(format_: Format, rows: list[Any]) -> Iterator[tuple[str, list[Contender], int]]:
    """Makes append of 8 x 2,048 tokens, gather, and a copy of half of their pages."""
    batch, tokens, heads, size = rows[0].shape
    params = kvcache.KVCacheParams(
        format_.dtype, heads, size, page_size=PAGE, total_num_layers=1, kvcache_quant_config=format_.config
    )
    pages = batch * tokens // PAGE
    manager = kvcache.PagedKVCacheManager(params, max_batch_size=batch, max_seq_len=tokens, num_pages=pages)
    for request in range(batch):
        manager.claim(request, np.arange(tokens))
    inputs = manager.inputs(list(range(batch)))
    stored = [array for array in (*manager.blocks, *(manager.scales or ())) if array is not None]
    cache_bytes, row_bytes = sum(array.nbytes for array in stored), 2 * rows[0].nbytes
    append = kvcache.ops.append(params, dtype=format_.rows)
    gather = kvcache.ops.gather(params, dtype=format_.rows)
    copy_pages = kvcache.ops.copy_pages(params)
    packed = [array.reshape(-1, heads, size) for array in rows]
    copies = [np.empty_like(array) for array in rows]
    half = pages // 2
    pairs = np.stack([np.arange(half), half + np.arange(half)], axis=1).astype(np.int32)

    def check_rows() -> str | None:
        gather(inputs, 0, *copies)
        wide = [(got.astype(np.float32), array.astype(np.float32)) for got, array in zip(copies, rows)]
        most = format_.error + (2**-8 if format_.error else 0)
        errors = [(np.abs(got - array).max(-1) / np.abs(array).max(-1)).max() for got, array in wide]
        return None if max(errors) <= most else f"an error of {max(errors):.1e}"

    def check_pages() -> str | None:
        halves = [(array[:half], array[half : 2 * half]) for array in stored]
        same = all(np.array_equal(a.view(np.uint8), b.view(np.uint8)) for a, b in halves)
        return None if same else "other bytes"

    def clear() -> None:
        for array in copies:
            array.fill(0)

    calls = {
        "append": (lambda turn: append(inputs, 0, *packed), check_rows, clear),
        "gather": (lambda turn: gather(inputs, 0, *copies), check_rows, clear),
        f"copy of {half} pages": (lambda turn: copy_pages(inputs, pairs), check_pages, lambda: None),
    }
    moves = [(row_bytes, cache_bytes), (cache_bytes, row_bytes), (cache_bytes // 2, cache_bytes // 2)]
    for (name, (call, check, reset)), (read, written) in zip(calls.items(), moves, strict=True):
        ours = Contender("kvcache", call, check, reset)
        yield f"{name}, {format_.title}", [ours, make_streams(read, written)], read + written


def make_copies() -> Iterator[tuple[str, list[Contender], int]]:
    """Makes the copies of each format, of rows of 64 MiB in bf16."""
    random = np.random.default_rng(3)
    rows = [random.standard_normal((8, 2048, 8, 128), np.float32) for _ in range(2)]
    narrow = [array.astype(ml_dtypes.bfloat16) for array in rows]
    for format_ in FORMATS:
        yield from make_rows(format_, rows if format_.rows == "f32" else narrow)


def measure_cells(
    title: str,
    contenders: list[Contender],
    rounds: int,
    clock: HostClock = HostClock(time.process_time),
    prepare: Callable[[], Any] | None = None,
) -> dict[str, list[float]]:
    """Returns the median and the least time of each contender. ``prepare`` runs before each call."""
    for contender in contenders:
        found = verify(contender, title)
        if found.status == "wrong":
            raise ValueError(f"{title}: {contender.name} is wrong: {found.note}")
    calls = {contender.name: contender.call for contender in contenders}
    times = take_turns(calls, rounds, clock=clock, prepare=dict.fromkeys(calls, prepare) if prepare else None)
    return {name: spread(all_)[:2] for name, all_ in times.items()}


def find_torch(cells: dict[str, list[float]]) -> list[Any]:
    """Returns the times of PyTorch in the format that takes least, and their part of those of kvcache."""
    peer = min((name for name in cells if name.startswith("PyTorch")), key=lambda name: cells[name], default=None)
    return [[*cells[peer], peer.split()[1]], cells[peer][0] / cells["kvcache"][0]] if peer else [None, None]


def measure_row(title: str, contenders: list[Contender], bytes_: int, rounds: int) -> list[Any]:
    cells = measure_cells(title, contenders, rounds)
    (median, _), (streams, _) = cells["kvcache"], cells["streams"]
    rates = [bytes_ / median / 1e6, cells["streams"], streams / median]
    return [title, cells["kvcache"], *rates, *find_torch(cells), cells.get("OpenVINO")]


def measure_prompt(shape: Shape, rounds: int) -> list[Any]:
    contenders, _ = make_attention(shape)
    cells = measure_cells(shape.title, contenders, rounds)
    rate, rates = shape.operations / cells["kvcache"][0] / 1e6, measure_rates()
    parts = [rate / rates["multiply-adds"], rate / max(rates.values())]
    return [shape.title, cells["kvcache"], rate, *parts, *find_torch(cells), cells.get("OpenVINO")]


def measure_prompts(rounds: int) -> Table:
    table = Table(
        "work", ("kvcache, ms", TIMES), ("GFLOPS", "{:.0f}"), ("of multiply-adds", "{:.2f}"),
        ("of the fastest loop", "{:.2f}"), ("PyTorch, ms", f"{TIMES}, {{}}"), ("PyTorch / kvcache", "{:.2f}"),
        ("OpenVINO, ms", TIMES),
    )  # fmt: skip
    for name, rate in measure_rates().items():
        table.add(f"a loop of {name}", None, rate, *[None] * 5)
    for shape in PROMPTS:
        say(shape.title)
        table.add(*measure_prompt(shape, rounds))
    return table


def measure_with(isa: str, rounds: int) -> list[list[Any]]:
    """Measures prompts in a process in which kvcache and PyTorch have no other instruction set."""
    say(f"the same with {isa} only")
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/prompts.json"
        command = [sys.executable, __file__, "--isa", isa, "--rounds", str(rounds), "--json", path]
        if subprocess.run(command, env={**os.environ, **ISAS[isa]}, stdout=subprocess.DEVNULL).returncode:
            raise ValueError(f"prompts with {isa} only were not measured")
        with open(path) as file:
            rows = json.load(file)["tables"]["prompts"]["rows"]
    return [[f"{title}, {isa}", *cells] for title, *cells in rows]


def measure_threads(rounds: int) -> Table:
    """Measures times of the wall with one thread and with two."""
    table = Table(
        "work", "threads", ("kvcache, ms", TIMES), ("of one thread", "{:.2f}"), ("PyTorch, ms", f"{TIMES}, {{}}"),
        ("PyTorch / kvcache", "{:.2f}"),
    )  # fmt: skip
    for shape in THREADED:
        alone = 0.0
        for threads in (1, 2):
            say(f"{shape.title}, {threads} threads")
            if torch is not None:
                torch.set_num_threads(threads)
            contenders, _ = make_attention(shape, threads)
            cells = measure_cells(shape.title, contenders, rounds, HostClock(), partial(time.sleep, REST))
            median = cells["kvcache"][0]
            alone = alone or median
            table.add(shape.title, threads, cells["kvcache"], median / alone, *find_torch(cells))
    if torch is not None:
        torch.set_num_threads(1)
    return table


def measure_first_calls(rounds: int) -> list[Any]:
    """Measures first calls of attention over a prompt, each of another page size, which nothing has compiled."""
    times = []
    for page in (2, 4, 8, 32, 64, 128)[:rounds]:
        params = kvcache.KVCacheParams("bf16", 8, 128, page_size=page, total_num_layers=1)
        manager = kvcache.PagedKVCacheManager(params, max_batch_size=1, max_seq_len=256, num_pages=256 // page)
        manager.claim(0, np.arange(16))
        inputs = manager.inputs([0])
        q = np.ones((16, 32, 128), ml_dtypes.bfloat16)
        start = time.process_time()
        kvcache.ops.attention(params, 32)(inputs, 0, q, out=np.empty_like(q), scale=1.0)
        times.append((time.process_time() - start) * 1e3)
    return ["first call of attention", spread(times)[:2], *[None] * 6]


def measure(options: argparse.Namespace) -> Record:
    os.environ["KVCACHE_CACHE"] = "off"
    if torch is not None:
        torch.set_num_threads(1)
    software = list_versions("numpy", "torch", "openvino")
    runs = f"{options.rounds} rounds"
    if options.isa:
        tables = {"prompts": measure_prompts(options.rounds)}
        return Record("scripts/bench cpu", tables, software=software, runs=runs)
    table = Table(
        "work", ("kvcache, ms", TIMES), ("GB/s", "{:.2f}"), ("streams, ms", TIMES), ("of their rate", "{:.2f}"),
        ("PyTorch, ms", f"{TIMES}, {{}}"), ("PyTorch / kvcache", "{:.2f}"),
        ("OpenVINO, ms", TIMES),
    )  # fmt: skip
    makers = [(shape.title, partial(make_attention, shape)) for shape in SHAPES]
    works = ((title, *make()) for title, make in makers)
    for title, contenders, bytes_ in [*works, *make_copies()]:
        say(title)
        table.add(*measure_row(title, contenders, bytes_, options.rounds))
    table.add(*measure_first_calls(options.rounds))
    prompts = measure_prompts(options.rounds)
    isas = [isa for isa, limits in ISAS.items() if limits["KVCACHE_CPU"] in list_levels()]
    for row in itertools.chain.from_iterable(measure_with(isa, options.rounds) for isa in isas):
        prompts.add(*row)
    if openvino_attention is None:
        say("OpenVINO is not installed, so its column is empty: pip install openvino")
    tables = {"operations": table, "prompts": prompts, "threads": measure_threads(options.rounds)}
    return Record("scripts/bench cpu", tables, software=software, runs=runs)


def main(arguments: list[str] | None = None) -> int:
    command = Command("scripts/bench cpu", __doc__, f"cpu-{list_levels()[-1]}")
    command.add_count("--rounds", 11, "counted rounds")
    command.add("--isa", choices=ISAS, help="only prompts, with no other instruction set")
    options = command.parse(arguments)
    if options.isa and find_isa() != options.isa:
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ISAS[options.isa]})
    return command.run(measure, options)


if __name__ == "__main__":
    sys.exit(main())
