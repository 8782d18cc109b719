"""Tests of the places of elements in tiles, on the CPU, against the ISA's figure."""

import functools
import resource

import devices
import numpy as np
import pytest
from swizzles import NAMES, SWIZZLES, stored

import kvcache

SHAPES = [(64, "i8", 256), (24, "bf16", 128), (8, "f32", 64), (16, "f64", 16)]


def list_widths(dtype):
    """The vector widths that fit into a chunk of 16 bytes."""
    size = kvcache.dtypes.dtype(dtype).itemsize
    return [width for width in (1, 2, 4, 8, 16) if width * size <= 16]


@functools.cache
def compile_tile(rows, dtype, columns, swizzle, target="cpu"):
    """Compiles `write_w` and `read_w` of w lanes through a tile's memory, and `offset`."""
    bytes_ = rows * columns * kvcache.dtypes.dtype(dtype).itemsize
    tile = f"!kvcache.tile<{rows}x{columns}x{dtype}{NAMES[swizzle]}>"
    memory = f"memref<{bytes_}xi8, #gpu.address_space<workgroup>>"
    array, raw = f"memref<{rows}x{columns}x{dtype}>", f"memref<{bytes_}xi8>"
    constants = f"""
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = arith.constant {rows} : index
  %columns = arith.constant {columns} : index
  %bytes = arith.constant {bytes_} : index
  %tile = kvcache.alloc_tile : !tile
  %memory = kvcache.tile_memory %tile : !tile -> {memory}"""
    copies = ""
    for lanes in list_widths(dtype):
        vector = f"vector<{lanes}x{dtype}>"
        copies += f"""
func.func @write_{lanes}(%array: {array}, %raw: {raw}) {{{constants}
  %lanes = arith.constant {lanes} : index
  scf.for %i = %c0 to %rows step %c1 {{
    scf.for %j = %c0 to %columns step %lanes {{
      %v = vector.load %array[%i, %j] : {array}, {vector}
      kvcache.tile_store %v, %tile[%i, %j] : {vector}, !tile
    }}
  }}
  scf.for %i = %c0 to %bytes step %c1 {{
    %x = memref.load %memory[%i] : {memory}
    memref.store %x, %raw[%i] : {raw}
  }}
  return
}}
func.func @read_{lanes}(%raw: {raw}, %array: {array}) {{{constants}
  %lanes = arith.constant {lanes} : index
  scf.for %i = %c0 to %bytes step %c1 {{
    %x = memref.load %raw[%i] : {raw}
    memref.store %x, %memory[%i] : {memory}
  }}
  scf.for %i = %c0 to %rows step %c1 {{
    scf.for %j = %c0 to %columns step %lanes {{
      %v = kvcache.tile_load %tile[%i, %j] : !tile -> {vector}
      vector.store %v, %array[%i, %j] : {array}, {vector}
    }}
  }}
  return
}}"""
    return devices.jit(
        f"""
!tile = {tile}
func.func @offset(%row: index, %column: index) -> index {{
  %tile = kvcache.alloc_tile : !tile
  %o = kvcache.tile_offset %tile[%row, %column] : !tile
  return %o : index
}}{copies}""",
        target,
    )


@pytest.mark.parametrize("swizzle", SWIZZLES)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_elements_match_the_hardware(shape, swizzle):
    check_elements(shape, swizzle)


@pytest.mark.parametrize("swizzle", SWIZZLES)
@pytest.mark.parametrize(("shape", "target"), devices.spread(SHAPES))
def test_elements_in_kernels_match_the_hardware(shape, target, swizzle):
    check_elements(shape, swizzle, target)


def check_elements(shape, swizzle, target="cpu"):
    rows, dtype, columns = shape
    program = compile_tile(rows, dtype, columns, swizzle, target)
    rng = np.random.default_rng(5)
    numpy_dtype = kvcache.dtypes.dtype(dtype)
    bits = rng.integers(0, 256, (rows, columns * numpy_dtype.itemsize), np.uint8)
    array = bits.view(numpy_dtype)
    expected = stored(array, swizzle)
    for lanes in list_widths(dtype):
        raw = np.zeros(expected.size, np.int8)
        program.call(f"write_{lanes}", array, raw)
        assert (raw.view(np.uint8) == expected).all()
        back = np.zeros_like(array)
        program.call(f"read_{lanes}", raw, back)
        assert (back.view(np.uint8) == array.view(np.uint8)).all()


@pytest.mark.parametrize("swizzle", SWIZZLES)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_offsets_equal_the_geometry(shape, swizzle):
    rows, dtype, columns = shape
    program = compile_tile(rows, dtype, columns, swizzle)
    rng = np.random.default_rng(6)
    for _ in range(50):
        row, column = int(rng.integers(rows)), int(rng.integers(columns))
        expected = kvcache.tile_offset((rows, columns), dtype, swizzle, row, column)
        assert program.call("offset", row, column) == expected


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("num_tiles", [1, 40])
def test_tiles_take_more_memory_than_a_stack_has(num_tiles, fails):
    """Tiles of 16 MB, or many of 512 KB, in twenty calls, which may fail at a check."""
    rows = 65536 // (1 if num_tiles == 1 else 32)
    allocs = "\n".join(f"  %t{i} = kvcache.alloc_tile : !tile" for i in range(num_tiles))
    stores = "\n".join(f"    kvcache.tile_store %x, %t{i}[%r, %c0] : f32, !tile" for i in range(num_tiles))
    source = f"""
!tile = !kvcache.tile<{rows}x64xf32>
func.func @last(%x: f32, %n: index) -> f32 {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = arith.constant {rows - 1} : index
{allocs}
  scf.for %i = %c0 to %n step %c1 {{
    %r = arith.remui %i, %last : index
{stores}
    kvcache.tile_store %x, %t0[%last, %c0] : f32, !tile
  }}
  %y = kvcache.tile_load %t0[%last, %c0] : !tile -> f32
  %holds = arith.constant {"false" if fails else "true"}
  cf.assert %holds, "always fails"
  return %y : f32
}}"""
    program = kvcache.jit(source, target="cpu", opt_level=0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for call in range(20):
        if fails:
            with pytest.raises(kvcache.CheckError, match="always fails"):
                program.call("last", float(call), rows)
        else:
            assert program.call("last", float(call), rows) == call
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 64 * 1024  # in KB
