"""Tests that numbers in host memory which name nothing are errors without bounds checks."""

import numpy as np
import pytest

import kvcache

PARAMS = kvcache.KVCacheParams("f32", 2, 32, page_size=4, total_num_layers=2)
TOTAL = 8
TARGETS = pytest.mark.parametrize("target", ["cpu", "emulator:sm_90a"])


def make_inputs():
    """Two sequences of 5 and 3 new tokens, and a cache of sevens."""
    return kvcache.StepInputs.of(
        blocks=np.full((9, 2, 2, 4, 2, 32), 7, np.float32),
        lengths=np.zeros(2, np.int32),
        lut=np.array([[1, 2], [3, 8]], np.int32),
        row_offsets=np.array([0, 5, TOTAL], np.int32),
    )


def rows(count, heads=2):
    return np.zeros((count, heads, 32), np.float32)


@TARGETS
@pytest.mark.parametrize("page", [9, 10**6, 2**31 - 1])
def test_pairs_name_pages_of_the_cache(page, target):
    inputs = make_inputs()
    copy = kvcache.ops.copy_pages(PARAMS, target)
    pages = len(inputs.blocks[0])
    for pair in ([0, page], [page, 0]):
        with pytest.raises(ValueError, match=f"of 'pairs' to be below {pages}, got {page}$"):
            copy(inputs, np.array([pair], np.int32))
    # Skipped pairs may have any number.
    copy(inputs, np.array([[-1, page], [page, -1]], np.int32))
    copy(inputs, np.array([[2**32 - 1, page]], np.uint32))
    copy(inputs, np.array([[0, pages - 1]], np.int32))


@TARGETS
@pytest.mark.parametrize("dtype", ["i32", "i64"])
def test_slots_are_of_the_cache(dtype, target):
    append = kvcache.ops.append(PARAMS, target, "f32", slots=dtype)
    inputs, new = make_inputs(), rows(TOTAL + 1)
    most, numpy_dtype = len(inputs.blocks[0]) * 4, dtype.replace("i", "int")
    slots = np.append(np.arange(TOTAL), 2**31 - 1).astype(numpy_dtype)  # the last pads
    for last in (most - 1, -1, np.iinfo(numpy_dtype).min):
        slots[3] = last
        append(inputs, 0, new, new, slots=slots)
    slots[3] = -1
    append(inputs, 0, new, new, slots=slots.view(f"u{numpy_dtype}"))
    for past in (most, np.iinfo(numpy_dtype).max):
        slots[3] = past
        with pytest.raises(ValueError, match=f"'slots' to be below {most}.*, got {past}$"):
            append(inputs, 0, new, new, slots=slots)


@TARGETS
def test_positions_are_rows_of_the_rope_table(target):
    new, inputs = rows(TOTAL + 1), make_inputs()
    table = np.zeros((9, 8), np.float32)
    append = kvcache.ops.append(PARAMS, target, "f32", rope=8, positions="i64")
    axes = {"positions": "i32", "rope_axes": [0, 1, 0, 1]}
    append_axes = kvcache.ops.append(PARAMS, target, "f32", rope=8, **axes)
    positions = np.append(np.arange(TOTAL), -5)  # the last pads
    append(inputs, 0, new, new, rope=table, positions=positions)
    for wrong in (-1, 9, 10**9):
        positions[2] = wrong
        with pytest.raises(
            ValueError, match=rf"'positions' to be rows of 'rope', in \[0, 9\), got {wrong}$"
        ):
            append(inputs, 0, new, new, rope=table, positions=positions)
        both = np.stack([np.arange(TOTAL + 1), positions]).astype(np.int32)
        with pytest.raises(ValueError, match=f"got {wrong}$"):
            append_axes(inputs, 0, new, new, rope=table, positions=both)


@TARGETS
def test_positions_of_skipped_rows_may_be_anything(target):
    new, inputs = rows(TOTAL), make_inputs()
    given = {"rope": np.zeros((9, 8), np.float32), "slots": np.arange(TOTAL)}
    given["slots"][4] = -1
    options = {"rope": 8, "slots": "i64", "positions": "i64"}
    positions = np.arange(TOTAL)
    positions[4] = -1
    append = kvcache.ops.append(PARAMS, target, "f32", **options)
    append(inputs, 0, new, new, **given, positions=positions)
    # Queries are roped nevertheless.
    append = kvcache.ops.append(PARAMS, target, "f32", **options, query_heads=4)
    with pytest.raises(ValueError, match="got -1$"):
        append(inputs, 0, new, new, rows(TOTAL, 4), **given, positions=positions)
    positions[5] = 9
    append = kvcache.ops.append(PARAMS, target, "f32", **options)
    with pytest.raises(ValueError, match="got 9$"):
        append(inputs, 0, new, new, **given, positions=positions)


@TARGETS
def test_rows_that_queries_see_are_of_the_cache(target):
    inputs = make_inputs()
    attend = kvcache.ops.attention(PARAMS, 2, target=target, dtype="f32", rows=True)
    most = len(inputs.blocks[0]) * 4
    seen = np.full((TOTAL + 1, 3), most - 1, np.int32)
    seen[TOTAL] = 2**31 - 1  # padding
    seen[0, 0] = -(2**31)
    q, out = rows(TOTAL + 1), rows(TOTAL + 1)
    attend(inputs, 0, q, out=out, scale=1, rows=seen)
    attend(inputs, 0, q, out=out, scale=1, rows=seen[:, :0])
    for past in (most, 2**31 - 1):
        seen[5, 1] = past
        with pytest.raises(ValueError, match=f"'rows' to be below {most}.*, got {past}$"):
            attend(inputs, 0, q, out=out, scale=1, rows=seen)


@TARGETS
def test_output_offsets_are_not_negative(target):
    inputs = make_inputs()
    gather = kvcache.ops.gather(PARAMS, target, "f32", ragged=True)
    out = rows(TOTAL), rows(TOTAL)
    gather(inputs, 0, *out, output_offsets=np.array([0, 5, 8], np.int32))
    for first in (-1, -(2**31)):
        with pytest.raises(
            ValueError, match=f"'output_offsets' not to be negative, got {first}$"
        ):
            gather(inputs, 0, *out, output_offsets=np.array([first, 5, 8], np.int32))


def test_offsets_of_more_than_31_bits_are_read_as_kernels_do():
    inputs = kvcache.StepInputs.of(
        blocks=np.zeros((4, 2, 2, 4, 2, 32), np.float32),
        lengths=np.zeros(2, np.int32),
        lut=np.zeros((2, 2), np.int32),
        row_offsets=np.array([0, 2**31, 2**31 + 2]),
    )
    attend = kvcache.ops.attention(PARAMS, 2, dtype="f32")
    with pytest.raises(ValueError, match=f"at most 8 tokens.*got {2**31}"):
        attend(inputs, 0, rows(2), out=rows(2), scale=1)
