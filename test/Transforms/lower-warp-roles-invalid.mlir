// RUN: kvcache-opt %s --kvcache-attach-targets=chip=sm_100a --kvcache-lower-pipes --split-input-file --verify-diagnostics

gpu.module @kernels {
  gpu.func @c3_branch(%i: i1) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    scf.if %i {
      // expected-error @below {{'kvcache.warp_roles' op expects not to be in a loop or a branch}}
      kvcache.warp_roles warps [4, 4] {
      }, {
      }
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @c3_one() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    // expected-error @below {{'kvcache.warp_roles' op expects to be the only one of its kernel}}
    kvcache.warp_roles warps [4] {
    }
    kvcache.warp_roles warps [4] {
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @c3_threads() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    // expected-error @below {{'kvcache.warp_roles' op expects a block size of 256 threads, got 128}}
    kvcache.warp_roles warps [4, 4] {
    }, {
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @c3_registers() kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    // expected-error @below {{'kvcache.warp_roles' op expects roles to have at most 64512 registers, 168 for each of 384 threads, got 66560}}
    kvcache.warp_roles warps [4, 8] registers [40, 240] {
    }, {
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @c3_registers_by_hand() kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    nvvm.setmaxregister decrease 24
    // expected-error @below {{'kvcache.warp_roles' op expects nothing else in its kernel to set the number of registers}}
    kvcache.warp_roles warps [4, 8] registers [24, 240] {
    }, {
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  func.func @c3_function() {
    // expected-error @below {{'kvcache.warp_roles' op expects a kernel in a gpu.module with one target, or host code}}
    kvcache.warp_roles warps [4] {
    }
    return
  }
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!kt = !kvcache.tile<64x64xbf16, swizzle_128b>
!ring = !kvcache.pipe<2, !kt, producers = 1>

gpu.module @kernels {
  gpu.func @commit_of_parts_of_warps(%d: !kvcache.tmem_tile<64x64xf32>, %i: index) kernel attributes {known_block_size = array<i32: 65, 1, 1>} {
    %ring = kvcache.pipe : !ring
    // expected-error @below {{'kvcache.consume' op with 'commit' expects a known block size that is a multiple of 32}}
    kvcache.consume %ring[%i] commit : !ring {
    ^bb0(%ks: !kt):
      kvcache.tmem_mma %ks[%i, %i], %ks[%i, %i] into %d : !kt, !kt, !kvcache.tmem_tile<64x64xf32>
    }
    gpu.return
  }
}
