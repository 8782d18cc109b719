// RUN: kvcache-opt %s --kvcache-plan-attention --kvcache-split-attention --kvcache-expand-ops=for-gpu --split-input-file | FileCheck %s --check-prefix=GPU
// RUN: kvcache-opt %s --kvcache-plan-attention=chip=sm_90a --kvcache-split-attention --kvcache-expand-ops="for-gpu chip=sm_90a" --split-input-file | FileCheck %s --check-prefix=HOPPER
// RUN: kvcache-opt %s --kvcache-plan-attention=chip=sm_90a --kvcache-split-attention --kvcache-expand-ops="for-gpu chip=sm_90a" --split-input-file --remarks-filter=kvcache-expand-ops -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: kvcache-opt %s --kvcache-plan-attention=chip=sm_100a,sm_103a --kvcache-split-attention --kvcache-expand-ops="for-gpu chip=sm_100a,sm_103a" --split-input-file | FileCheck %s --check-prefix=TENSOR
// RUN: kvcache-opt %s --kvcache-plan-attention=chip=sm_90a,sm_100a --kvcache-split-attention --kvcache-expand-ops="for-gpu chip=sm_90a,sm_100a" --split-input-file | FileCheck %s --check-prefix=GPU
// RUN: kvcache-opt %s --kvcache-plan-attention --kvcache-split-attention --kvcache-expand-ops=for-gpu --split-input-file | FileCheck %s --check-prefix=GPU

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// On a GPU, a warp computes the 4 heads of a group for a row: 16 lanes share a token, and 4 tokens are in flight.
// REMARK: remark: [Passed] attention | Category:kvcache-expand-ops | Remark="#kvcache.attention_config<mma = none, l2_hint = evict_{{first|normal}}>"
// GPU-LABEL: func.func @attend(
// GPU:         scf.parallel
// GPU:           scf.parallel (%{{.*}}) = (%{{.*}}) to (%c32{{.*}})
// GPU-COUNT-8:     kvcache.load {{.*}} -> vector<8xf32>
// GPU-NOT:         kvcache.load
// GPU:             gpu.shuffle xor
// GPU-NOT:         gpu.barrier
func.func @attend(%q: memref<?x32x128xbf16>, %keys: !cache, %values: !cache, %n: memref<?xi32>, %scale: f32,
                  %out: memref<?x32x128xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    kvcache.attention %q, %keys, %values, %n, %scale outs(%out) {causal, config = #kvcache.attention_config<mma = none>}
        : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  }
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// On tensor cores, four warps take 64 rows: 16 tokens for 4 heads. Keys and values have pipes of their own, and the
// queries are in registers.
// GPU-LABEL: func.func @attend_in_tiles(
// GPU:         scf.for
// GPU:         scf.parallel
// GPU:           scf.parallel (%{{.*}}) = (%c0{{.*}}) to (%c128{{.*}})
// GPU:             scf.while
// GPU:             %[[QUERIES:.*]] = kvcache.alloc_tile : !kvcache.tile<64x128xbf16, swizzle_128b>
// GPU:             %[[KEYS:.*]] = kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<64x128xbf16, swizzle_128b>>
// GPU:             %[[VALUES:.*]] = kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<64x128xbf16, swizzle_128b>>
// GPU:             kvcache.produce %[[KEYS]][%c0
// GPU:               kvcache.async_load_tile %arg1[{{.*}}] valid %{{.*}} {base_alignment = 64 : i64}
// GPU:             kvcache.produce %[[VALUES]][%c0
// GPU:             kvcache.tile_store {{.*}}, %[[QUERIES]]
// GPU:             gpu.barrier
// GPU:             %[[ROWS:.*]] = kvcache.fragment_load %[[QUERIES]][{{.*}} -> !kvcache.fragment<16x128xbf16, mma_a16>
// GPU:             scf.for
// GPU:               kvcache.produce
// GPU:               kvcache.consume %[[KEYS]]
// GPU:                 kvcache.fragment_mma %[[ROWS]], {{.*}} -> !kvcache.in_flight<16x64xf32, mma_acc>
// GPU:               kvcache.reduce maxnumf
// GPU:               kvcache.consume %[[VALUES]]
// GPU:                 kvcache.fragment_mma {{.*}} -> !kvcache.in_flight<16x128xf32, mma_acc>
// GPU:             kvcache.store_rows {{.*}}, memref<?x32x128xbf16>
// The two warpgroups of a block of Hopper multiply whole tiles. The next copies begin while scores are computed.
// REMARK: attention | Category:kvcache-expand-ops | Remark="#kvcache.attention_config<mma = wgmma, swap_ab = false, rows = 128, keys = 64, stages = 2, acc_shares = 1, dequant = tile, raw_stages = 0, persistent = 0, l2_hint = evict_normal, schedule = prefetch>"
// HOPPER-LABEL: func.func @attend_in_tiles(
// HOPPER:         scf.parallel (%{{.*}}) = (%{{.*}}) to (%c256
// HOPPER:         kvcache.consume
// HOPPER-NEXT:    ^bb0(%[[KEYS:.*]]: !kvcache.tile
// HOPPER:           %[[SCORES:.*]] = kvcache.fragment_mma %{{.*}}, %[[KEYS]][%{{.*}}] {{.*}} -> !kvcache.in_flight<64x64xf32, wgmma_acc>
// HOPPER:           kvcache.produce
// HOPPER:           kvcache.produce
// HOPPER:           kvcache.fragment_wait %[[SCORES]]
// HOPPER-NOT:     kvcache.produce
// HOPPER:         kvcache.consume
// HOPPER-NEXT:    ^bb0(%[[VALUES:.*]]: !kvcache.tile
// HOPPER:           kvcache.fragment_mma %{{.*}}, %[[VALUES]][%{{.*}}] add %{{.*}} {major_b = #kvcache.major<mn_major>} : {{.*}} -> !kvcache.in_flight<64x128xf32, wgmma_acc>
// HOPPER-NOT:     nvvm.mma.sync
// One thread of Blackwell multiplies them, for 128 rows, in `kvcache-tile-attention`.
// TENSOR-LABEL: func.func @attend_in_tiles(
// TENSOR:         kvcache.tmem_alloc : !kvcache.tmem_tile<128x64xf32>, !kvcache.tmem_tile<128x64xbf16>, !kvcache.tmem_tile<128x128xf32>
// TENSOR:         kvcache.tmem_load %{{.*}} -> !kvcache.fragment<128x64xf32, tmem_acc>
func.func @attend_in_tiles(%q: memref<?x32x128xbf16>, %keys: !cache, %values: !cache, %n: memref<?xi32>, %scale: f32,
                           %out: memref<?x32x128xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    kvcache.attention %q, %keys, %values, %n, %scale outs(%out) {causal, config = #kvcache.attention_config<schedule = prefetch>}
        : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  }
  return
}

// -----

!cache = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 128>

// A scale of a token is multiplied by scores and weights, and static scales by queries and outputs.
// GPU-LABEL: func.func @scale_tokens(
// GPU:         kvcache.alloc_tile : !kvcache.tile<64x128xbf16, swizzle_128b>
// GPU:         %[[SCALES:.*]] = kvcache.alloc_tile : !kvcache.tile<1x64xf32>
// GPU:         %[[SCALE:.*]] = kvcache.load_scale %arg1
// GPU:         kvcache.dequantize %{{.*}}, %cst{{.*}} : vector<16xf8E4M3FN>, f32 -> vector<16xbf16>
// GPU:         kvcache.tile_store %[[SCALE]], %[[SCALES]]
// GPU:         kvcache.tile_load %[[SCALES]]{{.*}} -> f32
func.func @scale_tokens(%q: memref<?x32x128xbf16>, %keys: !cache, %values: !cache, %n: memref<?xi32>, %scale: f32,
                        %out: memref<?x32x128xbf16>, %static: f32) {
  kvcache.attention %q, %keys, %values, %n, %scale outs(%out) {causal}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!mla = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

// On tensor cores, a tile is gathered by ids that threads have stored; those of the next tile are loaded meanwhile.
// GPU-LABEL: func.func @attend_to_rows(
// GPU-NOT:     kvcache.cache_length
// GPU:         %[[IDS:.*]] = kvcache.alloc_tile : !kvcache.tile<3x16xi32>
// GPU:         gpu.barrier
// GPU:         kvcache.produce
// GPU:           kvcache.async_gather_tile %arg1[
// GPU:         scf.for
// GPU:           gpu.barrier
// GPU:           kvcache.produce
// GPU:             %[[MEMORY:.*]] = kvcache.tile_memory %[[IDS]]
// GPU:             %[[VIEW:.*]] = memref.view %[[MEMORY]]
// GPU:             %[[OF_TILE:.*]] = memref.assume_alignment %[[VIEW]], 16
// GPU:             kvcache.async_gather_tile {{.*}} rows %[[OF_TILE]]
// GPU:           memref.load {{.*}} : memref<?x2048xi32>
// GPU:           kvcache.consume
// GPU:             kvcache.tile_load %[[IDS]]{{.*}} -> {{i32|vector<2xi32>}}
// GPU:           kvcache.tile_store {{.*}}, %[[IDS]]
// GPU-NOT:     kvcache.load
// A block of Hopper has 64 heads of a token. Each of two warpgroups computes their scores, and half of their values.
// HOPPER-LABEL: func.func @attend_to_rows(
// HOPPER:         scf.parallel (%[[T:.*]]) = (%{{.*}}) to (%c256
// HOPPER:         %[[QUERIES:.*]] = kvcache.alloc_tile : !kvcache.tile<64x576xbf16, swizzle_128b>
// HOPPER:         kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<64x576xbf16, swizzle_128b>>
// HOPPER:         kvcache.tile_store {{.*}}, %[[QUERIES]]
// HOPPER:         nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// HOPPER-NEXT:    gpu.barrier
// HOPPER:         kvcache.consume
// HOPPER-NEXT:    ^bb0(%[[ROWS:.*]]: !kvcache.tile
// HOPPER:           %[[SCORES:.*]] = kvcache.fragment_mma %[[QUERIES]][%{{.*}}], %[[ROWS]][%{{.*}}] {{.*}} -> !kvcache.in_flight<64x64xf32, wgmma_acc>
// HOPPER:           kvcache.produce
// HOPPER:           kvcache.fragment_wait %[[SCORES]]
// HOPPER:           %[[SUMS:.*]] = kvcache.fragment_mma %{{.*}}, %[[ROWS]][%{{.*}}] add %{{.*}} {major_b = #kvcache.major<mn_major>} {{.*}} -> !kvcache.in_flight<64x256xf32, wgmma_acc>
// HOPPER-NEXT:      kvcache.fragment_wait %[[SUMS]]
// HOPPER-NOT:     nvvm.mma.sync
// A block of Blackwell has them too, with the sums of all values.
// TENSOR-LABEL: func.func @attend_to_rows(
// TENSOR:         kvcache.tmem_alloc : !kvcache.tmem_tile<64x64xf32>, !kvcache.tmem_tile<64x64xbf16>, !kvcache.tmem_tile<64x512xf32>
func.func @attend_to_rows(%q: memref<?x128x576xbf16>, %cache: !mla, %n: memref<?xi32>, %scale: f32,
                          %out: memref<?x128x512xbf16>, %ids: memref<?x2048xi32>) {
  kvcache.attention %q, %cache, %n, %scale outs(%out) rows %ids
      : memref<?x128x576xbf16>, !mla, memref<?xi32>, f32, memref<?x128x512xbf16>, memref<?x2048xi32>
  return
}

// -----

#latent = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!mla = !kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 576>

// Copies bring two raw tiles ahead of their use. Threads convert one and free its slot. The next copies fill it while scores
// are computed.
// REMARK: attention | Category:kvcache-expand-ops | Remark="#kvcache.attention_config<mma = wgmma, swap_ab = false, rows = 64, keys = 64, stages = 1, acc_shares = 2, dequant = tile, raw_stages = 2
// GPU-LABEL: func.func @attend_to_raw_rows(
// GPU:         kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<16x576xf8E4M3FN{{.*}}>>
// HOPPER-LABEL: func.func @attend_to_raw_rows(
// HOPPER:         %[[RAW:.*]] = kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<64x576xf8E4M3FN>>
// HOPPER:         %[[ROWS:.*]] = kvcache.alloc_tile : !kvcache.tile<64x576xbf16, swizzle_128b>
// HOPPER:         %[[SCALES:.*]] = kvcache.alloc_tile : !kvcache.tile<1x64xf32>
// HOPPER:         kvcache.produce %[[RAW]][%c0{{.*}}]
// HOPPER:         kvcache.produce %[[RAW]][%c1{{.*}}]
// HOPPER:         scf.for %[[TILE:.*]] = %c0
// HOPPER:           gpu.barrier
// HOPPER-NOT:       kvcache.produce
// HOPPER:           %[[SCALE:.*]] = kvcache.load_scale
// HOPPER:           kvcache.consume %[[RAW]][%[[TILE]]]
// HOPPER-NEXT:      ^bb0(%[[OF_SLOT:.*]]: !kvcache.tile
// HOPPER-COUNT-6:     kvcache.tile_load %[[OF_SLOT]]{{.*}} -> vector<8xf8E4M3FN>
// HOPPER-COUNT-6:     kvcache.tile_store %{{.*}}, %[[ROWS]]
// HOPPER:           kvcache.tile_store %[[SCALE]], %[[SCALES]]
// HOPPER:           nvvm.fence.proxy
// HOPPER-NEXT:      gpu.barrier
// HOPPER:           %[[SCORES:.*]] = kvcache.fragment_mma %{{.*}}, %[[ROWS]]
// HOPPER:           %[[NEXT:.*]] = arith.addi %[[TILE]], %c2
// HOPPER:           kvcache.produce %[[RAW]][%[[NEXT]]]
// HOPPER:             kvcache.async_load_tile
// HOPPER:           kvcache.fragment_wait %[[SCORES]]
// HOPPER:           kvcache.tile_load %[[SCALES]]
// HOPPER:           kvcache.fragment_mma %{{.*}}, %[[ROWS]]
func.func @attend_to_raw_rows(%q: memref<?x64x576xbf16>, %cache: !mla, %n: memref<?xi32>, %scale: f32,
                              %out: memref<?x64x512xbf16>) {
  kvcache.attention %q, %cache, %n, %scale outs(%out)
      : memref<?x64x576xbf16>, !mla, memref<?xi32>, f32, memref<?x64x512xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// The size of a slot: 32 heads, each with 16 times 130 floats and a counter.
// GPU-LABEL: func.func @split(
// GPU:         %[[OF_SLOTS:.*]] = arith.muli %arg6, %c266240
// GPU:         %[[BYTES:.*]] = arith.addi %[[OF_SLOTS]], %c16
// GPU:         %[[SUMS:.*]] = memref.view %arg7[%{{.*}}][%{{.*}}] : memref<?xi8> to memref<?x32x128xf32>
// GPU:         memref.view %arg7[%{{.*}}][%{{.*}}] : memref<?xi8> to memref<?x32x2xf32>
// GPU:         scf.parallel
// Each token is read once.
// GPU-COUNT-8:   kvcache.load {{.*}} {nontemporal = true}
// GPU-NOT:       kvcache.load
// A split goes to the workspace.
// GPU:           vector.store {{.*}}, %[[SUMS]]
// Another launch merges the splits of a row and a head, 8 teams of a warp 8 each at once.
// GPU:         %[[ACCS:.*]] = memref.view %arg7[%{{.*}}][%{{.*}}] : memref<?xi8> to memref<?x32x128xf32>
// GPU:         scf.parallel (%{{.*}}) =
// GPU:           scf.parallel (%{{.*}}, %{{.*}}) = {{.*}} to (%c8{{[_0-9]*}}, %c32{{[_0-9]*}})
// GPU-COUNT-8:     vector.load %[[ACCS]]
// GPU:             kvcache.tile_store {{.*}} : vector<4xf32>, !kvcache.tile<8x128xf32
// GPU:             gpu.barrier
// GPU-COUNT-8:     kvcache.tile_load {{.*}} : !kvcache.tile<8x128xf32
// GPU:           function = @split_merge_kernel
// GPU:         return %[[BYTES]]
func.func @split(%q: memref<?x32x128xbf16>, %keys: !cache, %values: !cache, %n: memref<?xi32>, %scale: f32,
                 %out: memref<?x32x128xbf16>, %batch: index, %w: memref<?xi8>) -> index {
  %bytes = kvcache.workspace_size %batch {query_heads = 32, value_size = 128, split = #kvcache.split<max = 16>}
  kvcache.attention %q, %keys, %values, %n, %scale outs(%out) workspace %w {split = #kvcache.split<max = 16>, config = #kvcache.attention_config<mma = none>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>
  return %bytes : index
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// Two warps share the 8 heads of a group, and both read its tokens.
// GPU-LABEL: func.func @split_large_groups(
// GPU:         kvcache.load
// GPU-NOT:     nontemporal
// GPU:         return
func.func @split_large_groups(%q: memref<?x64x128xbf16>, %keys: !cache, %values: !cache, %n: memref<?xi32>,
                              %scale: f32, %out: memref<?x64x128xbf16>, %w: memref<?xi8>) {
  kvcache.attention %q, %keys, %values, %n, %scale outs(%out) workspace %w {config = #kvcache.attention_config<mma = none>}
      : memref<?x64x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x64x128xbf16>, memref<?xi8>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// Several rows of a sequence are split, and read the same tokens.
// GPU-LABEL: func.func @split_several_rows(
// GPU:         kvcache.load
// GPU-NOT:     nontemporal
// GPU:         return
func.func @split_several_rows(%q: memref<?x32x128xbf16>, %keys: !cache, %values: !cache, %n: memref<?xi32>,
                              %scale: f32, %out: memref<?x32x128xbf16>, %w: memref<?xi8>) {
  kvcache.attention %q, %keys, %values, %n, %scale outs(%out) workspace %w {split = #kvcache.split<rows = 4>, config = #kvcache.attention_config<mma = none>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>
  return
}

// -----

!mla = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

// Latent rows are split on tensor cores. A layer of the grid has whole rows, and 32 layers have parts, which another
// launch merges. Rows and heads are the grid's x.
// GPU-LABEL: func.func @split_latent_rows(
// GPU:         scf.parallel (%{{.*}}, %{{.*}}) = {{.*}} to (%c33{{[_0-9]*}}, %{{.*}})
// GPU:         kvcache.alloc_tile : !kvcache.tile<32x576xbf16
// GPU:         kvcache.fragment_mma
// GPU:         function = @split_latent_rows_merge_kernel
func.func @split_latent_rows(%q: memref<?x128x576xbf16>, %cache: !mla, %n: memref<?xi32>, %scale: f32,
                             %out: memref<?x128x512xbf16>, %w: memref<?xi8>) {
  kvcache.attention %q, %cache, %n, %scale outs(%out) workspace %w {config = #kvcache.attention_config<persistent = 0>}
      : memref<?x128x576xbf16>, !mla, memref<?xi32>, f32, memref<?x128x512xbf16>, memref<?xi8>
  return
}

// -----

!mla = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

// With few query heads, tokens are the rows of products, 64 at a time, and query rows their columns; so are the elements of
// values. Weights go through shared memory, and maxima, too.
// REMARK: attention | Category:kvcache-expand-ops | Remark="#kvcache.attention_config<mma = wgmma, swap_ab = true, rows = 32, {{.*}}persistent = 0,
// HOPPER-LABEL: func.func @few_heads(
// HOPPER:         %[[QUERIES:.*]] = kvcache.alloc_tile : !kvcache.tile<32x576xbf16, swizzle_128b>
// HOPPER:         %[[WEIGHTS:.*]] = kvcache.alloc_tile : !kvcache.tile<64x32xbf16, swizzle_64b>
// HOPPER:         %[[MAXIMA:.*]] = kvcache.alloc_tile : !kvcache.tile<4x32xf32>
// HOPPER:         %[[SCORES:.*]] = kvcache.fragment_mma %[[QUERIES]][%{{.*}}], %[[TOKENS:.*]][%{{.*}}] {k = 576 : i64} : {{.*}} -> !kvcache.in_flight<32x64xf32, wgmma_acc_t>
// HOPPER:         kvcache.produce
// HOPPER:         kvcache.fragment_wait %[[SCORES]]
// HOPPER:         kvcache.reduce maxnumf %{{.*}} from %{{.*}} across %[[MAXIMA]]
// HOPPER:         kvcache.fragment_store %{{.*}}, %[[WEIGHTS]][%{{.*}}] transposed
// HOPPER:         nvvm.fence.proxy
// HOPPER:         gpu.barrier
// HOPPER:         kvcache.fragment_mma %[[WEIGHTS]][%{{.*}}], %[[TOKENS]][%{{.*}}] add %{{.*}} {k = 64 : i64, major_a = #kvcache.major<mn_major>, major_b = #kvcache.major<mn_major>}
// HOPPER:         kvcache.fragment_wait
func.func @few_heads(%q: memref<?x32x576xbf16>, %cache: !mla, %n: memref<?xi32>, %scale: f32,
                     %out: memref<?x32x512xbf16>) {
  kvcache.attention %q, %cache, %n, %scale outs(%out)
      : memref<?x32x576xbf16>, !mla, memref<?xi32>, f32, memref<?x32x512xbf16>
  return
}

// -----

!mla = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

// The blocks of a grid that does not depend on the batch take units of work. Each warp finds the sequence of a unit. Newer
// chips have a schedule by default.
// REMARK: attention | Category:kvcache-expand-ops | Remark="#kvcache.attention_config<mma = wgmma, swap_ab = {{.*}}persistent = 192,
// GPU-LABEL: func.func @take_units(
// GPU:         scf.parallel (%{{.*}}) = {{.*}} to (%c264{{[_0-9]*}})
// GPU:           kvcache.pipe
// GPU:           %[[STATE:.*]] = kvcache.alloc_tile : !kvcache.tile<3x4xi32>
// GPU:           %[[FIRST:.*]] = llvm.atomicrmw add %{{.*}}, %{{.*}} syncscope("device") monotonic
// GPU:           kvcache.tile_store %{{.*}}, %[[STATE]]
// GPU:           scf.while
// GPU:             gpu.barrier
// GPU:             kvcache.tile_load %[[STATE]]
// GPU:             scf.while
// GPU:               gpu.shuffle up
// GPU:             nvvm.vote.sync ballot
// GPU:             kvcache.produce
// GPU:             %[[NEXT:.*]] = scf.if
// GPU:               llvm.atomicrmw add {{.*}} syncscope("device") monotonic
// GPU:             gpu.barrier
// GPU:             vector.from_elements %[[NEXT]]
// GPU:             kvcache.tile_store %{{.*}}, %[[STATE]]
// GPU:             kvcache.fragment_mma
// The block that has taken the last number leaves zero.
// GPU:           llvm.store {{.*}} atomic syncscope("device") monotonic
// GPU:         return
func.func @take_units(%q: memref<?x128x576xbf16>, %cache: !mla, %n: memref<?xi32>, %scale: f32,
                      %out: memref<?x128x512xbf16>, %w: memref<?xi8>) {
  kvcache.attention %q, %cache, %n, %scale outs(%out) workspace %w {config = #kvcache.attention_config<persistent = 264>}
      : memref<?x128x576xbf16>, !mla, memref<?xi32>, f32, memref<?x128x512xbf16>, memref<?xi8>
  kvcache.attention %q, %cache, %n, %scale outs(%out) workspace %w
      : memref<?x128x576xbf16>, !mla, memref<?xi32>, f32, memref<?x128x512xbf16>, memref<?xi8>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// The L2 cache evicts first what one block alone reads: tokens of sequences of few rows, of which it has all. Prompts and
// sparse rows have no hint, unless the op has one.
// REMARK: attention | Category:kvcache-expand-ops | Remark="#kvcache.attention_config<mma = mma_sync, rows = 16, {{.*}}persistent = 576, l2_hint = evict_first, schedule = prefetch>
// REMARK: attention | Category:kvcache-expand-ops | Remark="#kvcache.attention_config<mma = mma_sync, rows = 16, {{.*}}persistent = 576, l2_hint = evict_normal, schedule = prefetch>
// REMARK: attention | Category:kvcache-expand-ops | Remark="#kvcache.attention_config<mma = mma_sync, rows = 16, {{.*}}persistent = 576, l2_hint = evict_normal, schedule = prefetch>
// REMARK: attention | Category:kvcache-expand-ops | Remark="#kvcache.attention_config<mma = none, l2_hint = evict_{{first|normal}}>"
// REMARK: attention | Category:kvcache-expand-ops | Remark="#kvcache.attention_config<mma = wgmma, {{.*}}persistent = 0, l2_hint = evict_last, schedule = {{prefetch|ping_pong}}>
// GPU-LABEL: func.func @streams(
// GPU-COUNT-4: kvcache.async_load_tile {{.*}} {base_alignment = 64 : i64, l2_hint = #kvcache.eviction<evict_first>}
// GPU-COUNT-8: kvcache.async_load_tile {{.*}} {base_alignment = 64 : i64} :
// GPU-COUNT-8: kvcache.load {{.*}}] page {{.*}} : {{.*}} -> vector<8xf32>
// GPU-COUNT-4: kvcache.async_load_tile {{.*}} {base_alignment = 64 : i64, l2_hint = #kvcache.eviction<evict_last>}
func.func @streams(%q: memref<?x32x128xbf16>, %keys: !cache, %values: !cache, %n: memref<?xi32>, %scale: f32,
                   %out: memref<?x32x128xbf16>, %w: memref<?xi8>, %ids: memref<?x?xi32>) {
  kvcache.attention %q, %keys, %values, %n, %scale outs(%out) workspace %w {split = #kvcache.split<rows = 4>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>
  kvcache.attention %q, %keys, %values, %n, %scale outs(%out) workspace %w {split = #kvcache.split<rows = 5>, config = #kvcache.attention_config<rows = 16>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>
  kvcache.attention %q, %keys, %values, %n, %scale outs(%out) workspace %w {config = #kvcache.attention_config<l2_hint = evict_normal>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>
  kvcache.attention %q, %keys, %values, %n, %scale outs(%out) workspace %w rows %ids
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>, memref<?x?xi32>
  kvcache.attention %q, %keys, %values, %n, %scale outs(%out) {config = #kvcache.attention_config<l2_hint = evict_last>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<f32, <num_heads = 8, head_size = 128>, page_size = 64>

// REMARK: remark: [Missed] attention | Category:kvcache-expand-ops | Reason="queries of f32", Remark="no tensor cores"
func.func @attend_without_tensor_cores(%q: memref<?x32x128xf32>, %keys: !cache, %values: !cache, %n: memref<?xi32>,
                                       %scale: f32, %out: memref<?x32x128xf32>) {
  kvcache.attention %q, %keys, %values, %n, %scale outs(%out)
      : memref<?x32x128xf32>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xf32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = ?>

// Tiles begin at the first token that a row sees, since pages may have any size. There is nothing to clear before it: only
// queries are stored.
// GPU-LABEL: func.func @window_of_open_pages(
// GPU:         kvcache.tile_store
// GPU-NOT:     kvcache.tile_store
// GPU:         return
func.func @window_of_open_pages(%q: memref<?x32x128xbf16>, %keys: !cache, %values: !cache, %n: memref<?xi32>,
                                %scale: f32, %out: memref<?x32x128xbf16>) {
  kvcache.attention %q, %keys, %values, %n, %scale outs(%out) {causal, window = 4096, config = #kvcache.attention_config<rows = 16>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}
