"""Tests of the metrics of managers, as Prometheus reads them."""

import json
import random
import re
import socket
import sys
import tempfile
import threading
import urllib.request
from collections import Counter

import kvcache
import pytest
from event_router import Router, connect
from kvcache import events, reach
from kvcache.metrics import Collector
from kvcache.stores import Folder
from places import ROOT
from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.parser import text_string_to_metric_families
from published_events import publish

SIZE = 4
PLACES = {"GPU": "device", "CPU": "host", "STORAGE": "disk"}
SOURCES = (*PLACES.values(), "store")


def make(tiers=(8, 6, 8), **options):
    """Makes a manager with pages on the device, the host and the disk."""
    fields = {"n_kv_heads": 1, "head_dim": 4, "page_size": SIZE, "total_num_layers": 1, "enable_prefix_caching": True}
    page_bytes = kvcache.KVCacheParams("f32", **fields).bytes_per_block
    spaces = [(count + 0.5) * page_bytes / 2**30 for count in tiers[1:]]
    params = kvcache.KVCacheParams(
        "f32", **fields, enable_kvcache_swapping_to_host=True, host_kvcache_swap_space_gb=spaces[0]
    )
    return kvcache.PagedKVCacheManager(
        params, max_batch_size=4, max_seq_len=64, num_pages=tiers[0], disk_folder=tempfile.gettempdir(),
        disk_space_gb=spaces[1], max_retained_share=0.5, **options,
    )  # fmt: skip


def list_tokens(pages):
    return [page for page in pages for _ in range(SIZE)] + [10**6]


def read(registry):
    """The value of each sample, by its name and labels."""
    text = generate_latest(registry).decode()
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def register(managers, *arguments, **options):
    registry = CollectorRegistry(auto_describe=True)
    registry.register(Collector(managers, *arguments, **options))
    return registry


def key(name, engine="0", **labels):
    labels |= {"engine": engine, "model_name": "llama"}
    return (name, *sorted(labels.items()))


