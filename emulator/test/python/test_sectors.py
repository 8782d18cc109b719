"""Whole-cache operations read and write each sector of what they move once.

Lookups, lengths and offsets come on top: some of each for a warp, all of one sector. A block
writes the scales of one token. Where they end inside a sector, the block of the next token
writes the rest of it: tokens of a decode step are of different sequences, in different pages.
"""

import mmap

import numpy as np
import pytest
from devices import spread

import kvcache
from kvcache import KVCacheParams, KVCacheQuantizationConfig, PagedKVCacheManager, ir

SECTOR = 32
LAYER, PAGES, PAGE_SIZE = 1, 32, 16
LENGTHS = 21, 1, 5

# Elements, scales, heads, head size.
FORMATS = {
    "bf16": ("bf16", None, 8, 128),
    "f16": ("f16", None, 8, 64),
    "f32": ("f32", None, 8, 128),
    "fp8": ("f8E4M3FN", None, 8, 128),
    "fp8-token": ("f8E4M3FN", ("f32", 128), 8, 128),
    "fp8-group": ("f8E5M2", ("f32", 32), 8, 128),
    "int8": ("i8", ("bf16", 32), 8, 128),
    "nvfp4": ("f4E2M1FN", ("f8E4M3FN", 16), 8, 128),
    "mxfp4": ("f4E2M1FN", ("f8E8M0FNU", 32), 8, 128),
    "int4": ("i4", ("f32", 32, "f32"), 8, 128),
    "mla": ("bf16", None, 1, 576),
    "mla-fp8": ("f8E4M3FN", ("f32", 64), 1, 576),
}
# Eight tokens share their scales, and are copied together.
SHARED_BY_TOKENS = {"kivi": ("i4", ("f16", 1, "f16", 8), 8, 128)}
GROUPS = 16, 8, 24
each_format = pytest.mark.parametrize(("name", "target"), spread(FORMATS))


def aligned(shape, dtype):
    """Zeros that begin with a page, as memory of a device does with a sector."""
    bytes = int(np.prod(shape)) * dtype.itemsize
    return np.frombuffer(mmap.mmap(-1, bytes), dtype).reshape(shape)


