"""Tests that examples/decode.py equals its model without a cache, with any number of pages."""

import dataclasses
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from places import ROOT

sys.path.insert(0, str(ROOT / "examples"))

import decode
import transformer

QUICK = decode.QUICK
PARAMS = decode.cache_params(QUICK.sizes, "f32")


def serve(work, params=PARAMS, target="cpu"):
    """Serves all requests, and returns the server with them."""
    server, requests = decode.make_server(work, params, target)
    finished = list(server.serve())
    assert sorted(map(id, finished)) == sorted(map(id, requests))
    return server, requests


def agrees(server, requests, dtype="f32"):
    assert len(server.cache) == 0
    return decode.compare(server, requests, dtype)


def run_main(monkeypatch, *options):
    monkeypatch.setattr(sys, "argv", ["decode.py", *options])
    return decode.main()


# --- The whole program ------------------------------------------------------------


def test_script_compares_every_token():
    result = subprocess.run(
        [sys.executable, ROOT / "examples/decode.py", "--quick"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "agrees with no cache: 35 of 35 tokens are the same" in result.stdout
    assert re.search(r"sharing saves [1-9]\d* %, \d+ KiB\n", result.stdout)
    assert re.search(r"without a cache, alone, a request has [1-9]\d* new tokens/s\n", result.stdout)


@pytest.mark.parametrize("dtype", ["bf16", "f8E4M3FN"])
def test_rounded_caches_agree_with_rounded_keys_and_values(dtype, monkeypatch, capsys):
    assert run_main(monkeypatch, "--quick", "--dtype", dtype) == 0
    assert f"what {dtype} costs, against f32" in capsys.readouterr().out


@pytest.mark.parametrize(("target", "dtype"), [("emulator:sm_80", "f32"), ("emulator:sm_100a", "f8E4M3FN")])
def test_kernels_of_chips_serve_as_well(target, dtype, monkeypatch):
    assert run_main(monkeypatch, "--quick", "--target", target, "--dtype", dtype) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--pages", "2"], "out of pages: 1 needed, 0 available"),
        (["--pages", "0"], "expects a positive integer, got '0'"),
        (["--prompts", "some"], "expects a positive integer, got 'some'"),
        (["--dtype", "f64"], "invalid choice: 'f64'"),
        (["--target", "sm_90a"], "unknown target 'sm_90a'"),
    ],
)
def test_impossible_run_exits_with_2(options, message, monkeypatch, capsys):
    with pytest.raises(SystemExit) as exit_info:
        run_main(monkeypatch, "--quick", *options)
    assert exit_info.value.code == 2
    assert message in capsys.readouterr().err


# --- Errors that the comparison finds ---------------------------------------------


def exchange_first_pages(inputs):
    lut = inputs.lut.copy()
    lut[:, [0, 1]] = lut[:, [1, 0]]
    return dataclasses.replace(inputs, lut=lut)


@pytest.mark.parametrize("dtype", decode.TOLERANCES)
def test_wrong_pages_are_noticed(dtype, monkeypatch, capsys):
    right = decode.paged_attention

    def wrong(kernels, inputs):
        is_prefill = inputs.max_seq_length > 1
        return right(kernels, inputs if is_prefill else exchange_first_pages(inputs))

    monkeypatch.setattr(decode, "paged_attention", wrong)
    assert run_main(monkeypatch, "--quick", "--dtype", dtype) == 1
    assert "DISAGREES with no cache" in capsys.readouterr().out


def test_wrong_positions_are_noticed(monkeypatch):
    monkeypatch.setattr(decode, "rope_table", lambda *sizes: transformer.rope_table(*sizes)[::-1].copy())
    assert run_main(monkeypatch, "--quick") == 1


# --- Pages ------------------------------------------------------------------------


