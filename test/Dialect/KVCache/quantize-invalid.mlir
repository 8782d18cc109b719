// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

// (C1) of quantize

func.func @c1_other_lanes(%v: vector<128xbf16>) {
  // expected-error @below {{expects 'quantized' to have the lanes of 'value' ('vector<128xbf16>'), got 'vector<64xf8E4M3FN>'}}
  %w, %s = kvcache.quantize %v : vector<128xbf16> -> vector<64xf8E4M3FN>, f32
  return
}

// -----

func.func @c1_vector_of_a_scalar(%x: f32) {
  // expected-error @below {{expects 'quantized' to have the lanes of 'value' ('f32'), got 'vector<1xi8>'}}
  %w, %s = kvcache.quantize %x : f32 -> vector<1xi8>, f32
  return
}

// -----

func.func @c1_scalar_of_a_vector(%v: vector<1xf32>) {
  // expected-error @below {{expects 'quantized' to have the lanes of 'value' ('vector<1xf32>'), got 'i8'}}
  %w, %s = kvcache.quantize %v : vector<1xf32> -> i8, f32
  return
}

// -----

func.func @c1_odd_number_of_4_bit_lanes(%v: vector<15xbf16>) {
  // expected-error @below {{expects 'quantized' to have an even number of lanes of 'f4E2M1FN', got 15}}
  %w, %s = kvcache.quantize %v : vector<15xbf16> -> vector<15xf4E2M1FN>, f8E4M3FN
  return
}

// -----

func.func @c1_one_4_bit_element(%x: bf16) {
  // expected-error @below {{expects 'quantized' to have an even number of lanes of 'f4E2M1FN', got 1}}
  %w, %s = kvcache.quantize %x {lanes = 16} : bf16 -> f4E2M1FN, f8E4M3FN
  return
}

// -----

// (C2) of quantize

func.func @c2_groups_of_no_whole_lanes(%v: vector<128xbf16>) {
  // expected-error @below {{expects the lanes of 'value' to be a multiple of those of 'scale' (3), got 128}}
  %w, %s = kvcache.quantize %v : vector<128xbf16> -> vector<128xf8E4M3FN>, vector<3xf32>
  return
}

// -----

func.func @c2_more_scales_than_values(%v: vector<4xbf16>) {
  // expected-error @below {{expects the lanes of 'value' to be a multiple of those of 'scale' (8), got 4}}
  %w, %s = kvcache.quantize %v : vector<4xbf16> -> vector<4xf8E4M3FN>, vector<8xf32>
  return
}

// -----

// (C3) of quantize

func.func @c3_no_lanes(%v: vector<8xbf16>) {
  // expected-error @below {{expects 'lanes' to be a power of two from 1 to 32, got 0}}
  %w, %s = kvcache.quantize %v {lanes = 0} : vector<8xbf16> -> vector<8xf8E4M3FN>, f32
  return
}

// -----

func.func @c3_negative_lanes(%v: vector<8xbf16>) {
  // expected-error @below {{expects 'lanes' to be a power of two from 1 to 32, got -8}}
  %w, %s = kvcache.quantize %v {lanes = -8} : vector<8xbf16> -> vector<8xf8E4M3FN>, f32
  return
}

// -----

func.func @c3_no_power_of_two(%v: vector<8xbf16>) {
  // expected-error @below {{expects 'lanes' to be a power of two from 1 to 32, got 3}}
  %w, %s = kvcache.quantize %v {lanes = 3} : vector<8xbf16> -> vector<8xf8E4M3FN>, f32
  return
}

// -----

func.func @c3_more_lanes_than_a_warp(%v: vector<8xbf16>) {
  // expected-error @below {{expects 'lanes' to be a power of two from 1 to 32, got 64}}
  %w, %s = kvcache.quantize %v {lanes = 64} : vector<8xbf16> -> vector<8xf8E4M3FN>, f32
  return
}

// -----

func.func @c3_several_scales_over_lanes(%v: vector<8xbf16>) {
  // expected-error @below {{expects 'scale' to be one scale with 'lanes', got 'vector<2xf32>'}}
  %w, %s = kvcache.quantize %v {lanes = 8} : vector<8xbf16> -> vector<8xf8E4M3FN>, vector<2xf32>
  return
}

// -----

func.func @c3_lanes_of_another_width(%v: vector<8xbf16>) {
  // expected-error @below {{attribute 'lanes' failed to satisfy constraint: 64-bit signless integer attribute}}
  %w, %s = kvcache.quantize %v {lanes = 8 : i32} : vector<8xbf16> -> vector<8xf8E4M3FN>, f32
  return
}

// -----

// (C4) of quantize

func.func @c4_power_of_two_in_f16(%v: vector<8xbf16>) {
  // expected-error @below {{expects scales of f32, bf16 or f8E8M0FNU with 'power_of_two', got 'f16'}}
  %w, %s = kvcache.quantize %v {power_of_two} : vector<8xbf16> -> vector<8xf8E4M3FN>, f16
  return
}

// -----

// (C5) of quantize

func.func @c5_no_zero_point(%v: vector<8xbf16>) {
  // expected-error @below {{expects 'zero_point' with values of i4}}
  %w, %s = kvcache.quantize %v : vector<8xbf16> -> vector<8xi4>, f32
  return
}

// -----

func.func @c5_zero_point_of_i8(%v: vector<8xbf16>) {
  // expected-error @below {{expects 'zero_point' only with values of i4, got 'i8'}}
  %w, %s, %z = kvcache.quantize %v : vector<8xbf16> -> vector<8xi8>, f32, f32
  return
}

// -----

