"""Draws the messages that move a sequence from one machine to another."""

from html import escape

ENDS = {"prefill": 250, "decode": 670}
# The sender, the receiver, the message, and its carrier.
STEPS = (
    ("prefill", "prefill", "export pins the pages of a lease", "call"),
    ("prefill", "decode", "offer: tokens, pages, addresses", "engine"),
    ("decode", "decode", "fetch reserves pages, which stay invisible", "call"),
    ("prefill", "decode", "the bytes of the pages", "transport"),
    ("decode", "decode", "poll returns True: all bytes have arrived", "call"),
    ("decode", "prefill", "was the lease held until now?", "engine"),
    ("prefill", "decode", "the result of lease.end()", "engine"),
    ("decode", "decode", "finish begins the sequence, or frees its pages", "call"),
)
WIDTH, TOP, STEP, BOX = 920, 76, 44, (330, 28)
STYLE = (
    ".h{font-weight:600;fill:#1f2933}.s{fill:#52606d;font-size:12px}"
    ".b{fill:#d9e8fb;stroke:#cbd2d9}.l{stroke:#cbd2d9;stroke-width:2}"
    ".engine{stroke:#7b8794;stroke-width:1.4}.transport{stroke:#2f7ed8;stroke-width:6}"
)


def draw():
    """Draws the picture as SVG, with time downwards."""
    height = TOP + len(STEPS) * STEP + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        f' width="{WIDTH}" height="{height}" font-family="system-ui, sans-serif" font-size="13">',
        "<title>How a sequence moves from one machine to another</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f"<style>{STYLE}</style>",
    ]
    for name, x in ENDS.items():
        parts += [
            f'<line x1="{x}" y1="44" x2="{x}" y2="{height - 40}" class="l"/>',
            write(x, 30, name, "h"),
        ]
    for number, (start, end, text, carrier) in enumerate(STEPS):
        parts += draw_step(ENDS[start], ENDS[end], TOP + number * STEP, text, carrier)
    note = "thin: messages that the engine carries; thick: memory that a transport reads"
    return "\n".join([*parts, write(WIDTH / 2, height - 14, note, "s"), "</svg>", ""])


def draw_step(start, end, y, text, carrier):
    if carrier == "call":
        left = start - BOX[0] / 2
        return [
            f'<rect x="{left:g}" y="{y - 18}" width="{BOX[0]}" height="{BOX[1]}" rx="4" class="b"/>',
            write(start, y, text, "s"),
        ]
    tip = end - 9 if end > start else end + 9
    return [
        f'<line x1="{start}" y1="{y}" x2="{tip}" y2="{y}" class="{carrier}"/>',
        f'<path d="M{end} {y}L{tip} {y - 6}L{tip} {y + 6}Z" fill="#1f2933"/>',
        write((start + end) / 2, y - 8, text, "s"),
    ]


def write(x, y, text, kind):
    return (
        f'<text x="{x:g}" y="{y}" class="{kind}" text-anchor="middle">{escape(text)}</text>'
    )
