"""Tests of the plugin, its options, and of the models and options that it refuses."""

import logging
import os
import subprocess
import sys
from importlib import metadata
from types import SimpleNamespace

import pytest
from forked import PLUGINS
from sglang_engine import ENVIRONMENT, OPERATORS, run_forked
from sglang_steps import Layer, Slots, make_batch, make_layer, make_pool, make_rows, make_runner, publish_options

# --- The plugin --------------------------------------------------------------------------


def run_python(code, **environment):
    """Runs Python as a user does, and returns its output."""
    path = os.pathsep.join([os.environ["PYTHONPATH"], PLUGINS, OPERATORS])
    environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": path, **environment}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=240)
    assert not done.returncode, done.stderr
    return done.stdout


def test_plugin_imports_no_backend_until_it_runs():
    code = """
import sys
from sglang.srt.plugins import load_plugins
load_plugins()
from sglang.srt.arg_groups.choices import ATTENTION_BACKEND_CHOICES
from sglang.srt.layers.attention.attention_registry import ATTENTION_BACKENDS
import kvcache.sglang
assert ATTENTION_BACKENDS["kvcache"] is kvcache.sglang.create_backend
assert ATTENTION_BACKEND_CHOICES.count("kvcache") == 1
kvcache.sglang.register()
assert ATTENTION_BACKEND_CHOICES.count("kvcache") == 1
print([name for name in sys.modules if name in ("kvcache.sglang.backend", "kvcache.ops")])
"""
    assert run_python(code).splitlines()[-1] == "[]"


def test_plugin_never_raises(monkeypatch, caplog):
    import kvcache.sglang

    monkeypatch.setitem(sys.modules, "sglang.srt.arg_groups.choices", None)
    with caplog.at_level(logging.WARNING):
        kvcache.sglang.register()
    assert "the backend kvcache is not registered" in caplog.text


@pytest.mark.parametrize("version", ["0.5.22", "0.5.23.post1", "0.6.0"])
def test_other_version_is_an_error(monkeypatch, version):
    import kvcache.sglang

    monkeypatch.setattr(metadata, "version", lambda name: version)
    with pytest.raises(ImportError, match=rf"needs SGLang 0\.5\.23, .* got {version}: run 'pip install"):
        kvcache.sglang.create_backend(None)


@pytest.mark.parametrize(
    "text, error, message",
    [
        ('{"chip": "sm_90"}', ValueError, "to be of target, split_tokens, max_splits, got 'chip'"),
        ('{"split_tokens": -1}', ValueError, "'split_tokens' to be positive, got -1"),
        ('{"split_tokens": "many"}', TypeError, "'split_tokens' to be an integer, got 'many'"),
        ('{"max_splits": 4}', ValueError, "'max_splits' only with 'split_tokens'"),
        ('{"target": 7}', TypeError, "'target' to be a string, got 7"),
        ("3", TypeError, "KVCACHE_SGLANG to be a JSON object, got '3'"),
        ("{", ValueError, "KVCACHE_SGLANG to be a JSON object, got '{'"),
    ],
)
def test_wrong_option_is_an_error(monkeypatch, text, error, message):
    from kvcache.sglang.options import Options

    monkeypatch.setenv("KVCACHE_SGLANG", text)
    with pytest.raises(error, match=message):
        Options.read(False, (8, 1024))


@pytest.mark.parametrize("is_on_gpu, target", [(True, "cuda"), (False, "cpu")])
def test_defaults_depend_on_the_device(monkeypatch, is_on_gpu, target):
    from kvcache.sglang.options import Options

    monkeypatch.delenv("KVCACHE_SGLANG", raising=False)
    options = Options.read(is_on_gpu, (8, 1024))
    assert options.target == target
    assert options.splits.arguments == {"max_batch_size": 8, "max_seq_len": 1024}


# --- Refusals ----------------------------------------------------------------------------


