// RUN: kvcache-opt %s --kvcache-attach-targets=chip=sm_90a --kvcache-expand-copies --split-input-file --verify-diagnostics

// Constants that are not at 16 bytes of a head.

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>
!kt = !kvcache.tile<16x64xbf16>

func.func @load(%k: !cache, %i: index, %kt: !kt) {
  %c4 = arith.constant 4 : index
  // expected-error @below {{'kvcache.async_load_tile' op expects element 4 to be a multiple of the access's width (8)}}
  %tok = kvcache.async_load_tile %k[%i, %i, %i, %c4] to %kt : !cache, !kt
  kvcache.wait %tok
  return
}

// -----

!nvfp4 = !kvcache.paged<f4E2M1FN, <num_heads = 8, head_size = 128>, page_size = 16, scale = f8E4M3FN, granularity = 16>
!kt = !kvcache.tile<16x32xi8>

gpu.module @kernels {
  gpu.func @gather_of_half_bytes(%k: !nvfp4, %i: index, %ids: memref<16xi32>) kernel {
    %c16 = arith.constant 16 : index
    %kt = kvcache.alloc_tile : !kt
    // expected-error @below {{'kvcache.async_gather_tile' op expects element 16 to be a multiple of the access's width (32)}}
    %tok = kvcache.async_gather_tile %k[%i, %c16] rows %ids to %kt : !nvfp4, memref<16xi32>, !kt
    kvcache.wait %tok
    gpu.return
  }
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>
!kt = !kvcache.tile<16x64xbf16>
!ring = !kvcache.pipe<2, !kt>

gpu.module @kernels {
  gpu.func @produce(%k: !cache, %i: index) kernel {
    %c65 = arith.constant 65 : index
    %ring = kvcache.pipe : !ring
    kvcache.produce %ring[%i] : !ring {
    ^bb0(%kt: !kt):
      // expected-error @below {{'kvcache.async_load_tile' op expects element 65 to be a multiple of the access's width (8)}}
      kvcache.async_load_tile %k[%i, %i, %i, %c65] to %kt : !cache, !kt
    }
    gpu.return
  }
}

// -----

!kt = !kvcache.tile<16x64xbf16>
!ring = !kvcache.pipe<2, !kt>

// A pipe that other ops take would be left over.
func.func @carried_pipe(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-note @below {{the pipe is from here}}
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'scf.for' op expects no pipe as an operand: only 'kvcache.produce' and 'kvcache.consume' take one}}
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%same = %ring) -> (!ring) {
    scf.yield %same : !ring
  }
  return
}

// -----

!kt = !kvcache.tile<16x64xbf16>
!ring = !kvcache.pipe<2, !kt>

func.func private @use(!ring)
func.func @passed_pipe() {
  // expected-note @below {{the pipe is from here}}
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'func.call' op expects no pipe as an operand}}
  func.call @use(%ring) : (!ring) -> ()
  return
}
