// RUN: kvcache-opt %s --convert-kvcache-to-memref --split-input-file --allow-unregistered-dialect --verify-diagnostics

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>
!desc = !kvcache.tma_tile<64x1x16xbf16, swizzle_128b>

gpu.module @kernels {
  gpu.func @in_a_kernel(%k: !cache) kernel {
    // expected-error @below {{'kvcache.create_tma_tile' op expects host code: a kernel takes descriptors as arguments}}
    // expected-error @below {{failed to legalize operation 'kvcache.create_tma_tile' that was explicitly marked illegal}}
    %desc = kvcache.create_tma_tile %k {rows = 16, swizzle = #kvcache.swizzle<swizzle_128b>} : !cache -> !desc
    gpu.return
  }
}

// -----

#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!cache = !kvcache.paged<f8E4M3FN, #mla, page_size = 64>
!desc = !kvcache.tma_tile<72x1xi64>

func.func @in_a_launch(%k: !cache) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%dx = %c1, %dy = %c1, %dz = %c1) {
    // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects host code: a kernel takes descriptors as arguments}}
    // expected-error @below {{failed to legalize operation 'kvcache.create_gather4_tma_tile' that was explicitly marked illegal}}
    %desc = kvcache.create_gather4_tma_tile %k {tile_height = 64, tile_width = 72, dtype = i64} : !cache -> !desc
    gpu.terminator
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

// Only tensor copies keep their tiles.
func.func @tile_of_an_unknown_op() {
  %kt = kvcache.alloc_tile : !kt
  // expected-error @below {{failed to legalize operation 'test.use' that was explicitly marked illegal}}
  "test.use"(%kt) : (!kt) -> ()
  return
}
