// RUN: kvcache-opt %s --kvcache-expand-ops="vector-bits=512 mma=dot" --split-input-file | FileCheck %s --check-prefixes=CHECK,DOT
// RUN: kvcache-opt %s --kvcache-expand-ops="vector-bits=512 mma=amx" --split-input-file | FileCheck %s --check-prefixes=CHECK,AMX
// RUN: not kvcache-opt %s --kvcache-expand-ops="vector-bits=256 mma=dot" --split-input-file 2>&1 | FileCheck %s --check-prefix=BITS
// BITS: error: 'kvcache-expand-ops' expects 'vector-bits' to be 512 with matrix instructions, got 256

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// Queries and keys are 64 pairs of elements, values pairs of tokens, and probabilities take the place of scores. Tiles are
// contiguous, and need values transposed. CPUs that have them have larger caches.
// AMX:           #[[UNROLL:.*]] = #llvm.loop_unroll<disable = true>
// AMX:           #[[ANNOTATION:.*]] = #llvm.loop_annotation<unroll = #[[UNROLL]]>
// CHECK-LABEL: func.func @attend(
// DOT-DAG:       memref.alloca() {{.*}} : memref<16x64x16xi32>
// DOT-DAG:       memref.alloca() {{.*}} : memref<16x128x16xf32>
// AMX-DAG:       memref.alloca() {{.*}} : memref<64x64x16xi32>
// AMX-DAG:       memref.alloca() {{.*}} : memref<64x128x16xf32>
// DOT-DAG:       memref.alloca() {{.*}} : memref<128x64xi32>
// DOT-DAG:       memref.alloca() {{.*}} : memref<4x128x16xf32>
// AMX-DAG:       memref.alloca() {{.*}} : memref<16x4x16x16xi32>
// AMX-DAG:       memref.alloca() {{.*}} : memref<8x8x16x16xi32>
// AMX-DAG:       memref.alloca() {{.*}} : memref<4x256x16xf32>
//
// Few rows. Dot products multiply pairs of a query and a key. Probabilities are rounded to pairs of tokens, for tiles that
// all rows see. Tiles would be mostly empty.
// AMX-NOT:       amx.
// DOT-COUNT-16:  x86vector.avx512.dot %{{.*}} : vector<32xbf16> -> vector<16xf32>
// DOT-NOT:       x86vector.avx512.dot
// DOT:           arith.trunci %{{.*}} : vector<16xi32> to vector<16xi16>
// DOT:           vector.bitcast %{{.*}} : vector<16xi16> to vector<8xi32>
// DOT:           scf.if %{{.*}} {
// DOT-COUNT-16:    memref.load %{{.*}} : memref<8x8xi32>
// DOT-COUNT-32:    x86vector.avx512.dot
// DOT:           } else {
// DOT-NOT:         x86vector.avx512.dot
// CHECK:           arith.select %{{.*}}vector<16xf32>
// CHECK:         vector.interleave {{.*}} : vector<16xf32> -> vector<32xf32>
//
// Many rows. The queries of the next ones are prefetched, and tokens after the one that is loaded.
// CHECK-COUNT-4: memref.prefetch %arg0
// CHECK:         scf.for {{.*}} step %c2
// CHECK-COUNT-8: memref.prefetch
// CHECK:         arith.trunci %{{.*}} : vector<16xi32> to vector<16xi16>
// CHECK:         vector.bitcast %{{.*}} : vector<16xi16> to vector<8xi32>
// Values that are not finite go apart, and leave zeros. Both halves of a pair are compared at once.
// CHECK:         arith.maxsi %{{.*}} : vector<32xi16>
// CHECK:         vector.reduction <maxsi>, %{{.*}} : vector<32xi16> into i16
// CHECK:         scf.if %[[HAS_NON_FINITE:.*]] {
// CHECK:           arith.xori
// DOT-NOT:       vector.shuffle
// AMX-COUNT-16:  vector.shuffle %{{.*}} : vector<16xi32>, vector<16xi32>
//
// Scores.
// DOT:           %[[FACTOR:.*]] = vector.load %alloca{{.*}} : memref<16x64x16xi32>, vector<16xi32>
// DOT:           vector.bitcast %[[FACTOR]] : vector<16xi32> to vector<32xbf16>
// DOT:           %[[PAIR:.*]] = memref.load %alloca{{.*}} : memref<128x64xi32>
// DOT:           vector.broadcast %[[PAIR]] : i32 to vector<16xi32>
// DOT-COUNT-16:  x86vector.avx512.dot %{{.*}} : vector<32xbf16> -> vector<16xf32>
// AMX-COUNT-4:   amx.tile_zero : !amx.tile<16x16xf32>
// AMX:           scf.for %{{.*}} = %c0{{.*}} to %c64{{.*}} step %c16
// AMX-COUNT-2:     amx.tile_load {{.*}} : memref<64x64x16xi32> into !amx.tile<16x32xbf16>
// AMX-COUNT-2:     amx.tile_load {{.*}} : memref<16x4x16x16xi32> into !amx.tile<16x32xbf16>
// AMX-COUNT-4:     amx.tile_mulf
// LLVM does not unroll the loop.
// AMX:           } {llvm.loop_annotation = #[[ANNOTATION]]}
// AMX-COUNT-4:   amx.tile_store {{.*}} : memref<4x256x16xf32>
//
// The largest product of each row is found without a store, and replaces the maximum where it is larger by 2^8.
// CHECK:         scf.if %{{.*}} {
// CHECK-NOT:       vector.store
// CHECK:           %[[BORDER:.*]] = arith.addf %[[MAX:.*]], %cst{{.*}} : vector<16xf32>
// CHECK-NEXT:      %[[GROWS:.*]] = arith.cmpf ogt, %[[NEW:.*]], %[[BORDER]]
// CHECK-NEXT:      arith.select %[[GROWS]], %[[NEW]], %[[MAX]]
//
// Probabilities are rounded: half of the last bit is added, and two of them joined.
// CHECK:         arith.addi %{{.*}}, %cst{{.*}} : vector<16xi32>
// CHECK:         arith.ori %{{.*}} : vector<16xi32>
// CHECK:         arith.bitcast %{{.*}} : vector<16xi32> to vector<16xf32>
//
// Values.
// DOT-COUNT-16:  x86vector.avx512.dot
// AMX:           amx.tile_load {{.*}} : memref<4x256x16xf32> into !amx.tile<16x32xbf16>
// AMX-COUNT-2:   amx.tile_load {{.*}} : memref<8x8x16x16xi32> into !amx.tile<16x32xbf16>
// AMX-COUNT-4:   amx.tile_mulf
//
// Those that are not finite are added to the rows that see them.
// CHECK:         scf.if %[[HAS_NON_FINITE]] {
// CHECK:           math.fma
// CHECK:           arith.select
// CHECK:         return
func.func @attend(%q: memref<?x32x128xbf16>, %keys: !cache, %values: !cache, %n: memref<?xi32>, %scale: f32,
                  %out: memref<?x32x128xbf16>) {
  kvcache.attention %q, %keys, %values, %n, %scale outs(%out) {causal}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 1, head_size = 80>, page_size = 16>

// Tiles have 32 elements of a key, so the products of 80 are of f32.
// CHECK-LABEL: func.func @attend_to_80(
// AMX-NOT:     amx.
// DOT:         x86vector.avx512.dot
// CHECK:       return
func.func @attend_to_80(%q: memref<?x1x80xbf16>, %keys: !cache, %values: !cache, %n: memref<?xi32>, %scale: f32,
                        %out: memref<?x1x80xbf16>) {
  kvcache.attention %q, %keys, %values, %n, %scale outs(%out)
      : memref<?x1x80xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x1x80xbf16>
  return
}

// -----

!cache = !kvcache.paged<f16, <num_heads = 1, head_size = 64>, page_size = 16>

// f16 is not exact in bf16.
// CHECK-LABEL: func.func @attend_to_f16(
// CHECK-NOT:   amx.
// CHECK-NOT:   x86vector
// CHECK:       return
func.func @attend_to_f16(%q: memref<?x1x64xbf16>, %keys: !cache, %values: !cache, %n: memref<?xi32>, %scale: f32,
                         %out: memref<?x1x64xbf16>) {
  kvcache.attention %q, %keys, %values, %n, %scale outs(%out)
      : memref<?x1x64xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x1x64xbf16>
  return
}

// -----

!cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 64>, page_size = 16, scale = f32, granularity = 16>

// Elements times scales of f32 are not exact either.
// CHECK-LABEL: func.func @attend_to_groups(
// CHECK-NOT:   amx.
// CHECK-NOT:   x86vector
// CHECK:       return
func.func @attend_to_groups(%q: memref<?x1x64xbf16>, %keys: !cache, %values: !cache, %n: memref<?xi32>, %scale: f32,
                            %out: memref<?x1x64xbf16>) {
  kvcache.attention %q, %keys, %values, %n, %scale outs(%out)
      : memref<?x1x64xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x1x64xbf16>
  return
}
