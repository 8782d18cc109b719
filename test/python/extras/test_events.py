"""Tests of the events of a manager, by a router that applies them."""

import functools
import random
import struct
import threading
import time
from dataclasses import dataclass

import kvcache
import msgspec
import pytest
import zmq
from event_router import Router, connect, count_cached
from group_histories import GroupHistory
from group_model import KINDS, Groups
from kvcache import events
from manager_histories import SALTS, History
from manager_model import Configuration
from published_events import SIZE, make_manager, publish, serve, serve_random


def get_next(publisher):
    """The number of the next batch."""
    return publisher._log.epoch + publisher.num_batches


def list_events(publisher, start=0):
    """The events of all batches in the replay, one after another."""
    with connect(publisher) as client:
        batches = client.ask(struct.pack(">Q", start))
    return [event for _, _, payload in batches for event in msgspec.msgpack.decode(payload)[1]]


# --- Random traffic -----------------------------------------------------------


@pytest.mark.parametrize("host_pages", [0, 4])
@pytest.mark.parametrize("has_failures", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_router_finds_what_the_manager_has(host_pages, has_failures, seed):
    configuration = Configuration(num_pages=7, host_pages=host_pages)
    draw = random.Random(seed)
    with publish() as publisher, connect(publisher) as client:
        make = functools.partial(kvcache.PagedKVCacheManager, events=publisher)
        history = History(seed, configuration, manager=make, has_failures=has_failures)
        manager, router = history.checked.manager, Router(configuration.page_size)
        for _ in range(60):
            history.run(5)
            manager.reset_prefix_cache() if draw.random() < 0.05 else history.step()
            history.checked.check()
            manager._publish_changed()  # evictions since the last step
            client.update(router)
            assert router.count() == count_cached(manager)
            for salt in SALTS:
                tokens = draw.choice(history.prompts)
                size = configuration.page_size
                found = router.match(tokens, salt.decode() or None)
                assert found >= manager.match(tokens, salt=salt) // size * size
        assert client.make_router(configuration.page_size).blocks == router.blocks


@dataclass(frozen=True)
class PublishedGroups(Groups):
    """Groups whose managers publish."""

    publishers: tuple = ()

    def make(self, memory=None):
        publisher = publish()
        self.publishers.append(publisher)
        original = kvcache.PagedKVCacheManager
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kvcache, "PagedKVCacheManager", functools.partial(original, events=publisher))
            return super().make(memory)


@pytest.mark.parametrize("kinds", KINDS, ids=str)
def test_groups_publish_their_cached_pages(kinds):
    groups = PublishedGroups(kinds, host_pages=6, disk_pages=4, publishers=[])
    history = GroupHistory(1, groups)
    publisher = groups.publishers[0]
    router = Router(history.slots[0].border)
    with connect(publisher) as client:
        for _ in range(40):
            history.run(10)
            history.manager._publish_changed()
            client.update(router)
            assert router.count() == count_cached(history.manager)
    tags = {kind["kv_cache_spec_kind"] for kind in list_events(publisher) if "kv_cache_spec_kind" in kind}
    names = {"full": "full_attention", "window": "sliding_window", "chunk": "chunked_local_attention", "state": "mamba"}
    is_plain = len(kinds) == 1 and kinds[0][0].is_full
    assert tags <= (set() if is_plain else {names[kind.kind] for kind, *_ in kinds})
    assert is_plain or tags
    for each in groups.publishers:
        each.close()


# --- Format ---------------------------------------------------------------------


def test_batches_have_the_format_of_vllm():
    with publish(topic="kv@pod@model", rank=3) as publisher:
        context = zmq.Context()
        with context.socket(zmq.SUB) as live, connect(publisher) as client:
            live.rcvtimeo = 10_000
            live.subscribe(b"kv@pod@model")
            live.connect(publisher.endpoint)
            manager = make_manager(publisher)
            while msgspec.msgpack.decode(live.recv_multipart()[2])[1:] != [[], 3]:
                pass  # until the batch that greets the subscriber
            before = publisher.num_batches
            serve(manager, [1, 2, 3, 4, 5, 6, 7, 8, 9], b"tenant")
            frames = live.recv_multipart()
            while struct.unpack(">Q", frames[1])[0] != publisher._log.epoch + before:
                frames = live.recv_multipart()
            assert client.ask(frames[1]) == [frames]
        context.term()
    assert frames[0] == b"kv@pod@model"
    moment, (event,), rank = msgspec.msgpack.decode(frames[2])
    hashes = events.block_hashes(range(1, 9), SIZE, extra=[("cache_salt", "tenant")])
    assert abs(moment - time.time()) < 60 and rank == 3
    assert list(event.items()) == [
        ("type", "BlockStored"),
        ("block_hashes", [events.wire_hash(each) for each in hashes]),
        ("parent_block_hash", None),
        ("token_ids", [1, 2, 3, 4, 5, 6, 7, 8]),
        ("block_size", SIZE),
        ("lora_id", None),
        ("medium", "GPU"),
        ("lora_name", None),
        ("extra_keys", [["tenant"], None]),
        ("cache_salt", "tenant"),
    ]


