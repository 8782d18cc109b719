// RUN: kvcache-opt %s --kvcache-attach-targets=chip=sm_90a --kvcache-choose-copies --kvcache-materialize-descriptors --kvcache-lower-pipes --split-input-file --verify-diagnostics

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!kt = !kvcache.tile<64x64xbf16, swizzle_128b>
!ring = !kvcache.pipe<2, !kt, producers = 4>

gpu.module @kernels {
  gpu.func @registers_of_an_unknown_block(%k: !cache, %produces: i1, %n: index) kernel {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'kvcache.pipe' op with registers expects a known block size that is a multiple of 128}}
    %ring = kvcache.pipe {producer_registers = 24, consumer_registers = 240} : !ring
    scf.if %produces {
      kvcache.produce %ring[%c0] : !ring {
      ^bb0(%ks: !kt):
        kvcache.async_load_tile %k[%c0, %c0, %c0, %c0] to %ks : !cache, !kt
      }
    } else {
      kvcache.consume %ring[%c0] : !ring {
      ^bb0(%ks: !kt):
      }
    }
    gpu.return
  }
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!kt = !kvcache.tile<64x64xbf16, swizzle_128b>
!ring = !kvcache.pipe<2, !kt, producers = 4>

gpu.module @kernels {
  gpu.func @registers_of_nine_warps(%k: !cache, %produces: i1, %n: index) kernel attributes {known_block_size = array<i32: 288, 1, 1>} {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'kvcache.pipe' op with registers expects a known block size that is a multiple of 128, got 288}}
    %ring = kvcache.pipe {producer_registers = 24, consumer_registers = 240} : !ring
    scf.if %produces {
      kvcache.produce %ring[%c0] : !ring {
      ^bb0(%ks: !kt):
        kvcache.async_load_tile %k[%c0, %c0, %c0, %c0] to %ks : !cache, !kt
      }
    } else {
      kvcache.consume %ring[%c0] : !ring {
      ^bb0(%ks: !kt):
      }
    }
    gpu.return
  }
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!kt = !kvcache.tile<64x64xbf16, swizzle_128b>
!ring = !kvcache.pipe<2, !kt, producers = 4>

gpu.module @kernels {
  gpu.func @more_registers_than_there_are(%k: !cache, %produces: i1, %n: index) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'kvcache.pipe' op expects at most 64512 registers, 168 for each of 384 threads, got 66560: 40 for each of 128 producers, and 240 for each of 256 consumers}}
    %ring = kvcache.pipe {producer_registers = 40, consumer_registers = 240} : !ring
    scf.if %produces {
      kvcache.produce %ring[%c0] : !ring {
      ^bb0(%ks: !kt):
        kvcache.async_load_tile %k[%c0, %c0, %c0, %c0] to %ks : !cache, !kt
      }
    } else {
      kvcache.consume %ring[%c0] : !ring {
      ^bb0(%ks: !kt):
      }
    }
    gpu.return
  }
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!kt = !kvcache.tile<64x64xbf16, swizzle_128b>
!ring = !kvcache.pipe<2, !kt, producers = 4>

gpu.module @kernels {
  gpu.func @more_registers_than_the_kernel_has(%k: !cache, %produces: i1, %n: index) kernel attributes {known_block_size = array<i32: 384, 1, 1>, nvvm.maxnreg = 128 : i32} {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'kvcache.pipe' op expects at most 49152 registers, 128 for each of 384 threads, got 64512:}}
    %ring = kvcache.pipe {producer_registers = 24, consumer_registers = 240} : !ring
    scf.if %produces {
      kvcache.produce %ring[%c0] : !ring {
      ^bb0(%ks: !kt):
        kvcache.async_load_tile %k[%c0, %c0, %c0, %c0] to %ks : !cache, !kt
      }
    } else {
      kvcache.consume %ring[%c0] : !ring {
      ^bb0(%ks: !kt):
      }
    }
    gpu.return
  }
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!kt = !kvcache.tile<64x64xbf16, swizzle_128b>
!ring = !kvcache.pipe<2, !kt, producers = 4>

