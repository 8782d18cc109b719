"""Tests of a publisher of events: its thread, its end and its arguments."""

import gc
import random
import subprocess
import sys
import threading

import kvcache
import pytest
import zmq
from event_router import Router, connect, count_cached
from kvcache import events
from published_events import LOCAL, SIZE, make_manager, publish, serve, serve_random


# --- The thread that sends ----------------------------------------------------


def test_step_waits_for_no_hash(monkeypatch):
    release = threading.Event()
    hash_ = events.hashes.BlockHasher.hash
    monkeypatch.setattr(events.hashes.BlockHasher, "hash", lambda *given: release.wait() and hash_(*given))
    with publish() as publisher, connect(publisher) as client:
        manager, router = make_manager(publisher), Router(SIZE)
        serve(manager, range(9))
        serve(manager, range(20, 29))
        release.set()
        client.update(router)
        assert router.match(range(9)) == router.match(range(20, 29)) == 8


def test_late_thread_sends_pages_as_they_were(monkeypatch):
    monkeypatch.setattr(events.log.Sender, "_run", lambda self: None)
    draw = random.Random(0)
    with publish() as publisher, connect(publisher) as client:
        manager, router = make_manager(publisher), Router(SIZE)
        for _ in range(20):
            serve_random(manager, draw, 20)
            manager.reset_prefix_cache() if draw.random() < 0.3 else None
            client.update(router)
            assert router.count() == count_cached(manager)
        assert manager.stats.pages_evicted


def test_very_late_thread_makes_steps_wait(monkeypatch):
    monkeypatch.setattr(events.log, "_LATE", 3)
    monkeypatch.setattr(events.log.Sender, "_run", lambda self: None)
    with publish() as publisher:
        manager = make_manager(publisher)
        serve(manager, range(9))
        assert len(publisher._log.waiting) == 1
        serve(manager, range(20, 29))
        assert not publisher._log.waiting


def test_flush_sends_all():
    with publish() as publisher:
        manager = make_manager(publisher)
        serve(manager, range(9))
        publisher.flush()
        assert not publisher._log.waiting and publisher._log.next == publisher._log.epoch + 2


@pytest.mark.parametrize(
    "name, failures, blocks, message",
    [
        ("_describe", 2, 2, "a block is not published"),
        ("_list_stored", 1, 4, "events are lost"),
        ("_list_stored", 2, 0, "events are lost"),
    ],
)
def test_thread_survives_errors(monkeypatch, caplog, name, failures, blocks, message):
    """Routers lose a block that fails, and get all others anew; after a second failure, they forget all."""
    with publish() as publisher, connect(publisher) as client:
        manager, router = make_manager(publisher), Router(SIZE)
        serve(manager, range(9))
        client.update(router)
        assert router.match(range(9)) == 8
        method, left = getattr(events.index.BlockIndex, name), iter(range(failures))

        def fail(*given):
            return method(*given) if next(left, None) is None else 1 / 0

        with monkeypatch.context() as patch:
            patch.setattr(events.index.BlockIndex, name, fail)
            serve(manager, range(20, 29))
            publisher.flush()
        client.update(router)
        assert len(router.blocks) == blocks and message in caplog.text
        serve(manager, range(30, 39))
        client.update(router)
        assert router.match(range(30, 39)) == 8 and len(router.blocks) == blocks + 2


def test_replay_survives_an_error(monkeypatch):
    with publish() as publisher, connect(publisher) as client:
        manager = make_manager(publisher)
        serve(manager, range(9))
        with monkeypatch.context() as patch:
            failed = threading.Event()
            patch.setattr(events.log.EventLog, "list_snapshot", lambda log: failed.set() or 1 / 0)
            client.socket.send_multipart([b"", b"snapshot-v1"])
            assert failed.wait(10)
        assert client.make_router(SIZE).count() == count_cached(manager)


# --- Ends -------------------------------------------------------------------------


def test_manager_works_after_the_publisher_was_closed(monkeypatch):
    publisher = publish()
    manager = make_manager(publisher)
    publisher.close()
    publisher.close()
    monkeypatch.setattr(events.hashes.BlockHasher, "hash", None)  # nothing is hashed any more
    serve(manager, range(9))
    publisher.flush()
    assert manager.match(range(9)) == 8 and not publisher._log.waiting


@pytest.mark.parametrize("has_manager", [False, True])
def test_closed_publisher_takes_no_manager(has_manager):
    publisher = publish()
    make_manager(publisher) if has_manager else None
    publisher.close()
    with pytest.raises(ValueError, match="the publisher is closed"):
        make_manager(publisher)


def test_process_ends_without_close():
    code = (
        "import kvcache.events as e; p = e.Publisher('tcp://127.0.0.1:*', replay='tcp://127.0.0.1:*'); print(p.replay)"
    )
    result = subprocess.run([sys.executable, "-c", code], timeout=60, capture_output=True, text=True)
    assert result.returncode == 0 and result.stdout.startswith("tcp://127.0.0.1:") and not result.stderr


