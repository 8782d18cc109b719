"""Tests of layouts by name and read off tensors, against NumPy's strides of engines' tensors."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import kvcache
from kvcache import KVCacheParams, Layout, describe

PAGES, LAYERS, TOKENS, HEADS, WIDTH = 5, 3, 4, 2, 8
SIZES = {"L": LAYERS, "B": PAGES, "H": HEADS, "N": TOKENS}


def make_params(dtype="bf16", **fields):
    sizes = {"n_kv_heads": HEADS, "head_dim": WIDTH, "page_size": TOKENS, "total_num_layers": LAYERS}
    return KVCacheParams(dtype, **{**sizes, **fields})


def said(params):
    """The text of the view's type after the page size."""
    return params.cache_type.split(f"page_size = {params.page_size}")[1].removesuffix(">")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NHD", ""),
        ("HND", ", layout = hnd"),
        ("LBHNC", ", layout = [token = 16, head = 64]"),
        ("LBNHC", ", layout = [token = 32, head = 16]"),
        ("LHBNC", ", layout = [token = 16, head = ?]"),
        ("BLHNC", ", layout = [token = 16, head = 64]"),
        ("BLNHC", ", layout = [token = 32, head = 16]"),
        ("BHLNC", ", layout = [token = 16, head = ?]"),
    ],
)
def test_names_of_engines(name, expected):
    params = make_params().with_layout(Layout.from_name(name))
    assert said(params) == expected
    assert params.with_layout(None) == make_params()


