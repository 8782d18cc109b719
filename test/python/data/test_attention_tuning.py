"""Configs among which the tuner chooses give the same bits on emulated chips; others need not."""

import numpy as np
import pytest
from attention_checks import CHIPS, LAYER, fill, make_params

import kvcache
from kvcache.tuning import candidates

FIELDS = "rows", "stages", "schedule", "convert_loads", "raw_stages", "persistent", "l2_hint"
OLD, NEW = (30, 0, 61), (40, 1, 2)


def attend(operation, inputs, params):
    """The bytes of outputs and logarithms."""
    spec, total = operation.spec, sum(NEW)
    kind = kvcache.dtypes.dtype("bf16")
    q = np.random.default_rng(3).standard_normal((total, spec.query_heads, params.head_dim)).astype(kind)
    out, lse = np.zeros((total, spec.query_heads, spec.value_dim), kind), np.zeros((total, spec.query_heads), np.float32)
    operation(inputs, LAYER, q, out=out, lse=lse, scale=0.3)
    return out.tobytes() + lse.tobytes()


def list_neighbours(operation, chip):
    """The planned config, and for each field one config in which it has another value and few others have."""
    planned = candidates.plan(operation, chip)
    configs = candidates.list_kernels(operation, chip, planned, allow_other_bits=False)
    configs += candidates.list_launches(operation, chip, planned.config, 1)
    found = [planned.config]
    for field in FIELDS:
        others = (each for each in configs if getattr(each, field) != getattr(planned.config, field))
        found += [config for config in [next(others, None)] if config and config not in found]
    return found


@pytest.mark.long
@pytest.mark.parametrize(
    "target, format_, head_dim, options, fields",
    [
        (CHIPS[0], "bf16", 32, {}, {"rows", "stages"}),
        (CHIPS[1], "bf16", 64, {}, {"rows", "stages", "schedule"}),
        (CHIPS[2], "bf16", 64, {}, {"stages"}),
        (CHIPS[1], "bf16", 32, {"window": 23}, {"stages", "schedule"}),
        (CHIPS[0], "bf16", 32, {"split_tokens": 32, "max_splits": 4}, {"rows", "stages"}),
        (CHIPS[1], "bf16", 32, {"split_tokens": 32, "max_splits": 4, "split_rows": 2}, {"stages", "persistent"}),
        (CHIPS[1], "fp8-scaled", 32, {}, {"rows", "convert_loads"}),
        (CHIPS[0], "fp8-token", 64, {"value_dim": 32}, {"rows", "convert_loads", "raw_stages"}),
        (CHIPS[1], "bf16", 64, {"value_dim": 64}, {"rows", "stages"}),
        (CHIPS[0], "int4-halves", 64, {"split_tokens": 32, "max_splits": 4}, {"rows", "stages"}),
        (CHIPS[1], "nvfp4", 64, {"split_tokens": 32, "max_splits": 4}, {"rows", "stages"}),
    ],
)
def test_configs_of_the_tuner_have_equal_bits(target, format_, head_dim, options, fields):
    chip = target.removeprefix("emulator:")
    is_latent = "value_dim" in options
    params = make_params(format_, 1, head_dim, mla=is_latent)
    operation = kvcache.ops.attention(params, 16 if is_latent else 4, dtype="bf16", target=target, **options)
    _, inputs = fill(params, "bf16", OLD, NEW)
    configs = list_neighbours(operation, chip)
    changed = {field for field in FIELDS if len({getattr(config, field) for config in configs}) > 1}
    assert changed >= fields
    results = {attend(operation.with_config(config), inputs, params) for config in configs}
    assert len(results) == 1


def test_rows_of_a_window_are_no_choice():
    """They decide where the tiles of a row begin, and so its bits."""
    params = make_params("bf16", 1, 32)
    operation = kvcache.ops.attention(params, 4, dtype="bf16", target=CHIPS[0], window=23)
    _, inputs = fill(params, "bf16", OLD, NEW)
    planned = candidates.plan(operation, "sm_80")
    assert planned.bits.rows == planned.config.rows
    few, many = (
        attend(operation.with_config(kvcache.AttentionConfig(rows=rows, keys=32)), inputs, params) for rows in (16, 64)
    )
    assert few != many
