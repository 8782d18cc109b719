"""Transfers between caches, and what goes wrong on the way."""

import hashlib
import json

import kvcache
import numpy as np
import pytest
from kvcache import transfer
from support.failing_transport import FailingTransport
from support.transfers import (
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


def test_what_is_here_is_not_read():
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


@pytest.fixture
def pair_of_caches():
    here, there = make_cache(), make_cache()
    add(here, "r", range(11))
    lease = here.export("r", seconds=60)
    transport = local()
    yield there, transfer.offer(here, lease, transport), transport
    lease.end()


def test_a_lease_that_ran_out_spoils_what_came(pair_of_caches):
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
    with pytest.raises(ValueError, match="after poll has returned True"):
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


def test_damaged_offers_are_refused(pair_of_caches):
    there, message, transport = pair_of_caches
    cut = [message[:n] for n in range(0, len(message), 37)]
    changed = [
        message[:i] + bytes([message[i] ^ 1]) + message[i + 1 :]
        for i in range(0, len(message), 41)
    ]
    for each in [*cut, *changed, message + b" "]:
        with pytest.raises(transfer.TransferRefused, match="damaged or cut off"):
            transfer.fetch(there, each, transport, request="r")
    assert there.num_free_pages == 8


def test_another_version_is_refused(pair_of_caches, monkeypatch):
    there, message, transport = pair_of_caches
    fields = transfer.Offer.from_bytes(message)
    monkeypatch.setattr("kvcache.transfer.offers.VERSION", 5)
    newer = fields.to_bytes()
    monkeypatch.undo()
    with pytest.raises(transfer.TransferRefused, match="another version than 4") as error:
        transfer.fetch(there, newer, transport, request="r")
    assert (error.value.peer, error.value.request) == (transport.name, "r")


def test_memory_that_nobody_registered_is_refused(pair_of_caches):
    there, message, transport = pair_of_caches
    fields = transfer.Offer.from_bytes(message)
    moved_away = [
        {**vars(region), "address": region.address + region.size}
        for region in fields.regions
    ]
    regions = tuple(kvcache.Region(**region) for region in moved_away)
    forged = transfer.Offer(**{**vars(fields), "regions": regions}).to_bytes()
    with pytest.raises(transfer.TransferRefused, match="no registered memory at 0x"):
        transfer.fetch(there, forged, transport, request="r")
    assert there.num_free_pages == 8


def test_the_messages_are_json_and_numbers_behind_a_digest(pair_of_caches):
    _, message, transport = pair_of_caches
    fields, common, numbers = split(message)
    assert fields["version"] == transfer.VERSION and fields["peer"] == transport.name
    assert set(common) == {"regions", "address", "type", "heads", "layers", "groups"}
    assert (fields["tokens"], fields["pages"]) == (11, 3)
    assert np.frombuffer(numbers[: 11 * 8], "<i8").tolist() == list(range(11))
    assert len(numbers) == 11 * 8 + 3 * 4


def split(message):
    """The two lines of an offer, and what is behind them."""
    *lines, numbers = message[16:].split(b"\n", 2)
    return *map(json.loads, lines), numbers


def join(*parts):
    """An offer of such parts, with the digest that they have."""
    *lines, numbers = parts
    text = b"\n".join([*(json.dumps(line).encode() for line in lines), numbers])
    return hashlib.sha256(text).digest()[:16] + text


def without(*path):
    """A change of a message: a field is missing."""

    def change(lines):
        *outer, last = path
        fields = find_line(lines, path[0])
        for name in outer:
            fields = fields[name]
        del fields[last]

    return change


def with_value(name, value):
    return lambda lines: find_line(lines, name).update({name: value})


def with_region(**values):
    return lambda lines: lines[1]["regions"][0].update(values)


def find_line(lines, name):
    """The one of both lines that has a field."""
    return next(fields for fields in lines if name in fields)


WRONG_FIELDS = [
    *(
        (without(name), f"the offer lacks '{name}'")
        for name in ("peer", "request", "tokens", "pages", "regions", "address")
    ),
    (without("version"), "another version than 4"),
    (without("regions", 0, "order"), "no valid 'regions': a region lacks 'order'"),
    (with_value("peer", 3), "no valid 'peer': expects"),
    (with_value("tokens", "abc"), "no valid 'tokens': expects 'value' to be an integer"),
    (with_value("pages", 1.5), "no valid 'pages': expects 'value' to be an integer"),
    (with_value("tokens", 12), "the offer of 12 tokens and 3 pages has 100 bytes of them"),
    (with_value("pages", -19), "the offer of 11 tokens and -19 pages has 100 bytes"),
    (with_value("groups", [3]), "no valid 'groups': expects 'value' to be a str"),
    (with_value("layers", 3), "no valid 'layers': expects 'value' to be a list"),
    (with_value("layers", [True]), "no valid 'layers': expects 'value' to be an integer"),
    (with_value("regions", []), "no valid 'regions': expects at least one region"),
    (with_value("regions", [3]), "no valid 'regions': expects 'region' to be a dict"),
    (with_value("regions", None), "no valid 'regions': expects 'value' to be a list"),
    (with_region(more=1), "a region has no field 'more'"),
    (with_region(size="1"), "expects 'size' to be a int"),
    (with_region(shape=1), "expects 'shape' to be a tuple"),
    (with_region(shape=[17, 2, 3, 4, 2, "16"]), "expects 'shape' to be a int"),
    (with_region(strides=[1.5] * 6), "expects 'strides' to be a int"),
    (with_region(order=["page"] * 6), "expects a region of the dimensions page, role"),
    (with_region(shape=[17, 2, 3]), "expects a region of the dimensions page, role"),
    (
        with_region(shape=[17, 2, 3, 4, 2, 2**40]),
        "expects tensors of .*'blocks', .2, 3, 4, 2, 16",
    ),
    (with_region(itemsize=2**40), "expects tensors of .*'blocks', .2, 3, 4, 2, 16"),
    (with_value("address", "?"), "no valid 'address': "),
]


@pytest.mark.parametrize(("change", "message"), WRONG_FIELDS)
def test_fields_that_are_missing_or_wrong_are_named(pair_of_caches, change, message):
    """A peer may have an error of its own: the digest fits what it has sent."""
    there, sent, transport = pair_of_caches
    *lines, numbers = split(sent)
    change(lines)
    forged = join(*lines, numbers)
    with pytest.raises(transfer.TransferRefused, match=message) as error:
        transfer.fetch(there, forged, transport, request="r")
    assert error.value.request == lines[0].get("request")
    assert there.num_free_pages == 8


@pytest.mark.parametrize("text", [b"{", b"[]", b"3"])
@pytest.mark.parametrize("line", [0, 1])
def test_offers_are_objects_of_json(pair_of_caches, text, line):
    parts = pair_of_caches[1][16:].split(b"\n", 2)
    parts[line] = text
    forged = b"\n".join(parts)
    for each in (forged, forged.rpartition(text)[0] + text):
        message = hashlib.sha256(each).digest()[:16] + each
        with pytest.raises(transfer.TransferRefused, match="no object of JSON"):
            transfer.Offer.from_bytes(message)


@pytest.mark.parametrize("pages", [[0, 1, 8], [0, -1, 1]])
def test_pages_that_are_not_lent_are_refused(pair_of_caches, pages):
    there, message, transport = pair_of_caches
    fields = vars(transfer.Offer.from_bytes(message))
    forged = transfer.Offer(**{**fields, "pages": np.array(pages)}).to_bytes()
    with pytest.raises(transfer.TransferRefused, match="it has no page 8|it lacks pages"):
        transfer.fetch(there, forged, transport, request="r")
    assert there.num_free_pages == 8


@pytest.mark.parametrize(
    "method", ["register", "connect", "post", "post_pages", "poll"]
)
@pytest.mark.parametrize("call", range(3))
def test_every_failure_gives_the_pages_back(pair_of_caches, method, call):
    there, message, transport = pair_of_caches
    receiver = (PageTransport if method == "post_pages" else local)(chunk=500)
    failing = FailingTransport(receiver, method, call)
    before = there.snapshot()
    try:
        run(there, message, failing, request="r").finish(True)
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
