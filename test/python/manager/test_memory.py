"""Tests of the memories of a cache: NumPy's, and those of array libraries."""

import dataclasses
import mmap
import os
import re
import types
from pathlib import Path

import kvcache
import ml_dtypes
import numpy as np
import pytest
from kvcache import ArrayMemory, NoMemory, NumPyMemory, dtypes
from kvcache.devices import placement
from manager_model import Configuration

DTYPES = [
    np.dtype(dtype)
    for dtype in (
        np.float32,
        np.float16,
        ml_dtypes.bfloat16,
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.float8_e5m2,
        ml_dtypes.float8_e8m0fnu,
        np.int8,
        np.uint32,
    )
]


class DeviceArray:
    """An array that only its library can use, like one on a GPU."""

    def __init__(self, data, dtype):
        self._data, self.dtype = data, dtype

    @property
    def shape(self):
        return self._data.shape

    def __getitem__(self, index):
        return type(self)(self._data[index], self.dtype)

    def __setitem__(self, index, value):
        if type(value) is not type(self):
            raise TypeError(f"implicit conversion of {type(value)} is not allowed")
        assert value.dtype == self.dtype
        self._data[index] = value._data

    def __array__(self, *args, **kwargs):
        raise TypeError("implicit conversion to a NumPy array is not allowed")


class CuPyArray(DeviceArray):
    """A library like CuPy: its dtypes are NumPy's, and ``get`` downloads."""

    def view(self, dtype):
        return CuPyArray(self._data.view(dtype), np.dtype(dtype))

    def get(self):
        return self._data.copy()


def make_cupy():
    names = ("float32", "float16", "int8", "uint8", "uint16", "uint32")
    return types.SimpleNamespace(
        __name__="cupy",
        zeros=lambda shape, dtype: CuPyArray(np.zeros(shape, dtype), np.dtype(dtype)),
        asarray=lambda array: CuPyArray(array.copy(), array.dtype),
        **{name: getattr(np, name) for name in names},
    )


class TorchDType:
    """A library like PyTorch: its dtypes are other objects than NumPy's."""

    def __init__(self, numpy_dtype):
        self.numpy_dtype = numpy_dtype


class TorchTensor(DeviceArray):
    """``cpu`` downloads to a tensor, which DLPack exports."""

    device = "cuda"

    def view(self, dtype):
        return TorchTensor(self._data.view(dtype.numpy_dtype), dtype)

    def cpu(self):
        host = TorchTensor(self._data.copy(), self.dtype)
        host.device = "cpu"
        return host

    def __dlpack__(self, **options):
        if self.device != "cpu":
            raise BufferError("this tensor is not in host memory")
        return self._data.__dlpack__(**options)

    def __dlpack_device__(self):
        return (1, 0) if self.device == "cpu" else (2, 0)


def make_torch(*missing):
    """PyTorch without some of its dtypes."""
    known = {
        np.dtype(dtype).name: TorchDType(np.dtype(dtype))
        for dtype in [*DTYPES, np.uint8, np.uint16, np.int16, np.int32]
    }
    by_dtype = {dtype.numpy_dtype: dtype for dtype in known.values()}

    def zeros(shape, *, dtype, device):
        assert device == "cuda:1"
        return TorchTensor(np.zeros(shape, dtype.numpy_dtype), dtype)

    def asarray(array, *, device):
        # Memory may be shared as on the CPU, except read-only memory.
        assert device == "cuda:1" and array.flags.writeable
        return TorchTensor(array, by_dtype[array.dtype])

    present = {name: dtype for name, dtype in known.items() if name not in missing}
    return types.SimpleNamespace(__name__="torch", zeros=zeros, asarray=asarray, **present)


