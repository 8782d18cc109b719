// A grid without a block is most likely two loops that have become one.

// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_90a 2>&1 | FileCheck %s --implicit-check-not=warning:

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @merged(%k: !cache, %b: index, %out: memref<?x8xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %n = kvcache.cache_length %k[%b] : !cache
  // CHECK: [[#@LINE+1]]:3: warning: makes a kernel with blocks of one thread: the block is an 'scf.parallel' inside this one
  scf.parallel (%t, %h) = (%c0, %c0) to (%n, %c8) step (%c1, %c1) {
    memref.store %t, %out[%t, %h] : memref<?x8xindex>
  }
  return
}

func.func @nested(%k: !cache, %b: index, %out: memref<?x8xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %n = kvcache.cache_length %k[%b] : !cache
  scf.parallel (%t) = (%c0) to (%n) step (%c1) {
    scf.parallel (%h) = (%c0) to (%c8) step (%c1) {
      memref.store %t, %out[%t, %h] : memref<?x8xindex>
    }
  }
  return
}
