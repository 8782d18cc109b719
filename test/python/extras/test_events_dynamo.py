"""Tests of a manager's events by NVIDIA Dynamo's standalone indexer."""

import importlib
import json
import random
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import kvcache
import pytest
from kvcache import events, reach
from places import ROOT
from published_events import SIZE, make_manager, publish, serve


class Indexer:
    """The indexer as a process of its own."""

    def __init__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", "dynamo.indexer", "--port", str(port), "--threads", "1"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self.is_ready, "the indexer does not start")

    def is_ready(self):
        assert self.process.poll() is None
        try:
            urllib.request.urlopen(f"{self.url}/health", timeout=5).close()
        except OSError:
            return False
        return True

    def post(self, path, **fields):
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(self.url + path, json.dumps(fields).encode(), headers)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def register(self, publisher, worker=1, has_replay=True):
        replay = {"replay_endpoint": publisher.replay} if has_replay else {}
        fields = {"endpoint": publisher.endpoint, "model_name": "m", "block_size": SIZE, **replay}
        self.post("/register", instance_id=worker, **fields)

    def query(self, tokens, **fields):
        """The tokens that each worker has."""
        answer = self.post("/query", token_ids=list(tokens), model_name="m", **fields)
        return {int(worker): each["longest_matched"] for worker, each in answer["instances"].items()}

    def close(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def indexer():
    indexer = Indexer()
    yield indexer
    indexer.close()


def wait_until(is_done, message):
    end = time.monotonic() + 15
    while not is_done():
        assert time.monotonic() < end, message
        time.sleep(0.01)


def synchronize(indexer, manager, worker=1):
    """Waits until the indexer has all batches so far, by prompts that no other has.

    It misses batches until its subscription has arrived, and asks for them at the next one.
    """
    mark, asked = None, 0

    def has_mark():
        nonlocal mark, asked
        if asked % 50 == 0:
            mark = [time.monotonic_ns() % 2**31] * SIZE
            serve(manager, mark)
        asked += 1
        return worker in indexer.query(mark)

    wait_until(has_mark, "the indexer misses a batch")


def check(indexer, manager, prompts, worker=1):
    for tokens, salt in prompts:
        fields = {"cache_salt": salt} if salt else {}
        expected = manager.match(tokens, salt=(salt or "").encode()) // SIZE * SIZE
        # The indexer applies the events of each medium in a task of its own.
        wait_until(
            lambda: indexer.query(tokens[:-1], **fields).get(worker, 0) == expected, f"{tokens}: expected {expected}"
        )


@pytest.mark.parametrize("seed", range(3))
def test_indexer_finds_what_the_manager_has(indexer, seed):
    """Random traffic, with evictions and moves to the host."""
    draw = random.Random(seed)
    prompts = [(draw.choices(range(9), k=48), draw.choice([None, None, "tenant"])) for _ in range(6)]
    with publish() as publisher:
        space = {"enable_kvcache_swapping_to_host": True, "host_kvcache_swap_space_gb": 1e-6 * seed}
        manager = make_manager(publisher, 16, **(space if seed else {}))
        serve(manager, range(SIZE))
        indexer.register(publisher)
        synchronize(indexer, manager)
        for _ in range(30):
            for _ in range(draw.randint(1, 4)):
                tokens, salt = draw.choice(prompts)
                tokens = tokens[: draw.randint(1, 40)] + draw.choices(range(9), k=draw.randint(0, 9))
                serve(manager, tokens, (salt or "").encode())
            synchronize(indexer, manager)
            check(indexer, manager, prompts)
        stats = manager.stats
        assert stats.pages_evicted and bool(stats.pages_to_host) == bool(seed)


def test_indexer_repairs_dropped_batches(indexer):
    """Batches before the registration, and while the publisher sends nothing, come from the replay."""
    draw = random.Random(0)
    prompts = [(draw.choices(range(9), k=40), None) for _ in range(4)]
    with publish(kept_batches=8) as publisher:
        manager = make_manager(publisher, 20)
        for tokens, _ in prompts * 4:
            serve(manager, tokens[: draw.randint(1, 40)])
        indexer.register(publisher)
        synchronize(indexer, manager)
        check(indexer, manager, prompts)
        for count in (1, 5, 20):
            live, publisher._log._feed = publisher._log._feed, DeafFeed()
            for _ in range(count):
                serve(manager, draw.choice(prompts)[0][: draw.randint(1, 40)])
            publisher._log._feed = live
            synchronize(indexer, manager)
            check(indexer, manager, prompts)


class DeafFeed:
    """A feed that drops what it sends."""

    def send(self, frames):
        pass

    def has_new_subscriber(self):
        return False


@pytest.mark.parametrize("is_idle", [False, True])
def test_indexer_forgets_a_restarted_manager(indexer, is_idle):
    """Also before the first step."""
    prompt = list(range(9))
    with publish() as publisher:
        manager = make_manager(publisher)
        serve(manager, prompt)
        indexer.register(publisher)
        synchronize(indexer, manager)
        check(indexer, manager, [(prompt, None)])
        replay = publisher.replay
        endpoint = publisher.endpoint
    with events.Publisher(endpoint, replay=replay) as publisher:
        manager = make_manager(publisher)
        if not is_idle:
            synchronize(indexer, manager)
        assert manager.match(prompt) == 0
        check(indexer, manager, [(prompt, None)])


def test_indexer_keeps_workers_and_adapters_apart(indexer):
    salt = events.make_salt(adapter="fr", adapter_path="/fr")
    with publish() as first, publish() as second:
        managers = [make_manager(first), make_manager(second)]
        for worker, (publisher, manager) in enumerate(zip((first, second), managers)):
            indexer.register(publisher, worker)
            synchronize(indexer, manager, worker)
        serve(managers[0], range(9))
        serve(managers[1], range(5))
        serve(managers[1], range(9), salt)
        for worker, manager in enumerate(managers):
            synchronize(indexer, manager, worker)
        assert indexer.query(range(8)) == {0: 8, 1: 4}
        assert indexer.query(range(8), lora_name="fr") == {1: 8}


def test_indexer_counts_only_groups_that_reach_all_tokens(indexer):
    kinds = (reach.full, reach.window(5))
    layers = [
        kvcache.KVCacheParams(
            "f32", n_kv_heads=1, head_dim=4, page_size=SIZE, layer_ids=[i], reach=kind, enable_prefix_caching=True
        )
        for i, kind in enumerate(kinds)
    ]
    with publish() as publisher:
        manager = kvcache.PagedKVCacheManager(
            kvcache.MultiKVCacheParams(layers), max_batch_size=2, max_seq_len=64, num_pages=24, events=publisher
        )
        indexer.register(publisher)
        synchronize(indexer, manager)
        draw, prompt = random.Random(0), list(range(41))
        for _ in range(20):
            serve(manager, prompt[: draw.randint(5, 41)])
            serve(manager, draw.choices(range(9), k=30))
            synchronize(indexer, manager)
            found = indexer.query(prompt[:-1]).get(1, 0)
            pages = [block for block in publisher._log.index.list_blocks() if block.group == 0]
            has = {block.hash for block in pages}
            hashes = [events.wire_hash(each) for each in events.block_hashes(prompt[:-1], SIZE)]
            expected = next((i for i, each in enumerate(hashes) if each not in has), len(hashes))
            assert manager.match(prompt) <= found == expected * SIZE


def test_routes_of_the_example_leave_no_indexer_when_they_fail(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples")
    routes = importlib.import_module("disaggregated_routes")
    processes, popen = [], subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *given, **more: processes.append(popen(*given, **more)) or processes[0])
    monkeypatch.setattr(routes.PrefixRoutes, "_is_ready", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        routes.PrefixRoutes(SIZE)
    assert len(processes) == 1 and processes[0].poll() is not None


def test_how_to_finds_the_prefixes_of_two_workers(indexer):
    page = (ROOT / "docs/how-to/route-by-prefix.md").read_text()
    first, unregister = re.findall(r"^```py\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert "http://127.0.0.1:8090" in first
    names = {}
    exec(first.replace("http://127.0.0.1:8090", indexer.url), names)
    worker = {"instance_id": 0, "endpoint": "tcp://127.0.0.1:9", "model_name": "llama", "block_size": 64}
    with pytest.raises(urllib.error.HTTPError, match="409"):
        names["ask"]("/register", **worker)
    exec(unregister, names)
    assert names["count_found"](names["prompts"][0]) == [0, 0]
    names["ask"]("/register", **worker)
