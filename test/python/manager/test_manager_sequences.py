"""Tests of page managers: forks, truncation, speculation, and swapping."""

import numpy as np
import pytest
from checked_manager import fill, make, find_pages

from kvcache import OutOfPagesError, Place

# Forks and truncation


@pytest.mark.parametrize("prefix_caching", [True, False])
def test_a_fork_shares_pages_until_one_writes(prefix_caching):
    checked = make(prefix_caching=prefix_caching)
    fill(checked, "a", [1, 2, 3])
    checked.fork("a", "b")
    assert checked.get_pages("a") == checked.get_pages("b")
    pages = find_pages(checked, "a")
    checked.grow("b", [4])
    assert find_pages(checked, "a") == pages
    assert find_pages(checked, "b")[0] == pages[0] != find_pages(checked, "b")[1]
    checked.grow("a", [5])
    assert find_pages(checked, "a") == pages
    checked.step(["a", "b"])
    assert checked.manager.tokens("b").tolist() == [1, 2, 3, 4]


def test_a_fork_needs_a_page_to_write():
    checked = make(num_pages=2)
    fill(checked, "a", [1, 2, 3])
    checked.fork("a", "b")
    with pytest.raises(OutOfPagesError, match="1 needed, 0 available") as caught:
        checked.manager.grow("b", [4])
    assert (caught.value.needed, caught.value.available) == (1, 0)
    checked.check_unchanged()
    checked.release("a")
    assert checked.grow("b", [4]) == 0


def test_truncation_frees_pages():
    checked = make(prefix_caching=False)
    fill(checked, "a", [1, 2, 3, 4, 5])
    checked.grow("a", [6, 7])
    for length, free in ((7, 4), (6, 5), (5, 5), (4, 6), (1, 7), (0, 8)):
        checked.truncate("a", length)
        assert checked.manager.num_free_pages == free
        assert checked.manager.tokens("a").tolist() == [1, 2, 3, 4, 5, 6, 7][:length]


def test_writing_into_a_truncated_page_keeps_it_for_others():
    checked = make(page_size=4)
    fill(checked, "a", [1, 2, 3, 4, 5])
    fill(checked, "b", [1, 2, 3, 4, 6])
    checked.truncate("b", 2)
    assert find_pages(checked, "a")[0] == find_pages(checked, "b")[0]
    checked.grow("b", [9])
    checked.step(["b"])
    assert find_pages(checked, "a")[0] != find_pages(checked, "b")[0]
    assert checked.claim("c", [1, 2, 3, 4, 5]) == 4


def test_a_truncated_page_is_written_in_place_and_can_not_be_found():
    checked = make(page_size=4, num_pages=2)
    fill(checked, "a", [1, 2, 3, 4])
    checked.truncate("a", 2)
    checked.grow("a", [9])
    assert checked.claim("b", [1, 2, 3, 4]) == 0


# Queries and speculation


def test_queries_before_a_claim():
    checked = make(num_pages=4)
    manager = checked.manager
    assert manager.can_claim([1] * 8)
    assert not manager.can_claim([1] * 9)
    assert (manager.pages_needed([1] * 8), manager.pages_needed([1] * 9)) == (4, 5)
    fill(checked, "a", [1, 2, 3, 4, 5])
    assert manager.match([1, 2, 3, 4, 9, 9]) == 4
    assert manager.pages_needed([1, 2, 3, 4, 9, 9]) == 1
    assert manager.match([1, 2, 3, 4, 9], salt=b"other") == 0
    assert not manager.can_claim([1, 2, 3, 4, 9], salt=b"other")
    checked.release("a")
    assert manager.pages_needed([1, 2, 3, 4, 9, 9]) == 3
    assert "a" not in manager
    checked.check_unchanged()


def test_the_accepted_tokens_of_a_draft_are_kept():
    checked = make(num_pages=12)
    fill(checked, "a", [1, 2, 3])
    checked.fork("a", "x", "y")
    checked.grow_batch(["x", "y"], [[4, 5, 6], [4, 7, 8]])
    kept = find_pages(checked, "y")[:3]
    checked.commit(["a"], [[4, 7]], [("x", "y")])
    assert checked.manager.tokens("a").tolist() == [1, 2, 3, 4, 7]
    assert find_pages(checked, "a") == kept
    assert "x" not in checked.manager and "y" not in checked.manager
    assert checked.manager.num_free_pages == 9
    assert checked.claim("b", [1, 2, 3, 4, 7, 8]) == 4


