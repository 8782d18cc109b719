"""Tests of the store in S3 by NIXL, with moto as S3, and with faults of objects and of the server."""

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import object_stores
import pytest
from kvcache.stores import NIXLObjects, Store
from store_machine import PROMPTS, Machine
from stored_values import SIZE, get, make_key, put


class Server(object_stores.Server):
    """A server, and stores and objects in it."""

    def open(self, deadline=20.0, **options):
        options = {"prefix": "kv/", "options": self.options, **options}
        return NIXLObjects("pages", deadline=deadline, **options)

    def list(self):
        return [each["Key"] for each in self.client.list_objects_v2(Bucket="pages").get("Contents", ())]

    def read(self, name):
        return self.client.get_object(Bucket="pages", Key=name)["Body"].read()

    def write(self, name, data):
        self.client.put_object(Bucket="pages", Key=name, Body=bytes(data))


@pytest.fixture(scope="module")
def running():
    server = Server()
    yield server
    server.close()


@pytest.fixture
def server(running):
    yield running
    for name in running.list():
        running.client.delete_object(Bucket="pages", Key=name)


def name_object(number, prefix="kv/"):
    return prefix + make_key(number).hex()


def find(store, *numbers):
    return store.find([make_key(n) for n in numbers])


def test_values_outlive_the_process(server):
    with server.open() as store:
        assert isinstance(store, Store)
        assert get(store, 1) == [] and find(store, 1) == [False]
        assert put(store, *range(10)) == [True] * 10
        assert put(store, 1) == [True]
    assert sorted(server.list()) == sorted(map(name_object, range(10)))
    with server.open(threads=1) as store:
        assert find(store, 1, 40, *range(5)) == [True, False] + [True] * 5
        assert get(store, 1, 40, 3, 2) == [1, 3, 2]
        assert find(store) == [] and store.begin_get([], []).poll()
    assert find(store, 1) == [False] and put(store, 1) == [False]  # it is closed


def test_prefixes_and_buckets_share_nothing(server):
    server.client.create_bucket(Bucket="other")
    with server.open() as store, server.open(prefix="other/") as other:
        put(store, 1)
        assert get(other, 1) == [] and put(other, 1) == [True]
    assert sorted(server.list()) == sorted([name_object(1), name_object(1, "other/")])


def flip(data):
    data[random.Random(len(data)).randrange(len(data))] ^= 4


