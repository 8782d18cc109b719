"""Tests of a step of a program on tensors: bufferized without a copy, and run."""

import re

import ml_dtypes
import numpy as np
import pytest
from places import ROOT
from programs import run_passes

import kvcache

BUFFERIZE = (
    "one-shot-bufferize{bufferize-function-boundaries "
    "function-boundary-type-conversion=identity-layout-map},canonicalize"
)
PARAMS = kvcache.KVCacheParams("bf16", 8, 128, page_size=16, total_num_layers=2)
LAYER = 1


@pytest.fixture(scope="module")
def bufferized():
    text = (ROOT / "examples/decode_tensors.mlir").read_text()
    assert len(re.findall(r"\btensor<", text)) >= 6
    return run_passes(text, BUFFERIZE)


def test_no_tensor_is_copied(bufferized):
    assert "kvcache.append" in bufferized and "kvcache.attention" in bufferized
    for absent in ("tensor<", "memref.alloc", "memref.copy", "bufferization."):
        assert absent not in bufferized


def make_step(rng):
    """A cache of one sequence with tokens and two without, and the inputs of their step."""
    manager = kvcache.PagedKVCacheManager(
        PARAMS, max_batch_size=4, max_seq_len=64, num_pages=16
    )
    for number, tokens in enumerate((21, 1, 5)):
        manager.claim(number, np.arange(tokens))
    manager.step([0])
    manager.grow(0, np.arange(1))
    manager.blocks[0][...] = rng.standard_normal(manager.blocks[0].shape)
    return manager, manager.inputs([0, 1, 2])


@pytest.mark.long
@pytest.mark.parametrize(
    ("target", "seed"),
    [
        ("cpu", 0),
        ("emulator:sm_80", 0),
        *(("emulator:sm_90a", seed) for seed in (0, 8)),
        ("emulator:sm_100a", 6),
    ],
)
def test_a_decode_step_on_tensors(bufferized, target, seed, monkeypatch):
    """Launches overlap from sm_90 on, depending on the seed."""
    monkeypatch.setenv("KVCACHE_EMULATOR_SEED", str(seed))
    rng = np.random.default_rng(0)
    manager, inputs = make_step(rng)
    before = manager.blocks[0].copy()
    total = len(inputs.tokens)
    qkv = rng.standard_normal((total, 48, 128)).astype(ml_dtypes.bfloat16)
    angles = np.arange(64)[:, None] * 1e4 ** (-np.arange(64) / 64)
    rope = np.hstack([np.cos(angles), np.sin(angles)]).astype(np.float32)
    scale = 128**-0.5

    given, out = qkv.copy(), np.zeros_like(qkv[:, :32])
    step = kvcache.jit(bufferized, target=target, opt_level=0)
    offsets = inputs.row_offsets.view(np.int32)
    step.call("decode", *inputs.collection(0), LAYER, given, offsets, rope, scale, out)
    after = manager.blocks[0].copy()

    # The expected results, from the functions on arrays, which are tested against f64.
    manager.blocks[0][...] = before
    append = kvcache.ops.append(PARAMS, rope=128, query_heads=32, target=target)
    attend = kvcache.ops.attention(PARAMS, query_heads=32, target=target)
    wanted, keys, values = (part.copy() for part in np.split(qkv, [32, 40], axis=1))
    wanted_out = np.zeros_like(wanted)
    append(inputs, LAYER, keys, values, wanted, rope=rope)
    attend(inputs, LAYER, wanted, out=wanted_out, scale=scale)
    np.testing.assert_array_equal(given[:, :32], wanted)
    np.testing.assert_array_equal(given[:, 32:], qkv[:, 32:])
    np.testing.assert_array_equal(out, wanted_out)
    np.testing.assert_array_equal(after, manager.blocks[0])
    assert (after != before).any() and out.any()


@pytest.mark.parametrize("control", ["wait", "launch_dependents"])
def test_launches_that_overlap_and_do_not_wait_are_found(bufferized, control):
    expanded = run_passes(bufferized, "kvcache-expand-ops{for-gpu=1}")
    op = f"nvvm.griddepcontrol  {control} {{kvcache.programmatic}}"
    before, after = expanded.rsplit(op, 1)
    assert op in before
    manager, inputs = make_step(np.random.default_rng(0))
    total = len(inputs.tokens)
    qkv, out = (np.zeros((total, heads, 128), ml_dtypes.bfloat16) for heads in (48, 32))
    rope = np.zeros((64, 128), np.float32)
    args = (qkv, inputs.row_offsets.view(np.int32), rope, 0.1, out)
    step = kvcache.jit(before + after, target="emulator:sm_90a", opt_level=0)
    if control == "launch_dependents":
        return step.call("decode", *inputs.collection(0), LAYER, *args)
    with pytest.raises(
        kvcache.CheckError, match=r"has not waited for it \(griddepcontrol.wait\)"
    ):
        step.call("decode", *inputs.collection(0), LAYER, *args)
