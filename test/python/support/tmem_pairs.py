"""Kernels of a pair of thread blocks that multiply tiles into the tensor memory of both.

Each thread block has 64 rows of A, and columns of B, which both multiply. The rows of D are from
the PTX ISA ("Data Path Layout Organization", `cta_group::2` with M = 128).
"""

import dataclasses

import numpy as np
from products import DTYPES, FENCE, fill, tile

import kvcache

BLOCKS, ROWS, LANES = 2, 64, 128
# Columns of a row that a thread has in registers at once.
PIECE = 64


@dataclasses.dataclass(frozen=True)
class PairProduct:
    """A product with `n` columns of B in each thread block, which are MN-major or K-major.

    A is in tiles, or in tensor memory, where its rows are twice. The part of B begins at `start`.
    """

    types: str
    n: int
    k: int
    is_mn: bool = False
    in_tensor_memory: bool = False
    span: int = 128
    start: tuple[int, int] = (0, 0)
    adds: bool = True

    @property
    def shape_b(self):
        part = (self.k, self.n) if self.is_mn else (self.n, self.k)
        return tuple(size + first for size, first in zip(part, self.start))

    def write_moves(self, tensor, memory, dtype, columns, row="%t", is_load=False):
        """Writes the moves of a thread's row of a matrix to tensor memory or from it, a piece at a time."""
        shape = f"memref<2x{ROWS if row == '%row_a' else LANES}x{columns}x{dtype}>"
        piece = min(columns, PIECE)
        vector = f"vector<{piece}x{dtype}>"
        lines = []
        for first in range(0, columns, piece):
            name = f"%{memory}_{first}"
            lines.append(f"{name}_column = arith.constant {first} : index")
            inner, outer = f"%{tensor}[{name}_column] {{whole_rows}}", f"%{memory}[%rank, {row}, {name}_column] : {shape}, {vector}"
            if is_load:
                lines += [f"{name} = kvcache.tmem_load {inner} : !{tensor} -> {vector}", f"vector.store {name}, {outer}"]
            else:
                lines += [f"{name} = vector.load {outer}", f"kvcache.tmem_store {name}, {inner} : {vector}, !{tensor}"]
        return lines

    def write(self):
        d, type_a, type_b = self.types.split()
        shape_a = (ROWS, self.k)
        fills = [f"%b_tile = kvcache.alloc_tile : !b{fill('b', self.shape_b, type_b, '%rank')}"]
        moves = self.write_moves("d", "given", d, self.n) if self.adds else []
        if self.in_tensor_memory:
            a, operand = "%w", "!w"
            moves += [
                "%c64 = arith.constant 64 : index",
                "%row_a = arith.remui %t, %c64 : index",
                *self.write_moves("w", "a", type_a, self.k, row="%row_a"),
            ]
            left = ""
        else:
            a, operand = "%a_tile[%c0, %c0]", "!a"
            fills.append(f"%a_tile = kvcache.alloc_tile : !a{fill('a', shape_a, type_a, '%rank')}")
            left = f"k = {self.k}, "
        major = "mn" if self.is_mn else "k"
        step = "\n    ".join
        return f"""
!a = {tile(shape_a, type_a, 128)}
!b = {tile(self.shape_b, type_b, self.span)}
!d = !kvcache.tmem_tile<128x{self.n}x{d}>
!w = !kvcache.tmem_tile<128x{self.k}x{type_a}>
!bars = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
func.func @main(%a: memref<2x64x{self.k}x{type_a}>, %b: memref<2x{self.shape_b[0]}x{self.shape_b[1]}x{type_b}>,
                %given: memref<2x128x{self.n}x{d}>, %out: memref<2x128x{self.n}x{d}>) {{
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %rank, %bz) in (%gx = %c1, %gy = %c2, %gz = %c1)
             threads(%t, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {{
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    %false = arith.constant false
    %is_first = arith.cmpi eq, %t, %c0 : index
    %is_leader_block = arith.cmpi eq, %rank, %c0 : index
    %is_issuer = arith.andi %is_first, %is_leader_block : i1
    %first_row = arith.constant {self.start[0]} : index
    %first_column = arith.constant {self.start[1]} : index
    %bars = nvgpu.mbarrier.create -> !bars
    scf.if %is_first {{
      nvgpu.mbarrier.init %bars[%c0], %c1 : !bars
    }}
    %d, %w = kvcache.tmem_alloc {{pair}} : !d, !w
    {step(fills)}
    {step(moves)}
    {FENCE}
    kvcache.cluster_barrier {{blocks = 2 : i64}}
    scf.if %is_issuer {{
      kvcache.tmem_mma {a}, %b_tile[%first_row, %first_column] into %d {"add %true" if self.adds else ""}
          {{{left}major_b = #kvcache.major<{major}_major>, pair}} : {operand}, !b, !d
      kvcache.tmem_commit %bars[%c0] {{pair}} : !bars
    }}
    nvgpu.mbarrier.try_wait.parity %bars[%c0], %false, %c1 : !bars
    {step(self.write_moves("d", "out", d, self.n, is_load=True))}
    gpu.terminator
  }}
  return
}}
"""

    def run(self, program, random):
        """Returns the program's D of both thread blocks, and NumPy's."""
        d, type_a, type_b = (DTYPES[name] for name in self.types.split())
        a, b, given = (
            random.integers(-2, 3, (BLOCKS, *shape)).astype(dtype)
            for shape, dtype in (((ROWS, self.k), type_a), (self.shape_b, type_b), ((LANES, self.n), d))
        )
        out = np.zeros_like(given)
        program.call("main", a, b, given, out)
        part = b[:, self.start[0] :, self.start[1] :].astype(np.float64)
        columns = part if self.is_mn else part.swapaxes(1, 2)
        # Lanes 0 to 63 have the columns of block 0, and the others those of block 1.
        want = np.concatenate([a.astype(np.float64) @ columns[block] for block in range(BLOCKS)], axis=1)
        return out.astype(np.float64), want + (given.astype(np.float64) if self.adds else 0)


def jit(text, **options):
    return kvcache.jit(text, target="emulator:sm_100a", opt_level=0, **options)