@pytest.mark.parametrize("order", map("".join, itertools.permutations("LBHN")))
def test_described_tensors_of_vllm_have_the_strides_of_their_names(order):
    # vLLM allocates in an order, and permutes to [L, B, H, N, C].
    tensor = np.zeros([*(SIZES[dim] for dim in order), 2 * WIDTH], np.uint16)
    logical = tensor.transpose(*(order.index(dim) for dim in "LBHN"), 4)
    split = logical.reshape(*logical.shape[:4], 2, WIDTH)
    assert np.shares_memory(split, tensor)
    layout = describe(split, "layer page head token role element")
    assert (layout.token, layout.head) == (split.strides[3] // 2, split.strides[2] // 2)
    blocks = layout.collection(split)
    assert blocks.shape == (PAGES, 2, LAYERS, TOKENS, HEADS, WIDTH)
    blocks[4, 1, 2, 3, 1, 7] = 9
    assert logical[2, 4, 1, 3, WIDTH + 7] == 9
    assert np.shares_memory(layout.view(split, layer=2, role=1), tensor)
    np.testing.assert_array_equal(layout.view(split, layer=2, role=1), blocks[:, 1, 2])


def test_a_named_layout_and_its_description_are_one_type():
    tensor = np.zeros((PAGES, 2, HEADS, TOKENS, WIDTH), ml_dtypes.bfloat16)
    described = describe(tensor, "page role head token element")
    params = make_params(total_num_layers=1)
    assert params.with_layout(described).cache_type == (
        params.with_layout(Layout.from_name("HND")).cache_type
    )


def test_explicit_packed_rows_have_no_layout():
    tensor = np.zeros((PAGES, 2, LAYERS, TOKENS, HEADS, WIDTH), np.uint16)
    params = make_params().with_layout(describe(tensor, "page role layer token head element"))
    assert params.collection_type == make_params().collection_type
    # Pages, roles and layers may lie anywhere.
    assert params.blocks_type == (
        "memref<?x2x?x4x2x8xbf16, strided<[?, ?, ?, 16, 8, 1], offset: ?>>"
    )


def test_one_head_has_no_distance_of_heads():
    tensor = np.zeros((PAGES, TOKENS, 656), np.int8)[:, :, :512]
    params = make_params(dtype="f8E5M2", head_dim=512, n_kv_heads=1, is_mla=True)
    layout = describe(tensor, "page token element")
    assert said(params.with_layout(layout)) == ", layout = [token = 656]"
    assert params.with_layout(layout).blocks_type == (
        "memref<?x1x?x4x1x512xf8E5M2, strided<[?, ?, ?, 656, 512, 1], offset: ?>>"
    )


def test_memrefs_of_layouts():
    params = make_params().with_layout(Layout.from_name("LHBNC"))
    assert params.blocks_type == (
        "memref<?x2x?x4x2x8xbf16, strided<[?, ?, ?, 16, ?, 1], offset: ?>>"
    )


def test_interleaved_scales():
    config = kvcache.KVCacheQuantizationConfig("f32", 4)
    params = make_params(dtype="f8E4M3FN", kvcache_quant_config=config)
    hnd = Layout.from_name("HND")
    mine = params.with_layout(hnd, hnd.interleaved(2))
    assert said(mine).endswith(", scale_layout = [token = 2, head = 8, interleave = 2]")
    assert mine.with_layout(None, Layout.from_name("NHD").interleaved(2)).cache_type.endswith(
        "granularity = 4, scale_layout = [token = 4, head = 2, interleave = 2]>"
    )
    again = KVCacheParams.from_type(mine.collection_type)
    assert again.cache_type == mine.cache_type
    assert again.scale_layout.interleave == 2
    with pytest.raises(ValueError, match="only a 'scale_layout' is interleaved"):
        params.with_layout(hnd.interleaved(2))
    with pytest.raises(ValueError, match=r"'page_size' \(4\) and the groups of a head \(2\), got 4"):
        params.with_layout(hnd, hnd.interleaved(4))
    with pytest.raises(ValueError, match="expects 'interleave' to be positive"):
        hnd.interleaved(0)


def test_layouts_of_scales():
    config = kvcache.KVCacheQuantizationConfig("f32", 8)
    params = make_params(dtype="f8E4M3FN", kvcache_quant_config=config)
    hnd = Layout.from_name("HND")
    assert said(params.with_layout(hnd)).endswith(", layout = hnd")
    assert said(params.with_layout(hnd, hnd)).endswith(", layout = hnd, scale_layout = hnd")
    inline = np.zeros((PAGES, HEADS, TOKENS, 3), np.float32)[..., 2:]
    layout = describe(inline, "page head token element")
    assert said(params.with_layout(hnd, layout)).endswith(
        ", scale_layout = [token = 3, head = 12]"
    )


def test_tensors_of_torch_are_described_by_their_strides():
    class Tensor:
        """A stand-in for a tensor of PyTorch."""

        shape = (PAGES, 2, HEADS, TOKENS, WIDTH)

        def stride(self):
            return (2 * HEADS * TOKENS * WIDTH, HEADS * TOKENS * WIDTH, TOKENS * WIDTH, WIDTH, 1)

    layout = describe(Tensor(), "page role head token element")
    assert (layout.token, layout.head) == (WIDTH, TOKENS * WIDTH)


@pytest.mark.parametrize(
    ("tensor", "dims", "message"),
    [
        (np.zeros((2, 4, 8)), "page token", "expects a name for each of 3 dimensions"),
        (np.zeros((2, 4, 8)), "page token width", "unknown dimension 'width'; known are page"),
        (np.zeros((2, 4, 8)), "page page element", "expects each dimension once"),
        (np.zeros((2, 4, 8)), "page head element", "expects 'dims' to have token"),
        (np.zeros((2, 4, 16))[..., ::2], "page token element", "side by side, got a distance of 2"),
        (np.zeros((2, 4, 8))[:, ::-1], "page token element", "positive distance along 'token'"),
        (
            np.zeros((2, 4, 9), np.uint8)[:, :, :8].view("u1").view(np.uint16),
            "page token element",
            "distances of whole elements of 2 bytes, got 9 bytes",
        ),
    ],
)
def test_wrong_descriptions(tensor, dims, message):
    with pytest.raises(ValueError, match=message):
        describe(tensor, dims)


def test_wrong_layouts():
    with pytest.raises(ValueError, match="unknown layout 'DHN'; known are NHD, HND, LBHNC"):
        Layout.from_name("DHN")
    with pytest.raises(TypeError, match="expects 'layout' to be a Layout, got 'HND'"):
        make_params(layout="HND")
    with pytest.raises(ValueError, match="'scale_layout' needs 'kvcache_quant_config'"):
        make_params(scale_layout=Layout.from_name("HND"))
    with pytest.raises(ValueError, match="only known at run time"):
        make_params().with_layout(Layout(("token", "page", "role", "layer", "head", "element")))


# --- Rows of fields ---------------------------------------------------------------


def random_bytes(*shape):
    return np.random.default_rng(0).integers(0, 256, shape, np.uint8)


def test_rows_of_flash_mla_v32():
    data = random_bytes(3, 64, 656)
    views = Layout.from_name("FlashMLA-V3.2").views(data)
    row = data[2, 17].tobytes()
    content = np.frombuffer(row[:512], ml_dtypes.float8_e4m3fn)
    assert views["content"].array[2, 17, 0].tobytes() == content.tobytes()
    assert views["scales"].array[2, 17, 0].tobytes() == row[512:528]
    assert views["rope"].array[2, 17, 0].tobytes() == row[528:]
    assert views["content"].array.shape == (3, 64, 1, 512)
    assert views["content"].type == (
        "!kvcache.paged<f8E4M3FN, #kvcache.params<num_heads = 1, head_size = 512, "
        "is_mla = true>, page_size = 64, scale = f32, granularity = 128, "
        "layout = [token = 656], scale_layout = [token = 164]>"
    )
    assert views["rope"].type.endswith("page_size = 64, layout = [token = 328]>")
    assert views["scales"].memref == (
        "memref<?x64x1x4xf32, strided<[?, 164, 164, 1], offset: ?>>"
    )
    views["rope"].array[0, 0, 0, 0] = 1
    assert data[0, 0, 528:530].tobytes() == b"\x80\x3f"


def test_pages_of_flash_mla_v4():
    layout = Layout.from_name("FlashMLA-V4")
    assert layout.page_bytes(64) == 65 * 576  # 64 rows and 512 bytes of scales
    data = random_bytes(3, layout.page_bytes(64))
    views = layout.views(data, page_size=64)
    for token in (0, 63):
        row = data[1, token * 576 :][:576].tobytes()
        assert views["content"].array[1, token, 0].tobytes() == row[:448]
        assert views["rope"].array[1, token, 0].tobytes() == row[448:]
        scales = data[1, 64 * 576 + token * 8 :][:7].tobytes()
        assert views["scales"].array[1, token, 0].tobytes() == scales
    assert "granularity = 64, layout = [token = 576], scale_layout = [token = 8]" in (
        views["content"].type
    )
    assert "layout = [token = 288]" in views["rope"].type


def test_pages_of_index_keys_of_deepgemm():
    layout = Layout.from_name("DeepGEMM-index")
    assert layout.page_bytes(64) == 8448
    data = random_bytes(3, layout.page_bytes(64))
    views = layout.views(data, page_size=64)
    for token in (0, 63):
        assert views["content"].array[1, token, 0].tobytes() == data[1, token * 128 :][:128].tobytes()
        assert views["scales"].array[1, token, 0].tobytes() == data[1, 8192 + token * 4 :][:4].tobytes()
    params, rope = kvcache.row_params(layout, 64)
    assert rope is None and params.head_dim == 128 and params.is_mla


def test_pages_of_index_keys_of_mxfp4():
    """Two elements share a byte."""
    layout = Layout.from_name("DeepGEMM-index-MXFP4")
    assert layout.page_bytes(64) == 64 * 68
    data = random_bytes(2, layout.page_bytes(64))
    views = layout.views(data, page_size=64)
    assert views["content"].array[1, 63, 0].tobytes() == data[1, 63 * 64 :][:64].tobytes()
    assert views["scales"].array[1, 63, 0].tobytes() == data[1, 64 * 64 + 63 * 4 :][:4].tobytes()
    assert views["content"].memref.startswith("memref<?x64x1x64xi8, strided<[?, 64, 64, 1]")
    params, rope = kvcache.row_params(layout, 64)
    assert rope is None and params.layer_blocks_type == "memref<?x64x1x64xi8, strided<[?, 64, 64, 1], offset: ?>>"


def test_wrong_rows():
    layout = Layout.from_name("FlashMLA-V4")
    with pytest.raises(TypeError, match="expects bytes"):
        layout.views(np.zeros((2, 4096), np.int16), 4)
    with pytest.raises(ValueError, match="expects 'page_size'"):
        layout.views(random_bytes(2, 4096))
    with pytest.raises(ValueError, match="expects pages of 2,335 bytes for 4 tokens, got 2,334"):
        layout.views(random_bytes(2, 2334), 4)
    with pytest.raises(ValueError, match="side by side"):
        layout.views(random_bytes(2, 8192)[:, ::2], 4)
    with pytest.raises(ValueError, match="the page of rope, 2335 bytes, is not a whole number"):
        layout.views(random_bytes(2, 2335), 4)
    with pytest.raises(ValueError, match="expects 'page_size' to be positive"):
        layout.page_bytes(0)
