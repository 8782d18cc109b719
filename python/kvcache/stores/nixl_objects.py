# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A store of objects in S3, by NVIDIA's NIXL."""

from __future__ import annotations

import queue
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Self

import numpy as np

from ..checks import check_instance, check_positive, check_positive_real, check_string
from .nixl_agent import ObjectAgent
from .values import HEADER_BYTES, Header, import_xxhash, make_name, parse_header
from .workers import Batch, Workers

_REMOVED = (1 << 64) - 1  # the length of a value that was removed


class NIXLObjects:
    """A store in a bucket of S3, which machines share, by NIXL's backend ``OBJ``.

    A value is an object with a checksum. Rules of the bucket limit its size. NIXL
    deletes nothing: ``remove`` overwrites an object by a mark of 64 bytes, and a wrong
    object is written again. NIXL cancels nothing either: where the server hangs, the
    exit of the process waits for about half a minute.

    Args:
        bucket: The name of the bucket.
        deadline: The most seconds of a call's copies, and of ``find``.
        prefix: The text before the names of objects, such as ``"kvcache/"``.
        options: More parameters of NIXL's backend, such as ``endpoint_override``,
            ``scheme``, ``region``, ``access_key`` and ``secret_key``. Without keys, the
            chain of credentials of AWS's library applies.
        threads: The number of objects that are copied at a time.

    Attributes:
        deadline: As given.

    Raises:
        OSError: The bucket can't be reached, or NIXL's backend does not work here.
        ModuleNotFoundError: ``pip install kvcache[nixl,stores]`` is missing.
    """

    keeps_deadline = True  # of each call

    def __init__(
        self,
        bucket: str,
        *,
        deadline: float,
        prefix: str = "",
        options: Mapping[str, str] | None = None,
        threads: int = 4,
    ) -> None:
        check_string(bucket=bucket, prefix=prefix)
        check_positive_real(deadline=deadline)
        check_positive(threads=threads)
        options = {} if options is None else options
        check_instance(Mapping, options=options)
        check_string(**{f"options[{name!r}]": text for name, text in options.items()})
        self._hash: Callable[[np.ndarray], bytes] = import_xxhash().xxh3_128_digest
        self._prefix = prefix
        self.deadline = float(deadline)
        self._wrong: dict[bytes, None] = {}  # keys whose objects are written again
        self._threads = int(threads)
        self._agents = queue.SimpleQueue[ObjectAgent]()
        for _ in range(self._threads):
            self._agents.put(ObjectAgent({**options, "bucket": bucket, "num_threads": "1"}))
        # NIXL can't cancel a call, and a thread in one would abort the exit.
        weakref.finalize(self, _drain, self._agents, self._threads)
        self._workers = Workers(self._threads)
        self._check_bucket(bucket)

    # --- Calls --------------------------------------------------------------------

    def find(self, keys: Sequence[bytes]) -> list[bool]:
        """Returns whether each key has an object; its content may still be wrong."""
        found = [False] * len(keys)

        def look_up(numbers: range, batch: Batch) -> bool:
            with self._take_agent() as agent:
                answers = agent.query([self._locate(keys[i]) for i in numbers])
            for i, is_there in zip(numbers, answers, strict=True):
                found[i] = is_there and keys[i] not in self._wrong
            return True

        size = max(-(-len(keys) // self._threads), 1)
        parts = [range(i, min(i + size, len(keys))) for i in range(0, len(keys), size)]
        self._workers.begin([partial(look_up, part) for part in parts], self.deadline).wait()
        return [*found]  # a late answer does not change it

    def begin_put(self, keys: Sequence[bytes], buffers: Sequence[memoryview]) -> Batch:
        """Begins to write values, also those that are there: to ask costs more."""
        return self._workers.begin_copies(self._put, keys, buffers, self.deadline)

    def begin_get(self, keys: Sequence[bytes], buffers: Sequence[memoryview]) -> Batch:
        """Begins to read values into buffers of their sizes."""
        return self._workers.begin_copies(self._get, keys, buffers, self.deadline)

    def remove(self, keys: Sequence[bytes]) -> None:
        """Removes values, if they are there."""
        self._workers.remove(self._drop, keys, self.deadline)

    def close(self) -> None:
        """Ends all copies, at the latest at their deadline."""
        self._workers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- Objects ------------------------------------------------------------------

    def _check_bucket(self, bucket: str) -> None:
        """Raises ``OSError`` if the bucket can't be reached."""
        errors: list[str] = ["no answer until the deadline"]

        def look_up(batch: Batch) -> bool:
            try:
                with self._take_agent() as agent:
                    agent.query([self._prefix + "none"])
            except Exception as error:
                errors[0] = str(error)
                raise
            return True

        batch = self._workers.begin([look_up], self.deadline)
        batch.wait()
        if not batch.done[0]:
            self.close()
            raise OSError(f"can't reach the bucket {bucket!r}: {errors[0]}")

    def _locate(self, key: bytes) -> str:
        return self._prefix + make_name(key)

    @contextmanager
    def _take_agent(self) -> Iterator[ObjectAgent]:
        agent = self._agents.get()
        try:
            yield agent
        finally:
            self._agents.put(agent)

    def _put(self, key: bytes, buffer: memoryview, batch: Batch) -> bool:
        data = np.frombuffer(buffer, np.uint8)
        with self._take_agent() as agent:
            staged = agent.stage(HEADER_BYTES + len(data))
            staged[HEADER_BYTES:] = data
            if batch.is_over:  # the caller may have changed its buffer meanwhile
                return False
            self._write(agent, key, Header(len(data), self._hash(staged[HEADER_BYTES:]), key))
        self._wrong.pop(key, None)
        return True

    def _get(self, key: bytes, buffer: memoryview, batch: Batch) -> bool:
        data = np.frombuffer(buffer, np.uint8)
        with self._take_agent() as agent:
            staged = agent.stage(HEADER_BYTES + len(data))
            staged[:HEADER_BYTES] = 0
            if not self._read(agent, key, len(staged)):
                return False
            header = parse_header(staged[:HEADER_BYTES].tobytes(), key)
            if header and header.length not in (len(data), _REMOVED):
                return False  # another size than the caller's
            values = staged[HEADER_BYTES:]
            if not header or header != (len(data), self._hash(values), key):
                self._wrong[key] = None
                return False
            with batch.lock:
                if batch.is_over:
                    return False
                data[:] = values
        return True

    def _read(self, agent: ObjectAgent, key: bytes, size: int) -> bool:
        """Reads an object; returns whether NIXL can read it."""
        name = self._locate(key)
        try:
            agent.copy("READ", name, size)
        except Exception:
            if agent.query([name])[0]:  # such as an empty one
                self._wrong[key] = None
            return False
        return True

    def _drop(self, key: bytes, batch: Batch) -> bool:
        with self._take_agent() as agent:
            if agent.query([self._locate(key)])[0]:
                self._wrong[key] = None
                self._write(agent, key, Header(_REMOVED, bytes(16), key))
        return True

    def _write(self, agent: ObjectAgent, key: bytes, header: Header) -> None:
        """Writes an object with a header, and with the staged bytes after it."""
        size = HEADER_BYTES + (0 if header.length == _REMOVED else header.length)
        agent.stage(size)[:HEADER_BYTES] = np.frombuffer(header.encode(), np.uint8)
        agent.copy("WRITE", self._locate(key), size)


def _drain(agents: queue.SimpleQueue[ObjectAgent], count: int) -> None:
    """Waits until no thread uses an agent."""
    for _ in range(count):
        agents.get()
