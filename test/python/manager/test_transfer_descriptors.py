"""Tests of descriptors of the bytes of pages."""

import ctypes
import random

import numpy as np
import pytest
from kvcache import transfer
from kvcache.pages.regions import locate
from transfers import LAYOUTS, PAGE, make_cache


def list_addresses(tensor):
    """The address of each byte of a tensor, in its shape and one dimension more."""
    bytes_ = np.arange(tensor.itemsize)
    total = np.zeros((*tensor.shape, 1), np.int64) + bytes_ + tensor.ctypes.data
    for dim, (size, stride) in enumerate(zip(tensor.shape, tensor.strides, strict=True)):
        shape = [1] * (tensor.ndim + 1)
        shape[dim] = size
        total += (np.arange(size) * stride).reshape(shape)
    return total


@pytest.mark.parametrize("quantized", [False, True], ids=["plain", "quantized"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "layers, heads", [(None, None), ([0, 2], None), (None, [1]), ([1], [0])]
)
def test_descriptors_have_all_bytes_once(layout, quantized, layers, heads):
    cache = make_cache(layout=layout, quantized=quantized)
    pages = [5, 1, 2, 3]
    table = cache.descriptors(pages, layers, heads)
    got = np.concatenate([np.arange(start, start + n) for start, n, _ in table])
    wanted = [
        list_addresses(tensor)[pages][:, :, layers or slice(None)][
            ..., heads or slice(None), :, :
        ]
        for tensor in (*cache.blocks, *cache.scales)
    ]
    wanted = np.concatenate([part.reshape(-1) for part in wanted])
    assert np.array_equal(np.sort(got), np.sort(wanted))
    ends = table[:-1, 0] + table[:-1, 1]
    assert not np.any(ends == table[1:, 0])


def test_contiguous_pages_are_one_descriptor():
    cache = make_cache()
    region = cache.regions()[0]
    assert cache.descriptors([2, 3, 4, 6]).tolist() == [
        [region.address + 2 * region.page_stride, 3 * region.page_bytes, 0],
        [region.address + 6 * region.page_stride, region.page_bytes, 0],
    ]
    assert len(cache.descriptors([])) == 0


def test_heads_are_contiguous_in_some_layouts():
    per_page = {
        layout: len(make_cache(layout=layout).descriptors([1], heads=[1]))
        for layout in (None, "HND", "BHLNC")
    }
    # 2 roles, 3 layers and 4 tokens.
    assert per_page == {None: 24, "HND": 6, "BHLNC": 1}


def test_regions_describe_the_tensors():
    cache = make_cache(quantized=True)
    blocks, scales = cache.regions()
    assert (blocks.tensor, scales.tensor) == ("blocks", "scales")
    assert blocks.address == cache.blocks[0].ctypes.data
    assert blocks.page_stride == blocks.page_bytes == 2 * 3 * PAGE * 2 * 16
    assert (blocks.pages, blocks.layers, blocks.layer_stride) == (8, 3, PAGE * 2 * 16)
    assert blocks.size == cache.blocks[0].nbytes and scales.size == cache.scales[0].nbytes


def test_fingerprints_differ_for_other_formats():
    caches = [
        make_cache(),
        make_cache(layout="HND"),
        make_cache(quantized=True),
        make_cache(n_kv_heads=4),
    ]
    names = [cache.regions()[0].fingerprint for cache in caches]
    assert len(set(names)) == len(names)
    assert make_cache(num_pages=3).regions()[0].fingerprint == names[0]


@pytest.mark.parametrize("seed", range(20))
def test_pair_splits_both_ends_alike(seed):
    draw = random.Random(seed)
    memory = np.arange(4096)

    def side(total):
        rows, at = [], 0
        while total:
            length = min(total, draw.randint(1, 50))
            at += draw.randint(0, 2)
            rows.append((at, length, 0))
            at += length
            total -= length
        return np.array(rows, np.int64).reshape(-1, 3)

    def read(table):
        return np.concatenate([memory[:0], *(memory[a : a + n] for a, n, _ in table)])

    total = draw.choice([0, 1, 700])
    source, target = side(total), side(total)
    parts = transfer.pair(source, target)
    assert np.array_equal(parts[0][:, 1], parts[1][:, 1])
    for part, whole in zip(parts, (source, target), strict=True):
        assert np.array_equal(read(part), read(whole))
    follows = [part[1:, 0] == part[:-1, 0] + part[:-1, 1] for part in parts]
    assert not np.any(follows[0] & follows[1])
    if total:
        with pytest.raises(ValueError, match="as many bytes at both ends"):
            transfer.pair(source[1:], target)


def test_the_address_of_a_tensor_of_another_library():
    memory = np.arange(24, dtype=np.uint16).reshape(2, 3, 4)

    class Exchanged:
        """A tensor with DLPack only."""

        def __dlpack__(self, **options):
            return memory.transpose(0, 2, 1).__dlpack__(**options)

        def __dlpack_device__(self):
            return memory.__dlpack_device__()

    address, strides, size = locate(Exchanged())
    assert address == memory.ctypes.data and strides == (24, 2, 8) and size == 2
    assert ctypes.c_uint16.from_address(address + 2).value == 1
