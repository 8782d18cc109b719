"""Draws the folders of the compiler and their uses of each other.

`structure.py` prints, for each folder of lib/, the folders whose headers it includes.
"""

import re
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# The description of each folder in the picture.
CONTENTS = {
    "TMA": "swizzles, descriptors",
    "IR": "types, ops",
    "Support": "shared builders",
    "Target": "chips, PTX, ptxas",
    "GPU": "kernels, launches",
    "Transforms": "kvcache to kvcache",
    "Conversion": "kvcache to LLVM, NVVM",
    "LLVMIR": "LLVM to LLVM",
    "Runtime": "what host code calls",
    "Pipelines": "order of the passes",
    "Compile": "source to objects",
    "CAPI": "for other languages",
}
BOX = (168, 46)
GAP = (22, 40)
STYLE = (
    ".h{font-weight:600;fill:#1f2933}.s{fill:#52606d;font-size:12px}"
    ".b{fill:#d9e8fb;stroke:#cbd2d9}.a{fill:none;stroke:#7b8794;stroke-width:1.2}"
)


def levels():
    """The folders of lib/ in the order in which they may use each other."""
    text = (ROOT / "lib" / "CMakeLists.txt").read_text()
    return re.findall(r"^add_subdirectory\((\w+)\)$", text, re.M)


def list_files(level):
    """The sources, headers and tables of a folder."""
    folders = [ROOT / "lib" / level, ROOT / "include" / "kvcache" / level]
    return [
        path
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.suffix in (".h", ".cpp", ".td")
    ]


def list_includes(path):
    """The folders whose headers a file includes."""
    return set(re.findall(r'include "kvcache/(\w+)/', path.read_text()))


def list_uses():
    """The other folders that each folder uses."""
    names = levels()
    return {
        name: set().union(*map(list_includes, list_files(name))) & set(names) - {name} for name in names
    }


def direct(edges):
    """The uses that are not implied by others."""
    reached = {}
    for name, used in edges.items():  # in topological order
        reached[name] = used.union(*(reached[other] for other in used))
    return {
        name: {to for to in used if not any(to in reached[other] for other in used - {to})}
        for name, used in edges.items()
    }


def rows(edges):
    """The folders by their height: one more than the highest that they use."""
    height = {}
    for name, used in edges.items():
        height[name] = max((height[other] + 1 for other in used), default=0)
    top = max(height.values())
    return [[name for name in edges if height[name] == top - row] for row in range(top + 1)]


def draw():
    """Draws the picture as SVG: a folder is above those that it uses."""
    edges = list_uses()
    table = rows(edges)
    width = max(map(len, table)) * (BOX[0] + GAP[0]) + GAP[0]
    places = {}
    for y, row in enumerate(table):
        left = (width - len(row) * (BOX[0] + GAP[0]) + GAP[0]) / 2
        for x, name in enumerate(row):
            places[name] = (left + x * (BOX[0] + GAP[0]), GAP[0] + y * (BOX[1] + GAP[1]))
    height = GAP[0] * 2 + len(table) * (BOX[1] + GAP[1]) - GAP[1]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}" font-family="system-ui, sans-serif" font-size="13">',
        "<title>The folders of lib/, each above those that it uses</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f"<style>{STYLE}</style>",
    ]
    for name, used in direct(edges).items():
        for other in sorted(used):
            parts.append(arrow(places[name], places[other]))
    for name, (x, y) in places.items():
        middle = x + BOX[0] / 2
        parts += [
            f'<rect x="{x:g}" y="{y:g}" width="{BOX[0]}" height="{BOX[1]}" rx="4" class="b"/>',
            f'<text x="{middle:g}" y="{y + 20:g}" class="h" text-anchor="middle">{name}</text>',
            f'<text x="{middle:g}" y="{y + 37:g}" class="s" text-anchor="middle">'
            f"{escape(CONTENTS[name])}</text>",
        ]
    return "\n".join([*parts, "</svg>", ""])


def arrow(start, end):
    """A line from the bottom of a box to the top of another."""
    x1, y1 = start[0] + BOX[0] / 2, start[1] + BOX[1]
    x2, y2 = end[0] + BOX[0] / 2, end[1]
    bend = GAP[1] * 0.7
    return (
        f'<path d="M{x1:g} {y1:g}C{x1:g} {y1 + bend:g} {x2:g} {y2 - bend:g} {x2:g} {y2:g}"'
        ' class="a"/>'
    )


if __name__ == "__main__":
    for folder, used in list_uses().items():
        print(f"{folder:12} {', '.join(sorted(used)) or '-'}")
