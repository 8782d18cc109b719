// RUN: kvcache-opt %s --kvcache-to-ptx="chip=sm_90a,sm_100a host=true" -o %t.mlir
// RUN: mlir-runner %t.mlir -e main -entry-point-result=void -shared-libs=%mlir_lib_dir/libmlir_c_runner_utils.so,%kvcache_trace,%kvcache_runtime | FileCheck %s

// Copies into tiles get their descriptors from the launch, which repeats what
// the kernel computes from its arguments: here a view of layer 1.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!coll = !kvcache.paged_collection<bf16, #kv, page_size = 16>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!blocks = memref<?x2x?x16x8x128xbf16>

#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!mla_coll = !kvcache.paged_collection<f8E4M3FN, #mla, page_size = 64>
!mla = !kvcache.paged<f8E4M3FN, #mla, page_size = 64>
!rows = !kvcache.tile<64x576xf8E4M3FN>
!rope = !kvcache.tile<64x64xf8E4M3FN, swizzle_64b>
!latent = memref<?x1x1x64x1x576xf8E4M3FN>

!lut = memref<?x?xi32>
!lengths = memref<?xi32>

module attributes {gpu.container_module} {

gpu.module @kernels {
  gpu.func @keys(%blocks: !blocks, %lengths: !lengths, %lut: !lut, %valid: index, %out: memref<64x128xbf16>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %max = arith.constant 64 : i32
    %coll = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max : !blocks, !lengths, !lut -> !coll
    %k = kvcache.paged_view key %coll[%c1] : !coll
    %thread = gpu.thread_id x
    %h = gpu.block_id x
    %kt = kvcache.alloc_tile : !kt
    %all = kvcache.async_load_tile %k[%c0, %h, %c0, %c0] to %kt : !cache, !kt
    kvcache.wait %all
    gpu.barrier
    %some = kvcache.async_load_tile %k[%c0, %h, %c0, %c0] valid %valid to %kt : !cache, !kt
    kvcache.wait %some
    %row = arith.remui %thread, %c8 : index
    %v = kvcache.tile_load %kt[%row, %c0] : !kt -> vector<8xbf16>
    vector.store %v, %out[%row, %c0] : memref<64x128xbf16>, vector<8xbf16>
    gpu.return
  }
}

// CHECK:      launch @kernels::@keys for sm_90a
// CHECK-NEXT:   grid (8, 1, 1), block (128, 1, 1), shared memory 0, stream default
// CHECK-NEXT:   param 0: 8 bytes, {{.*}} = 0x[[# %x, KEYS:]]
// CHECK-NEXT:   param 1: 8 bytes, 5 = 0x5
// CHECK-NEXT:   param 2: 8 bytes, 3 = 0x3
// CHECK-NEXT:   param 3: 8 bytes,
// CHECK-NEXT:   param 4: 8 bytes, 2 = 0x2
// CHECK-NEXT:   param 5: 8 bytes,
// CHECK-NEXT:   param 6: 8 bytes, 2 = 0x2
// CHECK-NEXT:   param 7: 8 bytes, 24 = 0x18
// CHECK-NEXT:   param 8: 8 bytes, 50 = 0x32
// CHECK-NEXT:   param 9: 8 bytes,
// CHECK-NEXT:   param 10: 128 bytes, tensor map of 2-byte elements, dims (128, 8, 16, 5), strides (1, 128, 1024, 98304), box (64, 1, 16, 1), swizzle 128b, l2 promotion 0, offset 0, base 0x[[# KEYS + 32768]]
// CHECK-NEXT:   param 11: 128 bytes, tensor map of 2-byte elements, dims (128, 16, 8, 401), strides (1, 1024, 128, 1024), box (64, 16, 1, 1), swizzle 128b, l2 promotion 0, offset -32768, base 0x[[# KEYS + 32768]]
// CHECK-NOT:    param

func.func private @keys(%blocks: !blocks, %lengths: !lengths, %lut: !lut, %valid: index, %out: memref<64x128xbf16>) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c128 = arith.constant 128 : index
  gpu.launch_func @kernels::@keys blocks in (%c8, %c1, %c1) threads in (%c128, %c1, %c1)
      args(%blocks : !blocks, %lengths : !lengths, %lut : !lut, %valid : index, %out : memref<64x128xbf16>)
  return
}

