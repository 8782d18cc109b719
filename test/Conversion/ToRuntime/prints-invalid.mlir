// RUN: kvcache-opt %s --kvcache-lower-prints --split-input-file --verify-diagnostics

func.func @fewer(%i: i32) {
  // expected-error @below {{expects a conversion for each operand (1), got 0}}
  gpu.printf "100%%", %i : i32
  return
}

// -----

func.func @more(%i: i32) {
  // expected-error @below {{expects a conversion for each operand (1), got more}}
  gpu.printf "%d %d", %i : i32
  return
}

// -----

func.func @string(%i: i64) {
  // expected-error @below {{expects conversions of integers and floats, got '%s'}}
  gpu.printf "%s", %i : i64
  return
}

// -----

func.func @end(%i: i64) {
  // expected-error @below {{expects conversions of integers and floats, got '%-'}}
  gpu.printf "%-", %i : i64
  return
}

// -----

func.func @star(%i: i64) {
  // expected-error @below {{expects conversions of integers and floats, got '%*'}}
  gpu.printf "%*d", %i : i64
  return
}

// -----

func.func @other(%x: f32) {
  // expected-error @below {{has no conversion '%d' of 'f32'}}
  gpu.printf "%d", %x : f32
  return
}

// -----

func.func @length_before_width(%i: i64) {
  // expected-error @below {{expects conversions of integers and floats, got '%l5d'}}
  gpu.printf "%l5d", %i : i64
  return
}

// -----

func.func @two_precisions(%x: f32) {
  // expected-error @below {{expects conversions of integers and floats, got '%.1.2f'}}
  gpu.printf "%.1.2f", %x : f32
  return
}

// -----

func.func @flag_after_width(%i: i64) {
  // expected-error @below {{expects conversions of integers and floats, got '%5-d'}}
  gpu.printf "%5-d", %i : i64
  return
}

// -----

func.func @signed(%i: si32) {
  // expected-error @below {{has no conversion '%d' of 'si32'}}
  gpu.printf "%d", %i : si32
  return
}
