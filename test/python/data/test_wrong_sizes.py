"""Tests that arrays with contradicting sizes are rejected before any is read."""

import dataclasses

import numpy as np
import pytest
from small_cache import PARAMS, TARGETS, TOTAL, make_inputs, rows

import kvcache
from kvcache.ops import append_operation, attention_operation, operations

FULL = {
    "slots": np.arange(TOTAL, dtype=np.int32),
    "positions": np.arange(TOTAL, dtype=np.int32),
    "queries": rows(TOTAL, 4),
    "rope": np.zeros((9, 8), np.float32),
}
OPTIONS = {"slots": "i32", "positions": "i32", "query_heads": 4, "rope": 8}


@TARGETS
@pytest.mark.parametrize("name", ["keys", "values", "slots", "positions", "queries"])
def test_append_with_too_few_rows(name, target):
    append = kvcache.ops.append(PARAMS, target=target, **OPTIONS)
    given = {"keys": rows(TOTAL), "values": rows(TOTAL), **FULL}
    inputs = make_inputs()
    append(inputs, 1, **given)
    wrong = {**given, name: given[name][:7]}
    with pytest.raises(
        ValueError, match=f"{name!r} to have a row for each of 8 new tokens, got 7"
    ):
        append(inputs, 1, **wrong)
    # Rows after those of the step are padding.
    append(inputs, 1, **{**given, name: np.concatenate([given[name], given[name]])})


def test_append_beyond_the_rope_table_raises():
    append = kvcache.ops.append(PARAMS, rope=8)
    inputs = make_inputs()
    new = rows(TOTAL), rows(TOTAL)
    append(inputs, 0, *new, rope=np.zeros((5, 8), np.float32))
    with pytest.raises(ValueError, match="'rope' to have a row for position 4, got 4 rows"):
        append(inputs, 0, *new, rope=np.zeros((4, 8), np.float32))


@pytest.mark.parametrize("layer", [-1, 2, 10**12])
def test_layers_that_do_not_exist(layer):
    inputs, new = make_inputs(), rows(TOTAL)
    message = rf"expects 'layer' to be in \[0, 2\), got {layer}"
    with pytest.raises(ValueError, match=message):
        kvcache.ops.append(PARAMS)(inputs, layer, new, new)
    with pytest.raises(ValueError, match=message):
        kvcache.ops.gather(PARAMS)(inputs, layer, new[None], new[None])
    with pytest.raises(ValueError, match=message):
        kvcache.ops.attention(PARAMS, 2)(inputs, layer, new, out=new.copy(), scale=1)
    with pytest.raises(TypeError, match="expects 'layer' to be an integer"):
        kvcache.ops.append(PARAMS)(inputs, 0.0, new, new)


@TARGETS
def test_compiled_ops_check_the_layer_by_default(target):
    """Frameworks call the compiled function without the checks of Python."""
    inputs, new = make_inputs(), rows(TOTAL)
    program = kvcache.ops.append(PARAMS, target).program
    for layer in (0, 1):
        program.call("append", *inputs.collection(), layer, new, new, inputs.row_offsets)
    for layer in (-1, 2, 400):
        with pytest.raises(kvcache.CheckError, match=rf"layer is out of range: {layer} is not in \[0, 2\)"):
            program.call("append", *inputs.collection(), layer, new, new, inputs.row_offsets)


@pytest.mark.parametrize(
    ("target", "bounds_checks"),
    [("cpu", True), ("emulator:sm_90a", True), ("emulator:sm_90a", False)],
)
@pytest.mark.parametrize("name", ["append", "gather", "attention"])
def test_errors_name_the_page_of_a_sequence(name, target, bounds_checks):
    inputs, new = make_inputs(), rows(TOTAL)
    options = {"target": target, "bounds_checks": bounds_checks}

    def call(page):
        lut = inputs.lut.copy()
        lut[0, 1] = page
        step = dataclasses.replace(inputs, lut=lut)
        if name == "append":
            kvcache.ops.append(PARAMS, **options)(step, 1, new, new)
        elif name == "gather":
            outs = np.zeros((2, 2, 5, 2, 32), np.float32)
            kvcache.ops.gather(PARAMS, **options)(step, 1, *outs)
        else:
            attend = kvcache.ops.attention(PARAMS, 2, **options)
            attend(step, 1, new, out=new.copy(), scale=1)

    last = len(inputs.blocks[0]) - 1
    call(last)
    for page in (last + 1, 2**31 - 1) if bounds_checks else (2**20,):
        message = f"sequence 0 has page {page} for tokens from 4 on, and layer 1 has pages 0 to {last}"
        with pytest.raises(kvcache.CheckError, match=message):
            call(page)


