// RUN: kvcache-opt %s --kvcache-to-ptx="chip=sm_90a host=true" -o %t.mlir
// RUN: mlir-runner %t.mlir -e main -entry-point-result=void -shared-libs=%mlir_lib_dir/libmlir_c_runner_utils.so,%kvcache_trace,%kvcache_runtime | FileCheck %s --match-full-lines

// What descriptors say of caches in memory. The first parameter of every kernel
// is where the blocks, or the scales, begin.

!lut = memref<?x?xi32>
!lengths = memref<?xi32>

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!paged_coll = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!paged = !kvcache.paged<bf16, #kv, page_size = 64>
!tile = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b, l2_promotion = 256>
!paged_tile = !kvcache.tma_tile<128x1x16x1xbf16>
!ragged_tile = !kvcache.tma_tile<32x64x1x1xbf16, swizzle_64b>
!gather4 = !kvcache.tma_tile<16x1xbf16, swizzle_32b>

#mla = #kvcache.params<num_heads = 1, head_size = 640, is_mla = true>
!mla_coll = !kvcache.paged_collection<f8E4M3FN, #mla, page_size = 64>
!mla_cache = !kvcache.paged<f8E4M3FN, #mla, page_size = 64>
!rope = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!rope_gather4 = !kvcache.tma_tile<64x1xbf16>
!whole_row = !kvcache.tma_tile<80x1xi64, l2_promotion = 128>

!continuous_coll = !kvcache.continuous_collection<bf16, #kv>
!continuous = !kvcache.continuous<bf16, #kv>
!k_major = !kvcache.tma_tile<64x48xbf16, swizzle_128b>
!mn_major = !kvcache.tma_tile<64x8xbf16, swizzle_128b>
!wide_ragged = !kvcache.tma_tile<128x32x1x1xbf16>

#one = #kvcache.params<num_heads = 1, head_size = 128>
!quantized_coll = !kvcache.paged_collection<f8E4M3FN, #one, page_size = 64, scale = f32, granularity = 128>
!quantized = !kvcache.paged<f8E4M3FN, #one, page_size = 64, scale = f32, granularity = 128>
!scale_tile = !kvcache.tma_tile<32x1xf32>

#two = #kvcache.params<num_heads = 2, head_size = 64>
!fp4_coll = !kvcache.paged_collection<f4E2M1FN, #two, page_size = 16, scale = f8E8M0FNU, granularity = 32>
!fp4 = !kvcache.paged<f4E2M1FN, #two, page_size = 16, scale = f8E8M0FNU, granularity = 32>
!fp4_tile = !kvcache.tma_tile<32x1x16xi8, swizzle_32b>

