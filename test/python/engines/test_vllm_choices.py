"""Tests of the plugin: what it registers, which backend a layer gets, and memory for graphs."""

import logging
import os
import subprocess
import sys
from importlib import metadata
from types import SimpleNamespace

import pytest
from engine_steps import Layer, Steps, make_cache, make_config
from engines import PLUGINS, run_forked


def run_python(program, **variables):
    environment = os.environ | variables
    environment["PYTHONPATH"] = f"{PLUGINS}:{environment['PYTHONPATH']}"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert not done.returncode, done.stderr
    return done.stdout


def test_plugin_hook_imports_no_torch():
    program = "import sys, kvcache.vllm; print(sorted({'torch', 'vllm'} & set(sys.modules)))"
    assert run_python(program) == "[]\n"


def test_plugin_hook_never_raises(monkeypatch, caplog):
    import kvcache.vllm

    monkeypatch.setitem(sys.modules, "vllm.v1.attention.backends.registry", None)
    with caplog.at_level(logging.WARNING):
        logging.getLogger("vllm").propagate = True
        kvcache.vllm.register()
    assert "the backend CUSTOM is not registered" in caplog.text


def register_twice():
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    import kvcache.vllm

    for _ in range(2):
        kvcache.vllm.register()
    ours = AttentionBackendEnum.CUSTOM.get_path()
    register_backend(AttentionBackendEnum.CUSTOM, "another.Backend")
    kvcache.vllm.register()
    return ours, AttentionBackendEnum.CUSTOM.get_path()


def test_plugin_hook_keeps_the_backend_of_another_plugin(tmp_path):
    log = tmp_path / "log"
    assert run_forked(register_twice, log=log) == ("kvcache.vllm.Backend", "another.Backend")
    assert log.read_text().count("CUSTOM is not registered: it is another.Backend already") == 1


def test_another_version_is_a_clear_error(monkeypatch):
    import kvcache.vllm

    monkeypatch.setattr(metadata, "version", lambda _: "0.34.0+cu130")
    with pytest.raises(ImportError, match="needs vLLM 0.33.0, .* got 0.34.0: run"):
        _ = kvcache.vllm.Backend


def test_platform_without_kernels_is_a_clear_error(monkeypatch):
    from kvcache.vllm import selection

    rocm = SimpleNamespace(is_cuda=lambda: False, device_type="cuda", device_name="rocm")
    monkeypatch.setattr(selection, "current_platform", rocm)
    with pytest.raises(ImportError, match="for NVIDIA's GPUs and for CPUs, got the platform rocm"):
        selection.make_selection()


def test_platform_rejects_unknown_values(monkeypatch):
    from kvcache.vllm.testing import VARIABLE, find_platform

    monkeypatch.setenv(VARIABLE, "gpu")
    with pytest.raises(ValueError, match="to be 'cpu' or unset, got 'gpu'"):
        find_platform()
    monkeypatch.delenv(VARIABLE)
    assert find_platform() is None


# --- Selection ---------------------------------------------------------------------------


def select(**config):
    """The class that a layer gets on the test platform."""
    import torch
    from vllm.v1.attention.backends.registry import AttentionBackendEnum

    import kvcache.vllm

    kvcache.vllm.register()
    selection = AttentionBackendEnum.CUSTOM.get_class()
    plain = {
        "head_size": 64, "dtype": torch.bfloat16, "kv_cache_dtype": "auto", "block_size": 16,
        "use_mla": False, "has_sink": False, "use_sparse": False, "use_mm_prefix": False,
        "use_per_head_quant_scales": False, "attn_type": "decoder",
    }  # fmt: skip
    assert selection.validate_configuration(device_capability=None, **plain | config) == []
    return ".".join(selection.full_cls_name())


SELECTIONS = [
    ({}, "kvcache.vllm.backend.Backend"),
    ({"has_sink": True, "has_sliding_window": True, "block_size": 5}, "kvcache.vllm.backend.Backend"),
    ({"kv_cache_dtype": "int8_per_token_head"}, "kvcache.vllm.backend.Backend"),
    ({"use_mla": True, "head_size": 576}, "kvcache.vllm.latent.LatentBackend"),
    ({"use_mla": True, "head_size": 576, "kv_cache_dtype": "fp8_ds_mla"}, "kvcache.vllm.latent.LatentBackend"),
]
FALLBACKS = [
    ({"use_mm_prefix": True}, "partial multimodal token full attention not supported"),
    ({"attn_type": "encoder_only"}, "attention type encoder_only not supported"),
    ({"kv_cache_dtype": "nvfp4"}, "kv_cache_dtype not supported"),
    ({"use_dcp": True}, "DCP not supported"),
    ({"use_mla": True, "head_size": 576, "use_pcp": True}, "PCP not supported"),
    ({"use_rswa": True}, "R-SWA not supported"),
    ({"use_mla": True, "use_sparse": True, "head_size": 576}, "sparse not supported"),
    ({"use_mla": True, "head_size": 577}, "head_size not supported"),
    ({"use_mla": True, "head_size": 320, "kv_cache_dtype": "fp8_ds_mla"}, "needs rows of 576 elements of bfloat16, got 320"),
    ({"head_size": 63, "kv_cache_dtype": "fp8_per_token_head"}, "a multiple of 4"),
]


