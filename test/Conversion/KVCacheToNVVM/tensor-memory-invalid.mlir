// RUN: kvcache-opt %s --convert-kvcache-to-nvvm --split-input-file --verify-diagnostics

gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  gpu.func @hopper() {
    // expected-error @below {{'kvcache.tmem_alloc' op requires sm_100a/f, sm_103a/f or sm_110a/f for tensor memory, but the target is sm_90a}}
    %a = kvcache.tmem_alloc : !kvcache.tmem_tile<64x64xf32>
    gpu.return
  }
}

// -----

!bars = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

gpu.module @kernels [#nvvm.target<chip = "sm_120a">] {
  gpu.func @other_blackwell(%bars: !bars) {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'kvcache.tmem_commit' op requires sm_100a/f, sm_103a/f or sm_110a/f for tensor memory, but the target is sm_120a}}
    kvcache.tmem_commit %bars[%c0] : !bars
    gpu.return
  }
}

// -----

!i8 = !kvcache.tile<64x64xi8, swizzle_64b>

gpu.module @kernels [#nvvm.target<chip = "sm_103a">] {
  gpu.func @integers(%a: !i8, %d: !kvcache.tmem_tile<64x64xi32>) {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'kvcache.tmem_mma' op requires sm_100a or sm_110a for tcgen05.mma of 8-bit integers, but the target is sm_103a}}
    kvcache.tmem_mma %a[%c0, %c0], %a[%c0, %c0] into %d : !i8, !i8, !kvcache.tmem_tile<64x64xi32>
    gpu.return
  }
}

// -----

func.func @host(%t: !kvcache.tmem_tile<64x64xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'kvcache.tmem_load' op expects GPU code}}
  %v = kvcache.tmem_load %t[%c0] : !kvcache.tmem_tile<64x64xf32> -> vector<4xf32>
  return
}

// -----

gpu.module @kernels [#nvvm.target<chip = "sm_100a">] {
  gpu.func @c3_in_a_loop(%n: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 {
      // expected-error @below {{'kvcache.tmem_alloc' op expects not to be in a loop}}
      %a = kvcache.tmem_alloc : !kvcache.tmem_tile<64x64xf32>
    }
    gpu.return
  }
}

// -----

gpu.module @kernels [#nvvm.target<chip = "sm_100a">] {
  gpu.func @c3_two() {
    // expected-note @below {{another one is here}}
    %a = kvcache.tmem_alloc : !kvcache.tmem_tile<64x64xf32>
    // expected-error @below {{'kvcache.tmem_alloc' op expects to be the only one of its function}}
    %b = kvcache.tmem_alloc : !kvcache.tmem_tile<64x64xf32>
    gpu.return
  }
}

// -----

!kt = !kvcache.tile<128x128xbf16, swizzle_128b>

gpu.module @kernels [#nvvm.target<chip = "sm_100a">] {
  gpu.func @c8_row(%a: !kt, %d: !kvcache.tmem_tile<64x64xf32>) {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    // expected-error @below {{'kvcache.tmem_mma' op expects 'b_row' to be a multiple of 8, got 4}}
    kvcache.tmem_mma %a[%c0, %c0], %a[%c4, %c0] into %d : !kt, !kt, !kvcache.tmem_tile<64x64xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels [#nvvm.target<chip = "sm_100a">] {
  gpu.func @c2_half(%t: !kvcache.tmem_tile<128x64xf32>) {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    // expected-error @below {{'kvcache.tmem_load' op expects 'half' to be 0 or 1, got 2}}
    %v = kvcache.tmem_load %t[%c0] half %c2 : !kvcache.tmem_tile<128x64xf32> -> vector<4xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels [#nvvm.target<chip = "sm_100a">] {
  gpu.func @c4_unit(%v: vector<4xf32>, %t: !kvcache.tmem_tile<64x64xf32>) {
    %c4 = arith.constant 4 : index
    // expected-error @below {{'kvcache.tmem_store' op expects 'column' to be a multiple of 8, got 4}}
    kvcache.tmem_store %v, %t[%c4] : vector<4xf32>, !kvcache.tmem_tile<64x64xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels [#nvvm.target<chip = "sm_100a">] {
  gpu.func @c4_end(%t: !kvcache.tmem_tile<64x64xf32>) {
    %c56 = arith.constant 56 : index
    // expected-error @below {{'kvcache.tmem_load' op expects 'column' to be from 0 to 48, so that the fragment is in the tile, got 56}}
    %v = kvcache.tmem_load %t[%c56] : !kvcache.tmem_tile<64x64xf32> -> vector<8xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels [#nvvm.target<chip = "sm_100a">] {
  gpu.func @c4_halves(%t: !kvcache.tmem_tile<64x512xf32>) {
    %c248 = arith.constant 248 : index
    // expected-error @below {{'kvcache.tmem_load' op expects the columns from 248 to 263 to be in one half of the tile (256)}}
    %v = kvcache.tmem_load %t[%c248] : !kvcache.tmem_tile<64x512xf32> -> vector<8xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels [#nvvm.target<chip = "sm_100a">] {
  gpu.func @c4_alloc() kernel {
    // expected-error @below {{'kvcache.tmem_alloc' op with 'pair' expects a kernel that states clusters of 2 blocks, got 1}}
    %a = kvcache.tmem_alloc {pair} : !kvcache.tmem_tile<128x64xf32>
    gpu.return
  }
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

gpu.module @kernels [#nvvm.target<chip = "sm_100a">] {
  gpu.func @c9_mma(%a: !kt, %d: !kvcache.tmem_tile<128x64xf32>, %i: index) kernel
      attributes {known_cluster_size = array<i32: 2, 2, 1>} {
    // expected-error @below {{'kvcache.tmem_mma' op with 'pair' expects a kernel that states clusters of 2 blocks, got 4}}
    kvcache.tmem_mma %a[%i, %i], %a[%i, %i] into %d {pair} : !kt, !kt, !kvcache.tmem_tile<128x64xf32>
    gpu.return
  }
}

// -----

!bars = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

gpu.module @kernels [#nvvm.target<chip = "sm_100a">] {
  gpu.func @c1_commit(%bars: !bars, %i: index) kernel {
    kvcache.cluster_barrier {blocks = 4 : i64}
    // expected-error @below {{'kvcache.tmem_commit' op with 'pair' expects a kernel that states clusters of 2 blocks, got 4}}
    kvcache.tmem_commit %bars[%i] {pair} : !bars
    gpu.return
  }
}
