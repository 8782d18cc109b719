# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The worker process of the platform."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from vllm.v1.worker.cpu_worker import CPUWorker


class Worker(CPUWorker):
    """vLLM's worker for the CPU, without the allocator that GPUs need for sleep."""

    def _maybe_get_memory_pool_context(self, tag: str) -> AbstractContextManager[None]:
        return nullcontext()
