// RUN: kvcache-opt %s --allow-unregistered-dialect --pass-pipeline="builtin.module(gpu.module(kvcache-expand-for-llvm))" | FileCheck %s

// Math with the chip's own instructions.

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @exact(
  // CHECK-SAME:    %[[X:.*]]: f32)
  // CHECK:         llvm.call_intrinsic "llvm.exp2"(%[[X]]) : (f32) -> f32
  gpu.func @exact(%x: f32) {
    %y = math.exp2 %x : f32
    "test.use"(%y) : (f32) -> ()
    gpu.return
  }

  // Small results are allowed to be zero: nothing has to be scaled.
  // CHECK-LABEL: gpu.func @approximate(
  // CHECK-SAME:    %[[X:.*]]: f32)
  // CHECK:         %[[SCALED:.*]] = arith.mulf %[[X]], %{{.*}} : f32
  // CHECK:         llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%[[SCALED]])
  gpu.func @approximate(%x: f32) {
    %y = math.exp %x fastmath<afn> : f32
    "test.use"(%y) : (f32) -> ()
    gpu.return
  }

  // CHECK-LABEL: gpu.func @vector(
  // CHECK-SAME:    %[[X:.*]]: vector<2xf32>)
  // CHECK:         %[[E:.*]]:2 = vector.to_elements %[[X]]
  // CHECK:         %[[R0:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%[[E]]#0)
  // CHECK:         %[[R1:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%[[E]]#1)
  // CHECK:         %[[Y:.*]] = vector.from_elements %[[R0]], %[[R1]] : vector<2xf32>
  // CHECK:         "test.use"(%[[Y]])
  gpu.func @vector(%x: vector<2xf32>) {
    %y = math.exp2 %x fastmath<afn> : vector<2xf32>
    "test.use"(%y) : (vector<2xf32>) -> ()
    gpu.return
  }

  // Half precision is computed in f32.
  // CHECK-LABEL: gpu.func @half(
  // CHECK:         %[[WIDE:.*]] = arith.extf
  // CHECK:         %[[Y:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%[[WIDE]])
  // CHECK:         arith.truncf %[[Y]] : f32 to f16
  gpu.func @half(%x: f16) {
    %y = math.exp2 %x fastmath<afn> : f16
    "test.use"(%y) : (f16) -> ()
    gpu.return
  }

  // Subnormal operands of logarithms are scaled once by 2^24, an attribute
  // notwithstanding.
  // CHECK-LABEL: gpu.func @logarithm(
  // CHECK-SAME:    %[[X:.*]]: vector<2x2xf32>)
  // CHECK:         %[[FACTOR:.*]] = arith.constant dense<0x4B800000> : vector<2x2xf32>
  // CHECK:         arith.mulf %[[X]], %[[FACTOR]] : vector<2x2xf32>
  // CHECK-NOT:     %[[FACTOR]]
  // CHECK:         "test.use"
  gpu.func @logarithm(%x: vector<2x2xf32>) {
    %y = math.log %x {kvcache.scaled} : vector<2x2xf32>
    "test.use"(%y) : (vector<2x2xf32>) -> ()
    gpu.return
  }

  // CHECK-LABEL: gpu.func @logarithm_of_bf16(
  // CHECK:         arith.extf
  // CHECK:         arith.cmpf olt
  // CHECK:         arith.truncf %{{.*}} : f32 to bf16
  gpu.func @logarithm_of_bf16(%x: bf16) {
    %y = math.log10 %x : bf16
    "test.use"(%y) : (bf16) -> ()
    gpu.return
  }

  // The logarithm of a sum with 1 has no subnormal operand.
  // CHECK-LABEL: gpu.func @logarithm_of_sum(
  // CHECK-NOT:     0x4B800000
  // CHECK:         "test.use"
  gpu.func @logarithm_of_sum(%x: f32) {
    %y = math.log1p %x : f32
    "test.use"(%y) : (f32) -> ()
    gpu.return
  }
}