@pytest.mark.parametrize("device", [-1, 1])
def test_devices_that_do_not_exist(device):
    new = rows(TOTAL)
    with pytest.raises(
        ValueError, match=rf"expects 'device' to be in \[0, 1\), got {device}"
    ):
        kvcache.ops.append(PARAMS)(make_inputs(), 0, new, new, device=device)
    with pytest.raises(TypeError, match="expects 'device' to be an integer"):
        kvcache.ops.append(PARAMS)(make_inputs(), 0, new, new, device=str(device))


@pytest.mark.parametrize("name", ["lengths", "lut", "row_offsets"])
def test_tables_must_be_arrays(name):
    inputs = make_inputs()
    given = {"lengths": inputs.lengths, "lut": inputs.lut, "row_offsets": inputs.row_offsets}
    with pytest.raises(TypeError, match=f"expects '{name}' to be an array, got list"):
        kvcache.StepInputs.of(blocks=inputs.blocks, **{**given, name: given[name].tolist()})


def call_all(inputs, total, **options):
    """Appends, gathers and attends, each with the same inputs."""
    new, outs = rows(total), np.zeros((2, 2, 12, 2, 32), np.float32)
    yield lambda: kvcache.ops.append(PARAMS, **options)(inputs, 0, new, new.copy())
    yield lambda: kvcache.ops.gather(PARAMS, **options)(inputs, 0, *outs)
    attend = kvcache.ops.attention(PARAMS, 2, **options)
    yield lambda: attend(inputs, 0, new, out=new.copy(), scale=1)


@TARGETS
def test_whole_cache_ops_reject_more_tokens_than_the_table_has_pages_for(target):
    blocks = np.zeros((6, *PARAMS.shape_per_block), np.float32)
    table = {"blocks": blocks, "lut": np.arange(6).reshape(2, 3)}
    offsets = np.array([0, 1, 3], np.int32)
    # Three pages of four tokens: the last sequence ends with the table, and one token after it.
    full = kvcache.StepInputs.of(**table, lengths=np.array([0, 10]), row_offsets=offsets)
    for call in call_all(full, 3, target=target):
        call()
    blocks[...] = 7
    for lengths, sequence, total in (([0, 11], 1, 13), ([2**31, 0], 0, 2**31 + 1)):
        lengths = np.array(lengths)
        inputs = kvcache.StepInputs.of(**table, lengths=lengths, row_offsets=offsets)
        message = f"sequence {sequence} to have at most 12 tokens, .* 3 pages .* got {total}"
        for call in call_all(inputs, 3, target=target):
            with pytest.raises(ValueError, match=message):
                call()
    assert (blocks == 7).all()


@TARGETS
def test_lengths_that_grow_in_place_are_checked_again(target):
    blocks = np.zeros((6, *PARAMS.shape_per_block), np.float32)
    lengths, offsets = np.array([4, 3], np.uint32), np.array([0, 1, 3], np.int32)
    lut = np.arange(6, dtype=np.int32).reshape(2, 3)
    inputs = kvcache.StepInputs.of(blocks=blocks, lut=lut, lengths=lengths, row_offsets=offsets)
    roped = kvcache.ops.append(PARAMS, target, rope=8)
    roped(inputs, 0, rows(3), rows(3), rope=np.zeros((5, 8), np.float32))
    lengths[0] = 7
    assert inputs.totals.tolist() == [8, 5] and inputs.positions.tolist() == [7, 3, 4]
    assert inputs.max_total_length == 8
    with pytest.raises(ValueError, match="'rope' to have a row for position 7, got 5 rows"):
        roped(inputs, 0, rows(3), rows(3), rope=np.zeros((5, 8), np.float32))
    lengths[0] = 12
    blocks[...] = 7
    message = "sequence 0 to have at most 12 tokens, .* 3 pages .* got 13"
    for call in call_all(inputs, 3, target=target):
        with pytest.raises(ValueError, match=message):
            call()
    assert (blocks == 7).all()
    lengths[0], offsets[1:] = 11, (1, 2)
    assert inputs.totals.tolist() == [12, 4]
    kvcache.ops.append(PARAMS, target)(inputs, 0, rows(3), rows(3))


