"""Tensor copies written by hand.

A test describes a tile, a descriptor and a copy. `compile_copy` makes a kernel of one thread block
from them, which returns the tile's bytes, or writes a tile to the cache.
"""

import functools
from dataclasses import dataclass

import ml_dtypes
import numpy as np
from quantized_programs import PACKED
from swizzles import NAMES, SWIZZLES

import kvcache

TARGETS = ("emulator:sm_90a", "emulator:sm_100a")

THREADS = 64
BF16 = np.dtype(ml_dtypes.bfloat16)


@dataclass(frozen=True)
class Kind:
    """The types of a cache; without ``page_size``, of a continuous one."""

    dtype: str = "bf16"
    heads: int = 3
    head_size: int = 128
    page_size: int | None = 16
    mla: bool = False
    scale: str = ""
    granularity: int = 0

    @property
    def stored(self):
        """The type of the blocks' elements, and their number in a head."""
        if self.dtype in PACKED:
            return "i8", self.head_size // 2
        return self.dtype, self.head_size

    @property
    def numbers(self):
        """The number of scales and zero points of a head."""
        groups = -(-self.head_size // max(self.granularity, 1))
        return 2 * groups if self.dtype == "i4" else groups

    @property
    def text(self):
        mla = ", is_mla = true" if self.mla else ""
        kv = f"#kvcache.params<num_heads = {self.heads}, head_size = {self.head_size}{mla}>"
        page = f", page_size = {self.page_size}" if self.page_size else ""
        if self.scale:
            page += f", scale = {self.scale}, granularity = {self.granularity}"
        if self.dtype == "i4":
            page += f", zero_point = {self.scale}"
        name = "paged" if self.page_size else "continuous"
        roles = 1 if self.mla else 2
        tokens = self.page_size or "?"
        stored, size = self.stored
        return f"""
!collection = !kvcache.{name}_collection<{self.dtype}, {kv}{page}>
!cache = !kvcache.{name}<{self.dtype}, {kv}{page}>
!blocks = memref<?x{roles}x?x{tokens}x{self.heads}x{size}x{stored}, strided<[?, ?, ?, {self.heads * size}, {size}, 1], offset: ?>>
!scales = memref<?x{roles}x?x{tokens}x{self.heads}x{self.numbers}x{self.scale or "f32"}>
!lut = memref<{"?x?" if self.page_size else "?"}xi32>
"""


@dataclass(frozen=True)
class Tile:
    rows: int
    columns: int
    dtype: str = "bf16"
    swizzle: str = "none"

    @property
    def numpy(self):
        return np.dtype(kvcache.dtypes.dtype(self.dtype))

    @property
    def span(self):
        """The number of elements of a row of a chunk."""
        return self.columns if self.swizzle == "none" else SWIZZLES[self.swizzle] // self.numpy.itemsize

    @property
    def num_bytes(self):
        return -(-self.columns // self.span) * self.span * self.rows * self.numpy.itemsize

    def __str__(self):
        return f"!kvcache.tile<{self.rows}x{self.columns}x{self.dtype}{NAMES[self.swizzle]}>"


def create(op, attributes, swizzle="none"):
    if swizzle != "none":
        attributes += f", swizzle = #kvcache.swizzle<swizzle_{swizzle}>"
    return f"%desc = kvcache.{op} %k {{{attributes}}} : !cache -> !desc"


def descriptor_type(box, dtype, swizzle):
    return f"!kvcache.tma_tile<{'x'.join(map(str, box))}x{dtype}{NAMES[swizzle]}>"


# A copy's text can use the view %k, the descriptor %desc, the barriers %barrier, the tile %tile,
# the constants %c0 to %c3, and its parameters.
LOAD = """
      kvcache.tma_prefetch %desc : !desc
      %expected = arith.constant {bytes} : index
      kvcache.tma_expect %barrier[%c0] bytes %expected : !barrier
      {copy}"""

READ_BACK = """
    nvgpu.mbarrier.try_wait.parity %barrier[%c0], %false, %ticks : !barrier
    %memory = kvcache.tile_memory %tile : !tile -> !memory
    scf.for %i = %thread to %bytes step %threads {
      %x = memref.load %memory[%i] : !memory
      %at = arith.addi %begin, %i : index
      memref.store %x, %raw[%at] : !raw
    }"""

CLUSTERS = """ clusters(%cx, %cy, %cz) in (%ncx = %blocks_of_cluster, %ncy = %c1, %ncz = %c1)
     """

FILL = """
    scf.for %i = %thread to %rows step %threads {
      scf.for %j = %c0 to %columns step %lanes {
        %v = vector.load %array[%i, %j] : !array, !lanes
        kvcache.tile_store %v, %tile[%i, %j] : !lanes, !tile
      }
    }
    gpu.barrier"""


@functools.cache
def compile_copy(
    target, kind, tile, descriptor, create, copy, parameters="", is_store=False, aliases="", blocks=1, **options
):
    """Compiles `run`, of the tensors of a cache, the layer, the tile's bytes or elements, and the
    parameters.

    Several thread blocks are a cluster, and each has its own tile; ``%is_first`` is true in the
    first.
    """
    lanes = 16 // tile.numpy.itemsize
    name = "paged" if kind.page_size else "continuous"
    scales = " scales %scales" if kind.scale else ""
    scales_type = ", !scales" if kind.scale else ""
    role = "key" if kind.mla else "value"
    made = f"""
  %c = kvcache.{name}_collection %blocks, %lengths, %lut, %zero, %zero{scales}
      : !blocks, memref<?xi32>, !lut{scales_type} -> !collection
  %k = kvcache.{name}_view {role} %c[%layer] : !collection"""
    io = "%array: !array" if is_store else "%raw: !raw"
    scales_parameter = "%scales: !scales, " if kind.scale else ""
    more = f", {parameters}" if parameters else ""
    action = copy if is_store else LOAD.format(bytes=tile.num_bytes, copy=copy)
    source = f"""{kind.text}
!tile = {tile}
!desc = {descriptor}
!memory = memref<{tile.num_bytes}xi8, #gpu.address_space<workgroup>>
!raw = memref<{blocks * tile.num_bytes}xi8>
!array = memref<{tile.rows}x{tile.columns}x{tile.dtype}>
{aliases}
!lanes = vector<{lanes}x{tile.dtype}>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
func.func @run(%blocks: !blocks, {scales_parameter}%lengths: memref<?xi32>, %lut: !lut, %layer: index, {io}{more}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0 : i32
  %threads = arith.constant {THREADS} : index{made}
  {create}
  %blocks_of_cluster = arith.constant {blocks} : index
  gpu.launch{CLUSTERS if blocks > 1 else ""} blocks(%bx, %by, %bz) in (%gx = %blocks_of_cluster, %gy = %c1, %gz = %c1)
      threads(%thread, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {{
    %false = arith.constant false
    %ticks = arith.constant 10000 : index
    %bytes = arith.constant {tile.num_bytes} : index
    %rows = arith.constant {tile.rows} : index
    %columns = arith.constant {tile.columns} : index
    %lanes = arith.constant {lanes} : index
    %tile = kvcache.alloc_tile : !tile
    %barrier = nvgpu.mbarrier.create -> !barrier
    %first = arith.cmpi eq, %thread, %c0 : index
    %is_first = arith.cmpi eq, %bx, %c0 : index
    %begin = arith.muli %bx, %bytes : index
    scf.if %first {{
      nvgpu.mbarrier.init %barrier[%c0], %c1 : !barrier
      nvvm.fence.mbarrier.init
    }}
    gpu.barrier{FILL if is_store else ""}
    scf.if %first {{{action}
    }}{"" if is_store else READ_BACK}
    gpu.terminator
  }}
  return
}}"""
    return kvcache.jit(source, target=target, opt_level=0, **options)


class Memory:
    """A cache of random bits of two layers, in order, with padding after each page."""

    def __init__(self, kind, pages=5, tokens=40, seed=1, padding=2):
        rng = self.rng = np.random.default_rng(seed)
        self.kind = kind
        page, roles = kind.page_size or tokens, 1 if kind.mla else 2
        stored_type, size = kind.stored
        dtype = np.dtype(kvcache.dtypes.dtype(stored_type))
        row = kind.heads * size
        distance = (2 * roles * page + padding) * row
        bits = rng.integers(0, 256, pages * distance * dtype.itemsize, np.uint8)
        self.flat = bits.view(dtype)
        strides = distance, 2 * page * row, page * row, row, size, 1
        shape = pages, roles, 2, page, kind.heads, size
        strides = [stride * dtype.itemsize for stride in strides]
        uint = self.flat.view(f"u{dtype.itemsize}")
        self.blocks = np.lib.stride_tricks.as_strided(uint, shape, strides).view(dtype)
        self.size, self.page, self.pages = size, page, pages
        self.num_rows = (pages - 1) * distance // row + page
        self.base = (roles - 1) * 2 * page + page  # the last role's layer 1, in rows
        self.distance = distance // row
        # Reads of several entries are aligned to their width.
        columns = -(-3 * 256 // page // 8) * 8
        table = rng.integers(0, pages, (2, columns)).astype(np.uint32)
        self.lut = table if kind.page_size else table[:, 0].copy()
        if kind.scale:
            scale = np.dtype(kvcache.dtypes.dtype(kind.scale))
            shape = pages, roles, 2, page, kind.heads, kind.numbers
            self.scales = rng.integers(0, 256, int(np.prod(shape)) * scale.itemsize, np.uint8)
            self.scales = self.scales.view(scale).reshape(shape)

    def rows(self, dtype=None):
        """The rows of the view, ``[num_rows, row]``, with other layers between the pages."""
        flat = self.flat.reshape(-1, self.kind.heads * self.size)
        rows = flat[self.base : self.base + self.num_rows]
        return rows if dtype is None else rows.view(dtype)

    def row_of(self, b, t):
        page = self.lut[b, t // self.page] if self.kind.page_size else self.lut[b]
        return int(page) * self.distance + t % self.page

    def arguments(self):
        more = (self.scales,) if self.kind.scale else ()
        return self.blocks, *more, np.zeros(2, np.uint32), self.lut, 1

    def load(self, program, tile, *arguments, blocks=1):
        raw = np.full(blocks * tile.num_bytes, 77, np.int8)
        program.call("run", *self.arguments(), raw, *arguments)
        return raw.view(np.uint8)


def box(matrix, first_row, first_column, rows, columns):
    """Copies a box of a matrix, zero where it has no element."""
    result = np.zeros((rows, columns), matrix.dtype)
    for i, row in enumerate(range(first_row, first_row + rows)):
        if 0 <= row < len(matrix):
            for j in range(max(0, -first_column), min(columns, matrix.shape[1] - first_column)):
                result[i, j] = matrix[row, first_column + j]
    return result
