"""Tests of a store as a secondary tier of vLLM's offloading, as vLLM makes and calls it."""

import dataclasses
import hashlib
import random
import threading
import time

import numpy as np
import pytest
from faulty_store import FaultyCopy, FaultyStore
from kvcache.stores import Store
from vllm.v1.kv_offload.base import LookupResult, OffloadingSpec, ReqContext, make_offload_key
from vllm.v1.kv_offload.config import (
    OffloadingCacheConfig,
    OffloadingConfig,
    OffloadingGroupConfig,
    OffloadingModelConfig,
    OffloadingParallelConfig,
)
from vllm.v1.kv_offload.tiering.base import TransferJob
from vllm.v1.kv_offload.tiering.factory import SecondaryTierFactory

SIZE = 64  # bytes of a chunk
HIT, MISS, RETRY = LookupResult.HIT, LookupResult.MISS, LookupResult.RETRY

CONFIG = OffloadingConfig(
    groups=(OffloadingGroupConfig(16, ("layer",), 0),),
    worker_kv_bytes_per_block=SIZE,
    enable_kv_cache_events=False,
    extra_config={},
    engine_id="engine",
    model=OffloadingModelConfig("model", "bfloat16"),
    cache=OffloadingCacheConfig(16, 1),
    parallel=OffloadingParallelConfig(0, 1, 1, 1, 1, 1, 0, 1, None, False),
    kv_cache_layout="NHD",
)


class Spec(OffloadingSpec):
    """vLLM's options, without its manager and its worker."""

    def get_manager(self):
        raise NotImplementedError

    def get_worker(self, *given):
        raise NotImplementedError


class Machine:
    """A tier and its chunks in host memory, called as the scheduler calls it."""

    def __init__(self, store, chunks=8, config=CONFIG, **options):
        self.memory = np.zeros((chunks, SIZE), np.uint8)
        options = {"type": "StoreTier", "module_path": "kvcache.vllm", "store": store, **options}
        view = memoryview(self.memory)
        self.tier = SecondaryTierFactory.create_secondary_tier(options, view, Spec(config))
        self.request = ReqContext("request")
        self.tier.on_new_request(self.request)
        self.store, self.jobs = store, 0

    def begin(self, keys, chunks, is_load):
        self.jobs += 1
        job = TransferJob(self.jobs, keys, np.array(chunks), is_load, self.request)
        (self.tier.submit_load if is_load else self.tier.submit_store)(job)
        return self.jobs

    def run(self, keys, chunks, is_load):
        """Copies chunks; returns the keys that were copied."""
        number = self.begin(keys, chunks, is_load)
        (result,) = self.wait()
        assert result.job_id == number and 0 < result.transfer_time < 60
        if result.success:
            assert result.successful_keys is None and result.transfer_bytes == SIZE * len(keys)
            return list(keys)
        return list(result.successful_keys or ())

    def wait(self):
        results = []
        while not results:
            results = list(self.tier.get_finished_jobs())
        return results

    def look_up(self, key):
        """Asks for a chunk until there is an answer."""
        found = self.tier.lookup(key, self.request)
        while found is RETRY:
            self.tier.on_schedule_end(None)
            time.sleep(1e-4)
            found = self.tier.lookup(key, self.request)
        return found

    def restart_request(self):
        self.tier.on_request_finished(self.request)


def make_key(number, group=0):
    return make_offload_key(hashlib.sha256(b"%d" % number).digest(), group)


def make_bytes(key):
    """The only content that a chunk with this key may have."""
    return np.frombuffer(hashlib.shake_128(key).digest(SIZE), np.uint8)


@pytest.fixture
def machine():
    machine = Machine(FaultyStore({}, 0))
    yield machine
    machine.tier.shutdown()


def test_chunks_outlive_the_engine():
    values = {}
    first, keys = Machine(FaultyStore(values, 0)), [make_key(i) for i in range(3)]
    for chunk, key in enumerate(keys):
        assert first.look_up(key) is MISS
        first.memory[chunk] = make_bytes(key)
    assert first.run(keys, [0, 1, 2], False) == keys
    first.tier.shutdown()
    second = Machine(FaultyStore(values, 0))
    assert [second.look_up(key) for key in [*keys, make_key(9)]] == [HIT, HIT, HIT, MISS]
    assert second.run(keys, [7, 5, 3], True) == keys
    for chunk, key in zip([7, 5, 3], keys):
        assert (second.memory[chunk] == make_bytes(key)).all()
    assert not second.memory[[0, 1, 2, 4, 6]].any()
    second.tier.shutdown()


