// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_80 --emit-ptx | FileCheck %s --check-prefixes=CHECK,SM80
// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_90a --emit-ptx | FileCheck %s --check-prefixes=CHECK,SM90
// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_100a --emit-ptx | FileCheck %s --check-prefixes=CHECK,SM100

// Eight bf16 take four packed instructions for their magnitudes, four to balance, a reciprocal, a product and a fused
// one for each, and a conversion for two of them.

gpu.module @kernels {
  // CHECK-LABEL: .entry quantize(
  // CHECK-NOT:     div.
  // CHECK-COUNT-4: abs.bf16x2
  // CHECK-COUNT-3: max.NaN.bf16x2
  // SM80-COUNT-4:  fma.rn.bf16x2
  // SM90-COUNT-4:  mul.rn.bf16x2
  // SM100-COUNT-4: mul.rn.bf16x2
  // CHECK:         rcp.approx.ftz.f32
  // SM80-COUNT-8:  fma.rn.f32
  // SM90-COUNT-8:  fma.rn.f32
  // SM90-COUNT-4:  cvt.rn.satfinite.e4m3x2.f32
  // SM100-COUNT-4: fma.rn.f32x2
  // SM100-COUNT-4: cvt.rn.satfinite.e4m3x2.f32
  // CHECK-NOT:     div.
  // CHECK:         ret;
  gpu.func @quantize(%in: memref<?x8xbf16>, %values: memref<?x8xf8E4M3FN>, %scales: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %x = vector.load %in[%t, %c0] {alignment = 16} : memref<?x8xbf16>, vector<8xbf16>
    %w, %s = kvcache.quantize %x : vector<8xbf16> -> vector<8xf8E4M3FN>, f32
    vector.store %w, %values[%t, %c0] {alignment = 8} : memref<?x8xf8E4M3FN>, vector<8xf8E4M3FN>
    memref.store %s, %scales[%t] : memref<?xf32>
    gpu.return
  }
}
