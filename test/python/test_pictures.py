"""Pictures: what they show is what there is, and they read well."""

import importlib.util
import itertools
import json
import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import kvcache
from kvcache import CacheSnapshot, PageAddress, PageState, Place, SequenceState
from kvcache.pictures import draw_pages, draw_row, draw_tile

ROOT = Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"
SWIZZLE_MASKS = {"none": 0, "32b": 1, "64b": 3, "128b": 7}
LLAMA = {"dtype": "bf16", "n_kv_heads": 8, "head_dim": 128, "page_size": 64, "total_num_layers": 32}
MLA = {"dtype": "f8E4M3FN", "n_kv_heads": 1, "head_dim": 640, "page_size": 64, "total_num_layers": 61, "is_mla": True}
QUANTIZED = {**LLAMA, "dtype": "f8E4M3FN", "n_devices": 2, "kvcache_quant_config": kvcache.KVCacheQuantizationConfig("f32", 32)}
NVFP4 = {**LLAMA, "dtype": "f4E2M1FN", "kvcache_quant_config": kvcache.KVCacheQuantizationConfig("f8E4M3FN", 16)}


def device(index):
    return PageAddress(Place.DEVICE, index)


def host(index):
    return PageAddress(Place.HOST, index)


def snapshot(pages=(), sequences=(), page_size=16, num_pages=12, num_host_pages=0):
    return CacheSnapshot(page_size, num_pages, num_host_pages, num_pages, tuple(pages), tuple(sequences))


def small_snapshot(names=("chat", "code", "swapped")):
    """Two sequences with a page in common, one in the swap space, two cached pages."""
    pages = [
        PageState(device(0), 2, True, 16),
        PageState(device(3), 1, True, 16),
        PageState(device(4), 1, False, 5),
        PageState(device(7), 1, False, 0),
        PageState(device(9), 0, True, 16),
        PageState(host(1), 1, False, 12),
        PageState(host(2), 0, True, 16),
    ]
    sequences = [
        SequenceState(names[0], (device(0), device(3), device(4)), 37, 3, True),
        SequenceState(names[1], (device(0), device(7)), 16, 9, True),
        SequenceState(names[2], (host(1),), 12, 0, False),
    ]
    return snapshot(pages, sequences, num_host_pages=4)


def large_snapshot(num_pages, num_sequences, per_sequence):
    """Sequences with three pages in common, and cached pages all over the rest."""
    ids = np.random.default_rng(0).permutation(num_pages).tolist()
    common, own, rest = ids[:3], ids[3 : 3 + num_sequences * per_sequence], ids[3 + num_sequences * per_sequence :]
    pages = [PageState(device(page), num_sequences, True, 64) for page in common]
    pages += [PageState(device(page), 1, False, 64) for page in own]
    pages += [PageState(device(page), 0, True, 64) for page in rest[::2]]
    tokens = 64 * (3 + per_sequence)
    sequences = [
        SequenceState(f"a request with a long name, number {i}", tuple(map(device, common + own[i::num_sequences])), tokens - 9, 9, True)
        for i in range(num_sequences)
    ]
    return snapshot(pages, sequences, page_size=64, num_pages=num_pages)


PICTURES = {
    "no-sequences": lambda: draw_pages(snapshot()),
    "small": lambda: draw_pages(small_snapshot()),
    "strange-names": lambda: draw_pages(small_snapshot(("<b>&\"'", "\x00\n\ud800\u202e", "長いＡＢ" * 20))),
    "16-sequences": lambda: draw_pages(large_snapshot(400, 16, 17)),
    "2000-pages": lambda: draw_pages(large_snapshot(2000, 4, 180)),
    "keys": lambda: draw_row(kvcache.KVCacheParams(**LLAMA)),
    "quantized": lambda: draw_row(kvcache.KVCacheParams(**QUANTIZED)),
    "nvfp4": lambda: draw_row(kvcache.KVCacheParams(**NVFP4)),
    "rope": lambda: draw_row(kvcache.KVCacheParams(**MLA), padded_depth=512, rope_columns=64),
    "wide-heads": lambda: draw_row(kvcache.KVCacheParams("f32", 32, 2048, page_size=16)),
    "small-heads": lambda: draw_row(kvcache.KVCacheParams("f16", 3, 5, page_size=1)),
    "tile": lambda: draw_tile((24, 128), "bf16", "128b", read=(8, 72)),
    "half-a-chunk": lambda: draw_tile((8, 48), "f16", "64b", read=None),
}


