"""The kernels of the benchmarks: what they compute, on the CPU and the chips of the emulator."""

import functools

import kvcache
import ml_dtypes
import numpy as np
import pytest
from devices import TARGETS
from gpu import emulate
from gpu.inputs import PAGE_SIZE, SMALL
from gpu.works import WORKS
from places import KERNELS
from programs import DTYPES
from quantization import ELEMENTS, SCALES, check_encodings, quantize


@functools.cache
def compile_kernel(name, target):
    return kvcache.jit(KERNELS / f"{name}.mlir", target=target)


def hide_unused(case):
    """Makes NaNs of the elements that no token has, and ids of no page of table entries past a length."""
    lut, lengths, layer = case.arrays["lut"], case.arrays["lengths"], case.numbers["layer"]
    is_used = np.zeros((len(case.arrays["blocks"]), PAGE_SIZE), bool)
    for row, length in zip(lut, lengths):
        tokens = np.arange(length)
        is_used[row[tokens // PAGE_SIZE], tokens % PAGE_SIZE] = True
        row[-(-length // PAGE_SIZE) :] = -1
    for name in {"blocks", "scales"} & case.arrays.keys():
        array = case.arrays[name]
        nan = {1: 0x7F, 2: 0x7FFF, 4: np.nan}[array.itemsize]
        rows = array[:, :, layer].swapaxes(1, 2)
        rows[~is_used] = nan
        array[:, :, np.arange(array.shape[2]) != layer] = nan


@pytest.mark.parametrize(
    ("name", "target"),
    [
        *((name, target) for name in WORKS for target in TARGETS),
        *((name, "cpu") for name in WORKS if name not in ("append_fp8", "decode")),
    ],
)
def test_results_are_those_of_numpy(name, target):
    work = WORKS[name]
    case = work.make_case("edges", SMALL)
    if name not in ("append_fp8", "sparse_rows"):
        hide_unused(case)
    expected = work.reference(case)
    arguments = emulate.list_arguments(KERNELS / f"{name}.mlir", name, case)
    compile_kernel(name, target).call(name, *arguments)
    assert work.compare(expected, {name: case.arrays[name] for name in case.outputs}) is None


@pytest.mark.parametrize("target", ["cpu", *TARGETS])
@pytest.mark.parametrize("page_size", [1, 48])
def test_dynamic_gather_has_any_page_size(page_size, target):
    rng = np.random.default_rng(page_size)
    lengths = np.array([19, 0, 11], np.uint32)
    columns, layer = 24 // page_size + 1, 1
    pages = 3 * columns
    bits = rng.integers(0, 2**16, (pages, 2, 2, page_size, 8, 128), np.uint16)
    lut = rng.permutation(pages).reshape(3, columns).astype(np.uint32)
    out = np.full((3, 21, 8, 128), 7, np.uint16)
    view = functools.partial(np.ndarray.view, dtype=ml_dtypes.bfloat16)
    program = compile_kernel("gather_dynamic", target)
    program.call("gather_dynamic", view(bits), lengths, lut, 1, 19, layer, view(out))
    for b, length in enumerate(lengths):
        t = np.arange(length)
        expected = bits[lut[b, t // page_size], 0, layer, t % page_size]
        np.testing.assert_array_equal(out[b, :length], expected)
        assert not out[b, length:].any()


@pytest.mark.parametrize("target", ["cpu", *TARGETS])
@pytest.mark.parametrize("tiles", [0, 1, 4])
def test_sparse_rows_of_no_page_are_zeros(target, tiles):
    rng = np.random.default_rng(tiles)
    pages, layer, columns = 5, 1, 576
    count = pages * PAGE_SIZE
    blocks = np.full((pages, 1, 2, PAGE_SIZE, 1, columns), np.nan, ml_dtypes.bfloat16)
    blocks[:, :, layer] = rng.integers(-8, 9, (pages, 1, PAGE_SIZE, 1, columns))
    ids = rng.choice([*range(count), -1, count, -(2**31), 2**31 - 1], (2, 64 * tiles)).astype(np.int32)
    ids[:, -10:] = -1
    out = np.full((2, columns // 2), np.nan, np.float32)
    table = np.zeros(1, np.int32), np.full((1, 1), -1, np.int32)  # neither is read
    compile_kernel("sparse_rows", target).call("sparse_rows", blocks, *table, 1, count, layer, ids, out)
    rows = blocks[:, 0, layer].reshape(count, columns).astype(np.float32)
    is_row = (ids >= 0) & (ids < count)
    found = np.where(is_row[..., None], rows[np.where(is_row, ids, 0)], 0)
    np.testing.assert_array_equal(out, found.reshape(*ids.shape, columns // 2, 2).sum(axis=(1, 3)))


@pytest.mark.parametrize("target", TARGETS)
def test_append_quantizes_any_number(target):
    rng = np.random.default_rng(3)
    heads, size, group, layers, layer, pages = 8, 128, 64, 3, 1, 6
    lut = rng.permutation(pages).reshape(2, 3).astype(np.uint32)
    # New tokens of both sequences in turn: the first and the last of a page, and others.
    sequences = np.array([0, 1, 0, 1, 0], np.uint32)
    positions = np.array([15, 0, 16, 47, 17], np.uint32)
    shape = (2, len(positions), heads, size)
    new = rng.normal(size=shape) * np.exp2(rng.uniform(-20, 20, shape[:3]))[..., None]
    new[0, 0, 0], new[1, 1, 2, :group], new[0, 2, 3, 70], new[1, 2, 3, 5] = 0, -0.0, np.inf, np.nan
    new = new.astype(DTYPES["bf16"])
    blocks = rng.integers(0, 127, (pages, 2, layers, PAGE_SIZE, heads, size), np.uint8)
    scales = rng.normal(size=(*blocks.shape[:-1], size // group)).astype(np.float32)
    values, new_scales = quantize(new.astype(np.float32), group, ELEMENTS["f8E4M3FN"], SCALES["f32"])
    stored = blocks.view(DTYPES["f8E4M3FN"])
    expected, expected_scales = stored.astype(np.float32), scales.copy()
    at = (lut[sequences, positions // PAGE_SIZE], slice(None), layer, positions % PAGE_SIZE)
    expected[at] = values.swapaxes(0, 1)
    expected_scales[at] = new_scales.swapaxes(0, 1)
    lengths = np.array([18, 48], np.uint32)
    program = compile_kernel("append_fp8", target)
    program.call("append_fp8", stored, lengths, lut, 0, 48, scales, layer, new, sequences, positions)
    check_encodings(ELEMENTS["f8E4M3FN"], blocks, expected)
    np.testing.assert_array_equal(scales, expected_scales)
