// kvcache-reduce keeps what a test needs to go on failing, and nothing else.

// RUN: kvcache-reduce %s --reduction-tree="traversal-mode=0 test=%S/Inputs/loads-from-cache.sh" | FileCheck %s

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// CHECK-NOT: @unrelated
func.func @unrelated(%a: index) -> index {
  %b = arith.addi %a, %a : index
  return %b : index
}

// CHECK-LABEL: func.func @kernel
// CHECK-NEXT:    %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %[[V:.*]] = kvcache.load %{{.*}}[%{{.*}}, %[[ZERO]], %{{.*}}, %[[ZERO]]]
// CHECK-NEXT:    vector.store %[[V]]
// CHECK-NEXT:    return
func.func @kernel(%keys: !cache, %b: index, %t: index, %out: memref<8xbf16>) {
  %c0 = arith.constant 0 : index
  %length = kvcache.cache_length %keys[%b] : !cache
  %sum = arith.addi %length, %t : index
  %v = kvcache.load %keys[%b, %c0, %t, %c0] : !cache -> vector<8xbf16>
  vector.store %v, %out[%c0] : memref<8xbf16>, vector<8xbf16>
  return
}