MEMORIES = {
    "numpy": NumPyMemory(),
    "numpy library": ArrayMemory(np),
    "cupy": ArrayMemory(make_cupy()),
    "torch": ArrayMemory(make_torch(), device="cuda:1"),
}
each_memory = pytest.mark.parametrize("memory", MEMORIES.values(), ids=MEMORIES.keys())
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def random_page(dtype, shape=(2, 3, 4)):
    bits = np.random.default_rng(7).integers(0, 256, (*shape, dtype.itemsize), np.uint8)
    return bits.view(dtype).reshape(shape)


def read(memory, tensor, page, dtype):
    into = np.full(tensor.shape[1:], 1, np.int8).astype(dtype)
    memory.read_page(tensor, page, into)
    return into.view(np.uint8)


@each_memory
@each_dtype
def test_tensors_begin_as_zeros(memory, dtype):
    tensor = memory.allocate((3, 2, 3, 4), dtype)
    assert tuple(tensor.shape) == (3, 2, 3, 4)
    for page in range(3):
        assert not read(memory, tensor, page, dtype).any()


@each_memory
@each_dtype
def test_pages_keep_their_bits(memory, dtype):
    tensor = memory.allocate((4, 2, 3, 4), dtype)
    values = random_page(dtype)
    bits = values.view(np.uint8).copy()
    memory.write_page(tensor, 1, values)
    values.view(np.uint8)[...] = 0
    memory.copy_page(tensor, 1, 3)
    for page, expected in enumerate([bits * 0, bits, bits * 0, bits]):
        np.testing.assert_array_equal(read(memory, tensor, page, dtype), expected)
    memory.write_page(tensor, 1, values)
    np.testing.assert_array_equal(read(memory, tensor, 3, dtype), bits)


@each_memory
def test_pages_come_from_any_host_memory(memory):
    values = np.arange(24, dtype=np.float32).reshape(4, 6).T
    tensor = memory.allocate((2, 6, 4), values.dtype)
    memory.write_page(tensor, 1, values)
    into = np.zeros((6, 4), np.float32)
    memory.read_page(tensor, 1, into)
    np.testing.assert_array_equal(into, values)


@each_memory
def test_uploads_are_copies(memory):
    array = np.arange(24, dtype=np.uint32).reshape(4, 6)[:, ::2]
    expected = array.copy()
    tensor = memory.upload(array)
    array[...] = 0
    assert tuple(tensor.shape) == (4, 3)
    for page in range(4):
        into = np.zeros(3, np.uint32)
        memory.read_page(tensor, page, into)
        np.testing.assert_array_equal(into, expected[page])


@each_memory
def test_uploads_of_read_only_arrays(memory):
    array = np.array([[3, 1, 4]], np.uint32)
    array.flags.writeable = False
    into = np.zeros(3, np.uint32)
    memory.read_page(memory.upload(array), 0, into)
    np.testing.assert_array_equal(into, [3, 1, 4])


@pytest.mark.parametrize(
    "dtype, kept",
    [
        (ml_dtypes.bfloat16, "uint16"),
        (ml_dtypes.float8_e4m3fn, "uint8"),
        (np.float16, "float16"),
    ],
)
def test_dtypes_that_a_library_lacks_are_integers(dtype, kept):
    tensor = MEMORIES["cupy"].allocate((1, 8), np.dtype(dtype))
    assert tensor.dtype.name == kept and tensor.shape == (1, 8)


def test_dtypes_that_a_library_has_are_its_own():
    library = make_torch()
    tensor = ArrayMemory(library, device="cuda:1").allocate((1, 8), DTYPES[2])
    assert tensor.dtype is library.bfloat16


def test_signed_integers_replace_missing_unsigned_ones():
    library = make_torch("uint32")
    tensor = ArrayMemory(library, device="cuda:1").upload(np.array([7], np.uint32))
    assert tensor.dtype is library.int32


def test_a_library_without_a_fitting_dtype():
    memory = ArrayMemory(make_torch("uint32", "int32"), device="cuda:1")
    with pytest.raises(TypeError, match="torch has no dtype for uint32"):
        memory.allocate((1, 8), np.dtype(np.uint32))


