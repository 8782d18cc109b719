"""Tests of transfers between caches, and of their failures."""

import sys

import kvcache
import pytest
from failing_transport import FailingTransport
from kvcache import transfer
from transfers import (
    LAYOUTS,
    PageTransport,
    add,
    contents,
    fill,
    local,
    make_cache,
    run,
)


@pytest.mark.parametrize("make_receiver", [local, PageTransport])
@pytest.mark.parametrize("quantized", [False, True], ids=["plain", "quantized"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_sequence_moves_byte_for_byte(layout, quantized, make_receiver):
    here, there = (make_cache(n, layout, quantized) for n in (9, 14))
    fill(there, 1)
    add(here, "gap", range(5))
    add(here, "r", range(11))
    here.release("gap")
    here.grow("r", range(4))
    here.step(["r"])
    add(there, "other", range(9))
    others = contents(there, "other")
    lease = here.export("r", seconds=60)
    message = transfer.offer(here, lease, sender := local())
    receiver = make_receiver(chunk=100)
    moved = run(there, message, receiver, request="r")
    assert "r" not in there
    assert moved.bytes == sum(4 * region.page_bytes for region in here.regions())
    moved.finish(lease.end())
    if make_receiver is PageTransport:
        numbers = lease.pages.tolist(), moved.reception.pages.tolist()
        assert receiver.posted == [numbers]
    assert there.tokens("r").tolist() == here.tokens("r").tolist()
    assert contents(there, "r") == contents(here, "r")
    assert contents(there, "other") == others
    assert sender.name


def test_cached_pages_are_not_read():
    here, there = (make_cache(enable_prefix_caching=True) for _ in range(2))
    fill(there, 1)
    for cache in (here, there):
        add(cache, "system", range(8))
    add(here, "r", range(14))
    system = contents(there, "system")
    with here.export("r", seconds=60) as lease:
        transport = local()
        moved = run(there, transfer.offer(here, lease, transport), transport, request="r")
        assert moved.bytes == 2 * here.regions()[0].page_bytes
        moved.finish(True)
    assert contents(there, "system") == system
    assert there.tokens("r").tolist() == list(range(14))


NOTHING_AT_8 = {"window": kvcache.reach.window(1), "chunk": kvcache.reach.chunk(4)}


@pytest.mark.parametrize("length", [7, 8, 9])
@pytest.mark.parametrize("kind", NOTHING_AT_8)
@pytest.mark.parametrize("make_receiver", [local, PageTransport])
def test_fetch_posts_nothing_without_reached_pages(
    make_receiver, kind, length
):
    here, there = (make_cache(reach=NOTHING_AT_8[kind]) for _ in range(2))
    add(here, "r", range(length))
    with here.export("r", seconds=60) as lease:
        message = transfer.offer(here, lease, sender := local())
        moved = transfer.fetch(there, message, make_receiver(chunk=100), request="r")
        assert moved.poll() == (length == 8)
        while not moved.poll():
            pass
        assert moved.bytes == (length != 8) * here.regions()[0].page_bytes
        moved.finish(lease.end())
    assert there.tokens("r").tolist() == list(range(length))
    assert here.num_free_pages == there.num_free_pages == 7 + (length == 8)
    for cache in (here, there):
        add(cache, "after", range(20, 24))
        cache.grow("r", [30])
        cache.inputs(["r"])
        cache.step(["r"])
    assert sender.name


def test_empty_transfer_is_cancelled_and_refused_as_others():
    here, there = (make_cache(reach=kvcache.reach.window(1)) for _ in range(2))
    add(here, "r", range(8))
    message = transfer.offer(here, here.export("r", seconds=60), sender := local())
    transfer.fetch(there, message, local(), request="r").cancel()
    moved = transfer.fetch(there, message, local(), request="r")
    with pytest.raises(transfer.TransferFailed, match="the lease ran out"):
        moved.finish(False)
    del sender
    with pytest.raises(transfer.TransferRefused, match="no such transport"):
        transfer.fetch(there, message, local(), request="r")
    assert "r" not in there and there.num_free_pages == 8


def test_expired_lease_fails_the_transfer(pair_of_caches):
    there, message, transport = pair_of_caches
    moved = run(there, message, transport, request="r")
    with pytest.raises(transfer.TransferFailed, match="the lease ran out") as error:
        moved.finish(False)
    assert (error.value.peer, error.value.request) == (transport.name, "r")
    assert "r" not in there and there.num_free_pages == 8


def test_a_slow_transfer_can_be_cancelled(pair_of_caches):
    there, message, _ = pair_of_caches
    moved = transfer.fetch(there, message, local(chunk=1), request="r")
    assert not moved.poll() and not moved.poll()
    with pytest.raises(ValueError, match="'poll' to have returned True"):
        moved.finish(True)
    moved.cancel()
    moved.cancel()
    assert "r" not in there and there.num_free_pages == 8
    with pytest.raises(ValueError, match="has ended"):
        moved.poll()


def test_the_same_offer_twice_is_one_transfer(pair_of_caches):
    there, message, transport = pair_of_caches
    moved = transfer.fetch(there, message, transport, request="r")
    with pytest.raises(ValueError, match="'r' is being received already"):
        transfer.fetch(there, message, transport, request="r")
    while not moved.poll():
        pass
    moved.finish(True)
    with pytest.raises(ValueError, match="'r' has been claimed already"):
        transfer.fetch(there, message, transport, request="r")
    assert there.num_free_pages == 5


def test_pages_can_be_reserved_before_the_offer_comes(pair_of_caches):
    there, message, transport = pair_of_caches
    reception = there.receive(range(11), "name")
    assert there.num_free_pages == 5
    moved = run(there, message, transport, reception=reception)
    assert moved.reception is reception and "name" not in there
    moved.finish(True)
    assert there.tokens("name").tolist() == list(range(11))
    assert contents(there, "name")


@pytest.mark.parametrize(
    ("tokens", "damage", "message"),
    [
        (range(12), 0, "'r' of peer 'machine .*: its tokens differ from"),
        ([*range(10), 20], 0, "its tokens differ from those of the reserved pages"),
        (range(11), 1, "the offer is damaged or cut off"),
    ],
)
def test_reception_rejects_other_offers(
    pair_of_caches, tokens, damage, message
):
    there, sent, transport = pair_of_caches
    reception = there.receive(tokens, "r")
    with pytest.raises(transfer.TransferRefused, match=message):
        transfer.fetch(there, sent[damage:], transport, reception=reception)
    assert not reception.is_open and there.num_free_pages == 8


def test_only_open_receptions_of_the_cache_are_filled(pair_of_caches):
    there, message, transport = pair_of_caches
    ended, other = there.receive([1], "a"), make_cache().receive(range(11), "b")
    ended.abort()
    for reception in (ended, other):
        with pytest.raises(ValueError, match="has ended, or is of another cache"):
            transfer.fetch(there, message, transport, reception=reception)
    moved = transfer.fetch(there, message, transport, request="r")
    with pytest.raises(ValueError, match="another transfer fills the reception of 'r'"):
        transfer.fetch(there, message, transport, reception=moved.reception)
    own = there.receive([1, 2], "c")
    for options in ({"request": "c"}, {"salt": b"s"}):
        with pytest.raises(ValueError, match="'reception' has the name and the salt"):
            transfer.fetch(there, message, transport, reception=own, **options)
    assert own.is_open and other.is_open and moved.reception.is_open


@pytest.mark.parametrize("kind", [RecursionError, MemoryError, AssertionError, KeyboardInterrupt])
@pytest.mark.parametrize("module, function", [("offers", "_read_common"), ("fetch", "_count_bytes")])
def test_every_exception_frees_the_pages(pair_of_caches, module, function, kind, monkeypatch):
    there, message, transport = pair_of_caches

    def fail(*arguments):
        raise kind("no more")

    monkeypatch.setattr(sys.modules[f"kvcache.transfer.{module}"], function, fail)
    reception = there.receive(range(11), "r")
    wanted = kind if kind is KeyboardInterrupt else transfer.TransferRefused
    with pytest.raises(wanted, match="no more") as error:
        transfer.fetch(there, message, transport, reception=reception)
    if wanted is not kind:
        assert (error.value.peer, error.value.request) == (transport.name, "r")
    assert there.num_free_pages == 8 and not reception.is_open


@pytest.mark.parametrize(
    "method", ["register", "connect", "post", "post_pages", "poll"]
)
@pytest.mark.parametrize("call", range(3))
@pytest.mark.parametrize("is_reserved", [False, True], ids=["", "reserved"])
def test_every_failure_frees_the_pages(pair_of_caches, method, call, is_reserved):
    there, message, transport = pair_of_caches
    receiver = (PageTransport if method == "post_pages" else local)(chunk=500)
    failing = FailingTransport(receiver, method, call)
    before = there.snapshot()
    options = {"request": "r"}
    if is_reserved:
        options = {"reception": there.receive(range(11), "r")}
    try:
        run(there, message, failing, **options).finish(True)
    except transfer.TransferError as error:
        assert failing.has_failed
        kind = transfer.TransferFailed if method == "poll" else transfer.TransferRefused
        assert type(error) is kind and "the cable is cut" in str(error)
        assert (error.peer, error.request) == (transport.name, "r")
        assert there.snapshot() == before
    else:
        assert not failing.has_failed and "r" in there


def test_pages_stay_reserved_while_a_transport_may_write(pair_of_caches):
    there, message, _ = pair_of_caches
    failing = FailingTransport(local(chunk=1), "cancel", 0)
    moved = transfer.fetch(there, message, failing, request="r")
    with pytest.raises(OSError, match="the cable is cut"):
        moved.cancel()
    assert moved.reception.is_open and there.num_free_pages == 5
    moved.cancel()
    assert there.num_free_pages == 8


def test_a_peer_that_dies(pair_of_caches):
    there, _, _ = pair_of_caches
    here = make_cache()
    add(here, "r", range(11))
    dying = local()
    name = dying.name
    message = transfer.offer(here, here.export("r", seconds=60), dying)
    moved = transfer.fetch(there, message, local(chunk=1), request="r")
    assert not moved.poll()
    del dying
    with pytest.raises(transfer.TransferFailed, match="the peer is gone") as error:
        moved.poll()
    assert (error.value.peer, error.value.request) == (name, "r")
    assert there.num_free_pages == 8 and "r" not in there
