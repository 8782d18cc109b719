"""Programs that copy rows of a cache into a tile, and their caches."""

import functools

import devices
import ml_dtypes
import numpy as np
from swizzles import NAMES

ROWS, COLUMNS, HEADS, LAYERS, PAGES = 16, 64, 3, 2, 7
BYTES = ROWS * COLUMNS * 2
ROW = HEADS * 128


def get_strides(page_size, padding):
    layer = page_size * ROW
    return 2 * LAYERS * layer + padding, LAYERS * layer, layer


@functools.cache
def compile_copies(
    page_size, swizzle, target="cpu", bounds_checks=False, layout="", kinds=None, said="nhd",
    table="dense",
):  # fmt: skip
    """Compiles `load` and `gather` of the values of layer 1, and of the tile's bytes.

    ``kinds`` are those of the two copies, unless the compiler chooses them; they have hints, too. Without a page size
    the cache is continuous.
    """
    table_type = "memref<?xi32>" if table == "csr" else "memref<?x?xi32, strided<[?, 1]>>"
    if table == "dense":
        table_type = "memref<?x?xi32>" if page_size else "memref<?xi32>"
    index, index_operand, index_type = "", "", ""
    if table != "dense":
        index, index_operand, index_type = " %index: memref<?xi32>,", " index %index", " index memref<?xi32>"
    paged, parameters = "continuous", ""
    if page_size:
        paged, parameters = "paged", f", page_size = {page_size}, layout = {said}, table = {table}"
    hint = "l2_hint = #kvcache.eviction<evict_first>"
    load, gather = (f" {{copy = #kvcache.copy<{kind}>, {hint}}}" for kind in kinds) if kinds else ("", "")
    blocks = f"memref<?x2x?x{page_size or '?'}x{HEADS}x128xbf16{layout and f', {layout}'}>"
    memory = f"memref<{BYTES}xi8, #gpu.address_space<workgroup>>"
    arguments = f"""%blocks: {blocks}, %lengths: memref<?xi32>, %lut: {table_type},{index}
    %raw: memref<{BYTES}xi8>, %h: index, %d: index"""
    begin = f"""
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %bytes = arith.constant {BYTES} : index
  %zero = arith.constant 0 : i32
  %collection = kvcache.{paged}_collection %blocks, %lengths, %lut{index_operand}, %zero, %zero
      : {blocks}, memref<?xi32>, {table_type}{index_type} -> !collection
  %k = kvcache.{paged}_view value %collection[%c1] : !collection
  %tile = kvcache.alloc_tile : !tile"""
    end = f"""
  kvcache.wait %token
  %memory = kvcache.tile_memory %tile : !tile -> {memory}
  scf.for %i = %c0 to %bytes step %c16 {{
    %x = vector.load %memory[%i] : {memory}, vector<16xi8>
    vector.store %x, %raw[%i] : memref<{BYTES}xi8>, vector<16xi8>
  }}
  return
}}"""
    source = f"""
#kv = #kvcache.params<num_heads = {HEADS}, head_size = 128>
!collection = !kvcache.{paged}_collection<bf16, #kv{parameters}>
!cache = !kvcache.{paged}<bf16, #kv{parameters}>
!tile = !kvcache.tile<{ROWS}x{COLUMNS}xbf16{NAMES[swizzle]}>
func.func @load({arguments}, %b: index, %t: index, %valid: index) {{{begin}
  %token = kvcache.async_load_tile %k[%b, %h, %t, %d] valid %valid to %tile{load} : !cache, !tile{end}
func.func @gather({arguments}, %ids: memref<{ROWS}xi32>) {{{begin}
  %token = kvcache.async_gather_tile %k[%h, %d] rows %ids to %tile{gather}
      : !cache, memref<{ROWS}xi32>, !tile{end}
func.func @promised({arguments}, %b: index, %t: index) {{{begin}
  %token = kvcache.async_load_tile %k[%b, %h, %t, %d] to %tile {{base_alignment = 4}} : !cache, !tile{end}
"""
    return devices.jit(source, target, threads=64, bounds_checks=bounds_checks)


def make_cache(page_size):
    rng = np.random.default_rng(page_size)
    shape = PAGES, 2, LAYERS, page_size, HEADS, 128
    blocks = rng.integers(0, 2**16, shape, np.uint16).view(ml_dtypes.bfloat16)
    columns = 3 * ROWS // page_size + 2
    lut = rng.integers(0, PAGES, (2, columns)).astype(np.uint32)
    lengths = np.array([5, 6], np.uint32)
    return blocks, lengths, lut


def run(program, name, cache, h, d, *arguments):
    raw = np.full(BYTES, 77, np.int8)
    program.call(name, *cache, raw, h, d, *arguments)
    return raw.view(np.uint8)
