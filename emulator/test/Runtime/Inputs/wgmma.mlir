// The operands of wgmma, and its result.

// A is 64x16, B 16x8, both of bf16 and K-major, with a swizzle of 32 bytes.
llvm.mlir.global internal @ops() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<2304 x i8>

// Fills both with ones from a word on, and gives the thread and the descriptors.
func.func private @fill_between(%first: index, %second: index) -> (index, i64, i64) attributes {no_inline} {
  %t = gpu.thread_id x
  %n = gpu.block_dim x
  %words = arith.constant 576 : index
  %ones = llvm.mlir.constant(0x3f803f80 : i32) : i32
  %ops = llvm.mlir.addressof @ops : !llvm.ptr<3>
  scf.for %i = %t to %words step %n {
    %below = arith.cmpi ult, %i, %first : index
    %above = arith.cmpi uge, %i, %second : index
    %is = arith.ori %below, %above : i1
    scf.if %is {
      %number = arith.index_cast %i : index to i32
      %p = llvm.getelementptr %ops[%number] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      llvm.store %ones, %p : i32, !llvm.ptr<3>
    }
  }
  %address = llvm.ptrtoint %ops : !llvm.ptr<3> to i64
  %c4 = llvm.mlir.constant(4 : i64) : i64
  %start = llvm.lshr %address, %c4 : i64
  %bits = llvm.mlir.constant(0xc000001000010000 : i64) : i64
  %a = llvm.add %bits, %start : i64
  %c128 = llvm.mlir.constant(128 : i64) : i64
  %b = llvm.add %a, %c128 : i64
  return %t, %a, %b : index, i64, i64
}

func.func private @fill() -> (index, i64, i64) {
  %c0 = arith.constant 0 : index
  %t, %a, %b = func.call @fill_between(%c0, %c0) : (index, index) -> (index, i64, i64)
  return %t, %a, %b : index, i64, i64
}

func.func private @fill_but_row_5() -> (index, i64, i64) {
  %c40 = arith.constant 40 : index
  %c48 = arith.constant 48 : index
  %t, %a, %b = func.call @fill_between(%c40, %c48) : (index, index) -> (index, i64, i64)
  return %t, %a, %b : index, i64, i64
}

// Both for products by all threads, and accumulators.
func.func private @prepare() -> (index, i64, i64, !llvm.struct<(f32, f32, f32, f32)>) {
  %t, %a, %b = func.call @fill() : () -> (index, i64, i64)
  nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
  nvvm.barrier0
  %zero = llvm.mlir.zero : !llvm.struct<(f32, f32, f32, f32)>
  return %t, %a, %b, %zero : index, i64, i64, !llvm.struct<(f32, f32, f32, f32)>
}

func.func private @save(%t: index, %d: !llvm.struct<(f32, f32, f32, f32)>, %out: memref<128x4xf32>) attributes {no_inline} {
  %c0 = arith.constant 0 : index
  %x0 = llvm.extractvalue %d[0] : !llvm.struct<(f32, f32, f32, f32)>
  memref.store %x0, %out[%t, %c0] : memref<128x4xf32>
  %c1 = arith.constant 1 : index
  %x1 = llvm.extractvalue %d[1] : !llvm.struct<(f32, f32, f32, f32)>
  memref.store %x1, %out[%t, %c1] : memref<128x4xf32>
  %c2 = arith.constant 2 : index
  %x2 = llvm.extractvalue %d[2] : !llvm.struct<(f32, f32, f32, f32)>
  memref.store %x2, %out[%t, %c2] : memref<128x4xf32>
  %c3 = arith.constant 3 : index
  %x3 = llvm.extractvalue %d[3] : !llvm.struct<(f32, f32, f32, f32)>
  memref.store %x3, %out[%t, %c3] : memref<128x4xf32>
  return
}
