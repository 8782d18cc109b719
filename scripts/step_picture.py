"""Draws the arrays of a step: rows, offsets, lengths, and the tokens of pages.

The step is that of docs/how-to/attention-over-my-cache.md.
"""

from attention_pictures import COLORS, begin, box, write

LENGTHS, NEW, TABLE, PAGE_SIZE = (20, 0), (3, 2), ((5, 2), (7, 0)), 16
TOPS = 56, 190
ROW, CELL, LEFT, GAP = (90, 24), (14, 26), 400, 18
CACHED, ADDED, EMPTY = *COLORS[:2], "#ffffff"
LEGEND = (400, CACHED, "in the cache before the step"), (610, ADDED, "new: append writes them"), (804, EMPTY, "empty")


def draw():
    """Draws the picture as SVG, with a line for each sequence."""
    parts = begin(338, "The arrays of a step")
    parts += [write(185, 28, "rows of q, k, v and out", "h"), write(LEFT, 28, "tokens in pages of 16", "h", "start")]
    first = 0
    for sequence, new in enumerate(NEW):
        parts += draw_rows(sequence, first, new) + draw_pages(sequence) + draw_path(sequence)
        first += new
    end = TOPS[-1] + NEW[-1] * ROW[1]
    parts.append(write(132, end + 4, f"row_offsets[{len(NEW)}] = {first}", anchor="end"))
    for x, color, text in LEGEND:
        parts += [box(x, 304, *CELL, fill=color), write(x + 22, 322, text, anchor="start")]
    return "\n".join([*parts, "</svg>", ""])


def draw_rows(sequence, first, new):
    """Draws the rows of a sequence, and where they begin."""
    top = TOPS[sequence]
    parts = [write(132, top + 4, f"row_offsets[{sequence}] = {first}", anchor="end")]
    for number in range(new):
        y = top + number * ROW[1]
        parts += [box(140, y, *ROW, fill=ADDED), write(140 + ROW[0] / 2, y + 16, f"row {first + number}")]
    return parts


def draw_pages(sequence):
    """Draws the pages that a row of the table names, a cell for each token."""
    top, length = TOPS[sequence], LENGTHS[sequence]
    table = ", ".join(map(str, TABLE[sequence]))
    label = f"sequence {sequence}: lengths[{sequence}] = {length}, lut[{sequence}] = [{table}]"
    parts = [write(LEFT, top + 4, label, "s", "start")]
    for number, page in enumerate(TABLE[sequence]):
        left = find_cell(number * PAGE_SIZE)
        is_used = number * PAGE_SIZE < length + NEW[sequence]
        note = "" if is_used else ": the entry is not used"
        parts.append(write(left, top + 26, f"page {page}{note}", "s", "start"))
        for token in range(number * PAGE_SIZE, (number + 1) * PAGE_SIZE):
            color = CACHED if token < length else ADDED if token < length + NEW[sequence] else EMPTY
            parts.append(box(find_cell(token), top + 32, *CELL, fill=color))
    return parts


def draw_path(sequence):
    """Draws how the rows of a sequence go to its new tokens."""
    top, new = TOPS[sequence], NEW[sequence]
    y, below, tip = top + new * ROW[1] / 2, top + 88, top + 32 + CELL[1] + 2
    x = (find_cell(LENGTHS[sequence]) + find_cell(LENGTHS[sequence] + new - 1) + CELL[0]) / 2
    return [
        f'<path d="M{140 + ROW[0] + 4} {y:g}H260V{below}H{x:g}V{tip + 8}" class="a"/>',
        f'<path d="M{x:g} {tip}l-5 9h10z" class="t"/>',
    ]


def find_cell(token):
    """The left end of a token's cell."""
    return LEFT + token * CELL[0] + token // PAGE_SIZE * GAP
