// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

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

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

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

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

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

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

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

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

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

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

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

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

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

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

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

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c13_two_blocks(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  // expected-error @below {{expects the region 'score' to have one block, got 2}}
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

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

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

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C13)
func.func @c13_no_blocks(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  // expected-error @below {{expects at most two regions: one whose first argument is an f32, and then one whose first is an index}}
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}
