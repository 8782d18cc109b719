// RUN: kvcache-opt %s --kvcache-to-cpu -o %t.mlir
// RUN: mlir-runner %t.mlir -e main -entry-point-result=void -shared-libs=%mlir_lib_dir/libmlir_runner_utils.so,%mlir_lib_dir/libmlir_c_runner_utils.so,%kvcache_runtime | FileCheck %s

// The same with checks, which all hold.

// RUN: kvcache-opt %s --kvcache-bounds-checks --kvcache-to-cpu -o %t.checked.mlir
// RUN: mlir-runner %t.checked.mlir -e main -entry-point-result=void -shared-libs=%mlir_lib_dir/libmlir_runner_utils.so,%mlir_lib_dir/libmlir_c_runner_utils.so,%kvcache_runtime | FileCheck %s

// And after other people's passes.

// RUN: kvcache-opt %s --canonicalize --cse --loop-invariant-code-motion --inline --kvcache-to-cpu -o %t.moved.mlir
// RUN: mlir-runner %t.moved.mlir -e main -entry-point-result=void -shared-libs=%mlir_lib_dir/libmlir_runner_utils.so,%mlir_lib_dir/libmlir_c_runner_utils.so,%kvcache_runtime | FileCheck %s

#kv = #kvcache.params<num_heads = 2, head_size = 4>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 3>
!cache = !kvcache.paged<bf16, #kv, page_size = 3>
!blocks = memref<4x2x2x3x2x4xbf16>
!rows = !kvcache.row_indices<rows = 6, page_size = 3>

// Every element of the blocks is its position modulo 256, which bf16 holds.
func.func private @fill(%blocks: memref<384xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  %c384 = arith.constant 384 : index
  scf.for %i = %c0 to %c384 step %c1 {
    %rest = arith.remui %i, %c256 : index
    %i32 = arith.index_cast %rest : index to i32
    %wide = arith.sitofp %i32 : i32 to f32
    %value = arith.truncf %wide : f32 to bf16
    memref.store %value, %blocks[%i] : memref<384xbf16>
  }
  return
}

func.func private @print_cache(%k: !cache, %b: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = kvcache.cache_length %k[%b] : !cache
  vector.print %n : index
  scf.for %t = %c0 to %n step %c1 {
    %v = kvcache.load %k[%b, %c1, %t, %c0] : !cache -> vector<4xf32>
    vector.print %v : vector<4xf32>
  }
  return
}

memref.global "private" constant @table : memref<2x2xi32> = dense<[[2, 0], [3, 1]]>
memref.global "private" constant @lengths : memref<2xi32> = dense<[4, 0]>

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %max = arith.constant 4 : i32
  %flat = memref.alloc() {alignment = 64} : memref<384xbf16>
  func.call @fill(%flat) : (memref<384xbf16>) -> ()
  %blocks = memref.expand_shape %flat [[0, 1, 2, 3, 4, 5]] output_shape [4, 2, 2, 3, 2, 4]
      : memref<384xbf16> into memref<4x2x2x3x2x4xbf16>
  %lut = memref.get_global @table : memref<2x2xi32>
  %lengths = memref.get_global @lengths : memref<2xi32>
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
      : !blocks, memref<2xi32>, memref<2x2xi32> -> !collection
  %k = kvcache.paged_view key %c[%c1] : !collection

  // A page has 96 elements, of which the keys of layer 1 start at 24; a row has
  // 8, and head 1 starts at 4. Tokens 0 to 2 are in page 2, token 3 in page 0.

  // CHECK:      {{^}}4{{$}}
  // CHECK-NEXT: ( 220, 221, 222, 223 )
  // CHECK-NEXT: ( 228, 229, 230, 231 )
  // CHECK-NEXT: ( 236, 237, 238, 239 )
  // CHECK-NEXT: ( 28, 29, 30, 31 )
  func.call @print_cache(%k, %c0) : (!cache, index) -> ()

  // The other sequence is empty.

  // CHECK-NEXT: {{^}}0{{$}}
  func.call @print_cache(%k, %c1) : (!cache, index) -> ()

  // Pages are 12 rows apart.

  // CHECK-NEXT: {{^}}25{{$}}
  // CHECK-NEXT: {{^}}1{{$}}
  %rows = kvcache.populate %k[%c0, %c0] : !cache -> !rows
  %r1 = kvcache.get_row %rows[%c1] : !rows
  %r4 = kvcache.get_row %rows[%c4] : !rows
  vector.print %r1 : index
  vector.print %r4 : index
  memref.dealloc %flat : memref<384xbf16>
  return
}
