"""Fixtures of tests of the manager."""

from types import SimpleNamespace

import pytest
from kvcache import transfer
from kvcache.pages import guarded_store, rest, store_writer
from transfers import add, local, make_cache


@pytest.fixture
def pair_of_caches():
    """An empty cache, an offer of eleven tokens to it, and the transport of the offer."""
    here, there = make_cache(), make_cache()
    add(here, "r", range(11))
    lease = here.export("r", seconds=60)
    transport = local()
    yield there, transfer.offer(here, lease, transport), transport
    lease.end()


@pytest.fixture
def clock(monkeypatch):
    """A list with the time of writers and copies, in seconds."""
    clock = [1000.0]
    for module in (store_writer, guarded_store, rest):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    return clock
