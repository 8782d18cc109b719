// RUN: kvcache-opt %s --kvcache-emulate-tiles --split-input-file --verify-diagnostics

func.func @rows(%a: memref<8x16xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{'amx.tile_zero' op has no lowering here for its types and attributes}}
  %zero = amx.tile_zero : !amx.tile<8x16xf32>
  amx.tile_store %a[%c0, %c0], %zero : memref<8x16xf32>, !amx.tile<8x16xf32>
  return
}

// -----

func.func @bytes(%a: memref<16x64xi8>, %c: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{'amx.tile_load' op has no lowering here for its types and attributes}}
  %tile = amx.tile_load %a[%c0, %c0] : memref<16x64xi8> into !amx.tile<16x16xf32>
  amx.tile_store %c[%c0, %c0], %tile : memref<16x16xf32>, !amx.tile<16x16xf32>
  return
}
