// RUN: kvcache-opt %s --verify-roundtrip | FileCheck %s
// RUN: kvcache-opt %s --mlir-print-op-generic | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --emit-bytecode | kvcache-opt | FileCheck %s

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// CHECK-LABEL: func.func @attention_regions(
// CHECK:         kvcache.attention {{.*}} outs(%{{.*}}) {causal} score {
// CHECK-NEXT:    ^bb0(%{{.*}}: f32, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index):
// CHECK-NEXT:      %[[LOADED:.*]] = memref.load %{{.*}}[%{{.*}}] : memref<32xf32>
// CHECK-NEXT:      %[[SCORE:.*]] = arith.addf %{{.*}}, %[[LOADED]] : f32
// CHECK-NEXT:      kvcache.yield %[[SCORE]] : f32
// CHECK-NEXT:    } mask {
// CHECK-NEXT:    ^bb0(%{{.*}}: index, %{{.*}}: index, %[[QUERY:.*]]: index, %[[KEY:.*]]: index):
// CHECK-NEXT:      %[[SEES:.*]] = arith.cmpi sle, %[[KEY]], %[[QUERY]] : index
// CHECK-NEXT:      kvcache.yield %[[SEES]] : i1
// CHECK-NEXT:    } sinks %{{.*}} mask %{{.*}} lengths %{{.*}} :
// CHECK:         kvcache.attention {{.*}} outs(%{{.*}}) mask {
// CHECK:         } :
// CHECK:         kvcache.attention {{.*}} outs(%{{.*}}) score {
// CHECK:         } mask %{{.*}} :
func.func @attention_regions(%q: memref<?x32x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32,
                             %out: memref<?x32x128xbf16>, %sinks: memref<32xf32>, %bits: memref<?x?xi32>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out) {causal}
      score {
      ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
        %sink = memref.load %sinks[%head] : memref<32xf32>
        %y = arith.addf %s, %sink : f32
        kvcache.yield %y : f32
      } mask {
      ^bb0(%sequence: index, %head: index, %query: index, %key: index):
        %sees = arith.cmpi sle, %key, %query : index
        kvcache.yield %sees : i1
      } sinks %sinks mask %bits lengths %n
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<32xf32>,
        memref<?x?xi32>, memref<?xi32>
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
      mask {
      ^bb0(%sequence: index, %head: index, %query: index, %key: index):
        %sees = arith.cmpi ne, %key, %query : index
        kvcache.yield %sees : i1
      } : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out)
      score {
      ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
        kvcache.yield %s : f32
      } mask %bits : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x?xi32>
  return
}
