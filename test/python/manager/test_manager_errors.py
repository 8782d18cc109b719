"""Tests of each error of page managers, which must change nothing."""

import numpy as np
import pytest
from checked_manager import fill, make
from kvcache import OutOfPagesError
from kvcache.pages.tables import CachedSequence, SequenceTable
from manager_model import Configuration, Contents

TOKENS = {
    "floats": ([1.0, 2.0], TypeError, "got an array of float64 with shape \\(2,\\)"),
    "bools": ([True], TypeError, "got an array of bool"),
    "matrix": ([[1, 2]], TypeError, "with shape \\(1, 2\\)"),
    "number": (3, TypeError, "with shape \\(\\)"),
    "text": ("abc", TypeError, "expects 'tokens' to be a sequence of integers"),
    "ragged": ([[1], [2, 3]], ValueError, "inhomogeneous shape"),
    "negative": ([1, -2], ValueError, "got -2"),
    "large": (np.array([1, 2**63], np.uint64), ValueError, "2\\^63\\), got 92233"),
    "huge": ([2**70], TypeError, "expects 'tokens' to be a sequence of integers"),
}


@pytest.mark.parametrize("kind", TOKENS)
def test_tokens_are_integers(kind):
    tokens, error, message = TOKENS[kind]
    checked = make()
    fill(checked, "a", [1, 2, 3])
    checked.misuse(error, message, "grow", "a", tokens)
    checked.misuse(error, message, "claim", "b", tokens)


BATCHES = {
    "few": ([[1]], ValueError, "expects tokens for each of 2 requests, got 1"),
    "many": ([1, 2, 3], ValueError, "expects tokens for each of 2 requests, got 3"),
    "number": (3, TypeError, "expects 'tokens' to be integers \\[batch\\] or"),
    "text": ("ab", TypeError, "or a sequence of tokens for each request, got 'ab'"),
    "cube": ([[[1]], [[2]]], TypeError, "with shape \\(1, 1\\)"),
    "floats": ([[1.0], [2.0]], TypeError, "got an array of float64"),
    "negative": ([1, -2], ValueError, "got -2"),
    "negative, ragged": ([[1], [2, -3]], ValueError, "got -3"),
    "long": ([[1], [2] * 20], ValueError, "at most 'max_seq_len' \\(16\\) tokens, got 23"),
}


@pytest.mark.parametrize("kind", BATCHES)
def test_tokens_of_a_batch(kind):
    tokens, error, message = BATCHES[kind]
    checked = make()
    for request in "ab":
        fill(checked, request, [1, 2, 3])
    checked.misuse(error, message, "grow_batch", ["a", "b"], tokens)


def test_tokens_that_were_not_drafted():
    checked = make(host_pages=4)
    for request in "ab":
        fill(checked, request, [1, 2, 3])
    checked.fork("a", "x")
    checked.grow("x", [4, 5])
    none = "request 'a' or a draft of it has after the 3 in the cache, got \\[5\\]"
    checked.misuse(ValueError, none, "commit", "a", [5], ["x"])
    checked.misuse(ValueError, "or a draft of it has", "commit", "a", [4, 5, 6], ["x"])
    checked.misuse(ValueError, "or a draft of it has", "commit", "a", [4])
    checked.misuse(ValueError, "'x' is twice", "commit", "a", [4], ["x", "x"])
    checked.misuse(ValueError, "'a' is twice", "commit", "a", [4], ["a"])
    checked.misuse(ValueError, "no request 'z'", "commit", "a", [4], ["z"])
    checked.misuse(ValueError, "no request 'z'", "commit", "z", [4])
    checked.misuse(TypeError, "array of float64", "commit", "a", [0.5], ["x"])
    checked.misuse(TypeError, "expects 'drafts' to be a seq", "commit", "a", [4], 5)
    batch = ["a", "b"], [[4], [9]]
    checked.misuse(ValueError, "request 'b'", "commit_batch", *batch, [["x"], []])
    message = "expects drafts for each of 2 requests, got 1"
    checked.misuse(ValueError, message, "commit_batch", *batch, [["x"]])
    message = "expects 'drafts' to be a sequence of drafts for each request, got 5"
    checked.misuse(TypeError, message, "commit_batch", *batch, 5)
    checked.swap_out("b")
    checked.misuse(ValueError, "'b' is swapped out", "commit", "b", [])


@pytest.mark.parametrize("name", ["match", "pages_needed", "can_claim"])
def test_invalid_queries_raise(name):
    checked = make()
    checked.misuse(TypeError, "array of float64", name, [0.5])
    checked.misuse(TypeError, "expects 'salt' to be bytes", name, [1], salt="adapter")
    checked.misuse(ValueError, "at most 'max_seq_len'", name, [1] * 17)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.uint64, np.int64])
def test_tokens_of_each_integer_type(dtype):
    manager = Configuration().make()
    manager.claim("a", np.arange(10, dtype=dtype)[::2])
    manager.grow("a", (100, 2**63 - 1))
    manager.grow("a", range(3))
    expected = [0, 2, 4, 6, 8, 100, 2**63 - 1, 0, 1, 2]
    assert manager.tokens("a").tolist() == expected


@pytest.mark.parametrize("salt", [5, "adapter", None, [1]])
def test_salts_are_bytes(salt):
    checked = make()
    checked.misuse(TypeError, "expects 'salt' to be bytes", "claim", "a", [1], salt=salt)