@pytest.fixture(scope="module", params=PICTURES)
def picture(request):
    return PICTURES[request.param]()


def parse(picture):
    return ElementTree.fromstring(picture.svg.encode())


def of_class(root, tag, name):
    return [element for element in root.iter(SVG + tag) if name in element.get("class", "").split()]


def texts(element):
    return [text.text for text in element.iter(SVG + "text")]


def number(element, name):
    return float(element.get(name))


def tips(root, name):
    return [group.find(SVG + "title").text for group in of_class(root, "g", name)]


# --- All pictures -------------------------------------------------------------------


def text_box(element):
    """A box that the text surely stays inside: widths of DejaVu, which are large."""
    style = element.get("class", "").split()
    size = 14 if "heading" in style else 10 if "small" in style else 12
    wide = sum(ord(letter) > 0x2E80 for letter in element.text)
    width = 0.605 * size * (len(element.text) + wide)
    left = number(element, "x") - {"start": 0, "middle": width / 2, "end": width}[element.get("text-anchor")]
    bottom = number(element, "y")
    return left, bottom - 0.75 * size, left + width, bottom + 0.2 * size


def test_texts_neither_overlap_nor_leave_the_picture(picture):
    root = parse(picture)
    width, height = number(root, "width"), number(root, "height")
    boxes = sorted((text_box(text) for text in root.iter(SVG + "text")), key=lambda box: box[1])
    for left, top, right, bottom in boxes:
        assert left >= 0 and right <= width and top >= 0 and bottom <= height
    for i, (left, top, right, bottom) in enumerate(boxes):
        for other in itertools.takewhile(lambda box: box[1] < bottom, boxes[i + 1 :]):
            assert other[2] <= left or other[0] >= right, (left, top, right, bottom, other)


def test_pictures_are_accessible_and_stand_alone(picture):
    root = parse(picture)
    assert root.get("role") == "img"
    assert [child.tag for child in root[:2]] == [SVG + "title", SVG + "desc"]
    assert root[0].text == picture.title and root[1].text
    background = root.find(SVG + "rect")
    assert (background.get("width"), background.get("height"), background.get("fill")) == ("100%", "100%", "#ffffff")
    assert picture.svg.count("http") == 1  # the name space
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        *("svg", "title", "desc", "style", "defs", "pattern", "g", "rect", "line", "circle", "text")
    }


def luminance(color):
    return linear(color) @ [0.2126, 0.7152, 0.0722]


def linear(color):
    """The red, green and blue light of an sRGB color."""
    parts = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def test_texts_have_contrast_to_what_is_behind_them(picture):
    behind = []
    for element in parse(picture).iter():
        if element.tag == SVG + "rect" and element.get("fill").startswith("#") and element.get("x", "0") != "0":
            x, y = number(element, "x"), number(element, "y")
            behind.append((x, y, x + number(element, "width"), y + number(element, "height"), element.get("fill")))
        if element.tag != SVG + "text" or element.get("text-anchor") != "middle":
            continue
        x, y = number(element, "x"), number(element, "y") - 3
        fills = [box[4] for box in behind if box[0] <= x <= box[2] and box[1] <= y <= box[3]]
        style = element.get("class", "").split()
        ink = "#52606d" if {"soft", "note"} & set(style) else "#1f2933"
        low, high = sorted([luminance(ink), luminance(fills[-1] if fills else "#ffffff")])
        minimum = 3 if "soft" in style else 4.5
        assert (high + 0.05) / (low + 0.05) >= minimum, (element.text, fills)


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_the_same_each_time(name):
    assert PICTURES[name]().svg == PICTURES[name]().svg


