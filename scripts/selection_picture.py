"""Draws the steps of sparse attention: index keys, scores, chosen tokens, and rows.

The tokens are those of one sequence in pages, and a new token chooses six of them.
"""

from attention_pictures import COLORS, begin, box, write

PAGES, PAGE_SIZE, CHOSEN = (3, 5, 1), 8, 6
SCORES = 4, 9, 2, 0, 5, 14, 3, 6, 1, 0, 12, 7, 5, 16, 2, 8, 0, 3, 11, 4, 6, 13
CELL, LEFT, GAP = 26, 190, 18
TOPS = {"index": 60, "scores": 104, "tokens": 218, "rows": 300}
HEIGHT, UNIT = 20, 4.5
PLAIN, PICKED, EMPTY = *COLORS[:2], "#ffffff"
LABELS = (
    ("index", 15, "index keys"),
    ("scores", 60, "index_scores"),
    ("tokens", 15, "rows of the cache"),
    ("rows", 17, "top_rows: rows"),
)


def draw():
    """Draws the picture as SVG."""
    parts = begin(356, "Index keys, scores and rows of the chosen tokens")
    parts += [write(LEFT - 16, TOPS[name] + y, text, "h", "end") for name, y, text in LABELS]
    for number, page in enumerate(PAGES):
        text = f"page {page}: tokens {number * PAGE_SIZE} to {number * PAGE_SIZE + PAGE_SIZE - 1}"
        parts.append(write(find_cell(number * PAGE_SIZE), 46, text, "s", "start"))
    return "\n".join([*parts, *draw_cells(), *draw_scores(), *draw_rows(), "</svg>", ""])


def choose():
    """The tokens with the best scores, in ascending order."""
    return sorted(sorted(range(len(SCORES)), key=lambda token: -SCORES[token])[:CHOSEN])


def draw_cells():
    """Draws a cell for each token of the cache of index keys, and of the cache that is attended to."""
    parts, chosen = [], choose()
    for token in range(len(PAGES) * PAGE_SIZE):
        color = PLAIN if token < len(SCORES) else EMPTY
        parts.append(box(find_cell(token), TOPS["index"], CELL, HEIGHT, fill=color))
        color = PICKED if token in chosen else color
        parts.append(box(find_cell(token), TOPS["tokens"], CELL, HEIGHT, fill=color))
    return parts


def draw_scores():
    """Draws a bar for each score, and the threshold."""
    parts, chosen = [], choose()
    base = TOPS["scores"] + 90
    for token, score in enumerate(SCORES):
        height = score * UNIT + 2
        color = PICKED if token in chosen else PLAIN
        parts.append(box(find_cell(token) + 5, base - height, CELL - 10, height, fill=color))
        if token in chosen:
            x = find_cell(token) + CELL / 2
            parts.append(f'<path d="M{x:g} {base + 4}V{TOPS["tokens"] - 3}" class="a"/>')
    level = base - (min(SCORES[token] for token in chosen) * UNIT) - 1
    end = find_cell(len(PAGES) * PAGE_SIZE - 1) + CELL
    parts.append(f'<path d="M{LEFT} {level:g}H{end}" class="a" stroke-dasharray="5 4"/>')
    return parts


def draw_rows():
    """Draws the slots of the chosen tokens, and how they come from these."""
    parts, width, top = [], 96, TOPS["rows"]
    for number, token in enumerate(choose()):
        page, offset = PAGES[token // PAGE_SIZE], token % PAGE_SIZE
        left = LEFT + number * width
        x, start, below = find_cell(token) + CELL / 2, TOPS["tokens"] + HEIGHT, left + width / 2
        parts += [
            box(left, top, width, 24, fill=PICKED),
            write(below, top + 16, f"{page} * {PAGE_SIZE} + {offset} = {page * PAGE_SIZE + offset}"),
            f'<path d="M{x:g} {start + 2}L{below:g} {top - 3}" class="a"/>',
        ]
    return [*parts, write(LEFT, top + 44, "attention reads these rows only", "s", "start")]


def find_cell(token):
    """The left end of a token's cell."""
    return LEFT + token * CELL + token // PAGE_SIZE * GAP