def test_unknown_requests_raise():
    checked = make(host_pages=4)
    for name, *rest in (
        ("grow", [1]),
        ("truncate", 0),
        ("release",),
        ("fork", "b"),
        ("swap_out",),
        ("swap_in",),
        ("tokens",),
    ):
        checked.misuse(ValueError, "there is no request 'x'", name, "x", *rest)
    for name in ("inputs", "step"):
        checked.misuse(ValueError, "there is no request 'x'", name, ["x"])
    checked.misuse(ValueError, "there is no request 'x'", "grow_batch", ["x"], [1])


def test_known_requests_are_errors():
    checked = make()
    fill(checked, "a", [1, 2, 3])
    message = "request 'a' has been claimed already"
    checked.misuse(ValueError, message, "claim", "a", [1])
    checked.misuse(ValueError, message, "fork", "a", "a")
    checked.misuse(ValueError, message, "fork", "a", "b", "a")
    twice = "request 'b' has been claimed already"
    checked.misuse(ValueError, twice, "fork", "a", "b", "b")


def test_sequences_that_are_too_long():
    checked = make(max_seq_len=5)
    message = "at most 'max_seq_len' \\(5\\) tokens, got 6"
    checked.misuse(ValueError, message, "claim", "a", [1] * 6)
    checked.claim("a", [1] * 5)
    checked.misuse(ValueError, message, "grow", "a", [1])


def test_batches_that_make_no_step():
    checked = make(max_batch_size=2, host_pages=4)
    for request in "abc":
        checked.claim(request, [1])
    for name in ("inputs", "step"):
        message = "expects 1 to 'max_batch_size' \\(2\\) requests, got "
        checked.misuse(ValueError, message + "3", name, ["a", "b", "c"])
        checked.misuse(ValueError, message + "0", name, [])
        checked.misuse(ValueError, "'a' is twice in the batch", name, ["a", "a"])
    message = "'a' is twice in the batch"
    checked.misuse(ValueError, message, "grow_batch", ["a", "b", "a"], [1, 2, 3])
    checked.step(["a"])
    checked.swap_out("b")
    message = "'b' is swapped out: swap it in first"
    checked.misuse(ValueError, message, "grow_batch", ["a", "b"], [1, 2])
    for name in ("inputs", "step"):
        checked.misuse(ValueError, "'a' has no pending tokens", name, ["c", "a"])
        checked.misuse(ValueError, "'b' is swapped out: swap it in first", name, ["c", "b"])


@pytest.mark.parametrize(
    ("length", "error", "message"),
    [
        (4, ValueError, "expects 'length' to be 0 to 3 for request 'a', got 4"),
        (-1, ValueError, "got -1"),
        (1.0, TypeError, "expects 'length' to be an integer, got 1.0"),
        (True, TypeError, "expects 'length' to be an integer, got True"),
    ],
)
def test_lengths_that_can_not_be_cut_to(length, error, message):
    checked = make()
    fill(checked, "a", [1, 2, 3])
    checked.misuse(error, message, "truncate", "a", length)


def test_pending_tokens_can_not_be_forked():
    checked = make()
    checked.claim("a", [1, 2, 3])
    message = "'a' has 3 pending tokens: step or truncate it before fork"
    checked.misuse(ValueError, message, "fork", "a", "b")


def test_operations_reject_sequences_in_a_wrong_place():
    checked = make(host_pages=4)
    fill(checked, "a", [1, 2, 3])
    checked.misuse(ValueError, "'a' is not swapped out", "swap_in", "a")
    checked.swap_out("a")
    message = "'a' is swapped out: swap it in first"
    checked.misuse(ValueError, message, "swap_out", "a")
    checked.misuse(ValueError, message, "grow", "a", [1])


@pytest.mark.parametrize("name", ["swap_out", "swap_in"])
def test_swapping_needs_its_option(name):
    checked = make()
    fill(checked, "a", [1, 2, 3])
    message = "swapping needs 'enable_kvcache_swapping_to_host'"
    checked.misuse(ValueError, message, name, "a")


def test_more_tokens_than_pages():
    checked = make(num_pages=2)
    with pytest.raises(OutOfPagesError, match="out of pages: 3 needed, 2 available"):
        checked.manager.claim("a", [1] * 5)
    checked.check_unchanged()
    assert "a" not in checked.manager
    fill(checked, "a", [1, 2, 3, 4])
    with pytest.raises(OutOfPagesError, match="1 needed, 0 available"):
        checked.manager.grow("a", [5])
    checked.check_unchanged()


def test_check_of_contents_finds_each_byte():
    """Tests the comparison of states that all tests here use."""
    manager = Configuration(format="fp8", devices=2).make()
    contents = Contents(manager)
    contents.write([3], [1], [77])
    assert not contents.find_wrong([3], [1], [77])
    assert contents.find_wrong([3], [1], [78]) == {(3, 1)}
    for slots in contents.slots:
        for place in np.ndindex(slots.shape[2:]):
            slots[(3, 1, *place)] ^= 1
            assert contents.find_wrong([3], [1], [77]) == {(3, 1)}
            slots[(3, 1, *place)] ^= 1


@pytest.mark.parametrize("kind, method", [(SequenceTable, "add"), (CachedSequence, "take")])
@pytest.mark.parametrize("call", range(3))
def test_forks_without_host_memory(monkeypatch, kind, method, call):
    checked = make()
    fill(checked, "a", [1, 2, 3, 4, 5])
    wanted = getattr(kind, method)
    calls = iter(range(3))

    def failing(self, *arguments):
        if next(calls) == call:
            raise MemoryError("no host memory")
        return wanted(self, *arguments)

    monkeypatch.setattr(kind, method, failing)
    checked.misuse(MemoryError, "no host memory", "fork", "a", "b", "c", "d")
    monkeypatch.undo()
    for name in "bcd":
        fill(checked, name, [6, 7])
        checked.release(name)