@pytest.mark.parametrize("name, seed", [("sha256", None), ("xxhash_cbor", "0"), ("sglang", None)])
def test_events_have_hashes_of_the_engine(name, seed):
    with publish(block_hash=name, seed=seed) as publisher:
        manager = make_manager(publisher)
        serve(manager, range(9))
        serve(manager, range(14))
        first, second = list_events(publisher)[1:]
    style = "sglang" if name == "sglang" else "vllm"
    hashes = [events.wire_hash(each, style) for each in events.block_hashes(range(12), SIZE, name, seed=seed)]
    assert first["block_hashes"] == hashes[:2] and second["block_hashes"] == hashes[2:]
    assert second["parent_block_hash"] == hashes[1] and second["token_ids"] == [8, 9, 10, 11]


def test_moved_page_is_stored_there_before_it_is_removed_here():
    with publish() as publisher:
        manager = make_manager(
            publisher, 4, enable_kvcache_swapping_to_host=True, host_kvcache_swap_space_gb=1e-5
        )
        serve(manager, range(9))
        start = get_next(publisher)
        serve(manager, range(20, 35))
        stored = list_events(publisher, start)
        kinds = [(each["type"], each["medium"], len(each["block_hashes"])) for each in stored]
    assert sorted(kinds[:2]) == [("BlockStored", "CPU", 2), ("BlockStored", "GPU", 3)]
    assert kinds[2:] == [("BlockRemoved", "GPU", 2)]


DEEP = "\0kvcache-salt:" + "[" * 100_000


@pytest.mark.parametrize(
    "salt, salt_text, adapter",
    [
        (b"", None, None),
        ("größe".encode(), "größe", None),
        (b"\xff\0", "bytes:ff00", None),
        (b"bytes:ff00", "bytes:62797465733a66663030", None),
        (b"\0kvcache-salt:3", "\0kvcache-salt:3", None),
        pytest.param(DEEP.encode(), DEEP, None, id="nested deeply"),
        (b'\0kvcache-salt:[1, "x", ""]', '\0kvcache-salt:[1, "x", ""]', None),
        (events.make_salt(cache_salt="tenant"), "tenant", None),
        (events.make_salt(adapter="fr", adapter_path="/fr"), None, "fr"),
        (events.make_salt(cache_salt="tenant", adapter="fr"), "tenant", "fr"),
    ],
)
def test_salts_and_adapters_have_their_own_fields(salt, salt_text, adapter):
    with publish() as publisher, connect(publisher) as client:
        manager = make_manager(publisher)
        serve(manager, range(9), salt)
        router = Router(SIZE)
        client.update(router)
        assert router.match(range(9), salt_text, adapter) == manager.match(range(9), salt=salt) == 8
        assert len({*router.blocks.values()}) == 2
        (event,) = list_events(publisher)[1:]
    keys = [("lora", adapter, "/fr" if salt_text is None else "")] if adapter else []
    keys += [("cache_salt", salt_text)] if salt_text else []
    expected = events.block_hashes(range(8), SIZE, extra=keys)
    assert event["block_hashes"] == [events.wire_hash(each) for each in expected]


@pytest.mark.parametrize(
    "name, tokens, salt",
    [
        ("sglang", [2**32] * 9, b""),
        ("sglang", range(9), b"tenant"),
        ("sha256_cbor", range(9), events.make_salt(adapter="\ud800")),
    ],
)
def test_blocks_without_a_hash_are_left_out(name, tokens, salt):
    with publish(block_hash=name) as publisher, connect(publisher) as client:
        manager, router = make_manager(publisher), Router(SIZE)
        serve(manager, tokens, salt)
        serve(manager, range(20, 29))
        client.update(router)
        assert manager.match(tokens, salt=salt) == 8
        assert len(router.blocks) == 2 and router.match(range(20, 29)) == 8


