"""Tests of managers of caches in the layouts of engines, against NumPy views of the same bytes."""

import ml_dtypes
import tracemalloc

import numpy as np
import pytest
from quantization import ELEMENTS, SCALES, quantize

import kvcache
from kvcache import KVCacheParams, KVCacheQuantizationConfig, Layout, PagedKVCacheManager, StepInputs

LAYERS, HEADS, WIDTH, TOKENS, PAGES = 3, 2, 16, 4, 12
NAMES = ["NHD", "HND", "LBHNC", "LBNHC", "LHBNC", "BLHNC", "BLNHC", "BHLNC"]
SWAPPING = {"enable_kvcache_swapping_to_host": True, "host_kvcache_swap_space_gb": 0.001}
each_name = pytest.mark.parametrize("name", NAMES)


def make_params(name, dtype="bf16", scales=None, **fields):
    layout = Layout.from_name(name)
    params = KVCacheParams(
        dtype, HEADS, WIDTH, page_size=TOKENS, total_num_layers=LAYERS, enable_prefix_caching=True,
        kvcache_quant_config=scales, **fields,
    )  # fmt: skip
    return params.with_layout(layout, layout if scales else None)


def make_manager(params, **options):
    return PagedKVCacheManager(params, max_batch_size=4, max_seq_len=64, num_pages=PAGES, **options)


def packed_like(name, shape, dtype):
    """NumPy's own array in the order of a layout, as ``[page, role, layer, token, head, element]``."""
    if name in ("NHD", "HND"):
        axes = (0, 1, 2, 3, 4, 5) if name == "NHD" else (0, 1, 2, 4, 3, 5)
    else:  # Each token of vLLM's is followed by a key and a value.
        axes = (*({"B": 0, "L": 2, "N": 3, "H": 4}[letter] for letter in name[:-1]), 1, 5)
    return np.zeros([shape[axis] for axis in axes], dtype).transpose(np.argsort(axes))


@each_name
@pytest.mark.parametrize("scales", [None, KVCacheQuantizationConfig("f32", 8)], ids=["plain", "scaled"])
def test_tensors_have_the_strides_of_the_layout(name, scales):
    params = make_params(name, "f8E4M3FN" if scales else "bf16", scales)
    manager = make_manager(params)
    tensors = [(manager.blocks[0], params.shape_per_block)]
    if scales:
        tensors.append((manager.scales[0], params.shape_per_scale_block))
    for tensor, shape in tensors:
        expected = packed_like(name, (PAGES + 1, *shape), tensor.dtype)
        assert tensor.shape == expected.shape
        assert tensor.strides == expected.strides


