# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans of how the sequences of a batch get tokens, without looking them up."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .group_tables import Entries, GroupTable, list_ranges
from .prefixes import Page
from .tables import CachedSequence, SequenceTable
from .token_table import BatchRows
from .tokens import BatchTokens


class BatchPlan(NamedTuple):
    """A plan of how the sequences of a batch get tokens in one group.

    Attributes:
        missing: The columns of new pages of each sequence.
        closed: Sequences that write to a page that others may share.
        copied: The pages that these copy before they write.
        snapshots: States that they copy if there is room; otherwise these leave the
            cache.
    """

    missing: Entries
    closed: list[CachedSequence]
    copied: dict[CachedSequence, Page]
    snapshots: dict[CachedSequence, Page]


def get_written(sequence: CachedSequence, group: GroupTable) -> Page | None:
    """The partial page that the next tokens are written to."""
    count, rest = divmod(sequence.length, group.page_size)
    return group.lists[sequence.row][count] if rest else None


def plan_batch(
    table: SequenceTable,
    batch: Sequence[CachedSequence],
    rows: BatchRows,
    tokens: BatchTokens,
) -> tuple[list[BatchPlan], int]:
    """Plans the growth of a batch by group, and counts the needed pages."""
    before = table.totals[rows.selector]
    totals = before + tokens.counts
    plans: list[BatchPlan] = []
    needed, by_size = 0, dict[int, Entries]()
    for group in table.groups:
        size = group.page_size
        if size not in by_size:  # most groups have equal pages
            pages = (before + (size - 1)) // size
            by_size[size] = list_ranges(pages, (totals + (size - 1)) // size - pages)
        missing = by_size[size]
        closed: list[CachedSequence] = []
        is_open = group.open[rows.selector]
        if not is_open.all():
            has_rest = table.lengths[rows.selector] % size > 0
            is_closed = ~is_open & has_rest & (tokens.counts > 0)
            closed = [batch[i] for i in np.flatnonzero(is_closed)]
        copied = _find_copied(closed, group)
        snapshots = _find_snapshots(closed, group)
        plans.append(BatchPlan(missing, closed, copied, snapshots))
        needed += len(missing.row) + len(copied)
    return plans, needed


def _find_copied(
    closed: Iterable[CachedSequence], group: GroupTable
) -> dict[CachedSequence, Page]:
    """The pages that sequences copy before a write; the last user needs no copy."""
    left: dict[Page, int] = {}
    copied = {}
    for sequence in closed:
        if written := get_written(sequence, group):
            left[written] = left.get(written, written.references) - 1
            if left[written]:
                copied[sequence] = written
    return copied


def _find_snapshots(
    closed: Sequence[CachedSequence], group: GroupTable
) -> dict[CachedSequence, Page]:
    """The cached states that a single sequence uses and writes to."""
    if not closed or not group.is_state:
        return {}
    written = {each: get_written(each, group) for each in closed}
    return {
        each: page
        for each, page in written.items()
        if page and page.references == 1 and page.prefix
    }


def choose_copies(
    plans: Sequence[BatchPlan], spare: int
) -> list[dict[CachedSequence, Page]]:
    """Chooses the pages to copy in each group: snapshots only if there is room."""
    result = []
    for plan in plans:
        copies = {}
        for sequence in plan.closed:
            if page := plan.copied.get(sequence):
                copies[sequence] = page
            elif spare > 0 and (page := plan.snapshots.get(sequence)):
                copies[sequence] = page
                spare -= 1
        result.append(copies)
    return result
