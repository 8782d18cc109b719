"""The routes of disaggregated.py: NVIDIA Dynamo's indexer says which worker has a prefix.

The indexer is a process of its own. It reads the events of each worker, and answers
questions over HTTP.
"""

import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import numpy as np
from console import fail

_MODEL = "example"


class PrefixRoutes:
    """Finds the workers that have the first tokens of a prompt in their cache.

    Args:
        page_size: Tokens per page of the workers' caches.
    """

    def __init__(self, page_size: int) -> None:
        self._page_size = page_size
        self._has_workers = False
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._url = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", "dynamo.indexer", "--port", str(port), "--threads", "1"]
        self._errors = tempfile.TemporaryFile()
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=self._errors)
        try:
            self._wait_until_ready()
        except BaseException:
            self.close()
            raise

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + 60
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > end:
                self._errors.seek(0)
                lines = self._errors.read().decode(errors="replace").split("\n")
                last = next((line for line in reversed(lines) if line.strip()), "no message in 60 s")
                fail(f"Dynamo's indexer does not start: {last}")
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        try:
            urllib.request.urlopen(f"{self._url}/health", timeout=5).close()
        except OSError:
            return False
        return True

    def _ask(self, path: str, **fields: object) -> dict:
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(self._url + path, json.dumps(fields).encode(), headers)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def register(self, number: int, endpoint: str, replay: str) -> None:
        """Lets the indexer read the events of a worker, also those before."""
        self._ask(
            "/register", instance_id=number, endpoint=endpoint, replay_endpoint=replay,
            model_name=_MODEL, block_size=self._page_size,
        )  # fmt: skip
        self._has_workers = True

    def count_found(self, tokens: np.ndarray) -> dict[int, int]:
        """Counts the first tokens that each worker has; a claim never finds the last one."""
        if not self._has_workers:
            return {}
        answer = self._ask("/query", token_ids=tokens[:-1].tolist(), model_name=_MODEL)
        instances = answer["instances"].items()
        return {int(number): each["longest_matched"] for number, each in instances}

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._errors.close()
