// RUN: kvcache-opt %s --kvcache-to-cpu | FileCheck %s --implicit-check-not=kvcache. --implicit-check-not=memref --implicit-check-not=scf. --implicit-check-not=arith. --implicit-check-not=bf16 --implicit-check-not=f8E4M3FN --implicit-check-not=unrealized
// RUN: kvcache-opt %s --kvcache-to-cpu | mlir-translate --mlir-to-llvmir | FileCheck %s --check-prefix=LLVM

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!e4m3 = !kvcache.continuous<f8E4M3FN, #kv>

// Everything becomes LLVM, with a C interface. bf16 moves as integers, because
// a CPU may change NaNs on the way.

// CHECK:         llvm.func @copy(
// CHECK:           llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr -> vector<8xi16>
// CHECK:           llvm.store
// CHECK:         llvm.func @_mlir_ciface_copy(
// LLVM:          define void @copy(
// LLVM:            load <8 x i16>, ptr %{{.*}}, align 16
// LLVM:          define void @_mlir_ciface_copy(
func.func @copy(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %max: i32,
                %layer: index, %out: memref<?x8xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
      : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  %k = kvcache.paged_view key %c[%layer] : !collection
  %n = kvcache.cache_length %k[%c0] : !cache
  scf.parallel (%t) = (%c0) to (%n) step (%c1) {
    %v = kvcache.load %k[%c0, %c0, %t, %c0] : !cache -> vector<8xbf16>
    vector.store %v, %out[%t, %c0] : memref<?x8xbf16>, vector<8xbf16>
  }
  return
}

// CHECK:         llvm.func @widen(
// CHECK:           llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr -> vector<4xi8>
// LLVM:          define void @widen(
func.func @widen(%k: !e4m3, %i: index, %out: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %v = kvcache.load %k[%i, %i, %i, %i] : !e4m3 -> vector<4xf32>
  vector.store %v, %out[%c0] : memref<4xf32>, vector<4xf32>
  return
}

// Kernels of a GPU are dropped where nothing launches them.

// CHECK-NOT:     gpu.module
// CHECK-NOT:     llvm.func @kernel
gpu.module @kernels {
  gpu.func @kernel(%k: !cache) kernel {
    gpu.return
  }
}
