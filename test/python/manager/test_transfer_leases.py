"""Tests of leases and receptions of pages."""

import kvcache
import numpy as np
import pytest
from transfers import add, make_cache


def test_a_lease_keeps_pages_of_a_released_sequence():
    cache = make_cache()
    add(cache, "r", range(6))
    lease = cache.export("r", seconds=60)
    before = [np.array(cache.blocks[0][page]) for page in lease.pages]
    cache.release("r")
    assert cache.num_free_pages == 6
    add(cache, "other", range(24))
    with pytest.raises(kvcache.OutOfPagesError):
        cache.claim("more", range(1))
    for page, values in zip(lease.pages, before, strict=True):
        assert np.array_equal(cache.blocks[0][page], values)
    assert lease.end() and not lease.is_held and not lease.end()
    assert cache.num_free_pages == 2


def test_growing_sequence_keeps_leased_pages():
    cache = make_cache()
    add(cache, "r", range(6))
    with cache.export("r", seconds=60) as lease:
        assert lease.tokens.tolist() == list(range(6))
        cache.grow("r", [7])
        written = cache.inputs(["r"]).lut[0, 1]
        assert written not in lease.pages
    assert cache.num_free_pages == 6


def test_a_lease_ends_at_its_deadline(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("kvcache.pages.leases.time.monotonic", lambda: now[0])
    cache = make_cache(num_pages=2)
    add(cache, "r", range(8))
    lease = cache.export("r", seconds=5)
    cache.release("r")
    now[0] += 4.9
    assert lease.is_held and cache.num_free_pages == 0
    now[0] += 0.2
    assert lease.seconds_left == 0 and not lease.is_held
    add(cache, "next", range(8))
    assert not lease.end()
    assert cache.num_free_pages == 0


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda cache: cache.export("unknown", seconds=1), "no request 'unknown'"),
        (
            lambda cache: cache.export("pending", seconds=1),
            "2 pending tokens: step or trunc",
        ),
        (lambda cache: cache.export("r", seconds=0), "positive"),
        (lambda cache: cache.receive([1], "r"), "'r' has been claimed already"),
        (lambda cache: cache.receive([], "new"), "expects tokens to receive, got none"),
        (lambda cache: cache.receive([1]), "'enable_prefix_caching'"),
        (lambda cache: cache.receive(range(300), "new"), "max_seq_len"),
        (lambda cache: cache.descriptors([8]), "'pages' to be 0 to 7"),
        (lambda cache: cache.descriptors([0], layers=[3]), "'layers' to be 0 to 2"),
        (lambda cache: cache.descriptors([0], heads=[-1]), "'heads' to be 0 to 1"),
    ],
)
def test_wrong_arguments_change_nothing(call, message):
    cache = make_cache()
    add(cache, "r", range(3))
    cache.claim("pending", range(2))
    before = cache.snapshot()
    with pytest.raises(ValueError, match=message):
        call(cache)
    assert cache.snapshot() == before


def test_a_reception_is_invisible_until_commit():
    cache = make_cache(enable_prefix_caching=True)
    reception = cache.receive(range(9), "r")
    assert (
        reception.pages.tolist() == sorted(set(reception.pages))
        and len(reception.pages) == 3
    )
    assert "r" not in cache and cache.match(range(9)) == 0 and cache.num_free_pages == 5
    for call in (lambda: cache.claim("r"), lambda: cache.receive([1], "r")):
        with pytest.raises(ValueError, match="'r' is being received already"):
            call()
    reception.commit()
    assert cache.tokens("r").tolist() == list(range(9))
    assert cache.match(range(12)) == 8
    with pytest.raises(ValueError, match="has ended"):
        reception.commit()
    reception.abort()
    assert "r" in cache


def test_aborted_reception_frees_its_pages():
    cache = make_cache(enable_prefix_caching=True)
    with cache.receive(range(9), "r") as reception:
        pass
    assert not reception.is_open and "r" not in cache
    assert cache.num_free_pages == 8 and cache.match(range(9)) == 0


def test_a_reception_without_a_name_becomes_a_prefix():
    cache = make_cache(enable_prefix_caching=True)
    cache.receive(range(9)).commit()
    assert cache.num_free_pages == 8
    assert cache.claim("r", range(9)) == 8


def test_reception_reserves_only_missing_pages():
    cache = make_cache(enable_prefix_caching=True)
    add(cache, "first", range(8))
    with cache.receive([*range(8), 20, 21], "r") as reception:
        assert (reception.found, reception.first, len(reception.pages)) == (8, 2, 1)
    with cache.receive([*range(6), 20, 21], "r") as reception:
        assert reception.found == 6 and reception.first == 1 and len(reception.pages) == 1
