"""Tests of asynchronous swaps by CUDA's driver, on a stand-in that delays work as long as possible."""

import gc
import types

import kvcache
import numpy as np
import pytest
import standin
from kvcache.devices import tensors
from manager_model import FORMATS, Configuration
from standin import succeed

TOKENS = [1, 2, 3, 4, 5]


def bindings():
    from cuda.bindings import driver

    return driver


class Tensor:
    """A library's array in a GPU's memory."""

    device = 1

    def __init__(self, data, owner):
        self.data, self.owner = data, owner

    @property
    def shape(self):
        return self.data.shape

    def view(self, dtype):
        return Tensor(self.data.view(dtype), self.owner)

    def reshape(self, *shape):
        return Tensor(self.data.reshape(*shape), self.owner)

    def transpose(self, *axes):
        return Tensor(self.data.transpose(*axes), self.owner)

    def __getitem__(self, index):
        return Tensor(self.data[index], self.owner)

    def __setitem__(self, index, value):
        assert isinstance(value, Tensor), "an implicit conversion"
        self.data[index] = value.data

    def __dlpack__(self, **options):
        placed = tensors.place(self.data, self.data.ctypes.data, self.device)
        return placed.__dlpack__(**options)

    def __dlpack_device__(self):
        return (2, self.device)


def make_library():
    def asarray(array):
        owner = standin.DeviceArray(array, Tensor.device)
        # The stand-in's memory is the host's.
        memory = np.ctypeslib.as_array(
            (np.ctypeslib.as_ctypes_type(np.uint8) * array.nbytes).from_address(
                owner.address
            )
        )
        return Tensor(memory.view(array.dtype).reshape(array.shape), owner)

    return types.SimpleNamespace(
        __name__="library",
        zeros=lambda shape, dtype: asarray(np.zeros(shape, dtype)),
        asarray=asarray,
        **{f"uint{bits}": getattr(np, f"uint{bits}") for bits in (8, 16, 32, 64)},
        float32=np.float32,
    )


@pytest.fixture
def driver(old_objects_stay):
    fake = standin.get()
    fake.reset()
    succeed(bindings().cuInit(0))
    context = succeed(bindings().cuDevicePrimaryCtxRetain(Tensor.device))
    succeed(bindings().cuCtxSetCurrent(context))
    yield fake
    gc.collect()
    fake.reset()


@pytest.fixture
def stream(driver):
    """The stream of the kernels, which does not wait for others."""
    return succeed(bindings().cuStreamCreate(1))


def make(stream, params=None):
    """A cache with a sequence, whose pages have random bytes."""
    options = {} if stream is None else {"stream": lambda: stream}
    cache = kvcache.PagedKVCacheManager(
        params or Configuration(host_pages=4).params, max_batch_size=4, max_seq_len=16,
        num_pages=6, memory=kvcache.CUDAMemory(make_library(), **options),
    )  # fmt: skip
    rng = np.random.default_rng(0)
    for bits in list_bits(cache):
        bits[...] = rng.integers(0, 200, bits.shape)
    cache.claim("a", TOKENS)
    cache.step(["a"])
    return cache


def list_bits(cache):
    """The elements of all pages as integers."""
    arrays = [tensor.data for tensor in (*cache.blocks, *cache.scales)]
    return [array.view(f"u{array.itemsize}") for array in arrays]


def find_pages(cache):
    (state,) = (s for s in cache.snapshot().sequences if s.request == "a")
    assert {address.place for address in state.pages} == {kvcache.Place.DEVICE}
    return [address.index for address in state.pages]


def read(cache):
    return [bits[find_pages(cache)].copy() for bits in list_bits(cache)]


def scribble(cache):
    for bits in list_bits(cache):
        bits[...] = 201


def fill(cache, stream, value):
    """Enqueues a kernel that writes to the sequence's first page."""
    page = cache.blocks[0].data[find_pages(cache)[0]].view(np.uint8).reshape(-1)
    succeed(bindings().cuMemsetD8Async(page.ctypes.data, value, page.nbytes, stream or 0))
    return page


def layouts():
    plain = [Configuration(format=name, host_pages=4).params for name in FORMATS]
    hnd, blhnc, lbnhc = map(kvcache.Layout.from_name, ("HND", "BLHNC", "LBNHC"))
    return [*plain, *(plain[0].with_layout(layout) for layout in (hnd, blhnc, lbnhc))]


