# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An agent of NVIDIA's NIXL that copies objects of S3, one at a time."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

_POLL = 2e-4  # seconds between two questions about a transfer
_DEVICE = 1  # that stands for the one object of a transfer


class ObjectAgent:
    """Copies objects of a bucket by way of memory of its own.

    NIXL may write to memory until a transfer has ended, long after a deadline.

    Args:
        options: The parameters of NIXL's backend ``OBJ``.

    Raises:
        OSError: The backend does not work here.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        from ..transfer.nixl import import_nixl  # with all of transfer

        api = import_nixl()
        self._name = f"kvcache-objects-{secrets.token_hex(4)}"
        try:
            self._agent: Any = api.nixl_agent(self._name, api.nixl_agent_config(backends=[]))
            self._agent.create_backend("OBJ", dict(options))
        except Exception as error:
            raise OSError(f"NIXL's backend OBJ does not start: {error}") from error
        self._memory = np.empty(0, np.uint8)
        self._registered: Any = None

    def query(self, names: Sequence[str]) -> list[bool]:
        """Returns whether objects exist. Raises what NIXL raises."""
        rows = [(0, 1, 0, name) for name in names]
        return [answer is not None for answer in self._agent.query_memory(rows, "OBJ", "OBJ")]

    def stage(self, size: int) -> np.ndarray:
        """Returns memory of ``size`` bytes, which the next transfer may use."""
        if len(self._memory) < size:
            registered, self._registered = self._registered, None
            self._memory = np.empty(0, np.uint8)  # also if NIXL raises now
            if registered is not None:
                self._agent.deregister_memory(registered)
            memory = np.empty(size, np.uint8)
            rows = [(memory.ctypes.data, size, 0, "")]
            self._registered = self._agent.register_memory(rows, "DRAM")
            self._memory = memory
        return self._memory[:size]

    def copy(self, direction: str, name: str, size: int) -> None:
        """Copies an object: ``"READ"`` to the staged memory, or ``"WRITE"`` from it.

        Raises what NIXL raises, such as for an object that is not there. A short object
        fills only the first bytes.
        """
        object_ = self._agent.register_memory([(0, size, _DEVICE, name)], "OBJ")
        transfer = None
        try:
            local = self._agent.get_xfer_descs([(self._memory.ctypes.data, size, 0)], "DRAM")
            transfer = self._agent.initialize_xfer(direction, local, object_.trim(), self._name)
            state = self._agent.transfer(transfer)
            while state == "PROC":
                time.sleep(_POLL)
                state = self._agent.check_xfer_state(transfer)
            if state != "DONE":
                raise OSError(f"the transfer of an object ended with {state}")
        finally:
            if transfer is not None:
                with suppress(Exception):  # the transfer has ended
                    self._agent.release_xfer_handle(transfer)
            self._agent.deregister_memory(object_)
