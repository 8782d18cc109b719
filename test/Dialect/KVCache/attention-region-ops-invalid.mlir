// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

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

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

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

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

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

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

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

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c14_print(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', whose ops at most read memory}}
      vector.print %s : f32
      kvcache.yield %s : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c14_cache_op(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    mask {
    ^bb0(%sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', whose ops are of affine, arith, cf, index, math, memref, scf, ub, vector}}
      %k = kvcache.cache_length %keys[%sequence] : !cache
      %sees = arith.cmpi sle, %k, %query : index
      kvcache.yield %sees : i1
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c14_thread(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    mask {
    ^bb0(%sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', whose ops are of affine, arith, cf, index, math, memref, scf, ub, vector}}
      %t = gpu.thread_id x
      %sees = arith.cmpi sle, %key, %query : index
      kvcache.yield %sees : i1
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

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

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

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

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

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

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

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

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C16)
func.func @c16_tensor(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>, %t: tensor<8xf32>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', which has no tensors, scalable vectors and integers of more than 64 bits, got 'tensor<8xf32>'}}
      %y = math.exp %t : tensor<8xf32>
      kvcache.yield %s : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

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

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

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

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C14)
func.func @c14_register_of_a_thread(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', whose ops are of affine, arith, cf, index, math, memref, scf, ub, vector}}
      %y = nvvm.read.ptx.sreg.tid.x : i32
      kvcache.yield %s : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C14)
func.func @c14_lane_of_another_gpu(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', whose ops are of affine, arith, cf, index, math, memref, scf, ub, vector}}
      %y = rocdl.workitem.id.x : i32
      kvcache.yield %s : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C14)
func.func @c14_text_of_instructions(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', whose ops are of affine, arith, cf, index, math, memref, scf, ub, vector}}
      %y = llvm.inline_asm "", "=f,f" %s : (f32) -> f32
      kvcache.yield %s : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C14)
func.func @c14_complex_number(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', whose ops are of affine, arith, cf, index, math, memref, scf, ub, vector}}
      %y = complex.create %s, %s : complex<f32>
      kvcache.yield %s : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C14)
func.func @c14_vscale(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', whose ops are of affine, arith, cf, index, math, memref, scf, ub, vector}}
      %y = vector.vscale
      kvcache.yield %s : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C16)
func.func @c16_scalable_vector(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', which has no tensors, scalable vectors and integers of more than 64 bits, got 'vector<[4]xf32>'}}
      %y = vector.broadcast %s : f32 to vector<[4]xf32>
      kvcache.yield %s : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C16)
func.func @c16_wide_integer(%q: memref<?x8x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x8x128xbf16>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
    score {
    ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
      // expected-error @below {{is not allowed in a region of 'kvcache.attention', which has no tensors, scalable vectors and integers of more than 64 bits, got 'i65'}}
      %y = arith.constant 1 : i65
      kvcache.yield %s : f32
    }
    : memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x8x128xbf16>
  return
}