class Step:
    """A cache, and the inputs of sequences without tokens that get so many."""

    def __init__(self, name, lengths=LENGTHS):
        dtype, scale, heads, head_dim = (FORMATS | SHARED_BY_TOKENS)[name]
        config = KVCacheQuantizationConfig(*scale) if scale else None
        self.params = KVCacheParams(
            dtype, heads, head_dim, page_size=PAGE_SIZE, total_num_layers=2,
            kvcache_quant_config=config, is_mla=name.startswith("mla"),
        )  # fmt: skip
        self.manager = PagedKVCacheManager(
            self.params, max_batch_size=16, max_seq_len=64, num_pages=PAGES
        )
        for number, length in enumerate(lengths):
            self.manager.claim(number, np.arange(length))
        self.inputs = self.manager.inputs(range(len(lengths)))
        self.dtype = kvcache.dtypes.dtype("f32" if dtype == "f32" else "bf16")
        self.has_zero_points = bool(scale) and len(scale) == 3
        self.roles = 1 if self.params.is_mla else 2

    def rows(self, *leading):
        shape = *leading, self.params.n_kv_heads_per_device, self.params.head_dim
        return [aligned(shape, self.dtype) for _ in range(self.roles)]

    def sectors_of_tokens(self, tensors, count):
        """Counts the sectors of tokens of a layer, if each token begins with a sector."""
        return sum(
            count * self.roles * -(-tensor[0, 0, 0, 0].nbytes // SECTOR)
            for tensor in tensors
        )

    def launch(self, operation, *arguments):
        """Runs an operation; returns the counts of its launch, and its number of warps."""
        operation.__dict__["program"] = kvcache.jit(
            operation.source, target=operation.target, meter=True, sanitize=False, opt_level=0
        )
        operation(self.inputs, *arguments)
        (launch,) = operation.program.launches
        return launch, np.prod(launch.grid) * -(-np.prod(launch.block) // 32)


def sectors(arrays):
    return sum(array.nbytes // SECTOR for array in arrays)


@each_format
def test_append(name, target):
    step = Step(name)
    total = sum(LENGTHS)
    append = kvcache.ops.append(step.params, target=target, dtype=step.dtype)
    rows = step.rows(total)
    launch, warps = step.launch(append, LAYER, *rows)
    assert 0 <= launch.global_sectors_read - sectors(rows) <= 11 * warps
    tensors = *step.manager.blocks, *step.manager.scales
    assert launch.global_sectors_written == step.sectors_of_tokens(tensors, total)


@each_format
def test_gather(name, target):
    step = Step(name)
    gather = kvcache.ops.gather(step.params, target=target, dtype=step.dtype)
    outputs = step.rows(len(LENGTHS), max(LENGTHS))
    launch, warps = step.launch(gather, LAYER, *outputs)
    assert launch.global_sectors_written == sectors(outputs)
    tensors = *step.manager.blocks, *step.manager.scales
    least = step.sectors_of_tokens(tensors, sum(LENGTHS))
    scales = step.sectors_of_tokens(step.manager.scales, sum(LENGTHS))
    again = scales if step.has_zero_points else 0
    assert 0 <= launch.global_sectors_read - least <= 8 * warps + again


@each_format
def test_copy_pages(name, target):
    step = Step(name)
    copy = kvcache.ops.copy_pages(step.params, target=target)
    pairs = np.array([[0, 20], [1, 21], [2, 22]], np.int32)
    launch, warps = step.launch(copy, pairs)
    tensors = *step.manager.blocks, *step.manager.scales
    least = len(pairs) * sectors([tensor[0] for tensor in tensors])
    assert launch.global_sectors_written == least
    assert 0 <= launch.global_sectors_read - least <= 4 * warps


def copy_source(source, target):
    """A function that copies the keys of a layer from a cache to another."""
    types = {}
    for name, params in (("a", source), ("b", target)):
        parts = [params.blocks_type, "memref<?xi32>", "memref<?x?xi32>", "i32", "i32"]
        parts += [params.scales_type] if params.kvcache_quant_config else []
        types |= {f"{name}{number}": part for number, part in enumerate(parts)}
    copy = ir.FunctionBuilder("copy", **types)
    layer = copy.op("arith.constant", value=f"{LAYER} : index", results="index")
    views = []
    for name, params in (("a", source), ("b", target)):
        parts = [copy[argument] for argument in types if argument[0] == name]
        names = (
            "blocks",
            "cache_lengths",
            "lookup_table",
            "max_seq_length",
            "max_cache_length",
        )
        collection = copy.op(
            "kvcache.paged_collection",
            results=params.collection_type,
            **dict(zip((*names, "scales"), parts)),
        )
        views.append(
            copy.op(
                "kvcache.paged_view",
                collection=collection,
                layer=layer,
                role=np.int32(0),
                results=params.cache_type,
            )
        )
    copy.op("kvcache.copy", source=views[0], target=views[1])
    return ir.Module.build(copy).bytecode()


@pytest.mark.parametrize(
    ("names", "target"),
    spread([
        ("bf16", "bf16"), ("f32", "bf16"), ("bf16", "fp8-group"), ("bf16", "fp8-token"),
        ("nvfp4", "bf16"), ("bf16", "nvfp4"), ("bf16", "int4"),
        *((name, name) for name, (_, scale, *_) in FORMATS.items() if scale), ("kivi", "kivi"),
    ]),
)
def test_copy(names, target):
    lengths = GROUPS if "kivi" in names else LENGTHS
    caches = [Step(name, lengths) for name in names]
    for cache in caches:
        for number in range(len(lengths)):
            cache.manager.step([number])
            cache.manager.grow(number, np.arange(1))
        cache.inputs = cache.manager.inputs(range(len(lengths)))
        cache.roles = 1
    first, second = caches
    program = kvcache.jit(
        copy_source(first.params, second.params),
        target=target,
        meter=True,
        sanitize=False,
        opt_level=0,
    )
    program.call("copy", *first.inputs.collection(0), *second.inputs.collection(0))
    (launch,) = program.launches
    warps = np.prod(launch.grid) * -(-np.prod(launch.block) // 32)
    tokens = sum(lengths)
    rows = tokens // 8 if "kivi" in names else tokens
    for cache, counted, lookups in (
        (first, launch.global_sectors_read, 8),
        (second, launch.global_sectors_written, 0),
    ):
        least = cache.sectors_of_tokens(cache.manager.blocks, tokens)
        scales = cache.sectors_of_tokens(cache.manager.scales, rows)
        assert 0 <= counted - least - scales <= lookups * warps


@pytest.mark.parametrize("name", ["gather", "copy"])
def test_grids_of_sequences_grow_along_x(name):
    grids = []
    for count in (3, 11):
        step = Step("bf16", [2] * count)
        if name == "gather":
            gather = kvcache.ops.gather(step.params, "emulator:sm_90a", step.dtype)
            launch, _ = step.launch(gather, LAYER, *step.rows(count, 20))
        else:
            source = copy_source(step.params, step.params)
            program = kvcache.jit(source, target="emulator:sm_90a", meter=True, sanitize=False, opt_level=0)
            for number in range(count):
                step.manager.step([number])
                step.manager.grow(number, np.arange(1))
            inputs = step.manager.inputs(range(count))
            target = Step("bf16", [2] * count)
            program.call("copy", *inputs.collection(0), *target.inputs.collection(0))
            (launch,) = program.launches
        grids.append(launch.grid)
    assert grids[0][1:] == grids[1][1:] == (1, 1) and 3 * grids[1][0] == 11 * grids[0][0]


@pytest.mark.parametrize("name", ["append", "merge_states", "copy_pages", "attention", "split", "tiles"])
def test_grids_grow_along_x(name):
    """A grid may have 2^31 blocks along x, but 65,535 along the others: rows, heads and pairs are along x."""
    step = Step("f32" if name in ("attention", "split") else "bf16")
    target = "emulator:sm_90a"
    grids = []
    for count in (3, 11):
        rows = step.rows(sum(LENGTHS) + count)
        q, out = (np.zeros((len(rows[0]), 16, 128), rows[0].dtype) for _ in range(2))
        if name == "append":
            launch, _ = step.launch(kvcache.ops.append(step.params, target, step.dtype), LAYER, *rows)
        elif name == "copy_pages":
            pairs = np.full((count, 2), -1, np.int32)
            launch, _ = step.launch(kvcache.ops.copy_pages(step.params, target), pairs)
        elif name == "merge_states":
            merge = kvcache.ops.merge_states(16, 128, target, step.dtype)
            program = kvcache.jit(merge.source, target=target, meter=True, sanitize=False, opt_level=0)
            lses = np.zeros((1, *q.shape[:2]), np.float32)
            program.call("merge_states", q[None], lses, out, lses[0].copy())
            (launch,) = program.launches
        else:
            options = {"split_tokens": 16, "max_splits": 4} if name == "split" else {}
            attend = kvcache.ops.attention(step.params, 16, target=target, dtype=step.dtype, **options)
            program = kvcache.jit(attend.source, target=target, meter=True, sanitize=False, opt_level=0)
            more = [np.zeros(attend.workspace_size(len(LENGTHS)), np.int8)] if options else []
            offsets = step.inputs.row_offsets.view(np.int32)
            lse = np.zeros(q.shape[:2], np.float32)
            program.call(
                "attention", *step.inputs.collection(0), LAYER, q, offsets, out, lse, 1.0, *more
            )
            launch = program.launches[0]
        grids.append(launch.grid)
    assert grids[0][1:] == grids[1][1:] and grids[0][0] <= grids[1][0]
    assert name in ("split", "tiles") or grids[0][0] < grids[1][0]
