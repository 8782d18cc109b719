// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_80 --emit-ptx | FileCheck %s --implicit-check-not=.local
// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_90a --emit-ptx | FileCheck %s --implicit-check-not=.local

// A group over 16 threads of a warp takes four exchanges between them.

gpu.module @kernels {
  // CHECK-LABEL:   .entry over_16_lanes(
  // CHECK-COUNT-4:   shfl.sync.bfly.b32
  // CHECK-NOT:       shfl.sync
  // CHECK:           ret;
  gpu.func @over_16_lanes(%in: memref<?x8xbf16>, %values: memref<?x8xi8>, %scales: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %x = vector.load %in[%t, %c0] {alignment = 16} : memref<?x8xbf16>, vector<8xbf16>
    %w, %s = kvcache.quantize %x {lanes = 16} : vector<8xbf16> -> vector<8xi8>, f32
    vector.store %w, %values[%t, %c0] {alignment = 8} : memref<?x8xi8>, vector<8xi8>
    memref.store %s, %scales[%t] : memref<?xf32>
    gpu.return
  }

  // CHECK-LABEL:   .entry over_32_lanes(
  // CHECK-COUNT-5:   shfl.sync.bfly.b32
  // CHECK-NOT:       shfl.sync
  // CHECK:           ret;
  gpu.func @over_32_lanes(%in: memref<?xf32>, %values: memref<?xi8>, %scales: memref<?xf32>) kernel {
    %t = gpu.thread_id x
    %x = memref.load %in[%t] : memref<?xf32>
    %w, %s = kvcache.quantize %x {lanes = 32} : f32 -> i8, f32
    memref.store %w, %values[%t] : memref<?xi8>
    memref.store %s, %scales[%t] : memref<?xf32>
    gpu.return
  }

  // CHECK-LABEL:   .entry in_one_lane(
  // CHECK-NOT:       shfl.sync
  // CHECK:           ret;
  gpu.func @in_one_lane(%in: memref<?x8xf32>, %values: memref<?x8xi8>, %scales: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %x = vector.load %in[%t, %c0] {alignment = 16} : memref<?x8xf32>, vector<8xf32>
    %w, %s = kvcache.quantize %x : vector<8xf32> -> vector<8xi8>, f32
    vector.store %w, %values[%t, %c0] {alignment = 8} : memref<?x8xi8>, vector<8xi8>
    memref.store %s, %scales[%t] : memref<?xf32>
    gpu.return
  }
}
