"""Tests of named cases of page managers."""

import kvcache
import ml_dtypes
import numpy as np
import pytest
from checked_manager import fill, make, find_pages
from kvcache import PageAddress, PageState, Place, SequenceState
from kvcache.pages.memory import NumPyMemory
from manager_model import FORMATS, Configuration

# Memory

SHAPES = {
    "f32": ([2, 2, 3, 2, 2], np.float32, None, None),
    "bf16": ([2, 2, 3, 2, 4], ml_dtypes.bfloat16, None, None),
    "i64": ([2, 2, 3, 2, 8], np.int64, None, None),
    "u16": ([2, 2, 3, 2, 8], np.uint16, None, None),
    "fp8": ([2, 2, 3, 2, 8], ml_dtypes.float8_e4m3fn, [2, 2, 3, 2, 2], np.float32),
    "nvfp4": ([2, 2, 3, 2, 8], np.int8, [2, 2, 3, 2, 1], ml_dtypes.float8_e4m3fn),
}


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("format", FORMATS)
def test_each_device_has_zeros_for_pages_and_the_null_page(format, devices):
    """Each of two devices has one of the two heads."""
    configuration = Configuration(format=format, page_size=3, devices=devices)
    manager = configuration.make()
    shape, dtype, scale_shape, scale_dtype = SHAPES[format]
    assert len(manager.blocks) == devices
    assert len(manager.scales) == (devices if scale_shape else 0)
    for tensors, (kinds, layers, page, heads, last), element in (
        (manager.blocks, shape, dtype),
        (manager.scales, scale_shape or shape, scale_dtype),
    ):
        for tensor in tensors:
            assert tensor.shape == (9, kinds, layers, page, heads // devices, last)
            assert tensor.dtype == element
            assert not tensor.view(np.uint8).any()
    assert (manager.num_pages, manager.null_page, manager.num_host_pages) == (8, 8, 0)


def test_mla_has_one_row_for_a_token():
    (blocks,) = Configuration(is_mla=True).make().blocks
    assert blocks.shape == (9, 1, 2, 2, 1, 2)


@pytest.mark.parametrize("format", FORMATS)
def test_pages_by_bytes_fit_with_the_null_page(format):
    params = Configuration(format=format, devices=2).params
    sizes = {"max_batch_size": 1, "max_seq_len": 8}
    manager = kvcache.PagedKVCacheManager(params, num_pages=1, **sizes)
    page_bytes = sum(tensor[0].nbytes for tensor in manager.blocks + manager.scales)
    for more, expected in ((-1, 9), (0, 10), (1, 10)):
        cache_bytes = 11 * page_bytes + more
        manager = kvcache.PagedKVCacheManager(params, cache_bytes=cache_bytes, **sizes)
        assert manager.num_pages == expected
        used = sum(tensor.nbytes for tensor in manager.blocks + manager.scales)
        assert used == (expected + 1) * page_bytes


@pytest.mark.parametrize(
    ("sizes", "error", "message"),
    [
        ({}, ValueError, "expects either 'num_pages' or 'cache_bytes'"),
        ({"num_pages": 1, "cache_bytes": 999}, ValueError, "expects either"),
        ({"num_pages": 0}, ValueError, "expects 'num_pages' to be positive, got 0"),
        ({"num_pages": 1.5}, TypeError, "expects 'num_pages' to be an integer, got 1.5"),
        ({"num_pages": True}, TypeError, "expects 'num_pages' to be an integer"),
        ({"cache_bytes": 0}, ValueError, "expects 'cache_bytes' to be positive, got 0"),
        ({"cache_bytes": 255}, ValueError, "one page and the null page of 128 bytes"),
        ({"num_pages": 1, "max_batch_size": 0}, ValueError, "'max_batch_size' to be pos"),
        ({"num_pages": 1, "max_seq_len": -1}, ValueError, "'max_seq_len' to be positive"),
    ],
)
def test_sizes_that_make_no_cache(sizes, error, message):
    sizes = {"max_batch_size": 1, "max_seq_len": 8} | sizes
    with pytest.raises(error, match=message):
        kvcache.PagedKVCacheManager(Configuration().params, **sizes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"total_num_layers": None}, "needs 'total_num_layers'"),
        ({"page_size": None, "cache_strategy": "model_default"}, "needs 'page_size'"),
        ({"page_size": None, "cache_strategy": "continuous"}, "'params' of a paged"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*CONTINUOUS is deprecated")
def test_params_without_pages(options, message):
    params = {"n_kv_heads": 1, "head_dim": 2, "page_size": 2, "total_num_layers": 1}
    params = kvcache.KVCacheParams("f32", **params | options)
    with pytest.raises(ValueError, match=message):
        kvcache.PagedKVCacheManager(params, max_batch_size=1, max_seq_len=8, num_pages=1)


class CountedMemory(NumPyMemory):
    def __init__(self):
        self.uploads = []
        self.allocated = []

    def upload(self, array):
        self.uploads.append(super().upload(array))
        return self.uploads[-1]

    def allocate(self, shape, dtype):
        self.allocated.append(super().allocate(shape, dtype))
        return self.allocated[-1]


def test_tensors_come_from_the_memory():
    memory = CountedMemory()
    manager = Configuration(format="fp8", devices=2).make(memory=memory)
    manager.claim("a", [1, 2, 3])
    inputs = manager.inputs(["a"])
    for tensor in manager.blocks + manager.scales:
        assert any(allocated is tensor for allocated in memory.allocated)
    assert any(array is inputs.lut for array in memory.uploads)
    assert any(array is inputs.lengths for array in memory.uploads)
    assert any(array is inputs.placed_offsets for array in memory.uploads)
    assert inputs.placed_offsets.tolist() == inputs.row_offsets.tolist()


# Steps


def test_a_ragged_batch():
    manager = Configuration(max_seq_len=20, num_pages=20, prefix_caching=False).make()
    manager.claim("a", [5, 6, 7])
    manager.step(["a"])
    manager.grow("a", [8])
    manager.claim("b", np.array([1, 2, 3, 4, 5], np.int32))
    manager.claim("c", [9])
    inputs = manager.inputs(["c", "a", "b"])
    assert inputs.requests == ("c", "a", "b")
    assert inputs.tokens.tolist() == [9, 8, 1, 2, 3, 4, 5]
    assert inputs.positions.tolist() == [0, 3, 0, 1, 2, 3, 4]
    assert inputs.tokens.dtype == inputs.positions.dtype == np.int64
    assert inputs.row_offsets.tolist() == [0, 1, 2, 7]
    assert inputs.lengths.tolist() == [0, 3, 0]
    assert (inputs.max_seq_length, inputs.max_cache_length) == (5, 3)
    assert {inputs.row_offsets.dtype, inputs.lengths.dtype, inputs.lut.dtype} == {
        np.dtype(np.uint32)
    }
    # The longest has 3 pages, rounded up to 8, and 16 more.
    assert inputs.lut.shape == (3, 24)
    assert (inputs.lut != 20).sum(1).tolist() == [1, 2, 3]
    assert (inputs.lut[:, 3:] == 20).all()
    used = inputs.lut[inputs.lut != 20]
    assert len(set(used)) == 6


@pytest.mark.parametrize(("format", "operands"), [("bf16", 5), ("fp8", 6)])
def test_operands_of_a_collection(format, operands):
    manager = Configuration(format=format, devices=2).make()
    manager.claim("a", [5, 6, 7])
    inputs = manager.inputs(["a"])
    for device in range(2):
        collection = inputs.collection(device)
        assert len(collection) == operands
        assert collection[0] is manager.blocks[device]
        assert collection[1] is inputs.lengths
        assert collection[2] is inputs.lut
        assert collection[3:5] == (3, 0)
        assert operands == 5 or collection[5] is manager.scales[device]
    assert inputs.collection()[0] is manager.blocks[0]


def test_pending_tokens_accumulate_until_step():
    checked = make(prefix_caching=False)
    assert checked.claim("a") == 0
    checked.misuse(ValueError, "'a' has no pending tokens", "inputs", ["a"])
    assert checked.grow("a", [1, 2]) == 0
    assert checked.grow("a", [3]) == 0
    assert checked.manager.tokens("a").tolist() == [1, 2, 3]
    assert checked.manager.tokens("a").dtype == np.int64
    assert checked.manager.snapshot().sequences == (
        SequenceState("a", checked.get_pages("a"), 0, 3, True),
    )
    checked.step(["a"])
    assert checked.manager.snapshot().sequences == (
        SequenceState("a", checked.get_pages("a"), 3, 0, True),
    )


def test_requests_have_any_name():
    manager = Configuration().make()
    for request in ("a", 7, ("user", 3), None):
        assert request not in manager
        manager.claim(request, [1])
        assert request in manager
    assert len(manager) == 4
    assert manager.inputs([None, 7]).requests == (None, 7)


def test_manager_repr_has_its_counts():
    manager = Configuration().make()
    manager.claim("a", [1, 2, 3])
    assert repr(manager) == "<kvcache.PagedKVCacheManager of 8 pages, 6 free, 1 sequences>"


def test_a_batch_grows_at_once():
    checked = make(prefix_caching=False)
    for request, tokens in (("a", [1, 2, 3]), ("b", [4]), ("c", [5, 6])):
        fill(checked, request, tokens)
    checked.grow_batch(["c", "a", "b"], np.array([[7], [8], [9]], np.int32))
    checked.step(["a", "b", "c"])
    checked.grow_batch(["a", "b"], [[10, 11], [12]])
    assert checked.manager.inputs(["a", "b"]).tokens.tolist() == [10, 11, 12]
    checked.manager.grow_batch(["a", "b"], np.array([13, 14]))
    assert checked.manager.inputs(["a", "b"]).tokens.tolist() == [10, 11, 13, 12, 14]
    assert checked.manager.grow_batch([], []) is None


def test_a_batch_grows_as_a_whole_or_not_at_all():
    checked = make(num_pages=3)
    for request in "ab":
        fill(checked, request, [ord(request)] * 2)
    assert not checked.grow_batch(["a", "b"], [[1], [2]])
    assert checked.grow_batch(["b"], [[2]])


def test_forks_that_grow_in_a_batch_leave_the_page_to_the_last():
    checked = make(num_pages=4)
    fill(checked, "a", [1, 2, 3])
    checked.fork("a", "b", "c")
    page = find_pages(checked, "a")[1]
    checked.grow_batch(["b", "a", "c"], [[4], [5], [6]])
    assert [find_pages(checked, r)[1] == page for r in "bac"] == [False, False, True]
    checked.step(["a", "b", "c"])


def test_rows_are_used_again():
    manager = Configuration(prefix_caching=False, max_seq_len=400, num_pages=300).make()
    manager.claim("long", range(400))
    for i in range(100):
        manager.claim(i, [1, 2, 3])
        assert (manager.inputs([i]).lut != 300).sum() == 2
        manager.release(i)
    manager.release("long")
    manager.claim("a", [1])
    assert (manager.inputs(["a"]).lut != 300).sum() == 1


def test_stats_count_events():
    checked = make(num_pages=3, host_pages=2)
    fill(checked, "a", [1, 2, 3, 4, 5])
    checked.release("a")
    fill(checked, "b", [1, 2, 3, 4, 5])
    checked.release("b")
    for token in (6, 7):
        fill(checked, token, [token] * 6)
        checked.release(token)
    stats = checked.manager.stats
    assert (stats.tokens_looked_up, stats.tokens_found) == (22, 4)
    assert (stats.pages_evicted, stats.pages_to_host, stats.pages_from_host) == (3, 5, 0)


# Prefixes


def test_sequences_that_begin_alike_share_pages():
    checked = make()
    assert fill(checked, "a", [1, 2, 3, 4, 5]) == 0
    assert checked.claim("b", [1, 2, 3, 4, 9, 9]) == 4
    assert find_pages(checked, "a")[:2] == find_pages(checked, "b")[:2]
    assert checked.manager.num_free_pages == 8 - 3 - 1


def test_pages_outlive_their_sequences():
    checked = make()
    fill(checked, "a", [1, 2, 3, 4, 5])
    pages = find_pages(checked, "a")
    checked.release("a")
    assert checked.manager.num_free_pages == 8
    assert checked.snapshot.pages == tuple(
        PageState(PageAddress(Place.DEVICE, index), 0, True, 2)
        for index in sorted(pages[:2])
    )
    assert fill(checked, "b", [1, 2, 3, 4, 5]) == 4
    assert find_pages(checked, "b")[:2] == pages[:2]


def test_one_token_is_always_left():
    """A whole page of it is copied, except the last token."""
    checked = make(page_size=4)
    fill(checked, "a", [1, 2, 3, 4, 5, 6, 7, 8])
    assert checked.claim("b", [1, 2, 3, 4, 5, 6, 7, 8]) == 7
    assert checked.manager.inputs(["b"]).tokens.tolist() == [8]
    first, second = find_pages(checked, "b")
    assert [first] == find_pages(checked, "a")[:1]
    assert second not in find_pages(checked, "a")
    checked.step(["b"])
    assert find_pages(checked, "b") == find_pages(checked, "a")


def test_a_page_that_begins_alike_is_copied():
    checked = make(page_size=4)
    fill(checked, "a", [1, 2, 3, 4, 5, 6, 7, 8])
    fill(checked, "b", [1, 2, 3, 4, 5, 7, 7, 8])
    assert checked.claim("c", [1, 2, 3, 4, 5, 7, 1]) == 6


def test_nothing_is_shared_without_prefix_caching():
    checked = make(prefix_caching=False)
    fill(checked, "a", [1, 2, 3, 4, 5])
    assert fill(checked, "b", [1, 2, 3, 4, 5]) == 0
    assert not set(find_pages(checked, "a")) & set(find_pages(checked, "b"))
    checked.release("a")
    assert checked.manager.num_free_pages == 5
    assert len(checked.snapshot.pages) == 3


def test_salts_keep_sequences_apart():
    checked = make()
    fill(checked, "a", [1, 2, 3], b"one")
    assert fill(checked, "b", [1, 2, 3], b"two") == 0
    assert fill(checked, "c", [1, 2, 3]) == 0
    assert fill(checked, "d", [1, 2, 3], b"two") == 2
    assert find_pages(checked, "d")[0] == find_pages(checked, "b")[0]


def test_tokens_with_equal_hashes_are_different():
    one, other = (5, 7), (5 + 2**61 - 1, 7)
    assert hash(one) == hash(other)
    checked = make()
    fill(checked, "a", [*one, 1])
    assert checked.claim("b", [*other, 1]) == 0


def test_equal_tokens_after_others_differ():
    checked = make()
    fill(checked, "a", [1, 2, 3, 4, 5])
    assert checked.claim("b", [3, 4, 5]) == 0
    assert checked.claim("c", [9, 9, 3, 4, 5]) == 0


def test_equal_prompts_in_one_step_share_afterwards():
    checked = make()
    checked.claim("a", [1, 2, 3])
    checked.claim("b", [1, 2, 4])
    assert not set(find_pages(checked, "a")) & set(find_pages(checked, "b"))
    checked.step(["a", "b"])
    assert find_pages(checked, "a")[0] == find_pages(checked, "b")[0]
    assert checked.manager.num_free_pages == 8 - 3


def test_pending_tokens_can_not_be_found():
    checked = make()
    checked.claim("a", [1, 2, 3])
    assert checked.claim("b", [1, 2, 3]) == 0


def test_tokens_that_come_later_are_looked_up_too():
    checked = make()
    fill(checked, "a", [1, 2, 3, 4, 5])
    checked.claim("b")
    assert checked.grow("b", [1, 2, 3, 4, 5]) == 4
    fill(checked, "c", [1, 2])
    assert checked.grow("c", [3, 4, 6]) == 2


def test_recently_used_pages_stay_longest():
    checked = make(num_pages=3)
    for request, token in (("a", 1), ("b", 2), ("c", 3)):
        fill(checked, request, [token, token])
    pages = {request: find_pages(checked, request)[0] for request in "abc"}
    for request in ("b", "a", "c"):
        checked.release(request)
    for token, left in ((4, "ac"), (5, "c"), (6, "")):
        checked.claim(token, [token])
        kept = {p.address.index for p in checked.snapshot.pages if not p.references}
        assert kept == {pages[request] for request in left}


def test_a_prefix_loses_its_end_first():
    checked = make(num_pages=4)
    fill(checked, "a", [1, 2, 3, 4, 5, 6])
    checked.release("a")
    fill(checked, "b", [7, 7, 7, 7])
    checked.release("b")
    assert checked.claim("c", [1, 2, 3, 4, 5, 6]) == 4


def test_reset_drops_unused_pages():
    checked = make()
    fill(checked, "a", [1, 2, 3, 4])
    fill(checked, "b", [1, 2, 5, 6])
    checked.release("b")
    checked.reset_prefix_cache()
    assert checked.claim("c", [1, 2, 5, 6, 7]) == 2
    assert checked.claim("d", [1, 2, 3, 4, 7]) == 4


def test_prompts_of_any_length_are_found_but_the_last_token():
    """Also around 256 and 512 tokens: 128 pages are looked up at a time."""
    params = kvcache.KVCacheParams("bf16", 1, 8, page_size=2, total_num_layers=1, enable_prefix_caching=True)
    manager = kvcache.PagedKVCacheManager(params, max_batch_size=1, max_seq_len=601, num_pages=600)
    manager.claim("cached", range(600))
    manager.step(["cached"])
    for count in (0, 1, 2, 3, *range(254, 260), *range(510, 516), 600):
        assert manager.match(range(count)) == max(count - 1, 0)
        assert manager.match([*range(count), 1000]) == count