// The same from loops: 576 bytes of fp8 are 72 integers of 64 bits, a row in one
// box, and the last 64 of each, up to a valid row, one of their own.

// CHECK:      launch @sparse_kernel::@sparse_kernel for sm_90a
// CHECK-NEXT:   grid (3, 1, 1), block (64, 1, 1), shared memory 0, stream default
// CHECK-NEXT:   param 0: 8 bytes, {{.*}} = 0x[[# %x, LATENT:]]
// CHECK-DAG:    param {{[0-9]+}}: 128 bytes, tensor map of 8-byte elements, dims (72, 256), strides (1, 72), box (72, 1), swizzle none, l2 promotion 0, offset 0, base 0x[[# LATENT]]
// CHECK-DAG:    param {{[0-9]+}}: 128 bytes, tensor map of 1-byte elements, dims (576, 64, 1, 257), strides (1, 576, 576, 576), box (64, 64, 1, 1), swizzle 64b, l2 promotion 0, offset -36864, base 0x[[# LATENT]]
// CHECK-DAG:    param {{[0-9]+}}: 128 bytes, tensor map of 1-byte elements, dims (576, 1, 64, 4), strides (1, 576, 576, 36864), box (64, 1, 64, 1), swizzle 64b, l2 promotion 0, offset 0, base 0x[[# LATENT]]
// CHECK-NOT:  {{param|launch}}

func.func private @sparse(%blocks: !latent, %lengths: !lengths, %lut: !lut, %ids: memref<64xi32>, %valid: index,
                          %out: memref<3x64x16xf8E4M3FN>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %max = arith.constant 64 : i32
  scf.parallel (%i) = (%c0) to (%c3) step (%c1) {
    scf.parallel (%j) = (%c0) to (%c64) step (%c1) {
      %coll = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max : !latent, !lengths, !lut -> !mla_coll
      %k = kvcache.paged_view key %coll[%c0] : !mla_coll
      %any = arith.cmpi ne, %valid, %c0 : index
      scf.if %any {
        %tile = kvcache.alloc_tile : !rows
        %gathered = kvcache.async_gather_tile %k[%c0, %c0] rows %ids to %tile : !mla, memref<64xi32>, !rows
        kvcache.wait %gathered
        %x = kvcache.tile_load %tile[%j, %c0] : !rows -> vector<16xf8E4M3FN>
        vector.store %x, %out[%i, %j, %c0] {alignment = 16} : memref<3x64x16xf8E4M3FN>, vector<16xf8E4M3FN>
        %rope = kvcache.alloc_tile : !rope
        %loaded = kvcache.async_load_tile %k[%c0, %c0, %c0, %c512] valid %valid to %rope : !mla, !rope
        kvcache.wait %loaded
        %y = kvcache.tile_load %rope[%j, %c0] : !rope -> vector<16xf8E4M3FN>
        vector.store %y, %out[%i, %j, %c0] {alignment = 16} : memref<3x64x16xf8E4M3FN>, vector<16xf8E4M3FN>
      }
    }
  }
  return
}

func.func @main() {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c24 = arith.constant 24 : index
  %valid = arith.constant 50 : index
  %lut = memref.alloc(%c2, %c24) : !lut
  %lengths = memref.alloc(%c2) : !lengths

  %blocks = memref.alloc(%c5, %c3) {alignment = 128} : !blocks
  %out = memref.alloc() : memref<64x128xbf16>
  call @keys(%blocks, %lengths, %lut, %valid, %out) : (!blocks, !lengths, !lut, index, memref<64x128xbf16>) -> ()

  %latent = memref.alloc(%c4) {alignment = 128} : !latent
  %ids = memref.alloc() : memref<64xi32>
  %picked = memref.alloc() : memref<3x64x16xf8E4M3FN>
  call @sparse(%latent, %lengths, %lut, %ids, %valid, %picked)
      : (!latent, !lengths, !lut, memref<64xi32>, index, memref<3x64x16xf8E4M3FN>) -> ()
  return
}

}
