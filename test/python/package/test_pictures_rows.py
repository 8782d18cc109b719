"""Tests that pictures of rows show the places of elements and scales."""

import itertools
import re

import numpy as np
import pytest
from picture_cases import INT4, LLAMA, MLA, NVFP4, QUANTIZED, SVG, find_by_class, number, parse, texts, tips

import kvcache
from kvcache.pictures import draw_row


def draw(params, **rope):
    return parse(draw_row(kvcache.KVCacheParams(**params), **rope))


def read_totals(root):
    """The numbers of the totals, by their names."""
    cells = texts(root)
    cells = cells[cells.index("bytes") :]
    names = ("a row:", "keys and", "a token in", "a page of", "the page on")
    starts = [i for i, cell in enumerate(cells) if cell.startswith(names)]
    rows = [cells[start:end] for start, end in zip(starts, [*starts[1:], len(cells)])]
    return {name: [int(size.replace(",", "")) for size in sizes] for name, *sizes in rows}


@pytest.mark.parametrize("params", [LLAMA, QUANTIZED, INT4, NVFP4, MLA], ids=["bf16", "fp8", "int4", "nvfp4", "mla"])
def test_totals_equal_the_tensors(params):
    shown, cache = read_totals(draw(params)), kvcache.KVCacheParams(**params)
    tensors = [np.zeros(cache.shape_per_block, cache.storage_dtype)]
    if cache.kvcache_quant_config:
        tensors.append(np.zeros(cache.shape_per_scale_block, cache.kvcache_quant_config.scale_dtype))
    row, token, page = ([part.nbytes for part in parts] for parts in (
        [tensor[0, 0, 0] for tensor in tensors],
        [tensor[:, :, 0] for tensor in tensors],
        tensors,
    ))  # fmt: skip

    def together(sizes):
        return [*sizes, sum(sizes)] if len(sizes) > 1 else sizes

    layers = params["total_num_layers"]
    first = "a row: a token in a layer" if cache.is_mla else "a row: keys of a token in a layer"
    assert shown[first] == together(row)
    assert shown[f"a token in {layers} layers"] == together(token)
    assert shown["a page of 64 tokens"] == together(page)
    assert ("keys and values" in shown) == (not cache.is_mla)
    if cache.n_devices > 1:
        assert shown["the page on all 2 devices"][-1] == cache.bytes_per_block