@each_name
@pytest.mark.parametrize("target", ["cpu", "emulator:sm_90a"])
def test_tokens_are_appended_by_the_table(name, target):
    params = make_params(name)
    manager = make_manager(params)
    manager.claim("a", range(6))
    manager.claim("b", range(50, 53))
    inputs = manager.inputs(["a", "b"])
    rng = np.random.default_rng(5)
    keys, values = rng.integers(0, 2**15, (2, 9, HEADS, WIDTH), np.uint16).view(params.dtype)
    kvcache.ops.append(params, target)(inputs, 1, keys, values)
    blocks = manager.blocks[0].view(np.uint16)
    expected = np.zeros_like(blocks)
    for row, (b, t) in enumerate([(0, t) for t in range(6)] + [(1, t) for t in range(3)]):
        at = inputs.lut[b, t // TOKENS], slice(None), 1, t % TOKENS
        expected[at] = np.stack([keys[row], values[row]]).view(np.uint16)
    np.testing.assert_array_equal(blocks, expected)


@each_name
def test_latent_rows_are_appended_in_every_order_of_layers_and_pages(name):
    """A type has only the distances in a page; the blocks have the others."""
    params = KVCacheParams("bf16", 1, WIDTH, page_size=TOKENS, total_num_layers=LAYERS, is_mla=True)
    params = params.with_layout(Layout.from_name(name))
    assert "strided" in params.blocks_type
    manager = make_manager(params)
    manager.claim("a", range(6))
    inputs = manager.inputs(["a"])
    rows = np.random.default_rng(5).integers(0, 2**15, (6, 1, WIDTH), np.uint16)
    kvcache.ops.append(params, "cpu")(inputs, 1, rows.view(params.dtype))
    blocks = manager.blocks[0].view(np.uint16)
    expected = np.zeros_like(blocks)
    for t in range(6):
        expected[inputs.lut[0, t // TOKENS], 0, 1, t % TOKENS] = rows[t]
    np.testing.assert_array_equal(blocks, expected)


@pytest.mark.parametrize("target", ["cpu", "emulator:sm_80", "emulator:sm_100a"])
def test_scales_of_four_tokens_share_their_rows(target):
    """FlashInfer's NVFP4 scales of values, against the order of its quantizer."""
    hnd = Layout.from_name("HND")
    params = KVCacheParams(
        "f4E2M1FN", HEADS, 64, page_size=8, total_num_layers=LAYERS,
        kvcache_quant_config=KVCacheQuantizationConfig("f8E4M3FN", 16), enable_prefix_caching=True,
    ).with_layout(hnd, hnd.interleaved(4))  # fmt: skip
    manager = make_manager(params)
    manager.claim("a", range(11))
    inputs = manager.inputs(["a"])
    rows = np.random.default_rng(5).normal(size=(2, 11, HEADS, 64)).astype(ml_dtypes.bfloat16)
    kvcache.ops.append(params, target)(inputs, 1, *rows)
    scale = SCALES["f8E4M3FN"]
    elements, scales = quantize(rows.astype(np.float32), 16, ELEMENTS["f4E2M1FN"], scale)
    linear = np.zeros((PAGES + 1, 2, HEADS, 8, 4), np.uint8)
    for t in range(11):
        linear[inputs.lut[0, t // 8], :, :, t % 8] = scale.encode(scales[:, t])
    split = linear.reshape(PAGES + 1, 2, HEADS, 2, 4, 4, 1)
    interleaved = split.transpose(0, 1, 2, 3, 5, 6, 4).reshape(linear.shape)
    stored = manager.scales[0].view(np.uint8)
    np.testing.assert_array_equal(stored[:, :, 1].transpose(0, 1, 3, 2, 4), interleaved)
    out = np.zeros((2, 1, 11, HEADS, 64), rows.dtype)
    kvcache.ops.gather(params, target)(inputs, 1, *out)
    expected = (elements * scales.repeat(16, axis=-1)).astype(rows.dtype)
    np.testing.assert_array_equal(out[:, 0], expected)
    page, other = inputs.lut[0, 0], inputs.lut[0, -1]
    kvcache.ops.copy_pages(params, target)(inputs, np.array([[page, other]], np.int32))
    np.testing.assert_array_equal(stored[other], stored[page])


@each_name
def test_pages_are_copied_and_swapped(name):
    manager = make_manager(make_params(name, **SWAPPING))
    blocks = manager.blocks[0].view(np.uint16)
    blocks[...] = np.random.default_rng(6).integers(0, 2**16, blocks.shape, np.uint16)
    manager.claim("a", range(6))
    manager.inputs(["a"])
    manager.step(["a"])
    manager.fork("a", "b")
    manager.grow("a", [6])
    lut = manager.inputs(["a"]).lut[0, :2]
    manager.grow("b", [7])
    other = manager.inputs(["b"]).lut[0, :2]
    assert lut[0] == other[0] and lut[1] != other[1]
    np.testing.assert_array_equal(blocks[lut[1]], blocks[other[1]])
    manager.step(["a", "b"])
    content = blocks[lut].copy()
    manager.swap_out("a")
    manager.release("b")
    manager.swap_in("a")
    manager.grow("a", [8])
    np.testing.assert_array_equal(blocks[manager.inputs(["a"]).lut[0, :2]], content)


@each_name
def test_types_with_layouts_round_trip(name):
    for scales in (None, KVCacheQuantizationConfig("f32", 8)):
        params = make_params(name, "f8E4M3FN" if scales else "bf16", scales)
        fields = {"total_num_layers": LAYERS, "enable_prefix_caching": True}
        for text in (params.collection_type, params.cache_type):
            again = KVCacheParams.from_type(text, **fields)
            assert again.cache_type == params.cache_type
            # A type of packed rows has no distances of pages, roles and layers.
            assert (again.blocks_type == params.blocks_type) == (name != "NHD")
            layout = params.layout
            assert KVCacheParams.from_type(
                text, layout=layout, scale_layout=params.scale_layout, **fields
            ) == params
        # An order with these distances in a page.
        tensor = make_manager(again).blocks[0]
        expected = make_manager(params).blocks[0]
        assert tensor.strides[3:] == expected.strides[3:] or "head = ?" in params.cache_type


@each_name
def test_pages_of_one_token_round_trip(name):
    """With one token, consecutive heads are packed rows."""
    params = KVCacheParams("bf16", HEADS, WIDTH, page_size=1, total_num_layers=LAYERS)
    params = params.with_layout(Layout.from_name(name))
    fields = {"total_num_layers": LAYERS, "layout": params.layout}
    assert KVCacheParams.from_type(params.collection_type, **fields) == params
    assert ("layout" in params.collection_type) == (name[-1] == "C")
    assert "strided" in params.blocks_type


def test_contradicting_layouts():
    text = make_params("HND").cache_type
    with pytest.raises(ValueError, match="no parameters with these fields make"):
        KVCacheParams.from_type(text, layout=Layout.from_name("LBHNC"))


@pytest.mark.parametrize("table", ["csr", "rows"])
def test_types_with_other_tables(table):
    text = make_params("HND").cache_type.removesuffix(">") + f", table = {table}>"
    with pytest.raises(ValueError, match="expects a type with a dense table, got"):
        KVCacheParams.from_type(text)


def test_distances_that_no_tensor_has():
    params = make_params("NHD").with_layout(Layout(token=24, head=128))
    message = "no named layout has tokens 24 and heads 128 elements apart, for heads of 16"
    with pytest.raises(ValueError, match=message):
        make_manager(params)


# Inputs without a manager


def test_inputs_of_another_engine_equal_a_manager_s():
    params = make_params("HND", "f8E4M3FN", KVCacheQuantizationConfig("f32", 8))
    manager = make_manager(params)
    manager.claim("a", range(6))
    manager.step(["a"])
    manager.grow("a", [6])
    manager.claim("b", range(50, 53))
    expected = manager.inputs(["a", "b"])
    inputs = StepInputs.of(
        blocks=manager.blocks[0],
        lengths=expected.lengths,
        lut=expected.lut,
        row_offsets=expected.row_offsets,
        scales=manager.scales[0],
    )
    assert inputs.requests == (0, 1) and inputs.tokens.size == 0
    np.testing.assert_array_equal(inputs.positions, expected.positions)
    assert inputs.collection()[3:5] == expected.collection()[3:5] == (3, 6)
    rows = np.random.default_rng(1).normal(size=(2, 4, HEADS, WIDTH)).astype("float32")
    append = kvcache.ops.append(params, dtype="f32")
    append(expected, 2, *rows)
    bits = [tensor.view(np.uint8).copy() for tensor in (manager.blocks[0], manager.scales[0])]
    for tensor in (manager.blocks[0], manager.scales[0]):
        tensor.view(np.uint8)[...] = 0
    append(inputs, 2, *rows)
    for before, tensor in zip(bits, (manager.blocks[0], manager.scales[0])):
        assert before.any()
        np.testing.assert_array_equal(before, tensor.view(np.uint8))


class OnDevice:
    """An array that is not in host memory."""

    def __init__(self, array):
        self.shape, self.dtype = array.shape, array.dtype

    def astype(self, dtype):
        return OnDevice(np.empty(self.shape, dtype))


GIVEN = {
    "blocks": np.zeros((3, 2, 1, 4, 2, 8), np.float32),
    "lengths": np.array([3, 0], np.int32),
    "lut": np.zeros((2, 8), np.int32),
    "row_offsets": np.array([0, 1, 5], np.int32),
}


def test_bounds_of_inputs():
    inputs = StepInputs.of(**GIVEN)
    assert (inputs.max_seq_length, inputs.max_cache_length) == (4, 3)
    bounds = {"max_seq_length": 9, "max_cache_length": 100}
    elsewhere = {name: OnDevice(array) for name, array in GIVEN.items()}
    inputs = StepInputs.of(**elsewhere, **bounds)
    assert (inputs.max_seq_length, inputs.max_cache_length) == (9, 100)
    assert inputs.positions.size == 0
    with pytest.raises(ValueError, match="expects 'max_seq_length' for arrays that are not in host memory"):
        StepInputs.of(**elsewhere)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"lut": np.zeros((3, 8), np.int32)}, "expects 'lut' of 2 for 2 sequences, got 3"),
        ({"lut": np.zeros(8, np.int32)}, "expects 'lut' with 2 dimensions"),
        ({"row_offsets": np.array([0, 1])}, "expects 'row_offsets' of 3 for 2 sequences, got 2"),
        ({"row_offsets": np.array([0, 2, 1])}, "to begin with 0 and not to decrease"),
        ({"row_offsets": np.array([1, 2, 3])}, "to begin with 0 and not to decrease"),
        ({"scales": (0, 0)}, "expects 'scales' for 1 devices, got 2"),
        ({"blocks": np.zeros((3, 2, 4, 2, 8))}, "expects 'blocks' with 6 dimensions, got"),
        ({"lengths": np.array([3, -1])}, "'lengths' not to be negative, got -1 for sequence 1"),
        ({"lengths": np.array([3, 2**32])}, "elements of 'lengths' to have 32 bits, got 4294967296"),
        ({"row_offsets": np.array([0, 0, 2**32])}, "elements of 'row_offsets' to have 32 bits"),
        ({"lut": np.full((2, 8), -(2**31) - 1)}, "elements of 'lut' to have 32 bits"),
        ({"max_seq_length": 3}, r"expects 'max_seq_length' to be in \[4, 2\^32\), got 3"),
        ({"max_seq_length": 2**32}, r"expects 'max_seq_length' to be in \[4, 2\^32\)"),
        ({"max_cache_length": -1}, r"expects 'max_cache_length' to be in \[3, 2\^32\), got -1"),
    ],
)
def test_step_inputs_reject_values_that_contradict_each_other(changed, message):
    with pytest.raises(ValueError, match=message):
        StepInputs.of(**{**GIVEN, **changed})


def test_step_inputs_accept_the_largest_numbers():
    largest = {"lengths": np.array([2**32 - 1, 0]), "lut": np.full((2, 8), -(2**31))}
    inputs = StepInputs.of(**{**GIVEN, **largest}, max_seq_length=4)
    assert inputs.max_cache_length == inputs.lengths.view(np.uint32)[0] == 2**32 - 1
    assert inputs.lut.dtype == np.int32 and (inputs.lut == -(2**31)).all()


@pytest.mark.parametrize("name", ["lengths", "lut", "row_offsets"])
@pytest.mark.parametrize("dtype", [np.float32, np.bool_, "S4"])
def test_step_inputs_reject_tables_of_other_dtypes(name, dtype):
    changed = {name: GIVEN[name].astype(dtype)}
    with pytest.raises(TypeError, match=f"expects '{name}' to be an array of integers, got"):
        StepInputs.of(**{**GIVEN, **changed})


def test_step_inputs_reject_arrays_that_no_library_converts():
    class Opaque(OnDevice):
        astype = None

    bounds = {"max_seq_length": 9, "max_cache_length": 100}
    wide = Opaque(GIVEN["lengths"].astype(np.int64))
    with pytest.raises(TypeError, match="'lengths' to be of int32 or uint32 .* Opaque .* got int64"):
        StepInputs.of(**{**GIVEN, "lengths": wide}, **bounds)
    StepInputs.of(**{**GIVEN, "lengths": Opaque(GIVEN["lengths"])}, **bounds)


DTYPES = ["i1", "u2", "i4", "u4", "i8", "u8", ">i4", ">i8", ">u8"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("is_slice", [False, True], ids=["packed", "slice"])
def test_step_inputs_read_integers_of_every_dtype(dtype, is_slice):
    params = make_params("NHD")
    rng = np.random.default_rng(0)
    tables = {
        "lengths": np.array([3, 0, 6]),
        "lut": rng.permutation(12).reshape(3, 4),
        "row_offsets": np.array([0, 1, 3, 4]),
    }
    rows = rng.normal(size=(2, 4, HEADS, WIDTH)).astype(kvcache.dtypes.dtype(params.dtype))
    append, written = kvcache.ops.append(params), []
    for kind in ("i4", dtype):
        given = {name: array.astype(kind) for name, array in tables.items()}
        if is_slice and kind == dtype:
            for name, array in given.items():
                wide = np.full([2 * size for size in array.shape], 99, kind)
                given[name] = wide[tuple(slice(None, None, 2) for _ in array.shape)]
                given[name][...] = array
        blocks = np.zeros((12, *params.shape_per_block), rows.dtype)
        inputs = StepInputs.of(blocks=blocks, **given)
        append(inputs, 2, *rows)
        written.append((blocks, inputs.positions.tolist(), inputs.collection()[3:5]))
    assert np.count_nonzero(written[0][0]) == rows.size
    np.testing.assert_array_equal(written[0][0], written[1][0])
    assert written[0][1:] == written[1][1:] == ([3, 0, 1, 6], (2, 6))


def test_step_inputs_keep_tables_that_kernels_read():
    """An engine may write the tables of its next step in place."""
    inputs = StepInputs.of(**GIVEN)
    for name in ("lengths", "lut", "row_offsets"):
        assert np.shares_memory(getattr(inputs, name), GIVEN[name])
    assert inputs.placed_offsets is GIVEN["row_offsets"]


def test_step_inputs_allocate_nothing_for_each_token():
    offsets = np.array([0, 1, 2**31 - 1], np.int32)
    tracemalloc.start()
    try:
        inputs = StepInputs.of(**{**GIVEN, "row_offsets": offsets})
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
    assert inputs.max_seq_length == 2**31 - 2