def test_collected_publisher_ends_its_threads_and_frees_its_port():
    threads = {*threading.enumerate()}
    publisher = publish()
    endpoint, replay = publisher.endpoint, publisher.replay
    manager = make_manager(publisher)
    serve(manager, range(9))
    own = {*threading.enumerate()} - threads
    assert len(own) == 2
    del publisher, manager
    gc.collect()
    for thread in own:
        thread.join(10)
    assert not any(thread.is_alive() for thread in own)
    events.Publisher(endpoint, replay=replay).close()


def test_publisher_connects_where_asked():
    context = zmq.Context()
    with context.socket(zmq.SUB) as socket:
        socket.subscribe(b"")
        socket.rcvtimeo = 10_000
        socket.bind("tcp://127.0.0.1:*")
        with events.Publisher(socket.last_endpoint.decode(), bind=False) as publisher:
            manager = make_manager(publisher)
            while not socket.poll(50):
                serve(manager, range(5))
                manager.reset_prefix_cache()
            assert len(socket.recv_multipart()) == 3
            assert publisher.replay is None
    context.term()


@pytest.mark.parametrize("endpoint", ["ipc://{}/events", "tcp://[::1]:*", "tcp://localhost:*"])
def test_endpoints_of_this_machine_are_accepted(endpoint, tmp_path):
    with events.Publisher(endpoint.format(tmp_path)) as publisher:
        assert not publisher.endpoint.endswith("*")


@pytest.mark.parametrize("name", ["endpoint", "replay"])
@pytest.mark.parametrize("host", ["*", "0.0.0.0", "10.0.0.1", "[::]", "router.example", "eth0"])
def test_endpoints_for_other_machines_need_to_be_public(name, host):
    with pytest.raises(ValueError, match=f"'{name}' on this machine, .* users' tokens, got 'tcp://"):
        events.Publisher(**{"endpoint": LOCAL, name: f"tcp://{host}:5557"})


@pytest.mark.parametrize(
    "error, message, options",
    [
        (ValueError, "'endpoint' to be tcp://HOST:PORT or ipc://PATH, got 'http://x'", {"endpoint": "http://x"}),
        (ValueError, "'endpoint' to be tcp.*, got 'tcp://127.0.0.1:65536'", {"endpoint": "tcp://127.0.0.1:65536"}),
        (OSError, "can't bind 'endpoint' 'tcp://no", {"endpoint": "tcp://no.such.host:5", "public": True}),
        (OSError, "can't bind 'endpoint' 'ipc:///no/such/folder/x'", {"endpoint": "ipc:///no/such/folder/x"}),
        (TypeError, "'endpoint' to be a string, got 5557", {"endpoint": 5557}),
        (TypeError, "'rank' to be an integer", {"rank": "0"}),
        (ValueError, r"'rank' to be 0 to 2\^31 - 1, got 2147483648", {"rank": 2**31}),
        (ValueError, r"'rank' to be 0 to 2\^31 - 1, got -1", {"rank": -1}),
        (TypeError, "'bind' to be True or False", {"bind": 1}),
        (ValueError, "'kept_batches' to be positive", {"kept_batches": 0}),
        (ValueError, "'kept_batches' to be at most", {"kept_batches": 10**20}),
        (ValueError, r"'topic' to be text of Unicode, got '\\ud800'", {"topic": "\ud800"}),
        (ValueError, "'block_hash' to be one of", {"block_hash": "md5"}),
    ],
)
def test_publisher_rejects_invalid_arguments(error, message, options):
    with pytest.raises(error, match=message):
        events.Publisher(**{"endpoint": LOCAL, **options})


def test_endpoint_in_use_is_an_error():
    with publish() as publisher:
        with pytest.raises(OSError, match="can't bind 'endpoint' 'tcp://.*': Address already in use"):
            events.Publisher(publisher.endpoint)
        with pytest.raises(OSError, match="can't bind 'replay' 'tcp://.*': Address already in use"):
            events.Publisher(LOCAL, replay=publisher.replay)


def test_manager_checks_its_publisher():
    with publish() as publisher:
        with pytest.raises(TypeError, match="'events' to be a PageListener, got 3"):
            make_manager(3)
        params = kvcache.KVCacheParams("f32", n_kv_heads=1, head_dim=4, page_size=SIZE, total_num_layers=1)
        with pytest.raises(ValueError, match="'events' needs 'enable_prefix_caching'"):
            kvcache.PagedKVCacheManager(params, max_batch_size=1, max_seq_len=8, num_pages=2, events=publisher)
        make_manager(publisher)
        with pytest.raises(ValueError, match="has a manager already"):
            make_manager(publisher)


def test_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "zmq", None)
    with pytest.raises(ModuleNotFoundError, match=r"events need zmq: pip install 'kvcache\[events\]'"):
        publish()
