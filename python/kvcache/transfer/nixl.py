# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A transport between machines: NVIDIA's NIXL, an optional dependency."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

import numpy as np

from ..checks import check_flag, check_string
from ..pages.regions import Region, describe_all
from .transport import TransferFailed, TransferRefused

_PACKAGES = ("nixl_cu13", "nixl_cu12")
_MAX_LISTED = 1 << 17  # pages of a cache that are prepared at once, in some milliseconds


class _Read(NamedTuple):
    """A transfer under way."""

    peer: str
    request: Any  # NIXL's
    is_done: bool  # when it began


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
        self._peers: dict[bytes, str] = {}
        self._lists: dict[tuple[str, tuple[Region, ...]], Any] = {}

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
        self._peers.clear()
        self._lists.clear()
        for handle in self._registered.values():
            self._agent.deregister_memory(handle)
        self._registered.clear()

    @property
    def address(self) -> bytes:
        """The length of the name, the name, and what NIXL needs to know."""
        name, metadata = self.name.encode(), self._agent.get_agent_metadata()
        return b"%d:%s%s" % (len(name), name, metadata)

    def connect(self, address: bytes) -> str:
        if peer := self._peers.get(address):
            return peer
        try:
            peer, metadata = _split_address(address)
            self._add_peer(peer, metadata)
        except Exception as error:
            raise TransferRefused(
                f"NIXL does not take the peer's address: {error}"
            ) from error
        self._forget_peer(peer)
        self._peers[address] = peer
        return peer

    def _add_peer(self, peer: str, metadata: bytes) -> None:
        """Says where a peer is. It may have registered more memory, or be another process
        of the same name, which NIXL takes when the one before is removed."""
        try:
            self._agent.add_remote_agent(metadata)
        except Exception as error:
            try:
                self._agent.remove_remote_agent(peer)
            except Exception:
                raise error from None  # there was none before
            self._agent.add_remote_agent(metadata)

    def post(self, peer: str, source: np.ndarray, target: np.ndarray) -> Any:
        try:
            handle = self._agent.initialize_xfer(
                "READ", *map(self._to_nixl, (target, source)), peer
            )
        except Exception as error:
            self._forget_peer(peer)
            raise TransferRefused(f"NIXL does not begin: {error}", peer) from error
        return self._begin(handle, peer)

    def post_pages(
        self,
        peer: str,
        source: tuple[Region, ...],
        source_pages: np.ndarray,
        target: tuple[Region, ...],
        target_pages: np.ndarray,
    ) -> Any:
        try:
            lists = self._list_pages("", target), self._list_pages(peer, source)
            if not all(lists):
                return None
            handle = self._agent.make_prepped_xfer(
                "READ",
                lists[0],
                _number(target_pages, target),
                lists[1],
                _number(source_pages, source),
            )
        except Exception as error:
            self._forget_peer(peer)
            raise TransferRefused(f"NIXL does not begin: {error}", peer) from error
        return self._begin(handle, peer)

    def _list_pages(self, peer: str, regions: tuple[Region, ...]) -> Any:
        """What NIXL has prepared of all pages of a cache, here if there is no peer; None
        where pages lie apart, or are too many."""
        key = peer, regions
        known = self._lists.get(key)
        if known is None:
            counts = [each.pages for each in regions]
            if sum(counts) > _MAX_LISTED or not all(
                each.has_whole_pages for each in regions
            ):
                return None
            table = describe_all(regions, np.arange(counts[0]))
            known = self._lists[key] = self._agent.prep_xfer_dlist(
                peer, table.astype(np.uint64), self._memory
            )
        return known

    def _forget_peer(self, peer: str) -> None:
        """Forgets what is known of a peer: it has failed, or is elsewhere now."""
        for address in [each for each, name in self._peers.items() if name == peer]:
            del self._peers[address]
        for key in [key for key in self._lists if key[0] == peer]:
            del self._lists[key]

    def _begin(self, handle: Any, peer: str) -> _Read:
        state = self._agent.transfer(handle)
        if state == "ERR":
            handle.release()
            self._forget_peer(peer)
            raise TransferRefused("NIXL does not begin to read", peer)
        return _Read(peer, handle, state == "DONE")

    def _to_nixl(self, table: np.ndarray) -> Any:
        return self._agent.get_xfer_descs(table.astype(np.uint64), self._memory)

    def poll(self, handle: _Read) -> bool:
        if handle.is_done:
            return True
        try:
            state = self._agent.check_xfer_state(handle.request)
        except Exception as error:
            self._forget_peer(handle.peer)
            raise TransferFailed(f"NIXL lost the peer: {error}") from error
        if state == "ERR":
            self._forget_peer(handle.peer)
            raise TransferFailed("NIXL lost the peer")
        return bool(state == "DONE")

    def cancel(self, handle: _Read) -> None:
        handle.request.release()


def _split_address(address: bytes) -> tuple[str, bytes]:
    """The name of an agent, and what NIXL needs to know of it."""
    size, _, rest = address.partition(b":")
    return rest[: int(size)].decode(), rest[int(size) :]


def _number(pages: np.ndarray, regions: tuple[Region, ...]) -> np.ndarray:
    """Where pages are in a list of those of all regions, region by region."""
    if len(regions) == 1:
        return pages
    starts = np.arange(len(regions), dtype=np.int32) * np.int32(regions[0].pages)
    return np.add.outer(starts, pages).reshape(-1)


def _import() -> Any:
    for package in _PACKAGES:
        try:
            return importlib.import_module(f"{package}._api")
        except ModuleNotFoundError as error:
            if error.name not in (package, f"{package}._api"):
                raise
    raise ModuleNotFoundError("NIXL is not installed: pip install kvcache[nixl]")
