"""Tests of multidimensional vectors and their transfers in kernels, and of structures with scalars."""

import string

import numpy as np
import pytest

import kvcache

TARGETS = ["emulator:sm_80", "cpu"]

# The function of a[row:, column:] of a case, with zeros outside.
CASES = {
    "rows": (
        "%y = vector.transfer_read %a[%row, %column], %zero : memref<?x?xf32>, vector<4x8xf32>",
        lambda tile: tile,
    ),
    "rows in memory": (
        """%b = memref.alloca() : memref<5x9xf32>
        %x = vector.transfer_read %a[%row, %column], %zero : memref<?x?xf32>, vector<4x8xf32>
        %none = arith.constant dense<-1.0> : vector<5x9xf32>
        vector.store %none, %b[%c0, %c0] : memref<5x9xf32>, vector<5x9xf32>
        vector.store %x, %b[%c1, %c1] : memref<5x9xf32>, vector<4x8xf32>
        %y = vector.load %b[%c1, %c1] : memref<5x9xf32>, vector<4x8xf32>""",
        lambda tile: tile,
    ),
    "rows of a memref of three": (
        """%b = memref.alloca() : memref<2x2x16xf32>
        %x = vector.transfer_read %a[%row, %column], %zero : memref<?x?xf32>, vector<4x8xf32>
        %z = vector.shape_cast %x : vector<4x8xf32> to vector<2x2x8xf32>
        vector.store %z, %b[%c0, %c0, %c2] {nontemporal = true} : memref<2x2x16xf32>, vector<2x2x8xf32>
        %w = vector.load %b[%c0, %c0, %c2] : memref<2x2x16xf32>, vector<2x2x8xf32>
        %y = vector.shape_cast %w : vector<2x2x8xf32> to vector<4x8xf32>""",
        lambda tile: tile,
    ),
    "math": (
        """%x = vector.transfer_read %a[%row, %column], %zero : memref<?x?xf32>, vector<4x8xf32>
        %most = arith.constant dense<3.0> : vector<4x8xf32>
        %m = arith.maxnumf %x, %most : vector<4x8xf32>
        %s = math.absf %x : vector<4x8xf32>
        %y = math.fma %m, %most, %s : vector<4x8xf32>""",
        lambda tile: np.maximum(tile, 3) * 3 + np.abs(tile),
    ),
    "turned": (
        """%y = vector.transfer_read %a[%row, %column], %zero
            {permutation_map = affine_map<(d0, d1) -> (d1, d0)>} : memref<?x?xf32>, vector<4x8xf32>""",
        lambda tile: tile.T,
    ),
    "one row for all": (
        """%y = vector.transfer_read %a[%row, %column], %zero
            {in_bounds = [true, false], permutation_map = affine_map<(d0, d1) -> (0, d1)>}
            : memref<?x?xf32>, vector<4x8xf32>""",
        lambda tile: np.broadcast_to(tile[:1], (4, 8)),
    ),
    "sums": (
        """%x = vector.transfer_read %a[%row, %column], %zero : memref<?x?xf32>, vector<4x8xf32>
        %none = arith.constant dense<0.0> : vector<8xf32>
        %sums = vector.multi_reduction <add>, %x, %none [0] : vector<4x8xf32> to vector<8xf32>
        %y = vector.broadcast %sums : vector<8xf32> to vector<4x8xf32>""",
        lambda tile: np.broadcast_to(tile.sum(axis=0), (4, 8)),
    ),
    "running sums": (
        """%x = vector.transfer_read %a[%row, %column], %zero : memref<?x?xf32>, vector<4x8xf32>
        %none = arith.constant dense<0.0> : vector<8xf32>
        %y, %last = vector.scan <add>, %x, %none {inclusive = true, reduction_dim = 0 : i64}
            : vector<4x8xf32>, vector<8xf32>""",
        lambda tile: tile.cumsum(axis=0),
    ),
}

PROGRAM = """
func.func @run(%a: memref<?x?xf32>, %out: memref<?x?x?xf32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %rows = memref.dim %out, %c0 : memref<?x?x?xf32>
  scf.parallel (%row) = (%c0) to (%rows) step (%c1) {{
    %column = arith.muli %row, %c2 : index
    {body}
    vector.transfer_write %y, %out[%row, %c0, %c0] : vector<4x8xf32>, memref<?x?x?xf32>
  }}
  return
}}
"""


def tile_at(a, row, column, shape):
    tile = np.zeros(shape, np.float32)
    part = a[row : row + shape[0], column : column + shape[1]]
    tile[: part.shape[0], : part.shape[1]] = part
    return tile


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES)
def test_transfers_of_tiles(case, target):
    body, model = CASES[case]
    program = kvcache.jit(PROGRAM.format(body=body), target=target)
    # The last tiles are outside in both dimensions, and so do the last rows of `out`.
    a = np.random.default_rng(1).integers(-9, 9, (7, 15)).astype(np.float32)
    out = np.full((6, 3, 9), -1, np.float32)
    program.call("run", a, out)
    shape = (8, 4) if case == "turned" else (4, 8)
    for row in range(6):
        np.testing.assert_array_equal(out[row, :, :8], model(tile_at(a, row, 2 * row, shape))[:3])
    np.testing.assert_array_equal(out[..., 8], -1)


AGGREGATES = string.Template("""
llvm.func internal @pair(%a: i64) -> !llvm.struct<(i64, i64)> {
  %undef = llvm.mlir.undef : !llvm.struct<(i64, i64)>
  %one = llvm.mlir.constant(1 : i64) : i64
  %first = llvm.alloca %one x !llvm.struct<(i64, i64)> : (i64) -> !llvm.ptr
  %p0 = llvm.insertvalue %a, %undef[0] : !llvm.struct<(i64, i64)>
  %p1 = llvm.insertvalue %one, %p0[1] : !llvm.struct<(i64, i64)>
  llvm.store %p1, %first : !llvm.struct<(i64, i64)>, !llvm.ptr
  %second = llvm.alloca %one x i64 : (i64) -> !llvm.ptr
  llvm.store %a, %second : i64, !llvm.ptr
  %loaded = llvm.load %first : !llvm.ptr -> !llvm.struct<(i64, i64)>
  %x0 = llvm.load %second : !llvm.ptr -> i64
  $sums
  %result = llvm.insertvalue %x12, %loaded[1] : !llvm.struct<(i64, i64)>
  llvm.return %result : !llvm.struct<(i64, i64)>
}
llvm.func internal @tail(%a: i64) -> !llvm.struct<(i64, i64)> {
  %r = llvm.call musttail @pair(%a) : (i64) -> !llvm.struct<(i64, i64)>
  llvm.return %r : !llvm.struct<(i64, i64)>
}
func.func @f(%a: i64) -> (i64, i64) {
  %r = llvm.call @tail(%a) : (i64) -> !llvm.struct<(i64, i64)>
  %x = llvm.extractvalue %r[0] : !llvm.struct<(i64, i64)>
  %y = llvm.extractvalue %r[1] : !llvm.struct<(i64, i64)>
  return %x, %y : i64, i64
}
""").substitute(sums="\n".join(f"%x{i + 1} = llvm.add %x{i}, %a : i64" for i in range(12)))


@pytest.mark.parametrize("opt_level", [0, 2])
def test_runs_aggregates_variables_and_tail_calls(opt_level):
    """Level 0 selects instructions of aggregates separately from long runs of scalar ones."""
    assert kvcache.jit(AGGREGATES, opt_level=opt_level).call("f", 5) == (5, 65)
