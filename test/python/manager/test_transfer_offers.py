"""Tests of offers as messages: their fields, and those that are refused."""

import hashlib
import json
import struct
import time

import kvcache
import numpy as np
import pytest
from kvcache import transfer


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
    monkeypatch.setattr("kvcache.transfer.offers.VERSION", 7)
    newer = fields.to_bytes()
    monkeypatch.undo()
    older = sign(b'{"version": 4, "peer": "p", "request": "r", "tokens": 0}\n{}\n')
    for each, sender in (newer, (transport.name, "r")), (older, ("", "")):
        with pytest.raises(transfer.TransferRefused, match="version than 6") as error:
            transfer.fetch(there, each, transport, request="r")
        assert (error.value.peer, error.value.request) == sender


@pytest.mark.parametrize("is_reserved", [False, True])
@pytest.mark.parametrize(
    "tokens, message",
    [
        ([3, -5, 7], "the offer has a negative token, -5"),
        (range(10_000), "it has 10000 tokens, more than the .* of 'max_seq_len' here"),
    ],
)
def test_tokens_that_no_sequence_has_are_refused(
    pair_of_caches, tokens, message, is_reserved
):
    there, sent, transport = pair_of_caches
    fields = transfer.Offer.from_bytes(sent)
    forged = fields._replace(tokens=np.array(tokens)).to_bytes()
    given = {"request": "r"}
    if is_reserved:
        given = {"reception": there.receive(fields.tokens, "r")}
        message = message if min(tokens) < 0 else "its tokens differ"
    with pytest.raises(transfer.TransferRefused, match=message) as error:
        transfer.fetch(there, forged, transport, **given)
    assert (error.value.peer, error.value.request) == (fields.peer, "r")
    assert there.num_free_pages == 8


def test_unregistered_memory_is_refused(pair_of_caches):
    there, message, transport = pair_of_caches
    fields = transfer.Offer.from_bytes(message)
    moved_away = [
        {**vars(region), "address": region.address + region.size}
        for region in fields.regions
    ]
    regions = tuple(kvcache.Region(**region) for region in moved_away)
    forged = fields._replace(regions=regions).to_bytes()
    with pytest.raises(transfer.TransferRefused, match="no registered memory at 0x"):
        transfer.fetch(there, forged, transport, request="r")
    assert there.num_free_pages == 8


HEADER = struct.Struct("<4I3Q")
PLACES = ["version", "peer", "request", "common", "tokens", "pages", "gone"]


def test_messages_have_a_digest_names_json_and_numbers(pair_of_caches):
    _, message, transport = pair_of_caches
    header, names, common, numbers = split(message)
    assert header["version"] == transfer.VERSION
    assert names == {"peer": transport.name.encode(), "request": b"r"}
    assert set(common) == {"regions", "address", "type", "heads", "layers", "groups"}
    assert (header["tokens"], header["pages"]) == (11, 3)
    assert np.frombuffer(numbers[: 11 * 8], "<i8").tolist() == list(range(11))
    assert len(numbers) == 11 * 8 + 3 * 4


def test_names_are_any_text(pair_of_caches):
    fields = transfer.Offer.from_bytes(pair_of_caches[1])
    names = {"peer": "\0,\n\U0001f5d1", "request": "\ud800"}
    read = transfer.Offer.from_bytes(fields._replace(**names).to_bytes())
    assert {name: getattr(read, name) for name in names} == names


def split(message):
    """Splits an offer into header, names, object of JSON, and the numbers after it."""
    header = dict(zip(PLACES, HEADER.unpack_from(message, 16), strict=True))
    rest, parts = message[16 + HEADER.size :], []
    for name in ("peer", "request", "common"):
        parts.append(rest[: header[name]])
        rest = rest[header[name] :]
    *names, common = parts
    names = dict(zip(("peer", "request"), names, strict=True))
    return header, names, json.loads(common), rest


def join(header, names, common, numbers):
    """Joins the fields of an offer, with their digest and sizes.

    The header gives the sizes if it has more than the version."""
    common = common if isinstance(common, bytes) else json.dumps(common).encode()
    parts = [*names.values(), common]
    sizes = dict(zip(("peer", "request", "common"), map(len, parts), strict=True))
    header = HEADER.pack(*({**sizes, **header}[name] for name in PLACES))
    return sign(b"".join([header, *parts, numbers]))