def test_lengths_that_an_op_does_not_read_may_be_any():
    blocks = np.zeros((2, *PARAMS.shape_per_block), np.float32)
    inputs = kvcache.StepInputs.of(
        blocks=blocks,
        lut=np.zeros((1, 1), np.int32),
        lengths=np.array([100]),
        row_offsets=np.array([0, 2]),
    )
    new = rows(2)
    append = kvcache.ops.append(PARAMS, slots="i32")
    append(inputs, 0, new + 1, new + 1, slots=np.array([3, 5], np.int32))
    assert (blocks[0, :, 0, 3] == 1).all() and (blocks[1, :, 0, 1] == 1).all()
    attend = kvcache.ops.attention(PARAMS, 2, causal=False, kv_lengths=True)
    attend(inputs, 0, new, out=new.copy(), scale=1, kv_lengths=np.array([4], np.int32))
    sparse = kvcache.ops.attention(PARAMS, 2, rows=True)
    sparse(inputs, 0, new, out=new.copy(), scale=1, rows=np.array([[3], [5]], np.int32))


def test_gather_to_outputs_of_other_sizes():
    inputs = make_inputs()
    dense = kvcache.ops.gather(PARAMS)
    outs = np.zeros((2, 3, 5, 2, 32), np.float32)
    dense(inputs, 0, *outs[:, :2])
    dense(inputs, 0, *outs[:, :1])
    with pytest.raises(ValueError, match="have room for 5 tokens of sequence 0, got 4"):
        dense(inputs, 0, *outs[:, :2, :4].copy())
    with pytest.raises(ValueError, match="'keys_out' to be for at most 2 sequences, got 3"):
        dense(inputs, 0, *outs)
    with pytest.raises(
        ValueError,
        match=r"'values_out' to have the first sizes of 'keys_out', \[2, 5\], got \[2, 4\]",
    ):
        dense(inputs, 0, outs[0, :2], np.zeros((2, 4, 2, 32), np.float32))
    ragged = kvcache.ops.gather(PARAMS, ragged=True)
    offsets = np.array([0, 5, 8, 8], np.int32)
    ragged(inputs, 0, rows(8), rows(8), output_offsets=offsets[:3])
    for ends, last, got in (([0, 5, 7], 1, 2), ([0, 4, 7], 0, 4), ([0, 5, 9], 1, 2)):
        count = min(ends[-1], 7)
        wrong = np.array(ends, np.int32)
        message = f"room for {(5, 3)[last]} tokens of sequence {last}, got {got}"
        with pytest.raises(ValueError, match=message):
            ragged(inputs, 0, rows(count), rows(count), output_offsets=wrong)
    with pytest.raises(ValueError, match=r"'keys_out', \[8\], got \[7\]"):
        ragged(inputs, 0, rows(8), rows(7), output_offsets=offsets[:3])
    for wrong, count in ((offsets, 3), (offsets[:0], -1)):
        with pytest.raises(
            ValueError, match=f"'output_offsets' to be for at most 2 sequences, got {count}"
        ):
            ragged(inputs, 0, rows(8), rows(8), output_offsets=wrong)


@TARGETS
@pytest.mark.parametrize("dtype", ["bf16", "f8E4M3FN", "i64", "uint16"])
def test_copy_pages_reads_no_sequences(dtype, target):
    """Tests calls that check pages, too, in a step without sequences and table."""
    config = kvcache.KVCacheQuantizationConfig("f32", 16) if dtype == "f8E4M3FN" else None
    params = kvcache.KVCacheParams(
        dtype, 2, 32, page_size=4, total_num_layers=1, kvcache_quant_config=config
    )
    manager = kvcache.PagedKVCacheManager(
        params, max_batch_size=1, max_seq_len=8, num_pages=4
    )
    tensors = [*manager.blocks, *manager.scales]
    for tensor in tensors:
        tensor.view(np.uint8)[0] = 7
    none = np.zeros(0, np.int32)
    inputs = kvcache.StepInputs.of(
        blocks=manager.blocks,
        scales=manager.scales,
        lengths=none,
        lut=none.reshape(0, 0),
        row_offsets=np.zeros(1, np.int32),
    )
    copy = kvcache.ops.copy_pages(params, target, bounds_checks=True)
    copy(inputs, np.array([[0, 1]], np.int32))
    for tensor in tensors:
        assert (tensor.view(np.uint8)[:2] == 7).all()
        assert not tensor.view(np.uint8)[2:].any()
    for page in (5, 2**31 - 1):
        with pytest.raises(kvcache.CheckError, match=f"page id.*{page} is not in"):
            copy(inputs, np.array([[0, page]], np.int32))


