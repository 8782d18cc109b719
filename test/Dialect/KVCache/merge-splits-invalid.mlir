// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

// (C1)
func.func @dynamic_heads(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x?x128xbf16>) {
  // expected-error @below {{expects 'out' to have static sizes of heads and elements, got 'memref<?x?x128xbf16>'}}
  kvcache.merge_splits %w, %n outs(%out) count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x?x128xbf16>
  return
}

// -----

// (C1)
func.func @strided_heads(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x32x128xbf16, strided<[8192, 256, 1]>>) {
  // expected-error @below {{expects the heads and elements of 'out' to be packed}}
  kvcache.merge_splits %w, %n outs(%out) count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16, strided<[8192, 256, 1]>>
  return
}

// -----

// (C1)
func.func @heads_of_lse(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x32x128xbf16>, %lse: memref<?x8xf32>) {
  // expected-error @below {{expects 'lse' to have 32 heads, got 'memref<?x8xf32>'}}
  kvcache.merge_splits %w, %n outs(%out, %lse) count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>, memref<?x8xf32>
  return
}

// -----

// (C1)
func.func @heads_of_max_logits(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x32x128xbf16>, %m: memref<?x8xf32>) {
  // expected-error @below {{expects 'max_logits' to have 32 heads, got 'memref<?x8xf32>'}}
  kvcache.merge_splits %w, %n outs(%out) max_logits %m count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>, memref<?x8xf32>
  return
}

// -----

// (C1)
func.func @heads_of_sinks(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x32x128xbf16>, %s: memref<8xf32>) {
  // expected-error @below {{expects 'sinks' to have 32 heads, got 'memref<8xf32>'}}
  kvcache.merge_splits %w, %n outs(%out) sinks %s count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>, memref<8xf32>
  return
}

// -----

// (C1)
func.func @rows(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<4x32x128xbf16>, %lse: memref<5x32xf32>) {
  // expected-error @below {{expects operands with one number of rows, got 4 and 5}}
  kvcache.merge_splits %w, %n outs(%out, %lse) count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<?xi32>, memref<4x32x128xbf16>, memref<5x32xf32>
  return
}

// -----

// (C2)
func.func @strided_workspace(%w: memref<?xi8, strided<[2]>>, %n: memref<?xi32>, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'workspace' to be contiguous, got 'memref<?xi8, strided<[2]>>'}}
  kvcache.merge_splits %w, %n outs(%out) count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      kvcache.yield %i : index
    }
    : memref<?xi8, strided<[2]>>, memref<?xi32>, memref<?x32x128xbf16>
  return
}

// -----

// (C2)
func.func @too_many_bytes(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x32768x16384xbf16>) {
  // expected-error @below {{expects the workspace of a sequence to have less than 2^63 bytes}}
  kvcache.merge_splits %w, %n outs(%out) {split = #kvcache.split<max = 1048576, rows = 1048576>} count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x32768x16384xbf16>
  return
}

// -----

// (C3)
func.func @heads_of_value_scale(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x32x128xbf16>, %s: memref<5xf32>) {
  // expected-error @below {{expects 'value_scale' to have a static number of heads that divides those of 'out' (32), got 'memref<5xf32>'}}
  kvcache.merge_splits %w, %n outs(%out) value_scale %s count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>, memref<5xf32>
  return
}

// -----

// (C4)
func.func @out_scale_of_bf16(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x32x128xbf16>, %s: f32) {
  // expected-error @below {{expects 'out_scale' only for 'out' of fp8, got 'memref<?x32x128xbf16>'}}
  kvcache.merge_splits %w, %n outs(%out) out_scale %s count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>, f32
  return
}

// -----

// (C5)
func.func @sinkless_lse(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'sinkless_lse' only with 'sinks'}}
  kvcache.merge_splits %w, %n outs(%out) {sinkless_lse} count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>
  return
}

// -----

// (C6)
func.func @infinite_bias(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'exponent_bias' to be finite, got 0x7F800000 : f32}}
  kvcache.merge_splits %w, %n outs(%out) {exponent_bias = 0x7F800000 : f32} count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>
  return
}

// -----

// (C7)
func.func @two_arguments(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects the region 'count' to take ('index', 'index', 'index', 'index'), got ('index', 'index')}}
  kvcache.merge_splits %w, %n outs(%out) count {
    ^bb0(%sequence: index, %i: index):
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>
  return
}

// -----

// (C7)
func.func @no_yield(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects the region 'count' to end with 'kvcache.yield'}}
  kvcache.merge_splits %w, %n outs(%out) count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      llvm.unreachable
    }
    : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>
  return
}

// -----

// (C7)
func.func @yield_of_i32(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x32x128xbf16>, %x: i32) {
  // expected-error @below {{expects the region 'count' to yield ('index'), got ('i32')}}
  kvcache.merge_splits %w, %n outs(%out) count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      kvcache.yield %x : i32
    }
    : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>
  return
}

// -----

// (C8)
func.func @parallel_loop(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x32x128xbf16>) {
  kvcache.merge_splits %w, %n outs(%out) count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.merge_splits', which contains no parallel loops}}
      scf.parallel (%k) = (%i) to (%rows) step (%rows) {
      }
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>
  return
}

