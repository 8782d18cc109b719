"""Tests of append, gather and attention on tensors with any places of pages, roles and layers."""

import functools
import itertools

import ml_dtypes
import model
import numpy as np
import pytest
from devices import TARGETS

import kvcache
from kvcache import KVCacheParams, KVCacheQuantizationConfig, StepInputs, describe
from kvcache.cache.layouts import DIMS

PAGES, ROLES, LAYERS, TOKENS, HEADS, WIDTH, LAYER = 7, 2, 3, 4, 2, 16, 1
SIZES = dict(zip(DIMS, (PAGES, ROLES, LAYERS, TOKENS, HEADS, WIDTH)))
BF16 = np.dtype(ml_dtypes.bfloat16)
LENGTHS, NEW = np.array([5, 0, 3], np.int32), np.array([2, 3, 0])
TABLE = np.array([[6, 3], [1, 0], [2, 0]], np.int32)
OFFSETS = np.concatenate([[0], np.cumsum(NEW)]).astype(np.int32)
PER_HEAD = KVCacheParams(
    "i8", HEADS, WIDTH, page_size=TOKENS, total_num_layers=LAYERS,
    kvcache_quant_config=KVCacheQuantizationConfig("f32", WIDTH),
)  # fmt: skip
ENGINES = {
    "FlashAttention": "role page token head element",
    "vLLM of one role per layer": "layer page role token head element",
    "vLLM of two roles per layer": "layer role page token head element",
    "slots": "role page token head element",
    "pool of layers": "page layer role token head element",
}


@functools.cache
def make_op(name, params, target, *arguments, **options):
    return getattr(kvcache.ops, name)(params, *arguments, target=target, **options)


