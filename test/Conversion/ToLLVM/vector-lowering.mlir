// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_90a --emit-ptx | FileCheck %s

// Ops on vectors of several dimensions, whose lowering makes arithmetic and
// poison that have to be lowered in turn.

gpu.module @kernels {
  // CHECK-LABEL: .entry outer_product(
  // CHECK-COUNT-8: mul
  gpu.func @outer_product(%x: vector<4xf32>, %y: vector<8xf32>, %out: memref<8xf32>) kernel {
    %c0 = arith.constant 0 : index
    %products = vector.outerproduct %x, %y : vector<4xf32>, vector<8xf32>
    %row = vector.extract %products[2] : vector<8xf32> from vector<4x8xf32>
    vector.store %row, %out[%c0] : memref<8xf32>, vector<8xf32>
    gpu.return
  }

  // CHECK-LABEL: .entry squares(
  // CHECK-COUNT-16: mul
  gpu.func @squares(%inout: memref<16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %x = vector.load %inout[%c0] : memref<16xf32>, vector<16xf32>
    %tile = vector.shape_cast %x : vector<16xf32> to vector<4x4xf32>
    %squares = arith.mulf %tile, %tile : vector<4x4xf32>
    %flat = vector.shape_cast %squares : vector<4x4xf32> to vector<16xf32>
    vector.store %flat, %inout[%c0] : memref<16xf32>, vector<16xf32>
    gpu.return
  }
}