def find_error(change):
    """Makes a backend with a change of the runner, layer, pool or options; returns the error."""
    from sglang.srt.layers.radix_attention import AttentionType

    from kvcache.sglang.backend import Backend

    publish_options(**change.get("spec", {}))
    layer = Layer(page_size=16, latent=change.get("latent"))
    slots = Slots(layer, [20, 30], seed=0)
    module, pool = make_layer(layer), make_pool(layer, slots)
    types = {each.value: each for each in AttentionType}
    for name, value in change.get("layer", {}).items():
        setattr(module, name, types.get(value, value) if name == "attn_type" else value)
    vars(pool).update(change.get("pool", {}))
    runner = make_runner(layer, module, pool, slots)
    for name, value in change.get("runner", {}).items():
        setattr(runner, name, SimpleNamespace(**value) if isinstance(value, dict) else value)
    try:
        Backend(runner)
    except NotImplementedError as error:
        return str(error)


@pytest.mark.parametrize(
    "change, message",
    [
        ({}, None),
        ({"runner": {"device": "xpu"}}, "kernels for NVIDIA's GPUs and for CPUs, got 'xpu'"),
        ({"runner": {"model_config": {"is_encoder_decoder": True}}}, "expects a decoder, got an encoder-decoder model"),
        ({"runner": {"is_draft_worker": True}}, "add --speculative-draft-attention-backend triton"),
        ({"runner": {"kv_index_translator": {"is_translating": True}}}, "expects no --enable-unified-memory"),
        ({"layer": {"is_cross_attention": True}}, "expects no cross-attention, in layer model.layers.1.attn"),
        ({"layer": {"attn_type": "encoder_only"}}, "attention type decoder, got encoder_only, in layer model.layers.1"),
        ({"layer": {"logit_cap": 3.0, "logit_capping_method": "clip"}}, "cap of logits by tanh, got 'clip'"),
        ({"layer": {"xai_temperature_len": 4}}, "no temperature by length"),
        ({"layer": {"use_irope": True}}, "no chunks of attention"),
        ({"pool": {"kv_cache_layout": "hnd"}}, "the cache layout nhd, got hnd"),
        ({"latent": 16, "pool": {"use_dsa": True}}, "expects no sparse attention (DSA)"),
        ({"latent": 16, "layer": {"k_scale_float": 0.5}}, "scale of latent rows to be 1, got 0.5, in layer model.layers"),
        ({"latent": 16, "layer": {"k_scale_float": 1.0}}, None),
        ({"layer": {"k_scale_float": 0.5}}, None),
        ({"spec": {"speculative_algorithm": "NGRAM"}}, "EAGLE, EAGLE3 or STANDALONE, got NGRAM"),
        ({"spec": {"speculative_algorithm": "EAGLE", "speculative_eagle_topk": 4}}, "--speculative-eagle-topk 1, got 4"),
        ({"spec": {"speculative_algorithm": "EAGLE", "speculative_eagle_topk": 1}}, None),
    ],
)
def test_unsupported_option_is_an_error(tmp_path, change, message):
    found = run_forked(find_error, change, log=tmp_path / "log")
    assert found is None if message is None else message in found


def find_pool_error(name):
    from kvcache.sglang.pools import Pool

    try:
        Pool.of(type(name, (), {})(), 1)
    except NotImplementedError as error:
        return str(error)


def test_unknown_pool_is_an_error(tmp_path):
    found = run_forked(find_pool_error, "MambaPool", log=tmp_path / "log")
    assert found == "kvcache expects a pool of MHATokenToKVPool, MLATokenToKVPool or SWAKVPool, got MambaPool"


def find_call_error():
    from kvcache.sglang.backend import Backend

    publish_options()
    layer = Layer()
    slots = Slots(layer, [5], seed=0)
    module = make_layer(layer)
    backend = Backend(make_runner(layer, module, make_pool(layer, slots), slots))
    batch = make_batch(slots, [0], [5], "EXTEND")
    backend.init_forward_metadata(batch)
    q, k, v = make_rows(layer, 5, 0)
    try:
        backend.forward(q.flatten(1), k, v, module, batch, score_mod=len)
    except NotImplementedError as error:
        return str(error)


