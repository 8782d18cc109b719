"""Tests of read-only arrays in operations: accepted if only read, otherwise rejected."""

import numpy as np
import pytest

import kvcache
from kvcache.pages.inputs import StepInputs

TARGETS = ["cpu", "emulator:sm_80", "emulator:sm_100a"]
HEADS, SIZE, PAGE, PAGES, QUERY_HEADS = 2, 32, 4, 8, 4
LENGTHS, NEW = (3, 6), (2, 1)
TOTAL = sum(NEW)
RNG = np.random.default_rng(0)


def numbers(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def make_params(config=None):
    return kvcache.KVCacheParams(
        "i8" if config else "f32",
        HEADS,
        SIZE,
        page_size=PAGE,
        total_num_layers=1,
        kvcache_quant_config=config,
        enable_prefix_caching=False,
    )


PLAIN = make_params()
QUANTIZED = make_params(kvcache.KVCacheQuantizationConfig("f32", SIZE, None))


class Arrays(dict):
    """The arrays by the names of arguments, and the inputs with the cache's arrays."""

    def inputs(self):
        cache = {
            name: self[name]
            for name in ("blocks", "lengths", "lut", "scales")
            if name in self
        }
        offsets = self.get("rows", self.get("row_offsets"))
        return StepInputs.of(
            row_offsets=np.array([0, 2, 3], np.int32) if offsets is None else offsets,
            **cache,
        )


def make_cache(params, **more):
    shape = (PAGES, 2, 1, PAGE, HEADS)
    stored = params is QUANTIZED
    cache = {
        "blocks": (
            RNG.integers(-128, 128, (*shape, SIZE)).astype(np.int8)
            if stored
            else numbers(*shape, SIZE)
        ),
        "lengths": np.array(LENGTHS, np.int32),
        "lut": RNG.permutation(PAGES)[: 2 * 3].reshape(2, 3).astype(np.int32),
    }
    if stored:
        cache["scales"] = np.abs(numbers(*shape, 1))
    return Arrays(cache, **more)


def make_offsets(name):
    return {name: np.array([0, 2, 3], np.int32)}


def append(target):
    options = {"norm": SIZE, "query_norm": SIZE, "rope": SIZE, "query_heads": QUERY_HEADS}
    operation = kvcache.ops.append(
        PLAIN, target=target, slots="i32", positions="i64", **options
    )
    given = {
        "queries": numbers(TOTAL, QUERY_HEADS, SIZE),
        "slots": np.array([1, 9, 30], np.int32),
        "norm": numbers(SIZE),
        "query_norm": numbers(SIZE),
        "rope": numbers(16, SIZE),
        "positions": np.array([3, 4, 6]),
    }
    new = {name: numbers(TOTAL, HEADS, SIZE) for name in ("keys", "values")}

    def call(arrays):
        operation(
            arrays.inputs(),
            0,
            arrays["keys"],
            arrays["values"],
            **{name: arrays[name] for name in given},
        )

    return call, make_cache(PLAIN, **make_offsets("rows"), **new, **given), {"blocks", "queries"}


def append_quantized(target):
    operation = kvcache.ops.append(
        QUANTIZED, target=target, dtype="f32", static_scales=True
    )
    new = {name: numbers(TOTAL, HEADS, SIZE) for name in ("keys", "values")}
    scales = {name: np.abs(numbers(HEADS)) for name in ("key_scale", "value_scale")}

    def call(arrays):
        static = {name: arrays[name] for name in scales}
        operation(arrays.inputs(), 0, arrays["keys"], arrays["values"], **static)

    arrays = make_cache(QUANTIZED, **make_offsets("rows"), **new, **scales)
    return call, arrays, {"blocks", "scales"}


def gather(target):
    operation = kvcache.ops.gather(QUANTIZED, target=target, dtype="f32", ragged=True)
    out = {name: np.zeros((12, HEADS, SIZE), np.float32) for name in ("keys", "values")}
    offsets = {"output_offsets": np.array([0, 5, 12], np.int32)}

    def call(arrays):
        offsets = arrays["output_offsets"]
        operation(
            arrays.inputs(), 0, arrays["keys"], arrays["values"], output_offsets=offsets
        )

    return (
        call,
        make_cache(QUANTIZED, **make_offsets("rows"), **out, **offsets),
        {"keys", "values"},
    )


def copy_pages(target):
    operation = kvcache.ops.copy_pages(QUANTIZED, target=target)
    arrays = make_cache(QUANTIZED, pairs=np.array([[0, 3], [-1, 2]], np.int32))
    return (
        lambda arrays: operation(arrays.inputs(), arrays["pairs"]),
        arrays,
        {"blocks", "scales"},
    )


def merge_states(target):
    operation = kvcache.ops.merge_states(QUERY_HEADS, SIZE, target=target, dtype="f32")
    arrays = Arrays(
        parts=numbers(3, TOTAL, QUERY_HEADS, SIZE),
        lses=numbers(3, TOTAL, QUERY_HEADS),
        out=np.zeros((TOTAL, QUERY_HEADS, SIZE), np.float32),
        lse=np.zeros((TOTAL, QUERY_HEADS), np.float32),
    )
    return lambda arrays: operation(*arrays.values()), arrays, {"out", "lse"}


def attention(target):
    operation = kvcache.ops.attention(
        PLAIN,
        QUERY_HEADS,
        target=target,
        causal=False,
        mask=True,
        sinks=True,
        split_tokens=4,
    )
    given = {
        "q": numbers(TOTAL, QUERY_HEADS, SIZE),
        "out": np.zeros((TOTAL, QUERY_HEADS, SIZE), np.float32),
        "lse": np.zeros((TOTAL, QUERY_HEADS), np.float32),
        "workspace": np.zeros(operation.workspace_size(2), np.int8),
        "sinks": numbers(QUERY_HEADS),
        "mask": np.full((TOTAL, 1), -1, np.int32),
    }

    def call(arrays):
        operation(arrays.inputs(), 0, scale=0.1, **{name: arrays[name] for name in given})

    return (
        call,
        make_cache(PLAIN, **make_offsets("row_offsets"), **given),
        {"out", "lse", "workspace"},
    )


def attention_to_rows(target):
    operation = kvcache.ops.attention(PLAIN, QUERY_HEADS, target=target, rows=True)
    given = {
        "q": numbers(TOTAL, QUERY_HEADS, SIZE),
        "out": np.zeros((TOTAL, QUERY_HEADS, SIZE), np.float32),
        "lse": np.zeros((TOTAL, QUERY_HEADS), np.float32),
    }
    ids = np.array([[5, -1], [0, 31], [7, 8]], np.int32)

    def call(arrays):
        named = {name: arrays[name] for name in given}
        operation(arrays.inputs(), 0, scale=0.1, rows=arrays["ids"], **named)

    return (
        call,
        make_cache(PLAIN, **make_offsets("row_offsets"), **given, ids=ids),
        {"out", "lse"},
    )


OPERATIONS = [
    append,
    append_quantized,
    gather,
    copy_pages,
    merge_states,
    attention,
    attention_to_rows,
]


def copy(arrays, frozen):
    copies = Arrays({name: array.copy() for name, array in arrays.items()})
    for name in frozen:
        copies[name].flags.writeable = False
    return copies


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("make", OPERATIONS, ids=lambda make: make.__name__)
def test_arrays_that_are_only_read(make, target):
    call, arrays, written = make(target)
    expected, got = copy(arrays, ()), copy(arrays, arrays.keys() - written)
    call(expected)
    call(got)
    for name, array in got.items():
        np.testing.assert_array_equal(array, expected[name])
    # The workspace has one value.
    for name in written - {"workspace"}:
        assert (got[name] != arrays[name]).any()


@pytest.mark.parametrize("make", OPERATIONS, ids=lambda make: make.__name__)
def test_arrays_that_are_written(make):
    call, arrays, written = make("cpu")
    for name in written:
        frozen = copy(arrays, [name])
        with pytest.raises(
            ValueError, match=rf"\('{name}'\) expects a writeable array .* read-only"
        ):
            call(frozen)
        for untouched, array in frozen.items():
            np.testing.assert_array_equal(array, arrays[untouched])
