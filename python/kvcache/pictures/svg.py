# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalable vector graphics for the pictures of this package.

Coordinates and sizes are in pixels, from the upper left corner on.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from ..checks import check_path

WIDTH = 920
MARGIN = 30
RIGHT = WIDTH - MARGIN

INK = "#1f2933"
SOFT_INK = "#52606d"
EDGE = "#cbd2d9"
BLANK = "#f5f7fa"
PAPER = "#ffffff"

# Names have the prefix of the picture's class, because several pictures in a page share
# all style sheets.
_STYLE = f"""
.kvcache-picture text{{font-family:ui-monospace,monospace;font-size:12px;fill:{INK}}}
.kvcache-picture .heading{{font:600 14px system-ui,sans-serif}}
.kvcache-picture .note{{font:12px system-ui,sans-serif;fill:{SOFT_INK}}}
.kvcache-picture .small{{font-size:10px}}
.kvcache-picture .soft{{fill:{SOFT_INK}}}
.kvcache-picture .outline{{stroke:{INK};stroke-opacity:0.35}}
.kvcache-picture .dashed{{stroke-dasharray:3 2}}
"""
_HATCH = "kvcache-hatch"
HATCH = f"url(#{_HATCH})"
"""A fill of transparent dark stripes."""


@dataclass(frozen=True)
class Picture:
    """A drawing, which Jupyter shows as the value of a cell.

    Attributes:
        title: The title, in a line.
        svg: The text of an SVG document with a white background.
    """

    title: str
    svg: str = field(repr=False)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the picture to ``path``, which ends in ``.svg``, and returns that.

        Raises ``ValueError`` for another ending.
        """
        check_path(path=path)
        path = Path(os.fsdecode(path))
        if path.suffix != ".svg":
            raise ValueError(f"expects 'path' to end in '.svg', got {str(path)!r}")
        path.write_text(self.svg, encoding="utf-8")
        return path

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.title


class Canvas:
    """The canvas of a picture, which is drawn from top to bottom.

    Attributes:
        y: The start of the next part of the picture, which drawing code advances.
    """

    def __init__(self, title: str, description: str) -> None:
        self.y: float = MARGIN
        self._title = title
        self._root = ElementTree.Element(
            "svg",
            {"xmlns": "http://www.w3.org/2000/svg", "class": "kvcache-picture"},
            role="img",
        )
        self._parent = self._root
        self._add("title").text = printable(title)
        self._add("desc").text = printable(description)
        self._add("style").text = _STYLE
        self._define_hatch()
        self.rect(0, 0, "100%", "100%", fill=PAPER)

    def rect(
        self,
        x: float,
        y: float,
        width: float | str,
        height: float | str,
        *,
        fill: str,
        **attributes: object,
    ) -> None:
        """Draws a rectangle; ``stroke_width`` is the attribute ``stroke-width``."""
        sizes = {"x": x, "y": y, "width": width, "height": height}
        self._add("rect", **sizes, fill=fill, **attributes)

    def line(self, x1: float, y1: float, x2: float, y2: float, color: str) -> None:
        self._add("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=color)

    def circle(self, x: float, y: float, radius: float, *, fill: str) -> None:
        self._add("circle", cx=x, cy=y, r=radius, fill=fill)

    def text(
        self, x: float, y: float, content: str, style: str = "", anchor: str = "start"
    ) -> None:
        """Writes a line of text.

        Args:
            x: The place of its anchor.
            y: The place of its base.
            content: The text.
            style: Words of ``heading``, ``note``, ``small`` and ``soft``.
            anchor: The point of the text at ``x``: ``start``, ``middle`` or ``end``.
        """
        attributes = {"class_": style} if style else {}
        element = self._add("text", x=x, y=y, text_anchor=anchor, **attributes)
        element.text = printable(content)

    def heading(self, content: str, note: str) -> None:
        """Writes a heading with a note below it, and moves ``y`` after them."""
        self.text(MARGIN, self.y, content, "heading")
        self.text(MARGIN, self.y + 18, note, "note")
        self.y += 36

    @contextmanager
    def group(self, kind: str, tip: str) -> Iterator[None]:
        """Groups the elements drawn within, with a tooltip."""
        outer = self._parent
        self._parent = self._add("g", class_=kind)
        self._add("title").text = printable(tip)
        try:
            yield
        finally:
            self._parent = outer

    def finish(self) -> Picture:
        """Returns the picture, which ends at ``y``."""
        sizes = {"viewBox": f"0 0 {WIDTH} {_number(self.y)}"}
        sizes |= {"width": str(WIDTH), "height": _number(self.y)}
        self._root.attrib |= sizes
        self._root.text = "\n"
        for drawn in self._root:  # a line for each, or for each group
            drawn.tail = "\n"
        text = ElementTree.tostring(self._root, encoding="unicode")
        return Picture(printable(self._title), text + "\n")

    def _define_hatch(self) -> None:
        pattern = ElementTree.SubElement(
            self._add("defs"),
            "pattern",
            id=_HATCH,
            width="5",
            height="5",
            patternUnits="userSpaceOnUse",
            patternTransform="rotate(45)",
        )
        stripe = {"width": "1.6", "height": "5", "fill": SOFT_INK}
        ElementTree.SubElement(pattern, "rect", stripe, opacity="0.45")

    def _add(self, tag: str, **attributes: object) -> ElementTree.Element:
        """Adds an element; its attributes are spelled as Python names."""
        named = {
            name.rstrip("_").replace("_", "-"): _number(value)
            for name, value in attributes.items()
        }
        return ElementTree.SubElement(self._parent, tag, named)


def _number(value: object) -> str:
    """Formats numbers with at most two decimals, and other values as they are."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.2f}".rstrip("0").rstrip(".")


def printable(text: str) -> str:
    """Replaces characters of ``text`` that XML or a line can't contain by marks."""
    mark = "\N{REPLACEMENT CHARACTER}"
    return "".join(letter if letter.isprintable() else mark for letter in text)


def shorten(text: str, columns: int) -> str:
    """Shortens ``text`` to ``columns`` columns of a terminal, with "…" at the end.

    East Asian letters and pictographs take two columns.
    """
    widths = [2 if unicodedata.east_asian_width(x) in "WF" else 1 for x in text]
    if sum(widths) <= columns:
        return text
    end, used = 0, 1
    while used + widths[end] <= columns:
        used += widths[end]
        end += 1
    return text[:end] + "…"


def count(number: int, thing: str) -> str:
    """Writes a number with its noun: ``"1 page"``, ``"2 pages"``."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
