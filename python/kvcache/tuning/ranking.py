# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order in which configs are measured: by what their machine code should cost.

The order needs no GPU, so that a short time is spent on likely winners. It is no
prediction of times. A tile of scores takes as many clocks of a multiprocessor as the
slowest of these parts:

- instructions of the loop of products, of which four warps each issue one in a clock;
- products, at the peak of the tensor cores;
- bytes of keys and values, by the bytes that all thread blocks have in flight;
- all of this in turn in one thread block, divided among as many as there is room for.

Registers, threads and shared memory decide how many thread blocks that is. Kernels that
spill come last. Without ptxas or nvdisasm, configs keep the order of ``list_kernels``.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from ..compilation import sass, toolchain
from ..compilation.kernels import Kernel
from ..devices.gpu_timer import Model
from ..errors import CompileError, ToolchainError
from ..ops.attention_config import AttentionConfig
from ..ops.attention_operation import Attention

_ISSUED = 4
"""Warp instructions that a multiprocessor issues in a clock."""
_FLOPS = {"HMMA": 2048, "HGMMA": 4096}
"""Operations of tensor cores in a clock, by their instruction."""
_LATENCY = 1000
"""Clocks of a load from memory."""
_BYTES, _SHARED_TILE_BYTES = 24, 64
"""Bytes that a multiprocessor gets in a clock, from memory, and from the L2 cache if
several thread blocks read the same tile."""
_REGISTERS, _THREADS, _BLOCKS = 1 << 16, 2048, 32
"""Limits of a multiprocessor."""
_SHARED_BYTES, _RESERVED = 228 << 10, 1 << 10
"""Shared memory of a multiprocessor if it is unknown, and that of each block besides its
own."""


def rank(
    operation: Attention,
    configs: Sequence[AttentionConfig],
    model: Model,
    seconds: float,
) -> list[AttentionConfig]:
    """Sorts configs by their costs, except for the first one.

    Configs whose cost is not known after ``seconds`` come last, in their order.
    """
    if not has_tools():
        return list(configs)
    end = time.monotonic() + seconds

    def find_cost(config: AttentionConfig) -> float:
        if time.monotonic() > end:
            return math.inf
        return estimate(operation, config, model)

    first, *others = configs
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        costs = list(threads.map(find_cost, others))
    order = sorted(range(len(others)), key=costs.__getitem__)
    return [first, *(others[number] for number in order)]


def has_tools() -> bool:
    """Whether there are tools that assemble kernels and print their code."""
    try:
        toolchain.find_tool("ptxas")
        toolchain.find_tool("nvdisasm")
    except ToolchainError:
        return False
    return True


def estimate(operation: Attention, config: AttentionConfig, model: Model) -> float:
    """The clocks of a score, which is a query row and a key; inf if they are unknown."""
    try:
        module = operation.with_config(config).compile(model.chip, "cubin")
        kernel = next(iter(module.kernels.values()))
        code = sass.read(toolchain.disassemble(kernel.cubin)[kernel.name])
    except (CompileError, ToolchainError):
        return math.inf
    if kernel.spill_bytes or not code.product_loop or not (config.rows and config.keys):
        return math.inf
    clocks = _count_clocks(operation, config, code.product_loop, kernel, model)
    rows = min(config.rows, _count_rows(operation) or config.rows)
    return clocks / (rows * config.keys * _count_tiles(config))


def _count_rows(operation: Attention) -> int:
    """The most query rows of a thread block that can have work; 0 for any number."""
    spec = operation.spec
    group = spec.query_heads // operation.cache.params.n_kv_heads_per_device
    if spec.rows:
        return group
    return group * spec.splits.rows if spec.splits else 0


def count_blocks(kernel: Kernel, model: Model) -> int:
    """The thread blocks of a kernel that a multiprocessor has at a time, at least 1."""
    threads = math.prod(kernel.block_size or (1,))
    registers = -(-kernel.registers // 8) * 8 * threads
    shared = kernel.shared_bytes + kernel.dynamic_shared_memory + _RESERVED
    most = model.shared_bytes or _SHARED_BYTES
    limits = _REGISTERS // registers, most // shared, _THREADS // threads, _BLOCKS
    return max(min(limits), 1)


def _count_clocks(
    operation: Attention,
    config: AttentionConfig,
    loop: sass.Loop,
    kernel: Kernel,
    model: Model,
) -> float:
    """The clocks of a multiprocessor for an iteration of a thread block."""
    blocks = count_blocks(kernel, model)
    warps = _count_warps(config, kernel)
    issue = loop.instructions * warps / _ISSUED
    rate = next((_FLOPS[name] for name in ("HGMMA", "HMMA") if loop.by_name.get(name)), 0)
    products = loop.products * warps / rate if rate else 0.0
    # One thread block alone: fewer than four warps leave schedulers idle.
    own = loop.instructions * -(-warps // _ISSUED)
    alone = own + products if config.schedule == "prefetch" else max(own, products)
    stages = config.stages or 1
    alone += max(_LATENCY - (stages - 1) * alone, 0)
    tile = (config.keys or 0) * _count_tiles(config) * _count_token_bytes(operation)
    most = _BYTES if operation.spec.splits else _SHARED_TILE_BYTES
    memory = tile / min(most, blocks * stages * tile / _LATENCY)
    return max(issue, products, memory, alone / blocks)


def _count_tiles(config: AttentionConfig) -> int:
    """The tiles of an iteration: with seesaw, each of two warpgroups has its own."""
    return 2 if config.schedule == "seesaw" else 1


def _count_warps(config: AttentionConfig, kernel: Kernel) -> int:
    """The warps that multiply; others only copy."""
    if config.mma == "tcgen05" or config.swap_ab:
        return math.prod(kernel.block_size or (1,)) // 32
    return (config.rows or 0) // 16 * (config.acc_shares or 1)


def _count_token_bytes(operation: Attention) -> float:
    """The bytes of a token of a head: its key and value."""
    params = operation.cache.params
    tokens = params.shape_per_block[1] * (params.page_size or 1)
    return params.bytes_per_block / (tokens * params.n_kv_heads)