@each_dtype
def test_numpy_memory_needs_no_copies_on_the_emulator(dtype):
    memory = NumPyMemory()
    tensors = [memory.allocate((3, 5), dtype), memory.upload(random_page(dtype)[0, :2])]
    for tensor in tensors:
        assert tensor.ctypes.data % 4096 == 0
    with placement.aligned_arrays(tensors, 256) as placed:
        assert all(a is b for a, b in zip(placed, tensors, strict=True))


def resident_pages():
    return int(Path("/proc/self/statm").read_text().split()[1])


def test_unwritten_numpy_memory_takes_no_space():
    before = resident_pages()
    tensor = NumPyMemory().allocate((1 << 10, 1 << 20), np.dtype(np.int8))  # 1 GiB
    tensor[-1] = 1
    assert tensor[-1].sum() == 1 << 20 and not tensor[0].any()
    assert (resident_pages() - before) * mmap.PAGESIZE < 64 << 20


def find_flags(address):
    """The kernel's flags of the mapping that has an address."""
    is_inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if found := re.match("([0-9a-f]+)-([0-9a-f]+) ", line):
            begin, end = (int(number, 16) for number in found.groups())
            is_inside = begin <= address < end
        elif is_inside and line.startswith("VmFlags:"):
            return line.split()
    return []


@pytest.mark.skipif(
    not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="the kernel has no huge pages"
)
def test_numpy_memory_asks_for_huge_pages():
    """Without them, a decode step takes a quarter longer."""
    tensor = NumPyMemory().allocate((64, 1 << 20), np.dtype(np.int8))
    assert "hg" in find_flags(tensor.ctypes.data)


def test_numpy_memory_of_no_pages():
    assert NumPyMemory().allocate((0, 2, 3), dtypes.dtype("bf16")).shape == (0, 2, 3)


@pytest.mark.parametrize("pages", [1 << 50, 1 << 70])
def test_numpy_memory_raises_without_room(pages):
    message = rf"no room for a tensor of {pages * 8} bytes, \({pages}, 4\) of float16"
    with pytest.raises(MemoryError, match=message):
        NumPyMemory().allocate((pages, 4), np.dtype(np.float16))


def read_overcommit():
    return int(Path("/proc/sys/vm/overcommit_memory").read_text())


@pytest.mark.skipif(read_overcommit() == 2, reason="the system reserves all memory")
def test_a_cache_may_be_larger_than_the_memory():
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    pages = 4 * total // 2**20
    tensor = NumPyMemory().allocate((pages, 2**20), np.dtype(np.uint8))
    tensor[-1] = 7
    assert tensor[0, 0] == 0 and tensor[-1, -1] == 7


def test_a_plan_needs_no_memory():
    """Decisions equal those of a manager with memory, also if pages move and are copied."""
    params = Configuration(page_size=2, host_pages=3).params
    sizes = {"max_batch_size": 4, "max_seq_len": 16, "num_pages": 4}
    managers = [
        kvcache.PagedKVCacheManager(params, **sizes, memory=memory)
        for memory in (NumPyMemory(), NoMemory())
    ]
    for manager in managers:
        manager.claim("a", [1, 2, 3])
        manager.step(["a"])
        manager.fork("a", "b")
        manager.grow_batch(["a", "b"], [4, 5])
        manager.step(["a", "b"])
        manager.swap_out("a")
        manager.claim("c", [6, 7])
        manager.release("c")
        manager.swap_in("a")
    real, planned = managers
    assert real.snapshot() == planned.snapshot()
    assert real.stats.pages_from_host and real.stats == planned.stats
    for tensor, other in zip(real.blocks, planned.blocks, strict=True):
        assert (tensor.shape, tensor.dtype) == (other.shape, other.dtype)
        assert not other.any() and not other.flags.writeable


