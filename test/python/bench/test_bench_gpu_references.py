"""The benchmarks on a GPU: formats, inputs and references, on the emulator."""

import dataclasses

import ml_dtypes
import numpy as np
import pytest
from gpu import emulate, formats, references
from gpu.inputs import SMALL, Sizes
from gpu.works import WORKS
from places import KERNELS


def test_fp8_is_that_of_ml_dtypes():
    codes = np.arange(256, dtype=np.uint8)
    values = codes.view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    assert np.array_equal(formats.e4m3_to_f32(codes), values, equal_nan=True)
    numbers = values[np.isfinite(values)]
    ties = (np.sort(numbers)[:-1] + np.sort(numbers)[1:]) / 2
    rng = np.random.default_rng(0)
    random = np.concatenate([rng.normal(0, scale, 2000) for scale in (1e-3, 0.1, 10, 400)])
    probes = np.concatenate([numbers, ties, random]).astype(np.float32)
    expected = np.clip(probes, -448, 448).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
    assert np.array_equal(formats.f32_to_e4m3(probes), expected)
    assert np.array_equal(np.diff(formats.e4m3_order(formats.f32_to_e4m3(np.unique(numbers)))), np.ones(252))


def test_bf16_is_that_of_ml_dtypes():
    values = np.random.default_rng(0).normal(0, 100, 10000).astype(np.float32)
    bits = values.astype(ml_dtypes.bfloat16).view(np.uint16)
    assert np.array_equal(formats.f32_to_bf16(values), bits)
    assert np.array_equal(formats.bf16_to_f32(bits), bits.view(ml_dtypes.bfloat16).astype(np.float32))


def test_kernels_are_checked_on_the_emulator():
    sizes = Sizes(batch=4, context=64, chunk=64)
    check = (WORKS["gather"], KERNELS / "gather.mlir", "sm_90a", "edges", sizes)
    assert emulate.check(*check) is None
    lie = dataclasses.replace(check[0], reference=lambda case: {"out": np.zeros_like(case.arrays["out"])})
    assert "out[" in emulate.check(lie, *check[1:])


def test_wrong_bits_are_named():
    expected = {"out": np.zeros((2, 3), np.uint16)}
    results = {"out": np.array([[0, 0, 0], [0, 7, 1]], np.uint16)}
    assert references.compare_bits(expected, expected) is None
    assert references.compare_bits(expected, results) == "out[1, 1] is 7, expected 0; 2 of 6 are wrong"


def test_a_reciprocal_may_be_a_step_off_where_something_is_written():
    case = WORKS["append_fp8"].make_case("edges", SMALL)
    expected = references.append_fp8(case)
    assert references.compare_reciprocal(expected, expected) is None
    written = np.argwhere(expected["scales"].view(np.int32) != -1)[0]
    token = tuple(written[:-1])
    results = {name: array.copy() for name, array in expected.items()}
    results["scales"].view(np.int32)[tuple(written)] += references.SCALE_ULPS
    code = results["blocks"][(*token, 1)]
    results["blocks"][(*token, 1)] = code + 1 if code & 0x7F < 0x7E else code - 1
    assert references.compare_reciprocal(expected, results) is None
    results["blocks"][(*token, 1)] = code ^ 0x80 if code & 0x7F > 1 else 0x20
    assert "blocks[" in references.compare_reciprocal(expected, results)
    results["scales"].view(np.int32)[tuple(written)] += 1
    assert "scales[" in references.compare_reciprocal(expected, results)
    elsewhere = {**expected, "blocks": np.where(expected["blocks"] == 0xFF, 0xFE, expected["blocks"])}
    assert "blocks[" in references.compare_reciprocal(expected, elsewhere)


def test_attention_has_to_be_close_in_every_head():
    expected = references.decode(WORKS["decode"].make_case("edges", SMALL))
    assert references.compare_merged(expected, expected) is None
    for change in (1.02, np.nan):
        results = {**expected, "attention": expected["attention"].copy()}
        results["attention"][3, 5, 2] *= change
        assert "attention[3, 5, 2]" in references.compare_merged(expected, results)
    later = {**expected, "log_sum": expected["log_sum"] + 0.1}
    assert references.compare_merged(expected, later).startswith("log_sum[1, 0, 0]")


def test_sizes_are_checked_and_defeat_the_cache():
    with pytest.raises(ValueError, match="expects context to be a multiple of 64, got 100"):
        Sizes(context=100)
    with pytest.raises(ValueError, match="expects layer to be from 0 to 1, got 2"):
        Sizes(layer=2)
    with pytest.raises(ValueError, match="expects batch to be positive, got 0"):
        Sizes(batch=0)
    sizes = Sizes(batch=2).filling(l2_bytes=1 << 20, token_bytes=2048)
    case = WORKS["gather"].make_case("ragged", sizes)
    assert case.arrays["lengths"].sum() * 2048 > 3 << 20
    assert sizes.context % 64 == 0
