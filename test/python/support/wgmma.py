"""Kernels of one warpgroup that multiply matrices in shared memory by wgmma.

The layout of matrices and fragments is from the tables of the PTX ISA ("Canonical Layouts", "Matrix
Fragments for wgmma") and shares no code with the emulator.
"""

import ml_dtypes
import numpy as np

import kvcache

TARGET = "emulator:sm_90a"
DTYPES = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "tf32": np.dtype(np.float32),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "s8": np.dtype(np.int8),
    "u8": np.dtype(np.uint8),
    "f32": np.dtype(np.float32),
    "s32": np.dtype(np.int32),
}
STEP_BYTES = 32
SPANS = {16: 0, 128: 1, 64: 2, 32: 3}


def swizzle(address, span):
    """Applies exclusive-or to the 16-byte chunk of an address and the number of its 128-byte line."""
    return address ^ (address // 128 % (span // 16)) * 16


def place(matrix, major, span, leading, stride):
    """The addresses of elements [mn, k] of a matrix that begins at 0."""
    size = matrix.dtype.itemsize
    mn, k = np.indices(matrix.shape)
    if major == "k":
        leap = leading if span == 16 else 16
        offset = mn % 8 * span + mn // 8 * stride + k * size // 16 * leap + k * size % 16
    else:
        to_next = (stride, leading) if span == 16 else (leading, stride)
        offset = mn * size % span + mn * size // span * to_next[0] + k % 8 * span + k // 8 * to_next[1]
    return swizzle(offset, span)


def store(image, at, matrix, addresses):
    size = matrix.dtype.itemsize
    raw = np.ascontiguousarray(matrix).view(np.uint8).reshape(*matrix.shape, size)
    image[at + addresses[..., None] + np.arange(size)] = raw


def descriptor(start, span, leading, stride):
    return start // 16 | leading // 16 << 16 | stride // 16 << 32 | SPANS[span] << 62


def fragment(n):
    """The rows and columns of each thread's accumulators."""
    t, i = np.indices((128, n // 2))
    return t // 32 * 16 + t % 32 // 4 + i // 2 % 2 * 8, i // 4 * 8 + t % 4 * 2 + i % 2


def exponents(numbers):
    return np.where(numbers == 0, -999, np.frexp(numbers)[1] - 1)


def drop_bits(numbers, exponents, bits):
    """Rounds numbers towards 0, with ``bits`` bits after that of ``exponents``."""
    units = np.ldexp(1.0, exponents - bits)
    return np.trunc(numbers / units) * units


def add_as_chip(a, b, given, bits):
    """Computes ``a @ b.T + given`` with the additions of an H200, which are those of the emulator's wgmma.

    All addends lose the bits more than ``bits`` below the first one of the largest: 25, and 13 for
    fp8. Sums of f32 have no more bits, and are not rounded. Sums of f16 are.
    """
    addends = np.concatenate([a[:, None, :] * b, given[:, :, None].astype(float)], axis=2)
    # The product of two numbers below 2 may be above.
    highest = np.concatenate([exponents(a)[:, None, :] + exponents(b), exponents(given)[:, :, None]], axis=2).max(2)
    sums = drop_bits(addends, highest[:, :, None], bits).sum(2)
    if given.dtype == np.float32:
        sums = drop_bits(sums, exponents(sums), min(bits, 23))
    return sums.astype(given.dtype)


def structure(element, n):
    count, type = (n // 4, "vector<2xf16>") if element == "f16" else (n // 2, {"f32": "f32", "s32": "i32"}[element])
    return count, type, f"!llvm.struct<({', '.join([type] * count)})>"


def mma(result, a, b, accumulators, n, k, types, majors=("k", "k"), accumulates=True, signs=("one", "one"), extra=""):
    """The text of one MMA instruction."""
    d, a_type, b_type = types
    struct = structure(d, n)[2]
    layouts = ("row" if majors[0] == "k" else "col", "col" if majors[1] == "k" else "row")
    scale = "one" if accumulates else "zero"
    return f"""
    {result} = nvvm.wgmma.mma_async {a}, {b}, {accumulators}, #nvvm.shape<m = 64, n = {n}, k = {k}>,
      D [<{d}>, #nvvm.wgmma_scale_out<{scale}>{extra}],
      A [<{a_type}>, #nvvm.wgmma_scale_in<{signs[0]}>, <{layouts[0]}>],
      B [<{b_type}>, #nvvm.wgmma_scale_in<{signs[1]}>, <{layouts[1]}>] : {struct} -> {struct}"""


def kernel(n, types, image_bytes, body):
    """A kernel that copies `image` to shared memory, loads %acc from `given`, runs `body` and stores %result."""
    count, type, struct = structure(types[0], n)
    load, build, save = [], [f"%s0 = llvm.mlir.undef : {struct}"], []
    for i in range(count):
        load += [
            f"%i{i} = arith.constant {i} : index",
            f"%w{i} = memref.load %given[%t, %i{i}] : memref<128x{count}xi32>",
            f"%v{i} = llvm.bitcast %w{i} : i32 to {type}" if type != "i32" else "",
        ]
        value = f"%v{i}" if type != "i32" else f"%w{i}"
        build.append(f"%s{i + 1} = llvm.insertvalue {value}, %s{i}[{i}] : {struct}")
        save += [
            f"%x{i} = llvm.extractvalue %result[{i}] : {struct}",
            f"%y{i} = llvm.bitcast %x{i} : {type} to i32" if type != "i32" else "",
            f"memref.store {'%y' if type != 'i32' else '%x'}{i}, %out[%t, %i{i}] : memref<128x{count}xi32>",
        ]
    build[-1] = build[-1].replace(f"%s{count} =", "%acc =")
    lines = "\n    ".join(load + build), "\n    ".join(save)
    words = image_bytes // 4
    return f"""
module attributes {{gpu.container_module}} {{
gpu.module @kernels {{
  llvm.mlir.global internal @image() {{addr_space = 3 : i32, alignment = 1024 : i64}} : !llvm.array<{image_bytes} x i8>
  gpu.func @kernel(%image: memref<{words}xi32>, %a: i64, %b: i64, %given: memref<128x{count}xi32>,
                   %out: memref<128x{count}xi32>) kernel {{
    %t = gpu.thread_id x
    %c128 = arith.constant 128 : index
    %words = arith.constant {words} : index
    %shared = llvm.mlir.addressof @image : !llvm.ptr<3>
    scf.for %i = %t to %words step %c128 {{
      %word = memref.load %image[%i] : memref<{words}xi32>
      %n = arith.index_cast %i : index to i32
      %p = llvm.getelementptr %shared[%n] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      llvm.store %word, %p : i32, !llvm.ptr<3>
    }}
    nvvm.fence.proxy {{kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}}
    nvvm.barrier0
    %address = llvm.ptrtoint %shared : !llvm.ptr<3> to i64
    %c4 = llvm.mlir.constant(4 : i64) : i64
    %start = llvm.lshr %address, %c4 : i64
    %da = llvm.add %a, %start : i64
    %db = llvm.add %b, %start : i64
    {lines[0]}
    {body}
    {lines[1]}
    gpu.return
  }}
}}
func.func @main(%image: memref<{words}xi32>, %a: i64, %b: i64, %given: memref<128x{count}xi32>,
                %out: memref<128x{count}xi32>) {{
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1)
      args(%image : memref<{words}xi32>, %a : i64, %b : i64, %given : memref<128x{count}xi32>,
           %out : memref<128x{count}xi32>)
  return
}}
}}
"""


def multiply(program, n, types, image, a, b, given):
    """Runs a kernel: `given` and the result are matrices [64, n]."""
    rows, columns = fragment(n)
    dtype = DTYPES[types[0]]
    registers = np.ascontiguousarray(given.astype(dtype)[rows, columns]).view(np.int32)
    out = np.zeros_like(registers)
    program.call("main", image.view(np.int32), a, b, registers, out)
    result = np.empty((64, n), dtype)
    result[rows, columns] = out.view(dtype)
    return result


def jit(text, **options):
    return kvcache.jit(text, target=TARGET, opt_level=0, **options)


# Sums of keys by keys of pages. A tensor copy brings each page to one of two stages. While a page
# is multiplied, the copy of the next one waits only for the MMA before.
PIPELINE = """
#kv = #kvcache.params<num_heads = 2, head_size = 64>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!box = !kvcache.tma_tile<64x1x64x1xbf16, swizzle_128b>
!tile = !kvcache.tile<64x64xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>
!acc = !llvm.struct<(f32, f32, f32, f32)>

func.func @pipeline(%blocks: memref<?x2x?x64x2x64xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                    %out: memref<128x4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0 : i32
  %cache = kvcache.paged_collection %blocks, %lengths, %lut, %zero, %zero
      : memref<?x2x?x64x2x64xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  %keys = kvcache.paged_view key %cache[%c0] : !collection
  %box = kvcache.create_paged_tma_tile %keys {rows = 64, columns = 64, swizzle = #kvcache.swizzle<swizzle_128b>}
      : !cache -> !box
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%t, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %bytes = arith.constant 8192 : index
    %ticks = arith.constant 10000000 : index
    %true = arith.constant true
    %false = arith.constant false
    %c4 = arith.constant 4 : i64
    %tile0 = kvcache.alloc_tile : !tile
    %tile1 = kvcache.alloc_tile : !tile
    %barrier = nvgpu.mbarrier.create -> !barrier
    %is_first = arith.cmpi eq, %t, %c0 : index
    scf.if %is_first {
      nvgpu.mbarrier.init %barrier[%c0], %c1 : !barrier
      nvgpu.mbarrier.init %barrier[%c1], %c1 : !barrier
      nvvm.fence.mbarrier.init
    }
    gpu.barrier
    BODY
    gpu.terminator
  }
  return
}
"""


def pipeline(num_pages):
    """The text of `PIPELINE` for ``num_pages`` pages."""

    def load(page):
        stage = page % 2
        return f"""
    %page{page} = arith.constant {page} : index
    scf.if %is_first {{
      kvcache.tma_expect %barrier[%c{stage}] bytes %bytes : !barrier
      kvcache.tma_load %box[%c0, %c1, %c0, %page{page}], %barrier[%c{stage}] to %tile{stage}
          : !box, !barrier -> !tile
    }}"""

    lines, last = [load(0)], "%acc"
    for stage in range(2):
        lines.append(f"""
    %memory{stage} = kvcache.tile_memory %tile{stage} : !tile -> memref<8192xi8, #gpu.address_space<workgroup>>
    %pointer{stage} = memref.extract_aligned_pointer_as_index %memory{stage}
        : memref<8192xi8, #gpu.address_space<workgroup>> -> index
    %address{stage} = arith.index_cast %pointer{stage} : index to i64
    %start{stage} = arith.shrui %address{stage}, %c4 : i64""")
    lines.append("%acc = llvm.mlir.zero : !acc")
    for page in range(num_pages):
        stage, parity = page % 2, "%true" if page // 2 % 2 else "%false"
        lines.append(f"nvgpu.mbarrier.try_wait.parity %barrier[%c{stage}], {parity}, %ticks : !barrier")
        lines.append("nvvm.wgmma.fence.aligned")
        for step in range(4):
            bits = int(np.uint64(descriptor(32 * step, 128, 16, 1024)).astype(np.int64))
            name = f"{page}_{step}"
            lines.append(f"%bits{name} = arith.constant {bits} : i64")
            lines.append(f"%k{name} = arith.addi %bits{name}, %start{stage} : i64")
            lines.append(mma(f"%d{name}", f"%k{name}", f"%k{name}", last, 8, 16, ("f32", "bf16", "bf16")))
            last = f"%d{name}"
        lines.append("nvvm.wgmma.commit.group.sync.aligned")
        if page + 1 < num_pages:
            # The stage is free when the MMA before is done, in all warps.
            lines.append("nvvm.wgmma.wait.group.sync.aligned 1\n    gpu.barrier" if page else "")
            lines.append(load(page + 1))
    lines.append("nvvm.wgmma.wait.group.sync.aligned 0")
    for i in range(4):
        lines.append(f"%i{i} = arith.constant {i} : index\n    %x{i} = llvm.extractvalue {last}[{i}] : !acc")
        lines.append(f"memref.store %x{i}, %out[%t, %i{i}] : memref<128x4xf32>")
    return PIPELINE.replace("BODY", "\n    ".join(lines))
