// RUN: kvcache-opt %s --kvcache-bounds-checks --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// CHECK-COUNT-5: kvcache.check {{.*}} loc("kernel.mlir":7:3)
// CHECK:         kvcache.load {{.*}} loc("kernel.mlir":7:3)
func.func @checks_have_the_location_of_their_op(%k: !cache, %i: index) -> bf16 {
  %v = kvcache.load %k[%i, %i, %i, %i] : !cache -> bf16 loc("kernel.mlir":7:3)
  return %v : bf16
}