@pytest.mark.parametrize("seed", range(4))
def test_metrics_count_what_a_router_sees(seed):
    draw, expected, moved = random.Random(seed), Counter(), Counter()
    with publish() as publisher, connect(publisher) as client:
        manager, router = make(events=publisher), Router(SIZE)
        registry = register(manager, model_name="llama")
        prompts = [draw.choices(range(3), k=draw.randint(1, 6)) for _ in range(12)]
        for _ in range(60):
            client.update(router)
            prompt = draw.choice(prompts)
            tokens = tuple(list_tokens(prompt))
            places = {prefix[1]: medium for (_, medium, _), prefix in router.blocks.items()}
            found = router.match(tokens)
            for end in range(SIZE, found + 1, SIZE):
                expected[PLACES[places[tokens[:end]]]] += SIZE
            expected["queries"] += len(tokens)
            assert manager.claim("r", tokens) == found
            manager.step(["r"])
            values = read(registry)
            used = -(-len(tokens) // SIZE) / manager.num_pages
            assert values[key("kvcache_kv_cache_usage_perc")] == pytest.approx(used)
            assert values[key("kvcache_sequences")] == 1
            manager.release("r")
    stats, values = manager.stats, read(registry)
    assert values[key("kvcache_prefix_cache_queries_total")] == expected["queries"]
    hits = {place: values[key("kvcache_prompt_tokens_cached_by_source_total", source=place)] for place in PLACES.values()}
    assert hits == {place: expected[place] for place in PLACES.values()} and all(hits.values())
    assert values[key("kvcache_prefix_cache_hits_total")] == sum(hits.values())
    assert values[key("kvcache_pages_evicted_total")] == stats.pages_evicted > 0
    moved = stats.pages_to_disk
    assert values[key("kvcache_pages_moved_total", target="disk")] == moved > 0
    assert values[key("kvcache_bytes_moved_total", target="disk")] == moved * manager.params.bytes_per_block
    assert values[key("kvcache_pages")] == 8 and values[key("kvcache_kv_cache_usage_perc")] == 0


def test_counts_of_sources_never_go_back_in_a_claim():
    manager = make()
    for pages in ([1, 2, 3], [4, 5, 6, 7, 8]):  # these move the first ones to the host
        manager.claim("r", list_tokens(pages))
        manager.step(["r"])
        manager.release("r")
    registry = register(manager, model_name="llama")
    names = [key("kvcache_prompt_tokens_cached_by_source_total", source=source) for source in SOURCES]
    read_all = []

    def trace(frame, event, argument):
        values = read(registry)
        read_all.append([values[name] for name in names])
        return trace

    sys.settrace(trace)
    try:
        manager.claim("r", list_tokens([1, 2, 3]))
    finally:
        sys.settrace(None)
    assert read_all[-1][SOURCES.index("host")] > 0
    assert all(min(later[i] - before[i] for i in range(4)) >= 0 for before, later in zip(read_all, read_all[1:]))


def test_groups_count_tokens_by_their_slowest_page():
    layers = [
        kvcache.KVCacheParams(
            "f32", n_kv_heads=1, head_dim=4, page_size=SIZE, layer_ids=[i], reach=each, enable_prefix_caching=True,
            enable_kvcache_swapping_to_host=True, host_kvcache_swap_space_gb=1e-4,
        )
        for i, each in enumerate((reach.full, reach.window(5)))
    ]  # fmt: skip
    counts = set()
    for later in range(1, 6):
        with publish() as publisher, connect(publisher) as client:
            manager = kvcache.PagedKVCacheManager(
                kvcache.MultiKVCacheParams(layers), max_batch_size=2, max_seq_len=64, num_pages=12, events=publisher
            )
            tokens, router = list_tokens([1, 2, 3]), Router(SIZE)
            for prompt in (tokens, list_tokens(range(10, 10 + later))):
                manager.claim("r", prompt)
                manager.step(["r"])
                manager.release("r")
            client.update(router)
            hashes = {events.wire_hash(each): i for i, each in enumerate(events.block_hashes(tokens, SIZE))}
            # The window reaches the last page alone.
            on_host = {
                hashes[each] for each, medium, group in router.blocks
                if each in hashes and medium == "CPU" and (group == 0 or hashes[each] == 2)
            }  # fmt: skip
            assert manager.claim("r", tokens) == manager.stats.tokens_found == 3 * SIZE
            assert manager.stats.tokens_found_on_host == len(on_host) * SIZE
            counts.add(len(on_host))
    assert len(counts) > 2


def test_several_managers_and_the_prefix_of_vllm():
    managers = {"prefill": make(), "decode": make()}
    registry = register(managers, "vllm:", model_name="llama")
    managers["decode"].claim("r", list_tokens([1, 2]), retain=[kvcache.Retain(8, 1, 60)])
    managers["decode"].step(["r"])
    values = read(registry)
    assert values[key("vllm:prefix_cache_queries_total", "prefill")] == 0
    assert values[key("vllm:prefix_cache_queries_total", "decode")] == 9
    assert values[key("vllm:pages_retained", "decode")] == 2
    assert values[key("vllm:kv_cache_usage_perc", "decode")] == 3 / 8


def test_server_answers_while_the_manager_works():
    manager, is_done = make(), threading.Event()
    leases = []

    def work():
        draw = random.Random(0)
        while not is_done.is_set():
            manager.claim("r", list_tokens(draw.choices(range(3), k=4)), retain=[kvcache.Retain(8, 1, 1e-4)])
            manager.step(["r"])
            leases.append(manager.export("r", seconds=60))
            manager.release("r")
            leases[-1].end()

    server, _ = start_http_server(0, addr="127.0.0.1", registry=register(manager, model_name="llama"))
    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(50):
            with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/metrics", timeout=10) as answer:
                assert b"kvcache_prefix_cache_hits_total" in answer.read()
    finally:
        is_done.set()
        thread.join()
        server.shutdown()
    assert len(leases) > 10


def make_groups(*reaches, **options):
    """Makes a manager with a group of layers for each reach."""
    layers = [
        kvcache.KVCacheParams(
            "f32", n_kv_heads=1, head_dim=4, page_size=SIZE, layer_ids=[i], reach=each, enable_prefix_caching=True
        )
        for i, each in enumerate(reaches)
    ]  # fmt: skip
    params = kvcache.MultiKVCacheParams(layers)
    return kvcache.PagedKVCacheManager(params, max_batch_size=2, max_seq_len=64, num_pages=14, **options)


@pytest.mark.parametrize("is_prefetched", [False, True])
@pytest.mark.parametrize("reaches", [(), (reach.full, reach.window(5)), (reach.full, reach.full)], ids=str)
def test_store_is_counted(tmp_path, reaches, is_prefetched):
    """Tokens of the store count once, in claims that succeed."""
    with Folder(tmp_path, 10**6, deadline=20) as folder:
        for hits in (0, 8):
            options = {"store": folder, "store_name": "model"}
            manager = make_groups(*reaches, **options) if reaches else make(**options)
            registry = register(manager, model_name="llama")
            if is_prefetched:
                manager.prefetch(list_tokens([1, 2])).wait()
                manager.prefetch(list_tokens([7])).wait()
            with pytest.raises(kvcache.OutOfPagesError):
                manager.claim("large", list_tokens([1, 2, *range(30, 42)]))
            manager.claim("r", list_tokens([1, 2]))
            manager.step(["r"])
            manager.flush()
            values = read(registry)
            assert values[key("kvcache_external_prefix_cache_queries_total")] == 8
            assert values[key("kvcache_external_prefix_cache_hits_total")] == hits
            moved = {each: values[key("kvcache_pages_moved_total", target=each)] for each in ("store", "device")}
            count = manager.stats.pages_from_store + manager.stats.pages_to_store
            assert moved == ({"store": 0, "device": count} if hits else {"store": count, "device": 0}) and count
            manager.claim("again", list_tokens([1, 2]))
            values = read(registry)
            sources = [values[key("kvcache_prompt_tokens_cached_by_source_total", source=each)] for each in SOURCES]
            assert sources == [8, 0, 0, hits] and values[key("kvcache_prefix_cache_hits_total")] == sum(sources)
            assert values[key("kvcache_external_prefix_cache_queries_total")] == 8


def test_dashboard_shows_metrics_that_exist():
    dashboard = json.loads((ROOT / "examples/grafana-dashboard.json").read_text())
    values = read(register(make(), model_name="llama"))
    labels = {}
    for name, *pairs in values:
        labels.setdefault(name, set()).update(label for label, _ in pairs)
    shown = set()
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            names = re.findall(r"\bkvcache_\w+", target["expr"])
            assert names
            shown.update(names)
            (by,) = re.findall(r"{{(\w+)}}", target["legendFormat"])
            assert all(by in labels[name] for name in names)
    assert shown == {*labels} - {name for name in labels if name.endswith("_created")}
    places = [tuple(panel["gridPos"].values()) for panel in dashboard["panels"]]
    assert len({*places}) == len({panel["id"] for panel in dashboard["panels"]}) == len(places)


def test_how_to_reads_its_metrics():
    page = (ROOT / "docs/how-to/watch-hit-rates.md").read_text()
    (program,) = re.findall(r"^```py\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    assert program.count("8000") == 2
    names = {}
    exec(program.replace("8000", port), names)
    names["server"].shutdown()
    listed = {*re.findall(r"`(kvcache_\w+)`", page)}
    assert listed <= {name for name, *_ in read(register(make()))}


@pytest.mark.parametrize(
    "error, message, arguments",
    [
        (ValueError, "'prefix' to begin a metric's name, got '9x'", (make, "9x")),
        (TypeError, "'prefix' to be a string, got 3", (make, 3)),
        (ValueError, "at least one manager", (dict,)),
        (TypeError, "'managers' to be a manager of pages, .* got 3", (lambda: 3,)),
        (TypeError, r"or a dict of them by names, got \[\]", (list,)),
        (TypeError, "by names, got <class '.*PagedKVCacheManager'>", (lambda: kvcache.PagedKVCacheManager,)),
        (ValueError, r"'managers\[0\]' to be text of Unicode", (lambda: {"\ud800": make()},)),
    ],
)
def test_collector_rejects_invalid_arguments(error, message, arguments):
    first, *others = arguments
    with pytest.raises(error, match=message):
        Collector(first(), *others)


def test_model_name_must_be_text():
    with pytest.raises(ValueError, match=r"'model_name' to be text of Unicode, got '\\ud800'"):
        Collector(make(), model_name="\ud800")


@pytest.mark.parametrize("auto_describe", [False, True])
def test_registry_refuses_a_second_collector_of_a_prefix(auto_describe):
    registry = CollectorRegistry(auto_describe=auto_describe)
    registry.register(Collector(make()))
    with pytest.raises(ValueError, match="Duplicated timeseries.*kvcache_"):
        registry.register(Collector(make()))
    registry.register(Collector(make(), "other"))


def test_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client.core", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'kvcache\[metrics\]'"):
        Collector(make())
