# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A transport between machines: NVIDIA's NIXL, an optional dependency."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from ..checks import check_flag, check_string
from ..pages.regions import Region
from .transport import TransferFailed, TransferRefused

_PACKAGES = ("nixl_cu13", "nixl_cu12")


class NIXLTransport:
    """Reads the memory of other machines by an agent of NIXL.

    Args:
        name: Of the agent; different on each machine.
        backends: Of NIXL. UCX takes shared memory, InfiniBand or TCP, as its own
            environment variables say.
        memory: ``"DRAM"`` for host memory, ``"VRAM"`` for a GPU's.
        progress_thread: Whether a thread of NIXL's, which takes a processor where it has
            one, drives transfers on. Without it ``poll`` does; what others read by TCP
            waits for it then.

    Raises:
        ModuleNotFoundError: NIXL is not installed: ``pip install kvcache[nixl]``.
        TransferRefused: NIXL has not such a backend, or it does not work here.
    """

    def __init__(
        self,
        name: str,
        *,
        backends: tuple[str, ...] = ("UCX",),
        memory: str = "DRAM",
        progress_thread: bool = True,
    ) -> None:
        check_string(name=name)
        check_flag(progress_thread=progress_thread)
        if memory not in ("DRAM", "VRAM"):
            raise ValueError(f"expects 'memory' to be 'DRAM' or 'VRAM', got {memory!r}")
        api = _import()
        self.name = name
        self._memory = memory
        config = api.nixl_agent_config(
            enable_prog_thread=bool(progress_thread), backends=list(backends)
        )
        try:
            self._agent = api.nixl_agent(name, config)
        except Exception as error:
            raise TransferRefused(f"NIXL does not start: {error}", name) from error
        self._registered: dict[Region, Any] = {}

    def register(self, regions: tuple[Region, ...]) -> None:
        """Makes memory known to NIXL, which may pin it; regions known before are free."""
        for region in regions:
            if region not in self._registered:
                # NIXL takes a label behind the address, the size and the device.
                rows = [(region.address, region.size, region.device, region.tensor)]
                self._registered[region] = self._agent.register_memory(
                    rows, self._memory
                )

    def close(self) -> None:
        """Makes the memory unknown again; nothing may be under way."""
        for handle in self._registered.values():
            self._agent.deregister_memory(handle)
        self._registered.clear()

    @property
    def address(self) -> bytes:
        metadata: bytes = self._agent.get_agent_metadata()
        return metadata

    def connect(self, address: bytes) -> str:
        try:
            peer = self._agent.add_remote_agent(address)
        except Exception as error:
            raise TransferRefused(
                f"NIXL does not take the peer's address: {error}"
            ) from error
        return peer.decode() if isinstance(peer, bytes) else str(peer)

    def post(self, peer: str, source: np.ndarray, target: np.ndarray) -> Any:
        try:
            handle = self._agent.initialize_xfer(
                "READ", *map(self._to_nixl, (target, source)), peer
            )
        except Exception as error:
            raise TransferRefused(f"NIXL does not begin: {error}", peer) from error
        if self._agent.transfer(handle) == "ERR":
            handle.release()
            raise TransferRefused("NIXL does not begin to read", peer)
        return handle

    def _to_nixl(self, table: np.ndarray) -> Any:
        return self._agent.get_xfer_descs(table.astype(np.uint64), self._memory)

    def poll(self, handle: Any) -> bool:
        try:
            state = self._agent.check_xfer_state(handle)
        except Exception as error:
            raise TransferFailed(f"NIXL lost the peer: {error}") from error
        if state == "ERR":
            raise TransferFailed("NIXL lost the peer")
        return bool(state == "DONE")

    def cancel(self, handle: Any) -> None:
        handle.release()


def _import() -> Any:
    for package in _PACKAGES:
        try:
            return importlib.import_module(f"{package}._api")
        except ModuleNotFoundError as error:
            if error.name not in (package, f"{package}._api"):
                raise
    raise ModuleNotFoundError("NIXL is not installed: pip install kvcache[nixl]")
