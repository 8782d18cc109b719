// REQUIRES: ptxas

// Every conversion assembles for every kind of chip, as a scalar and as vectors.

// DEFINE: %{chip} =
// DEFINE: %{assemble} = kvcache-opt %s --kvcache-to-ptx=chip=%{chip} --emit-ptx -o %t.%{chip}.ptx && \
// DEFINE:   ptxas --gpu-name %{chip} %t.%{chip}.ptx -o %t.cubin

// REDEFINE: %{chip} = sm_80
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_89
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_90
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_90a
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_100
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_100a
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_103f
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_110a
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_120a
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_121f
// RUN: %{assemble}

gpu.module @kernels {
  gpu.func @f8E4M3FN(%bytes: memref<?xi8>, %f16: memref<?xf16>, %bf16: memref<?xbf16>, %f32: memref<?xf32>, %f64: memref<?xf64>) kernel {
    %c0 = arith.constant 0 : index
    %b1 = vector.load %bytes[%c0] : memref<?xi8>, vector<1xi8>
    %v1 = arith.bitcast %b1 : vector<1xi8> to vector<1xf8E4M3FN>
    %b3 = vector.load %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %v3 = arith.bitcast %b3 : vector<3xi8> to vector<3xf8E4M3FN>
    %b8 = vector.load %bytes[%c0] : memref<?xi8>, vector<8xi8>
    %v8 = arith.bitcast %b8 : vector<8xi8> to vector<8xf8E4M3FN>
    %s = vector.extract %v1[0] : f8E4M3FN from vector<1xf8E4M3FN>
    %s_f16 = arith.extf %s : f8E4M3FN to f16
    memref.store %s_f16, %f16[%c0] : memref<?xf16>
    %v3_f16 = arith.extf %v3 : vector<3xf8E4M3FN> to vector<3xf16>
    vector.store %v3_f16, %f16[%c0] : memref<?xf16>, vector<3xf16>
    %l3_f16 = vector.load %f16[%c0] : memref<?xf16>, vector<3xf16>
    %t3_f16 = arith.truncf %l3_f16 : vector<3xf16> to vector<3xf8E4M3FN>
    %ti3_f16 = arith.bitcast %t3_f16 : vector<3xf8E4M3FN> to vector<3xi8>
    vector.store %ti3_f16, %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %v8_f16 = arith.extf %v8 : vector<8xf8E4M3FN> to vector<8xf16>
    vector.store %v8_f16, %f16[%c0] : memref<?xf16>, vector<8xf16>
    %l8_f16 = vector.load %f16[%c0] : memref<?xf16>, vector<8xf16>
    %t8_f16 = arith.truncf %l8_f16 : vector<8xf16> to vector<8xf8E4M3FN>
    %ti8_f16 = arith.bitcast %t8_f16 : vector<8xf8E4M3FN> to vector<8xi8>
    vector.store %ti8_f16, %bytes[%c0] : memref<?xi8>, vector<8xi8>
    %s_bf16 = arith.extf %s : f8E4M3FN to bf16
    memref.store %s_bf16, %bf16[%c0] : memref<?xbf16>
    %v3_bf16 = arith.extf %v3 : vector<3xf8E4M3FN> to vector<3xbf16>
    vector.store %v3_bf16, %bf16[%c0] : memref<?xbf16>, vector<3xbf16>
    %l3_bf16 = vector.load %bf16[%c0] : memref<?xbf16>, vector<3xbf16>
    %t3_bf16 = arith.truncf %l3_bf16 : vector<3xbf16> to vector<3xf8E4M3FN>
    %ti3_bf16 = arith.bitcast %t3_bf16 : vector<3xf8E4M3FN> to vector<3xi8>
    vector.store %ti3_bf16, %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %v8_bf16 = arith.extf %v8 : vector<8xf8E4M3FN> to vector<8xbf16>
    vector.store %v8_bf16, %bf16[%c0] : memref<?xbf16>, vector<8xbf16>
    %l8_bf16 = vector.load %bf16[%c0] : memref<?xbf16>, vector<8xbf16>
    %t8_bf16 = arith.truncf %l8_bf16 : vector<8xbf16> to vector<8xf8E4M3FN>
    %ti8_bf16 = arith.bitcast %t8_bf16 : vector<8xf8E4M3FN> to vector<8xi8>
    vector.store %ti8_bf16, %bytes[%c0] : memref<?xi8>, vector<8xi8>
    %s_f32 = arith.extf %s : f8E4M3FN to f32
    memref.store %s_f32, %f32[%c0] : memref<?xf32>
    %v3_f32 = arith.extf %v3 : vector<3xf8E4M3FN> to vector<3xf32>
    vector.store %v3_f32, %f32[%c0] : memref<?xf32>, vector<3xf32>
    %l3_f32 = vector.load %f32[%c0] : memref<?xf32>, vector<3xf32>
    %t3_f32 = arith.truncf %l3_f32 : vector<3xf32> to vector<3xf8E4M3FN>
    %ti3_f32 = arith.bitcast %t3_f32 : vector<3xf8E4M3FN> to vector<3xi8>
    vector.store %ti3_f32, %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %v8_f32 = arith.extf %v8 : vector<8xf8E4M3FN> to vector<8xf32>
    vector.store %v8_f32, %f32[%c0] : memref<?xf32>, vector<8xf32>
    %l8_f32 = vector.load %f32[%c0] : memref<?xf32>, vector<8xf32>
    %t8_f32 = arith.truncf %l8_f32 : vector<8xf32> to vector<8xf8E4M3FN>
    %ti8_f32 = arith.bitcast %t8_f32 : vector<8xf8E4M3FN> to vector<8xi8>
    vector.store %ti8_f32, %bytes[%c0] : memref<?xi8>, vector<8xi8>
    %s_f64 = arith.extf %s : f8E4M3FN to f64
    memref.store %s_f64, %f64[%c0] : memref<?xf64>
    %v3_f64 = arith.extf %v3 : vector<3xf8E4M3FN> to vector<3xf64>
    vector.store %v3_f64, %f64[%c0] : memref<?xf64>, vector<3xf64>
    %l3_f64 = vector.load %f64[%c0] : memref<?xf64>, vector<3xf64>
    %t3_f64 = arith.truncf %l3_f64 : vector<3xf64> to vector<3xf8E4M3FN>
    %ti3_f64 = arith.bitcast %t3_f64 : vector<3xf8E4M3FN> to vector<3xi8>
    vector.store %ti3_f64, %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %v8_f64 = arith.extf %v8 : vector<8xf8E4M3FN> to vector<8xf64>
    vector.store %v8_f64, %f64[%c0] : memref<?xf64>, vector<8xf64>
    %l8_f64 = vector.load %f64[%c0] : memref<?xf64>, vector<8xf64>
    %t8_f64 = arith.truncf %l8_f64 : vector<8xf64> to vector<8xf8E4M3FN>
    %ti8_f64 = arith.bitcast %t8_f64 : vector<8xf8E4M3FN> to vector<8xi8>
    vector.store %ti8_f64, %bytes[%c0] : memref<?xi8>, vector<8xi8>
    gpu.return
  }
  gpu.func @f8E5M2(%bytes: memref<?xi8>, %f16: memref<?xf16>, %bf16: memref<?xbf16>, %f32: memref<?xf32>, %f64: memref<?xf64>) kernel {
    %c0 = arith.constant 0 : index
    %b1 = vector.load %bytes[%c0] : memref<?xi8>, vector<1xi8>
    %v1 = arith.bitcast %b1 : vector<1xi8> to vector<1xf8E5M2>
    %b3 = vector.load %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %v3 = arith.bitcast %b3 : vector<3xi8> to vector<3xf8E5M2>
    %b8 = vector.load %bytes[%c0] : memref<?xi8>, vector<8xi8>
    %v8 = arith.bitcast %b8 : vector<8xi8> to vector<8xf8E5M2>
    %s = vector.extract %v1[0] : f8E5M2 from vector<1xf8E5M2>
    %s_f16 = arith.extf %s : f8E5M2 to f16
    memref.store %s_f16, %f16[%c0] : memref<?xf16>
    %v3_f16 = arith.extf %v3 : vector<3xf8E5M2> to vector<3xf16>
    vector.store %v3_f16, %f16[%c0] : memref<?xf16>, vector<3xf16>
    %l3_f16 = vector.load %f16[%c0] : memref<?xf16>, vector<3xf16>
    %t3_f16 = arith.truncf %l3_f16 : vector<3xf16> to vector<3xf8E5M2>
    %ti3_f16 = arith.bitcast %t3_f16 : vector<3xf8E5M2> to vector<3xi8>
    vector.store %ti3_f16, %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %v8_f16 = arith.extf %v8 : vector<8xf8E5M2> to vector<8xf16>
    vector.store %v8_f16, %f16[%c0] : memref<?xf16>, vector<8xf16>
    %l8_f16 = vector.load %f16[%c0] : memref<?xf16>, vector<8xf16>
    %t8_f16 = arith.truncf %l8_f16 : vector<8xf16> to vector<8xf8E5M2>
    %ti8_f16 = arith.bitcast %t8_f16 : vector<8xf8E5M2> to vector<8xi8>
    vector.store %ti8_f16, %bytes[%c0] : memref<?xi8>, vector<8xi8>
    %s_bf16 = arith.extf %s : f8E5M2 to bf16
    memref.store %s_bf16, %bf16[%c0] : memref<?xbf16>
    %v3_bf16 = arith.extf %v3 : vector<3xf8E5M2> to vector<3xbf16>
    vector.store %v3_bf16, %bf16[%c0] : memref<?xbf16>, vector<3xbf16>
    %l3_bf16 = vector.load %bf16[%c0] : memref<?xbf16>, vector<3xbf16>
    %t3_bf16 = arith.truncf %l3_bf16 : vector<3xbf16> to vector<3xf8E5M2>
    %ti3_bf16 = arith.bitcast %t3_bf16 : vector<3xf8E5M2> to vector<3xi8>
    vector.store %ti3_bf16, %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %v8_bf16 = arith.extf %v8 : vector<8xf8E5M2> to vector<8xbf16>
    vector.store %v8_bf16, %bf16[%c0] : memref<?xbf16>, vector<8xbf16>
    %l8_bf16 = vector.load %bf16[%c0] : memref<?xbf16>, vector<8xbf16>
    %t8_bf16 = arith.truncf %l8_bf16 : vector<8xbf16> to vector<8xf8E5M2>
    %ti8_bf16 = arith.bitcast %t8_bf16 : vector<8xf8E5M2> to vector<8xi8>
    vector.store %ti8_bf16, %bytes[%c0] : memref<?xi8>, vector<8xi8>
    %s_f32 = arith.extf %s : f8E5M2 to f32
    memref.store %s_f32, %f32[%c0] : memref<?xf32>
    %v3_f32 = arith.extf %v3 : vector<3xf8E5M2> to vector<3xf32>
    vector.store %v3_f32, %f32[%c0] : memref<?xf32>, vector<3xf32>
    %l3_f32 = vector.load %f32[%c0] : memref<?xf32>, vector<3xf32>
    %t3_f32 = arith.truncf %l3_f32 : vector<3xf32> to vector<3xf8E5M2>
    %ti3_f32 = arith.bitcast %t3_f32 : vector<3xf8E5M2> to vector<3xi8>
    vector.store %ti3_f32, %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %v8_f32 = arith.extf %v8 : vector<8xf8E5M2> to vector<8xf32>
    vector.store %v8_f32, %f32[%c0] : memref<?xf32>, vector<8xf32>
    %l8_f32 = vector.load %f32[%c0] : memref<?xf32>, vector<8xf32>
    %t8_f32 = arith.truncf %l8_f32 : vector<8xf32> to vector<8xf8E5M2>
    %ti8_f32 = arith.bitcast %t8_f32 : vector<8xf8E5M2> to vector<8xi8>
    vector.store %ti8_f32, %bytes[%c0] : memref<?xi8>, vector<8xi8>
    %s_f64 = arith.extf %s : f8E5M2 to f64
    memref.store %s_f64, %f64[%c0] : memref<?xf64>
    %v3_f64 = arith.extf %v3 : vector<3xf8E5M2> to vector<3xf64>
    vector.store %v3_f64, %f64[%c0] : memref<?xf64>, vector<3xf64>
    %l3_f64 = vector.load %f64[%c0] : memref<?xf64>, vector<3xf64>
    %t3_f64 = arith.truncf %l3_f64 : vector<3xf64> to vector<3xf8E5M2>
    %ti3_f64 = arith.bitcast %t3_f64 : vector<3xf8E5M2> to vector<3xi8>
    vector.store %ti3_f64, %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %v8_f64 = arith.extf %v8 : vector<8xf8E5M2> to vector<8xf64>
    vector.store %v8_f64, %f64[%c0] : memref<?xf64>, vector<8xf64>
    %l8_f64 = vector.load %f64[%c0] : memref<?xf64>, vector<8xf64>
    %t8_f64 = arith.truncf %l8_f64 : vector<8xf64> to vector<8xf8E5M2>
    %ti8_f64 = arith.bitcast %t8_f64 : vector<8xf8E5M2> to vector<8xi8>
    vector.store %ti8_f64, %bytes[%c0] : memref<?xi8>, vector<8xi8>
    gpu.return
  }
  gpu.func @f6E2M3FN(%bytes: memref<?xi8>, %f16: memref<?xf16>, %bf16: memref<?xbf16>, %f32: memref<?xf32>, %f64: memref<?xf64>) kernel {
    %c0 = arith.constant 0 : index
    %b1 = vector.load %bytes[%c0] : memref<?xi8>, vector<1xi8>
    %i1 = arith.trunci %b1 : vector<1xi8> to vector<1xi6>
    %v1 = arith.bitcast %i1 : vector<1xi6> to vector<1xf6E2M3FN>
    %b3 = vector.load %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %i3 = arith.trunci %b3 : vector<3xi8> to vector<3xi6>
    %v3 = arith.bitcast %i3 : vector<3xi6> to vector<3xf6E2M3FN>
    %b8 = vector.load %bytes[%c0] : memref<?xi8>, vector<8xi8>
    %i8 = arith.trunci %b8 : vector<8xi8> to vector<8xi6>
    %v8 = arith.bitcast %i8 : vector<8xi6> to vector<8xf6E2M3FN>
    %s = vector.extract %v1[0] : f6E2M3FN from vector<1xf6E2M3FN>
    %s_f16 = arith.extf %s : f6E2M3FN to f16
    memref.store %s_f16, %f16[%c0] : memref<?xf16>
    %v3_f16 = arith.extf %v3 : vector<3xf6E2M3FN> to vector<3xf16>
    vector.store %v3_f16, %f16[%c0] : memref<?xf16>, vector<3xf16>
    %l3_f16 = vector.load %f16[%c0] : memref<?xf16>, vector<3xf16>
    %t3_f16 = arith.truncf %l3_f16 : vector<3xf16> to vector<3xf6E2M3FN>
    %ti3_f16 = arith.bitcast %t3_f16 : vector<3xf6E2M3FN> to vector<3xi6>
    %tb3_f16 = arith.extui %ti3_f16 : vector<3xi6> to vector<3xi8>
    vector.store %tb3_f16, %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %v8_f16 = arith.extf %v8 : vector<8xf6E2M3FN> to vector<8xf16>
    vector.store %v8_f16, %f16[%c0] : memref<?xf16>, vector<8xf16>
    %l8_f16 = vector.load %f16[%c0] : memref<?xf16>, vector<8xf16>
    %t8_f16 = arith.truncf %l8_f16 : vector<8xf16> to vector<8xf6E2M3FN>
    %ti8_f16 = arith.bitcast %t8_f16 : vector<8xf6E2M3FN> to vector<8xi6>
    %tb8_f16 = arith.extui %ti8_f16 : vector<8xi6> to vector<8xi8>
    vector.store %tb8_f16, %bytes[%c0] : memref<?xi8>, vector<8xi8>
    %s_bf16 = arith.extf %s : f6E2M3FN to bf16
    memref.store %s_bf16, %bf16[%c0] : memref<?xbf16>
    %v3_bf16 = arith.extf %v3 : vector<3xf6E2M3FN> to vector<3xbf16>
    vector.store %v3_bf16, %bf16[%c0] : memref<?xbf16>, vector<3xbf16>
    %l3_bf16 = vector.load %bf16[%c0] : memref<?xbf16>, vector<3xbf16>
    %t3_bf16 = arith.truncf %l3_bf16 : vector<3xbf16> to vector<3xf6E2M3FN>
    %ti3_bf16 = arith.bitcast %t3_bf16 : vector<3xf6E2M3FN> to vector<3xi6>
    %tb3_bf16 = arith.extui %ti3_bf16 : vector<3xi6> to vector<3xi8>
    vector.store %tb3_bf16, %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %v8_bf16 = arith.extf %v8 : vector<8xf6E2M3FN> to vector<8xbf16>
    vector.store %v8_bf16, %bf16[%c0] : memref<?xbf16>, vector<8xbf16>
    %l8_bf16 = vector.load %bf16[%c0] : memref<?xbf16>, vector<8xbf16>
    %t8_bf16 = arith.truncf %l8_bf16 : vector<8xbf16> to vector<8xf6E2M3FN>
    %ti8_bf16 = arith.bitcast %t8_bf16 : vector<8xf6E2M3FN> to vector<8xi6>
    %tb8_bf16 = arith.extui %ti8_bf16 : vector<8xi6> to vector<8xi8>
    vector.store %tb8_bf16, %bytes[%c0] : memref<?xi8>, vector<8xi8>
    %s_f32 = arith.extf %s : f6E2M3FN to f32
    memref.store %s_f32, %f32[%c0] : memref<?xf32>
    %v3_f32 = arith.extf %v3 : vector<3xf6E2M3FN> to vector<3xf32>
    vector.store %v3_f32, %f32[%c0] : memref<?xf32>, vector<3xf32>
    %l3_f32 = vector.load %f32[%c0] : memref<?xf32>, vector<3xf32>
    %t3_f32 = arith.truncf %l3_f32 : vector<3xf32> to vector<3xf6E2M3FN>
    %ti3_f32 = arith.bitcast %t3_f32 : vector<3xf6E2M3FN> to vector<3xi6>
    %tb3_f32 = arith.extui %ti3_f32 : vector<3xi6> to vector<3xi8>
    vector.store %tb3_f32, %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %v8_f32 = arith.extf %v8 : vector<8xf6E2M3FN> to vector<8xf32>
    vector.store %v8_f32, %f32[%c0] : memref<?xf32>, vector<8xf32>
    %l8_f32 = vector.load %f32[%c0] : memref<?xf32>, vector<8xf32>
    %t8_f32 = arith.truncf %l8_f32 : vector<8xf32> to vector<8xf6E2M3FN>
    %ti8_f32 = arith.bitcast %t8_f32 : vector<8xf6E2M3FN> to vector<8xi6>
    %tb8_f32 = arith.extui %ti8_f32 : vector<8xi6> to vector<8xi8>
    vector.store %tb8_f32, %bytes[%c0] : memref<?xi8>, vector<8xi8>
    %s_f64 = arith.extf %s : f6E2M3FN to f64
    memref.store %s_f64, %f64[%c0] : memref<?xf64>
    %v3_f64 = arith.extf %v3 : vector<3xf6E2M3FN> to vector<3xf64>
    vector.store %v3_f64, %f64[%c0] : memref<?xf64>, vector<3xf64>
    %l3_f64 = vector.load %f64[%c0] : memref<?xf64>, vector<3xf64>
    %t3_f64 = arith.truncf %l3_f64 : vector<3xf64> to vector<3xf6E2M3FN>
    %ti3_f64 = arith.bitcast %t3_f64 : vector<3xf6E2M3FN> to vector<3xi6>
    %tb3_f64 = arith.extui %ti3_f64 : vector<3xi6> to vector<3xi8>
    vector.store %tb3_f64, %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %v8_f64 = arith.extf %v8 : vector<8xf6E2M3FN> to vector<8xf64>
    vector.store %v8_f64, %f64[%c0] : memref<?xf64>, vector<8xf64>
    %l8_f64 = vector.load %f64[%c0] : memref<?xf64>, vector<8xf64>
    %t8_f64 = arith.truncf %l8_f64 : vector<8xf64> to vector<8xf6E2M3FN>
    %ti8_f64 = arith.bitcast %t8_f64 : vector<8xf6E2M3FN> to vector<8xi6>
    %tb8_f64 = arith.extui %ti8_f64 : vector<8xi6> to vector<8xi8>
    vector.store %tb8_f64, %bytes[%c0] : memref<?xi8>, vector<8xi8>
    gpu.return
  }
  gpu.func @f6E3M2FN(%bytes: memref<?xi8>, %f16: memref<?xf16>, %bf16: memref<?xbf16>, %f32: memref<?xf32>, %f64: memref<?xf64>) kernel {
    %c0 = arith.constant 0 : index
    %b1 = vector.load %bytes[%c0] : memref<?xi8>, vector<1xi8>
    %i1 = arith.trunci %b1 : vector<1xi8> to vector<1xi6>
    %v1 = arith.bitcast %i1 : vector<1xi6> to vector<1xf6E3M2FN>
    %b3 = vector.load %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %i3 = arith.trunci %b3 : vector<3xi8> to vector<3xi6>
    %v3 = arith.bitcast %i3 : vector<3xi6> to vector<3xf6E3M2FN>
    %b8 = vector.load %bytes[%c0] : memref<?xi8>, vector<8xi8>
    %i8 = arith.trunci %b8 : vector<8xi8> to vector<8xi6>
    %v8 = arith.bitcast %i8 : vector<8xi6> to vector<8xf6E3M2FN>
    %s = vector.extract %v1[0] : f6E3M2FN from vector<1xf6E3M2FN>
    %s_f16 = arith.extf %s : f6E3M2FN to f16
    memref.store %s_f16, %f16[%c0] : memref<?xf16>
    %v3_f16 = arith.extf %v3 : vector<3xf6E3M2FN> to vector<3xf16>
    vector.store %v3_f16, %f16[%c0] : memref<?xf16>, vector<3xf16>
    %l3_f16 = vector.load %f16[%c0] : memref<?xf16>, vector<3xf16>
    %t3_f16 = arith.truncf %l3_f16 : vector<3xf16> to vector<3xf6E3M2FN>
    %ti3_f16 = arith.bitcast %t3_f16 : vector<3xf6E3M2FN> to vector<3xi6>
    %tb3_f16 = arith.extui %ti3_f16 : vector<3xi6> to vector<3xi8>
    vector.store %tb3_f16, %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %v8_f16 = arith.extf %v8 : vector<8xf6E3M2FN> to vector<8xf16>
    vector.store %v8_f16, %f16[%c0] : memref<?xf16>, vector<8xf16>
    %l8_f16 = vector.load %f16[%c0] : memref<?xf16>, vector<8xf16>
    %t8_f16 = arith.truncf %l8_f16 : vector<8xf16> to vector<8xf6E3M2FN>
    %ti8_f16 = arith.bitcast %t8_f16 : vector<8xf6E3M2FN> to vector<8xi6>
    %tb8_f16 = arith.extui %ti8_f16 : vector<8xi6> to vector<8xi8>
    vector.store %tb8_f16, %bytes[%c0] : memref<?xi8>, vector<8xi8>
    %s_bf16 = arith.extf %s : f6E3M2FN to bf16
    memref.store %s_bf16, %bf16[%c0] : memref<?xbf16>
    %v3_bf16 = arith.extf %v3 : vector<3xf6E3M2FN> to vector<3xbf16>
    vector.store %v3_bf16, %bf16[%c0] : memref<?xbf16>, vector<3xbf16>
    %l3_bf16 = vector.load %bf16[%c0] : memref<?xbf16>, vector<3xbf16>
    %t3_bf16 = arith.truncf %l3_bf16 : vector<3xbf16> to vector<3xf6E3M2FN>
    %ti3_bf16 = arith.bitcast %t3_bf16 : vector<3xf6E3M2FN> to vector<3xi6>
    %tb3_bf16 = arith.extui %ti3_bf16 : vector<3xi6> to vector<3xi8>
    vector.store %tb3_bf16, %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %v8_bf16 = arith.extf %v8 : vector<8xf6E3M2FN> to vector<8xbf16>
    vector.store %v8_bf16, %bf16[%c0] : memref<?xbf16>, vector<8xbf16>
    %l8_bf16 = vector.load %bf16[%c0] : memref<?xbf16>, vector<8xbf16>
    %t8_bf16 = arith.truncf %l8_bf16 : vector<8xbf16> to vector<8xf6E3M2FN>
    %ti8_bf16 = arith.bitcast %t8_bf16 : vector<8xf6E3M2FN> to vector<8xi6>
    %tb8_bf16 = arith.extui %ti8_bf16 : vector<8xi6> to vector<8xi8>
    vector.store %tb8_bf16, %bytes[%c0] : memref<?xi8>, vector<8xi8>
    %s_f32 = arith.extf %s : f6E3M2FN to f32
    memref.store %s_f32, %f32[%c0] : memref<?xf32>
    %v3_f32 = arith.extf %v3 : vector<3xf6E3M2FN> to vector<3xf32>
    vector.store %v3_f32, %f32[%c0] : memref<?xf32>, vector<3xf32>
    %l3_f32 = vector.load %f32[%c0] : memref<?xf32>, vector<3xf32>
    %t3_f32 = arith.truncf %l3_f32 : vector<3xf32> to vector<3xf6E3M2FN>
    %ti3_f32 = arith.bitcast %t3_f32 : vector<3xf6E3M2FN> to vector<3xi6>
    %tb3_f32 = arith.extui %ti3_f32 : vector<3xi6> to vector<3xi8>
    vector.store %tb3_f32, %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %v8_f32 = arith.extf %v8 : vector<8xf6E3M2FN> to vector<8xf32>
    vector.store %v8_f32, %f32[%c0] : memref<?xf32>, vector<8xf32>
    %l8_f32 = vector.load %f32[%c0] : memref<?xf32>, vector<8xf32>
    %t8_f32 = arith.truncf %l8_f32 : vector<8xf32> to vector<8xf6E3M2FN>
    %ti8_f32 = arith.bitcast %t8_f32 : vector<8xf6E3M2FN> to vector<8xi6>
    %tb8_f32 = arith.extui %ti8_f32 : vector<8xi6> to vector<8xi8>
    vector.store %tb8_f32, %bytes[%c0] : memref<?xi8>, vector<8xi8>
    %s_f64 = arith.extf %s : f6E3M2FN to f64
    memref.store %s_f64, %f64[%c0] : memref<?xf64>
    %v3_f64 = arith.extf %v3 : vector<3xf6E3M2FN> to vector<3xf64>
    vector.store %v3_f64, %f64[%c0] : memref<?xf64>, vector<3xf64>
    %l3_f64 = vector.load %f64[%c0] : memref<?xf64>, vector<3xf64>
    %t3_f64 = arith.truncf %l3_f64 : vector<3xf64> to vector<3xf6E3M2FN>
    %ti3_f64 = arith.bitcast %t3_f64 : vector<3xf6E3M2FN> to vector<3xi6>
    %tb3_f64 = arith.extui %ti3_f64 : vector<3xi6> to vector<3xi8>
    vector.store %tb3_f64, %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %v8_f64 = arith.extf %v8 : vector<8xf6E3M2FN> to vector<8xf64>
    vector.store %v8_f64, %f64[%c0] : memref<?xf64>, vector<8xf64>
    %l8_f64 = vector.load %f64[%c0] : memref<?xf64>, vector<8xf64>
    %t8_f64 = arith.truncf %l8_f64 : vector<8xf64> to vector<8xf6E3M2FN>
    %ti8_f64 = arith.bitcast %t8_f64 : vector<8xf6E3M2FN> to vector<8xi6>
    %tb8_f64 = arith.extui %ti8_f64 : vector<8xi6> to vector<8xi8>
    vector.store %tb8_f64, %bytes[%c0] : memref<?xi8>, vector<8xi8>
    gpu.return
  }
  gpu.func @f4E2M1FN(%bytes: memref<?xi8>, %f16: memref<?xf16>, %bf16: memref<?xbf16>, %f32: memref<?xf32>, %f64: memref<?xf64>) kernel {
    %c0 = arith.constant 0 : index
    %b1 = vector.load %bytes[%c0] : memref<?xi8>, vector<1xi8>
    %i1 = arith.trunci %b1 : vector<1xi8> to vector<1xi4>
    %v1 = arith.bitcast %i1 : vector<1xi4> to vector<1xf4E2M1FN>
    %b3 = vector.load %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %i3 = arith.trunci %b3 : vector<3xi8> to vector<3xi4>
    %v3 = arith.bitcast %i3 : vector<3xi4> to vector<3xf4E2M1FN>
    %b8 = vector.load %bytes[%c0] : memref<?xi8>, vector<8xi8>
    %i8 = arith.trunci %b8 : vector<8xi8> to vector<8xi4>
    %v8 = arith.bitcast %i8 : vector<8xi4> to vector<8xf4E2M1FN>
    %s = vector.extract %v1[0] : f4E2M1FN from vector<1xf4E2M1FN>
    %s_f16 = arith.extf %s : f4E2M1FN to f16
    memref.store %s_f16, %f16[%c0] : memref<?xf16>
    %v3_f16 = arith.extf %v3 : vector<3xf4E2M1FN> to vector<3xf16>
    vector.store %v3_f16, %f16[%c0] : memref<?xf16>, vector<3xf16>
    %l3_f16 = vector.load %f16[%c0] : memref<?xf16>, vector<3xf16>
    %t3_f16 = arith.truncf %l3_f16 : vector<3xf16> to vector<3xf4E2M1FN>
    %ti3_f16 = arith.bitcast %t3_f16 : vector<3xf4E2M1FN> to vector<3xi4>
    %tb3_f16 = arith.extui %ti3_f16 : vector<3xi4> to vector<3xi8>
    vector.store %tb3_f16, %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %v8_f16 = arith.extf %v8 : vector<8xf4E2M1FN> to vector<8xf16>
    vector.store %v8_f16, %f16[%c0] : memref<?xf16>, vector<8xf16>
    %l8_f16 = vector.load %f16[%c0] : memref<?xf16>, vector<8xf16>
    %t8_f16 = arith.truncf %l8_f16 : vector<8xf16> to vector<8xf4E2M1FN>
    %ti8_f16 = arith.bitcast %t8_f16 : vector<8xf4E2M1FN> to vector<8xi4>
    %tb8_f16 = arith.extui %ti8_f16 : vector<8xi4> to vector<8xi8>
    vector.store %tb8_f16, %bytes[%c0] : memref<?xi8>, vector<8xi8>
    %s_bf16 = arith.extf %s : f4E2M1FN to bf16
    memref.store %s_bf16, %bf16[%c0] : memref<?xbf16>
    %v3_bf16 = arith.extf %v3 : vector<3xf4E2M1FN> to vector<3xbf16>
    vector.store %v3_bf16, %bf16[%c0] : memref<?xbf16>, vector<3xbf16>
    %l3_bf16 = vector.load %bf16[%c0] : memref<?xbf16>, vector<3xbf16>
    %t3_bf16 = arith.truncf %l3_bf16 : vector<3xbf16> to vector<3xf4E2M1FN>
    %ti3_bf16 = arith.bitcast %t3_bf16 : vector<3xf4E2M1FN> to vector<3xi4>
    %tb3_bf16 = arith.extui %ti3_bf16 : vector<3xi4> to vector<3xi8>
    vector.store %tb3_bf16, %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %v8_bf16 = arith.extf %v8 : vector<8xf4E2M1FN> to vector<8xbf16>
    vector.store %v8_bf16, %bf16[%c0] : memref<?xbf16>, vector<8xbf16>
    %l8_bf16 = vector.load %bf16[%c0] : memref<?xbf16>, vector<8xbf16>
    %t8_bf16 = arith.truncf %l8_bf16 : vector<8xbf16> to vector<8xf4E2M1FN>
    %ti8_bf16 = arith.bitcast %t8_bf16 : vector<8xf4E2M1FN> to vector<8xi4>
    %tb8_bf16 = arith.extui %ti8_bf16 : vector<8xi4> to vector<8xi8>
    vector.store %tb8_bf16, %bytes[%c0] : memref<?xi8>, vector<8xi8>
    %s_f32 = arith.extf %s : f4E2M1FN to f32
    memref.store %s_f32, %f32[%c0] : memref<?xf32>
    %v3_f32 = arith.extf %v3 : vector<3xf4E2M1FN> to vector<3xf32>
    vector.store %v3_f32, %f32[%c0] : memref<?xf32>, vector<3xf32>
    %l3_f32 = vector.load %f32[%c0] : memref<?xf32>, vector<3xf32>
    %t3_f32 = arith.truncf %l3_f32 : vector<3xf32> to vector<3xf4E2M1FN>
    %ti3_f32 = arith.bitcast %t3_f32 : vector<3xf4E2M1FN> to vector<3xi4>
    %tb3_f32 = arith.extui %ti3_f32 : vector<3xi4> to vector<3xi8>
    vector.store %tb3_f32, %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %v8_f32 = arith.extf %v8 : vector<8xf4E2M1FN> to vector<8xf32>
    vector.store %v8_f32, %f32[%c0] : memref<?xf32>, vector<8xf32>
    %l8_f32 = vector.load %f32[%c0] : memref<?xf32>, vector<8xf32>
    %t8_f32 = arith.truncf %l8_f32 : vector<8xf32> to vector<8xf4E2M1FN>
    %ti8_f32 = arith.bitcast %t8_f32 : vector<8xf4E2M1FN> to vector<8xi4>
    %tb8_f32 = arith.extui %ti8_f32 : vector<8xi4> to vector<8xi8>
    vector.store %tb8_f32, %bytes[%c0] : memref<?xi8>, vector<8xi8>
    %s_f64 = arith.extf %s : f4E2M1FN to f64
    memref.store %s_f64, %f64[%c0] : memref<?xf64>
    %v3_f64 = arith.extf %v3 : vector<3xf4E2M1FN> to vector<3xf64>
    vector.store %v3_f64, %f64[%c0] : memref<?xf64>, vector<3xf64>
    %l3_f64 = vector.load %f64[%c0] : memref<?xf64>, vector<3xf64>
    %t3_f64 = arith.truncf %l3_f64 : vector<3xf64> to vector<3xf4E2M1FN>
    %ti3_f64 = arith.bitcast %t3_f64 : vector<3xf4E2M1FN> to vector<3xi4>
    %tb3_f64 = arith.extui %ti3_f64 : vector<3xi4> to vector<3xi8>
    vector.store %tb3_f64, %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %v8_f64 = arith.extf %v8 : vector<8xf4E2M1FN> to vector<8xf64>
    vector.store %v8_f64, %f64[%c0] : memref<?xf64>, vector<8xf64>
    %l8_f64 = vector.load %f64[%c0] : memref<?xf64>, vector<8xf64>
    %t8_f64 = arith.truncf %l8_f64 : vector<8xf64> to vector<8xf4E2M1FN>
    %ti8_f64 = arith.bitcast %t8_f64 : vector<8xf4E2M1FN> to vector<8xi4>
    %tb8_f64 = arith.extui %ti8_f64 : vector<8xi4> to vector<8xi8>
    vector.store %tb8_f64, %bytes[%c0] : memref<?xi8>, vector<8xi8>
    gpu.return
  }
  gpu.func @f8E8M0FNU(%bytes: memref<?xi8>, %f16: memref<?xf16>, %bf16: memref<?xbf16>, %f32: memref<?xf32>, %f64: memref<?xf64>) kernel {
    %c0 = arith.constant 0 : index
    %b1 = vector.load %bytes[%c0] : memref<?xi8>, vector<1xi8>
    %v1 = arith.bitcast %b1 : vector<1xi8> to vector<1xf8E8M0FNU>
    %b3 = vector.load %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %v3 = arith.bitcast %b3 : vector<3xi8> to vector<3xf8E8M0FNU>
    %b8 = vector.load %bytes[%c0] : memref<?xi8>, vector<8xi8>
    %v8 = arith.bitcast %b8 : vector<8xi8> to vector<8xf8E8M0FNU>
    %s = vector.extract %v1[0] : f8E8M0FNU from vector<1xf8E8M0FNU>
    %s_f16 = arith.extf %s : f8E8M0FNU to f16
    memref.store %s_f16, %f16[%c0] : memref<?xf16>
    %v3_f16 = arith.extf %v3 : vector<3xf8E8M0FNU> to vector<3xf16>
    vector.store %v3_f16, %f16[%c0] : memref<?xf16>, vector<3xf16>
    %l3_f16 = vector.load %f16[%c0] : memref<?xf16>, vector<3xf16>
    %t3_f16 = arith.truncf %l3_f16 : vector<3xf16> to vector<3xf8E8M0FNU>
    %ti3_f16 = arith.bitcast %t3_f16 : vector<3xf8E8M0FNU> to vector<3xi8>
    vector.store %ti3_f16, %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %v8_f16 = arith.extf %v8 : vector<8xf8E8M0FNU> to vector<8xf16>
    vector.store %v8_f16, %f16[%c0] : memref<?xf16>, vector<8xf16>
    %l8_f16 = vector.load %f16[%c0] : memref<?xf16>, vector<8xf16>
    %t8_f16 = arith.truncf %l8_f16 : vector<8xf16> to vector<8xf8E8M0FNU>
    %ti8_f16 = arith.bitcast %t8_f16 : vector<8xf8E8M0FNU> to vector<8xi8>
    vector.store %ti8_f16, %bytes[%c0] : memref<?xi8>, vector<8xi8>
    %s_bf16 = arith.extf %s : f8E8M0FNU to bf16
    memref.store %s_bf16, %bf16[%c0] : memref<?xbf16>
    %v3_bf16 = arith.extf %v3 : vector<3xf8E8M0FNU> to vector<3xbf16>
    vector.store %v3_bf16, %bf16[%c0] : memref<?xbf16>, vector<3xbf16>
    %l3_bf16 = vector.load %bf16[%c0] : memref<?xbf16>, vector<3xbf16>
    %t3_bf16 = arith.truncf %l3_bf16 : vector<3xbf16> to vector<3xf8E8M0FNU>
    %ti3_bf16 = arith.bitcast %t3_bf16 : vector<3xf8E8M0FNU> to vector<3xi8>
    vector.store %ti3_bf16, %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %v8_bf16 = arith.extf %v8 : vector<8xf8E8M0FNU> to vector<8xbf16>
    vector.store %v8_bf16, %bf16[%c0] : memref<?xbf16>, vector<8xbf16>
    %l8_bf16 = vector.load %bf16[%c0] : memref<?xbf16>, vector<8xbf16>
    %t8_bf16 = arith.truncf %l8_bf16 : vector<8xbf16> to vector<8xf8E8M0FNU>
    %ti8_bf16 = arith.bitcast %t8_bf16 : vector<8xf8E8M0FNU> to vector<8xi8>
    vector.store %ti8_bf16, %bytes[%c0] : memref<?xi8>, vector<8xi8>
    %s_f32 = arith.extf %s : f8E8M0FNU to f32
    memref.store %s_f32, %f32[%c0] : memref<?xf32>
    %v3_f32 = arith.extf %v3 : vector<3xf8E8M0FNU> to vector<3xf32>
    vector.store %v3_f32, %f32[%c0] : memref<?xf32>, vector<3xf32>
    %l3_f32 = vector.load %f32[%c0] : memref<?xf32>, vector<3xf32>
    %t3_f32 = arith.truncf %l3_f32 : vector<3xf32> to vector<3xf8E8M0FNU>
    %ti3_f32 = arith.bitcast %t3_f32 : vector<3xf8E8M0FNU> to vector<3xi8>
    vector.store %ti3_f32, %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %v8_f32 = arith.extf %v8 : vector<8xf8E8M0FNU> to vector<8xf32>
    vector.store %v8_f32, %f32[%c0] : memref<?xf32>, vector<8xf32>
    %l8_f32 = vector.load %f32[%c0] : memref<?xf32>, vector<8xf32>
    %t8_f32 = arith.truncf %l8_f32 : vector<8xf32> to vector<8xf8E8M0FNU>
    %ti8_f32 = arith.bitcast %t8_f32 : vector<8xf8E8M0FNU> to vector<8xi8>
    vector.store %ti8_f32, %bytes[%c0] : memref<?xi8>, vector<8xi8>
    %s_f64 = arith.extf %s : f8E8M0FNU to f64
    memref.store %s_f64, %f64[%c0] : memref<?xf64>
    %v3_f64 = arith.extf %v3 : vector<3xf8E8M0FNU> to vector<3xf64>
    vector.store %v3_f64, %f64[%c0] : memref<?xf64>, vector<3xf64>
    %l3_f64 = vector.load %f64[%c0] : memref<?xf64>, vector<3xf64>
    %t3_f64 = arith.truncf %l3_f64 : vector<3xf64> to vector<3xf8E8M0FNU>
    %ti3_f64 = arith.bitcast %t3_f64 : vector<3xf8E8M0FNU> to vector<3xi8>
    vector.store %ti3_f64, %bytes[%c0] : memref<?xi8>, vector<3xi8>
    %v8_f64 = arith.extf %v8 : vector<8xf8E8M0FNU> to vector<8xf64>
    vector.store %v8_f64, %f64[%c0] : memref<?xf64>, vector<8xf64>
    %l8_f64 = vector.load %f64[%c0] : memref<?xf64>, vector<8xf64>
    %t8_f64 = arith.truncf %l8_f64 : vector<8xf64> to vector<8xf8E8M0FNU>
    %ti8_f64 = arith.bitcast %t8_f64 : vector<8xf8E8M0FNU> to vector<8xi8>
    vector.store %ti8_f64, %bytes[%c0] : memref<?xi8>, vector<8xi8>
    gpu.return
  }
}
