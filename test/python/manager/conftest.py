"""Fixtures of tests of the manager."""

import pytest
from kvcache import transfer
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