module attributes {gpu.container_module} {

gpu.module @kernels {
  gpu.func @paged(%buffer: memref<1052800xbf16>, %a: !tile, %b: !paged_tile, %c: !ragged_tile, %d: !gather4) kernel {
    kvcache.tma_prefetch %a : !tile
    gpu.return
  }
  gpu.func @mla(%blocks: memref<3x1x2x64x1x640xf8E4M3FN>, %a: !rope, %b: !rope_gather4, %c: !whole_row) kernel {
    gpu.return
  }
  gpu.func @continuous(%blocks: memref<2x2x2x100x8x128xbf16>, %a: !k_major, %b: !mn_major, %c: !wide_ragged) kernel {
    gpu.return
  }
  gpu.func @scales(%scales: memref<4x2x2x64x1x1xf32>, %a: !scale_tile) kernel {
    gpu.return
  }
  gpu.func @fp4(%blocks: memref<4x2x1x16x2x32xi8>, %a: !fp4_tile) kernel {
    gpu.return
  }
}

func.func private @table() -> (!lut, !lengths) {
  %c4 = arith.constant 4 : index
  %c24 = arith.constant 24 : index
  %lut = memref.alloc(%c4, %c24) : !lut
  %lengths = memref.alloc(%c4) : !lengths
  return %lut, %lengths : !lut, !lengths
}

// Pages of 2 x 2 layers are 262144 elements, and 1024 after each are not of the
// cache: 257 rows from one to the next. Values of layer 1 begin 128 + 131072 +
// 65536 elements after the start of the buffer.

// CHECK:      launch @kernels::@paged for sm_90a
// CHECK:        param 0: 8 bytes, {{.*}} = 0x[[# %x, PAGED:]]
// CHECK-NEXT:   param 1: 128 bytes, tensor map of 2-byte elements, dims (128, 8, 835), strides (1, 128, 1024), box (64, 1, 64), swizzle 128b, l2 promotion 256, offset 0, base 0x[[# PAGED + 393472]]
// CHECK-NEXT:   param 2: 128 bytes, tensor map of 2-byte elements, dims (128, 8, 64, 4), strides (1, 128, 1024, 263168), box (128, 1, 16, 1), swizzle none, l2 promotion 0, offset 0, base 0x[[# PAGED + 393472]]
// CHECK-NEXT:   param 3: 128 bytes, tensor map of 2-byte elements, dims (128, 64, 8, 836), strides (1, 1024, 128, 1024), box (32, 64, 1, 1), swizzle 64b, l2 promotion 0, offset -131072, base 0x[[# PAGED + 393472]]
// CHECK-NEXT:   param 4: 128 bytes, tensor map of 2-byte elements, dims (1024, 835), strides (1, 1024), box (16, 1), swizzle 32b, l2 promotion 0, offset 0, base 0x[[# PAGED + 393472]]

func.func private @paged() {
  %c1 = arith.constant 1 : index
  %max = arith.constant 64 : i32
  %buffer = memref.alloc() {alignment = 128} : memref<1052800xbf16>
  %padded = memref.reinterpret_cast %buffer to offset: [128], sizes: [4, 2, 2, 64, 8, 128],
      strides: [263168, 131072, 65536, 1024, 128, 1]
      : memref<1052800xbf16> to memref<4x2x2x64x8x128xbf16, strided<[263168, 131072, 65536, 1024, 128, 1], offset: 128>>
  %blocks = memref.cast %padded
      : memref<4x2x2x64x8x128xbf16, strided<[263168, 131072, 65536, 1024, 128, 1], offset: 128>>
      to memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 1024, 128, 1], offset: ?>>
  %lut, %lengths = call @table() : () -> (!lut, !lengths)
  %coll = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
      : memref<?x2x?x64x8x128xbf16, strided<[?, ?, ?, 1024, 128, 1], offset: ?>>, !lengths, !lut -> !paged_coll
  %v = kvcache.paged_view value %coll[%c1] : !paged_coll
  %a = kvcache.create_tma_tile %v {rows = 64, swizzle = #kvcache.swizzle<swizzle_128b>, l2_promotion = 256} : !paged -> !tile
  %b = kvcache.create_paged_tma_tile %v {rows = 16, columns = 128} : !paged -> !paged_tile
  %c = kvcache.create_ragged_tma_tile %v {rows = 64, swizzle = #kvcache.swizzle<swizzle_64b>} : !paged -> !ragged_tile
  %d = kvcache.create_gather4_tma_tile %v {tile_height = 8, tile_width = 32, tile_stride = 1024, swizzle = #kvcache.swizzle<swizzle_32b>}
      : !paged -> !gather4
  gpu.launch_func @kernels::@paged blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%buffer : memref<1052800xbf16>, %a : !tile, %b : !paged_tile, %c : !ragged_tile, %d : !gather4)
  memref.dealloc %buffer : memref<1052800xbf16>
  return
}

// 128 rows from page to page, and 320 from the first to the last of layer 1.

// CHECK:      launch @kernels::@mla for sm_90a
// CHECK:        param 0: 8 bytes, {{.*}} = 0x[[# %x, MLA:]]
// CHECK-NEXT:   param 1: 128 bytes, tensor map of 2-byte elements, dims (64, 1, 320), strides (1, 320, 320), box (64, 1, 64), swizzle 128b, l2 promotion 0, offset 512, base 0x[[# MLA + 40960]]
// CHECK-NEXT:   param 2: 128 bytes, tensor map of 2-byte elements, dims (64, 320), strides (1, 320), box (64, 1), swizzle none, l2 promotion 0, offset 512, base 0x[[# MLA + 40960]]
// CHECK-NEXT:   param 3: 128 bytes, tensor map of 8-byte elements, dims (80, 320), strides (1, 80), box (80, 1), swizzle none, l2 promotion 128, offset 0, base 0x[[# MLA + 40960]]

func.func private @mla() {
  %c1 = arith.constant 1 : index
  %max = arith.constant 64 : i32
  %blocks = memref.alloc() {alignment = 128} : memref<3x1x2x64x1x640xf8E4M3FN>
  %lut, %lengths = call @table() : () -> (!lut, !lengths)
  %coll = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
      : memref<3x1x2x64x1x640xf8E4M3FN>, !lengths, !lut -> !mla_coll
  %k = kvcache.paged_view key %coll[%c1] : !mla_coll
  %a = kvcache.create_rope_tma_tile %k
      {rows = 64, columns = 64, padded_depth = 512, swizzle = #kvcache.swizzle<swizzle_128b>} : !mla_cache -> !rope
  %b = kvcache.create_rope_gather4_tma_tile %k {tile_height = 64, tile_width = 64, padded_depth = 512}
      : !mla_cache -> !rope_gather4
  %c = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 80, dtype = i64, l2_promotion = 128}
      : !mla_cache -> !whole_row
  gpu.launch_func @kernels::@mla blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%blocks : memref<3x1x2x64x1x640xf8E4M3FN>, %a : !rope, %b : !rope_gather4, %c : !whole_row)
  memref.dealloc %blocks : memref<3x1x2x64x1x640xf8E4M3FN>
  return
}

// Two sequences of at most 100 tokens, 400 rows apart.

// CHECK:      launch @kernels::@continuous for sm_90a
// CHECK:        param 0: 8 bytes, {{.*}} = 0x[[# %x, CONTINUOUS:]]
// CHECK-NEXT:   param 1: 128 bytes, tensor map of 2-byte elements, dims (1024, 500), strides (1, 1024), box (64, 48), swizzle 128b, l2 promotion 0, offset 0, base 0x[[# CONTINUOUS + 204800]]
// CHECK-NEXT:   param 2: 128 bytes, tensor map of 2-byte elements, dims (1024, 500), strides (1, 1024), box (64, 8), swizzle 128b, l2 promotion 0, offset 0, base 0x[[# CONTINUOUS + 204800]]
// CHECK-NEXT:   param 3: 128 bytes, tensor map of 2-byte elements, dims (128, 32, 8, 501), strides (1, 1024, 128, 1024), box (128, 32, 1, 1), swizzle none, l2 promotion 0, offset -65536, base 0x[[# CONTINUOUS + 204800]]

func.func private @continuous() {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %max = arith.constant 64 : i32
  %blocks = memref.alloc() {alignment = 128} : memref<2x2x2x100x8x128xbf16>
  %open = memref.cast %blocks : memref<2x2x2x100x8x128xbf16> to memref<?x2x?x?x8x128xbf16>
  %lut = memref.alloc(%c2) : memref<?xi32>
  %lengths = memref.alloc(%c2) : memref<?xi32>
  %coll = kvcache.continuous_collection %open, %lengths, %lut, %max, %max
      : memref<?x2x?x?x8x128xbf16>, memref<?xi32>, memref<?xi32> -> !continuous_coll
  %k = kvcache.continuous_view key %coll[%c1] : !continuous_coll
  %a = kvcache.create_tma_tile %k {rows = 48, swizzle = #kvcache.swizzle<swizzle_128b>} : !continuous -> !k_major
  %b = kvcache.create_tma_tile %k
      {rows = 48, columns = 32, major = #kvcache.major<mn_major>, swizzle = #kvcache.swizzle<swizzle_128b>}
      : !continuous -> !mn_major
  %c = kvcache.create_ragged_tma_tile %k {rows = 32, columns = 128} : !continuous -> !wide_ragged
  gpu.launch_func @kernels::@continuous blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%blocks : memref<2x2x2x100x8x128xbf16>, %a : !k_major, %b : !mn_major, %c : !wide_ragged)
  memref.dealloc %blocks : memref<2x2x2x100x8x128xbf16>
  return
}

// CHECK:      launch @kernels::@scales for sm_90a
// CHECK:        param 0: 8 bytes, {{.*}} = 0x[[# %x, SCALES:]]
// CHECK-NEXT:   param 1: 128 bytes, tensor map of 4-byte elements, dims (64, 4), strides (1, 256), box (32, 1), swizzle none, l2 promotion 0, offset 0, base 0x[[# SCALES + 768]]

func.func private @scales() {
  %c1 = arith.constant 1 : index
  %max = arith.constant 64 : i32
  %blocks = memref.alloc() {alignment = 128} : memref<4x2x2x64x1x128xf8E4M3FN>
  %scales = memref.alloc() {alignment = 128} : memref<4x2x2x64x1x1xf32>
  %lut, %lengths = call @table() : () -> (!lut, !lengths)
  %coll = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max scales %scales
      : memref<4x2x2x64x1x128xf8E4M3FN>, !lengths, !lut, memref<4x2x2x64x1x1xf32> -> !quantized_coll
  %v = kvcache.paged_view value %coll[%c1] : !quantized_coll
  %s = kvcache.scales_view %v : !quantized
  %a = kvcache.create_scale_tma_tile %s {rows = 32} : !kvcache.scales<!quantized> -> !scale_tile
  gpu.launch_func @kernels::@scales blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%scales : memref<4x2x2x64x1x1xf32>, %a : !scale_tile)
  memref.dealloc %blocks : memref<4x2x2x64x1x128xf8E4M3FN>
  memref.dealloc %scales : memref<4x2x2x64x1x1xf32>
  return
}

// Two elements in a byte: rows of 64 bytes, 32 from page to page.

// CHECK:      launch @kernels::@fp4 for sm_90a
// CHECK:        param 0: 8 bytes, {{.*}} = 0x[[# %x, FP4:]]
// CHECK-NEXT:   param 1: 128 bytes, tensor map of 1-byte elements, dims (32, 2, 112), strides (1, 32, 64), box (32, 1, 16), swizzle 32b, l2 promotion 0, offset 0, base 0x[[# FP4 + 1024]]
// CHECK-NOT:  {{.+}}

func.func private @fp4() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %max = arith.constant 16 : i32
  %blocks = memref.alloc() {alignment = 128} : memref<4x2x1x16x2x32xi8>
  %scales = memref.alloc() {alignment = 128} : memref<4x2x1x16x2x2xf8E8M0FNU>
  %lut, %lengths = call @table() : () -> (!lut, !lengths)
  %coll = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max scales %scales
      : memref<4x2x1x16x2x32xi8>, !lengths, !lut, memref<4x2x1x16x2x2xf8E8M0FNU> -> !fp4_coll
  %v = kvcache.paged_view value %coll[%c0] : !fp4_coll
  %a = kvcache.create_tma_tile %v {rows = 64, swizzle = #kvcache.swizzle<swizzle_32b>} : !fp4 -> !fp4_tile
  gpu.launch_func @kernels::@fp4 blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%blocks : memref<4x2x1x16x2x32xi8>, %a : !fp4_tile)
  memref.dealloc %blocks : memref<4x2x1x16x2x32xi8>
  memref.dealloc %scales : memref<4x2x1x16x2x2xf8E8M0FNU>
  return
}

func.func @main() {
  call @paged() : () -> ()
  call @mla() : () -> ()
  call @continuous() : () -> ()
  call @scales() : () -> ()
  call @fp4() : () -> ()
  return
}

}
