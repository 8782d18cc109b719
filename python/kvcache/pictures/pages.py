# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pictures of the pages of a batch."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from ..checks import check_instance, check_integer, check_positive, parse_requests
from ..pages.snapshot import CacheSnapshot, PageAddress, PageState, Place, SequenceState
from .svg import BLANK, EDGE, HATCH, INK, MARGIN, RIGHT, Canvas, Picture, count, shorten

MAX_SEQUENCES = 64
MAX_PAGES = 4096

_ANY = 1 << 62  # the number of tokens that a state can hold
_ROW_START = 230  # after the names of the sequences
_ID_WIDTH = 40  # of the page ids before the lines of a pool whose cells show none

# The kinds of pages, with the colors of the empty and the filled area.
_COLORS = {
    "used": ("#d9e8fb", "#9cc3f2"),
    "shared": ("#fde6c8", "#f3b35c"),
    "cached": ("#d6f0dc", "#5bbd98"),
    "free": (BLANK, BLANK),
    "null": (EDGE, EDGE),
}
_LEGEND = {
    "used": "used by a sequence",
    "shared": "shared by ×n",
    "cached": "cached, unused",
    "free": "free",
    "null": "null page",
}


@dataclass(frozen=True)
class _Cells:
    """The size in which pages are drawn."""

    width: float
    height: float
    gap: float
    style: str | None  # of the page id; None for the smallest cells

    def per_line(self, width: float) -> int:
        return int((width + self.gap) // (self.width + self.gap))

    def place(self, index: int, per_line: int) -> tuple[float, float]:
        """The corner of a cell, relative to the first cell."""
        line, column = divmod(index, per_line)
        return column * (self.width + self.gap), line * (self.height + self.gap)

    def height_of(self, lines: int) -> float:
        return lines * (self.height + self.gap)


_LARGE, _MEDIUM, _SMALL = (
    _Cells(40, 32, 4, ""),
    _Cells(28, 20, 3, "small"),
    _Cells(11, 11, 3, None),
)


@dataclass(frozen=True)
class _Row:
    """A sequence, and its letter in the pool."""

    letter: str
    state: SequenceState

    @property
    def name(self) -> str:
        return str(self.state.request)


class _Inventory:
    """The users of each page; raises ``ValueError`` for an inconsistent snapshot."""

    def __init__(self, snapshot: CacheSnapshot) -> None:
        self.snapshot = snapshot
        self.sizes = snapshot.page_sizes or (snapshot.page_size,)
        self.rows = [
            _Row(_letters(index), state)
            for index, state in enumerate(snapshot.sequences)
        ]
        _check_sizes(snapshot)
        self.pages: dict[PageAddress, PageState] = {}
        for page in snapshot.pages:
            self._add(page)
        self.owners: dict[PageAddress, list[_Row]] = {page: [] for page in self.pages}
        for row in self.rows:
            self._assign(row)

    def _add(self, page: PageState) -> None:
        place, index = page.address.place, page.address.index
        name = f"page {index} of the {place.value}"
        size = self.size_of(place)
        if not 0 <= index < size:
            raise ValueError(f"{name} is not among its {count(size, 'page')}")
        if page.address in self.pages:
            raise ValueError(f"{name} is in the snapshot twice")
        if not 0 <= page.group < len(self.sizes):
            raise ValueError(f"{name} is of unknown group {page.group}")
        page_size = self.sizes[page.group]
        if not 0 <= page.tokens <= page_size:
            raise ValueError(
                f"expects {name} to have at most {count(page_size, 'token')}, "
                f"got {page.tokens}"
            )
        if page.references < 0 or not (page.references or page.is_cached):
            raise ValueError(
                f"expects {name} to be cached or to have references, got "
                f"{page.references}"
            )
        self.pages[page.address] = page

    def _assign(self, row: _Row) -> None:
        state, name = row.state, f"sequence {row.state.request!r}"
        for address in state.pages:
            if address not in self.pages:
                raise ValueError(
                    f"{name} has page {address.index} of the {address.place.value}, "
                    "which is free"
                )
            self.owners[address].append(row)
        if min(state.length, state.pending) < 0:
            raise ValueError(f"expects {name} to have no negative number of tokens")
        groups = get_groups(state)
        if len(groups) != len(self.sizes):
            raise ValueError(
                f"expects {name} to have pages of {count(len(self.sizes), 'group')}, got "
                f"{len(groups)}"
            )
        for pages, page_size in zip(groups, self.sizes, strict=True):
            room = len(pages) * page_size
            if state.length + state.pending > room:
                raise ValueError(
                    f"{name} has {count(state.length + state.pending, 'token')}, and "
                    f"room for {room}"
                )

    def size_of(self, place: Place) -> int:
        sizes = {
            Place.DEVICE: self.snapshot.num_pages,
            Place.HOST: self.snapshot.num_host_pages,
            Place.DISK: self.snapshot.num_disk_pages,
        }
        return sizes[place]

    def kind(self, address: PageAddress) -> str:
        page = self.pages.get(address)
        if page is None:
            return "free"
        return ("cached", "used")[page.references] if page.references < 2 else "shared"

    def tip(self, address: PageAddress) -> str:
        """Describes a page in a sentence."""
        title = f"page {_label(address)}: "
        page = self.pages.get(address)
        if page is None:
            return title + "free"
        names = ", ".join(
            f"{row.letter} ({shorten(row.name, 40)})" for row in self.owners[address]
        )
        users = f"{count(page.references, 'sequence')}: {names}" if names else "unused"
        cached = ", cached" if page.is_cached else ""
        size = self.sizes[page.group]
        group = f"group {page.group}, " if len(self.sizes) > 1 else ""
        held = "a state" if size == _ANY else f"{page.tokens} of {size} tokens"
        return f"{title}{group}{held}{cached}, {users}"

    def get_filled(self, page: PageState) -> float:
        """The fraction of a page that has tokens; 1 for a state."""
        size = self.sizes[page.group]
        return 1.0 if size == _ANY else page.tokens / size

    def chosen(self, requests: Sequence[Hashable] | None) -> list[_Row]:
        """The rows of the requested sequences, in their order; all rows for None."""
        if requests is None:
            chosen = self.rows
        else:
            known = {row.state.request: row for row in self.rows}
            if unknown := [request for request in requests if request not in known]:
                raise ValueError(f"the snapshot has no sequence {unknown[0]!r}")
            chosen = [known[request] for request in requests]
        if len(chosen) > MAX_SEQUENCES:
            raise ValueError(
                f"expects at most {MAX_SEQUENCES} sequences in a picture, got "
                f"{len(chosen)}: choose some of them by 'requests'"
            )
        return chosen


def get_groups(state: SequenceState) -> tuple[tuple[PageAddress | None, ...], ...]:
    """The pages of a sequence in each group of layers."""
    return state.groups or (state.pages,)


def draw_pages(
    snapshot: CacheSnapshot, *, requests: Sequence[Hashable] | None = None
) -> Picture:
    """Draws the pages of each sequence, and the users of the pages of the pool.

    A row shows the pages of a sequence in the order of its tokens. Tokens in the cache
    are filled, and pending tokens are striped. The pool shows the device's pages, and
    the pages of the swap space, whose ids begin with "h". Shared pages show their
    number of references, others the letter of their sequence. Each group of layers has
    a line, with gaps for pages that no token reaches any more. More pages are drawn
    smaller.

    Args:
        snapshot: The snapshot of a manager, or one made by hand.
        requests: The sequences to draw as rows; all by default.

    Raises:
        ValueError: The snapshot is inconsistent, or has no such request, more than 64
            rows, or more than 4,096 pages in a pool.
    """
    check_instance(CacheSnapshot, snapshot=snapshot)
    inventory = _Inventory(snapshot)
    rows = inventory.chosen(None if requests is None else parse_requests(requests))
    is_one = len(inventory.sizes) == 1 and snapshot.page_size != _ANY
    size = f" of {count(snapshot.page_size, 'token')}" if is_one else ""
    canvas = Canvas(
        f"Pages of {count(len(rows), 'sequence')}",
        f"{count(snapshot.num_pages, 'page')}{size}, of which "
        f"{_pool_note(inventory, Place.DEVICE)}.",
    )
    _draw_sequences(canvas, inventory, rows)
    _draw_pool(canvas, inventory, Place.DEVICE)
    if snapshot.num_host_pages:
        _draw_pool(canvas, inventory, Place.HOST)
    if snapshot.num_disk_pages:
        _draw_pool(canvas, inventory, Place.DISK)
    _draw_legend(canvas)
    return canvas.finish()


def _check_sizes(snapshot: CacheSnapshot) -> None:
    check_positive(page_size=snapshot.page_size)
    for name in ("num_pages", "num_host_pages", "num_disk_pages"):
        size = getattr(snapshot, name)
        check_integer(**{name: size})
        if not 0 <= size <= MAX_PAGES:
            raise ValueError(
                f"expects {name!r} to be from 0 to {MAX_PAGES:,} for a picture, "
                f"got {size:,}"
            )


def _letters(index: int) -> str:
    """A to Z, then AA, AB and so on."""
    before, last = divmod(index, 26)
    return (_letters(before - 1) if before else "") + chr(ord("A") + last)


def _label(address: PageAddress) -> str:
    letters = {Place.DEVICE: "", Place.HOST: "h", Place.DISK: "d"}
    return f"{letters[address.place]}{address.index}"


def _lines(number: int, per_line: int) -> int:
    return -(-number // per_line)


def _choose_cells(count_lines: Callable[[_Cells], int], most: int) -> _Cells:
    """Chooses large cells for up to ``most`` lines, medium ones for twice as many."""
    if count_lines(_LARGE) <= most:
        return _LARGE
    return _MEDIUM if count_lines(_MEDIUM) <= 2 * most else _SMALL


# --- The sequences ------------------------------------------------------------------


def _draw_sequences(canvas: Canvas, inventory: _Inventory, rows: list[_Row]) -> None:
    sizes = sorted({size for size in inventory.sizes if size != _ANY})
    held = "states"
    if sizes:
        others = "".join(f"{size} or " for size in sizes[:-1])
        held = f"pages of {others}{count(sizes[-1], 'token')}"
    note = (
        f"{held}, in the order of the tokens; filled: in the cache, striped: pending, in "
        "the cache after the next step"
    )
    canvas.heading("sequences", note if rows else "none")
    width = RIGHT - _ROW_START
    lengths = [len(pages) for row in rows for pages in get_groups(row.state)]

    def count_lines(cells: _Cells) -> int:
        return sum(max(_lines(length, cells.per_line(width)), 1) for length in lengths)

    cells = _choose_cells(count_lines, most=20)
    for row in rows:
        _draw_sequence(canvas, inventory, row, cells)
    canvas.y += 24


def _draw_sequence(
    canvas: Canvas, inventory: _Inventory, row: _Row, cells: _Cells
) -> None:
    state, top, left = row.state, canvas.y, MARGIN + 24
    with canvas.group("sequence", f"{row.letter}: {shorten(row.name, 200)}"):
        canvas.text(MARGIN, top + 13, row.letter, "soft")
        canvas.text(left, top + 13, shorten(row.name, 22))
        canvas.text(left, top + 27, shorten(_tokens_note(state), 27), "small soft")
    per_line = cells.per_line(RIGHT - _ROW_START)
    groups, down = get_groups(state), 0.0
    for number, (pages, size) in enumerate(zip(groups, inventory.sizes, strict=True)):
        if len(groups) > 1:
            middle = top + down + cells.height / 2 + 4
            canvas.text(_ROW_START - 8, middle, f"group {number}", "small soft", "end")
        for index, address in enumerate(pages):
            x, y = cells.place(index, per_line)
            if address:
                spans = _spans(state, index, size)
                corner = _ROW_START + x, top + down + y
                _draw_cell(canvas, inventory, address, cells, corner, spans)
        down += cells.height_of(_lines(len(pages), per_line))
    canvas.y += max(down, 32) + 4


def _tokens_note(state: SequenceState) -> str:
    pending = f" + {state.pending:,}" if state.pending else ""
    unit = "token" if (state.length, state.pending) == (1, 0) else "tokens"
    swapped = "" if state.is_resident else ", swapped out"
    return f"{state.length:,}{pending} {unit}{swapped}"


def _spans(state: SequenceState, index: int, page_size: int) -> tuple[float, float]:
    """The fractions of a page at which cached and pending tokens of a sequence end."""
    if page_size == _ANY:
        return float(state.length > 0), float(state.length + state.pending > 0)
    start = index * page_size
    total = state.length + state.pending
    cached = min(max(state.length - start, 0), page_size)
    return cached / page_size, min(max(total - start, 0), page_size) / page_size


def _draw_cell(
    canvas: Canvas,
    inventory: _Inventory,
    address: PageAddress,
    cells: _Cells,
    corner: tuple[float, float],
    spans: tuple[float, float],
    owner: str = "",
) -> None:
    """Draws a page, filled up to the first and striped up to the second span."""
    kind = inventory.kind(address)
    with canvas.group(f"page {kind}", inventory.tip(address)):
        _draw_spans(canvas, cells, corner, _COLORS[kind], spans)
        outline = "outline" if address.place is Place.DEVICE else "outline dashed"
        sizes = *corner, cells.width, cells.height
        canvas.rect(*sizes, fill="none", rx=3, class_=outline)
        _draw_label(canvas, _label(address), owner, cells, corner)


def _draw_spans(
    canvas: Canvas,
    cells: _Cells,
    corner: tuple[float, float],
    colors: tuple[str, str],
    spans: tuple[float, float],
) -> None:
    (x, y), (cached, pending), (light, dark) = corner, spans, colors
    if cached < 1:
        canvas.rect(x, y, cells.width, cells.height, fill=light, rx=3)
    if cached:
        width = cells.width * cached
        canvas.rect(x, y, width, cells.height, fill=dark, rx=3, class_="cached-tokens")
    if pending > cached:
        start, width = x + cells.width * cached, cells.width * (pending - cached)
        sizes = start, y, width, cells.height
        canvas.rect(*sizes, fill=HATCH, rx=2, class_="pending-tokens")


def _draw_label(
    canvas: Canvas, label: str, owner: str, cells: _Cells, corner: tuple[float, float]
) -> None:
    """Writes a page's id and, if two lines fit, its owner."""
    if cells.style is None:
        return
    x, y = corner[0] + cells.width / 2, corner[1] + cells.height / 2 + 4
    has_owner = owner and cells is _LARGE
    canvas.text(x, y - 6 if has_owner else y, label, cells.style, "middle")
    if has_owner:
        canvas.text(x, y + 7, owner, "small soft", "middle")


# --- The pool -----------------------------------------------------------------------


def _pool_note(inventory: _Inventory, place: Place) -> str:
    addresses = [PageAddress(place, index) for index in range(inventory.size_of(place))]
    kinds = [inventory.kind(address) for address in addresses]
    counts = {kind: kinds.count(kind) for kind in ("used", "shared", "cached", "free")}
    return (
        f"{counts['used']:,} used by one sequence, {counts['shared']:,} shared, "
        f"{counts['cached']:,} cached and unused, {counts['free']:,} free"
    )


def _draw_pool(canvas: Canvas, inventory: _Inventory, place: Place) -> None:
    is_device, size = place is Place.DEVICE, inventory.size_of(place)
    titles = {Place.DEVICE: "device", Place.HOST: "swap space", Place.DISK: "disk"}
    title = f"{titles[place]}: {count(size, 'page')}"
    canvas.heading(title, _pool_note(inventory, place))
    drawn = size + is_device  # and the null page

    def count_lines(cells: _Cells) -> int:
        return _lines(drawn, cells.per_line(RIGHT - MARGIN))

    cells = _choose_cells(count_lines, most=10)
    left = MARGIN if cells.style is not None else MARGIN + _ID_WIDTH
    per_line = cells.per_line(RIGHT - left)
    for index in range(drawn):
        x, y = cells.place(index, per_line)
        corner = left + x, canvas.y + y
        if index < size:
            _draw_pooled(canvas, inventory, PageAddress(place, index), cells, corner)
        else:
            _draw_null(canvas, inventory.snapshot.null_page, cells, corner)
        if left > MARGIN and index % per_line == 0:
            label = _label(PageAddress(place, index))
            canvas.text(left - 8, corner[1] + 9, label, "small soft", "end")
    canvas.y += cells.height_of(_lines(drawn, per_line)) + 28


def _draw_pooled(
    canvas: Canvas,
    inventory: _Inventory,
    address: PageAddress,
    cells: _Cells,
    corner: tuple[float, float],
) -> None:
    page = inventory.pages.get(address)
    filled = inventory.get_filled(page) if page else 0.0
    owner = ""
    if page and page.references:
        letters = [row.letter for row in inventory.owners[address]]
        owner = letters[0] if len(letters) == 1 else f"×{page.references}"
    _draw_cell(canvas, inventory, address, cells, corner, (filled, filled), owner)
    if page and page.is_cached:
        x, y = corner[0] + cells.width - 4, corner[1] + 4
        canvas.circle(x, y, min(2.0, cells.width / 9), fill=INK)


def _draw_null(
    canvas: Canvas, index: int, cells: _Cells, corner: tuple[float, float]
) -> None:
    tip = f"page {index}: the null page, which unused entries of the lookup table name"
    with canvas.group("page null", tip):
        canvas.rect(*corner, cells.width, cells.height, fill=_COLORS["null"][0], rx=3)
        _draw_label(canvas, str(index), "null", cells, corner)


def _draw_legend(canvas: Canvas) -> None:
    """Draws the legend of the colors, in a line at the bottom."""
    x, y = float(MARGIN), canvas.y
    for kind, meaning in _LEGEND.items():
        light, dark = _COLORS[kind]
        canvas.rect(x, y, 14, 14, fill=light, rx=3, stroke=EDGE, class_=f"key {kind}")
        canvas.rect(x, y, 9, 14, fill=dark, rx=3)
        canvas.text(x + 20, y + 11, meaning, "note")
        x += 44 + 6.6 * len(meaning)
    canvas.circle(x + 4, y + 7, 2, fill=INK)
    canvas.text(x + 13, y + 11, "found by later sequences", "note")
    canvas.y += MARGIN + 10
