// RUN: kvcache-opt %s --kvcache-expand-ops --split-input-file | FileCheck %s --check-prefixes=CHECK,CPU
// RUN: kvcache-opt %s --kvcache-expand-ops=vector-bits=512 --split-input-file | FileCheck %s --check-prefix=WIDE
// RUN: kvcache-opt %s --kvcache-expand-ops=for-gpu --split-input-file | FileCheck %s --check-prefixes=CHECK,GPU
// RUN: kvcache-opt %s --kvcache-expand-ops=checks --split-input-file | FileCheck %s --check-prefix=CHECKS
// RUN: kvcache-opt %s --kvcache-expand-ops="checks for-gpu" --split-input-file | FileCheck %s --check-prefix=ALIGNED
// RUN: not kvcache-opt %s --kvcache-bounds-checks --split-input-file 2>&1 | FileCheck %s --check-prefix=UNCHECKED

// UNCHECKED: error: 'kvcache.copy_pages' op expects 'kvcache-expand-ops' to run before 'kvcache-bounds-checks'

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// Loads of keys and values are before the stores. A thread copies 16 bytes. On a CPU, a page of packed rows is one piece.
// CHECK-LABEL: func.func @copy_pages(
// CHECK:         scf.parallel
// GPU:             scf.parallel (%{{.*}}, %{{.*}}) = (%{{.*}}, %{{.*}}) to (%c8{{.*}}, %c16{{.*}})
// GPU-NEXT:          nvvm.griddepcontrol wait {kvcache.programmatic}
// GPU-NEXT:          nvvm.griddepcontrol launch_dependents {kvcache.programmatic}
// GPU:               kvcache.load %{{.*}} page %{{.*}} -> vector<8xbf16>
// GPU:               kvcache.load %{{.*}} page %{{.*}} -> vector<8xbf16>
// GPU:               kvcache.store
// GPU:               kvcache.store
// CPU-NOT:         griddepcontrol
// CPU-NOT:         scf.parallel
// CPU-COUNT-2:     memref.copy %{{.*}} : memref<65536xbf16, strided<[1], offset: ?>>
// CPU-NOT:         memref.copy
func.func @copy_pages(%cache: !collection, %pairs: memref<?x2xi32>) {
  kvcache.copy_pages %cache pairs %pairs : !collection, memref<?x2xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 128>

// One more block copies the scales of a page: 32 of 64 threads four of them each.
// CHECK-LABEL: func.func @copy_scales(
// GPU:           scf.parallel
// GPU:             scf.if %{{.*}} {
// GPU:               kvcache.load_quantized
// GPU:               kvcache.store %
// GPU-NOT:           store_scale
// GPU:             } else {
// GPU:               memref.reinterpret_cast %{{.*}} sizes: [%{{.*}}, %{{.*}}], strides: [%{{.*}}, 1]
// GPU-COUNT-2:       vector.load %{{.*}} {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// GPU-COUNT-2:       vector.store %{{.*}} {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// CPU:             memref.copy %{{.*}} : memref<16384xf8E4M3FN, strided<[1], offset: ?>>
// CPU:             memref.copy %{{.*}} : memref<128xf32, strided<[1], offset: ?>>
func.func @copy_scales(%cache: !collection, %pairs: memref<?x2xi32>) {
  kvcache.copy_pages %cache pairs %pairs : !collection, memref<?x2xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = ?, scale = f32, granularity = 128>

// The size of a page is known only at run time.
// CHECK-LABEL: func.func @copy_open_pages(
// CPU-NOT:         memref.copy
// CPU:             kvcache.load_quantized %{{.*}} page %{{.*}} -> vector<128xf8E4M3FN>
// CPU:             vector.load %{{.*}} {alignment = 4 : i64} : {{.*}}, vector<8xf32>
func.func @copy_open_pages(%cache: !collection, %pairs: memref<?x2xi32>) {
  kvcache.copy_pages %cache pairs %pairs : !collection, memref<?x2xi32>
  return
}

// -----

!cache = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 128>

// Eight of 32 threads copy the scales of a token, which are in flight with its
// elements.
// CHECK-LABEL: func.func @copy_of_bits(
// GPU-NOT:       kvcache.load_scale
// GPU:           kvcache.scales_base
// GPU:           kvcache.scales_base
// GPU:           memref.load %{{.*}} : memref<?x64x8x1xf32
// GPU-COUNT-2:   kvcache.load_quantized
// GPU-COUNT-2:   kvcache.store
// GPU:           memref.store %{{.*}} : memref<?x64x8x1xf32
// CPU:           kvcache.load_scale
// CPU:           kvcache.store_scale
func.func @copy_of_bits(%from: !cache, %to: !cache) {
  kvcache.copy %from to %to : !cache, !cache
  return
}

// -----

!cache = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 128>

// A scale for a head: on a GPU 16 threads share it, on the CPU a head is a unit.
// A warp has two of the eight scales of a sector: eight threads store them when
// all are in shared memory. With 32 registers, a CPU quantizes two heads at once.
// It prefetches those of a later row, which is at most the last one. Scales of
// the next heads may be computed before.
// CHECK-LABEL: func.func @append(
// GPU:           %[[TILE:.*]] = kvcache.alloc_tile : !kvcache.tile<1x8xf32>
// GPU:           kvcache.quantize %{{.*}} {lanes = 16 : i64} : vector<8xbf16> -> vector<8xf8E4M3FN>, f32
// GPU:           kvcache.tile_store %{{.*}}, %[[TILE]]
// GPU:           gpu.barrier
// GPU:           kvcache.scales_base
// GPU:           kvcache.tile_load %[[TILE]][%{{.*}}, %{{.*}}] : !kvcache.tile<1x8xf32> -> f32
// GPU:           memref.store %{{.*}} : memref<?x64x8x1xf32, {{.*}}>
// GPU-NOT:       memref.prefetch
// CPU:           kvcache.store_quantized %{{.*}} : vector<128xbf16>
// WIDE-LABEL: func.func @append(
// WIDE:         scf.for %{{.*}} = %c0{{.*}} to %c8{{.*}} step %c2
// WIDE:           %[[LAST:.*]] = arith.subi %{{.*}}, %c1{{.*}} : index
// WIDE:           %[[LATER:.*]] = arith.addi %{{.*}}, %c2{{.*}} : index
// WIDE:           %[[CLAMPED:.*]] = arith.minsi %[[LATER]], %[[LAST]] : index
// WIDE-COUNT-8:   memref.prefetch %{{.*}}[%[[CLAMPED]], %{{.*}}], read, locality<3>, data : memref<?x8x128xbf16>
// WIDE:           %[[HEADS:.*]] = vector.shuffle {{.*}} : vector<128xbf16>, vector<128xbf16>
// WIDE:           %[[ELEMENTS:.*]], %[[SCALES:.*]] = kvcache.quantize %[[HEADS]] : vector<256xbf16> -> vector<256xf8E4M3FN>, vector<2xf32>
// WIDE:           %[[FIRST:.*]] = vector.extract_strided_slice %[[ELEMENTS]] {offsets = [0]
// WIDE:           kvcache.store %[[FIRST]]
// WIDE:           %[[SECOND:.*]] = vector.extract_strided_slice %[[ELEMENTS]] {offsets = [128]
// WIDE:           kvcache.store %[[SECOND]]
// WIDE:           %[[SCALE:.*]] = vector.extract %[[SCALES]][0]
// WIDE:           kvcache.store_scale %[[SCALE]]
// WIDE:         } {independent_iterations}
func.func @append(%k: memref<?x8x128xbf16>, %keys: !cache, %rows: memref<?xi32>) {
  kvcache.append %k to %keys rows %rows : memref<?x8x128xbf16>, !cache, memref<?xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<i4, #kv, page_size = 64, scale = f16, granularity = 32, zero_point = f16>

// Threads share zero points as they share scales.
// CHECK-LABEL: func.func @append_with_zero_points(
// GPU:           kvcache.quantize %{{.*}} {lanes = 4 : i64} : vector<8xbf16> -> vector<8xi4>, f16, f16
// CPU:           kvcache.store_quantized %{{.*}} : vector<64xbf16>
func.func @append_with_zero_points(%k: memref<?x8x128xbf16>, %keys: !cache, %rows: memref<?xi32>) {
  kvcache.append %k to %keys rows %rows : memref<?x8x128xbf16>, !cache, memref<?xi32>
  return
}

// -----

!cache = !kvcache.paged<f4E2M1FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f8E4M3FN, granularity = 16>

// Halves of a rope of 6 elements are no pairs of a byte: a thread has a group.
// CHECK-LABEL: func.func @append_odd_halves(
// GPU-NOT:       kvcache.quantize
// CHECK:         kvcache.store_quantized %{{.*}} : vector<16xf32>
func.func @append_odd_halves(%k: memref<?x8x128xbf16>, %keys: !cache, %rows: memref<?xi32>, %rope: memref<?x6xf32>) {
  kvcache.append %k to %keys rows %rows rope %rope : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?x6xf32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// With checks, a row is compared with those before it.
// CHECK-LABEL: func.func @slots(
// CHECK-SAME:    %[[SLOTS:[a-z0-9]+]]: memref<?xi64>)
// CHECK-NOT:     kvcache.check
// CHECKS-LABEL: func.func @slots(
// CHECKS-SAME:    %[[SLOTS:[a-z0-9]+]]: memref<?xi64>)
// CHECKS:         scf.parallel (%[[ROW:.*]]) =
// CHECKS:           %[[MINE:.*]] = memref.load %[[SLOTS]][%[[ROW]]]
// CHECKS:           %[[SLOT:.*]] = arith.index_cast %[[MINE]]
// CHECKS:           scf.for %[[OTHER:.*]] = %{{.*}} to %[[ROW]]
// CHECKS:             memref.load %[[SLOTS]][%[[OTHER]]]
// CHECKS:             kvcache.check %[[SLOT]] below %{{.*}}, "slot of two rows"
func.func @slots(%k: memref<?x8x128xbf16>, %keys: !cache, %rows: memref<?xi32>, %slots: memref<?xi64>) {
  kvcache.append %k to %keys rows %rows slots %slots : memref<?x8x128xbf16>, !cache, memref<?xi32>, memref<?xi64>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 3, head_size = 12>, page_size = 64>
!rows = memref<?x3x12xbf16, strided<[?, 12, 1], offset: ?>>

// Before the launch, addresses and open strides are checked: heads of 24 bytes are aligned to 8.
// CHECKS-LABEL: func.func @alignment(
// CHECKS-NOT:     modulo
// ALIGNED-LABEL: func.func @alignment(
// ALIGNED-SAME:    %[[ROWS:[a-z0-9]+]]: memref<?x3x12xbf16, strided
// ALIGNED:         %[[ADDRESS:.*]] = llvm.ptrtoint
// ALIGNED:         %[[BYTES:.*]] = arith.index_castui %[[ADDRESS]]
// ALIGNED:         %[[REST:.*]] = arith.remui %[[BYTES]], %c8
// ALIGNED:         %[[USED:.*]] = arith.select %{{.*}}, %[[REST]], %c0
// ALIGNED:         kvcache.check %[[USED]] below %c1{{.*}}, "address of 'keys' modulo 8, which must be 0,"
// ALIGNED:         %{{.*}}, %{{.*}}, %{{.*}}:3, %[[STRIDES:.*]]:3 = memref.extract_strided_metadata %[[ROWS]]
// ALIGNED:         arith.muli %[[STRIDES]]#0, %c2
// ALIGNED:         kvcache.check {{.*}} "stride 0 in bytes of 'keys' modulo 8, which must be 0,"
// ALIGNED-NOT:     modulo
// ALIGNED:         scf.parallel
func.func @alignment(%k: !rows, %keys: !cache, %rows: memref<?xi32>) {
  kvcache.append %k to %keys rows %rows : !rows, !cache, memref<?xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#index = #kvcache.params<num_heads = 1, head_size = 128>
!index = !kvcache.paged<bf16, #index, page_size = 64>
!states = !kvcache.paged<f32, <num_heads = 1, head_size = 512, is_mla = true>, page_size = 4>
!scaled_index = !kvcache.paged<f8E4M3FN, #index, page_size = 64, scale = f32, granularity = 128>
!mxfp4_index = !kvcache.paged<f4E2M1FN, <num_heads = 1, head_size = 64, is_mla = true>, page_size = 64, scale = f8E8M0FNU, granularity = 32>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!rows = memref<?x8x128xbf16>

// Hints are for GPUs: threads of a block along tokens, heads and 16 parts of a head.
// CHECK-LABEL: func.func @tiling_hints(
// GPU:           scf.parallel (%{{.*}}, %{{.*}}) = (%{{.*}}, %{{.*}}) to (%c4{{(_[0-9]+)?}}, %c16{{(_[0-9]+)?}}) step
// GPU:           scf.parallel (%{{.*}}, %{{.*}}, %{{.*}}) = {{.*}} to (%c64{{(_[0-9]+)?}}, %c1{{(_[0-9]+)?}}, %c16{{(_[0-9]+)?}}) step
// GPU-COUNT-8:     kvcache.load
// GPU:           scf.parallel (%{{.*}}, %{{.*}}) = (%{{.*}}, %{{.*}}) to (%c2{{(_[0-9]+)?}}, %c16{{(_[0-9]+)?}}) step
// GPU:             scf.for
// GPU:               kvcache.load
// GPU:               kvcache.store
// GPU:           scf.parallel (%{{.*}}, %{{.*}}) = (%{{.*}}, %{{.*}}) to (%c2{{(_[0-9]+)?}}, %c16{{(_[0-9]+)?}}) step
// GPU:           scf.parallel (%{{.*}}, %{{.*}}) = (%{{.*}}, %{{.*}}) to (%c8{{(_[0-9]+)?}}, %c16{{(_[0-9]+)?}}) step
// GPU:           scf.parallel (%{{.*}}) = (%{{.*}}) to (%c96{{(_[0-9]+)?}}) step
// GPU:           scf.parallel (%{{.*}}) = (%{{.*}}) to (%c64{{(_[0-9]+)?}}) step
// CPU:           scf.parallel (%{{.*}}, %{{.*}}) = {{.*}} step (%c1{{(_[0-9]+)?}}, %c256{{(_[0-9]+)?}})
func.func @tiling_hints(%k: !rows, %cache: !cache, %to: !cache, %n: memref<?xi32>, %out: memref<?x?x8x128xbf16>, %collection: !collection,
                        %pairs: memref<?x2xi32>, %lses: memref<?x?x8xf32>, %lse: memref<?x8xf32>, %tokens: memref<?x4xi32>) {
  kvcache.append %k to %cache rows %n {block_threads = 64} : !rows, !cache, memref<?xi32>
  kvcache.gather %cache outs(%out) {block_threads = 1024, heads_per_thread = 32} : !cache, memref<?x?x8x128xbf16>
  kvcache.copy %cache to %to {block_threads = 32, heads_per_thread = 1} : !cache, !cache
  kvcache.copy_pages %collection pairs %pairs {block_threads = 32} : !collection, memref<?x2xi32>
  kvcache.merge_states %out, %lses outs(%k, %lse) {block_threads = 512} : memref<?x?x8x128xbf16>, memref<?x?x8xf32>, !rows, memref<?x8xf32>
  kvcache.remap_rows %tokens, %cache rows %n outs(%tokens) {block_threads = 96} : memref<?x4xi32>, !cache, memref<?xi32>, memref<?x4xi32>
  kvcache.top_rows %lse, %cache rows %n outs(%tokens) {block_threads = 64} : memref<?x8xf32>, !cache, memref<?xi32>, memref<?x4xi32>
  return
}

// A thread sums elements of the tokens of a group, or finds the largest ones of
// both signs.
// CHECK-LABEL: func.func @pool(
// CHECK:         scf.for
// CHECK:           kvcache.load
// CHECK:           arith.addf
// CHECK:         arith.divf
// CHECK:         vector.store
// CHECK:         arith.negf
// CHECK-COUNT-2: vector.store
func.func @pool(%cache: !index, %n: memref<?xi32>, %means: memref<?x1x128xf32>, %both: memref<?x1x256xf32>) {
  kvcache.pool %cache rows %n outs(%means) {width = 16} : !index, memref<?xi32>, memref<?x1x128xf32>
  kvcache.pool %cache rows %n outs(%both) {width = 16, min_max} : !index, memref<?xi32>, memref<?x1x256xf32>
  return
}

// Tokens of the previous group are first, in the cache and then in the new rows.
// Each token rescales the sums if its gate is the largest one so far.
// CHECK-LABEL: func.func @gated_pool(
// CHECK:         scf.for
// CHECK-COUNT-2:   kvcache.load
// CHECK:           arith.maxnumf
// CHECK-COUNT-2:   math.fma
// CHECK:         scf.for
// CHECK-COUNT-2:   vector.load {{.*}} : memref<?x1x512xf32>
// CHECK:         scf.for
// CHECK-COUNT-2:   kvcache.load
// CHECK:         scf.for
// CHECK-COUNT-2:   vector.load {{.*}} : memref<?x1x512xf32>
// CHECK:         arith.divf
// CHECK:         vector.store
func.func @gated_pool(%cache: !states, %n: memref<?xi32>, %new: memref<?x1x512xf32>, %entries: memref<?x1x128xf32>) {
  kvcache.pool %cache rows %n outs(%entries) new %new {width = 4, gated, overlap}
    : !states, memref<?xi32>, memref<?x1x128xf32>, memref<?x1x512xf32>
  return
}

// A thread of a GPU scores one column: it loads sixteen elements of a key, and
// four of each of eight heads at once.
// CHECK-LABEL: func.func @index_scores(
// GPU:           scf.parallel {{.*}} step (%c256{{.*}}, %c1{{.*}})
// GPU:           kvcache.load {{.*}} -> vector<16xf32>
// GPU-COUNT-32:  vector.load {{.*}} : memref<?x8x128xbf16>, vector<4xbf16>
// CPU:           kvcache.load {{.*}} -> vector<32xf32>
// CPU-COUNT-8:   vector.load {{.*}} : memref<?x8x128xbf16>, vector<32xbf16>
// CHECK:         memref.store {{.*}} : memref<?x?xf32>
func.func @index_scores(%q: memref<?x8x128xbf16>, %cache: !index, %n: memref<?xi32>, %scores: memref<?x?xf32>) {
  kvcache.index_scores %q, %cache rows %n outs(%scores) {sum_heads} : memref<?x8x128xbf16>, !index, memref<?xi32>, memref<?x?xf32>
  return
}

// On tensor cores, a block scores eight tiles for two rows of 64 heads. A warp
// has 32 keys of a tile in two fragments, for all rows and heads.
// CHECK-LABEL: func.func @index_scores_of_tiles(
// GPU:           scf.parallel {{.*}} step (%c1024, %c1{{.*}})
// GPU:           kvcache.pipe {consumer_registers = 232 : i64} : !kvcache.pipe<3, !kvcache.tile<128x128xf8E4M3FN, swizzle_128b>>
// GPU:           kvcache.alloc_tile : !kvcache.tile<128x128xf16, swizzle_128b>
// GPU:           kvcache.alloc_tile : !kvcache.tile<2x64xf32>
// GPU-COUNT-2:   kvcache.async_load_tile
// GPU:           gpu.barrier
// GPU:           scf.for
// GPU:             kvcache.async_load_tile
// GPU-COUNT-2:     kvcache.load_scale
// GPU:             kvcache.consume
// GPU-COUNT-2:       kvcache.fragment_load {{.*}} -> !kvcache.fragment<16x128xf16, mma_a16_pairs>
// GPU:             scf.for
// GPU:               kvcache.fragment_load {{.*}} {repeated}
// GPU-COUNT-2:       kvcache.fragment_mma {{.*}} {paired}
// GPU-COUNT-6:       kvcache.fragment_mma {{.*}} {paired}
// GPU-NOT:           kvcache.fragment_mma
// GPU:               kvcache.reduce addf {{.*}} -> !kvcache.fragment<16xf32, mma_acc>
// GPU:               kvcache.store_rows
// GPU:               kvcache.reduce addf
// GPU:               kvcache.store_rows
// CPU-NOT:       kvcache.pipe
func.func @index_scores_of_tiles(%q: memref<?x64x128xf8E4M3FN>, %cache: !scaled_index, %n: memref<?xi32>, %scores: memref<?x?xf32>, %weights: memref<?x64xf32>) {
  kvcache.index_scores %q, %cache rows %n outs(%scores) weights %weights {relu, sum_heads} : memref<?x64x128xf8E4M3FN>, !scaled_index, memref<?xi32>, memref<?x?xf32>, memref<?x64xf32>
  return
}

// With MXFP4, each 32 elements of queries are a product, which is scaled.
// CHECK-LABEL: func.func @index_scores_of_mxfp4(
// GPU:           kvcache.alloc_tile : !kvcache.tile<128x128xf16, swizzle_128b>
// GPU:           kvcache.alloc_tile : !kvcache.tile<32x16xf32>
// GPU:           vector.load {{.*}} : memref<?x16x64xi8>, vector<4xi8>
// GPU:           vector.bitcast {{.*}} : vector<4xi8> to vector<8xf4E2M1FN>
// GPU:           arith.extf {{.*}} : f8E8M0FNU to f32
// GPU-COUNT-8:   kvcache.fragment_load {{.*}} -> !kvcache.fragment<16x32xf16, mma_a16_pairs>
// GPU-COUNT-8:   kvcache.fragment_mma {{.*}} {paired}
// GPU-NOT:       kvcache.fragment_mma
// CPU:           vector.bitcast {{.*}} : vector<16xi8> to vector<32xf4E2M1FN>
// CPU:           arith.extf {{.*}} : f8E8M0FNU to f32
// CPU:           math.fma
func.func @index_scores_of_mxfp4(%q: memref<?x16x64xi8>, %cache: !scaled_index, %n: memref<?xi32>, %scores: memref<?x?xf32>, %scales: memref<?x16x4xf8E8M0FNU>) {
  kvcache.index_scores %q, %cache rows %n outs(%scores) q_scales %scales {sum_heads} : memref<?x16x64xi8>, !scaled_index, memref<?xi32>, memref<?x?xf32>, memref<?x16x4xf8E8M0FNU>
  return
}

// Warps convert MXFP4 keys, and load those of the next tile before they multiply.
// CHECK-LABEL: func.func @index_scores_of_mxfp4_keys(
// GPU:           kvcache.alloc_tile : !kvcache.tile<64x64xf16, swizzle_128b>
// GPU-COUNT-2:   kvcache.load_quantized {{.*}} -> vector<16xf4E2M1FN>
// GPU:           gpu.barrier
// GPU:           scf.for {{.*}} -> (vector<2xi32>, vector<2xi32>)
// GPU-COUNT-2:     kvcache.load_scale
// GPU:             nvvm.bar.warp.sync
// GPU-COUNT-4:     kvcache.tile_store {{.*}} : vector<8xf16>
// GPU:             nvvm.bar.warp.sync
// GPU-COUNT-2:     kvcache.load_quantized
// GPU-COUNT-2:     kvcache.fragment_load {{.*}} -> !kvcache.fragment<16x32xf16, mma_a16>
// GPU:             scf.for
// GPU-COUNT-2:       kvcache.fragment_mma
// GPU-NOT:           kvcache.fragment_mma
// CPU-NOT:       kvcache.load_quantized
func.func @index_scores_of_mxfp4_keys(%q: memref<?x16x64xf8E4M3FN>, %cache: !mxfp4_index, %n: memref<?xi32>, %scores: memref<?x?xf32>) {
  kvcache.index_scores %q, %cache rows %n outs(%scores) {sum_heads} : memref<?x16x64xf8E4M3FN>, !mxfp4_index, memref<?xi32>, memref<?x?xf32>
  return
}

// A thread of a block loads four scores before it ranks them, and a barrier
// separates loads from stores to the buffer. The CPU has one candidate at a time.
// CHECK-LABEL: func.func @top_rows(
// GPU-DAG:       kvcache.alloc_tile : !kvcache.tile<1x1032xi32>
// GPU-COUNT-4:   memref.load {{.*}} : memref<?x2x?xf32>
// GPU-COUNT-8:   nvvm.vote.sync ballot
// GPU:           gpu.barrier
// GPU:           memref.atomic_rmw addi
// GPU:           kvcache.page_id
// CPU:           memref.load {{.*}} : memref<?x2x?xf32>
// CPU-NOT:       gpu.barrier
// CPU:           kvcache.page_id
func.func @top_rows(%scores: memref<?x2x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<?x2x8xi32>) {
  kvcache.top_rows %scores, %cache rows %n outs(%ids) {block_threads = 128} : memref<?x2x?xf32>, !cache, memref<?xi32>, memref<?x2x8xi32>
  return
}

// In splits, a loop over these selects first; of its 4 * 8 candidates, a second one
// selects again.
// CHECK-LABEL: func.func @top_rows_of_splits(
// CHECK:         scf.parallel {{.*}}%c4
// CHECK:           memref.load {{.*}} : memref<?x?xf32>
// CHECK-COUNT-2:   memref.store {{.*}} : memref<?x4x16xi32>
// CHECK:         scf.parallel
// CHECK-NOT:       memref<?x?xf32>
// CHECK:           memref.load {{.*}} : memref<?x4x16xi32>
// CHECK:           memref.load {{.*}} : memref<?x4x16xi32>
// CHECK:           kvcache.page_id
// CHECK:           memref.store {{.*}} : memref<?x8xi32>
func.func @top_rows_of_splits(%scores: memref<?x?xf32>, %cache: !cache, %n: memref<?xi32>, %ids: memref<?x8xi32>, %workspace: memref<?x4x16xi32>) {
  kvcache.top_rows %scores, %cache rows %n outs(%ids) workspace %workspace : memref<?x?xf32>, !cache, memref<?xi32>, memref<?x8xi32>, memref<?x4x16xi32>
  return
}

// -----

#kv = #kvcache.params<num_heads = 2, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// A CPU gathers all keys and then all values, and one branch has all heads of a
// token. On a GPU, a thread loads its part of both before it stores them.
// CHECK-LABEL: func.func @gather(
// CPU:           scf.parallel
// CPU:             scf.if %{{.*}} {
// CPU:               scf.for
// CPU:                 scf.for
// CPU:                   %[[KEY:.*]] = kvcache.load %arg0
// CPU-NEXT:              vector.store %[[KEY]], %arg2
// CPU:             } else {
// CPU:               vector.store %{{.*}}, %arg2
// CPU:           scf.parallel
// CPU:             scf.if %{{.*}} {
// CPU:                   %[[VALUE:.*]] = kvcache.load %arg1
// CPU-NEXT:              vector.store %[[VALUE]], %arg3
// GPU:           %[[LOADED:.*]]:4 = scf.if
// GPU-COUNT-2:     kvcache.load %arg0
// GPU-COUNT-2:     kvcache.load %arg1
// GPU:           vector.store %[[LOADED]]#0
func.func @gather(%keys: !cache, %values: !cache, %key_out: memref<?x?x2x128xbf16>, %value_out: memref<?x?x2x128xbf16>) {
  kvcache.gather %keys, %values outs(%key_out, %value_out) : !cache, !cache, memref<?x?x2x128xbf16>, memref<?x?x2x128xbf16>
  return
}
