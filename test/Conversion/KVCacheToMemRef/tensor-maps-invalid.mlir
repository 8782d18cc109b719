// RUN: kvcache-opt %s --convert-kvcache-to-memref --split-input-file --allow-unregistered-dialect --verify-diagnostics

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>
!desc = !kvcache.tma_tile<64x1x16xbf16, swizzle_128b>

gpu.module @kernels {
  gpu.func @in_a_kernel(%k: !cache) kernel {
    // expected-error @below {{'kvcache.create_tma_tile' op expects host code: a kernel takes descriptors as arguments}}
    // expected-error @below {{'kvcache.create_tma_tile' op has no lowering here for its types and attributes}}
    %desc = kvcache.create_tma_tile %k {rows = 16, swizzle = #kvcache.swizzle<swizzle_128b>} : !cache -> !desc
    gpu.return
  }
}

// -----

!cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>
!desc = !kvcache.tma_tile<72x1xi64>

func.func @in_a_launch(%k: !cache) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%dx = %c1, %dy = %c1, %dz = %c1) {
    // expected-error @below {{'kvcache.create_gather4_tma_tile' op expects host code: a kernel takes descriptors as arguments}}
    // expected-error @below {{'kvcache.create_gather4_tma_tile' op has no lowering here for its types and attributes}}
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
  // expected-error @below {{'test.use' op expects no value of type '!kvcache.tile<64x128xbf16, swizzle_128b>': only ops of this dialect use one, and functions, calls, branches and regions of 'scf' ops pass one on}}
  // expected-error @below {{'test.use' op has no lowering here for its types and attributes}}
  "test.use"(%kt) : (!kt) -> ()
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 16>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>
!desc = !kvcache.tma_tile<64x16x1x1xbf16, swizzle_128b>
!blocks = memref<?x2x2x16x8x128xbf16, strided<[65544, 32768, 16384, 1024, 128, 1]>>

func.func @pages_that_are_not_whole_rows_apart(%blocks: !blocks, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %m: i32, %layer: index) -> !desc {
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %m, %m : !blocks, memref<?xi32>, memref<?x?xi32> -> !collection
  %v = kvcache.paged_view value %c[%layer] : !collection
  // expected-error @below {{'kvcache.create_ragged_tma_tile' op expects pages a whole number of rows (1024 elements) apart, because it counts rows}}
  // expected-error @below {{'kvcache.create_ragged_tma_tile' op has no lowering here for its types and attributes}}
  %desc = kvcache.create_ragged_tma_tile %v {rows = 16, swizzle = #kvcache.swizzle<swizzle_128b>} : !cache -> !desc
  return %desc : !desc
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @tile_of_a_parallel_loop(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kt = kvcache.alloc_tile : !kt
  // expected-error @below {{'scf.parallel' op expects no value of type '!kvcache.tile<64x128xbf16, swizzle_128b>'}}
  // expected-error @below {{'scf.parallel' op has no lowering here for its types and attributes}}
  %r = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%kt) -> !kt {
    scf.reduce(%kt : !kt) {
    ^bb0(%x: !kt, %y: !kt):
      scf.reduce.return %x : !kt
    }
  }
  return
}

// -----

func.func @wait_without_a_copy(%token: !kvcache.token) {
  // expected-error @below {{'kvcache.wait' op expects 'kvcache-expand-copies' to lower it first}}
  kvcache.wait %token
  return
}
