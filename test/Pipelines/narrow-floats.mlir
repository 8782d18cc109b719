// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_89 --emit-ptx | FileCheck %s
// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_90a --emit-ptx | FileCheck %s
// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_100a --emit-ptx | FileCheck %s --check-prefixes=CHECK,FP4

// Which lane is which operand of `cvt`: the first of two f32 goes to the upper
// half of the result, and otherwise halves correspond (PTX ISA, cvt). A lane of
// higher number is in higher bits, as in memory.

gpu.module @kernels {
  // CHECK-LABEL: .entry f32_to_e4m3(
  // CHECK:         ld.global.nc.v2.b32 {[[LANE0:%r[0-9]+]], [[LANE1:%r[0-9]+]]}
  // CHECK:         cvt.rn.satfinite.e4m3x2.f32 [[PAIR:%rs[0-9]+]], [[LANE1]], [[LANE0]];
  // CHECK:         st.global.b16 [{{.*}}], [[PAIR]];
  gpu.func @f32_to_e4m3(%from: memref<2xf32>, %to: memref<2xf8E4M3FN>) kernel {
    %c0 = arith.constant 0 : index
    %x = vector.load %from[%c0] {alignment = 8 : i64} : memref<2xf32>, vector<2xf32>
    %y = arith.truncf %x : vector<2xf32> to vector<2xf8E4M3FN>
    vector.store %y, %to[%c0] {alignment = 2 : i64} : memref<2xf8E4M3FN>, vector<2xf8E4M3FN>
    gpu.return
  }

  // CHECK-LABEL: .entry f16_to_e5m2(
  // CHECK:         ld.global.nc.b32 [[LANES:%r[0-9]+]]
  // CHECK:         cvt.rn.satfinite.e5m2x2.f16x2 [[PAIR:%rs[0-9]+]], [[LANES]];
  // CHECK:         st.global.b16 [{{.*}}], [[PAIR]];
  gpu.func @f16_to_e5m2(%from: memref<2xf16>, %to: memref<2xf8E5M2>) kernel {
    %c0 = arith.constant 0 : index
    %x = vector.load %from[%c0] {alignment = 4 : i64} : memref<2xf16>, vector<2xf16>
    %y = arith.truncf %x : vector<2xf16> to vector<2xf8E5M2>
    vector.store %y, %to[%c0] {alignment = 2 : i64} : memref<2xf8E5M2>, vector<2xf8E5M2>
    gpu.return
  }

  // Eight instructions, and no shuffle of bytes.

  // CHECK-LABEL: .entry e4m3_to_bf16(
  // CHECK:         ld.global.nc.v4.b32 {[[WORD0:%r[0-9]+]],
  // CHECK:         mov.b32 {[[PAIR0:%rs[0-9]+]], [[PAIR1:%rs[0-9]+]]}, [[WORD0]];
  // CHECK-NOT:     {{prmt|bfe|shl.b32|shr.u32}}
  // CHECK:         cvt.rn.f16x2.e4m3x2 [[HALF0:%r[0-9]+]], [[PAIR0]];
  // CHECK:         cvt.rn.f16x2.e4m3x2 {{.*}}, [[PAIR1]];
  // CHECK-COUNT-6: cvt.rn.f16x2.e4m3x2
  // CHECK-NOT:     {{prmt|bfe|shl.b32|shr.u32|cvt.rn.f16x2.e4m3x2}}
  // CHECK:         mov.b32 {[[LOWER:%rs[0-9]+]], [[UPPER:%rs[0-9]+]]}, [[HALF0]];
  // CHECK:         cvt.f32.f16 [[LANE0:%r[0-9]+]], [[LOWER]];
  // CHECK:         cvt.f32.f16 [[LANE1:%r[0-9]+]], [[UPPER]];
  // CHECK:         cvt.rn.bf16x2.f32 [[RESULT:%r[0-9]+]], [[LANE1]], [[LANE0]];
  // CHECK:         st.global.v4.b32 [{{.*}}], {[[RESULT]],
  gpu.func @e4m3_to_bf16(%from: memref<16xf8E4M3FN>, %to: memref<16xbf16>) kernel {
    %c0 = arith.constant 0 : index
    %x = vector.load %from[%c0] {alignment = 16 : i64} : memref<16xf8E4M3FN>, vector<16xf8E4M3FN>
    %y = arith.extf %x : vector<16xf8E4M3FN> to vector<16xbf16>
    vector.store %y, %to[%c0] {alignment = 16 : i64} : memref<16xbf16>, vector<16xbf16>
    gpu.return
  }

  // FP4-LABEL:   .entry f32_to_f4(
  // FP4:           ld.global.nc.v2.b32 {[[LANE0:%r[0-9]+]], [[LANE1:%r[0-9]+]]}
  // FP4:           cvt.rn.satfinite.e2m1x2.f32 %{{.*}}, [[LANE1]], [[LANE0]];
  // FP4:           st.global.b8
  gpu.func @f32_to_f4(%from: memref<2xf32>, %to: memref<1xi8>) kernel {
    %c0 = arith.constant 0 : index
    %x = vector.load %from[%c0] {alignment = 8 : i64} : memref<2xf32>, vector<2xf32>
    %y = arith.truncf %x : vector<2xf32> to vector<2xf4E2M1FN>
    %z = vector.bitcast %y : vector<2xf4E2M1FN> to vector<1xi8>
    vector.store %z, %to[%c0] : memref<1xi8>, vector<1xi8>
    gpu.return
  }
}