@pytest.mark.parametrize("way_out", ["swap_out", "begin_swap_out"])
@pytest.mark.parametrize("way_in", ["swap_in", "begin_swap_in"])
@pytest.mark.parametrize("params", layouts(), ids=[*FORMATS, "HND", "BLHNC", "LBNHC"])
def test_pages_round_trip_bit_for_bit(stream, params, way_out, way_in):
    cache = make(stream, params)
    assert isinstance(cache.memory, kvcache.AsyncMemory)
    before = read(cache)
    for way in (way_out, way_in):
        if swap := getattr(cache, way)("a"):
            assert not swap.poll()
            swap.wait()
        if way is way_out:
            scribble(cache)
    for one, other in zip(before, read(cache), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("is_default", [False, True])
def test_copies_run_after_earlier_and_with_later_work(stream, is_default):
    stream = None if is_default else stream
    cache = make(stream)
    word = make_library().asarray(np.zeros(1, np.uint32))
    page = fill(cache, stream, 7)
    swap = cache.begin_swap_out("a")
    succeed(bindings().cuMemsetD8Async(word.data.ctypes.data, 1, 4, stream or 0))
    assert not (page == 7).any() and not swap.poll(), "polled too rarely"
    swap.wait()
    assert (page == 7).all() and not word.data.any()
    scribble(cache)
    back = cache.begin_swap_in("a")
    assert not word.data.any()
    back.wait()
    assert word.data.all(), "kernels may still have read what the pages had"
    assert (fill(cache, stream, 8) == 7).all()


def test_contiguous_pages_are_one_copy(stream, driver):
    cache = make(stream)
    driver.calls()
    cache.begin_swap_out("a").wait()
    copies = [call for call in driver.calls() if "Memcpy" in call]
    assert copies == [f"cuMemcpyAsync({3 * cache.params.bytes_per_block}, stream)"]


def test_host_memory_is_pinned_while_it_lives(stream, driver):
    driver.calls()
    cache = make(stream)
    size = 4 * cache.params.bytes_per_block
    assert f"cuMemHostRegister({size}, 1)" in driver.calls()
    cache.begin_swap_out("a")  # without a poll
    del cache
    gc.collect()
    calls = driver.calls()
    assert calls.index("cuEventSynchronize()") < calls.index("cuMemHostUnregister(memory)")
    assert "cuStreamDestroy(stream)" in calls


def test_without_swapping_nothing_is_pinned(stream, driver):
    driver.calls()
    make(stream, Configuration().params)
    assert not [call for call in driver.calls() if "HostRegister" in call]


@pytest.mark.parametrize("way", ["out", "in"])
@pytest.mark.parametrize(
    "function", ["cuMemcpyAsync", "cuEventRecord", "cuStreamWaitEvent", "cuEventCreate"]
)
def test_a_swap_that_does_not_begin_changes_nothing(stream, driver, way, function):
    cache = make(stream)
    before = read(cache)
    if way == "in":
        cache.swap_out("a")
    state, free = cache.snapshot(), cache.num_free_pages
    for name in (f"begin_swap_{way}", f"swap_{way}"):
        with driver.failing(function, 719):
            with pytest.raises(
                kvcache.CheckError, match=f"copy of pages: {function}: .*unspecified launch"
            ):
                getattr(cache, name)("a")
        assert cache.snapshot() == state and cache.num_free_pages == free
    getattr(cache, f"begin_swap_{way}")("a").wait()
    if way == "out":
        scribble(cache)
        cache.swap_in("a")
    np.testing.assert_array_equal(read(cache), before)


@pytest.mark.parametrize("way", ["out", "in"])
def test_a_swap_that_fails_changes_nothing(stream, driver, way):
    cache = make(stream)
    before = read(cache)
    if way == "in":
        cache.swap_out("a")
    state, free = cache.snapshot(), cache.num_free_pages
    swap = getattr(cache, f"begin_swap_{way}")("a")
    with driver.failing("cuEventQuery", 719):
        with pytest.raises(kvcache.CheckError, match="copy of pages: cuEventQuery: "):
            swap.poll()
    assert cache.snapshot() == state and cache.num_free_pages == free and swap.poll()
    getattr(cache, f"begin_swap_{way}")("a").wait()
    if way == "out":
        cache.swap_in("a")
    np.testing.assert_array_equal(read(cache), before)


def test_host_memory_that_can_not_be_pinned(stream, driver):
    with driver.failing("cuMemHostRegister", 2):
        with pytest.raises(
            kvcache.CheckError,
            match="pinned memory for swaps: cuMemHostRegister of .* out of memory",
        ):
            make(stream)