def test_folder_is_made_by_its_name(tmp_path):
    options = {"path": str(tmp_path / "chunks"), "max_bytes": 1 << 20, "deadline": 10.0, "locality": "LOCAL"}
    key = make_key(0)
    for _ in range(2):
        machine = Machine("kvcache.stores.Folder", **options)
        if machine.look_up(key) is MISS:
            machine.memory[0] = make_bytes(key)
            assert machine.run([key], [0], False) == [key]
        else:
            assert machine.run([key], [4], True) == [key]
            assert (machine.memory[4] == make_bytes(key)).all()
        machine.tier.shutdown()
    assert machine.memory[4].any()


def replace(**parts):
    """A configuration with other fields in some of its parts."""
    fields = {name: dataclasses.replace(getattr(CONFIG, name), **part) for name, part in parts.items()}
    return dataclasses.replace(CONFIG, **fields)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "revision 2"},
        {"config": replace(model={"name": "model 2"})},
        {"config": replace(model={"dtype": "float16"})},
        {"config": replace(parallel={"rank": 1, "world_size": 2, "tp_size": 2})},
        {"config": replace(cache={"tokens_per_hash": 32})},
        {"config": dataclasses.replace(CONFIG, kv_cache_layout="HND")},
        {"config": dataclasses.replace(CONFIG, groups=(OffloadingGroupConfig(16, ("other",), 0),))},
    ],
    ids=str,
)
def test_other_models_and_formats_share_nothing(machine, change):
    key = make_key(0)
    assert machine.run([key], [0], False) == [key] and machine.look_up(make_key(0, group=1)) is MISS
    other = Machine(FaultyStore(machine.store.values, 0), **change)
    assert other.look_up(key) is MISS
    other.tier.shutdown()


def test_partial_load_keeps_what_came(machine):
    keys = [make_key(i) for i in range(4)]
    machine.memory[:4] = [make_bytes(key) for key in keys]
    machine.run(keys, range(4), False)
    assert [machine.look_up(key) for key in keys] == [HIT] * 4
    values = machine.store.values
    for key in machine.tier._make_keys([keys[1], keys[3]]):
        del values[key]
    assert machine.run(keys, [4, 5, 6, 7], True) == [keys[0], keys[2]]
    assert (machine.memory[[4, 6]] == machine.memory[[0, 2]]).all()
    assert [machine.look_up(key) for key in keys] == [HIT, MISS, HIT, MISS]


@pytest.mark.parametrize("seed", range(4))
def test_loaded_chunks_are_those_of_their_keys(seed):
    """Random jobs of a store that fails; a model has what each chunk must hold."""
    draw, values = random.Random(seed), {}
    store = FaultyStore(values, seed, share=0.2)
    store.fails = lambda kind, fails=store.fails: kind != "lie" and fails(kind)
    machine, keys, loaded = Machine(store), [make_key(i) for i in range(12)], 0
    for _ in range(150):
        count = draw.randint(1, 8)
        chosen, chunks = draw.sample(keys, count), draw.sample(range(8), count)
        is_load = draw.random() < 0.5
        before = machine.memory.copy()
        if not is_load:
            machine.memory[chunks] = before[chunks] = [make_bytes(key) for key in chosen]
        copied = machine.run(chosen, chunks, is_load)
        others = [chunk for chunk in range(8) if chunk not in chunks]
        assert (machine.memory[others] == before[others]).all()
        if not is_load:
            assert (machine.memory == before).all()
            continue
        for key, chunk in zip(chosen, chunks):
            if key in copied:
                assert (machine.memory[chunk] == make_bytes(key)).all()
                loaded += 1
        machine.restart_request()
    assert loaded > 50 and store.failed["get"] > 5
    machine.tier.shutdown()


# --- Time -----------------------------------------------------------------------


class Stalling(FaultyStore):
    """A store whose calls wait until the test lets them go on."""

    def __init__(self, deadline=60):
        super().__init__({}, 0)
        self.goes_on = threading.Event()
        self.threads = set()
        self.deadline, self.is_closed = deadline, False

    def find(self, keys):
        self.threads.add(threading.current_thread())
        self.goes_on.wait()
        return super().find(keys)

    def begin_put(self, keys, buffers):
        self.threads.add(threading.current_thread())
        self.goes_on.wait()
        return super().begin_put(keys, buffers)

    def close(self):
        self.is_closed = True


def test_scheduler_waits_for_no_call():
    store = Stalling()
    machine, key = Machine(store), make_key(0)
    assert machine.tier.lookup(key, machine.request) is RETRY
    machine.tier.on_schedule_end(None)
    machine.begin([key], [0], False)
    for _ in range(3):
        assert machine.tier.lookup(key, machine.request) is RETRY
        assert not list(machine.tier.get_finished_jobs())
        machine.tier.on_schedule_end(None)
    store.goes_on.set()
    assert [result.success for result in machine.wait()] == [True]
    assert machine.look_up(key) in (HIT, MISS)
    assert len(store.threads) == 1
    machine.tier.shutdown()


