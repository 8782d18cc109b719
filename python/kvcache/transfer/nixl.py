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
_MAX_LISTED = 1 << 17  # the most pages prepared at once, in some milliseconds


class _Read(NamedTuple):
    """An unfinished transfer."""

    peer: str
    request: Any  # NIXL's
    is_done: bool # whether it was done when it began


class NIXLTransport:
    """Reads the memory of other machines by an agent of NIXL.

    Args:
        name: The name of the agent, unique among machines.
        backends: The backends of NIXL. UCX uses shared memory, InfiniBand or TCP, as
            set by its environment variables.
        memory: The kind of memory: ``"DRAM"`` for host memory, ``"VRAM"`` for a GPU's.
        progress_thread: Whether a thread of NIXL's drives transfers, which occupies a
            processor. Without it, ``poll`` drives them, and other machines' reads by
            TCP wait for ``poll``.

    Raises:
        ModuleNotFoundError: NIXL is not installed: ``pip install kvcache[nixl]``.
        TransferRefused: NIXL has no such backend, or it does not work here.
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
        api = import_nixl()
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
        """Registers memory with NIXL, which may pin it; repetitions cost nothing."""
        for region in regions:
            if region not in self._registered:
                # NIXL expects a label after the address, the size and the device.
                rows = [(region.address, region.size, region.device, region.tensor)]
                self._registered[region] = self._agent.register_memory(
                    rows, self._memory
                )

    def close(self) -> None:
        """Deregisters the memory; no transfer may be unfinished."""
        self._peers.clear()
        self._lists.clear()
        for handle in self._registered.values():
            self._agent.deregister_memory(handle)
        self._registered.clear()

    @property
    def address(self) -> bytes:
        """The length of the name, the name, and NIXL's metadata."""
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
                f"NIXL rejects the peer's address: {error}"
            ) from error
        self._drop_peer(peer)
        self._peers[address] = peer
        return peer

    def _add_peer(self, peer: str, metadata: bytes) -> None:
        """Adds the metadata of a peer to NIXL.

        The peer may have registered more memory, or be another process of the same
        name. NIXL accepts that after the earlier entry is removed."""
        try:
            self._agent.add_remote_agent(metadata)
        except Exception as error:
            try:
                self._agent.remove_remote_agent(peer)
            except Exception:
                raise error from None  # there was no earlier entry
            self._agent.add_remote_agent(metadata)

    def post(self, peer: str, source: np.ndarray, target: np.ndarray) -> Any:
        try:
            handle = self._agent.initialize_xfer(
                "READ", *map(self._to_nixl, (target, source)), peer
            )
        except Exception as error:
            self._drop_peer(peer)
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
            self._drop_peer(peer)
            raise TransferRefused(f"NIXL does not begin: {error}", peer) from error
        return self._begin(handle, peer)

    def _list_pages(self, peer: str, regions: tuple[Region, ...]) -> Any:
        """NIXL's prepared list of all pages of a cache, of this machine without a peer.

        None if pages are not contiguous, or too many."""
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

    def _drop_peer(self, peer: str) -> None:
        """Drops all state of a peer that has failed, or moved."""
        for address in [each for each, name in self._peers.items() if name == peer]:
            del self._peers[address]
        for key in [key for key in self._lists if key[0] == peer]:
            del self._lists[key]

    def _begin(self, handle: Any, peer: str) -> _Read:
        state = self._agent.transfer(handle)
        if state == "ERR":
            handle.release()
            self._drop_peer(peer)
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
            self._drop_peer(handle.peer)
            raise TransferFailed(f"NIXL lost the peer: {error}") from error
        if state == "ERR":
            self._drop_peer(handle.peer)
            raise TransferFailed("NIXL lost the peer")
        return bool(state == "DONE")

    def cancel(self, handle: _Read) -> None:
        handle.request.release()


def _split_address(address: bytes) -> tuple[str, bytes]:
    """The name of an agent, and its metadata."""
    size, _, rest = address.partition(b":")
    return rest[: int(size)].decode(), rest[int(size) :]


def _number(pages: np.ndarray, regions: tuple[Region, ...]) -> np.ndarray:
    """The indices of pages in a list of all regions' pages, region by region."""
    if len(regions) == 1:
        return pages
    starts = np.arange(len(regions), dtype=np.int32) * np.int32(regions[0].pages)
    return np.add.outer(starts, pages).reshape(-1)


def import_nixl() -> Any:
    """Imports the API of NIXL."""
    for package in _PACKAGES:
        try:
            return importlib.import_module(f"{package}._api")
        except ModuleNotFoundError as error:
            if error.name not in (package, f"{package}._api"):
                raise
    raise ModuleNotFoundError("NIXL is not installed: pip install kvcache[nixl]")
