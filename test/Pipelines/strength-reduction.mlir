// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_80 --emit-ptx | FileCheck %s

// LLVM's straight-line strength reduction would make an addition of the second
// product. It takes a time quadratic in the length of a function: it doesn't
// run.

// CHECK-LABEL: .visible .entry multiply(
// CHECK:         ld.param.b32 [[A:%r[0-9]+]], [multiply_param_2];
// CHECK:         ld.param.b32 [[B:%r[0-9]+]], [multiply_param_3];
// CHECK:         add.s32 [[B2:%r[0-9]+]], [[B]], 2;
// CHECK:         mul.lo.s32 {{.*}}, [[B2]], [[A]];
gpu.module @kernels {
  gpu.func @multiply(%out: memref<?xi32>, %a: i32, %b: i32) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %b1 = arith.addi %b, %one : i32
    %b2 = arith.addi %b, %two : i32
    %first = arith.muli %b1, %a : i32
    %second = arith.muli %b2, %a : i32
    memref.store %first, %out[%c0] : memref<?xi32>
    memref.store %second, %out[%c1] : memref<?xi32>
    gpu.return
  }
}
