"""Tests of the backend in SGLang's engine: tokens equal to those of transformers."""

import itertools
import json
import os

import pytest
from engine_models import MAX_TOKENS, get_model, make_prompts
from sglang_engine import generate, run_forked

TARGETS = ["cpu", "emulator:sm_90a", "emulator:sm_100a"]
# SGLang reads names that configurations of transformers lack.
OVERRIDES = {"gemma2": {"hidden_act": "gelu_pytorch_tanh"}, "deepseek": {"moe_layer_freq": 1}}
HYBRID = {"is_hybrid_swa": True, "hybrid_layer_pattern": [1, 1, 1, 1, 1, 0]}


@pytest.fixture(scope="session")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


def _generate(model, overrides, options):
    if HYBRID.items() <= overrides.items():
        from sglang.srt.arg_groups import model_override_base

        model_override_base._MODEL_OVERRIDE_FNS.pop("Gemma3ForCausalLM", None)
    return generate(
        model, make_prompts(), MAX_TOKENS, json_model_override_args=json.dumps(overrides), **options
    )


@pytest.fixture
def run(root, tmp_path):
    """Generates tokens in processes of their own; returns them, and the log."""

    def run(name, overrides=(), **options):
        model, expected = get_model(name, root, run_forked)
        log = tmp_path / "engine.log"
        tokens = run_forked(_generate, model, OVERRIDES.get(name, {}) | dict(overrides), options, log=log)
        assert tokens == expected
        text = log.read_text()
        assert f"kvcache runs attention on {options.get('target', 'cpu')}" in text
        return text

    return run


EMULATORS = itertools.cycle(TARGETS[1:])
NAMES = ["llama", "llama-64", "qwen3", "gemma2", "gemma3", "deepseek"]


@pytest.mark.parametrize("name, target", [(name, target) for name in NAMES for target in ("cpu", next(EMULATORS))])
def test_model_generates_tokens_of_transformers(run, name, target):
    run(name, target=target)


WAYS = [
    ("llama", "cpu", {"chunked_prefill_size": 16, "enable_mixed_chunk": True}),
    ("llama-64", "emulator:sm_90a", {"page_size": 16, "disable_radix_cache": True}),
    ("llama", "cpu", {"page_size": 5, "chunked_prefill_size": 40, "disable_overlap_schedule": True}),
    ("gemma3", "cpu", {"page_size": 16, "chunked_prefill_size": 16}),
    ("deepseek", "cpu", {"chunked_prefill_size": 16}),
    ("qwen3", "cpu", {"prefill_attention_backend": "torch_native"}),
    ("qwen3", "cpu", {"decode_attention_backend": "torch_native", "page_size": 16}),
    ("deepseek", "emulator:sm_90a", {"page_size": 64}),
]


@pytest.mark.parametrize("name, target, options", WAYS)
def test_engine_runs_in_each_way(run, name, target, options):
    """Tests chunks of prompts, shared prefixes, pages and SGLang's schedules."""
    run(name, target=target, **options)


def test_retracted_requests_generate_equal_tokens(run):
    text = run("llama", max_total_tokens=110)
    assert "retract" in text.lower()


@pytest.mark.parametrize("target, page_size", [("cpu", 1), ("cpu", 16), ("emulator:sm_100a", 16)])
def test_layers_with_windows_have_a_pool_of_their_own(run, target, page_size):
    text = run("gemma3", HYBRID, target=target, page_size=page_size, chunked_prefill_size=32)
    assert "hybrid_swa=True" in text


def _start_with_pages_of_heads(model):
    os.environ["SGLANG_USE_HND_KVCACHE"] = "1"
    generate(model, make_prompts(), MAX_TOKENS, page_size=16)


def test_unsupported_option_ends_the_engine_with_a_reason(root, tmp_path):
    model, _ = get_model("llama", root, run_forked)
    log = tmp_path / "engine.log"
    with pytest.raises(AssertionError, match="the process ended"):
        run_forked(_start_with_pages_of_heads, model, log=log)
    assert "NotImplementedError: kvcache expects the cache layout nhd, got hnd" in log.read_text()
