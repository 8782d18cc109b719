// RUN: kvcache-opt %s --kvcache-to-cpu -o %t.mlir
// RUN: mlir-runner %t.mlir -e main -entry-point-result=void -shared-libs=%mlir_lib_dir/libmlir_runner_utils.so,%mlir_lib_dir/libmlir_c_runner_utils.so | FileCheck %s

func.func @main() {
  // 7 / 6 is a scale of 2: up to the next power of two. Halves round to even.

  // CHECK:      {{^}}2{{$}}
  // CHECK-NEXT: ( 1, 3, 6, -8 )
  %x = arith.constant dense<[1.0, 3.0, 6.5, -7.0]> : vector<4xf32>
  %w0, %s0 = kvcache.quantize %x : vector<4xf32> -> vector<4xf4E2M1FN>, f8E8M0FNU
  %wide_s0 = arith.extf %s0 : f8E8M0FNU to f32
  vector.print %wide_s0 : f32
  %y0 = kvcache.dequantize %w0, %s0 : vector<4xf4E2M1FN>, f8E8M0FNU -> vector<4xf32>
  vector.print %y0 : vector<4xf32>

  // The smallest scale is a power of two, too: 2^-127.

  // CHECK-NEXT: {{^}}5.87747e-39{{$}}
  %tiny = arith.constant dense<[1.0e-45, 0.0]> : vector<2xf32>
  %w1, %s1 = kvcache.quantize %tiny : vector<2xf32> -> vector<2xf8E4M3FN>, f8E8M0FNU
  %wide_s1 = arith.extf %s1 : f8E8M0FNU to f32
  vector.print %wide_s1 : f32

  // NVFP4: the scale of the tensor is part of every scale. 24 / 6 / 0.5 is 8.

  // CHECK-NEXT: {{^}}8{{$}}
  // CHECK-NEXT: ( 24, -12, 2, 0 )
  %z = arith.constant dense<[24.0, -11.0, 2.0, 0.5]> : vector<4xf32>
  %g = arith.constant 0.5 : f32
  %w2, %s2 = kvcache.quantize %z tensor_scale %g : vector<4xf32> -> vector<4xf4E2M1FN>, f8E4M3FN
  %wide_s2 = arith.extf %s2 : f8E4M3FN to f32
  vector.print %wide_s2 : f32
  %y2 = kvcache.dequantize %w2, %s2 tensor_scale %g : vector<4xf4E2M1FN>, f8E4M3FN -> vector<4xf32>
  vector.print %y2 : vector<4xf32>

  // Saturation: of the scale at 448, of the elements at 6.

  // CHECK-NEXT: {{^}}448{{$}}
  // CHECK-NEXT: ( 1344, -1344 )
  %huge = arith.constant dense<[3.0e38, -3.4e38]> : vector<2xf32>
  %w3, %s3 = kvcache.quantize %huge tensor_scale %g : vector<2xf32> -> vector<2xf4E2M1FN>, f8E4M3FN
  %wide_s3 = arith.extf %s3 : f8E4M3FN to f32
  vector.print %wide_s3 : f32
  %y3 = kvcache.dequantize %w3, %s3 tensor_scale %g : vector<2xf4E2M1FN>, f8E4M3FN -> vector<2xf32>
  vector.print %y3 : vector<2xf32>
  return
}
