"""The invariants that histories of a manager with groups of layers check after each operation."""

import math
from collections import Counter

import numpy as np
from group_model import is_reached_from, serves
from kvcache import Place


def check_sequences(history, snapshot):
    """Checks that each sequence has its tokens, and the values of those that later tokens reach."""
    held = [state.request for state in snapshot.sequences]
    assert held == [*history.sequences, *history.swaps]
    pages = {page.address: page for page in snapshot.pages}
    for state in snapshot.sequences:
        if state.request in history.swaps:
            continue
        sequence = history.sequences[state.request]
        assert (state.length, state.pending) == (sequence.length, sequence.pending)
        assert state.is_resident == sequence.is_resident
        assert history.manager.tokens(state.request).tolist() == sequence.tokens
        if state.is_resident:
            check_reachable(history.slots, state, sequence)
        check_freed(history, state, sequence)
        for number, group in enumerate(state.groups or (state.pages,)):
            assert all(pages[a].group == number for a in group if a)
            full = sequence.length // history.slots[number].pages
            if history.groups.prefix_caching:
                assert all(pages[a].is_cached for a in group[:full] if a), "not cached"


def check_pages(history, snapshot):
    """Checks the references of pages, where they are, and the number of free ones."""
    manager = history.manager
    pages = {page.address: page for page in snapshot.pages}
    assert len(pages) == len(snapshot.pages)
    references, users, taken = Counter(), Counter(), Counter()
    for state in snapshot.sequences:
        references.update(state.pages)
        if state.is_resident:
            users.update(state.pages)
        if state.request in history.swaps:
            _, place, count = history.swaps[state.request]
            users.update(state.pages if place is Place.DEVICE else ())
            taken[place] += count
    held = {a: page.references for a, page in pages.items() if page.references}
    assert held == references
    assert all(page.references or page.is_cached for page in pages.values())
    on_device = [a for a in held if a.place is Place.DEVICE]
    assert all(a.place is not Place.DISK for a in held)
    history.events["pages on the disk"] += any(a.place is Place.DISK for a in pages)
    host_room = manager.num_host_pages - (len(held) - len(on_device)) - taken[Place.HOST]
    waiting = sum(not users[a] for a in on_device)
    free = manager.num_pages - len(on_device) + min(waiting, host_room) - taken[Place.DEVICE]
    assert manager.num_free_pages == free
    for tensor in (*manager.blocks, *manager.scales):
        assert not tensor[manager.null_page].any(), "the null page was written"


def check_reachable(all_slots, state, sequence):
    """Checks that cached tokens that later tokens reach have their values."""
    for slots, pages in zip(all_slots, state.groups or (state.pages,), strict=True):
        if not sequence.length:
            continue
        if slots.kind.is_state:
            assert len(pages) == 1
            if not sequence.given:
                value = sequence.values[sequence.length - 1]
                assert slots.holds([pages[0].index], [0], [value]), "another state"
            continue
        assert len(pages) == -(-len(sequence.tokens) // slots.pages)
        for number in range(-(-sequence.length // slots.pages)):
            end = min((number + 1) * slots.pages, sequence.length)
            tokens = [
                t for t in range(number * slots.pages, end)
                if is_reached_from(slots.kind, sequence.length, t)
            ]  # fmt: skip
            if tokens:
                assert pages[number], "a page that is reached is gone"
                places = slots.locate(pages[number].index, tokens)
                values = [sequence.values[t] for t in tokens]
                assert slots.holds(*places, values), "other contents"


def check_freed(history, state, sequence):
    """Checks that after a step, tokens that no token reaches have no page."""
    if sequence.pending or not state.groups:
        return
    for slots, pages in zip(history.slots, state.groups, strict=True):
        if slots.kind.kind not in ("window", "chunk"):
            continue
        for number, page in enumerate(pages):
            tokens = range(number * slots.pages, (number + 1) * slots.pages)
            length = sequence.length
            is_reached = any(
                is_reached_from(slots.kind, length, t) for t in tokens
            )
            assert page is None or is_reached, "not freed"
            history.events["pages freed before windows"] += page is None


# --- The longest prefix ---------------------------------------------------------------


def find_longest(history, sequence, start):
    """Finds the most tokens that all groups have in cached pages, by brute force."""
    if not history.groups.prefix_caching:
        return 0
    cached = [read_cached(history, number) for number in range(len(history.slots))]
    last = (len(sequence.tokens) - 1) // history.step_tokens * history.step_tokens
    for length in range(last, start, -history.step_tokens):
        if all(
            serves(slots, ends, sequence.values, length)
            for slots, ends in zip(history.slots, cached, strict=True)
        ):
            return length
    return 0


def read_cached(history, number):
    """Reads the values of the last tokens of a group's cached pages."""
    slots, ends = history.slots[number], set()
    for page in history.manager.snapshot().pages:
        if page.is_cached and page.group == number:
            unit, last = page.address.index, slots.split * slots.size - 1
            if page.address.place is Place.DEVICE:
                (kernel_page,), (offset,) = slots.locate(unit, [last])
                ends.add(int(slots.tensors[0][kernel_page, 0, 0, offset, 0]))
            else:
                raw = history.manager._pool._stores[0].load(page.address)
                stored = raw[: raw.size // slots.split * slots.split]
                shape = slots.tensors[0].shape[1:]
                bytes_ = math.prod(shape) * get_head_bytes(history.manager, number)
                part = stored.reshape(slots.split, -1)[-1, :bytes_].view(np.uint64)
                part = part.reshape(*shape, -1)
                ends.add(int(part[0, 0, last % slots.size, 0, 0]))
    return ends


def get_head_bytes(manager, number):
    blocks = manager.group_tensors[number].blocks[0]
    return blocks.shape[-1] * blocks.dtype.itemsize