@TARGETS
@pytest.mark.parametrize("name", ["q", "out", "lse", "mask", "rows"])
def test_attention_with_too_few_rows(name, target):
    options = {"rows": True} if name == "rows" else {"mask": True}
    attend = kvcache.ops.attention(PARAMS, 2, target=target, **options)
    given = {
        "q": rows(TOTAL),
        "out": rows(TOTAL),
        "lse": np.zeros((TOTAL, 2), np.float32),
        **dict.fromkeys(options, np.zeros((TOTAL, 1), np.int32)),
    }
    inputs = make_inputs()
    attend(inputs, 0, **given, scale=1)
    with pytest.raises(
        ValueError, match=f"{name!r} to have a row for each of 8 new tokens, got 7"
    ):
        attend(inputs, 0, **{**given, name: given[name][:7]}, scale=1)


def test_merge_states_of_other_sizes():
    merge = kvcache.ops.merge_states(2, 32, dtype="f32")
    given = {
        "outs": np.zeros((3, 5, 2, 32), np.float32),
        "lses": np.zeros((3, 5, 2), np.float32),
        "out": rows(5),
        "lse": np.zeros((5, 2), np.float32),
    }
    merge(**given)
    for name in ("lses", "out", "lse"):
        with pytest.raises(ValueError, match=f"{name!r} to have the first sizes of"):
            merge(**{**given, name: given[name][:2]})


def test_offsets_outside_of_host_memory_are_not_read():
    """Without the number of rows, all arrays need as many as the first."""

    class Elsewhere:
        def __init__(self, array):
            self.shape = array.shape

    inputs = make_inputs()
    offsets = Elsewhere(inputs.row_offsets)
    there = dataclasses.replace(inputs, row_offsets=offsets, _placed_offsets=offsets)
    with pytest.raises(
        ValueError, match="'values' to have a row for each of 9 new tokens, got 8"
    ):
        kvcache.ops.append(PARAMS)(there, 0, rows(9), rows(8))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"window": 2**63}, "'window' to be at most 9223372036854775807"),
        ({"soft_cap": 1e5}, "'soft_cap' to be between 2.-16 and 2.16, got 100000.0"),
        ({"soft_cap": 1e-5}, "'soft_cap' to be between 2.-16 and 2.16, got 1e-05"),
        ({"split_tokens": 2**20 + 1}, "'split_tokens' to be at most 1048576"),
        ({"split_tokens": 1, "max_splits": 2**20 + 1}, "'max_splits' to be at most"),
    ],
)
def test_numbers_that_the_op_does_not_take(options, message):
    with pytest.raises(ValueError, match=message):
        kvcache.ops.attention(PARAMS, 2, **options)


def test_an_epsilon_that_f32_does_not_have():
    with pytest.raises(ValueError, match="'epsilon' to be in the range of f32"):
        kvcache.ops.append(PARAMS, norm=32, epsilon=1e-50)


def test_operations_reject_values_that_are_not_arrays():
    inputs, new = make_inputs(), rows(TOTAL)
    with pytest.raises(TypeError, match="'keys'"):
        kvcache.ops.append(PARAMS)(inputs, 0, 5, new)
    split = kvcache.ops.attention(PARAMS, 2, split_tokens=4)
    with pytest.raises(TypeError, match="'workspace'.*got an int"):
        split(inputs, 0, new, out=new.copy(), scale=1, workspace=5)


def call_unchecked(monkeypatch, operation, *arguments, **named):
    for name in ("rows", "leading", "positions", "room"):
        for module in (append_operation, operations, attention_operation):
            monkeypatch.setattr(module, f"check_{name}", lambda *a, **k: None, raising=False)
    operation(*arguments, **named)


@TARGETS
@pytest.mark.parametrize("name", ["values", "slots", "positions", "queries", "rope"])
def test_checks_of_append(name, target, monkeypatch):
    append = kvcache.ops.append(PARAMS, target=target, **OPTIONS, bounds_checks=True)
    given = {"keys": rows(TOTAL), "values": rows(TOTAL), **FULL}
    inputs = make_inputs()
    append(inputs, 1, **given)
    row = "position" if name == "rope" else "row"
    with pytest.raises(
        kvcache.CheckError, match=f"{row} of '{name}' is out of range.* 7 is not in"
    ):
        call_unchecked(monkeypatch, append, inputs, 1, **{**given, name: given[name][:7]})