// -----

func.func private @f()

// (C8)
func.func @call(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x32x128xbf16>) {
  kvcache.merge_splits %w, %n outs(%out) count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.merge_splits', which contains no calls}}
      func.call @f() : () -> ()
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>
  return
}

// -----

// (C8)
func.func @store(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x32x128xbf16>, %x: i32) {
  kvcache.merge_splits %w, %n outs(%out) count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.merge_splits', whose ops at most read memory}}
      memref.store %x, %n[%i] : memref<?xi32>
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>
  return
}

// -----

// (C8)
func.func @thread(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x32x128xbf16>) {
  kvcache.merge_splits %w, %n outs(%out) count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.merge_splits', whose ops are of affine, arith, cf, index, math, memref, scf, ub, vector and kvcache}}
      %thread = gpu.thread_id x
      kvcache.yield %thread : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>
  return
}

// -----

// (C8)
func.func @use_of_out(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x32x128xbf16>) {
  kvcache.merge_splits %w, %n outs(%out) count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.merge_splits', which does not use 'out'}}
      %size = memref.dim %out, %i : memref<?x32x128xbf16>
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>
  return
}

// -----

// (C8)
func.func @use_of_workspace(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x32x128xbf16>) {
  kvcache.merge_splits %w, %n outs(%out) count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.merge_splits', which does not use 'workspace'}}
      %size = memref.dim %w, %i : memref<?xi8>
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>
  return
}

// -----

// (C8)
func.func @use_of_lse(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x32x128xbf16>, %lse: memref<?x32xf32>) {
  kvcache.merge_splits %w, %n outs(%out, %lse) count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.merge_splits', which does not use 'lse'}}
      %size = memref.dim %lse, %i : memref<?x32xf32>
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>, memref<?x32xf32>
  return
}

// -----

// (C8)
func.func @use_of_max_logits(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x32x128xbf16>, %m: memref<?x32xf32>) {
  kvcache.merge_splits %w, %n outs(%out) max_logits %m count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.merge_splits', which does not use 'max_logits'}}
      %size = memref.dim %m, %i : memref<?x32xf32>
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>, memref<?x32xf32>
  return
}

// -----

// (C1)
func.func @no_elements(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x32x0xbf16>) {
  // expected-error @below {{expects 'out' to have heads and elements, got 'memref<?x32x0xbf16>'}}
  kvcache.merge_splits %w, %n outs(%out) count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x32x0xbf16>
  return
}

// -----

// (C2)
func.func @no_offsets(%w: memref<?xi8>, %n: memref<0xi32>, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'row_offsets' to have at least one element, got 'memref<0xi32>'}}
  kvcache.merge_splits %w, %n outs(%out) count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<0xi32>, memref<?x32x128xbf16>
  return
}

// -----

// (C2)
func.func @shared_workspace(%w: memref<?xi8, 3>, %n: memref<?xi32>, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'workspace' in the default memory space, got 'memref<?xi8, 3>'}}
  kvcache.merge_splits %w, %n outs(%out) count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      kvcache.yield %i : index
    }
    : memref<?xi8, 3>, memref<?xi32>, memref<?x32x128xbf16>
  return
}

// -----

// (C8)
func.func @register_of_a_thread(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x32x128xbf16>) {
  kvcache.merge_splits %w, %n outs(%out) count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.merge_splits', whose ops are of affine, arith, cf, index, math, memref, scf, ub, vector and kvcache}}
      %y = nvvm.read.ptx.sreg.tid.x : i32
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>
  return
}

// -----

// (C8)
func.func @thread_of_a_team(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x32x128xbf16>) {
  kvcache.merge_splits %w, %n outs(%out) count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.merge_splits', whose ops at most read memory}}
      %y = kvcache.opaque_thread : index
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>
  return
}

// -----

// (C8)
func.func @fragment(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x32x128xbf16>, %flags: !kvcache.fragment<16xi1, mma_acc>) {
  kvcache.merge_splits %w, %n outs(%out) count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.merge_splits', which has no fragments}}
      %y = kvcache.warp_any %flags : !kvcache.fragment<16xi1, mma_acc>
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>
  return
}

// -----

// (C11)
func.func @lse_in_place_of_max_logits(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x32x128xbf16>, %x: memref<?x32xf32>) {
  // expected-error @below {{expects 'lse' to share no memory with 'max_logits', got one memref for both}}
  kvcache.merge_splits %w, %n outs(%out, %x) max_logits %x count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>, memref<?x32xf32>, memref<?x32xf32>
  return
}

// -----

// (C10)
func.func @tensor(%w: memref<?xi8>, %n: memref<?xi32>, %out: memref<?x32x128xbf16>, %t: tensor<8xindex>) {
  kvcache.merge_splits %w, %n outs(%out) count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.merge_splits', which has no tensors, scalable vectors and integers of more than 64 bits, got 'tensor<8xindex>'}}
      %y = arith.addi %t, %t : tensor<8xindex>
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>
  return
}
