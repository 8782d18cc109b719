"""Kernels of one warpgroup that multiply tiles into tensor memory by kvcache.tmem_mma.

Fragments and tiles are those of `products`. The rows of a warp are from the PTX ISA ("Data Path
Layout Organization").
"""

import numpy as np
from products import DTYPES, FENCE, Product, fill, fragment_of_a, fragment_of_d, tile

import kvcache


def shape(array):
    return "x".join(map(str, array))


class TensorProduct(Product):
    """A product of m rows: 64, or 128, of which the warpgroup takes first one half, then the other.

    The options are those of `Product`, m, and the columns of each access, by default the whole
    result. A in registers goes to tensor memory.
    """

    def __init__(self, types, m, n, majors, spans, shapes, k, starts=((0, 0), (0, 0)), **options):
        super().__init__(types, n, majors, spans, shapes, k, starts, **options)
        self.m, self.piece = m, options.get("piece", n)
        self.halves = m // 64

    def text(self):
        d, a_type, b_type = self.types
        names = ["b"] if self.in_registers else ["a", "b"]
        places = [f"%{name}_{what}" for name in "ab" for what in ("row", "column")]
        values = [value for start in self.starts for value in start]
        lines = [f"{place}_ = arith.constant {value} : index" for place, value in zip(places, values)]
        a_row, a_column, b_row, b_column = (p if self.is_dynamic else f"{p}_" for p in places)
        tensors = f"!d{', !w' if self.in_registers else ''}"
        lines.append(f"%d{', %w' if self.in_registers else ''} = kvcache.tmem_alloc : {tensors}")
        for name in names:
            lines += [f"%{name}_tile = kvcache.alloc_tile : !{name}", fill(name, *self.tile(name)[:2])]
        if self.adds:
            lines += self.move(d, self.n, self.piece, "given", "d", is_load=False)
        if self.in_registers:
            lines += self.move(a_type, self.k, self.k, "a", "w", is_load=False)
        lines += [
            "scf.if %is_first {",
            "  nvgpu.mbarrier.init %bars[%c0], %c1 : !bars",
            "}",
            FENCE,
            "gpu.barrier",
        ]
        attributes = [f"major_{name} = #kvcache.major<{major}_major>" for name, major in zip("ab", self.majors)]
        a, type_a = ("%w", "!w") if self.in_registers else (f"%a_tile[{a_row}, {a_column}]", "!a")
        if not self.in_registers:
            attributes.append(f"k = {self.k}")
        lines += [
            "scf.if %is_first {",
            f"  kvcache.tmem_mma {a}, %b_tile[{b_row}, {b_column}] into %d {'add %true' if self.adds else ''}"
            f" {{{', '.join(attributes)}}} : {type_a}, !b, !d",
            "  kvcache.tmem_commit %bars[%c0] : !bars",
            "}",
            "nvgpu.mbarrier.try_wait.parity %bars[%c0], %false, %c1 : !bars",
            *self.move(d, self.n, self.piece, "out", "d", is_load=True),
        ]
        aliases = "\n".join(f"!{name} = {tile(*self.tile(name))}" for name in names)
        body = "\n    ".join(lines)
        sums = f"memref<{self.halves}x128x{self.n // 2}x{d}>"
        return f"""
{aliases}
!d = !kvcache.tmem_tile<{self.m}x{self.n}x{d}>
!w = !kvcache.tmem_tile<{self.m}x{self.k}x{a_type}>
!bars = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
func.func @main(%a: memref<{shape(self.shape_a())}x{a_type}>, %b: memref<{shape(self.shapes[1])}x{b_type}>,
                %given: {sums}, %out: {sums}, {", ".join(f"{place}: index" for place in places)}) {{
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%t, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {{
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    %false = arith.constant false
    %is_first = arith.cmpi eq, %t, %c0 : index
    %bars = nvgpu.mbarrier.create -> !bars
    {body}
    gpu.terminator
  }}
  return
}}
"""

    def move(self, dtype, columns, piece, memory, tensor, is_load):
        """Moves fragments of all rows, `piece` columns at a time, between global and tensor memory."""
        lines, lanes = [], piece // 2
        vector = f"vector<{lanes}x{dtype}>"
        array = f"memref<{self.halves}x128x{columns // 2}x{dtype}>"
        for half in range(self.halves):
            for column in range(0, columns, piece):
                name = f"{memory}_{half}_{column}"
                lines += [
                    f"%{name}_h = arith.constant {half} : index",
                    f"%{name}_c = arith.constant {column} : index",
                    f"%{name}_i = arith.constant {column // 2} : index",
                ]
                inner = f"%{tensor}[%{name}_c] {f'half %{name}_h' if self.m == 128 else ''}"
                outer = f"%{memory}[%{name}_h, %t, %{name}_i] : {array}, {vector}"
                if is_load:
                    lines += [f"%{name} = kvcache.tmem_load {inner} : !{tensor} -> {vector}", f"vector.store %{name}, {outer}"]
                else:
                    lines += [f"%{name} = vector.load {outer}", f"kvcache.tmem_store %{name}, {inner} : {vector}, !{tensor}"]
        return lines

    def shape_a(self):
        return (self.halves, 128, self.k // 2) if self.in_registers else self.shapes[0]

    def rows(self, warpgroup_rows):
        """The rows of the tile for the rows of a warpgroup, for each half."""
        if self.m == 64:
            return warpgroup_rows[None]
        return np.stack([warpgroup_rows // 16 * 32 + 16 * half + warpgroup_rows % 16 for half in range(2)])

    def fragments(self, matrix, fragment):
        rows, columns = fragment
        return np.ascontiguousarray(matrix[self.rows(rows), columns])

    def run(self, program, random, starts=None):
        starts = starts or self.starts
        d, a_type, b_type = (DTYPES[name] for name in self.types)
        b, given = self.draw(random, b_type, self.shapes[1]), self.draw(random, d, (self.m, self.n))
        at = fragment_of_d(self.n)
        if self.in_registers:
            left = self.draw(random, a_type, (self.m, self.k))
            a = self.fragments(left, fragment_of_a(self.k, a_type.itemsize))
            left = left.astype(np.float64)
        else:
            a = self.draw(random, a_type, self.shapes[0])
            left = self.part(a, 0, self.m, starts)
        out = np.zeros((self.halves, 128, self.n // 2), d)
        program.call("main", a, b, self.fragments(given, at), out, *starts[0], *starts[1])
        got = np.full((self.m, self.n), np.nan)
        got[self.rows(at[0]), at[1]] = out.astype(np.float64)
        return got, left @ self.part(b, 1, self.n, starts).T + (given.astype(np.float64) if self.adds else 0)


def jit(text, **options):
    return kvcache.jit(text, target="emulator:sm_100a", opt_level=0, **options)