def test_the_accepted_tokens_of_a_batch_are_kept():
    checked = make(num_pages=12)
    for request in "ab":
        fill(checked, request, [ord(request), 2, 3])
    checked.grow_batch(["a", "b"], np.array([[4, 5, 6], [7, 8, 9]]))
    checked.commit(["b", "a"], [[7, 8], []], [(), ()])
    assert checked.manager.tokens("b")[3:].tolist() == [7, 8]
    assert checked.manager.tokens("a")[3:].tolist() == []
    assert checked.manager.num_free_pages == 12 - 3 - 2


# Swapping


def test_pages_return_from_the_host():
    checked = make(num_pages=3, host_pages=3)
    fill(checked, "a", [1, 2, 3, 4, 5])
    checked.grow("a", [6])
    assert checked.swap_out("a") == 3
    assert not checked.manager.snapshot().sequences[0].is_resident
    assert {address.place for address in checked.get_pages("a")} == {Place.HOST}
    fill(checked, "b", [7, 7, 7, 7, 7])
    assert checked.swap_in("a") is None
    checked.release("b")
    assert checked.swap_in("a") == 3
    checked.step(["a"])


def test_pages_that_others_use_stay_on_the_device():
    checked = make(host_pages=4)
    fill(checked, "a", [1, 2, 3, 4, 5])
    fill(checked, "b", [1, 2, 3, 4, 6])
    assert checked.swap_out("a") == 1
    assert [a.place for a in checked.get_pages("a")] == [Place.DEVICE] * 2 + [Place.HOST]
    assert checked.swap_out("b") == 3
    assert {address.place for address in checked.get_pages("a")} == {Place.HOST}
    checked.swap_in("b")
    assert checked.swap_in("a") == 1


def test_pages_of_swapped_out_sequences_are_kept():
    """Others need the host's room as well, but these pages stay."""
    checked = make(num_pages=3, host_pages=4)
    fill(checked, "a", [1, 2, 3, 4])
    checked.swap_out("a")
    for token in range(5, 15):
        fill(checked, "b", [token] * 6)
        checked.release("b")
    assert checked.swap_in("a") == 2


def test_swap_out_to_a_full_host_raises():
    checked = make(num_pages=6, host_pages=2)
    fill(checked, "a", [1, 2, 3])
    fill(checked, "b", [4, 5, 6])
    checked.swap_out("a")
    with pytest.raises(OutOfPagesError, match="swap space has no room: 2 needed, 0 avail"):
        checked.manager.swap_out("b")
    checked.check_unchanged()
    checked.truncate("a", 0)
    assert checked.swap_out("b") == 2


def test_cached_pages_move_to_the_host_and_back():
    checked = make(num_pages=3, host_pages=2)
    fill(checked, "a", [1, 2, 3, 4])
    checked.release("a")
    fill(checked, "b", [5, 5, 5, 5, 5])
    places = [page.address.place for page in checked.snapshot.pages if not page.references]
    assert places == [Place.HOST] * 2
    checked.release("b")
    assert fill(checked, "c", [1, 2, 3, 4, 5]) == 4


def test_full_host_keeps_ancestors_of_device_pages():
    checked = make(num_pages=4, host_pages=2)
    fill(checked, "a", [1, 2, 3, 4, 5, 6])
    checked.truncate("a", 4)
    checked.swap_out("a")
    checked.release("a")
    checked.claim("b", [9] * 8)  # in place of tokens 5 and 6, which the host can't take
    checked.release("b")
    assert checked.claim("c", [1, 2, 3, 4, 5, 6, 7]) == 4


def test_evicted_pages_are_found_on_the_host():
    checked = make(num_pages=4, max_seq_len=8, host_pages=300)
    prompts = [[i % 2, i // 2 % 2, i // 4 % 2, i // 8, 7, 7, 7] for i in range(16)]
    for prompt in prompts:
        fill(checked, "a", prompt)
        checked.release("a")
    for prompt in prompts:
        assert fill(checked, "a", prompt) == 6
        checked.release("a")
    checked.reset_prefix_cache()
    assert checked.claim("a", prompts[0]) == 0


def test_swapped_out_sequences_can_be_cut_forked_and_released():
    checked = make(host_pages=4)
    fill(checked, "a", [1, 2, 3, 4, 5])
    checked.swap_out("a")
    checked.truncate("a", 3)
    checked.fork("a", "b")
    assert checked.swap_in("b") == 2
    checked.grow("b", [9])
    checked.step(["b"])
    checked.release("b")
    assert checked.swap_in("a") == 0
    checked.release("a")
