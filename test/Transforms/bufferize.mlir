// RUN: kvcache-opt %s --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" \
// RUN:   | FileCheck %s --implicit-check-not=memref.copy --implicit-check-not=memref.alloc

// A step of a tensor program changes the caches in place, and copies no tensor.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// CHECK-LABEL: func.func @step(
// CHECK-SAME:    %[[K:[a-z0-9]+]]: memref<?x8x128xbf16>, %[[CACHE:[a-z0-9]+]]: !kvcache.paged
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: memref<?x32x128xbf16>, %[[OUT:[a-z0-9]+]]: memref<?x?x8x128xbf16>)
// CHECK:         kvcache.append %[[K]], %[[K]] to %[[CACHE]], %[[CACHE]] {{.*}} queries %[[Q]] : memref
// CHECK:         kvcache.gather %[[CACHE]] outs(%[[OUT]]) : !kvcache.paged{{.*}}, memref<?x?x8x128xbf16>
// CHECK:         return %[[Q]], %[[OUT]]
func.func @step(%k: tensor<?x8x128xbf16>, %cache: !cache, %offsets: tensor<?xi32>, %table: tensor<?x64xf32>,
                %q: tensor<?x32x128xbf16> {bufferization.writable = true},
                %out: tensor<?x?x8x128xbf16> {bufferization.writable = true})
    -> (tensor<?x32x128xbf16>, tensor<?x?x8x128xbf16>) {
  %r = kvcache.append %k, %k to %cache, %cache rows %offsets rope %table queries %q
      : tensor<?x8x128xbf16>, tensor<?x8x128xbf16>, !cache, !cache, tensor<?xi32>, tensor<?x64xf32>, tensor<?x32x128xbf16>
      -> tensor<?x32x128xbf16>
  %g = kvcache.gather %cache outs(%out) : !cache, tensor<?x?x8x128xbf16> -> tensor<?x?x8x128xbf16>
  return %r, %g : tensor<?x32x128xbf16>, tensor<?x?x8x128xbf16>
}

// CHECK-LABEL: func.func @attend(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: memref<?x32x128xbf16>, %[[CACHE:[a-z0-9]+]]: !kvcache.paged
// CHECK-SAME:    %[[OUT:[a-z0-9]+]]: memref<?x32x128xbf16>, %[[LSE:[a-z0-9]+]]: memref<?x32xf32>)
// CHECK:         kvcache.attention %[[Q]], %[[CACHE]], %[[CACHE]], {{.*}} outs(%[[OUT]], %[[LSE]]) {causal} : memref
// CHECK:         return %[[OUT]], %[[LSE]]
func.func @attend(%q: tensor<?x32x128xbf16>, %cache: !cache, %offsets: tensor<?xi32>, %scale: f32,
                  %out: tensor<?x32x128xbf16> {bufferization.writable = true},
                  %lse: tensor<?x32xf32> {bufferization.writable = true})
    -> (tensor<?x32x128xbf16>, tensor<?x32xf32>) {
  %r:2 = kvcache.attention %q, %cache, %cache, %offsets, %scale outs(%out, %lse) {causal}
      : tensor<?x32x128xbf16>, !cache, !cache, tensor<?xi32>, f32, tensor<?x32x128xbf16>, tensor<?x32xf32>
      -> tensor<?x32x128xbf16>, tensor<?x32xf32>
  return %r#0, %r#1 : tensor<?x32x128xbf16>, tensor<?x32xf32>
}