def sign(text):
    return hashlib.sha256(text).digest()[:16] + text


def without(*path):
    """A change of a message: a field is missing."""

    def change(header, names, common):
        *outer, last = path
        for name in outer:
            common = common[name]
        del common[last]

    return change


def with_value(name, value):
    def change(header, names, common):
        for fields in (header, names, common):
            if name in fields:
                fields[name] = value

    return change


def with_region(**values):
    return lambda header, names, common: common["regions"][0].update(values)


WRONG_FIELDS = [
    *(
        (without(name), f"the offer lacks '{name}'")
        for name in ("regions", "address", "type", "heads", "layers", "groups")
    ),
    (without("regions", 0, "order"), "no valid 'regions': a region lacks 'order'"),
    (with_value("version", 3), "another version than 6"),
    (with_value("peer", b"\xff"), "no valid 'peer': 'utf-8' codec can't decode byte 0xff"),
    (with_value("tokens", 12), "the offer of 12 tokens and 3 pages has 100 bytes of them"),
    (with_value("pages", 2**64 - 19), "the offer of 11 tokens and .* pages has 100 bytes"),
    (with_value("gone", 1), "the offer of 11 tokens and 3 pages has 100 bytes of them"),
    (with_value("groups", [3]), "no valid 'groups': expects 'value' to be a str"),
    (with_value("heads", 1.5), "no valid 'heads': expects 'value' to be an integer"),
    (with_value("heads", "abc"), "no valid 'heads': expects 'value' to be an integer"),
    (with_value("layers", 3), "no valid 'layers': expects 'value' to be a list"),
    (with_value("layers", [True]), "no valid 'layers': expects 'value' to be an integer"),
    (with_value("regions", []), "no valid 'regions': expects at least one region"),
    (with_value("regions", [3]), "no valid 'regions': expects 'region' to be a dict"),
    (with_value("regions", None), "no valid 'regions': expects 'value' to be a list"),
    (with_region(more=1), "a region has no field 'more'"),
    (with_region(size="1"), "expects 'size' to be an int"),
    (with_region(shape=1), "expects 'shape' to be a tuple"),
    (with_region(shape=[17, 2, 3, 4, 2, "16"]), "expects 'shape' to be an int"),
    (with_region(strides=[1.5] * 6), "expects 'strides' to be an int"),
    (with_region(order=["page"] * 6), "expects a region of the dimensions page, role"),
    (with_region(shape=[17, 2, 3]), "expects a region of the dimensions page, role"),
    (
        with_region(shape=[17, 2, 3, 4, 2, 2**40]),
        "expects tensors of .*'blocks', .2, 3, 4, 2, 16",
    ),
    (with_region(itemsize=2**40), "expects tensors of .*'blocks', .2, 3, 4, 2, 16"),
    (with_value("address", "?"), "no valid 'address': "),
    (with_region(device=1), r"expects regions of devices from 0 on, got devices \[1\]"),
    (with_region(device=10**30), "expects regions of devices from 0 on, got devices"),
    (with_region(shape=[10**30] * 6), "expects tensors of .*'blocks', .2, 3, 4, 2, 16"),
    (with_region(address=10**30, fingerprint="other"), "another format than those here"),
]


@pytest.mark.parametrize(("change", "message"), WRONG_FIELDS)
def test_fields_that_are_missing_or_wrong_are_named(pair_of_caches, change, message):
    """A faulty peer may send a wrong message with the right digest."""
    there, sent, transport = pair_of_caches
    header, names, common, numbers = split(sent)
    header = {name: header[name] for name in ("version", "tokens", "pages", "gone")}
    change(header, names, common)
    forged = join(header, names, common, numbers)
    with pytest.raises(transfer.TransferRefused, match=message) as error:
        transfer.fetch(there, forged, transport, request="r")
    peer = names["peer"].decode(errors="replace")
    assert (error.value.peer, error.value.request) == (peer, "r")
    assert there.num_free_pages == 8


