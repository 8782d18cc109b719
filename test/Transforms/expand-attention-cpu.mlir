// RUN: kvcache-opt %s --kvcache-expand-ops=vector-bits=512 --split-input-file | FileCheck %s --check-prefixes=CHECK,WIDE
// RUN: kvcache-opt %s --kvcache-expand-ops=vector-bits=256 --split-input-file | FileCheck %s --check-prefixes=CHECK,NARROW
// RUN: kvcache-opt %s --kvcache-expand-ops="vector-bits=512 threads=2" --split-input-file | FileCheck %s --check-prefix=SHARED
// RUN: not kvcache-opt %s --kvcache-expand-ops=vector-bits=96 --split-input-file 2>&1 | FileCheck %s --check-prefix=BITS
// BITS: error: 'kvcache-expand-ops' expects 'vector-bits' to be 128, 256 or 512, got 96

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// Memory is the function's own: up to 8 rows of each of 8 heads, which have 2 KiB of a token, and 256 rows of one head.
// With threads, they are 4 heads.
// SHARED-LABEL: func.func @attend(
// SHARED:         memref.alloca() {alignment = 64 : i64} : memref<32x128xf32>
// CHECK-LABEL: func.func @attend(
// CHECK-DAG:     memref.alloca() {alignment = 64 : i64} : memref<64x128xf32>
// CHECK-DAG:     memref.alloca() {alignment = 64 : i64} : memref<16x128x16xf32>
// CHECK:         scf.for
// CHECK-NOT:     alloca
// CHECK:         scf.parallel (%[[SEQUENCE:.*]], %[[HEAD:.*]], %[[SHARE:.*]]) = {{.*}} to (%{{.*}}, %c8{{.*}}, %c4
// CHECK:         %[[ARE_FEW:.*]] = arith.cmpi ult, %{{.*}}, %c9
// CHECK:         scf.if %[[ARE_FEW]] {
//
// Few rows. The even elements of 32 queries come before the odd ones, as they are in the pairs of keys. The next 16 tokens
// are prefetched in between the products of the first rows of a head, a row of memory after the other: 4 rows beside 4
// pieces, or 2 rows, each three times. On 32 registers, 4 rows have products with 4 tokens.
// CHECK:           vector.deinterleave {{.*}} : vector<32xf32> -> vector<16xf32>
// CHECK:           scf.for {{.*}} step %c16
// CHECK:             %[[DISTANCE:.*]] = arith.select %[[IS_FIRST:.*]], %c16{{.*}}, %c0
// CHECK:             scf.for %[[D:.*]] = %c0{{.*}} to %c128{{.*}} step %c32
// WIDE-COUNT-3:        arith.select {{.*}} : memref<1x128xbf16
// WIDE-COUNT-12:       memref.prefetch %{{.*}}, read, locality<2>, data
// NARROW-COUNT-1:      arith.select {{.*}} : memref<1x128xbf16
// NARROW-COUNT-6:      memref.prefetch %{{.*}}, read, locality<2>, data
// CHECK-NOT:           memref.prefetch
// CHECK:               %[[KEYS:.*]] = kvcache.load %arg1[%[[SEQUENCE]], %{{.*}}, %{{.*}}, %[[D]]] : {{.*}} -> vector<32xbf16>
// CHECK:               %[[PAIRS:.*]] = vector.bitcast %[[KEYS]] : vector<32xbf16> to vector<16xi32>
// CHECK:               arith.shli %[[PAIRS]]
// CHECK:               arith.andi %[[PAIRS]]
// WIDE-COUNT-32:       math.fma
// NARROW-COUNT-8:      math.fma
// CHECK-NOT:           math.fma
// CHECK:               scf.yield
// The largest scores of the 4 rows are found together.
// CHECK-COUNT-3:     arith.cmpf ogt, {{.*}} : vector<16xf32>
// CHECK:             arith.cmpf ogt, {{.*}} : vector<8xf32>
// CHECK:             arith.cmpf ogt, {{.*}} : vector<4xf32>
// CHECK-NOT:         vector.reduction <{{maxnumf|add}}>
// Accumulators are rescaled where a maximum grows.
// CHECK:             %[[IS_ANY:.*]] = vector.reduction <or>
// CHECK:             scf.if %[[IS_ANY]] {
// A value that no row may miss needs no select.
// CHECK:             scf.if %{{.*}} {
// CHECK:               kvcache.load %arg2{{.*}} -> vector<32xbf16>
// CHECK-NOT:           arith.select %{{.*}}vector<16xf32>
// CHECK:             } else {
// CHECK:               arith.select %{{.*}}vector<16xf32>
// CHECK:           vector.interleave {{.*}} : vector<16xf32> -> vector<32xf32>
// CHECK:           vector.store {{.*}} vector<32xbf16>
//
// Many rows are lanes of vectors. Keys and values of 128 tokens become f32 once for all of them, and are broadcast from
// memory: on 32 registers, 4 of them times 4 vectors of rows.
// CHECK:         } else {
// CHECK:           scf.for {{.*}} step %c1024
// Four rounds of a shuffle transpose a square. 32 registers of 512 bits hold it, for a loop.
// WIDE:              scf.for {{.*}} to %c4{{.*}} iter_args(
// WIDE-COUNT-16:       vector.shuffle {{.*}} : vector<16xf32>, vector<16xf32>
// WIDE-NEXT:           scf.yield
// NARROW-COUNT-64:   vector.shuffle {{.*}} : vector<16xf32>, vector<16xf32>
// CHECK:             scf.for {{.*}} step %c128
// CHECK:               kvcache.load %arg1[%[[SEQUENCE]], %[[HEAD]], %{{.*}}, %{{.*}}] : {{.*}} -> vector<16xf32>
// CHECK:               kvcache.load %arg2[%[[SEQUENCE]], %[[HEAD]], %{{.*}}, %{{.*}}] : {{.*}} -> vector<16xf32>
// CHECK:               %[[IS_ODD:.*]] = arith.cmpi sgt, %{{.*}}, %c2139095039
// WIDE-COUNT-16:       math.fma {{.*}} : vector<16xf32>
// CHECK-COUNT-4:       math.fma {{.*}} : vector<16xf32>
// CHECK:               scf.if %[[IS_ODD]] {
// CHECK:                 math.fma
// CHECK:                 arith.select %{{.*}} : vector<16xi1>, vector<16xf32>
// CHECK:               } else {
// CHECK-NOT:             arith.select %{{.*}}vector<16xf32>
// WIDE-COUNT-16:     vector.shuffle
// NARROW-COUNT-64:   vector.shuffle
// CHECK-NOT:         vector.shuffle
// CHECK:           scf.reduce
// CHECK-NEXT:    } {llvm.loop_annotation = #loop_annotation}
// CHECK:         return
func.func @attend(%q: memref<?x32x128xbf16>, %keys: !cache, %values: !cache, %n: memref<?xi32>, %scale: f32,
                  %out: memref<?x32x128xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    kvcache.attention %q, %keys, %values, %n, %scale outs(%out) {causal}
        : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  }
  return
}

