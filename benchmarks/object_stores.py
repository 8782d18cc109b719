"""S3 by moto, and contenders that keep values in it by NVIDIA's NIXL: ours and NIXL alone.

Rates are of elapsed time, since a server answers in a process of its own. One thread copies at a time.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from typing import Any, Self

import numpy as np

BUCKET = "pages"
KEYS = {"access_key": "key", "secret_key": "secret", "region": "us-east-1", "scheme": "http"}


class Server:
    """S3 in a process of its own, on loopback, with one bucket.

    Attributes:
        process: The server's process.
        client: A client of its own, by boto3.
        options: The parameters of NIXL's backend ``OBJ``.
    """

    def __init__(self) -> None:
        import boto3

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        url = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.options = {**KEYS, "endpoint_override": url}
        try:
            _wait(self.process, url)
            self.client: Any = boto3.client(
                "s3", endpoint_url=url, aws_access_key_id="key", aws_secret_access_key="secret", region_name="us-east-1"
            )
            self.client.create_bucket(Bucket=BUCKET)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _wait(process: subprocess.Popen[bytes], url: str) -> None:
    end = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(url).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > end:
                raise OSError("moto's server does not start") from None
            time.sleep(0.05)


class Ours:
    """Ours, which checks values."""

    def __init__(self, options: dict[str, str], count: int) -> None:
        from kvcache.stores import NIXLObjects

        self._store = NIXLObjects(BUCKET, deadline=120.0, options=options, threads=1)
        self._keys = [os.urandom(32) for _ in range(count)]

    def put(self, values: list[np.ndarray]) -> None:
        copy = self._store.begin_put(self._keys, [value.data for value in values])
        copy.wait()
        assert all(copy.done)

    def get(self, buffers: list[np.ndarray]) -> None:
        copy = self._store.begin_get(self._keys, [buffer.data for buffer in buffers])
        copy.wait()
        assert all(copy.done)

    def close(self) -> None:
        self._store.close()


class Alone:
    """NIXL's client, from and to the memory of the caller."""

    def __init__(self, options: dict[str, str], count: int) -> None:
        from kvcache.transfer.nixl import import_nixl

        api = import_nixl()
        self._agent: Any = api.nixl_agent("alone-" + os.urandom(4).hex(), api.nixl_agent_config(backends=[]))
        self._agent.create_backend("OBJ", {**options, "bucket": BUCKET, "num_threads": "1"})
        self._names = [os.urandom(32).hex() for _ in range(count)]

    def put(self, values: list[np.ndarray]) -> None:
        self._copy("WRITE", values)

    def get(self, buffers: list[np.ndarray]) -> None:
        self._copy("READ", buffers)

    def _copy(self, direction: str, arrays: list[np.ndarray]) -> None:
        agent = self._agent
        for name, array in zip(self._names, arrays, strict=True):
            memory = agent.register_memory([(array.ctypes.data, array.nbytes, 0, "")], "DRAM")
            place = agent.register_memory([(0, array.nbytes, 1, name)], "OBJ")
            transfer = agent.initialize_xfer(direction, memory.trim(), place.trim(), agent.name)
            state = agent.transfer(transfer)
            while state == "PROC":
                time.sleep(2e-4)
                state = agent.check_xfer_state(transfer)
            assert state == "DONE"
            agent.release_xfer_handle(transfer)
            agent.deregister_memory(place)
            agent.deregister_memory(memory)

    def close(self) -> None:
        """Has nothing to end."""


CONTENDERS = {"NIXLObjects": Ours, "NIXL alone": Alone}


def run_round(options: dict[str, str], values: list[np.ndarray], turn: int) -> dict[str, tuple[float, float]]:
    """The rates of writing and reading of each contender in GB/s, which take turns to be first."""
    rates, size = {}, sum(value.nbytes for value in values)
    for name in sorted(CONTENDERS, reverse=turn % 2 > 0):
        contender = CONTENDERS[name](options, len(values))
        buffers = [np.ones_like(value) for value in values]
        times = []
        for call, arrays in ((contender.put, values), (contender.get, buffers)):
            start = time.perf_counter()
            call(arrays)
            times.append(time.perf_counter() - start)
        contender.close()
        assert all((value == buffer).all() for value, buffer in zip(values, buffers, strict=True))
        rates[name] = size / times[0] / 1e9, size / times[1] / 1e9
    return rates
