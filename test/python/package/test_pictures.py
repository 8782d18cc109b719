"""Tests that pictures of all kinds, and of the documentation, are readable."""

import itertools
import json
import re
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from picture_cases import PICTURES, SVG, find_by_class, number, parse
from places import ROOT

from kvcache.pictures import draw_tile


@pytest.fixture(scope="module", params=PICTURES)
def picture(request):
    return PICTURES[request.param]()


# --- All pictures -------------------------------------------------------------------


def text_box(element):
    """A box that contains the text: widths of DejaVu, which are large."""
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


def test_texts_have_contrast_to_their_background(picture):
    covered = []
    for element in parse(picture).iter():
        if element.tag == SVG + "rect" and element.get("fill").startswith("#") and element.get("x", "0") != "0":
            x, y = number(element, "x"), number(element, "y")
            covered.append((x, y, x + number(element, "width"), y + number(element, "height"), element.get("fill")))
        if element.tag != SVG + "text" or element.get("text-anchor") != "middle":
            continue
        x, y = number(element, "x"), number(element, "y") - 3
        fills = [box[4] for box in covered if box[0] <= x <= box[2] and box[1] <= y <= box[3]]
        style = element.get("class", "").split()
        ink = "#52606d" if {"soft", "note"} & set(style) else "#1f2933"
        low, high = sorted([luminance(ink), luminance(fills[-1] if fills else "#ffffff")])
        minimum = 3 if "soft" in style else 4.5
        assert (high + 0.05) / (low + 0.05) >= minimum, (element.text, fills)


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_the_same_each_time(name):
    assert PICTURES[name]().svg == PICTURES[name]().svg


def test_picture_has_svg_and_a_short_repr(tmp_path):
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
    """The perceived CIE L*a*b* of a color."""
    light = np.clip(np.array(DEFICIENCIES[deficiency]) @ linear(color), 0, 1)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(to_xyz @ light / [0.9505, 1, 1.089])  # precise enough above black
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_kinds_of_pages_are_distinguishable(deficiency):
    groups = find_by_class(parse(PICTURES["small"]()), "g", "page")
    fills = {group.get("class"): group.findall(SVG + "rect")[0].get("fill") for group in groups}
    full = {group.get("class"): rect.get("fill") for group in groups for rect in find_by_class(group, "rect", "cached-tokens")}
    colors = {**fills, **full}
    assert set(colors) == {f"page {kind}" for kind in ("used", "shared", "cached", "free", "null")}
    for one, other in itertools.combinations(colors.values(), 2):
        assert np.linalg.norm(lab(one, deficiency) - lab(other, deficiency)) > 12


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_columns_of_a_tile_are_distinguishable(deficiency):
    units = find_by_class(parse(draw_tile((1, 64), "bf16", "none", read=None)), "rect", "unit")
    seen = [lab(unit.get("fill"), deficiency) for unit in units]
    assert len(seen) == 8
    assert all(one[0] - other[0] > 3 for one, other in itertools.pairwise(seen))  # ever darker
    assert min(np.linalg.norm(one - other) for one, other in itertools.combinations(seen, 2)) > 5


# --- The documentation --------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn():
    sys.path.append(str(ROOT / "scripts"))
    import draw_images

    return draw_images.make_files()


def test_notebook_and_images_equal_drawings(drawn):
    assert len(drawn) == 14
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


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/attention-over-my-cache.md", "docs/how-to/copy-tiles.md", "docs/tutorial/first-kernel.md", "docs/explanation/tile-copies.md"])
def test_images_of_the_documentation_exist(page):
    links = re.findall(r"!\[[^\]]+\]\(([^)]+\.svg)\)", (ROOT / page).read_text())
    assert links
    for link in links:
        assert ElementTree.parse((ROOT / page).parent / link).getroot().tag == SVG + "svg"