func.func @c5_zero_point_of_another_type(%v: vector<8xbf16>) {
  // expected-error @below {{expects 'zero_point' to have the type of 'scale' ('f16'), got 'f32'}}
  %w, %s, %z = kvcache.quantize %v : vector<8xbf16> -> vector<8xi4>, f16, f32
  return
}

// -----

func.func @c5_fewer_zero_points_than_scales(%v: vector<8xbf16>) {
  // expected-error @below {{expects 'zero_point' to have the type of 'scale' ('vector<2xf16>'), got 'f16'}}
  %w, %s, %z = kvcache.quantize %v : vector<8xbf16> -> vector<8xi4>, vector<2xf16>, f16
  return
}

// -----

func.func @c5_scales_of_8_bits(%v: vector<8xbf16>) {
  // expected-error @below {{result #2 must be f32, f16 or bf16, or a 1-D vector of them, but got 'f8E4M3FN'}}
  %w, %s, %z = kvcache.quantize %v : vector<8xbf16> -> vector<8xi4>, f8E4M3FN, f8E4M3FN
  return
}

// -----

func.func @c5_tensor_scale(%v: vector<8xbf16>, %g: f32) {
  // expected-error @below {{expects neither 'tensor_scale' nor 'power_of_two' with 'zero_point'}}
  %w, %s, %z = kvcache.quantize %v tensor_scale %g : vector<8xbf16> -> vector<8xi4>, f32, f32
  return
}

// -----

func.func @c5_power_of_two(%v: vector<8xbf16>) {
  // expected-error @below {{expects neither 'tensor_scale' nor 'power_of_two' with 'zero_point'}}
  %w, %s, %z = kvcache.quantize %v {power_of_two} : vector<8xbf16> -> vector<8xi4>, f32, f32
  return
}

// -----

// Types and syntax of quantize

func.func @quantize_of_narrow_floats(%v: vector<8xf8E4M3FN>) {
  // expected-error @below {{operand #0 must be f32, f16 or bf16, or a 1-D vector of them, but got 'vector<8xf8E4M3FN>'}}
  %w, %s = kvcache.quantize %v : vector<8xf8E4M3FN> -> vector<8xi8>, f32
  return
}

// -----

func.func @quantize_of_doubles(%v: vector<8xf64>) {
  // expected-error @below {{operand #0 must be f32, f16 or bf16, or a 1-D vector of them, but got 'vector<8xf64>'}}
  %w, %s = kvcache.quantize %v : vector<8xf64> -> vector<8xi8>, f32
  return
}

// -----

func.func @quantize_of_a_matrix(%v: vector<2x8xf32>) {
  // expected-error @below {{operand #0 must be f32, f16 or bf16, or a 1-D vector of them, but got 'vector<2x8xf32>'}}
  %w, %s = kvcache.quantize %v : vector<2x8xf32> -> vector<2x8xi8>, f32
  return
}

// -----

func.func @quantize_of_scalable_length(%v: vector<[8]xf32>) {
  // expected-error @below {{operand #0 must be f32, f16 or bf16, or a 1-D vector of them, but got 'vector<[8]xf32>'}}
  %w, %s = kvcache.quantize %v : vector<[8]xf32> -> vector<[8]xi8>, f32
  return
}

// -----

func.func @quantize_to_wide_floats(%v: vector<8xf32>) {
  // expected-error @below {{result #0 must be f8E4M3FN, f8E5M2, i8, f4E2M1FN or i4, or a 1-D vector of them, but got 'vector<8xbf16>'}}
  %w, %s = kvcache.quantize %v : vector<8xf32> -> vector<8xbf16>, f32
  return
}

// -----

func.func @quantize_to_unsigned_integers(%v: vector<8xf32>) {
  // expected-error @below {{result #0 must be f8E4M3FN, f8E5M2, i8, f4E2M1FN or i4, or a 1-D vector of them, but got 'vector<8xui8>'}}
  %w, %s = kvcache.quantize %v : vector<8xf32> -> vector<8xui8>, f32
  return
}

// -----

func.func @quantize_with_a_wide_scale(%v: vector<8xf32>) {
  // expected-error @below {{result #1 must be f32, f16, bf16, f8E8M0FNU or f8E4M3FN, or a 1-D vector of them, but got 'f64'}}
  %w, %s = kvcache.quantize %v : vector<8xf32> -> vector<8xi8>, f64
  return
}

// -----

func.func @quantize_with_an_integer_scale(%v: vector<8xf32>) {
  // expected-error @below {{result #1 must be f32, f16, bf16, f8E8M0FNU or f8E4M3FN, or a 1-D vector of them, but got 'vector<1xi32>'}}
  %w, %s = kvcache.quantize %v : vector<8xf32> -> vector<8xi8>, vector<1xi32>
  return
}

// -----

func.func @quantize_without_a_scale(%v: vector<8xf32>) {
  // expected-error @below {{expected ','}}
  %w, %s = kvcache.quantize %v : vector<8xf32> -> vector<8xi8>
  return
}

// -----

func.func @tensor_scale_of_another_type(%v: vector<16xf32>, %g: bf16) {
  // expected-error @below {{operand #1 must be 32-bit float, but got 'bf16'}}
  %w, %s = "kvcache.quantize"(%v, %g) : (vector<16xf32>, bf16) -> (vector<16xf4E2M1FN>, f8E4M3FN)
  return
}

// -----

func.func @c4_least_amax(%v: vector<8xbf16>) {
  // expected-error @below {{'kvcache.quantize' op expects 'least_amax' only with 'power_of_two'}}
  %w, %s = kvcache.quantize %v {least_amax} : vector<8xbf16> -> vector<8xf8E4M3FN>, f32
  return
}