// CHECK-LABEL: func.func @attend_with_region(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: memref<?x32x128xbf16>, {{.*}} %[[BIAS:[a-z0-9]+]]: memref<32xf32>)
// CHECK:         kvcache.attention %[[Q]], {{.*}} score {
// CHECK-NEXT:    ^bb0(%[[S:.*]]: f32, %{{.*}}: index, %[[HEAD:.*]]: index, %{{.*}}: index, %{{.*}}: index):
// CHECK-NEXT:      %[[LOADED:.*]] = memref.load %[[BIAS]][%[[HEAD]]]
// CHECK-NEXT:      %[[Y:.*]] = arith.addf %[[S]], %[[LOADED]]
// CHECK-NEXT:      kvcache.yield %[[Y]]
// CHECK-NEXT:    } : memref
func.func @attend_with_region(%q: tensor<?x32x128xbf16>, %cache: !cache, %offsets: tensor<?xi32>, %scale: f32,
                              %out: tensor<?x32x128xbf16> {bufferization.writable = true}, %bias: memref<32xf32>)
    -> tensor<?x32x128xbf16> {
  %r = kvcache.attention %q, %cache, %cache, %offsets, %scale outs(%out) score {
      ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
        %b = memref.load %bias[%head] : memref<32xf32>
        %y = arith.addf %s, %b : f32
        kvcache.yield %y : f32
      } : tensor<?x32x128xbf16>, !cache, !cache, tensor<?xi32>, f32, tensor<?x32x128xbf16> -> tensor<?x32x128xbf16>
  return %r : tensor<?x32x128xbf16>
}

// Queries, keys and values are slices of one projection, apart from each other.
// CHECK-LABEL: func.func @fused(
// CHECK-SAME:    %[[QKV:[a-z0-9]+]]: memref<?x48x128xbf16>
// CHECK-DAG:     %[[Q:.*]] = memref.subview %[[QKV]][0, 0, 0] [%{{.*}}, 32, 128]
// CHECK-DAG:     %[[K:.*]] = memref.subview %[[QKV]][0, 32, 0] [%{{.*}}, 8, 128]
// CHECK-DAG:     %[[V:.*]] = memref.subview %[[QKV]][0, 40, 0] [%{{.*}}, 8, 128]
// CHECK:         kvcache.append %[[K]], %[[V]] {{.*}} queries %[[Q]]
// CHECK:         kvcache.attention %[[Q]]
// CHECK:         kvcache.append %[[K]], %[[V]] {{.*}} queries %[[Q]]
// CHECK:         kvcache.attention %[[Q]]
func.func @fused(%qkv: tensor<?x48x128xbf16> {bufferization.writable = true}, %n: index, %cache: !cache,
                 %offsets: tensor<?xi32>, %table: tensor<?x64xf32>, %scale: f32,
                 %out: tensor<?x32x128xbf16> {bufferization.writable = true})
    -> tensor<?x32x128xbf16> {
  %q = tensor.extract_slice %qkv[0, 0, 0] [%n, 32, 128] [1, 1, 1] : tensor<?x48x128xbf16> to tensor<?x32x128xbf16>
  %k = tensor.extract_slice %qkv[0, 32, 0] [%n, 8, 128] [1, 1, 1] : tensor<?x48x128xbf16> to tensor<?x8x128xbf16>
  %v = tensor.extract_slice %qkv[0, 40, 0] [%n, 8, 128] [1, 1, 1] : tensor<?x48x128xbf16> to tensor<?x8x128xbf16>
  %r = kvcache.append %k, %v to %cache, %cache rows %offsets rope %table queries %q
      : tensor<?x8x128xbf16>, tensor<?x8x128xbf16>, !cache, !cache, tensor<?xi32>, tensor<?x64xf32>, tensor<?x32x128xbf16>
      -> tensor<?x32x128xbf16>
  %a = kvcache.attention %r, %cache, %cache, %offsets, %scale outs(%out) {causal}
      : tensor<?x32x128xbf16>, !cache, !cache, tensor<?xi32>, f32, tensor<?x32x128xbf16> -> tensor<?x32x128xbf16>
  // Keys are read after the write to queries.
  %s = kvcache.append %k, %v to %cache, %cache rows %offsets rope %table queries %r
      : tensor<?x8x128xbf16>, tensor<?x8x128xbf16>, !cache, !cache, tensor<?xi32>, tensor<?x64xf32>, tensor<?x32x128xbf16>
      -> tensor<?x32x128xbf16>
  %b = kvcache.attention %s, %cache, %cache, %offsets, %scale outs(%a) {causal}
      : tensor<?x32x128xbf16>, !cache, !cache, tensor<?xi32>, f32, tensor<?x32x128xbf16> -> tensor<?x32x128xbf16>
  return %b : tensor<?x32x128xbf16>
}
