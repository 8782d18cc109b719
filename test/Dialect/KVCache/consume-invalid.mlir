// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c1_consume_with_another_tile(%i: index) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'kvcache.consume' op expects the arguments of the region to be the tiles of '!kvcache.pipe<3, !kvcache.tile<64x128xbf16, swizzle_128b>>', got ('index')}}
  kvcache.consume %ring[%i] : !ring {
  ^bb0(%ks: index):
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c1_consume_without_yield(%i: index) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'kvcache.consume' op expects the region to yield ('f32'), got ()}}
  %x = kvcache.consume %ring[%i] : !ring -> (f32) {
  ^bb0(%ks: !kt):
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c1_consume_without_result(%i: index, %x: f32) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'kvcache.consume' op expects the region to yield (), got ('f32')}}
  kvcache.consume %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    kvcache.yield %x : f32
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c1_consume_of_another_result(%i: index) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'kvcache.consume' op expects the region to yield ('f32'), got ('index')}}
  %x = kvcache.consume %ring[%i] : !ring -> (f32) {
  ^bb0(%ks: !kt):
    kvcache.yield %i : index
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c1_consume_of_too_few_results(%i: index, %x: f32) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'kvcache.consume' op expects the region to yield ('f32', 'f32'), got ('f32')}}
  %y:2 = kvcache.consume %ring[%i] : !ring -> (f32, f32) {
  ^bb0(%ks: !kt):
    kvcache.yield %x : f32
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c2_consume_of_an_argument(%ring: !ring, %i: index) {
  // expected-error @below {{'kvcache.consume' op expects 'pipe' to be the result of 'kvcache.pipe' in the same function}}
  kvcache.consume %ring[%i] : !ring {
  ^bb0(%ks: !kt):
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c2_consume_of_the_hosts_pipe(%i: index) {
  %c1 = arith.constant 1 : index
  %ring = kvcache.pipe : !ring
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%dx = %c1, %dy = %c1, %dz = %c1) {
    // expected-error @below {{'kvcache.consume' op expects 'pipe' to be the result of 'kvcache.pipe' in the same function}}
    kvcache.consume %ring[%i] : !ring {
    ^bb0(%ks: !kt):
    }
    gpu.terminator
  }
  return
}

// -----

func.func @yield_in_a_function() {
  // expected-error @below {{'kvcache.yield' op expects parent op to be one of 'kvcache.produce, kvcache.consume, kvcache.attention, kvcache.merge_splits, kvcache.map, kvcache.store_rows, kvcache.store_split, kvcache.warp_roles'}}
  kvcache.yield
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @yield_in_a_branch(%i: index, %b: i1) {
  %ring = kvcache.pipe : !ring
  kvcache.consume %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    scf.if %b {
      // expected-error @below {{'kvcache.yield' op expects parent op to be one of 'kvcache.produce, kvcache.consume, kvcache.attention, kvcache.merge_splits, kvcache.map, kvcache.store_rows, kvcache.store_split, kvcache.warp_roles'}}
      kvcache.yield
    }
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @another_terminator(%i: index) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'kvcache.consume' op expects regions to end with 'kvcache.yield', found 'llvm.unreachable'}}
  // expected-note @below {{the absence of terminator implies 'kvcache.yield'}}
  kvcache.consume %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    llvm.unreachable
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @two_blocks(%i: index) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'kvcache.consume' op expects region #0 to have 0 or 1 blocks}}
  kvcache.consume %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    cf.br ^bb1
  ^bb1:
    kvcache.yield
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c3_commit_without_products(%i: index) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'kvcache.consume' op with 'commit' expects a 'kvcache.tmem_mma' in the region}}
  kvcache.consume %ring[%i] commit : !ring {
  ^bb0(%ks: !kt):
  }
  return
}

// -----

!p = !kvcache.tmem_tile<128x64xf16>
!o = !kvcache.tmem_tile<128x256xf32>
!vt = !kvcache.tile<64x512xf16, swizzle_128b>
!ring = !kvcache.pipe<3, !vt>

func.func @c4_commit_of_a_pair(%p: !p, %o: !o, %i: index) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'kvcache.consume' op with 'commit' expects no 'pair' of 'kvcache.tmem_mma'; 'kvcache.tmem_commit' has one}}
  kvcache.consume %ring[%i] commit : !ring {
  ^bb0(%vs: !vt):
    kvcache.tmem_mma %p, %vs[%i, %i] into %o {major_b = #kvcache.major<mn_major>, pair} : !p, !vt, !o
  }
  return
}