@TARGETS
@pytest.mark.parametrize("name", ["q", "out", "mask", "rows"])
@pytest.mark.parametrize(
    "splits", [{}, {"split_tokens": 4, "split_rows": 8}], ids=["whole", "split"]
)
def test_checks_of_attention(name, splits, target, monkeypatch):
    options = {"rows": True} if name == "rows" else {"mask": True}
    attend = kvcache.ops.attention(
        PARAMS, 2, target=target, bounds_checks=True, **options, **splits
    )
    given = {
        "q": rows(TOTAL),
        "out": rows(TOTAL),
        **dict.fromkeys(options, np.zeros((TOTAL, 1), np.int32)),
    }
    inputs = make_inputs()
    attend(inputs, 0, **given, scale=1)
    wrong = {**given, name: given[name][:4]}
    if name == "q" and target != "cpu" and not splits:
        call_unchecked(monkeypatch, attend, inputs, 0, **wrong, scale=1)
        return  # A block for each row of the queries.
    with pytest.raises(
        kvcache.CheckError, match=f"row of '{name}' is out of range.* is not in .0, 4[)]"
    ):
        call_unchecked(monkeypatch, attend, inputs, 0, **wrong, scale=1)


@TARGETS
def test_checks_of_gather(target, monkeypatch):
    inputs = make_inputs()
    dense = kvcache.ops.gather(PARAMS, target=target, bounds_checks=True)
    out = np.zeros((2, 5, 2, 32), np.float32)
    for values, what in ((out[:1].copy(), "sequences"), (out[:, :4].copy(), "tokens")):
        with pytest.raises(
            kvcache.CheckError,
            match=f"number of {what} of 'keys' in 'values' is out of range",
        ):
            call_unchecked(monkeypatch, dense, inputs, 0, out, values)
    ragged = kvcache.ops.gather(PARAMS, target=target, ragged=True, bounds_checks=True)
    offsets = np.array([0, 5, 8], np.int32)
    with pytest.raises(
        kvcache.CheckError, match="number of rows of 'keys' in 'values' is out of range"
    ):
        call_unchecked(
            monkeypatch, ragged, inputs, 0, rows(8), rows(7), output_offsets=offsets
        )


@TARGETS
def test_checks_of_merge_states_and_remap_rows(target):
    merge = kvcache.ops.merge_states(2, 32, target, dtype="f32")
    program = kvcache.jit(merge.source, target=target, bounds_checks=True)
    sizes = {"outs": (3, 5, 2, 32), "lses": (3, 5, 2), "out": (5, 2, 32), "lse": (5, 2)}
    for name, first, what in (
        ("outs", (3, 4), "rows of 'out' in 'splits'"),
        ("lses", (3, 4), "rows of 'out' in 'lses'"),
        ("lses", (2, 5), "splits of 'splits' in 'lses'"),
        ("lse", (4,), "rows of 'out' in 'lse'"),
    ):
        wrong = {**sizes, name: (*first, *sizes[name][len(first) :])}
        with pytest.raises(kvcache.CheckError, match=f"number of {what} is out of range"):
            program.call("merge_states", *(np.zeros(s, np.float32) for s in wrong.values()))
    source = f"""
      func.func @remap(%blocks: {PARAMS.blocks_type}, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                       %s: i32, %c: i32, %t: memref<?x?xi32>, %rows: memref<?xi32>, %ids: memref<?x?xi32>) {{
        %zero = arith.constant 0 : index
        %all = kvcache.paged_collection %blocks, %lengths, %lut, %s, %c
          : {PARAMS.blocks_type}, memref<?xi32>, memref<?x?xi32> -> {PARAMS.collection_type}
        %keys = kvcache.paged_view key %all[%zero] : {PARAMS.collection_type}
        kvcache.remap_rows %t, %keys rows %rows outs(%ids)
          : memref<?x?xi32>, {PARAMS.cache_type}, memref<?xi32>, memref<?x?xi32>
        return
      }}"""
    program = kvcache.jit(source, target=target, bounds_checks=True)
    inputs, tokens = make_inputs(), np.zeros((TOTAL, 3), np.int32)
    for ids, what in ((tokens[:7], "rows"), (np.zeros((TOTAL, 2), np.int32), "columns")):
        with pytest.raises(
            kvcache.CheckError,
            match=f"number of {what} of 'tokens' in 'ids' is out of range",
        ):
            program.call("remap", *inputs.collection(0), tokens, inputs.row_offsets, ids)
