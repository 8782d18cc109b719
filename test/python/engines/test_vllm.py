"""Tests of the backend in vLLM's engine: tokens equal to those of transformers."""

import itertools
import os

import pytest
from engine_models import MAX_TOKENS, MODELS, get_model, make_prompts
from engines import generate, run_forked

TARGETS = ["cpu", "emulator:sm_90a", "emulator:sm_100a"]


@pytest.fixture(scope="session")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def run(root, tmp_path):
    """Generates tokens in a process of its own."""

    def run(model, variables=(), **options):
        log = tmp_path / "engine.log"
        tokens = run_forked(_generate, model, dict(variables), options, log=log)
        if options.get("backend", "CUSTOM") == "CUSTOM":
            assert "kvcache runs attention on" in log.read_text()
        return tokens

    return run


def _generate(model, variables, options):
    os.environ |= variables
    return generate(model, make_prompts(), MAX_TOKENS, **options)


EMULATORS = itertools.cycle(TARGETS[1:])


@pytest.mark.parametrize(
    "name, target", [(name, target) for name in MODELS for target in ("cpu", next(EMULATORS))]
)
def test_model_generates_tokens_of_transformers(run, root, name, target):
    model, expected = get_model(name, root, run_forked)
    assert run(model, target=target) == expected


DRAFTS = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 2, "prompt_lookup_min": 1}
WAYS = [
    ("llama", "emulator:sm_90a", {"max_num_batched_tokens": 16, "enable_prefix_caching": False}),
    ("deepseek", "cpu", {"max_num_batched_tokens": 16, "enable_prefix_caching": False}),
    ("gemma3", "cpu", {"max_num_batched_tokens": 24, "enable_prefix_caching": True}),
    ("deepseek", "cpu", {"kvcache": {"latent_rows": 1}, "enable_prefix_caching": False}),
    ("deepseek", "emulator:sm_100a", {"block_size": 5}),
    ("llama-64", "emulator:sm_100a", {"block_size": 128}),
    ("gemma2", "emulator:sm_90a", {"speculative_config": DRAFTS}),  # accepts 9 of 73
    ("deepseek", "cpu", {"speculative_config": DRAFTS}),
    ("llama", "cpu", {"enforce_eager": False, "compilation_config": {"backend": "eager"}}),
]


@pytest.mark.parametrize("name, target, options", WAYS)
def test_engine_runs_in_each_way(run, root, name, target, options):
    """Tests chunks of prompts, shared prefixes, pages, drafts and Dynamo."""
    model, expected = get_model(name, root, run_forked)
    assert run(model, target=target, **options) == expected


def generate_with_few_pages(model):
    """Generates tokens, and counts the requests that lose their pages meanwhile."""
    from vllm.v1.core.sched.scheduler import Scheduler

    preempt, preempted = Scheduler._preempt_request, []

    def count(scheduler, request, *args, **options):
        preempted.append(request)
        return preempt(scheduler, request, *args, **options)

    Scheduler._preempt_request = count
    few = {"num_gpu_blocks_override": 26, "block_size": 5, "max_model_len": 96}
    return generate(model, make_prompts(), MAX_TOKENS, **few), len(preempted)


def test_preempted_requests_generate_equal_tokens(root, tmp_path):
    model, expected = get_model("llama", root, run_forked)
    tokens, preempted = run_forked(generate_with_few_pages, model, log=tmp_path / "log")
    assert tokens == expected
    assert preempted


@pytest.mark.parametrize("order", ["LBHNC", "LBNHC", "LHBNC", "BLHNC", "BLNHC", "BHLNC"])
def test_engine_allocates_each_layout(run, root, order):
    model, expected = get_model("llama", root, run_forked)
    assert run(model, {"VLLM_KV_CACHE_LAYOUT": order}) == expected


FORMATS = [
    ("llama-64", "bfloat16", "auto"),
    ("llama-64", "bfloat16", "fp8"),
    ("llama-64", "bfloat16", "fp8_per_token_head"),
    ("llama-64", "bfloat16", "int8_per_token_head"),
    ("deepseek", "float32", "fp8_e5m2"),
    # On the CPU: chips round its elements to bf16, which changes tokens of a model whose logits are close.
    # test_rows_of_fields compares the attention of chips.
    ("deepseek-512", "bfloat16", "fp8_ds_mla"),
]


@pytest.mark.parametrize("name, dtype, format", FORMATS)
def test_format_generates_tokens_of_the_reference(run, root, name, dtype, format):
    model, _ = get_model(name, root, run_forked)
    options = {"dtype": dtype, "kv_cache_dtype": format}
    expected = run(model, backend="TORCH_SDPA", **options)
    target = "cpu" if format == "fp8_ds_mla" else next(EMULATORS)
    assert run(model, target=target, **options) == expected
