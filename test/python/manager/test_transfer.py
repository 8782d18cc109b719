"""Pages between caches: leases, receptions, descriptors, and transfers that go wrong."""

import ctypes
import itertools
import json
import random

import kvcache
import numpy as np
import pytest
from kvcache import transfer
from kvcache.pages.regions import locate
from support.failing_transport import FailingTransport

NAMES = itertools.count()
PAGE = 4


def make_cache(num_pages=8, layout=None, quantized=False, **fields):
    config = kvcache.KVCacheQuantizationConfig("f32", 8) if quantized else None
    params = kvcache.KVCacheParams(
        "f8E4M3FN" if quantized else "bf16",
        n_kv_heads=fields.pop("n_kv_heads", 2),
        head_dim=16,
        page_size=PAGE,
        total_num_layers=3,
        kvcache_quant_config=config,
        **fields,
    )
    if layout:
        params = params.with_layout(kvcache.Layout.from_name(layout))
    cache = kvcache.PagedKVCacheManager(
        params, max_batch_size=8, max_seq_len=256, num_pages=num_pages
    )
    fill(cache)
    return cache


def fill(cache, seed=0):
    for tensor in (*cache.blocks, *cache.scales):
        tensor[...] = np.random.default_rng(seed).integers(1, 100, tensor.shape)


def add(cache, request, tokens):
    cache.claim(request, tokens)
    cache.step([request])


def local(**options):
    return transfer.LocalTransport(f"machine {next(NAMES)}", **options)


def contents(cache, request):
    """All that the cache has of a sequence, as bytes in the order of its dimensions."""
    states = {state.request: state for state in cache.snapshot().sequences}
    pages = [page.index for page in states[request].pages]
    return [
        np.ascontiguousarray(tensor[pages]).tobytes()
        for tensor in (*cache.blocks, *cache.scales)
    ]


def run(cache, message, transport, **options):
    moved = transfer.fetch(cache, message, transport, **options)
    while not moved.poll():
        pass
    return moved


# --- Leases and receptions ----------------------------------------------------------


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


def test_a_sequence_that_grows_leaves_leased_pages_alone():
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


def test_an_aborted_reception_gives_its_pages_back():
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


def test_a_reception_takes_only_what_is_missing():
    cache = make_cache(enable_prefix_caching=True)
    add(cache, "first", range(8))
    with cache.receive([*range(8), 20, 21], "r") as reception:
        assert (reception.found, reception.first, len(reception.pages)) == (8, 2, 1)
    with cache.receive([*range(6), 20, 21], "r") as reception:
        assert reception.found == 6 and reception.first == 1 and len(reception.pages) == 1


# --- Descriptors --------------------------------------------------------------------

LAYOUTS = [None, "HND", "LBHNC", "LBNHC", "LHBNC", "BLHNC", "BLNHC", "BHLNC"]


def addresses_of(tensor):
    """The address of each byte of a tensor, in its shape and one dimension more."""
    bytes_ = np.arange(tensor.itemsize)
    total = np.zeros((*tensor.shape, 1), np.int64) + bytes_ + tensor.ctypes.data
    for dim, (size, stride) in enumerate(zip(tensor.shape, tensor.strides, strict=True)):
        shape = [1] * (tensor.ndim + 1)
        shape[dim] = size
        total += (np.arange(size) * stride).reshape(shape)
    return total


