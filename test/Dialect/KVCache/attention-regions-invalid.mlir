// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C13)
func.func @c13_score_takes_four(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  // expected-error @below {{expects the region 'score' to take ('f32', 'index', 'index', 'index', 'index'), got ('f32', 'index', 'index', 'index')}}
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %head: index, %query: index, %key: index):
      kvcache.yield %s : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c13_score_takes_f64(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  // expected-error @below {{expects the region 'score' to take ('f32', 'index', 'index', 'index', 'index'), got ('f64', 'index', 'index', 'index', 'index')}}
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f64, %sequence: index, %head: index, %query: index, %key: index):
      kvcache.yield %scale : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c13_mask_takes_i32(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  // expected-error @below {{expects the region 'mask' to take ('index', 'index', 'index', 'index'), got ('index', 'index', 'i32', 'index')}}
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    mask {
    ^bb0(%sequence: index, %head: index, %query: i32, %key: index):
      %sees = arith.cmpi sle, %key, %head : index
      kvcache.yield %sees : i1
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c13_score_yields_i1(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  // expected-error @below {{expects the region 'score' to yield ('f32'), got ('i1')}}
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      %sees = arith.cmpi sle, %key, %query : index
      kvcache.yield %sees : i1
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c13_mask_yields_two(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  // expected-error @below {{expects the region 'mask' to yield ('i1'), got ('i1', 'i1')}}
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    mask {
    ^bb0(%sequence: index, %head: index, %query: index, %key: index):
      %sees = arith.cmpi sle, %key, %query : index
      kvcache.yield %sees, %sees : i1, i1
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c13_score_takes_nothing(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  // expected-error @below {{expects at most two regions: one whose first argument is an f32, and then one whose first is an index}}
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
      kvcache.yield %scale : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c13_mask_twice(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  // expected-error @below {{expects at most two regions: one whose first argument is an f32, and then one whose first is an index}}
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%sequence: index, %head: index, %query: index, %key: index):
      %sees = arith.cmpi sle, %key, %query : index
      kvcache.yield %sees : i1
    }
    mask {
    ^bb0(%sequence: index, %head: index, %query: index, %key: index):
      %sees = arith.cmpi sle, %key, %query : index
      kvcache.yield %sees : i1
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c13_mask_before_score(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  // expected-error @below {{expects at most two regions: one whose first argument is an f32, and then one whose first is an index}}
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%sequence: index, %head: index, %query: index, %key: index):
      %sees = arith.cmpi sle, %key, %query : index
      kvcache.yield %sees : i1
    }
    mask {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      kvcache.yield %s : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c13_two_blocks(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  // expected-error @below {{op region #0 ('modifiers') failed to verify constraint: region with 1 blocks}}
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      cf.br ^bb1
    ^bb1:
      kvcache.yield %s : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c13_no_yield(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  // expected-error @below {{expects the region 'score' to end with 'kvcache.yield'}}
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      ub.unreachable
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C14)
func.func @c14_store(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>, %m: memref<8xf32>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', whose ops at most read memory}}
      memref.store %s, %m[%head] : memref<8xf32>
      kvcache.yield %s : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c14_alloc(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', whose ops at most read memory}}
      %m = memref.alloc() : memref<8xf32>
      kvcache.yield %s : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c14_store_in_branch(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>, %m: memref<8xf32>, %i: i1) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      scf.if %i {
        // expected-error @below {{is not allowed in a region of 'kvcache.attention', whose ops at most read memory}}
        memref.store %s, %m[%head] : memref<8xf32>
      }
      kvcache.yield %s : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

func.func private @f(f32) -> f32

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c14_call(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', which contains no calls}}
      %y = func.call @f(%s) : (f32) -> f32
      kvcache.yield %y : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c14_unknown_effects(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', whose ops at most read memory}}
      llvm.inline_asm has_side_effects "", "" : () -> ()
      kvcache.yield %s : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c14_cache_op(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    mask {
    ^bb0(%sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', which contains no ops of the dialect 'kvcache'}}
      %k = kvcache.cache_length %keys[%sequence] : !cache
      %sees = arith.cmpi sle, %k, %query : index
      kvcache.yield %sees : i1
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c14_thread(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    mask {
    ^bb0(%sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', which contains no ops of the dialect 'gpu'}}
      %t = gpu.thread_id x
      %sees = arith.cmpi sle, %key, %query : index
      kvcache.yield %sees : i1
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c14_parallel_loop(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    mask {
    ^bb0(%sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', which contains no parallel loops}}
      scf.parallel (%i) = (%head) to (%query) step (%key) {
      }
      %sees = arith.cmpi sle, %key, %query : index
      kvcache.yield %sees : i1
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C15)
func.func @c15_out(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', which does not use 'out'}}
      %y = memref.load %out[%query, %head, %key] : memref<?x8x128xbf16>
      kvcache.yield %s : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c15_lse(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>, %lse: memref<?x8xf32>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out, %lse)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', which does not use 'lse'}}
      %y = memref.load %lse[%query, %head] : memref<?x8xf32>
      kvcache.yield %y : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>, memref<?x8xf32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @c15_workspace(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>, %w: memref<?xi8>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out) workspace %w
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', which does not use 'workspace'}}
      %y = memref.load %w[%query] : memref<?xi8>
      kvcache.yield %s : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>, memref<?xi8>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C16)
func.func @c16_tensor(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>, %t: tensor<8xf32>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', which has no tensors, got 'tensor<8xf32>'}}
      %y = tensor.extract %t[%head] : tensor<8xf32>
      kvcache.yield %y : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C17)
func.func @c17_rows(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>, %ids: memref<?x?xi32>) {
  // expected-error @below {{expects no regions with 'rows', whose tokens have no positions}}
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      kvcache.yield %s : f32
    }
    rows %ids : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>, memref<?x?xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// (C15)
func.func @c15_region_uses_max_logits(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %m: memref<?x32xf32>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out) max_logits %m
    mask {
    ^bb0(%sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{which does not use 'max_logits'}}
      %x = memref.load %m[%query, %head] : memref<?x32xf32>
      %sees = arith.cmpf oeq, %x, %s : f32
      kvcache.yield %sees : i1
    }
     : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x32xf32>
  return
}
