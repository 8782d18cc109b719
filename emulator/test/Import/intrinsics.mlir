// Intrinsics that upstream's import leaves by name become the same ops as PTX.

// RUN: kvcache-opt %s --pass-pipeline="builtin.module(gpu.module(kvcache-expand-inline-ptx))" | FileCheck %s

gpu.module @kernels attributes {} {

// CHECK-LABEL: llvm.func @intrinsics(
llvm.func @intrinsics(%mask: i32, %x: f32, %s: !llvm.ptr<3>, %g: !llvm.ptr<1>, %is: i1) -> f32 {
  %zero = llvm.mlir.constant(0 : i32) : i32
  // CHECK: nvvm.barrier id
  llvm.call_intrinsic "llvm.nvvm.barrier.cta.sync.aligned.all"(%zero) : (i32) -> ()
  // CHECK: nvvm.shfl.sync down
  %a = llvm.call_intrinsic "llvm.nvvm.shfl.sync.down.f32"(%mask, %x, %zero, %zero) : (i32, f32, i32, i32) -> f32
  // CHECK: nvvm.shfl.sync idx {{.*}}return_value_and_is_valid
  %p = llvm.call_intrinsic "llvm.nvvm.shfl.sync.idx.i32p"(%mask, %zero, %zero, %zero) : (i32, i32, i32, i32) -> !llvm.struct<(i32, i1)>
  // CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = ca
  llvm.call_intrinsic "llvm.nvvm.cp.async.ca.shared.global.16"(%s, %g) : (!llvm.ptr<3>, !llvm.ptr<1>) -> ()
  // CHECK: nvvm.cp.async.wait.group 0
  llvm.call_intrinsic "llvm.nvvm.cp.async.wait.group"(%zero) : (i32) -> ()
  // CHECK: nvvm.ldmatrix
  %m = llvm.call_intrinsic "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x2.trans.b16.p3"(%s) : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32)>
  %m0 = llvm.extractvalue %m[0] : !llvm.struct<(i32, i32)>
  // CHECK: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.f32.bf16.bf16.f32"
  %d = llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.bf16"(%m0, %m0, %m0, %m0, %m0, %m0, %x, %x, %x, %x) : (i32, i32, i32, i32, i32, i32, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
  // CHECK: nvvm.vote.sync any
  %v = llvm.call_intrinsic "llvm.nvvm.vote.any.sync"(%mask, %is) : (i32, i1) -> i1
  // CHECK: nvvm.elect.sync
  // CHECK: nvvm.vote.sync ballot
  // CHECK: llvm.intr.cttz
  %e = llvm.call_intrinsic "llvm.nvvm.elect.sync"(%mask) : (i32) -> !llvm.struct<(i32, i1)>
  // CHECK: nvvm.memory.barrier <gpu>
  llvm.call_intrinsic "llvm.nvvm.membar.gl"() : () -> ()
  // Intrinsics that the emulator has by name stay.
  // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"
  %y = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"(%a) : (f32) -> f32
  %z = llvm.extractvalue %d[1] : !llvm.struct<(f32, f32, f32, f32)>
  %w = llvm.extractvalue %e[0] : !llvm.struct<(i32, i1)>
  %u = llvm.uitofp %w : i32 to f32
  %sum = llvm.fadd %y, %z : f32
  %all = llvm.fadd %sum, %u : f32
  llvm.return %all : f32
}

}
