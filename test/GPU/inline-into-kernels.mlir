// RUN: kvcache-opt %s --inline --kvcache-inline-into-kernels --symbol-dce | FileCheck %s

// Device functions take and give caches; nothing is left to call.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// CHECK-LABEL: gpu.module @kernels
gpu.module @kernels {
  // CHECK-NOT: func.func
  func.func private @first_row(%k: !cache, %b: index) -> index {
    %c0 = arith.constant 0 : index
    %r = kvcache.row_index %k[%b, %c0] : !cache
    return %r : index
  }

  // CHECK:      gpu.func @kernel(%[[K:.*]]: !kvcache.paged
  // CHECK-NOT:  call
  // CHECK:        %[[ROW:.*]] = kvcache.row_index %[[K]]
  // CHECK:        memref.store %[[ROW]]
  gpu.func @kernel(%k: !cache, %out: memref<?xindex>) kernel {
    %b = gpu.block_id x
    %r = func.call @first_row(%k, %b) : (!cache, index) -> index
    memref.store %r, %out[%b] : memref<?xindex>
    gpu.return
  }
}
