"""Kernels of one warpgroup that multiply tiles by kvcache.mma.

Threads fill the tiles. The fragments are from the tables of the PTX ISA ("Matrix Fragments for wgmma").
"""

import ml_dtypes
import model
import numpy as np

import kvcache

DTYPES = {
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f16": np.dtype(np.float16),
    "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "i8": np.dtype(np.int8),
    "f32": np.dtype(np.float32),
    "i32": np.dtype(np.int32),
}
FENCE = "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}"


def fragment_of_d(n):
    """The row and column of each element of D [64, n] in a thread."""
    t, i = np.indices((128, n // 2))
    return t // 32 * 16 + t % 32 // 4 + i // 2 % 2 * 8, i // 4 * 8 + t % 4 * 2 + i % 2


def fragment_of_a(k, size):
    """The row and column of each element of A in a thread, of `size` bytes: two words
    along a row and its eighth, 16 bytes apart."""
    t, i = np.indices((128, k // 2))
    word, per_word = i * size // 4, 4 // size
    row = t // 32 * 16 + t % 32 // 4 + word % 2 * 8
    return row, (word // 2 * 4 + t % 4) * per_word + i % per_word


def tile(shape, dtype, span):
    return f"!kvcache.tile<{shape[0]}x{shape[1]}x{dtype}, swizzle_{span}b>"


def fill(name, shape, dtype, block=None):
    """The text of a copy of a matrix in global memory to a tile, by all threads of a thread block.

    With the value ``block``, there is a matrix for each of two thread blocks.
    """
    unit = 16 // DTYPES[dtype].itemsize
    matrices, matrix = ("2x", f"{block}, ") if block else ("", "")
    return f"""
    %{name}_units = arith.constant {shape[0] * shape[1] // unit} : index
    %{name}_in_row = arith.constant {shape[1] // unit} : index
    %{name}_unit = arith.constant {unit} : index
    scf.for %i = %t to %{name}_units step %c128 {{
      %row = arith.divui %i, %{name}_in_row : index
      %rest = arith.remui %i, %{name}_in_row : index
      %column = arith.muli %rest, %{name}_unit : index
      %x = vector.load %{name}[{matrix}%row, %column]
        : memref<{matrices}{shape[0]}x{shape[1]}x{dtype}>, vector<{unit}x{dtype}>
      kvcache.tile_store %x, %{name}_tile[%row, %column] : vector<{unit}x{dtype}>, !{name}
    }}"""


class Product:
    """The product of a case: its program, and NumPy's result."""

    def __init__(self, types, n, majors, spans, shapes, k, starts=((0, 0), (0, 0)), **options):
        self.types, self.n, self.majors, self.spans = types.split(), n, majors.split(), spans
        self.shapes, self.k, self.starts = shapes, k, starts
        self.in_registers = options.get("in_registers", False)
        self.adds = options.get("adds", True)
        self.is_dynamic = options.get("is_dynamic", False)

    def text(self):
        d, a_type, b_type = self.types
        lanes = self.n // 2
        names, places = ["b"] if self.in_registers else ["a", "b"], []
        for name, start in zip("ab", self.starts):
            places += [(f"%{name}_row", start[0]), (f"%{name}_column", start[1])]
        arguments = ", ".join(f"{name}: index" for name, _ in places)
        lines = [f"{name}_ = arith.constant {value} : index" for name, value in places]
        used = {name: name if self.is_dynamic else f"{name}_" for name, _ in places}
        for name in names:
            lines += [f"%{name}_tile = kvcache.alloc_tile : !{name}", fill(name, *self.tile(name)[:2])]
        lines += [FENCE, "gpu.barrier"]
        attributes = [f"major_{name} = #kvcache.major<{major}_major>" for name, major in zip("ab", self.majors)]
        a, type_a = f"%a_tile[{used['%a_row']}, {used['%a_column']}]", "!a"
        if self.in_registers:
            type_a = f"vector<{self.k // 2}x{a_type}>"
            lines.append(f"%p = vector.load %a[%t, %c0] : memref<{'x'.join(map(str, self.shape_a()))}x{a_type}>, {type_a}")
            a = "%p"
        else:
            attributes.append(f"k = {self.k}")
        add = ""
        if self.adds:
            lines.append(f"%c = vector.load %given[%t, %c0] : memref<128x{lanes}x{d}>, vector<{lanes}x{d}>")
            add = "add %c"
        lines += [
            f"%d = kvcache.mma {a}, %b_tile[{used['%b_row']}, {used['%b_column']}] {add} {{{', '.join(attributes)}}}"
            f" : {type_a}, !b -> vector<{lanes}x{d}>",
            f"%e = kvcache.mma_wait %d : vector<{lanes}x{d}>",
            f"vector.store %e, %out[%t, %c0] : memref<128x{lanes}x{d}>, vector<{lanes}x{d}>",
        ]
        aliases = "\n".join(f"!{name} = {tile(*self.tile(name))}" for name in names)
        body = "\n    ".join(lines)
        return f"""
{aliases}
func.func @main(%a: memref<{'x'.join(map(str, self.shape_a()))}x{a_type}>, %b: memref<{'x'.join(map(str, self.shapes[1]))}x{b_type}>,
                %given: memref<128x{lanes}x{d}>, %out: memref<128x{lanes}x{d}>, {arguments}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%t, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {{
    {body}
    gpu.terminator
  }}
  return
}}
"""

    def tile(self, name):
        number = "ab".index(name)
        return self.shapes[number], self.types[1 + number], self.spans[number]

    def shape_a(self):
        return (128, self.k // 2) if self.in_registers else self.shapes[0]

    def draw(self, random, dtype, shape):
        if dtype.kind == "i":
            return random.integers(-128, 128, shape).astype(dtype)
        return random.integers(-3, 4, shape).astype(np.float32).astype(dtype)

    def part(self, matrix, number, size, starts):
        """Slices A or B from a tile, K along its rows."""
        (row, column), is_k = starts[number], self.majors[number] == "k"
        rows, columns = (size, self.k) if is_k else (self.k, size)
        found = matrix[row : row + rows, column : column + columns].astype(np.float64)
        return found if is_k else found.T

    def run(self, program, random, starts=None):
        """Returns the program's result and the expected one; dynamic offsets begin at `starts`."""
        starts = starts or self.starts
        d, a_type, b_type = (DTYPES[name] for name in self.types)
        b, given = self.draw(random, b_type, self.shapes[1]), self.draw(random, d, (64, self.n))
        if self.in_registers:
            left = self.draw(random, a_type, (64, self.k))
            a = np.ascontiguousarray(left[fragment_of_a(self.k, a_type.itemsize)])
            left = left.astype(np.float64)
        else:
            a = self.draw(random, a_type, self.shapes[0])
        at = fragment_of_d(self.n)
        out = np.zeros((128, self.n // 2), d)
        program.call("main", a, b, np.ascontiguousarray(given[at]), out, *starts[0], *starts[1])
        got = np.zeros((64, self.n))
        got[at] = out.astype(np.float64)
        if not self.in_registers:
            left = self.part(a, 0, 64, starts)
        return got, left @ self.part(b, 1, self.n, starts).T + (given.astype(np.float64) if self.adds else 0)


def jit(text, **options):
    return kvcache.jit(text, target="emulator:sm_90a", opt_level=0, **options)


# 64 queries attend to the tokens of a sequence: a warpgroup copies tiles of keys and values,
# another one multiplies.
ATTENTION = """
#kv = #kvcache.params<num_heads = 2, head_size = 64>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!tile = !kvcache.tile<64x64xbf16, swizzle_128b>
!ring = !kvcache.pipe<2, !tile, !tile, producers = 4>

func.func @attend(%blocks: memref<?x2x?x64x2x64xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                  %q: memref<64x64xbf16>, %out: memref<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  %any = arith.constant 0 : i32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%thread, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %c512 = arith.constant 512 : index
    %zero = arith.constant 0.0 : f32
    %scale = arith.constant 0.18033688 : f32
    %cache = kvcache.paged_collection %blocks, %lengths, %lut, %any, %any
        : memref<?x2x?x64x2x64xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
    %keys = kvcache.paged_view key %cache[%c0] : !collection
    %values = kvcache.paged_view value %cache[%c0] : !collection
    %length = kvcache.cache_length %keys[%c0] : !cache
    %tiles = arith.ceildivui %length, %c64 : index

    %q_tile = kvcache.alloc_tile : !tile
    %ring = kvcache.pipe : !ring
    scf.for %i = %thread to %c512 step %c256 {
      %row = arith.divui %i, %c8 : index
      %unit = arith.remui %i, %c8 : index
      %column = arith.muli %unit, %c8 : index
      %x = vector.load %q[%row, %column] : memref<64x64xbf16>, vector<8xbf16>
      kvcache.tile_store %x, %q_tile[%row, %column] : vector<8xbf16>, !tile
    }
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    gpu.barrier

    %produces = arith.cmpi ult, %thread, %c128 : index
    scf.if %produces {
      scf.for %i = %c0 to %tiles step %c1 {
        %t = arith.muli %i, %c64 : index
        %left = arith.subi %length, %t : index
        kvcache.produce %ring[%i] : !ring {
        ^bb0(%ks: !tile, %vs: !tile):
          kvcache.async_load_tile %keys[%c0, %c1, %t, %c0] valid %left to %ks : !cache, !tile
          kvcache.async_load_tile %values[%c0, %c1, %t, %c0] valid %left to %vs : !cache, !tile
        }
      }
    } else {
      %quarter = arith.remui %thread, %c4 : index
      %lane_column = arith.muli %quarter, %c2 : index
      %lane_i32 = arith.index_castui %lane_column : index to i32
      %lanes = vector.broadcast %lane_i32 : i32 to vector<32xi32>
      %in_tile = arith.constant dense<COLUMNS> : vector<32xi32>
      %columns = arith.addi %lanes, %in_tile : vector<32xi32>
      %lowest = arith.constant dense<-1.0e30> : vector<32xf32>
      %scales = vector.broadcast %scale : f32 to vector<32xf32>
      %low = arith.constant -1.0e30 : f32
      %none = arith.constant dense<0.0> : vector<32xf32>

      %last:5 = scf.for %i = %c0 to %tiles step %c1
          iter_args(%max0 = %low, %max1 = %low, %sum0 = %zero, %sum1 = %zero, %mix = %none)
          -> (f32, f32, f32, f32, vector<32xf32>) {
        %new:5 = kvcache.consume %ring[%i] : !ring -> (f32, f32, f32, f32, vector<32xf32>) {
        ^bb0(%ks: !tile, %vs: !tile):
          %s = kvcache.mma %q_tile[%c0, %c0], %ks[%c0, %c0] : !tile, !tile -> vector<32xf32>
          %raw = kvcache.mma_wait %s : vector<32xf32>
          %t = arith.muli %i, %c64 : index
          %left = arith.subi %length, %t : index
          %left_i32 = arith.index_cast %left : index to i32
          %lefts = vector.broadcast %left_i32 : i32 to vector<32xi32>
          %used = arith.cmpi slt, %columns, %lefts : vector<32xi32>
          %scaled = arith.mulf %raw, %scales : vector<32xf32>
          %scores = arith.select %used, %scaled, %lowest : vector<32xi1>, vector<32xf32>

          %row0 = vector.shuffle %scores, %scores ROW0 : vector<32xf32>, vector<32xf32>
          %row1 = vector.shuffle %scores, %scores ROW1 : vector<32xf32>, vector<32xf32>
          %of_lane0 = vector.reduction <maximumf>, %row0 : vector<16xf32> into f32
          %of_lane1 = vector.reduction <maximumf>, %row1 : vector<16xf32> into f32
          %of_row0 = gpu.subgroup_reduce maximumf %of_lane0 cluster(size = 4) : (f32) -> f32
          %of_row1 = gpu.subgroup_reduce maximumf %of_lane1 cluster(size = 4) : (f32) -> f32
          %new_max0 = arith.maximumf %max0, %of_row0 : f32
          %new_max1 = arith.maximumf %max1, %of_row1 : f32
          %change0 = arith.subf %max0, %new_max0 : f32
          %change1 = arith.subf %max1, %new_max1 : f32
          %shrink0 = math.exp2 %change0 : f32
          %shrink1 = math.exp2 %change1 : f32
          %maxes0 = vector.broadcast %new_max0 : f32 to vector<16xf32>
          %maxes1 = vector.broadcast %new_max1 : f32 to vector<16xf32>
          %distances0 = arith.subf %row0, %maxes0 : vector<16xf32>
          %distances1 = arith.subf %row1, %maxes1 : vector<16xf32>
          %probs0 = math.exp2 %distances0 : vector<16xf32>
          %probs1 = math.exp2 %distances1 : vector<16xf32>
          %added0 = vector.reduction <add>, %probs0 fastmath<reassoc> : vector<16xf32> into f32
          %added1 = vector.reduction <add>, %probs1 fastmath<reassoc> : vector<16xf32> into f32
          %new_sum0 = math.fma %sum0, %shrink0, %added0 : f32
          %new_sum1 = math.fma %sum1, %shrink1, %added1 : f32

          %probs = vector.shuffle %probs0, %probs1 BOTH : vector<16xf32>, vector<16xf32>
          %p = arith.truncf %probs : vector<32xf32> to vector<32xbf16>
          %shrinks0 = vector.broadcast %shrink0 : f32 to vector<16xf32>
          %shrinks1 = vector.broadcast %shrink1 : f32 to vector<16xf32>
          %shrinks = vector.shuffle %shrinks0, %shrinks1 BOTH : vector<16xf32>, vector<16xf32>
          %shrunk = arith.mulf %mix, %shrinks : vector<32xf32>
          %m = kvcache.mma %p, %vs[%c0, %c0] add %shrunk {major_b = #kvcache.major<mn_major>}
              : vector<32xbf16>, !tile -> vector<32xf32>
          %new_mix = kvcache.mma_wait %m : vector<32xf32>
          kvcache.yield %new_max0, %new_max1, %new_sum0, %new_sum1, %new_mix : f32, f32, f32, f32, vector<32xf32>
        }
        scf.yield %new#0, %new#1, %new#2, %new#3, %new#4 : f32, f32, f32, f32, vector<32xf32>
      }
      %all0 = gpu.subgroup_reduce add %last#2 cluster(size = 4) : (f32) -> f32
      %all1 = gpu.subgroup_reduce add %last#3 cluster(size = 4) : (f32) -> f32
      %alls0 = vector.broadcast %all0 : f32 to vector<16xf32>
      %alls1 = vector.broadcast %all1 : f32 to vector<16xf32>
      %alls = vector.shuffle %alls0, %alls1 BOTH : vector<16xf32>, vector<16xf32>
      %mean = arith.divf %last#4, %alls : vector<32xf32>
      %of_group = arith.subi %thread, %c128 : index
      %warp = arith.divui %of_group, %c32 : index
      %first_row = arith.muli %warp, %c16 : index
      %in_warp = arith.remui %of_group, %c32 : index
      %lane_row = arith.divui %in_warp, %c4 : index
      %row = arith.addi %first_row, %lane_row : index
      %row8 = arith.addi %row, %c8 : index
      STORES
    }
    gpu.terminator
  }
  return
}
"""


def attention():
    """The text of `ATTENTION`."""
    lanes = np.arange(32)
    rows = [lanes[lanes // 2 % 2 == row] for row in range(2)]
    both = np.empty(32, int)
    both[rows[0]], both[rows[1]] = np.arange(16), np.arange(16, 32)
    columns = fragment_of_d(64)[1][0]
    stores = []
    for i in range(0, 32, 2):
        stores.append(f"""
      %c{i}_column = arith.constant {columns[i]} : index
      %at{i} = arith.addi %lane_column, %c{i}_column : index
      %x{i} = vector.extract_strided_slice %mean {{offsets = [{i}], sizes = [2], strides = [1]}}
          : vector<32xf32> to vector<2xf32>
      vector.store %x{i}, %out[%row{8 if i // 2 % 2 else ""}, %at{i}] : memref<64x64xf32>, vector<2xf32>""")
    text = ATTENTION.replace("STORES", "".join(stores)).replace("COLUMNS", str(columns.tolist()))
    for name, lanes in (("ROW0", rows[0]), ("ROW1", rows[1]), ("BOTH", both)):
        text = text.replace(name, str(lanes.tolist()))
    return text


def attend(program, length=150):
    """Runs `ATTENTION`, and compares it with the model."""
    random = np.random.default_rng(5)
    bf16 = DTYPES["bf16"]
    blocks = random.standard_normal((5, 2, 1, 64, 2, 64)).astype(np.float32).astype(bf16)
    lut = np.array([[3, 1, 4]], np.uint32)
    q = random.standard_normal((64, 64)).astype(np.float32).astype(bf16)
    out = np.zeros((64, 64), np.float32)
    program.call("attend", blocks, np.array([length], np.uint32), lut, q, out)
    roles = (blocks[lut[0], kv, 0, :, 1].reshape(-1, 1, 64)[:length] for kv in range(2))
    want, _ = model.attend(q[:, None], *roles, 0.125, causal=False)
    np.testing.assert_allclose(out, want[:, 0], atol=0.01)
    return out


# Scores of 64 queries of MLA, and half of their values each in two warpgroups: 36 steps of k, and
# 128 accumulators per thread.
LATENT = """
!q = !kvcache.tile<64x576xbf16, swizzle_128b>
!k = !kvcache.tile<64x576xbf16, swizzle_128b>
gpu.module @kernels {
  gpu.func @mla(%n: index, %out: memref<256x128xf32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    %c256 = arith.constant 256 : index
    %t = gpu.thread_id x
    %q = kvcache.alloc_tile : !q
    %k = kvcache.alloc_tile : !k
    %g = arith.divui %t, %c128 : index
    %col = arith.muli %g, %c256 : index
    %z = arith.constant dense<0.0> : vector<128xf32>
    %s2 = arith.constant dense<0.5> : vector<128xf32>
    %o = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> vector<128xf32> {
      %s = kvcache.mma %q[%c0, %c0], %k[%c0, %c0] : !q, !k -> vector<32xf32>
      %w = kvcache.mma_wait %s : vector<32xf32>
      %e = math.exp2 %w : vector<32xf32>
      %p = arith.truncf %e : vector<32xf32> to vector<32xbf16>
      %r = arith.mulf %acc, %s2 : vector<128xf32>
      %d = kvcache.mma %p, %k[%c0, %col] add %r {major_b = #kvcache.major<mn_major>} : vector<32xbf16>, !k -> vector<128xf32>
      %f = kvcache.mma_wait %d : vector<128xf32>
      gpu.barrier
      scf.yield %f : vector<128xf32>
    }
    vector.store %o, %out[%t, %c0] : memref<256x128xf32>, vector<128xf32>
    gpu.return
  }
}
"""