gpu.module @kernels {
  gpu.func @registers_without_a_branch(%k: !cache, %produces: i1, %n: index) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'kvcache.pipe' op with registers expects its producers and its consumers each in a branch of an 'scf.if' that is not in a loop}}
    %ring = kvcache.pipe {producer_registers = 24, consumer_registers = 240} : !ring
    kvcache.produce %ring[%c0] : !ring {
      ^bb0(%ks: !kt):
        kvcache.async_load_tile %k[%c0, %c0, %c0, %c0] to %ks : !cache, !kt
      }
    kvcache.consume %ring[%c0] : !ring {
      ^bb0(%ks: !kt):
      }
    gpu.return
  }
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!kt = !kvcache.tile<64x64xbf16, swizzle_128b>
!ring = !kvcache.pipe<2, !kt, producers = 4>

gpu.module @kernels {
  gpu.func @registers_in_one_branch(%k: !cache, %produces: i1, %n: index) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'kvcache.pipe' op with registers expects its producers and its consumers each in a branch of an 'scf.if' that is not in a loop}}
    %ring = kvcache.pipe {producer_registers = 24, consumer_registers = 240} : !ring
    scf.if %produces {
      kvcache.produce %ring[%c0] : !ring {
      ^bb0(%ks: !kt):
        kvcache.async_load_tile %k[%c0, %c0, %c0, %c0] to %ks : !cache, !kt
      }
      kvcache.consume %ring[%c0] : !ring {
      ^bb0(%ks: !kt):
      }
    }
    gpu.return
  }
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!kt = !kvcache.tile<64x64xbf16, swizzle_128b>
!ring = !kvcache.pipe<2, !kt, producers = 4>

gpu.module @kernels {
  gpu.func @registers_in_a_loop(%k: !cache, %produces: i1, %n: index) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // expected-error @below {{'kvcache.pipe' op with registers expects its producers and its consumers each in a branch of an 'scf.if' that is not in a loop}}
    %ring = kvcache.pipe {producer_registers = 24, consumer_registers = 240} : !ring
    scf.for %i = %c0 to %n step %c1 {
    scf.if %produces {
      kvcache.produce %ring[%c0] : !ring {
      ^bb0(%ks: !kt):
        kvcache.async_load_tile %k[%c0, %c0, %c0, %c0] to %ks : !cache, !kt
      }
    } else {
      kvcache.consume %ring[%c0] : !ring {
      ^bb0(%ks: !kt):
      }
    }
    }
    gpu.return
  }
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!kt = !kvcache.tile<64x64xbf16, swizzle_128b>
!ring = !kvcache.pipe<2, !kt, producers = 4>

gpu.module @kernels {
  gpu.func @registers_of_two_pipes(%k: !cache, %produces: i1, %n: index) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'kvcache.pipe' op expects nothing else in its kernel to set the number of registers}}
    %other = kvcache.pipe {producer_registers = 24, consumer_registers = 240} : !ring
    %ring = kvcache.pipe {producer_registers = 24, consumer_registers = 240} : !ring
    scf.if %produces {
      kvcache.produce %ring[%c0] : !ring {
      ^bb0(%ks: !kt):
        kvcache.async_load_tile %k[%c0, %c0, %c0, %c0] to %ks : !cache, !kt
      }
    } else {
      kvcache.consume %ring[%c0] : !ring {
      ^bb0(%ks: !kt):
      }
    }
    gpu.return
  }
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!kt = !kvcache.tile<64x64xbf16, swizzle_128b>
!ring = !kvcache.pipe<2, !kt, producers = 4>

gpu.module @kernels {
  gpu.func @registers_by_hand(%k: !cache, %produces: i1, %n: index) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : index
    nvvm.setmaxregister decrease 24
    // expected-error @below {{'kvcache.pipe' op expects nothing else in its kernel to set the number of registers}}
    %ring = kvcache.pipe {producer_registers = 24, consumer_registers = 240} : !ring
    scf.if %produces {
      kvcache.produce %ring[%c0] : !ring {
      ^bb0(%ks: !kt):
        kvcache.async_load_tile %k[%c0, %c0, %c0, %c0] to %ks : !cache, !kt
      }
    } else {
      kvcache.consume %ring[%c0] : !ring {
      ^bb0(%ks: !kt):
      }
    }
    gpu.return
  }
}