@pytest.mark.parametrize("config, expected", SELECTIONS)
def test_supported_layer_gets_our_class(tmp_path, config, expected):
    log = tmp_path / "log"
    assert run_forked(select, log=log, **config) == expected
    assert "instead" not in log.read_text()


@pytest.mark.parametrize("config, reason", FALLBACKS)
def test_other_layer_falls_back_with_a_reason(tmp_path, config, reason):
    log = tmp_path / "log"
    name = run_forked(select, log=log, **config)
    assert name.startswith("kvcache.vllm.testing.reference.")
    (line,) = [line for line in log.read_text().splitlines() if "instead" in line]
    assert reason in line


def configure(options):
    """The parts of vLLM's configuration that have options and bounds."""
    return SimpleNamespace(
        additional_config={"kvcache": options},
        scheduler_config=SimpleNamespace(max_num_seqs=8),
        model_config=SimpleNamespace(max_model_len=1024),
    )


@pytest.mark.parametrize(
    "options, arguments",
    [
        ({}, {"max_batch_size": 8, "max_seq_len": 1024}),
        ({"split_tokens": 0}, {"split_tokens": None, "max_splits": None}),
        ({"split_tokens": 64, "max_splits": 3}, {"split_tokens": 64, "max_splits": 3}),
    ],
)
def test_splits_are_given_or_chosen(options, arguments):
    from kvcache.vllm.options import Options

    assert Options.read(configure(options)).splits.arguments == arguments


@pytest.mark.parametrize(
    "options, message",
    [
        ({"chip": "sm_90"}, "to be of target, .* got 'chip'"),
        ({"split_tokens": -1}, "'split_tokens' to be positive, got -1"),
        ({"split_tokens": "many"}, "'split_tokens' to be an integer, got 'many'"),
        ({"max_splits": 4}, "'max_splits' only with 'split_tokens'"),
        ({"target": 7}, "'target' to be a string, got 7"),
        (3, "'kvcache' of additional_config to be a dictionary, got 3"),
    ],
)
def test_wrong_option_is_an_error(options, message):
    from kvcache.vllm.options import Options

    with pytest.raises((TypeError, ValueError), match=message):
        Options.read(configure(options))


# --- Graphs ------------------------------------------------------------------------------


def count_allocations(layer, sequences):
    """Captures, then counts how many workspaces a step of ``sequences`` adds."""
    import torch
    from vllm.config import set_current_vllm_config

    from kvcache.vllm.backend import Backend

    config = make_config(layer)
    config.scheduler_config.max_num_seqs = 6
    _, cache = make_cache(layer)
    torch.set_default_dtype(getattr(torch, layer.dtype))
    with set_current_vllm_config(config):
        attention = Backend.get_impl_cls()(layer.heads, layer.width, 1.0, layer.kv_heads)
        builder = Backend.get_builder_cls()(None, ["layer"], config, torch.device("cpu"))
    owner = SimpleNamespace(impl=attention, kv_cache=cache)
    config.compilation_config.static_forward_context["layer"] = owner
    steps = Steps(layer, counts=((1,) * sequences,))
    common = steps.metadata(0)
    builder.build_for_cudagraph_capture(common)
    (captured,) = builder.workspaces._tensors.values()
    before = [tensor.data_ptr() for tensor in captured]
    q = torch.zeros(sequences, layer.heads, layer.width)
    attention.forward(owner, q, None, None, cache, builder.build(0, common), output=torch.empty_like(q))
    return before, [tensor.data_ptr() for tensor in captured]


@pytest.mark.parametrize("sequences, added", [(1, 0), (6, 0), (7, 1)])
def test_workspaces_for_all_sequences_precede_a_capture(tmp_path, sequences, added):
    layer = Layer("emulator:sm_90a", tokens=16)
    before, after = run_forked(count_allocations, layer, sequences, log=tmp_path / "log")
    assert len(before) == 1 and after[:1] == before  # graphs may use the first one
    assert len(after) == len(before) + added


