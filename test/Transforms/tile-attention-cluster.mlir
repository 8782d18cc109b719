// RUN: kvcache-opt %s --kvcache-plan-attention=chip=sm_90a --kvcache-split-attention --kvcache-tile-attention=chip=sm_90a --cse | FileCheck %s
// RUN: kvcache-opt %s --kvcache-plan-attention=chip=sm_90a --kvcache-split-attention --kvcache-tile-attention=chip=sm_90a --cse --verify-roundtrip -o %t
// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_90a --emit-ptx | FileCheck %s --check-prefix=PTX

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// A cluster has a thread block for each split of some rows. Each keeps its split in shared memory: rows of 128
// elements, and two numbers after them. After a barrier, it merges a share of the elements of all rows.
// CHECK-LABEL: func.func @decode(
// CHECK-SAME:    %{{.*}}: memref<?x32x128xbf16>, %{{.*}}: !kvcache.paged{{.*}}, %{{.*}}: !kvcache.paged{{.*}}, %{{.*}}: memref<?xi32>, %{{.*}}: f32, %[[OUT:.*]]: memref<?x32x128xbf16>, %[[LSE:.*]]: memref<?x32xf32>, %[[WORK:.*]]: memref<?xi8>)
// CHECK:         scf.parallel (%[[RANK:.*]], %{{.*}}) = (%c0, %c0) to (%c4,
// CHECK:           scf.parallel (%[[THREAD:.*]]) = (%c0) to (%c32)
// CHECK:             %[[TILE:.*]] = kvcache.alloc_tile : !kvcache.tile<16x136xf32>
// CHECK:             %[[HAS_SPLIT:.*]] = arith.cmpi ult, %{{.*}}, %[[COUNT:.*]] : index
// CHECK:             scf.if %[[HAS_SPLIT]] {
// CHECK:               kvcache.fragment_mma
// CHECK:               scf.if %{{.*}} {
// CHECK:                 kvcache.store_rows %{{.*}} to %[[OUT]]
// CHECK:                 kvcache.store_rows %{{.*}} to %[[LSE]]
// CHECK:               } else {
// CHECK:                 %[[ACCS:.*]] = memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [16, 128], strides: [136, 1]
// CHECK:                 %[[STATES:.*]] = memref.reinterpret_cast %{{.*}} to offset: [128], sizes: [16, 2], strides: [136, 1]
// CHECK:                 kvcache.store_split %{{.*}} to %[[ACCS]], %[[STATES]] {alignment = 8 : i64}
// CHECK:             %[[HAS_SEVERAL:.*]] = arith.cmpi ugt, %[[COUNT]], %c1
// CHECK:             scf.if %[[HAS_SEVERAL]] {
// CHECK:               kvcache.cluster_barrier {blocks = 4 : i64}
// CHECK:               scf.for %[[NUMBER:.*]] = %{{.*}} to %{{.*}} step %c128
// CHECK:                 %[[ROW:.*]] = arith.divui %[[NUMBER]], %c32
// CHECK:                 kvcache.cluster_load %[[TILE]][%[[ROW]], %c128] rank %[[FIRST:.*]] : !kvcache.tile<16x136xf32> -> vector<2xf32>
// CHECK:                 kvcache.cluster_load %[[TILE]][%[[ROW]], %[[D:.*]]] rank %[[FIRST]] : !kvcache.tile<16x136xf32> -> vector<4xf32>
// CHECK-COUNT-6:         kvcache.cluster_load
// CHECK-NOT:             kvcache.cluster_load
// CHECK-COUNT-5:         math.exp2
// CHECK:                 vector.store %{{.*}}, %[[OUT]][%{{.*}}, %{{.*}}, %[[D]]]
// CHECK:                 memref.store %{{.*}}, %[[LSE]]
// CHECK:               kvcache.cluster_barrier {blocks = 4 : i64}
// CHECK-NOT:     kvcache.merge_splits

// One kernel with clusters of four thread blocks, and vectors from distributed shared memory.
// PTX-COUNT-1: .entry
// PTX:         .reqnctapercluster 1, 4, 1
// PTX:         barrier.cluster.arrive.aligned
// PTX-NEXT:    barrier.cluster.wait.aligned
// PTX:         mapa.shared::cluster
// PTX:         ld.shared::cluster.v4
// PTX:         barrier.cluster.arrive.aligned
// PTX-NEXT:    barrier.cluster.wait.aligned
// PTX-NOT:     .entry
func.func @decode(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %lse: memref<?x32xf32>, %work: memref<?xi8>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out, %lse) workspace %work
      {causal, split = #kvcache.split<max = 4>, config = #kvcache.attention_config<merge = cluster>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x32xf32>, memref<?xi8>
  return
}
