// RUN: kvcache-opt %s --convert-kvcache-to-nvvm --split-input-file --verify-diagnostics

!kt = !kvcache.tile<128x128xbf16, swizzle_128b>

gpu.module @kernels [#nvvm.target<chip = "sm_100a">] {
  gpu.func @blackwell(%a: !kt) {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'kvcache.mma' op requires sm_90a for wgmma, but the target is sm_100a}}
    %d = kvcache.mma %a[%c0, %c0], %a[%c0, %c0] : !kt, !kt -> vector<32xf32>
    gpu.return
  }
}

// -----

!kt = !kvcache.tile<128x128xbf16, swizzle_128b>

gpu.module @kernels [#nvvm.target<chip = "sm_90">] {
  gpu.func @hopper_without_its_features(%a: !kt) {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'kvcache.mma_wait' op requires sm_90a for wgmma, but the target is sm_90}}
    kvcache.mma_wait
    gpu.return
  }
}

// -----

!kt = !kvcache.tile<128x128xbf16, swizzle_128b>

gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  gpu.func @c8_row_of_a(%a: !kt) {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    // expected-error @below {{'kvcache.mma' op expects 'a_row' to be a multiple of 8, got 4}}
    %d = kvcache.mma %a[%c4, %c0], %a[%c0, %c0] : !kt, !kt -> vector<32xf32>
    gpu.return
  }
}

// -----

!kt = !kvcache.tile<128x128xbf16, swizzle_128b>

gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  gpu.func @c8_column_of_b(%a: !kt) {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    // expected-error @below {{'kvcache.mma' op expects 'b_column' to be a multiple of 16, got 8}}
    %d = kvcache.mma %a[%c0, %c0], %a[%c0, %c8] {k = 16} : !kt, !kt -> vector<32xf32>
    gpu.return
  }
}

// -----

!kt = !kvcache.tile<128x128xbf16, swizzle_128b>

gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  gpu.func @c8_column_of_an_mn_major_tile(%a: !kt) {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    // expected-error @below {{'kvcache.mma' op expects 'b_column' to be a multiple of 64, got 16}}
    %d = kvcache.mma %a[%c0, %c0], %a[%c0, %c16] {major_b = #kvcache.major<mn_major>} : !kt, !kt -> vector<32xf32>
    gpu.return
  }
}

// -----

!kt = !kvcache.tile<128x128xbf16, swizzle_128b>

gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  gpu.func @c8_last_row(%a: !kt) {
    %c0 = arith.constant 0 : index
    %c72 = arith.constant 72 : index
    // expected-error @below {{'kvcache.mma' op expects 'b_row' to be from 0 to 64, so that the part is in the tile, got 72}}
    %d = kvcache.mma %a[%c0, %c0], %a[%c72, %c0] : !kt, !kt -> vector<32xf32>
    gpu.return
  }
}

// -----

!kt = !kvcache.tile<128x128xbf16, swizzle_128b>

gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  gpu.func @c8_last_column(%a: !kt) {
    %c0 = arith.constant 0 : index
    %c80 = arith.constant 80 : index
    // expected-error @below {{'kvcache.mma' op expects 'a_column' to be from 0 to 64, so that the part is in the tile, got 80}}
    %d = kvcache.mma %a[%c0, %c80], %a[%c0, %c0] {k = 64} : !kt, !kt -> vector<32xf32>
    gpu.return
  }
}

// -----

!kt = !kvcache.tile<128x128xbf16, swizzle_128b>

gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  gpu.func @c8_negative(%a: !kt) {
    %c0 = arith.constant 0 : index
    %cm8 = arith.constant -8 : index
    // expected-error @below {{'kvcache.mma' op expects 'a_row' to be from 0 to 64, so that the part is in the tile, got -8}}
    %d = kvcache.mma %a[%cm8, %c0], %a[%c0, %c0] {k = 64} : !kt, !kt -> vector<32xf32>
    gpu.return
  }
}

// -----

func.func @host() {
  // expected-error @below {{'kvcache.mma_wait' op expects GPU code}}
  kvcache.mma_wait
  return
}

// -----

!kt = !kvcache.tile<128x128xbf16, swizzle_128b>

gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  gpu.func @c9_wait(%a: !kt) {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'kvcache.mma' op with 'grouped' expects another 'kvcache.mma' after it in its block, and no wait and no region in between}}
    %d = kvcache.mma %a[%c0, %c0], %a[%c0, %c0] {grouped} : !kt, !kt -> vector<32xf32>
    %e = kvcache.mma_wait %d : vector<32xf32>
    gpu.return
  }
}

// -----

!kt = !kvcache.tile<128x128xbf16, swizzle_128b>

gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  gpu.func @c9_end(%a: !kt) -> vector<32xf32> {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'kvcache.mma' op with 'grouped' expects another 'kvcache.mma' after it in its block, and no wait and no region in between}}
    %d = kvcache.mma %a[%c0, %c0], %a[%c0, %c0] {grouped} : !kt, !kt -> vector<32xf32>
    gpu.return %d : vector<32xf32>
  }
}

// -----

!kt = !kvcache.tile<128x128xbf16, swizzle_128b>

gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  gpu.func @c9_region(%a: !kt, %condition: i1) {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'kvcache.mma' op with 'grouped' expects another 'kvcache.mma' after it in its block, and no wait and no region in between}}
    %d = kvcache.mma %a[%c0, %c0], %a[%c0, %c0] {grouped} : !kt, !kt -> vector<32xf32>
    scf.if %condition {
      kvcache.mma_wait
    }
    %e = kvcache.mma %a[%c0, %c0], %a[%c0, %c0] : !kt, !kt -> vector<32xf32>
    gpu.return
  }
}