def capture_after_profiling(scale):
    """Profiles and captures; returns the dtypes of outputs for which kernels exist, and the scale."""
    import torch
    from vllm.config import set_current_vllm_config

    from kvcache.vllm import configurations
    from kvcache.vllm.backend import Attention
    from kvcache.vllm.steps import Workspaces

    layer = Layer(width=16)
    _, cache = make_cache(layer)
    with set_current_vllm_config(make_config(layer)):
        attention = Attention(layer.heads, layer.width, 1.0, layer.kv_heads)
    made, make = [], configurations._make_attention
    configurations._make_attention = lambda *arguments: made.append(arguments[4]) or make(*arguments)
    q = torch.ones(3, layer.heads, layer.width)
    given, out = {}, q
    if scale is not None:
        given, out = {"output_scale": torch.tensor([scale])}, q.to(torch.float8_e4m3fn)
    assert not attention.forward(None, q, None, None, cache, None, output=out, **given).float().any()
    attention.prepare(SimpleNamespace(kv_cache=cache), Workspaces(1, torch.device("cpu")))
    return made, attention._output_scale


@pytest.mark.parametrize("scale, dtypes", [(None, [None]), (0.5, [None, "f8E4M3FN"])])
def test_kernels_of_fused_outputs_precede_a_capture(tmp_path, scale, dtypes):
    assert run_forked(capture_after_profiling, scale, log=tmp_path / "log") == (dtypes, scale)


def attend_with_bounds(target, dtype, options):
    """Attention to two sequences, with true bounds of their lengths and with bounds of 1."""
    import dataclasses

    import torch

    import kvcache

    generator = torch.Generator().manual_seed(0)
    kind = {"f32": torch.float32, "bf16": torch.bfloat16}[dtype]
    blocks = torch.randn(24, 2, 1, 16, 2, 64, generator=generator).to(kind)
    q = torch.randn(45, 4, 64, generator=generator).to(kind)
    lengths = torch.tensor([100, 90], dtype=torch.int32)
    params = kvcache.KVCacheParams(dtype, 2, 64, page_size=16, total_num_layers=1)
    attend = kvcache.ops.attention(params, 4, kv_lengths=True, target=target, dtype=dtype, **options)
    inputs = kvcache.StepInputs.of(
        blocks=blocks,
        lengths=lengths,
        lut=torch.arange(24, dtype=torch.int32).view(2, 12),
        row_offsets=torch.tensor([0, 1, 45], dtype=torch.int32),
    )
    outs = []
    for bounds in ({}, {"max_seq_length": 1, "max_cache_length": 1}):
        out = torch.empty_like(q)
        attend(dataclasses.replace(inputs, **bounds), 0, q, out=out, scale=0.1, kv_lengths=lengths)
        outs.append(out)
    return [out.float().tolist() for out in outs]


@pytest.mark.parametrize("target", ["emulator:sm_90a", "emulator:sm_100a"])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("options", [{}, {"split_tokens": 16, "split_rows": 4}, {"window": 20}])
def test_launches_depend_on_no_length(tmp_path, target, dtype, options):
    """A graph has the launches of other lengths than those of the steps that replay it."""
    true, least = run_forked(attend_with_bounds, target, dtype, options, log=tmp_path / "log")
    assert true == least


# --- Errors ------------------------------------------------------------------------------


def call_layer(change):
    """Calls a layer with a change of its arguments, and returns the error."""
    import torch
    from vllm.config import set_current_vllm_config

    from kvcache.vllm.backend import Attention, Backend

    layer = Layer(width=16)
    config, steps = make_config(layer), Steps(layer, counts=((2, 1, 1),))
    _, cache = make_cache(layer)
    with set_current_vllm_config(config):
        try:
            kind = change.pop("attn_type", "decoder")
            attention = Attention(4, change.pop("width", 16), 1.0, 2, attn_type=kind)
            builder = Backend.get_builder_cls()(None, ["layer"], config, torch.device("cpu"))
            common = steps.metadata(0).replace(causal=change.pop("causal", True))
            q, k, v = steps.fused[0].unflatten(-1, (-1, 16)).split([4, 2, 2], 1)
            slots = common.slot_mapping + change.pop("slots", 0)
            attention.do_kv_cache_update(None, k, v, cache, slots)
            out = torch.empty_like(q)
            attention.forward(None, q, k, v, cache, builder.build(0, common), output=out, **change)
        except (NotImplementedError, ValueError) as error:
            return str(error)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"attn_type": "encoder"}, "kvcache expects 'attn_type' to be decoder, got encoder"),
        ({"width": 12}, "kvcache expects keys and values of 12 elements each in vLLM's cache, got 32 elements for both"),
        ({"causal": [True]}, "kvcache expects 'causal' to be one flag of a step, got a list"),
        ({"output_scale": 1.0}, "kvcache expects a scale of outputs exactly for fp8, got one for torch.float32"),
        ({"output_block_scale": 1.0}, "kvcache expects no scales of blocks of outputs"),
        ({"slots": 16 * 24}, "expects 'slots' to be below 384, the slots of the cache's 24 pages, got"),
    ],
)
def test_wrong_call_of_a_layer_is_an_error(tmp_path, change, message):
    found = run_forked(call_layer, change, log=tmp_path / "log")
    assert found is not None and found.startswith(message)