def test_scale_is_drawn_below_its_elements():
    root = draw(QUANTIZED)
    heads, size, granularity = 4, 128, 32
    strips = find_by_class(root, "g", "scale")
    assert len(strips) == heads * size // granularity
    bars = find_by_class(root, "rect", "elements")
    for head, element in itertools.product(range(heads), range(size)):
        index = head * (size // granularity) + element // granularity
        bar, strip = bars[head], strips[index].find(SVG + "rect")
        center = number(bar, "x") + (element + 0.5) / size * number(bar, "width")
        assert number(strip, "x") < center < number(strip, "x") + number(strip, "width") + 1
        assert 0 < number(strip, "y") - number(bar, "y") < 40
        assert tips(root, "scale")[index] == f"scale {index}: bytes {4 * index}–{4 * index + 3} of the row of scales"


def test_zero_points_follow_the_scales_of_a_head():
    shown = tips(draw(INT4), "scale")
    assert len(shown) == 8 * 128 // 32
    assert shown[3] == "scale 3: bytes 6–7 of the row of scales"
    assert shown[4] == "scale 8: bytes 16–17 of the row of scales"


@pytest.mark.parametrize(("heads", "size", "dtype", "element"), [(8, 128, "bf16", 2), (3, 20, "bf16", 2), (5, 3, "f32", 4)])
def test_marks_are_every_16_bytes_of_the_row(heads, size, dtype, element):
    root = draw({"dtype": dtype, "n_kv_heads": heads, "head_dim": size, "page_size": 1})
    bars, marks = find_by_class(root, "rect", "elements"), find_by_class(root, "rect", "unit")
    assert len(bars) == heads
    row = set()
    for mark in marks:
        (head,) = [i for i, bar in enumerate(bars) if bar.get("y") == mark.get("y")]
        inside = (number(mark, "x") + 0.5 - number(bars[head], "x")) / number(bars[head], "width")
        row.add(round((head + inside) * size * element, 2))
    heads_start = {head * size * element for head in range(heads)}
    assert row == set(range(0, heads * size * element, 16)) - heads_start


def test_many_heads_are_left_out_in_the_middle():
    params = {"dtype": "f16", "n_kv_heads": 128, "head_dim": 64, "page_size": 1}
    names = [text for text in texts(draw(params)) if text.startswith(("head ", "…"))]
    assert names == ["head 0", "head 1", "head 2", "head 3", "…", "head 127"]
    assert f"byte {127 * 64 * 2:,}" in texts(draw(params))


@pytest.mark.parametrize("params", [INT4, NVFP4], ids=["int4", "nvfp4"])
def test_byte_has_two_elements_of_four_bits(params):
    root = draw(params)
    elements = find_by_class(root, "rect", "element")
    assert len(elements) == 32
    assert len({element.get("width") for element in elements}) == 1
    shown = f"elements of {params['dtype']}, the lower four bits first; below: bytes of the row"
    assert shown in texts(root)


def test_rope_follows_the_content():
    root = draw(MLA, padded_depth=512, rope_columns=64)
    (content,), (rope,) = find_by_class(root, "rect", "content"), find_by_class(root, "rect", "rope")
    assert number(content, "width") / number(rope, "width") == pytest.approx(512 / 128, rel=1e-3)
    assert number(rope, "x") == pytest.approx(number(content, "x") + number(content, "width"), abs=0.01)
    shown = texts(root)
    assert "content, 512 f8E4M3FN: 512 bytes" in shown and "rope, 64 bf16" in shown
    assert {str(byte) for byte in range(512, 528)} <= set(shown)
    assert len(find_by_class(root, "rect", "element")) == 16 + 8


def test_a_continuous_cache_has_no_pages():
    with pytest.warns(DeprecationWarning):
        params = kvcache.KVCacheParams("bf16", 8, 128, cache_strategy=kvcache.KVCacheStrategy.CONTINUOUS, total_num_layers=2)
    assert read_totals(parse(draw_row(params))) == {"a row: keys of a token in a layer": [2048], "keys and values": [4096]}


@pytest.mark.parametrize(
    ("params", "rope", "message"),
    [
        (MLA, {"padded_depth": 512}, "expects 'padded_depth' and 'rope_columns' together"),
        (MLA, {"padded_depth": 0, "rope_columns": 320}, "expects 'padded_depth' to be positive, got 0"),
        (
            MLA,
            {"padded_depth": 512, "rope_columns": 32},
            "expects 'padded_depth' + 2 * 'rope_columns' to be 'head_dim' (640), got 576",
        ),
        (
            {**MLA, "dtype": "bf16"},
            {"padded_depth": 512, "rope_columns": 64},
            "expects a cache of MLA with elements of one byte for a rope, got MLA of bf16",
        ),
        (
            LLAMA,
            {"padded_depth": 64, "rope_columns": 32},
            "expects a cache of MLA with elements of one byte for a rope, got keys and values of bf16",
        ),
        ({**LLAMA, "head_dim": 4097}, {}, "expects heads of at most 8,192 bytes in a picture, got 8,194"),
    ],
)
def test_invalid_rows_are_errors(params, rope, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        draw_row(kvcache.KVCacheParams(**params), **rope)


def test_sizes_of_a_rope_are_integers():
    with pytest.raises(TypeError, match=r"^expects 'rope_columns' to be an integer, got 64\.0$"):
        draw_row(kvcache.KVCacheParams(**MLA), padded_depth=512, rope_columns=64.0)


# Layouts: the bytes of a page

PLACE = re.compile(r"(?:(key|value) )?(\w+) of (?:head (\d+))?(?:, )?(?:token (\d+))?: bytes ([\d,]+)–([\d,]+)$")


def list_boxes(root):
    """The kind, head, token, first and last byte of each box."""
    for tip in tips(root, "box"):
        role, kind, head, token, first, last = PLACE.match(tip).groups()
        numbers = [int(number.replace(",", "")) for number in (head or "0", token or "0", first, last)]
        yield role or kind, *numbers


@pytest.mark.parametrize("name", ["HND", "LBHNC", "LBNHC", "BLHNC", "BLNHC", "BHLNC"])
def test_bytes_of_a_page_follow_the_layout(name):
    cache = kvcache.KVCacheParams("bf16", 3, 16, page_size=4, total_num_layers=2)
    cache = cache.with_layout(kvcache.Layout.from_name(name))
    tensor = kvcache.PagedKVCacheManager(cache, max_batch_size=1, max_seq_len=4, num_pages=1).blocks[0]
    place = {"key": 0, "value": 1}
    found = list(list_boxes(parse(draw_row(cache))))
    assert {kind for kind, *_ in found} == ({"key"} if name == "HND" else {"key", "value"})
    assert len(found) == (12 if name == "HND" else 24)
    for kind, head, token, first, last in found:
        element = tensor[0, place[kind], 0, token, head]
        assert first == element.ctypes.data - tensor[0, 0, 0, 0, 0].ctypes.data
        assert last - first + 1 == element.nbytes


def test_distances_that_pages_decide_have_no_bytes():
    cache = kvcache.KVCacheParams("bf16", 3, 16, page_size=4, total_num_layers=2)
    root = parse(draw_row(cache.with_layout(kvcache.Layout.from_name("LHBNC"))))
    assert texts(root).count("known at run time") == 2
    assert "key of head 1, token 0: 32 bytes" in tips(root, "box")


def test_scales_have_lines_of_their_own():
    hnd = kvcache.Layout.from_name("HND")
    cache = kvcache.KVCacheParams(**{**QUANTIZED, "page_size": 4}).with_layout(hnd, hnd)
    found = [box for box in list_boxes(parse(draw_row(cache))) if box[0] == "scales"]
    assert found[:2] == [("scales", 0, 0, 0, 15), ("scales", 0, 1, 16, 31)]
    assert ("scales", 1, 0, 64, 79) in found


@pytest.mark.parametrize("name", ["FlashMLA-V3.2", "FlashMLA-V4", "DeepGEMM-index", "DeepGEMM-index-MXFP4"])
def test_fields_of_rows_match_their_arrays(name):
    layout = kvcache.Layout.from_name(name)
    data = np.zeros((1, layout.page_bytes(4)), np.uint8)
    views = layout.views(data, page_size=4)
    boxes = list(list_boxes(parse(draw_row(layout, page_size=4))))
    assert len(boxes) == 4 * len(layout.fields)
    for kind, _, token, first, last in boxes:
        field = views[kind].array[0, token, 0]
        assert first == field.ctypes.data - data.ctypes.data
        assert last - first + 1 == field.nbytes


def test_long_pages_are_left_out_in_the_middle():
    names = [text for text in texts(parse(draw_row(kvcache.Layout.from_name("FlashMLA-V4")))) if text.startswith(("token ", "…"))]
    assert names[:6] == ["token 0", "token 1", "token 2", "token 3", "…", "token 63"]


@pytest.mark.parametrize(
    ("subject", "options", "message"),
    [
        (kvcache.KVCacheParams(**LLAMA), {"page_size": 4}, "expects 'page_size' only for rows of fields"),
        (
            kvcache.Layout.from_name("FlashMLA-V4"),
            {"padded_depth": 512, "rope_columns": 64},
            "expects 'padded_depth' and 'rope_columns' only for packed rows",
        ),
        (kvcache.Layout.from_name("FlashMLA-V4"), {"page_size": 0}, "expects 'page_size' to be positive, got 0"),
    ],
)
def test_wrong_pages(subject, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        draw_row(subject, **options)
