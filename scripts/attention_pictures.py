"""Draws the tiles of attention, and the splits of a batch.

The numbers are those of an example: 32 query heads over 8, and splits of 256 tokens.
"""

from html import escape

WIDTH = 920
STYLE = (
    ".h{font-weight:600;fill:#1f2933}.s{fill:#52606d;font-size:12px}.b{fill:#d9e8fb;stroke:#7b8794}"
    ".k{fill:#fde8c8;stroke:#7b8794}.v{fill:#d8f0d8;stroke:#7b8794}.o{fill:#e8ddf5;stroke:#7b8794}"
    ".a{stroke:#7b8794;stroke-width:1.4;fill:none}.t{fill:#7b8794}"
)
# One color for the work items of a thread block.
COLORS = "#d9e8fb", "#fde8c8", "#d8f0d8"


def begin(height, title):
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        f' width="{WIDTH}" height="{height}" font-family="system-ui, sans-serif" font-size="13">',
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f"<style>{STYLE}</style>",
    ]


def write(x, y, text, kind="s", anchor="middle"):
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>'


def box(x, y, width, height, kind="", fill=""):
    color = f'style="fill:{fill};stroke:#7b8794"' if fill else f'class="{kind}"'
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3" {color}/>'


def arrow(x, y, to_x, to_y):
    """Draws a line to the right or down, with a tip."""
    if y == to_y:
        tip, end = f"M{to_x} {to_y}l-9 -5v10z", (to_x - 8, to_y)
    else:
        tip, end = f"M{to_x} {to_y}l-5 -9h10z", (to_x, to_y - 8)
    return f'<path d="M{x} {y}L{end[0]} {end[1]}" class="a"/><path d="{tip}" class="t"/>'


def draw_tiles():
    """Draws the query rows of a thread block, the tiles that it reads, and the loop over them."""
    parts = begin(384, "The loop over tiles of attention")
    parts.append(write(120, 26, "query rows of a thread block", "h"))
    for token in range(4):
        for head in range(4):
            y = 44 + (token * 4 + head) * 14
            parts.append(box(60, y, 120, 14, fill=COLORS[token % 2]))
        parts.append(write(52, 44 + token * 56 + 32, f"token {token}", anchor="end"))
    parts += [
        write(120, 62 + 16 * 14, "4 heads of each token read"),
        write(120, 78 + 16 * 14, "one head of the cache"),
        write(480, 26, "tiles in shared memory", "h"),
    ]
    for number in range(2):
        parts += [box(360 + number * 150, 44, 130, 44, "k"), write(425 + number * 150, 71, f"keys, tile {number}")]
        parts += [box(360 + number * 150, 214, 130, 44, "v"), write(425 + number * 150, 241, f"values, tile {number}")]
    parts += [
        write(790, 26, "pages of the cache", "h"),
        *(
            box(742 + column * 34, 44 + row * 54, 28, 44, "k" if row < 3 else "v")
            for row in (0, 1, 3, 4)
            for column in range(3)
        ),
        '<path d="M734 66H652" class="a"/><path d="M644 66l9 -5v10z" class="t"/>',
        '<path d="M734 236H652" class="a"/><path d="M644 236l9 -5v10z" class="t"/>',
        write(812, 168, "copies, ahead of their use,"),
        write(812, 184, "through the lookup table"),
        box(300, 116, 400, 34, "b"),
        write(500, 138, "S = scale * Q K^T"),
        box(300, 164, 400, 34, "b"),
        write(500, 186, "online softmax: rowMax, rowSum, P"),
        box(300, 286, 400, 34, "o"),
        write(500, 308, "acc = acc * exp(old rowMax - rowMax) + P V"),
        arrow(190, 133, 296, 133),
        arrow(425, 90, 425, 114),
        arrow(500, 150, 500, 162),
        arrow(320, 198, 320, 284),
        arrow(425, 260, 425, 284),
        write(500, 350, "after the last tile: O = acc / rowSum, and lse = rowMax + log(rowSum)"),
        "</svg>",
        "",
    ]
    return "\n".join(parts)


SEQUENCES = (("a", 1100), ("b", 250), ("c", 700))
SPLIT = 256


def list_splits():
    """Lists the splits in the order of the scheduler: their numbers, sequences and tokens."""
    return [
        (number, name, min(SPLIT, tokens - number * SPLIT))
        for name, tokens in SEQUENCES
        for number in range(-(-tokens // SPLIT))
    ]


def assign():
    """Assigns each split, in order, to the first free thread block, and gives its start."""
    ends, taken = [0.0] * 3, []
    for _, _, tokens in list_splits():
        block = ends.index(min(ends))
        taken.append((block, ends[block]))
        ends[block] += tokens
    return taken


def draw_splits():
    """Draws the splits of three sequences, the thread blocks that take them, and the merge."""
    parts = begin(396, "Splits of a batch, and their merge")
    order = {(name, number): place for place, (number, name, _) in enumerate(list_splits())}
    taken = assign()
    parts.append(write(40, 26, f"one query token for each sequence; splits of {SPLIT} tokens", "h", "start"))
    for row, (name, tokens) in enumerate(SEQUENCES):
        y = 44 + row * 42
        parts.append(write(40, y + 20, f"sequence {name}, {tokens:,} tokens", anchor="start"))
        for number in range(-(-tokens // SPLIT)):
            width = min(SPLIT, tokens - number * SPLIT) * 0.5
            place = order[name, number]
            parts += [
                box(210 + number * SPLIT * 0.5, y, width - 4, 30, fill=COLORS[taken[place][0]]),
                write(208 + number * SPLIT * 0.5 + width / 2, y + 20, str(place)),
            ]
    parts.append(write(40, 196, "a persistent kernel of three thread blocks takes them in the order of their numbers", "h", "start"))
    for place, (_, _, tokens) in enumerate(list_splits()):
        block, start = taken[place]
        x, y, width = 210 + start * 0.5, 210 + block * 36, tokens * 0.5
        parts += [box(x, y, width - 4, 26, fill=COLORS[block]), write(x + width / 2 - 2, y + 18, str(place))]
    parts += [write(40, 228 + block * 36, f"thread block {block}", anchor="start") for block in range(3)]
    parts += [
        arrow(330, 318, 330, 344),
        write(345, 336, "each split leaves acc and lse in the workspace", anchor="start"),
        box(210, 348, 520, 30, "o"),
        write(470, 368, "second launch: merges the splits of each query head by their lse"),
        "</svg>",
        "",
    ]
    return "\n".join(parts)


if __name__ == "__main__":
    print(draw_tiles())