def write_tokens(blocks, layer, rng):
    """Writes the tokens of earlier steps; returns the dense keys and values of each sequence."""
    dense = []
    for b, (length, new) in enumerate(zip(LENGTHS, NEW)):
        rows = rng.standard_normal((2, length + new, HEADS, WIDTH)).astype(BF16)
        for token in range(length):
            blocks[TABLE[b, token // TOKENS], :, layer, token % TOKENS] = rows[:, token]
        dense.append(rows)
    return dense


def check_ops(tensor, dims, target):
    """Runs the three ops on a tensor, and compares each byte of its memory with the model."""
    layout = describe(tensor, dims)
    blocks = layout.collection(tensor)
    layers = blocks.shape[2]
    layer = layers // 2
    params = KVCacheParams(BF16, HEADS, WIDTH, page_size=TOKENS, total_num_layers=layers).with_layout(layout)
    rng = np.random.default_rng(0)
    tensor[...] = rng.standard_normal(tensor.shape)
    dense = write_tokens(blocks, layer, rng)
    new = np.concatenate([rows[:, length:] for rows, length in zip(dense, LENGTHS)], 1)
    expected = blocks.copy()
    for b, length in enumerate(LENGTHS):
        for i in range(NEW[b]):
            page, offset = TABLE[b, (length + i) // TOKENS], (length + i) % TOKENS
            expected[page, :, layer, offset] = new[:, OFFSETS[b] + i]
    inputs = StepInputs.of(blocks=blocks, lengths=LENGTHS, lut=TABLE, row_offsets=OFFSETS)
    make_op("append", params, target)(inputs, layer, *new)
    np.testing.assert_array_equal(blocks.view(np.uint16), expected.view(np.uint16))

    keys, values = np.zeros((2, 3, 8, HEADS, WIDTH), BF16)
    make_op("gather", params, target)(inputs, layer, keys, values)
    for b, rows in enumerate(dense):
        for out, wanted in zip((keys, values), rows):
            np.testing.assert_array_equal(out[b, : len(wanted)].view(np.uint16), wanted.view(np.uint16))

    q = rng.standard_normal((OFFSETS[-1], HEADS, WIDTH)).astype(BF16)
    out = np.zeros_like(q)
    make_op("attention", params, target, HEADS)(inputs, layer, q, out=out, scale=0.25)
    for rows, wanted, each in zip(np.split(q, OFFSETS[1:-1]), np.split(out, OFFSETS[1:-1]), dense):
        np.testing.assert_allclose(wanted.astype(float), model.attend(rows, *each, 0.25)[0], atol=0.02)


def cover_orders(dims):
    """Orders of dimensions, such that every three appear in each order."""
    triples = {order: set(itertools.combinations(order, 3)) for order in itertools.permutations(dims)}
    missing, chosen = set().union(*triples.values()), []
    while missing:
        chosen.append(max(triples, key=lambda order: len(triples[order] & missing)))
        missing -= triples[chosen[-1]]
    return chosen


@pytest.mark.parametrize("order", map(" ".join, cover_orders(DIMS[:-1])))
def test_orders_of_dimensions(order):
    dims = f"{order} element"
    check_ops(np.zeros([SIZES[dim] for dim in dims.split()], BF16), dims, "cpu")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ENGINES)
def test_tensors_of_engines(name, target):
    dims = ENGINES[name]
    shape = [SIZES[dim] for dim in dims.split()]
    if name == "slots":  # SGLang: [2, slots, head, element]
        tensor = np.zeros((2, PAGES * TOKENS, HEADS, WIDTH), BF16).reshape(2, PAGES, TOKENS, HEADS, WIDTH)
    elif name == "pool of layers":  # every other page, some layers
        tensor = np.zeros([2 * shape[0], shape[1] + 2, *shape[2:]], BF16)[::2, 1:-1]
    else:
        tensor = np.zeros(shape, BF16)
    check_ops(tensor, dims, target)


@pytest.mark.parametrize("target", TARGETS)
def test_scale_after_each_head_of_each_role(target):
    """vLLM's per-token-head scales: an int8 head and its f32 scale, for key and value."""
    pitch = WIDTH + 4
    tensor = np.zeros((LAYERS, PAGES, HEADS, TOKENS, 2 * pitch), np.int8)
    split = tensor.reshape(*tensor.shape[:4], 2, pitch)
    dims = "layer page head token role element"
    elements, scales = split[..., :WIDTH], split[..., WIDTH:].view(np.float32)
    layout, scale_layout = describe(elements, dims), describe(scales, dims)
    params = PER_HEAD.with_layout(layout, scale_layout)
    assert f"layout = [token = {2 * pitch}, head = {2 * pitch * TOKENS}, role = {pitch}]" in params.cache_type
    assert KVCacheParams.from_type(params.collection_type).collection_type == params.collection_type

    rng = np.random.default_rng(1)
    codes = rng.integers(-127, 128, (2, OFFSETS[-1], HEADS, WIDTH))
    codes[..., 3] = 127
    factors = np.exp2(rng.integers(-4, 4, codes.shape[:3])).astype(np.float32)
    rows = (codes * factors[..., None]).astype(np.float32)
    inputs = StepInputs.of(
        blocks=layout.collection(elements), scales=scale_layout.collection(scales),
        lengths=LENGTHS, lut=TABLE, row_offsets=OFFSETS,
    )  # fmt: skip
    expected = split.copy()
    for b, length in enumerate(LENGTHS):
        for i in range(NEW[b]):
            page, offset = TABLE[b, (length + i) // TOKENS], (length + i) % TOKENS
            place = expected[LAYER, page, :, offset].swapaxes(0, 1)
            place[..., :WIDTH] = codes[:, OFFSETS[b] + i]
            place[..., WIDTH:] = factors[:, OFFSETS[b] + i, :, None].view(np.int8)
    kvcache.ops.append(params, target, dtype="f32")(inputs, LAYER, *rows)
    np.testing.assert_array_equal(split, expected)

    keys, values = np.zeros((2, 3, 8, HEADS, WIDTH), np.float32)
    kvcache.ops.gather(params, target, dtype="f32")(inputs, LAYER, keys, values)
    for b, length in enumerate(LENGTHS):
        for out, wanted in zip((keys, values), rows[:, OFFSETS[b] : OFFSETS[b + 1]]):
            np.testing.assert_array_equal(out[b, length : length + NEW[b]], wanted)


def test_misaligned_role_is_refused():
    tensor = np.zeros((PAGES, HEADS, TOKENS, 2, WIDTH + 4), ml_dtypes.float8_e4m3fn)[..., :WIDTH]
    layout = describe(tensor, "page head token role element")
    params = KVCacheParams("f8E4M3FN", HEADS, WIDTH, page_size=TOKENS, total_num_layers=1)
    aligned = kvcache.Layout(token=layout.token, head=layout.head)
    inputs = StepInputs.of(blocks=layout.collection(tensor), lengths=LENGTHS, lut=TABLE, row_offsets=OFFSETS)
    rows = np.ones((2, OFFSETS[-1], HEADS, WIDTH), np.float32)
    kvcache.ops.append(params.with_layout(layout), dtype="f32")(inputs, 0, *rows)
    assert (tensor[3, :, 1] == 1).all() and (tensor[3, :, 0] == 0).all()
    with pytest.raises(ValueError, match="multiples of 8 bytes"):
        kvcache.ops.append(params.with_layout(aligned), dtype="f32")(inputs, 0, *rows)
    with pytest.raises(ValueError, match="no named layout has keys and values 20 elements apart"):
        params.order_of(layout, params.shape_per_block)