def test_tokens_equal_a_model_without_cache():
    server, requests = serve(QUICK)
    for request in requests:
        tokens = request.prompt
        for _ in range(request.new_tokens):
            attention = transformer.causal_attention(decode.unchanged)
            logits = server.model.logits(tokens, attention)
            tokens = np.append(tokens, logits[-1].argmax())
        assert request.tokens.tolist() == tokens.tolist()


def test_later_prompts_compute_only_their_own_tokens(monkeypatch):
    monkeypatch.setattr(decode, "PROMPT_TOKENS", 1)  # one prompt a step
    prefix = 2 * decode.PAGE_SIZE
    work = dataclasses.replace(QUICK, prefix=prefix, pages=64)
    server, requests = decode.make_server(work, PARAMS, "cpu")
    computed = []
    logits = server.model.logits

    def counting_logits(tokens, *args):
        computed.append(len(tokens))
        return logits(tokens, *args)

    monkeypatch.setattr(server.model, "logits", counting_logits)
    assert len(list(server.serve())) == len(requests)
    own = sum(len(request.prompt) - prefix for request in requests)
    continued = sum(request.new_tokens - 1 for request in requests)
    assert sum(computed) == prefix + own + continued
    assert server.batcher.counts["shared tokens"] == prefix * (len(requests) - 1)


def test_shared_pages_count_once():
    server, _ = serve(dataclasses.replace(QUICK, prompts=2, prefix=32, own=1, new_tokens=1, pages=64))
    # Both in one step: the prefix is not cached yet.
    assert dataclasses.astuple(server.usage) == (2, 6, 6)
    server, _ = serve(dataclasses.replace(QUICK, prompts=12, prefix=64, own=1, pages=64))
    usage = server.usage
    assert usage.pages == 5 * usage.sequences
    assert usage.distinct == 4 + usage.sequences


def test_batch_limits_the_number_of_requests():
    server, requests = serve(dataclasses.replace(QUICK, prompts=12, pages=64))
    assert server.usage.sequences == decode.BATCH_SIZE
    assert server.batcher.counts["swapped out"] == 0
    assert agrees(server, requests)


@pytest.mark.parametrize("pages", [3, 5, 9])
def test_requests_are_swapped_without_free_pages(pages):
    server, requests = serve(dataclasses.replace(QUICK, pages=pages))
    assert server.batcher.counts["swapped out"] > 0
    assert server.batcher.counts["restarted"] == 0
    assert agrees(server, requests)


@pytest.mark.parametrize("pages", [6, 16])
def test_requests_restart_with_a_full_host(pages):
    one_page = PARAMS.bytes_per_block / 2**30
    params = dataclasses.replace(PARAMS, host_kvcache_swap_space_gb=one_page)
    work = dataclasses.replace(QUICK, prompts=8, new_tokens=40, pages=pages)
    server, requests = serve(work, params)
    assert server.batcher.counts["restarted"] > 0
    assert agrees(server, requests)


# --- Operations and model ------------------------------------------------------------


@pytest.mark.parametrize("dtype", decode.TOLERANCES)
def test_operations_compile_for_chips(dtype):
    work = decode.Workload()
    operations = decode.Kernels.of(decode.cache_params(work.sizes, dtype), work, "cpu")
    for name in "append", "attention":
        (kernel,) = getattr(operations, name).compile("sm_90a").kernels.values()
        scales = [each for each in kernel.parameters if each.name == "key.scales"]
        assert bool(scales) == (dtype == "f8E4M3FN")


def test_rotated_products_depend_on_distances_only():
    rng = np.random.default_rng(3)
    q, k = rng.standard_normal((2, 1, 1, 32))
    table = transformer.rope_table(1006, 32).astype(np.float64)
    near, far = (
        (transformer.rotate(q, table[[start + 5]]) * transformer.rotate(k, table[[start]])).sum()
        for start in (0, 1000)
    )
    assert near == pytest.approx(far)
    assert near != pytest.approx((q * k).sum())
