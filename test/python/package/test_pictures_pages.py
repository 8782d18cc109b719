"""Tests that pictures of pages show the snapshot."""

import re
from collections import Counter

import numpy as np
import pytest
from picture_cases import (
    PICTURES,
    SVG,
    device,
    find_by_class,
    host,
    large_snapshot,
    number,
    parse,
    small_snapshot,
    snapshot,
    texts,
    tips,
)

import kvcache
from kvcache import PageState, SequenceState
from kvcache.pictures import draw_pages


def test_rows_have_the_pages_of_the_sequences_in_order():
    labels = [texts(group)[0] for group in find_by_class(parse(draw_pages(small_snapshot())), "g", "page")]
    assert labels[:6] == ["0", "3", "4", "0", "7", "h1"]


def test_pool_shows_every_page_with_its_owner():
    groups = find_by_class(parse(draw_pages(small_snapshot())), "g", "page")[6:]
    shown = [(group.get("class").removeprefix("page "), *texts(group)) for group in groups]
    expected = [("free", str(i)) for i in range(12)]
    expected[0] = ("shared", "0", "×2")
    expected[3], expected[4], expected[7] = ("used", "3", "A"), ("used", "4", "A"), ("used", "7", "B")
    expected[9] = ("cached", "9")
    dashed = [bool(find_by_class(group, "rect", "dashed")) for group in groups]
    assert dashed == 13 * [False] + 4 * [True]
    swapped = [("free", "h0"), ("used", "h1", "C"), ("cached", "h2"), ("free", "h3")]
    assert shown == [*expected, ("null", "12", "null"), *swapped]


def test_pages_are_filled_as_far_as_their_sequence_goes():
    state = small_snapshot()
    groups = iter(find_by_class(parse(draw_pages(state)), "g", "page"))
    for sequence in state.sequences:
        tokens = np.zeros(len(sequence.pages) * 16)
        tokens[: sequence.length] = 1
        tokens[sequence.length : sequence.length + sequence.pending] = 2
        for part, group in zip(tokens.reshape(-1, 16), groups):
            for name, value in ("cached-tokens", 1), ("pending-tokens", 2):
                width = sum(number(rect, "width") for rect in find_by_class(group, "rect", name))
                assert width == pytest.approx(40 * np.mean(part == value), abs=0.01)


def test_headings_count_the_pages():
    notes = texts(parse(draw_pages(small_snapshot())))
    assert "device: 12 pages" in notes and "swap space: 4 pages" in notes
    assert "3 used by one sequence, 1 shared, 1 cached and unused, 7 free" in notes
    assert "1 used by one sequence, 0 shared, 1 cached and unused, 2 free" in notes
    assert {"37 + 3 tokens", "16 + 9 tokens", "12 tokens, swapped out"} <= set(notes)


def test_tips_say_all_about_a_page():
    shown = tips(parse(draw_pages(small_snapshot())), "page")
    assert "page 0: 16 of 16 tokens, cached, 2 sequences: A (chat), B (code)" in shown
    assert "page h1: 12 of 16 tokens, 1 sequence: C (swapped)" in shown
    assert "page 9: 16 of 16 tokens, cached, unused" in shown
    assert "page 1: free" in shown


def test_dots_mark_the_pages_that_later_sequences_find():
    state = small_snapshot()
    dots = parse(draw_pages(state)).findall(f".//{SVG}circle")
    assert len(dots) == sum(page.is_cached for page in state.pages) + 1  # and the legend's


def test_chosen_sequences_are_drawn():
    picture = draw_pages(small_snapshot(), requests=["swapped", "chat"])
    root = parse(picture)
    assert picture.title == "Pages of 2 sequences"
    assert tips(root, "sequence") == ["C: swapped", "A: chat"]
    assert [texts(group)[0] for group in find_by_class(root, "g", "page")][:4] == ["h1", "0", "3", "4"]


def test_a_snapshot_without_sequences_is_an_empty_pool():
    root = parse(draw_pages(snapshot()))
    kinds = [group.get("class") for group in find_by_class(root, "g", "page")]
    assert kinds == ["page free"] * 12 + ["page null"]
    assert not find_by_class(root, "g", "sequence")


@pytest.mark.parametrize(("num_pages", "per_sequence", "width"), [(30, 4, 40), (300, 17, 28), (4000, 200, 11)])
def test_more_pages_are_smaller(num_pages, per_sequence, width):
    root = parse(draw_pages(large_snapshot(num_pages, 4, per_sequence)))
    groups = find_by_class(root, "g", "page")
    assert len(groups) == 4 * (3 + per_sequence) + num_pages + 1
    assert number(groups[-2].find(SVG + "rect"), "width") == width
    assert Counter(group.get("class") for group in groups)["page shared"] == 3 + 4 * 3


def make_manager(**sizes):
    params = kvcache.KVCacheParams("f32", 1, 1, page_size=1, total_num_layers=1)
    return kvcache.PagedKVCacheManager(params, max_batch_size=1, max_seq_len=1, **sizes)


def test_a_manager_shows_its_pages():
    manager = make_manager(num_pages=80)
    for request in range(70):
        manager.claim(request, [request])
    first = draw_pages(manager.snapshot(), requests=range(64))
    assert manager._repr_svg_() == first.svg