def test_make_salt_rejects_invalid_arguments():
    with pytest.raises(ValueError, match="'adapter' with 'adapter_path', got '/fr'"):
        events.make_salt(adapter_path="/fr")
    with pytest.raises(TypeError, match="'cache_salt' to be a string, got b'x'"):
        events.make_salt(cache_salt=b"x")
    assert events.make_salt() == b""


# --- Lost batches -----------------------------------------------------------------


def test_late_router_gets_all_from_a_short_log():
    draw = random.Random(0)
    with publish(kept_batches=3) as publisher, connect(publisher) as client:
        manager, router = make_manager(publisher), Router(SIZE)
        client.update(router)
        for _ in range(20):
            serve_random(manager, draw, draw.choice([1, 2, 9]))
            late = Router(SIZE)
            assert client.update(late) <= 3
            client.update(router)
            assert late.blocks == router.blocks and late.next == router.next == get_next(publisher)
            assert router.count() == count_cached(manager)
        assert client.ask(struct.pack(">Q", get_next(publisher))) == []


def test_replay_without_a_manager_has_the_last_batches(monkeypatch):
    with publish(kept_batches=2) as publisher, connect(publisher) as client:
        with monkeypatch.context() as patch:
            patch.setattr(events.feed.Feed, "has_new_subscriber", lambda feed: True)
            for _ in range(5):
                publisher._log.greet()
        assert 5 <= get_next(publisher) - publisher._log.epoch
        assert len(client.ask(struct.pack(">Q", 0))) == 2


def test_snapshot_of_many_blocks_has_several_batches(monkeypatch):
    monkeypatch.setattr(kvcache.events.log, "_CHUNK", 2)
    with publish() as publisher, connect(publisher) as client:
        manager = make_manager(publisher)
        serve_random(manager, random.Random(1), 30)
        header, *chunks = client.ask(b"snapshot-v1")
        assert len(chunks) == -(-msgspec.msgpack.decode(header[2])["blocks"] // 2) > 2
        assert client.make_router(SIZE).count() == count_cached(manager)


def test_snapshot_and_live_batches_give_the_tree():
    """Pages are evicted while a snapshot is made."""
    draw = random.Random(0)
    with publish() as publisher, connect(publisher) as client:
        manager, is_done = make_manager(publisher, 40), threading.Event()

        def work():
            while not is_done.is_set():
                serve_random(manager, draw, 1)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            routers = [client.make_router(SIZE) for _ in range(30)]
        finally:
            is_done.set()
            thread.join()
        assert manager.stats.pages_evicted
        for router in routers:
            client.update(router)
            assert router.blocks == routers[0].blocks
            assert router.count() == count_cached(manager)


def test_restarted_publisher_clears_the_old_state():
    router = Router(SIZE)
    for _ in range(2):
        with publish() as publisher, connect(publisher) as client:
            manager = make_manager(publisher)
            client.update(router)
            assert not router.blocks
            serve(manager, range(9))
            client.update(router)
            assert router.match(range(9)) == 8
        time.sleep(0.02)


@pytest.mark.parametrize(
    "request_",
    [[b"snapshot-v1"], [b"", b""], [b"", b"1234567"], [b"", b"snapshot-v9"], [b"x", bytes(8)], [b"", bytes(8), b""]],
)
def test_invalid_requests_are_ignored(request_):
    with publish() as publisher, connect(publisher) as client:
        make_manager(publisher)
        client.socket.send_multipart(request_)
        assert len(client.ask(bytes(8))) == 1


def test_clients_that_hang_delay_nothing():
    with publish() as publisher, connect(publisher) as hanging, connect(publisher) as client:
        manager = make_manager(publisher)
        hanging.socket.rcvhwm = 1
        for _ in range(200):
            hanging.socket.send_multipart([b"", b"snapshot-v1"])
        context = zmq.Context()
        slow = context.socket(zmq.SUB)
        slow.rcvhwm = 1
        slow.subscribe(b"")
        slow.connect(publisher.endpoint)
        start = time.monotonic()
        serve_random(manager, random.Random(0), 300)
        assert time.monotonic() - start < 10
        router = Router(SIZE)
        client.update(router)
        assert router.count() == count_cached(manager)
        context.destroy(linger=0)