@pytest.mark.parametrize("name", ["peer", "request", "common"])
@pytest.mark.parametrize("size", [5, 2**32 - 1])
def test_sizes_that_do_not_fit_are_refused(pair_of_caches, name, size):
    there, sent, transport = pair_of_caches
    header, *parts = split(sent)
    forged = join({**header, name: size}, *parts)
    message = "the offer of 11 tokens and 3 pages has .* bytes of them"
    with pytest.raises(transfer.TransferRefused, match=message):
        transfer.fetch(there, forged, transport, request="r")
    assert there.num_free_pages == 8


@pytest.mark.parametrize("gone", [(12,), (-1,), (3, 3)])
def test_gone_has_a_token_of_each_group(pair_of_caches, gone):
    there, message, transport = pair_of_caches
    forged = transfer.Offer.from_bytes(message)._replace(gone=gone).to_bytes()
    with pytest.raises(transfer.TransferRefused, match="no valid 'gone': expects 1"):
        transfer.fetch(there, forged, transport, request="r")
    assert there.num_free_pages == 8


def test_offers_without_tokens_are_refused(pair_of_caches):
    there, sent, transport = pair_of_caches
    header, names, common, _ = split(sent)
    forged = join({"version": 6, "tokens": 0, "pages": 0, "gone": 0}, names, common, b"")
    with pytest.raises(transfer.TransferRefused, match="the offer has no tokens"):
        transfer.fetch(there, forged, transport, request="r")


# Messages on which a parser would recur, or take memory.
HOSTILE = {
    "deep": (b'{"regions":' + b"[" * 100_000, "nests lists and objects more than 4 deep"),
    "five": (b'{"regions": [{"shape": [[]]}]}', "nests lists and objects more than 4 deep"),
    "utf-16": (("{" + '"a": [' * 50).encode("utf-16"), "not a JSON object"),
    "hidden": (b'{"a": "]", "b": ' + b'["]",' * 100_000, "more than 4 deep"),
    "string": (b'{"a": "' + b"[" * 100_000 + b'\\"', "not a JSON object"),
    "large": (b'{"a": "' + b" " * (4 << 20), "an object of 4194311 bytes, more than 4194304"),
    "digits": (b'{"heads": ' + b"9" * 100_000 + b"}", "not a JSON object"),
    "quotes": (b'\\"' * (1 << 20), "not a JSON object"),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("is_reserved", [False, True], ids=["", "reserved"])
def test_hostile_objects_are_refused_with_their_sender(pair_of_caches, name, is_reserved):
    there, sent, transport = pair_of_caches
    text, message = HOSTILE[name]
    header, names, _, numbers = split(sent)
    header = {name: header[name] for name in ("version", "tokens", "pages", "gone")}
    forged = join(header, names, text, numbers)
    options = {"request": "r"}
    if is_reserved:
        options = {"reception": there.receive(range(11), "r")}
    start = time.monotonic()
    with pytest.raises(transfer.TransferRefused, match=message) as error:
        transfer.fetch(there, forged, transport, **options)
    assert time.monotonic() - start < 5
    assert (error.value.peer, error.value.request) == (transport.name, "r")
    assert there.num_free_pages == 8


@pytest.mark.parametrize("text", [b"{", b"[]", b"3", b""])
def test_offers_have_an_object_of_json(pair_of_caches, text):
    header, names, _, numbers = split(pair_of_caches[1])
    header = {name: header[name] for name in ("version", "tokens", "pages", "gone")}
    with pytest.raises(transfer.TransferRefused, match="not a JSON object"):
        transfer.Offer.from_bytes(join(header, names, text, numbers))


@pytest.mark.parametrize("pages", [[0, 1, 8], [0, -1, 1]])
def test_pages_that_are_not_lent_are_refused(pair_of_caches, pages):
    there, message, transport = pair_of_caches
    fields = transfer.Offer.from_bytes(message)
    forged = fields._replace(pages=np.array(pages)).to_bytes()
    with pytest.raises(transfer.TransferRefused, match="it has no page 8|it lacks pages"):
        transfer.fetch(there, forged, transport, request="r")
    assert there.num_free_pages == 8