@pytest.mark.filterwarnings("ignore:.*of the store:RuntimeWarning")
def test_shutdown_ends_where_find_hangs():
    """Chunks that are not found until the deadline are missing; jobs that wait are cancelled."""
    store = Stalling(deadline=0.3)
    machine, keys = Machine(store), [make_key(i) for i in range(3)]
    assert machine.look_up(keys[0]) is MISS
    machine.begin([keys[1]], [0], False)
    machine.tier.lookup(keys[2], machine.request)
    machine.tier.on_schedule_end(None)
    for _ in range(3):
        start = time.monotonic()
        machine.tier.shutdown()
        assert time.monotonic() - start < 10
    (thread,) = store.threads
    assert thread.is_alive() and thread.daemon
    store.goes_on.set()
    thread.join(10)
    assert not thread.is_alive() and store.is_closed and not store.values


@pytest.mark.filterwarnings("ignore:the store was not closed:RuntimeWarning")
def test_shutdown_raises_while_the_store_copies():
    store = Stalling(deadline=0.1)
    machine, key = Machine(store), make_key(0)
    machine.memory[0] = make_bytes(key)
    machine.begin([key], [0], False)
    for _ in range(2):
        with pytest.raises(TimeoutError, match=r"still copies the chunks of jobs \[1\]"):
            machine.tier.shutdown()
    store.goes_on.set()
    (thread,) = store.threads
    thread.join(10)
    machine.tier.shutdown()
    (value,) = store.values.values()
    assert value == make_bytes(key).tobytes() and store.is_closed


@pytest.mark.filterwarnings("ignore:.*of the store:RuntimeWarning")
def test_shutdown_ends_where_the_store_does_not(monkeypatch):
    machine = Machine(FaultyStore({}, 0))
    monkeypatch.setattr(FaultyCopy, "poll", lambda copy: False)
    monkeypatch.setattr(FaultyCopy, "wait", lambda copy: None)
    monkeypatch.setattr(FaultyStore, "close", lambda store: 1 / 0)
    machine.begin([make_key(0)], [0], False)
    assert not list(machine.tier.get_finished_jobs())
    machine.tier.drain_jobs()
    (result,) = machine.tier.get_finished_jobs()
    assert not result.success
    machine.tier.shutdown()


def test_drain_waits_for_all_jobs(machine):
    numbers = [machine.begin([make_key(i)], [i], False) for i in range(5)]
    machine.tier.drain_jobs()
    assert [result.job_id for result in machine.tier.get_finished_jobs()] == numbers


def test_another_thread_may_call(machine):
    answers, key = [], make_key(0)
    machine.run([key], [0], False)
    thread = threading.Thread(target=lambda: answers.append(machine.look_up(key)))
    thread.start()
    thread.join()
    assert answers == [HIT] and machine.run([key], [1], True) == [key]


@pytest.mark.filterwarnings("ignore:.*of the store:RuntimeWarning")
@pytest.mark.parametrize("owner, name", [(FaultyStore, "begin_put"), (FaultyCopy, "poll")])
def test_store_that_raises_loses_only_its_chunks(monkeypatch, machine, owner, name):
    key = make_key(0)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, lambda *given: 1 / 0)
        patch.setattr(FaultyStore, "find", lambda *given: 1 / 0)
        machine.tier.submit_store(TransferJob(9, [key], np.array([0]), False, machine.request))
        (result,) = machine.wait()
        assert not result.success and machine.look_up(key) is MISS
    machine.restart_request()
    assert machine.run([key], [0], False) == [key] and machine.look_up(key) is HIT


# --- Options --------------------------------------------------------------------


@pytest.mark.parametrize(
    "error, message, options",
    [
        (ValueError, "'store' to be a dotted name, got 'Folder'", {"store": "Folder"}),
        (TypeError, "'store' to be a Store, got 3", {"store": 3}),
        (ValueError, r"only with the name of a store, got \['path'\]", {"path": "x"}),
        (TypeError, "'name' to be a string, got 3", {"name": 3}),
        (ValueError, "'FAR' is not a valid Locality", {"locality": "FAR"}),
    ],
)
def test_tier_rejects_invalid_options(error, message, options):
    with pytest.raises(error, match=message):
        Machine(**{"store": FaultyStore({}, 0), **options})


def test_store_of_the_tests_is_a_store():
    assert isinstance(FaultyStore({}, 0), Store)