def test_argument_of_other_backends_is_an_error(tmp_path):
    found = run_forked(find_call_error, log=tmp_path / "log")
    assert found == "kvcache expects 'score_mod' to be None, in layer 1"


# --- Graphs ------------------------------------------------------------------------------


def list_tensors(step):
    """The tensors of a step's metadata that its kernels read."""
    found = [step.sizes.offsets, step.sizes.lengths]
    for reads in (step.full, step.window):
        if reads is not None:
            index = reads.inputs.table_index
            found += [reads.lengths, reads.slots, reads.inputs.lut, *([] if index is None else [index])]
    return found


def replay_metadata(layer):
    """Records the metadata of a decode step, replays it for another, and compares."""
    import torch
    from torch.fx.experimental.proxy_tensor import make_fx

    from kvcache.sglang.backend import Backend

    publish_options()
    slots = Slots(layer, [20, 30, 9], seed=0)
    backend = Backend(make_runner(layer, make_layer(layer), make_pool(layer, slots), slots))
    first = make_batch(slots, [3, 4, 5], [1, 1, 1], "DECODE")
    second = make_batch(slots, [19, 29, 8], [1, 1, 1], "DECODE")
    names = ("seq_lens", "req_pool_indices", "out_cache_loc")

    def compute(*tensors):
        batch = SimpleNamespace(**vars(first) | dict(zip(names, tensors)))
        backend.init_forward_metadata_out_graph(batch, in_capture=True)
        backend.init_forward_metadata_in_graph(batch)
        return list_tensors(backend._step)

    graph = make_fx(compute)(*(getattr(first, name) for name in names))
    replayed = graph(*(getattr(second, name) for name in names))
    backend.init_forward_metadata(second)
    expected = list_tensors(backend._step)
    return [torch.equal(a, b) for a, b in zip(replayed, expected, strict=True)]


@pytest.mark.parametrize("page_size", [1, 16])
@pytest.mark.parametrize("options", [{}, {"window": 17, "hybrid": True}])
def test_replay_has_the_metadata_of_its_batch(tmp_path, page_size, options):
    equal = run_forked(replay_metadata, Layer(page_size=page_size, **options), log=tmp_path / "log")
    assert equal and all(equal)


def count_allocations(sequences):
    """Prepares graphs of 6 sequences, then counts the workspaces of steps."""
    import torch

    from kvcache.sglang.backend import Backend

    os.environ["KVCACHE_SGLANG"] = '{"target": "emulator:sm_90a", "split_tokens": 16}'
    publish_options()
    layer = Layer()
    slots = Slots(layer, [2] * 7, seed=0)
    module = make_layer(layer)
    backend = Backend(make_runner(layer, module, make_pool(layer, slots), slots))
    backend.init_cuda_graph_state(6, 6)
    counts = []
    for batch in (1, sequences):
        slots.rows = torch.arange(batch)
        step = make_batch(slots, [1] * batch, [1] * batch, "DECODE")
        step.out_cache_loc[:] = torch.arange(batch)
        backend.init_forward_metadata(step)
        q, k, v = make_rows(layer, batch, 0)
        backend.forward(q.flatten(1), k, v, module, step)
        (workspaces,) = backend._workspaces._tensors.values()
        counts.append(len(workspaces))
    return counts


@pytest.mark.parametrize("sequences, count", [(6, 1), (7, 2)])
def test_workspaces_of_graphs_precede_a_capture(tmp_path, sequences, count):
    assert run_forked(count_allocations, sequences, log=tmp_path / "log") == [1, count]


@pytest.mark.parametrize("mode, end", [("DECODE", "POST_REPLAY"), ("TARGET_VERIFY", "POST_REPLAY"), ("EXTEND", "UNKNOWN")])
def test_scheduler_waits_for_reads_of_its_table(mode, end):
    from sglang.srt.model_executor.forward_batch_info import ForwardMode

    from kvcache.sglang.backend import Backend

    assert Backend.shared_read_ends(None, ForwardMode[mode]).name == end
