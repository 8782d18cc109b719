// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

// (C1) of dequantize

func.func @c1_other_lanes(%w: vector<16xi8>, %s: f32) {
  // expected-error @below {{expects 'result' to have the lanes of 'quantized' ('vector<16xi8>'), got 'vector<8xf32>'}}
  %x = kvcache.dequantize %w, %s : vector<16xi8>, f32 -> vector<8xf32>
  return
}

// -----

func.func @c1_scalar_of_a_vector(%w: vector<1xi8>, %s: f32) {
  // expected-error @below {{expects 'result' to have the lanes of 'quantized' ('vector<1xi8>'), got 'f32'}}
  %x = kvcache.dequantize %w, %s : vector<1xi8>, f32 -> f32
  return
}

// -----

func.func @c1_vector_of_a_scalar(%w: i8, %s: f32) {
  // expected-error @below {{expects 'result' to have the lanes of 'quantized' ('i8'), got 'vector<1xf32>'}}
  %x = kvcache.dequantize %w, %s : i8, f32 -> vector<1xf32>
  return
}

// -----

// (C2) of dequantize

func.func @c2_groups_of_no_whole_lanes(%w: vector<16xi8>, %s: vector<3xf32>) {
  // expected-error @below {{expects the lanes of 'quantized' to be a multiple of those of 'scale' (3), got 16}}
  %x = kvcache.dequantize %w, %s : vector<16xi8>, vector<3xf32> -> vector<16xf32>
  return
}

// -----

func.func @c2_more_scales_than_values(%w: i8, %s: vector<2xf32>) {
  // expected-error @below {{expects the lanes of 'quantized' to be a multiple of those of 'scale' (2), got 1}}
  %x = kvcache.dequantize %w, %s : i8, vector<2xf32> -> f32
  return
}

// -----

// Types of dequantize

func.func @dequantize_of_wide_floats(%w: vector<8xbf16>, %s: f32) {
  // expected-error @below {{operand #0 must be f8E4M3FN, f8E5M2, i8 or f4E2M1FN, or a 1-D vector of them, but got 'vector<8xbf16>'}}
  %x = kvcache.dequantize %w, %s : vector<8xbf16>, f32 -> vector<8xf32>
  return
}

// -----

func.func @dequantize_of_a_matrix(%w: vector<2x8xi8>, %s: f32) {
  // expected-error @below {{operand #0 must be f8E4M3FN, f8E5M2, i8 or f4E2M1FN, or a 1-D vector of them, but got 'vector<2x8xi8>'}}
  %x = kvcache.dequantize %w, %s : vector<2x8xi8>, f32 -> vector<2x8xf32>
  return
}

// -----

func.func @dequantize_with_a_wide_scale(%w: vector<8xi8>, %s: f64) {
  // expected-error @below {{operand #1 must be f32, f16, bf16, f8E8M0FNU or f8E4M3FN, or a 1-D vector of them, but got 'f64'}}
  %x = kvcache.dequantize %w, %s : vector<8xi8>, f64 -> vector<8xf64>
  return
}

// -----

func.func @dequantize_to_narrow_floats(%w: vector<8xi8>, %s: f32) {
  // expected-error @below {{result #0 must be f64, f32, f16 or bf16, or a 1-D vector of them, but got 'vector<8xf8E4M3FN>'}}
  %x = kvcache.dequantize %w, %s : vector<8xi8>, f32 -> vector<8xf8E4M3FN>
  return
}

// -----

func.func @dequantize_to_integers(%w: vector<8xi8>, %s: f32) {
  // expected-error @below {{result #0 must be f64, f32, f16 or bf16, or a 1-D vector of them, but got 'vector<8xi32>'}}
  %x = kvcache.dequantize %w, %s : vector<8xi8>, f32 -> vector<8xi32>
  return
}