@pytest.mark.parametrize("quantized", [False, True], ids=["plain", "quantized"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "layers, heads", [(None, None), ([0, 2], None), (None, [1]), ([1], [0])]
)
def test_descriptors_have_all_bytes_once(layout, quantized, layers, heads):
    cache = make_cache(layout=layout, quantized=quantized)
    pages = [5, 1, 2, 3]
    table = cache.descriptors(pages, layers, heads)
    got = np.concatenate([np.arange(start, start + n) for start, n, _ in table])
    wanted = [
        addresses_of(tensor)[pages][:, :, layers or slice(None)][
            ..., heads or slice(None), :, :
        ]
        for tensor in (*cache.blocks, *cache.scales)
    ]
    wanted = np.concatenate([part.reshape(-1) for part in wanted])
    assert np.array_equal(np.sort(got), np.sort(wanted))
    ends = table[:-1, 0] + table[:-1, 1]
    assert not np.any(ends == table[1:, 0])


def test_pages_that_lie_together_are_one_descriptor():
    cache = make_cache()
    region = cache.regions()[0]
    assert cache.descriptors([2, 3, 4, 6]).tolist() == [
        [region.address + 2 * region.page_stride, 3 * region.page_bytes, 0],
        [region.address + 6 * region.page_stride, region.page_bytes, 0],
    ]
    assert len(cache.descriptors([])) == 0


def test_a_head_lies_together_in_some_layouts():
    per_page = {
        layout: len(make_cache(layout=layout).descriptors([1], heads=[1]))
        for layout in (None, "HND", "BHLNC")
    }
    # Of 2 roles, 3 layers and 4 tokens.
    assert per_page == {None: 24, "HND": 6, "BHLNC": 1}


def test_regions_say_where_tensors_lie():
    cache = make_cache(quantized=True)
    blocks, scales = cache.regions()
    assert (blocks.tensor, scales.tensor) == ("blocks", "scales")
    assert blocks.address == cache.blocks[0].ctypes.data
    assert blocks.page_stride == blocks.page_bytes == 2 * 3 * PAGE * 2 * 16
    assert (blocks.pages, blocks.layers, blocks.layer_stride) == (8, 3, PAGE * 2 * 16)
    assert blocks.size == cache.blocks[0].nbytes and scales.size == cache.scales[0].nbytes


def test_fingerprints_differ_where_bytes_mean_something_else():
    caches = [
        make_cache(),
        make_cache(layout="HND"),
        make_cache(quantized=True),
        make_cache(n_kv_heads=4),
    ]
    names = [cache.regions()[0].fingerprint for cache in caches]
    assert len(set(names)) == len(names)
    assert make_cache(num_pages=3).regions()[0].fingerprint == names[0]


@pytest.mark.parametrize("seed", range(20))
def test_pair_splits_both_ends_alike(seed):
    draw = random.Random(seed)
    memory = np.arange(4096)

    def side(total):
        rows, at = [], 0
        while total:
            length = min(total, draw.randint(1, 50))
            at += draw.randint(1, 3)
            rows.append((at, length, 0))
            at += length
            total -= length
        return np.array(rows, np.int64).reshape(-1, 3)

    def read(table):
        return np.concatenate([memory[:0], *(memory[a : a + n] for a, n, _ in table)])

    total = draw.choice([0, 1, 700])
    source, target = side(total), side(total)
    parts = transfer.pair(source, target)
    assert np.array_equal(parts[0][:, 1], parts[1][:, 1])
    for part, whole in zip(parts, (source, target), strict=True):
        assert np.array_equal(read(part), read(whole))
    if total:
        with pytest.raises(ValueError, match="as many bytes at both ends"):
            transfer.pair(source[1:], target)


# --- Transfers ----------------------------------------------------------------------


@pytest.mark.parametrize("quantized", [False, True], ids=["plain", "quantized"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_sequence_moves_byte_for_byte(layout, quantized):
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
    moved = run(there, message, local(chunk=100), request="r")
    assert "r" not in there
    moved.finish(lease.end())
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
    monkeypatch.setattr("kvcache.transfer.offers.VERSION", 2)
    newer = fields.to_bytes()
    monkeypatch.undo()
    with pytest.raises(transfer.TransferRefused, match="another version than 1") as error:
        transfer.fetch(there, newer, transport, request="r")
    assert (error.value.peer, error.value.request) == (transport.name, "r")


def test_another_format_is_refused(pair_of_caches):
    _, message, transport = pair_of_caches
    other = make_cache(layout="HND")
    with pytest.raises(transfer.TransferRefused, match="its pages have format"):
        transfer.fetch(other, message, transport, request="r")
    assert other.num_free_pages == 8


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


def test_the_messages_are_json_behind_a_digest(pair_of_caches):
    _, message, transport = pair_of_caches
    fields = json.loads(message[16:])
    assert fields["version"] == transfer.VERSION and fields["peer"] == transport.name
    assert fields["tokens"] == list(range(11)) and len(fields["pages"]) == 3


@pytest.mark.parametrize("method", ["register", "connect", "post", "poll"])
@pytest.mark.parametrize("call", range(3))
def test_every_failure_gives_the_pages_back(pair_of_caches, method, call):
    there, message, transport = pair_of_caches
    failing = FailingTransport(local(chunk=500), method, call)
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


# --- Histories ----------------------------------------------------------------------


def write(cache, request, length):
    """Fills what a sequence has with bytes that its tokens decide."""
    tokens = cache.tokens(request)
    inputs = cache.inputs([request])
    for position in range(length, len(tokens)):
        seed = hash(tuple(tokens[: position + 1].tolist())) % 97
        page = int(inputs.lut[0, position // PAGE])
        for tensor in cache.blocks:
            tensor[page, :, :, position % PAGE] = seed


def check(cache, request):
    tokens = cache.tokens(request)
    states = {state.request: state for state in cache.snapshot().sequences}
    for position in range(len(tokens)):
        seed = hash(tuple(tokens[: position + 1].tolist())) % 97
        page = states[request].pages[position // PAGE].index
        assert (cache.blocks[0][page, :, :, position % PAGE] == seed).all()


@pytest.mark.parametrize("prefixes", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_histories_lose_no_page_and_no_byte(seed, prefixes):
    draw = random.Random(seed)
    caches = [
        make_cache(draw.randint(6, 12), enable_prefix_caching=prefixes) for _ in range(2)
    ]
    transports = [local(), local(chunk=200)]
    names = itertools.count()
    leases, moving, live = [], [], [[], []]

    def begin(i):
        request = f"r{next(names)}"
        tokens = [draw.randint(0, 1) for _ in range(draw.randint(1, 14))]
        found = caches[i].claim(request, tokens)
        write(caches[i], request, found)
        caches[i].step([request])
        live[i].append(request)

    def grow(i):
        request = draw.choice(live[i])
        length = len(caches[i].tokens(request))
        caches[i].grow(request, [draw.randint(0, 1)])
        write(caches[i], request, length)
        caches[i].step([request])

    def release(i):
        caches[i].release(live[i].pop(draw.randrange(len(live[i]))))

    def export(i):
        request = draw.choice(live[i])
        lease = caches[i].export(request, seconds=60)
        message = transfer.offer(caches[i], lease, transports[i])
        name = None if prefixes and draw.random() < 0.3 else f"r{next(names)}"
        try:
            moved = transfer.fetch(caches[1 - i], message, transports[1 - i], request=name)
        except kvcache.OutOfPagesError:
            lease.end()
            return
        leases.append(lease)
        moving.append((1 - i, name, lease, moved))

    def advance(_):
        k = draw.randrange(len(moving))
        i, name, lease, moved = moving[k]
        if draw.random() < 0.1:
            moved.cancel()
        elif draw.random() < 0.05:
            lease.end()
            with pytest.raises(transfer.TransferFailed):
                while not moved.poll():
                    pass
                moved.finish(lease.end())
        elif moved.poll():
            moved.finish(lease.end())
            live[i] += [name] if name else []
        else:
            return
        del moving[k]
        lease.end()

    for _ in range(400):
        i = draw.randrange(2)
        action = draw.choice([begin, begin, grow, grow, release, export, advance, advance])
        if action in (grow, release, export) and not live[i]:
            continue
        if action is advance and not moving:
            continue
        try:
            action(i)
        except kvcache.OutOfPagesError:
            assert action in (begin, grow)
        for cache, requests in zip(caches, live, strict=True):
            for request in requests:
                check(cache, request)
    for _, _, lease, moved in moving:
        moved.cancel()
        lease.end()
    for cache, requests in zip(caches, live, strict=True):
        for request in requests:
            cache.release(request)
        assert cache.num_free_pages == cache.num_pages and len(cache) == 0


def test_the_address_of_a_tensor_of_another_library():
    memory = np.arange(24, dtype=np.uint16).reshape(2, 3, 4)

    class Exchanged:
        """Has DLPack only."""

        def __dlpack__(self, **options):
            return memory.transpose(0, 2, 1).__dlpack__(**options)

        def __dlpack_device__(self):
            return memory.__dlpack_device__()

    address, strides = locate(Exchanged())
    assert address == memory.ctypes.data and strides == (24, 2, 8)
    assert ctypes.c_uint16.from_address(address + 2).value == 1
