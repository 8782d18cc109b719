# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A store as a secondary tier of vLLM's offloading."""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import threading
import time
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from typing import Any, NamedTuple

import numpy as np
from vllm.v1.kv_offload.base import (
    Locality,
    LookupResult,
    Medium,
    OffloadingSpec,
    OffloadKey,
    ReqContext,
    RequestOffloadingContext,
    ScheduleEndContext,
)
from vllm.v1.kv_offload.file_mapper import FileMapper
from vllm.v1.kv_offload.tiering.async_lookup import AsyncLookupManager
from vllm.v1.kv_offload.tiering.backpressure import BackpressureDetector
from vllm.v1.kv_offload.tiering.base import JobResult, SecondaryTierManager, TransferJob

from ..checks import check_instance, check_string
from ..pages.guarded_store import GuardedCopy, GuardedStore, find_limit
from ..pages.store_thread import StoreThread
from ..pages.stores import Store

_VERSION = "kvcache vllm chunk 1"


class StoreTier(SecondaryTierManager):
    """Keeps chunks of vLLM's cache in a store, for other processes and after restarts.

    vLLM makes one from its options, if ``module_path`` is ``"kvcache.vllm"``. One thread
    makes all calls of the store, so that the scheduler never waits. A chunk that the
    store loses or refuses is a miss, and is computed again. So is one that it does not
    find until its deadline. A copy is never given up, because vLLM would use its chunks
    for other tokens.

    Args:
        offloading_spec: vLLM's options of offloading.
        primary_kv_view: The chunks in host memory, bytes [chunks, size].
        tier_type: vLLM's name of the tier.
        backpressure_detector: vLLM's detector of slow tiers.
        store: A ``Store``, or the dotted name of what makes one.
        name: The revision of the model. Only engines with equal names share chunks.
        locality: ``"LOCAL"`` or ``"REMOTE"``, for vLLM's filter of tiers.
        options: The arguments of what makes the store.
    """

    medium = Medium.STORAGE

    def __init__(
        self,
        offloading_spec: OffloadingSpec,
        primary_kv_view: memoryview,
        tier_type: str,
        backpressure_detector: BackpressureDetector | None = None,
        *,
        store: Store | str = "kvcache.stores.Folder",
        name: str = "",
        locality: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(offloading_spec, primary_kv_view, tier_type, backpressure_detector)
        check_string(name=name)
        self.locality = None if locality is None else Locality(locality)
        # A memory view of several dimensions has no rows.
        self._chunks = np.asarray(primary_kv_view).view(np.uint8)
        if self._chunks.ndim != 2:
            raise ValueError(
                f"expects chunks in host memory as bytes [chunks, size], got {self._chunks.ndim} dimensions"
            )
        self._root = make_root(offloading_spec, name, self._chunks.shape[1])
        made = make_store(store, options)
        self._limit = min(find_limit(made), threading.TIMEOUT_MAX)
        self._store = GuardedStore(made, math.inf)
        self._thread = StoreThread()
        self._lookups = Lookups(tier_type, self._find)
        self._jobs: list[Job] = []
        self._closed: Future[None] | None = None
        self._end = math.inf  # of 'shutdown'

    def lookup(self, key: OffloadKey, req_context: ReqContext) -> LookupResult:
        """Returns whether the store has a chunk; the answer comes a step later."""
        found = self._lookups.lookup(key, req_context)
        if found is None:
            return LookupResult.RETRY
        return LookupResult.HIT if found else LookupResult.MISS

    def submit_store(self, job_metadata: TransferJob) -> None:
        """Begins to write chunks."""
        self._submit(job_metadata, self._store.begin_put)

    def submit_load(self, job_metadata: TransferJob) -> None:
        """Begins to read chunks."""
        self._submit(job_metadata, self._store.begin_get)

    def get_finished_jobs(self) -> Iterable[JobResult]:
        """The jobs that have ended since the last call."""
        ended = [job for job in self._jobs if job.poll()]
        self._jobs = [job for job in self._jobs if job not in ended]
        return [self._finish(job) for job in ended]

    def drain_jobs(self) -> None:
        """Waits for all jobs, as long as the store does."""
        for job in self._jobs:
            job.wait()

    def on_new_request(self, req_context: ReqContext) -> RequestOffloadingContext:
        """Asks for chunks as vLLM does by default."""
        return RequestOffloadingContext()

    def on_request_finished(self, req_context: ReqContext) -> None:
        """Forgets the answers to a request."""
        self._lookups.cleanup(req_context.req_id)

    def on_schedule_end(self, context: ScheduleEndContext) -> None:
        """Begins to look up the chunks that the step asked for."""
        self._lookups.flush()

    def shutdown(self) -> None:
        """Ends all jobs, and closes the store; waits at most until its deadline.

        Raises ``TimeoutError`` while the store still copies, so that vLLM keeps the
        memory. Another call asks again.
        """
        if self._closed is None:
            self._end = time.monotonic() + self._limit
            self._closed = self._thread.submit(self._close)
            self._thread.end()
        self._lookups.shutdown()
        wait_for([self._closed], max(self._end - time.monotonic(), 0))
        if not self._closed.done():
            self._store.warn(f"the store was not closed in {self._limit:g} seconds")
        self._jobs = [job for job in self._jobs if not job.cancel()]
        if self._jobs:
            raise TimeoutError(f"the store still copies the chunks of jobs {[job.number for job in self._jobs]}")
        self._chunks = np.empty((0, 0), np.uint8)  # vLLM closes the memory now

    # --- Calls of the store -------------------------------------------------------

    def _make_keys(self, keys: Collection[OffloadKey]) -> list[bytes]:
        return [hashlib.sha256(self._root + key).digest() for key in keys]

    def _find(self, keys: list[OffloadKey]) -> list[bool]:
        if self._closed is not None:
            return [False] * len(keys)
        answers = self._thread.submit(self._store.find, self._make_keys(keys))
        try:
            return answers.result(self._limit)
        except TimeoutError:
            answers.cancel()
            self._store.warn(f"'find' of the store did not end in {self._limit:g} seconds")
            return [False] * len(keys)

    def _close(self) -> None:
        self.drain_jobs()
        self._store.close()

    def _submit(self, job: TransferJob, begin: Callable[..., GuardedCopy]) -> None:
        keys = list(job.keys)
        buffers = [self._chunks[int(chunk)].data for chunk in job.chunk_ids]
        copy = self._thread.submit(begin, self._make_keys(keys), buffers)
        self._jobs.append(Job(job.job_id, keys, job.is_promotion, copy, time.monotonic()))

    def _finish(self, job: Job) -> JobResult:
        done = job.copy.result().done
        result = JobResult(job.number, all(done))
        result.transfer_time = time.monotonic() - job.start
        result.transfer_bytes = sum(done) * self._chunks.shape[1]
        if job.is_load and not result.success:
            copied = tuple(key for key, is_done in zip(job.keys, done) if is_done)
            self._lookups.mark_miss({*job.keys} - {*copied})
            result.successful_keys = copied or None
        return result


class Job(NamedTuple):
    """Chunks that the store copies.

    Attributes:
        number: vLLM's number of the job.
        keys: The keys of the chunks.
        is_load: Whether they come from the store.
        copy: The copy, once the thread has begun it.
        start: When the job began, in seconds of the monotonic clock.
    """

    number: int
    keys: list[OffloadKey]
    is_load: bool
    copy: Future[GuardedCopy]
    start: float

    def poll(self) -> bool:
        """Returns whether the copy has ended; never waits."""
        return self.copy.done() and self.copy.result().poll()

    def wait(self) -> None:
        """Waits until ``poll`` returns True."""
        if not self.copy.cancelled():
            self.copy.result().wait()

    def cancel(self) -> bool:
        """Cancels a copy that has not begun. Returns whether no copy is left."""
        return self.copy.cancel() or self.poll()


class Lookups(AsyncLookupManager):
    """Answers whether chunks are in a store, a step after the question.

    Args:
        tier_type: vLLM's name of the tier.
        find: Looks up keys.
    """

    def __init__(self, tier_type: str, find: Callable[[list[OffloadKey]], list[bool]]) -> None:
        self._find = find
        super().__init__(tier_type)

    def batch_lookup(self, keys: list[OffloadKey], req_context: ReqContext) -> Iterable[bool]:
        """Returns whether the store has each key; in a thread."""
        return self._find(keys)


def make_root(spec: OffloadingSpec, name: str, size: int) -> bytes:
    """The bytes that precede keys: the model and the format of chunks."""
    files = FileMapper.from_offloading_spec("", spec, spec.blocks_per_chunk, parallel_agnostic=True)
    fields = _VERSION, files.get_run_config(), files.rank, spec.config.kv_cache_layout, size, name
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).digest()


def make_store(store: Store | str, options: dict[str, Any]) -> Store:
    """Makes the store of the options."""
    made: Any = store
    if isinstance(store, str):
        module, _, attribute = store.rpartition(".")
        if not module:
            raise ValueError(f"expects 'store' to be a dotted name, got {store!r}")
        made = getattr(importlib.import_module(module), attribute)(**options)
    elif options:
        raise ValueError(f"expects options only with the name of a store, got {[*options]}")
    check_instance(Store, store=made)
    return made