def cut(data):
    del data[len(data) // 2 :]


def cut_header(data):
    del data[30:]


def empty(data):
    data.clear()


@pytest.mark.parametrize("damage", [flip, cut, cut_header, empty])
def test_damaged_objects_are_not_found_and_written_again(server, damage):
    with server.open() as store:
        put(store, 1, 2)
        data = bytearray(server.read(name_object(1)))
        damage(data)
        server.write(name_object(1), data)
        assert get(store, 1, 2) == [2]
        assert find(store, 1, 2) == [False, True]
        assert put(store, 1) == [True] and get(store, 1) == [1] and find(store, 1) == [True]


def test_objects_of_other_keys_are_not_found(server):
    with server.open() as store:
        put(store, 1, 8)
        server.write(name_object(1), server.read(name_object(8)))
        assert get(store, 1, 8) == [8]


@pytest.mark.parametrize("size", [SIZE - 1, SIZE + 1, 10, 2 * SIZE])
def test_buffers_of_other_sizes_get_nothing(server, size):
    with server.open() as store:
        put(store, 7)
        assert get(store, 7, size=size) == []
        assert get(store, 7) == [7]


def test_removed_values_are_not_found(server):
    with server.open() as store, server.open() as other:
        put(store, 1, 2)
        store.remove([make_key(1), make_key(9)])
        assert find(store, 1, 2, 9) == [False, True, False]
        assert server.list() and len(server.read(name_object(1))) == 64
        assert get(store, 1, 2) == get(other, 1, 2) == [2]
        assert find(other, 1) == [False]
        assert put(other, 1) == [True] and get(other, 1) == [1]


def test_random_calls_give_only_right_values(server):
    """A model has the values that may be found; objects vanish and change meanwhile."""
    draw, written = random.Random(0), set()
    with server.open() as one, server.open() as two:
        for _ in range(60):
            store, numbers = draw.choice((one, two)), draw.sample(range(12), 3)
            action = draw.choice(("put", "put", "get", "get", "vanish", "damage", "remove"))
            if action == "put":
                assert all(put(store, *numbers))
                written.update(numbers)
            elif action == "get":
                assert {*get(store, *numbers)} <= written
            elif action == "remove":
                store.remove([make_key(n) for n in numbers])
                written.difference_update(numbers)
            elif names := server.list():
                name = draw.choice(names)
                data = bytearray(server.read(name))
                if action == "vanish":
                    server.client.delete_object(Bucket="pages", Key=name)
                else:
                    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
                    server.write(name, data)


def test_manager_finds_pages_of_another_machine(server):
    prompts = [[i] * 15 for i in range(6)]
    for expected in (0, 14):
        with server.open() as store:
            machine = Machine(store)
            assert [machine.serve(prompt) for prompt in prompts] == [expected] * 6


# --- Failures of the server -----------------------------------------------------


def test_calls_end_at_their_deadline_when_the_server_hangs():
    server = Server()
    try:
        with server.open(deadline=1.0) as store:
            put(store, 1)
            server.process.send_signal(signal.SIGSTOP)
            start = time.monotonic()
            assert find(store, 1) == [False] and put(store, 2) == [False] and get(store, 1) == []
            assert time.monotonic() - start < 10
            server.process.send_signal(signal.SIGCONT)
            end = time.monotonic() + 60
            while get(store, 1) != [1]:
                assert time.monotonic() < end
    finally:
        server.process.send_signal(signal.SIGCONT)
        server.close()


@pytest.mark.slow
def test_killed_server_loses_pages_and_nothing_else():
    server = Server()
    machine = Machine(server.open(deadline=1.0))
    assert machine.serve(PROMPTS[0][:15]) == 0
    server.close()
    machine.manager.reset_prefix_cache()
    start = time.monotonic()
    assert machine.serve(PROMPTS[0][:15]) == 0 and machine.serve(PROMPTS[0][:15]) == 14
    assert time.monotonic() - start < 20
    with pytest.raises(OSError, match="can't reach the bucket 'pages': no answer until the deadline"):
        server.open(deadline=0.5)


# --- Arguments ------------------------------------------------------------------


@pytest.mark.parametrize(
    "error, message, options",
    [
        (TypeError, "'bucket' to be a string, got 3", {"bucket": 3}),
        (TypeError, "'prefix' to be a string", {"prefix": b"x"}),
        (ValueError, "'deadline' to be positive", {"deadline": 0}),
        (ValueError, "'threads' to be positive", {"threads": 0}),
        (TypeError, "'options' to be a Mapping, got 3", {"options": 3}),
        (TypeError, r"options\['region'\].* to be a string, got 3", {"options": {"region": 3}}),
    ],
)
def test_store_rejects_invalid_arguments(error, message, options):
    with pytest.raises(error, match=message):
        NIXLObjects(**{"bucket": "pages", "deadline": 1.0, **options})


@pytest.mark.parametrize("name", ["xxhash", "nixl_cu12"])
def test_missing_packages_are_named(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, f"{name}._api", None)
    with pytest.raises(ModuleNotFoundError, match="pip install"):
        NIXLObjects("pages", deadline=1.0)


def test_keys_of_another_size_are_refused(server):
    with server.open() as store:
        copy = store.begin_put([b"short"], [memoryview(b"value")])
        copy.wait()
        assert copy.done == [False] and store.find([b"short"]) == [False]


@pytest.mark.slow
def test_process_ends_while_a_server_hangs():
    code = (
        "import sys, os, signal; from test_nixl_objects import *\n"
        "server = Server(); store = server.open(deadline=0.5); os.kill(server.process.pid, signal.SIGSTOP)\n"
        "print(put(store, 1)); server.close(); sys.stdout.flush(); store.close()"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, timeout=120, capture_output=True, text=True, env=environment)
    assert result.stdout.splitlines()[-1:] == ["[False]"] and result.returncode == 0, result.stderr


def test_benchmark_compares_the_same_objects():
    values = [np.full(SIZE, number, np.uint8) for number in range(3)]
    with Server() as server:
        rates = object_stores.run_round(server.options, values, 0)
    assert set(rates) == {"NIXLObjects", "NIXL alone"}
    assert all(rate > 0 for pair in rates.values() for rate in pair)