def test_a_manager_of_too_many_pages_shows_none():
    assert make_manager(num_pages=4096)._repr_svg_()
    assert make_manager(num_pages=4097)._repr_svg_() is None


def test_a_manager_looks_like_its_lookup_table():
    params = kvcache.KVCacheParams("bf16", 1, 16, page_size=4, total_num_layers=1, enable_prefix_caching=True)
    manager = kvcache.PagedKVCacheManager(params, max_batch_size=4, max_seq_len=64, num_pages=20)
    requests = ["a", "b", "c", "d"]
    for request in requests:
        manager.claim(request, [1, 2, 3, 4, 5, 6, 7, 8, ord(request)])
        manager.step([request])
    for request in requests:
        manager.grow(request, [9])
    groups = find_by_class(parse(draw_pages(manager.snapshot())), "g", "page")
    table = np.asarray(manager.inputs(requests).lut)[:, :3]
    assert [texts(group)[0] for group in groups[:12]] == [str(page) for page in table.flat]
    kinds = Counter(group.get("class") for group in groups[12:])
    assert kinds == {"page shared": 2, "page used": 4, "page free": 14, "page null": 1}


def test_names_of_requests_may_be_any_text():
    root = parse(PICTURES["strange-names"]())
    shown = tips(root, "sequence")
    assert shown[0] == "A: <b>&\"'"
    assert shown[1] == "B: " + 4 * "\N{REPLACEMENT CHARACTER}"
    assert shown[2] == "C: " + "長いＡＢ" * 20
    assert texts(find_by_class(root, "g", "sequence")[2])[1] == "長いＡＢ長いＡＢ長い…"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"page_size": 0}, "expects 'page_size' to be positive, got 0"),
        ({"num_pages": 4097}, "expects 'num_pages' to be from 0 to 4,096 for a picture, got 4,097"),
        ({"num_host_pages": -1}, "expects 'num_host_pages' to be from 0 to 4,096 for a picture, got -1"),
        ({"pages": [PageState(device(12), 1, False, 1)]}, "page 12 of the device is not among its 12 pages"),
        ({"pages": [PageState(host(0), 1, False, 1)]}, "page 0 of the host is not among its 0 pages"),
        ({"pages": 2 * [PageState(device(1), 1, False, 1)]}, "page 1 of the device is in the snapshot twice"),
        ({"pages": [PageState(device(1), 1, False, 17)]}, "expects page 1 of the device to have at most 16 tokens, got 17"),
        ({"pages": [PageState(device(1), 0, False, 1)]}, "expects page 1 of the device to be cached or to have references, got 0"),
        ({"sequences": [SequenceState("x", (device(1),), 1, 0, True)]}, "sequence 'x' has page 1 of the device, which is free"),
        ({"sequences": [SequenceState("x", (), 1, 2, True)]}, "sequence 'x' has 3 tokens, and room for 0"),
        ({"sequences": [SequenceState("x", (), -1, 1, True)]}, "expects sequence 'x' to have no negative number of tokens"),
        (
            {"sequences": [SequenceState(i, (), 0, 0, True) for i in range(65)]},
            "expects at most 64 sequences in a picture, got 65: choose some of them by 'requests'",
        ),
    ],
)
def test_invalid_snapshots_are_errors(change, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        draw_pages(snapshot(**change))


def test_unknown_requests_are_errors():
    with pytest.raises(ValueError, match="^the snapshot has no sequence 'unknown'$"):
        draw_pages(small_snapshot(), requests=["chat", "unknown"])


def make_groups(*kinds):
    groups = [
        kvcache.KVCacheParams("f32", 1, 2, page_size=size, reach=kind, layer_ids=[i])
        for i, (kind, size) in enumerate(kinds)
    ]
    return kvcache.PagedKVCacheManager(
        kvcache.MultiKVCacheParams(groups), max_batch_size=2, max_seq_len=64, num_pages=20
    )


def test_each_group_of_layers_has_a_line():
    kinds = (kvcache.reach.full, 4), (kvcache.reach.window(3), 4), (kvcache.reach.state, 8)
    manager = make_groups(*kinds)
    manager.claim("a", range(10))
    manager.step(["a"])
    picture = parse(draw_pages(manager.snapshot()))
    labels = [text for group in find_by_class(picture, "g", "page")[:5] for text in texts(group)]
    # The window has given back page 3; the state is page 6.
    assert labels == ["0", "1", "2", "5", "6"]
    shown = tips(picture, "page")
    assert "page 2: group 0, 2 of 4 tokens, 1 sequence: A (a)" in shown
    assert "page 6: group 2, a state, 1 sequence: A (a)" in shown
    states = make_groups((kvcache.reach.state, 8))
    states.claim("b", [1])
    assert "states, in the order" in states._repr_svg_()


def test_groups_that_a_snapshot_does_not_have_are_errors():
    page = PageState(device(1), 1, False, 1, group=1)
    with pytest.raises(ValueError, match="page 1 of the device is of unknown group 1"):
        draw_pages(snapshot(pages=[page]))
    both = SequenceState("x", (), 0, 0, True, groups=((), ()))
    with pytest.raises(ValueError, match="'x' to have pages of 1 group, got 2"):
        draw_pages(snapshot(sequences=[both]))
