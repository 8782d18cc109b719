"""Tests that arrays which share memory are rejected before any is written."""

import numpy as np
import pytest
from small_cache import PARAMS, TARGETS, TOTAL, make_inputs, rows

import kvcache


# Calls with arrays that share memory: the written one, the other, and the call.
def overlapping(target):
    """A function that calls each op with its arrays as parts of one, from given elements on."""
    inputs, size = make_inputs(), TOTAL * 2 * 32

    def part(memory, start, count=TOTAL):
        return memory[start : start + count * 64].reshape(count, 2, 32)

    def attend(memory, start):
        lse = np.zeros((TOTAL, 2), np.float32)
        out = part(memory, start)
        kvcache.ops.attention(PARAMS, 2, target=target)(
            inputs, 0, part(memory, 0), out=out, lse=lse, scale=1
        )

    def append(memory, start):
        operation = kvcache.ops.append(PARAMS, target, query_heads=2, query_norm=32)
        norm, new = np.ones(32, np.float32), part(memory, start)
        operation(inputs, 0, part(memory, 0), rows(TOTAL), new, query_norm=norm)

    def gather(memory, start):
        outs = (part(memory, at, 10).reshape(2, 5, 2, 32) for at in (0, start))
        kvcache.ops.gather(PARAMS, target)(inputs, 0, *outs)

    def merge(memory, start):
        outs = part(memory, 0)[:, None].reshape(2, 4, 2, 32)
        lses, lse = np.zeros((2, 4, 2), np.float32), np.zeros((4, 2), np.float32)
        operation = kvcache.ops.merge_states(2, 32, target, dtype="f32")
        operation(outs, lses, part(memory, start, 4), lse)

    return {
        "attention": (attend, "'out' to share no memory with 'q'", size),
        "append": (append, "'queries' to share no memory with 'keys'", size),
        "gather": (gather, "'values_out' to share no memory with 'keys_out'", 2 * 5 * 64),
        "merge_states": (merge, "'out' to share no memory with 'outs'", size),
    }


@TARGETS
@pytest.mark.parametrize("name", ["attention", "append", "gather", "merge_states"])
def test_outputs_share_no_memory_with_other_arrays(name, target):
    call, message, size = overlapping(target)[name]
    memory = np.zeros(3 * size, np.float32)
    call(memory, size)  # one after the other
    before = memory.copy()
    for start in (0, 64, size - 64, size - 1 if target == "cpu" else size - 4):
        with pytest.raises(ValueError, match=f"expects {message}, got arrays that overlap"):
            call(memory, start)
    np.testing.assert_array_equal(memory, before)


@pytest.mark.parametrize("name", ["key_scale", "value_scale"])
def test_append_rejects_scales_in_memory_that_it_writes(name):
    params = kvcache.KVCacheParams("f8E4M3FN", 2, 32, page_size=4, total_num_layers=1)
    blocks, queries = np.zeros((6, *params.shape_per_block), params.storage_dtype), rows(3)
    inputs = kvcache.StepInputs.of(
        blocks=blocks,
        lut=np.arange(6).reshape(2, 3),
        lengths=np.array([0, 3]),
        row_offsets=np.array([0, 1, 3]),
    )
    append = kvcache.ops.append(params, dtype="f32", static_scales=True, query_heads=2, query_norm=32)
    given = {"key_scale": np.ones(2, np.float32), "value_scale": 2.0}
    given["query_norm"] = np.ones(32, np.float32)
    append(inputs, 0, rows(3), rows(3), queries, **given)
    parts = {"queries": queries.reshape(-1)[:2], "blocks": blocks.reshape(-1)[:8].view(np.uint8).view(np.float32)}
    for other, part in parts.items():
        with pytest.raises(ValueError, match=f"expects '{other}' to share no memory with '{name}'"):
            append(inputs, 0, rows(3), rows(3), queries, **{**given, name: part})


@TARGETS
def test_interleaved_views_do_not_overlap(target):
    """Addresses overlap, but elements do not, as in a fused projection."""
    inputs = make_inputs()
    fused = np.random.default_rng(0).standard_normal((TOTAL, 8, 32)).astype(np.float32)
    keys, values, queries, out = (fused[:, i : i + 2] for i in range(0, 8, 2))
    rest = fused[:, :4].copy()
    append = kvcache.ops.append(PARAMS, target, query_heads=2, query_norm=32)
    append(inputs, 0, keys, values, queries, query_norm=np.ones(32, np.float32))
    kvcache.ops.attention(PARAMS, 2, target=target)(inputs, 0, queries, out=out, scale=1)
    np.testing.assert_array_equal(fused[:, :4], rest)
    np.testing.assert_array_equal(out[5], values[5])  # the first token sees itself
    with pytest.raises(ValueError, match="'out' to share no memory with 'q'"):
        kvcache.ops.attention(PARAMS, 2, target=target)(
            inputs, 0, queries, out=fused[:, 5:7], scale=1
        )


@TARGETS
@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([[0, 1], [1, 2]], "both read and written, got 1"),
        ([[1, 2], [0, 1]], "both read and written, got 1"),
        ([[0, 1], [2, 1]], "written twice, got 1"),
        ([[0, 1], [3, 2], [2, 2]], "written twice, got 2"),
        ([[4, 4]], "both read and written, got 4"),
    ],
)
def test_copy_pages_rejects_chains_of_pages(pairs, message, target):
    inputs = make_inputs()
    copy = kvcache.ops.copy_pages(PARAMS, target)
    with pytest.raises(ValueError, match=f"expects no page of 'pairs' to be {message}"):
        copy(inputs, np.array(pairs, np.int32))
    # Skipped pairs are no links, and a page may be read twice.
    copy(inputs, np.array([[0, 1], [-1, 1], [1, -1], [0, 2]], np.int32))