def test_a_picture_shows_itself_and_is_short_as_text(tmp_path):
    picture = draw_tile((8, 64), "bf16", "128b")
    assert picture._repr_svg_() == picture.svg
    assert str(picture) == "Tile of 8 x 64 bf16, swizzle of 128 bytes"
    assert "<" not in repr(picture)
    path = picture.save(tmp_path / "tile.svg")
    assert path.read_text(encoding="utf-8") == picture.svg


def test_a_picture_is_only_saved_as_svg(tmp_path):
    with pytest.raises(ValueError, match=r"expects 'path' to end in '\.svg', got '.*tile\.png'"):
        draw_tile((8, 64), "bf16", "128b").save(tmp_path / "tile.png")
    assert not list(tmp_path.iterdir())


# Machado, Oliveira, Fernandes: "A Physiologically-based Model for Simulation of Color
# Vision Deficiency" (2009), severity 1.
DEFICIENCIES = {
    "none": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def lab(color, deficiency):
    """CIE L*a*b* of a color as somebody sees it."""
    light = np.clip(np.array(DEFICIENCIES[deficiency]) @ linear(color), 0, 1)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(to_xyz @ light / [0.9505, 1, 1.089])  # precise enough above black
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_everyone_can_tell_the_kinds_of_pages_apart(deficiency):
    groups = of_class(parse(PICTURES["small"]()), "g", "page")
    fills = {group.get("class"): group.findall(SVG + "rect")[0].get("fill") for group in groups}
    full = {group.get("class"): rect.get("fill") for group in groups for rect in of_class(group, "rect", "cached-tokens")}
    colors = {**fills, **full}
    assert set(colors) == {f"page {kind}" for kind in ("used", "shared", "cached", "free", "null")}
    for one, other in itertools.combinations(colors.values(), 2):
        assert np.linalg.norm(lab(one, deficiency) - lab(other, deficiency)) > 12


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_everyone_can_tell_the_columns_of_a_tile_apart(deficiency):
    units = of_class(parse(draw_tile((1, 64), "bf16", "none", read=None)), "rect", "unit")
    seen = [lab(unit.get("fill"), deficiency) for unit in units]
    assert len(seen) == 8
    assert all(one[0] - other[0] > 3 for one, other in itertools.pairwise(seen))  # ever darker
    assert min(np.linalg.norm(one - other) for one, other in itertools.combinations(seen, 2)) > 5


# --- Pages --------------------------------------------------------------------------


def test_rows_have_the_pages_of_the_sequences_in_order():
    labels = [texts(group)[0] for group in of_class(parse(draw_pages(small_snapshot())), "g", "page")]
    assert labels[:6] == ["0", "3", "4", "0", "7", "h1"]


def test_the_pool_has_every_page_with_who_has_it():
    groups = of_class(parse(draw_pages(small_snapshot())), "g", "page")[6:]
    shown = [(group.get("class").removeprefix("page "), *texts(group)) for group in groups]
    expected = [("free", str(i)) for i in range(12)]
    expected[0] = ("shared", "0", "×2")
    expected[3], expected[4], expected[7] = ("used", "3", "A"), ("used", "4", "A"), ("used", "7", "B")
    expected[9] = ("cached", "9")
    dashed = [bool(of_class(group, "rect", "dashed")) for group in groups]
    assert dashed == 13 * [False] + 4 * [True]
    swapped = [("free", "h0"), ("used", "h1", "C"), ("cached", "h2"), ("free", "h3")]
    assert shown == [*expected, ("null", "12", "null"), *swapped]


def test_pages_are_filled_as_far_as_their_sequence_goes():
    state = small_snapshot()
    groups = iter(of_class(parse(draw_pages(state)), "g", "page"))
    for sequence in state.sequences:
        tokens = np.zeros(len(sequence.pages) * 16)
        tokens[: sequence.length] = 1
        tokens[sequence.length : sequence.length + sequence.pending] = 2
        for part, group in zip(tokens.reshape(-1, 16), groups):
            for name, value in ("cached-tokens", 1), ("pending-tokens", 2):
                width = sum(number(rect, "width") for rect in of_class(group, "rect", name))
                assert width == pytest.approx(40 * np.mean(part == value), abs=0.01)


def test_headings_count_the_pages():
    notes = texts(parse(draw_pages(small_snapshot())))
    assert "device: 12 pages" in notes and "swap space: 4 pages" in notes
    assert "3 used by one sequence, 1 shared, 1 cached and unused, 7 free" in notes
    assert "1 used by one sequence, 0 shared, 1 cached and unused, 2 free" in notes
    assert {"37 + 3 tokens", "16 + 9 tokens", "12 tokens, swapped out"} <= set(notes)


def test_tips_say_all_about_a_page():
    shown = tips(parse(draw_pages(small_snapshot())), "page")
    assert "page 0: 16 of 16 tokens, cached, 2 sequences: A (chat), B (code)" in shown
    assert "page h1: 12 of 16 tokens, 1 sequence: C (swapped)" in shown
    assert "page 9: 16 of 16 tokens, cached, unused" in shown
    assert "page 1: free" in shown


def test_dots_mark_the_pages_that_later_sequences_find():
    state = small_snapshot()
    dots = parse(draw_pages(state)).findall(f".//{SVG}circle")
    assert len(dots) == sum(page.is_cached for page in state.pages) + 1  # and the legend's


def test_some_of_the_sequences_can_be_drawn():
    picture = draw_pages(small_snapshot(), requests=["swapped", "chat"])
    root = parse(picture)
    assert picture.title == "Pages of 2 sequences"
    assert tips(root, "sequence") == ["C: swapped", "A: chat"]
    assert [texts(group)[0] for group in of_class(root, "g", "page")][:4] == ["h1", "0", "3", "4"]


def test_a_snapshot_without_sequences_is_an_empty_pool():
    root = parse(draw_pages(snapshot()))
    kinds = [group.get("class") for group in of_class(root, "g", "page")]
    assert kinds == ["page free"] * 12 + ["page null"]
    assert not of_class(root, "g", "sequence")


@pytest.mark.parametrize(("num_pages", "per_sequence", "width"), [(30, 4, 40), (300, 17, 28), (4000, 200, 11)])
def test_more_pages_are_smaller(num_pages, per_sequence, width):
    root = parse(draw_pages(large_snapshot(num_pages, 4, per_sequence)))
    groups = of_class(root, "g", "page")
    assert len(groups) == 4 * (3 + per_sequence) + num_pages + 1
    assert number(groups[-2].find(SVG + "rect"), "width") == width
    assert Counter(group.get("class") for group in groups)["page shared"] == 3 + 4 * 3


def make_manager(**sizes):
    params = kvcache.KVCacheParams("f32", 1, 1, page_size=1, total_num_layers=1)
    return kvcache.PagedKVCacheManager(params, max_batch_size=1, max_seq_len=1, **sizes)


def test_a_manager_shows_its_pages():
    manager = make_manager(num_pages=80)
    for request in range(70):
        manager.claim(request, [request])
    first = draw_pages(manager.snapshot(), requests=range(64))
    assert manager._repr_svg_() == first.svg


def test_a_manager_of_too_many_pages_shows_none():
    assert make_manager(num_pages=4096)._repr_svg_()
    assert make_manager(num_pages=4097)._repr_svg_() is None


def test_a_manager_looks_like_its_lookup_table():
    params = kvcache.KVCacheParams("bf16", 1, 16, page_size=4, total_num_layers=1, enable_prefix_caching=True)
    manager = kvcache.PagedKVCacheManager(params, max_batch_size=4, max_seq_len=64, num_pages=20)
    requests = ["a", "b", "c", "d"]
    for request in requests:
        manager.claim(request, [1, 2, 3, 4, 5, 6, 7, 8, ord(request)])
        manager.step([request])
    for request in requests:
        manager.grow(request, [9])
    groups = of_class(parse(draw_pages(manager.snapshot())), "g", "page")
    table = np.asarray(manager.inputs(requests).lut)[:, :3]
    assert [texts(group)[0] for group in groups[:12]] == [str(page) for page in table.flat]
    kinds = Counter(group.get("class") for group in groups[12:])
    assert kinds == {"page shared": 2, "page used": 4, "page free": 14, "page null": 1}


def test_names_of_requests_are_text_whatever_is_in_them():
    root = parse(PICTURES["strange-names"]())
    shown = tips(root, "sequence")
    assert shown[0] == "A: <b>&\"'"
    assert shown[1] == "B: " + 4 * "\N{REPLACEMENT CHARACTER}"
    assert shown[2] == "C: " + "長いＡＢ" * 20
    assert texts(of_class(root, "g", "sequence")[2])[1] == "長いＡＢ長いＡＢ長い…"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"page_size": 0}, "expects 'page_size' to be positive, got 0"),
        ({"num_pages": 4097}, "expects 'num_pages' to be from 0 to 4,096 for a picture, got 4,097"),
        ({"num_host_pages": -1}, "expects 'num_host_pages' to be from 0 to 4,096 for a picture, got -1"),
        ({"pages": [PageState(device(12), 1, False, 1)]}, "page 12 of the device is not among its 12 pages"),
        ({"pages": [PageState(host(0), 1, False, 1)]}, "page 0 of the host is not among its 0 pages"),
        ({"pages": 2 * [PageState(device(1), 1, False, 1)]}, "page 1 of the device is in the snapshot twice"),
        ({"pages": [PageState(device(1), 1, False, 17)]}, "expects page 1 of the device to have at most 16 tokens, got 17"),
        ({"pages": [PageState(device(1), 0, False, 1)]}, "expects page 1 of the device to be cached or to have references, got 0"),
        ({"sequences": [SequenceState("x", (device(1),), 1, 0, True)]}, "sequence 'x' has page 1 of the device, which is free"),
        ({"sequences": [SequenceState("x", (), 1, 2, True)]}, "sequence 'x' has 3 tokens, and room for 0"),
        ({"sequences": [SequenceState("x", (), -1, 1, True)]}, "expects sequence 'x' to have no negative number of tokens"),
        (
            {"sequences": [SequenceState(i, (), 0, 0, True) for i in range(65)]},
            "expects at most 64 sequences in a picture, got 65: choose some of them by 'requests'",
        ),
    ],
)
def test_snapshots_that_cannot_be_are_errors(change, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        draw_pages(snapshot(**change))


def test_unknown_requests_are_errors():
    with pytest.raises(ValueError, match="^the snapshot has no sequence 'nobody'$"):
        draw_pages(small_snapshot(), requests=["chat", "nobody"])


# --- Rows ---------------------------------------------------------------------------


def row_of(params, **rope):
    return parse(draw_row(kvcache.KVCacheParams(**params), **rope))


def table_of(root):
    """The numbers of the totals, by what they are of."""
    cells = texts(root)
    cells = cells[cells.index("bytes") :]
    names = ("a row:", "keys and", "a token in", "a page of", "the page on")
    starts = [i for i, cell in enumerate(cells) if cell.startswith(names)]
    rows = [cells[start:end] for start, end in zip(starts, [*starts[1:], len(cells)])]
    return {name: [int(size.replace(",", "")) for size in sizes] for name, *sizes in rows}


@pytest.mark.parametrize("params", [LLAMA, QUANTIZED, NVFP4, MLA], ids=["bf16", "fp8", "nvfp4", "mla"])
def test_totals_are_those_of_the_tensors(params):
    shown, cache = table_of(row_of(params)), kvcache.KVCacheParams(**params)
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


def test_each_scale_is_below_what_it_covers():
    root = row_of(QUANTIZED)
    heads, size, granularity = 4, 128, 32
    strips = of_class(root, "g", "scale")
    assert len(strips) == heads * size // granularity
    bars = of_class(root, "rect", "elements")
    for head, element in itertools.product(range(heads), range(size)):
        index = head * (size // granularity) + element // granularity
        bar, strip = bars[head], strips[index].find(SVG + "rect")
        center = number(bar, "x") + (element + 0.5) / size * number(bar, "width")
        assert number(strip, "x") < center < number(strip, "x") + number(strip, "width") + 1
        assert 0 < number(strip, "y") - number(bar, "y") < 40
        assert tips(root, "scale")[index] == f"scale {index}: bytes {4 * index}–{4 * index + 3} of the row of scales"


@pytest.mark.parametrize(("heads", "size", "dtype", "element"), [(8, 128, "bf16", 2), (3, 20, "bf16", 2), (5, 3, "f32", 4)])
def test_marks_are_every_16_bytes_of_the_row(heads, size, dtype, element):
    root = row_of({"dtype": dtype, "n_kv_heads": heads, "head_dim": size, "page_size": 1})
    bars, marks = of_class(root, "rect", "elements"), of_class(root, "rect", "unit")
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
    names = [text for text in texts(row_of(params)) if text.startswith(("head ", "…"))]
    assert names == ["head 0", "head 1", "head 2", "head 3", "…", "head 127"]
    assert f"byte {127 * 64 * 2:,}" in texts(row_of(params))


def test_a_byte_has_two_elements_of_fp4():
    root = row_of(NVFP4)
    elements = of_class(root, "rect", "element")
    assert len(elements) == 32
    assert len({element.get("width") for element in elements}) == 1
    assert "elements of f4E2M1FN, the lower four bits first; below: bytes of the row" in texts(root)


def test_a_rope_comes_behind_the_content():
    root = row_of(MLA, padded_depth=512, rope_columns=64)
    (content,), (rope,) = of_class(root, "rect", "content"), of_class(root, "rect", "rope")
    assert number(content, "width") / number(rope, "width") == pytest.approx(512 / 128, rel=1e-3)
    assert number(rope, "x") == pytest.approx(number(content, "x") + number(content, "width"), abs=0.01)
    shown = texts(root)
    assert "content, 512 f8E4M3FN: 512 bytes" in shown and "rope, 64 bf16" in shown
    assert {str(byte) for byte in range(512, 528)} <= set(shown)
    assert len(of_class(root, "rect", "element")) == 16 + 8


def test_a_continuous_cache_has_no_pages():
    with pytest.warns(DeprecationWarning):
        params = kvcache.KVCacheParams("bf16", 8, 128, cache_strategy=kvcache.KVCacheStrategy.CONTINUOUS, total_num_layers=2)
    assert table_of(parse(draw_row(params))) == {"a row: keys of a token in a layer": [2048], "keys and values": [4096]}


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
def test_rows_that_cannot_be_are_errors(params, rope, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        draw_row(kvcache.KVCacheParams(**params), **rope)


def test_sizes_of_a_rope_are_integers():
    with pytest.raises(TypeError, match=r"^expects 'rope_columns' to be an integer, got 64\.0$"):
        draw_row(kvcache.KVCacheParams(**MLA), padded_depth=512, rope_columns=64.0)


# --- Tiles --------------------------------------------------------------------------


def units_of(root):
    """The byte at which the picture shows each unit, by its row and column."""
    cells = root.findall(f"{SVG}rect")
    corners = [cell for cell in cells if cell.get("class") in ("unit", "empty")]
    left, top = number(corners[0], "x"), number(corners[0], "y")
    placed = {}
    for text in root.iter(SVG + "text"):
        if match := re.fullmatch(r"(\d+), (\d+)", text.text):
            unit, line = (number(text, "x") - left) // 99, (number(text, "y") - top) // 24
            placed[tuple(map(int, match.groups()))] = int(line * 128 + unit * 16)
    return placed


def stored_at(rows, columns, size, swizzle):
    """Where the rule of the hardware has each unit: address bits 4 up, bits 7 up."""
    mask = SWIZZLE_MASKS[swizzle]
    span = columns * size if swizzle == "none" else 16 * (mask + 1)
    result = {}
    for row, byte in itertools.product(range(rows), range(0, columns * size, 16)):
        address = byte // span * rows * span + row * span + byte % span
        result[row, byte // size] = address ^ (((address >> 7) & mask) << 4)
    return result


@pytest.mark.parametrize("swizzle", SWIZZLE_MASKS)
@pytest.mark.parametrize(
    ("shape", "dtype", "size"), [((16, 64), "bf16", 2), ((8, 48), "f32", 4), ((32, 128), "f8E4M3FN", 1), ((8, 4), "f64", 8)]
)
def test_units_are_where_the_hardware_has_them(shape, dtype, size, swizzle):
    root = parse(draw_tile(shape, dtype, swizzle))
    assert units_of(root) == stored_at(*shape, size, swizzle)
    assert len(of_class(root, "rect", "unit")) == shape[0] * shape[1] * size // 16


def test_the_swizzle_of_128_bytes_is_that_of_the_ptx_isa():
    """PTX ISA, "Swizzling modes": the 16-byte units of the first eight rows."""
    pattern = ["01234567", "10325476", "23016745", "32107654", "45670123", "54761032", "67452301", "76543210"]
    placed = {offset: element for element, offset in units_of(parse(draw_tile((8, 64), "bf16", "128b"))).items()}
    for row, units in enumerate(pattern):
        assert [placed[row * 128 + i * 16] for i in range(8)] == [(row, 8 * int(unit)) for unit in units]


@pytest.mark.parametrize(
    ("shape", "swizzle", "read", "passes"),
    [
        ((16, 64), "128b", (0, 0), 1),
        ((16, 64), "128b", (5, 24), 1),
        ((16, 64), "none", (8, 16), 8),
        ((16, 32), "none", (0, 0), 4),
        ((16, 16), "none", (0, 8), 2),
        ((16, 8), "none", (0, 0), 1),
        ((16, 32), "64b", (0, 8), 1),
        ((16, 16), "32b", (8, 0), 1),
        ((16, 72), "none", (3, 8), 1),  # rows padded by 16 bytes
    ],
)
def test_conflicts_are_those_of_the_banks(shape, swizzle, read, passes):
    root = parse(draw_tile(shape, "bf16", swizzle, read=read))
    (row, column), stored = read, stored_at(*shape, 2, swizzle)
    offsets = [stored[row + i, column] for i in range(8)]
    banks = np.zeros(32, int)
    for offset in offsets:
        banks[np.arange(offset, offset + 16, 4) // 4 % 32] += 1
    assert banks.max() == passes
    conflicts = {1: "no bank conflict", 2: "1 bank conflict"}.get(passes, f"{passes - 1} bank conflicts")
    taken = "one pass" if passes == 1 else f"{passes} passes"
    note = f"framed: an ldmatrix of rows {row} to {row + 7}, 16 bytes from column {column} on, takes {taken} through the banks: {conflicts}"
    assert note in texts(root)
    reads = [text.text for text in of_class(root, "text", "bank-reads")]
    assert reads == [f"read {count}×" if count else "–" for count in banks[::4]]


def test_frames_are_around_the_units_that_are_read():
    root = parse(draw_tile((16, 64), "bf16", "128b", read=(4, 16)))
    units = {(unit.get("x"), unit.get("y")) for unit in of_class(root, "rect", "unit")}
    frames = [(frame.get("x"), frame.get("y")) for frame in of_class(root, "rect", "read")]
    assert len(frames) == 8 and set(frames) <= units
    left, top = min(float(x) for x, _ in units), min(float(y) for _, y in units)
    bytes_read = sorted(int((float(y) - top) // 24 * 128 + (float(x) - left) // 99 * 16) for x, y in frames)
    stored = stored_at(16, 64, 2, "128b")
    assert bytes_read == sorted(stored[row, 16] for row in range(4, 12))


def test_a_tile_without_a_read_has_no_frames():
    root = parse(draw_tile((4, 64), "bf16", "128b", read=None))
    assert not of_class(root, "rect", "read") and not of_class(root, "text", "bank-reads")
    assert not any("framed" in text for text in texts(root))


@pytest.mark.parametrize(
    ("shape", "dtype", "swizzle", "read", "message"),
    [
        ((8, 64), "bf16", "256b", None, "unknown swizzle '256b'; known are 'none', '32b', '64b', '128b'"),
        ((8, 64), "f4E2M1FN", "128b", None, "float4_e2m1fn has less than a byte: view it as int8"),
        ((8,), "bf16", "128b", None, "expects 'shape' to be rows and columns, got (8,)"),
        ((0, 64), "bf16", "128b", None, "expects 'rows' to be positive, got 0"),
        ((8, 60), "bf16", "128b", None, "expects rows of a multiple of 16 bytes, got 60 columns of bf16"),
        ((12, 128), "bf16", "128b", None, "expects a multiple of 8 rows for several chunks of 64 columns, got 12"),
        ((129, 64), "bf16", "128b", None, "expects a tile of at most 16,384 bytes in a picture, got 16,512"),
        ((8, 64), "bf16", "128b", (0, 4), "expects the column of 'read' to be a multiple of 8 below 64, got 4"),
        ((8, 64), "bf16", "128b", (0, 64), "expects the column of 'read' to be a multiple of 8 below 64, got 64"),
        ((12, 64), "bf16", "128b", (5, 0), "expects the row of 'read' to have 8 rows of the tile's 12 from it on, got 5"),
    ],
)
def test_tiles_that_cannot_be_are_errors(shape, dtype, swizzle, read, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        draw_tile(shape, dtype, swizzle, read=read)


def test_a_read_is_of_integers():
    with pytest.raises(TypeError, match=r"^expects 'row' to be an integer, got 0\.5$"):
        draw_tile((8, 64), "bf16", "128b", read=(0.5, 0))


# --- The documentation --------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn():
    spec = importlib.util.spec_from_file_location("draw_images", ROOT / "scripts" / "draw_images.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script.make_files()


def test_the_notebook_and_the_images_are_what_the_code_draws(drawn):
    assert len(drawn) == 4
    for path, text in drawn.items():
        assert path.read_text() == text, f"run scripts/draw_images.py to draw {path.name} again"


def test_the_notebook_is_one():
    notebook = json.loads((ROOT / "examples" / "pictures.ipynb").read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in ids)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    shown = [output["data"] for cell in code for output in cell["outputs"]]
    assert len(shown) == len(code) - 1  # the first one makes the manager
    assert all(ElementTree.fromstring("".join(data["image/svg+xml"])).tag == SVG + "svg" for data in shown)


@pytest.mark.parametrize("page", ["README.md", "docs/quantization.md", "docs/tile-copies.md"])
def test_images_of_the_documentation_are_there(page):
    links = re.findall(r"!\[[^\]]+\]\(([^)]+\.svg)\)", (ROOT / page).read_text())
    assert links
    for link in links:
        assert ElementTree.parse((ROOT / page).parent / link).getroot().tag == SVG + "svg"