def test_a_plan_may_be_of_any_size():
    params = dataclasses.replace(
        Configuration(page_size=16, format="bf16").params,
        n_kv_heads=8, head_dim=128, total_num_layers=80,
    )  # fmt: skip
    manager = kvcache.PagedKVCacheManager(
        params,
        max_batch_size=1,
        max_seq_len=2**20,
        cache_bytes=2**40,
        memory=NoMemory(),
    )
    manager.claim("a", np.zeros(2**20, np.int64))
    assert manager.num_pages == 2**40 // (5 * 2**20) - 1
    assert manager.inputs(["a"]).lut.shape == (1, 2**16 + 16)


# --- The disk ---------------------------------------------------------------------


def make_tiers(**options):
    configuration = Configuration(num_pages=2, host_pages=2)
    return kvcache.PagedKVCacheManager(
        configuration.params, max_batch_size=4, max_seq_len=16, num_pages=2, **options
    )


def test_pages_move_to_the_disk_and_back(tmp_path):
    gib = 2.5 * Configuration().params.bytes_per_block / 2**30
    cache = make_tiers(disk_folder=tmp_path, disk_space_gb=gib)
    for first in range(0, 60, 10):
        cache.claim("r", [first, first + 1, 0])
        cache.blocks[0][cache.inputs(["r"]).lut[0, 0]] = first
        cache.step(["r"])
        cache.release("r")
    places = [page.address.place for page in cache.snapshot().pages]
    assert [places.count(place) for place in kvcache.Place] == [1, 2, 2]
    assert (cache.stats.pages_to_disk, cache.stats.pages_evicted) == (3, 1)
    # 10 and 20 are on the disk, and 0 is gone; 20 goes when 10 comes.
    for first in (10, 50, 40):
        assert cache.claim("r", [first, first + 1, 0]) == 2
        assert (cache.blocks[0][cache.inputs(["r"]).lut[0, 0]] == first).all()
        cache.release("r")
    assert cache.match([0, 1, 0]) == 0
    assert not list(tmp_path.iterdir()), "the file has no name"
    assert "disk: 2 pages" in cache._repr_svg_()


@pytest.mark.parametrize(
    "options, message",
    [
        ({"disk_folder": "/tmp"}, "expects both 'disk_folder' and 'disk_space_gb'"),
        ({"disk_folder": "/tmp", "disk_space_gb": 1e-9}, "to hold at least one page"),
        ({"disk_folder": "/tmp", "disk_space_gb": 0}, "'disk_space_gb' to be positive"),
        ({"disk_folder": "/tmp", "disk_space_gb": 1e300}, "'disk_space_gb' to be below 2.33"),
        ({"disk_folder": "", "disk_space_gb": 1}, "'disk_folder' to name a folder, got ''"),
    ],
)
def test_invalid_disks_are_errors(options, message):
    with pytest.raises(ValueError, match=message):
        make_tiers(**options)


def test_a_disk_needs_a_swap_space():
    with pytest.raises(ValueError, match="'disk_folder' needs 'enable_kvcache_swapping_to"):
        kvcache.PagedKVCacheManager(
            Configuration().params, max_batch_size=1, max_seq_len=8, num_pages=2,
            disk_folder="/tmp", disk_space_gb=1,
        )  # fmt: skip


def test_full_disk_raises_at_once(monkeypatch):
    def refuse(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", refuse)
    with pytest.raises(OSError, match="allocate the .* of 'disk_space_gb': No space left on device: '/tmp'"):
        make_tiers(disk_folder="/tmp", disk_space_gb=1)


def test_missing_disk_folder_is_named(tmp_path):
    folder = tmp_path / "none"
    with pytest.raises(FileNotFoundError, match=f"'disk_folder': No such file or directory: '{folder}'$"):
        make_tiers(disk_folder=folder, disk_space_gb=1)