// -----

!mla = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

// A token's 128 query heads are many rows. One read is key and value. Ids give pages and offsets: neither lengths nor the
// table are read.
// CHECK-LABEL: func.func @attend_to_rows(
// CHECK-NOT:     kvcache.cache_length
// CHECK:         scf.parallel {{.*}} to (%{{.*}}, %c1{{.*}}, %c4
// CHECK:         kvcache.load %arg1[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] page %{{.*}} : {{.*}} -> vector<16xf32>
// CHECK-NOT:     kvcache.load
// CHECK:         return
func.func @attend_to_rows(%q: memref<?x128x576xbf16>, %cache: !mla, %n: memref<?xi32>, %scale: f32,
                          %out: memref<?x128x512xbf16>, %ids: memref<?x2048xi32>) {
  kvcache.attention %q, %cache, %n, %scale outs(%out) rows %ids
      : memref<?x128x576xbf16>, !mla, memref<?xi32>, f32, memref<?x128x512xbf16>, memref<?x2048xi32>
  return
}

// -----

!cache = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64, scale = f32, granularity = 128>

// A token's 4 query heads are few rows, and the only ones of sparse rows. Its scale is multiplied by scores and weights.
// CHECK-LABEL: func.func @scale_tokens(
// CHECK:         scf.parallel {{.*}} to (%{{.*}}, %c8{{.*}}, %c1
// CHECK:         kvcache.load_scale %arg1
// CHECK:         kvcache.load_scale %arg2
// CHECK:         kvcache.load_quantized %arg1
// CHECK:         kvcache.dequantize %{{.*}}, %cst{{.*}} : vector<16xf8E4M3FN>, f32 -> vector<16xf32>
// CHECK-NOT:     step %c1024
// CHECK:         return
func.func @scale_tokens(%q: memref<?x32x128xbf16>, %keys: !cache, %values: !cache, %n: memref<?xi32>, %scale: f32,
                        %out: memref<?x32x128xbf16>, %ids: memref<?x64xi32>) {
  kvcache.attention %q, %keys, %values, %n, %scale outs(%out) rows %ids
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x64xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// Rows are not split on the CPU.
// CHECK-LABEL: func.func @split(
// CHECK-SAME:      %arg6: memref<?xi8>)
// CHECK-NOT:     %arg6
// CHECK:         return
func.func @split(%q: memref<?x32x128xbf16>, %keys: !cache, %values: !cache, %n: memref<?xi32>, %scale: f32,
                 %out: memref<?x32x128xbf16>, %w: memref<?xi8>) {
  kvcache.attention %q, %keys, %values, %n, %scale outs(%out) workspace %w {split = #kvcache.split<max = 16>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>
  return
}
