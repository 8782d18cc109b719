// RUN: kvcache-opt %s --convert-nvvm-to-emulator="sanitize=false" | FileCheck %s

// Conversions become calls with the format and how to round; approximations
// arithmetic of the host.

// CHECK-LABEL: llvm.func internal @kernels_converts(
// CHECK-SAME: %[[THREAD:[^:]*]]: !llvm.ptr, %[[P:[^:]*]]: !llvm.ptr, %[[A:[^:]*]]: f32, %[[B:[^:]*]]: f32)
// CHECK-DAG: %[[ZERO:.*]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-DAG: %[[E4M3:.*]] = llvm.mlir.constant(3 : i32) : i32
// CHECK-DAG: %[[SATURATE:.*]] = llvm.mlir.constant(8 : i32) : i32
// CHECK-DAG: %[[SITE:.*]] = llvm.mlir.addressof @kvcache_site
// CHECK: %[[WORD:.*]] = llvm.call @kvcacheEmulatorConvertF32x2(%[[THREAD]], %{{.*}}, %[[A]], %[[B]], %[[ZERO]], %[[E4M3]], %[[SATURATE]])
// CHECK: %[[CODES:.*]] = llvm.trunc %[[WORD]] : i32 to i16
// CHECK: %[[PAIR:.*]] = llvm.zext %{{.*}} : i16 to i32
// CHECK: %[[FROM:.*]] = llvm.mlir.constant(3 : i32) : i32
// CHECK: %[[TO:.*]] = llvm.mlir.constant(0 : i32) : i32
// CHECK: %[[FLAGS:.*]] = llvm.mlir.constant(0 : i32) : i32
// CHECK: %[[HALVES:.*]] = llvm.call @kvcacheEmulatorConvertPair(%[[THREAD]], %{{.*}}, %[[PAIR]], %[[FROM]], %[[TO]], %[[FLAGS]])
// CHECK: llvm.bitcast %[[HALVES]] : i32 to vector<2xf16>

// CHECK-LABEL: llvm.func internal @kernels_approximates(
// CHECK-SAME: %[[A:[^:]*]]: f32)
// CHECK: llvm.intr.exp2(%[[A]])
// CHECK: llvm.fdiv
// CHECK-NOT: llvm.nvvm

// CHECK-LABEL: llvm.func internal @kernels_library(
// CHECK-SAME: %[[A:[^:]*]]: f32)
// CHECK: llvm.call_intrinsic "llvm.exp"(%[[A]])
// CHECK: %[[WIDE:.*]] = llvm.fpext %[[A]] : f32 to f64
// CHECK: %[[ERF:.*]] = llvm.call @kvcacheEmulatorMath(%{{.*}}, %{{.*}}, %[[WIDE]], %[[WIDE]], %{{.*}})
// CHECK: llvm.fptrunc %[[ERF]] : f64 to f32

gpu.module @kernels [#nvvm.target<chip = "sm_100a">] {
  llvm.func @__nv_expf(f32) -> f32
  llvm.func @__nv_erff(f32) -> f32

  llvm.func @converts(%p: !llvm.ptr, %a: f32, %b: f32) attributes {nvvm.kernel} {
    %codes = nvvm.convert.f32x2.to.f8x2 %a, %b {rnd = #nvvm.fp_rnd_mode<rn>,
        sat = #nvvm.sat_mode<satfinite>} : i16 (f8E4M3FN)
    %bytes = llvm.bitcast %codes : i16 to vector<2xi8>
    %halves = nvvm.convert.f8x2.to.f16x2 %bytes : vector<2xi8> (f8E4M3FN) -> vector<2xf16>
    llvm.store %halves, %p : vector<2xf16>, !llvm.ptr
    llvm.return
  }

  llvm.func @approximates(%p: !llvm.ptr, %a: f32) attributes {nvvm.kernel} {
    %x = llvm.call_intrinsic "llvm.nvvm.ex2.approx.f32"(%a) : (f32) -> f32
    %y = nvvm.rcp.approx.ftz.f %x : f32
    llvm.store %y, %p : f32, !llvm.ptr
    llvm.return
  }

  llvm.func @library(%p: !llvm.ptr, %a: f32) attributes {nvvm.kernel} {
    %x = llvm.call @__nv_expf(%a) : (f32) -> f32
    %y = llvm.call @__nv_erff(%a) : (f32) -> f32
    llvm.store %x, %p : f32, !llvm.ptr
    llvm.store %y, %p : f32, !llvm.ptr
    llvm.return
  }
}
