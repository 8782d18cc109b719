"""The right results of the works, in NumPy, and comparisons of results with them.

A comparison is None, or says where a result is wrong.
"""

from __future__ import annotations

import numpy as np

from . import formats
from .inputs import GROUP, HEADS, PAGE_SIZE, Case

Arrays = dict[str, np.ndarray]

ATTENTION_ERROR = 1e-2
"""Largest distance of a head's attention from what it should be, over the length of the latter."""
LOG_SUM_ERROR = 2e-2
"""Largest error of the logarithm, to base 2, of the sum of a head's weights."""
SCALE_ULPS = 2
"""How far a scale may be off that was multiplied with a reciprocal instead of divided."""


# --- References ------------------------------------------------------------------------------------------------------


def _rows(case: Case, name: str, sequence: int, role: int) -> np.ndarray:
    """The rows of one sequence's keys (0) or values (1), up to its length."""
    length = case.arrays["lengths"][sequence]
    pages = case.arrays["lut"][sequence, : -(-length // PAGE_SIZE)]
    blocks = case.arrays[name][pages, role, case.numbers["layer"]]
    return blocks.reshape(-1, *blocks.shape[2:])[:length]


def gather(case: Case) -> Arrays:
    out = np.zeros_like(case.arrays["out"])
    for sequence, length in enumerate(case.arrays["lengths"]):
        out[sequence, :length] = _rows(case, "blocks", sequence, 0)
    return {"out": out}


def gather_fp8(case: Case) -> Arrays:
    out = np.zeros_like(case.arrays["out"])
    for sequence, length in enumerate(case.arrays["lengths"]):
        values = formats.e4m3_to_f32(_rows(case, "blocks", sequence, 0))
        scales = _rows(case, "scales", sequence, 0)
        groups = values.reshape(*scales.shape, GROUP)
        groups *= scales[..., None]
        out[sequence, :length] = formats.f32_to_bf16(values)
    return {"out": out}


def append_fp8(case: Case) -> Arrays:
    blocks, scales = (np.full_like(case.arrays[name].view(np.uint8), 0xFF) for name in ("blocks", "scales"))
    scales = scales.view(np.float32)
    layer, lut = case.numbers["layer"], case.arrays["lut"]
    for begin in range(0, len(case.arrays["token_positions"]), 4096):  # in pieces, which need less memory
        tokens = slice(begin, begin + 4096)
        position = case.arrays["token_positions"][tokens]
        page = lut[case.arrays["token_sequences"][tokens], position // PAGE_SIZE]
        for role in range(2):
            values = formats.bf16_to_f32(case.arrays["new"][role, tokens])
            groups = values.reshape(len(page), HEADS, -1, GROUP)
            scale = np.abs(groups).max(-1) / np.float32(formats.E4M3_MAX)
            codes = formats.f32_to_e4m3(groups / scale[..., None])
            blocks[page, role, layer, position % PAGE_SIZE] = codes.reshape(values.shape)
            scales[page, role, layer, position % PAGE_SIZE] = scale
    return {"blocks": blocks, "scales": scales}


def decode(case: Case) -> Arrays:
    """The attention of all splits together, and the logarithm of the sum of its weights."""
    batch, heads, _, group, size = case.arrays["part_o"].shape
    attention = np.zeros((batch, heads, group, size), np.float32)
    log_sum = np.full((batch, heads, group), -np.inf, np.float32)
    queries = formats.bf16_to_f32(case.arrays["q"]).reshape(batch, heads, group, size)
    for sequence in np.flatnonzero(case.arrays["lengths"]):
        by_head = (_rows(case, "blocks", sequence, role).swapaxes(0, 1) for role in range(2))
        keys, values = (formats.bf16_to_f32(np.ascontiguousarray(rows)) for rows in by_head)
        scores = queries[sequence] @ keys.swapaxes(1, 2) * np.float32(case.numbers["scale_log2"])
        largest = scores.max(-1, keepdims=True)
        weights = np.exp2(scores - largest)
        sums = weights.sum(-1, keepdims=True)
        attention[sequence] = weights @ values / sums
        log_sum[sequence] = (largest + np.log2(sums))[..., 0]
    return {"attention": attention, "log_sum": log_sum}


def merge_splits(part_o: np.ndarray, part_ml: np.ndarray) -> Arrays:
    """Results of ``decode`` from its partial ones; a split without tokens has the sum 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        largest, sums = part_ml[..., 0], part_ml[..., 1]
        top = largest.max(2, keepdims=True)
        factors = np.where(sums > 0, np.exp2(largest - top), np.where(sums == 0, 0, np.nan))
        total = (sums * factors).sum(2)
        attention = (part_o * factors[..., None]).sum(2) / total[..., None]
        log_sum = top[:, :, 0] + np.log2(total)
    empty = total == 0
    return {"attention": np.where(empty[..., None], 0, attention), "log_sum": np.where(empty, -np.inf, log_sum)}


def sparse_rows(case: Case) -> Arrays:
    rows = case.arrays["blocks"].reshape(-1, case.arrays["blocks"].shape[-1])
    out = np.zeros_like(case.arrays["out"])
    for query, ids in enumerate(case.arrays["ids"]):
        columns = formats.bf16_to_f32(rows[ids[ids >= 0]]).sum(0)
        out[query] = columns[0::2] + columns[1::2]
    return {"out": out}


# --- Comparisons -----------------------------------------------------------------------------------------------------


def _report(name: str, wrong: np.ndarray, got: np.ndarray, expected: np.ndarray) -> str | None:
    """Names the first of the elements that are wrong."""
    if not wrong.any():
        return None
    first = np.unravel_index(np.argmax(wrong), wrong.shape)
    place = ", ".join(map(str, first))
    return (
        f"{name}[{place}] is {got[first]}, expected {expected[first]}; "
        f"{np.count_nonzero(wrong)} of {wrong.size} are wrong"
    )


def compare_bits(expected: Arrays, results: Arrays) -> str | None:
    """Every bit has to agree, also of what is not to be written."""
    for name, array in expected.items():
        unsigned = np.dtype(f"u{array.itemsize}")
        if error := _report(name, results[name].view(unsigned) != array.view(unsigned), results[name], array):
            return error
    return None


def compare_reciprocal(expected: Arrays, results: Arrays) -> str | None:
    """Compares quantization with a reciprocal: codes may be a step off, scales ``SCALE_ULPS``.

    Nothing else may be written.
    """
    scales, codes = results["scales"], results["blocks"]
    # Positive numbers are in the order of their bits; those of what is not written are none.
    ulps = scales.view(np.int32).astype(np.int64) - expected["scales"].view(np.int32)
    steps = formats.e4m3_order(codes) - formats.e4m3_order(expected["blocks"])
    written = np.repeat(expected["scales"].view(np.int32) != -1, GROUP, axis=-1)
    wrong = np.where(written, np.abs(steps) > 1, codes != expected["blocks"])
    return _report("scales", np.abs(ulps) > SCALE_ULPS, scales, expected["scales"]) or _report(
        "blocks", wrong, codes, expected["blocks"]
    )


def compare_attention(expected: Arrays, results: Arrays) -> str | None:
    return compare_merged(expected, merge_splits(results["part_o"], results["part_ml"]))


def compare_merged(expected: Arrays, merged: Arrays) -> str | None:
    """Within ``ATTENTION_ERROR`` and, where there is one, ``LOG_SUM_ERROR``; a NaN is wrong."""
    wanted = expected["attention"]
    error = np.linalg.norm(merged["attention"] - wanted, axis=-1)
    bound = ATTENTION_ERROR * np.linalg.norm(wanted, axis=-1)
    if text := _report("distance from attention", ~(error <= bound), error, bound):
        return text
    if "log_sum" not in merged:
        return None
    sums = expected["log_sum"]
    with np.errstate(invalid="ignore"):
        close = (merged["log_sum"] == sums) | (np.abs(merged["log_sum"] - sums) <= LOG_SUM_ERROR)
    return _report("log_sum", ~close, merged["log_sum"], sums)
