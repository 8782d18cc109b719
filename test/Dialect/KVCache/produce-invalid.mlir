// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c1_produce_without_tiles(%i: index) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'kvcache.produce' op expects the arguments of the region to be the tiles of '!kvcache.pipe<3, !kvcache.tile<64x128xbf16, swizzle_128b>>', got ()}}
  kvcache.produce %ring[%i] : !ring {
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c1_produce_with_two_tiles(%i: index) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'kvcache.produce' op expects the arguments of the region to be the tiles of '!kvcache.pipe<3, !kvcache.tile<64x128xbf16, swizzle_128b>>', got ('!kvcache.tile<64x128xbf16, swizzle_128b>', '!kvcache.tile<64x128xbf16, swizzle_128b>')}}
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt, %vs: !kt):
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c1_produce_with_another_tile(%i: index) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'kvcache.produce' op expects the arguments of the region to be the tiles of '!kvcache.pipe<3, !kvcache.tile<64x128xbf16, swizzle_128b>>', got ('!kvcache.tile<64x128xbf16>')}}
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kvcache.tile<64x128xbf16>):
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c1_produce_that_yields(%i: index) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'kvcache.produce' op expects the region not to yield values}}
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    kvcache.yield %i : index
  }
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c2_copy_into_a_foreign_tile(%k: !cache, %kt: !kt, %i: index) {
  %ring = kvcache.pipe : !ring
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    // expected-error @below {{'kvcache.async_load_tile' op expects 'tile' to be an argument of the region of 'kvcache.produce'}}
    kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt : !cache, !kt
  }
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c2_gather_into_a_foreign_tile(%k: !cache, %ids: memref<64xi32>, %i: index) {
  %ring = kvcache.pipe : !ring
  %kt = kvcache.alloc_tile : !kt
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    // expected-error @below {{'kvcache.async_gather_tile' op expects 'tile' to be an argument of the region of 'kvcache.produce'}}
    kvcache.async_gather_tile %k[%i, %i] rows %ids to %kt : !cache, memref<64xi32>, !kt
  }
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c2_copy_in_a_loop(%k: !cache, %i: index) {
  %ring = kvcache.pipe : !ring
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    // expected-error @below {{'scf.for' op is not allowed in the region of 'kvcache.produce', which may contain only copies and ops that do not write memory}}
    scf.for %j = %i to %i step %i {
      kvcache.async_load_tile %k[%i, %i, %j, %i] to %ks : !cache, !kt
    }
  }
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c2_wait(%k: !cache, %i: index) {
  %ring = kvcache.pipe : !ring
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    %tok = kvcache.async_load_tile %k[%i, %i, %i, %i] to %ks : !cache, !kt
    // expected-error @below {{'kvcache.wait' op is not allowed in the region of 'kvcache.produce', which may contain only copies and ops that do not write memory}}
    kvcache.wait %tok
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c2_store_rows(%m: memref<?xf32>, %x: i1, %i: index, %a: !kvcache.fragment<64xf32, wgmma_acc>) {
  %ring = kvcache.pipe : !ring
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    // expected-error @below {{'kvcache.store_rows' op is not allowed in the region of 'kvcache.produce', which may contain only copies and ops that do not write memory}}
    kvcache.store_rows %a at(%i) to %m : !kvcache.fragment<64xf32, wgmma_acc>, memref<?xf32> {
    ^bb0(%r: index):
      kvcache.yield %r, %x : index, i1
    }
    kvcache.yield
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c2_store(%m: memref<4xf32>, %x: f32, %i: index) {
  %ring = kvcache.pipe : !ring
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    // expected-error @below {{'memref.store' op is not allowed in the region of 'kvcache.produce', which may contain only copies and ops that do not write memory}}
    memref.store %x, %m[%i] : memref<4xf32>
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c2_allocation(%i: index) {
  %ring = kvcache.pipe : !ring
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    // expected-error @below {{'memref.alloc' op is not allowed in the region of 'kvcache.produce', which may contain only copies and ops that do not write memory}}
    %m = memref.alloc() : memref<4xf32>
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c2_tile(%i: index) {
  %ring = kvcache.pipe : !ring
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    // expected-error @below {{'kvcache.alloc_tile' op is not allowed in the region of 'kvcache.produce', which may contain only copies and ops that do not write memory}}
    %kt = kvcache.alloc_tile : !kt
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c2_tile_store(%x: bf16, %i: index) {
  %ring = kvcache.pipe : !ring
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    // expected-error @below {{'kvcache.tile_store' op is not allowed in the region of 'kvcache.produce', which may contain only copies and ops that do not write memory}}
    kvcache.tile_store %x, %ks[%i, %i] : bf16, !kt
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c2_barrier(%i: index) {
  %ring = kvcache.pipe : !ring
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    // expected-error @below {{'gpu.barrier' op is not allowed in the region of 'kvcache.produce', which may contain only copies and ops that do not write memory}}
    gpu.barrier
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c2_call(%i: index) {
  %ring = kvcache.pipe : !ring
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    // expected-error @below {{'func.call' op is not allowed in the region of 'kvcache.produce', which may contain only copies and ops that do not write memory}}
    func.call @c2_call(%i) : (index) -> ()
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c2_consume_in_produce(%i: index) {
  %ring = kvcache.pipe : !ring
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    // expected-error @below {{'kvcache.consume' op is not allowed in the region of 'kvcache.produce', which may contain only copies and ops that do not write memory}}
    kvcache.consume %ring[%i] : !ring {
    ^bb0(%vs: !kt):
    }
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c3_produce_of_an_argument(%ring: !ring, %i: index) {
  // expected-error @below {{'kvcache.produce' op expects 'pipe' to be the result of 'kvcache.pipe' in the same function}}
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt):
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c3_produce_of_a_carried_pipe(%i: index) {
  %ring = kvcache.pipe : !ring
  scf.for %j = %i to %i step %i iter_args(%carried = %ring) -> (!ring) {
    // expected-error @below {{'kvcache.produce' op expects 'pipe' to be the result of 'kvcache.pipe' in the same function}}
    kvcache.produce %carried[%j] : !ring {
    ^bb0(%ks: !kt):
    }
    scf.yield %carried : !ring
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<2, !kt, producers = 1>

func.func @c4_second_role(%i: index) {
  %ring = kvcache.pipe : !ring
  kvcache.warp_roles warps [4, 1] {
  }, {
    // expected-error @below {{'kvcache.produce' op expects to be in the first role of 'kvcache.warp_roles'}}
    kvcache.produce %ring[%i] : !ring {
    ^bb0(%ks: !kt):
    }
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<2, !kt, producers = 1>

func.func @c4_warps(%i: index) {
  %ring = kvcache.pipe : !ring
  kvcache.warp_roles warps [4, 4] {
    // expected-error @below {{'kvcache.produce' op expects its role to have as many warps as the pipe has 'producers' (1), got 4}}
    kvcache.produce %ring[%i] : !ring {
    ^bb0(%ks: !kt):
    }
  }, {
  }
  return
}
