// RUN: kvcache-opt %s --kvcache-to-cpu -o %t.mlir
// RUN: mlir-runner %t.mlir -e main -entry-point-result=void -shared-libs=%mlir_lib_dir/libmlir_runner_utils.so,%mlir_lib_dir/libmlir_c_runner_utils.so | FileCheck %s

// A store in a parallel loop, of a continuous cache in fp8; the truncation
// saturates.

#kv = #kvcache.params<num_heads = 1, head_size = 2>
!collection = !kvcache.continuous_collection<f8E4M3FN, #kv>
!cache = !kvcache.continuous<f8E4M3FN, #kv>

memref.global "private" constant @table : memref<2xi32> = dense<[1, 0]>
memref.global "private" constant @lengths : memref<2xi32> = dense<[2, 2]>

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %max = arith.constant 2 : i32
  %blocks = memref.alloc() {alignment = 64} : memref<2x2x1x2x1x2xf8E4M3FN>
  %lut = memref.get_global @table : memref<2xi32>
  %lengths = memref.get_global @lengths : memref<2xi32>
  %c = kvcache.continuous_collection %blocks, %lengths, %lut, %max, %max
      : memref<2x2x1x2x1x2xf8E4M3FN>, memref<2xi32>, memref<2xi32> -> !collection
  %v = kvcache.continuous_view value %c[%c0] : !collection
  scf.parallel (%b, %t) = (%c0, %c0) to (%c2, %c2) step (%c1, %c1) {
    %twice = arith.muli %b, %c2 : index
    %sum = arith.addi %twice, %t : index
    %sum32 = arith.index_cast %sum : index to i32
    %first = arith.sitofp %sum32 : i32 to f32
    %large = arith.constant 1.0e6 : f32
    %pair = vector.from_elements %first, %large : vector<2xf32>
    %narrow = arith.truncf %pair : vector<2xf32> to vector<2xf8E4M3FN>
    kvcache.store %narrow, %v[%b, %c0, %t, %c0] : vector<2xf8E4M3FN>, !cache
  }

  // CHECK:      ( 0, 448 )
  // CHECK-NEXT: ( 1, 448 )
  // CHECK-NEXT: ( 2, 448 )
  // CHECK-NEXT: ( 3, 448 )
  scf.for %b = %c0 to %c2 step %c1 {
    scf.for %t = %c0 to %c2 step %c1 {
      %x = kvcache.load %v[%b, %c0, %t, %c0] : !cache -> vector<2xf32>
      vector.print %x : vector<2xf32>
    }
  }

  // Sequence 0 is in block 1: its values start at element 4 of 8 there.

  // CHECK-NEXT: ( 2, 448 )
  %raw = vector.load %blocks[%c0, %c1, %c0, %c0, %c0, %c0]
      : memref<2x2x1x2x1x2xf8E4M3FN>, vector<2xf8E4M3FN>
  %wide = arith.extf %raw : vector<2xf8E4M3FN> to vector<2xf32>
  vector.print %wide : vector<2xf32>
  memref.dealloc %blocks : memref<2x2x1x2x1x2xf8E4M3FN>
  return
}
