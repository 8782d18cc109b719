// RUN: kvcache-opt %s -o %t.text
// RUN: kvcache-opt %S/attention-regions.mlirbc -o %t.bytecode
// RUN: diff %t.text %t.bytecode

#kv = #kvcache.params<num_heads = 8, head_size = 128>
module {
  func.func @attention_regions(%arg0: memref<?x32x128xbf16>, %arg1: !kvcache.paged<bf16, #kv, page_size = 64>, %arg2: memref<?xi32>, %arg3: f32, %arg4: memref<?x32x128xbf16>, %arg5: memref<32xf32>, %arg6: memref<?x?xi32>) {
    kvcache.attention %arg0, %arg1, %arg1, %arg2, %arg3 outs(%arg4) {causal} score {
    ^bb0(%arg7: f32, %arg8: index, %arg9: index, %arg10: index, %arg11: index):
      %0 = memref.load %arg5[%arg9] : memref<32xf32>
      %1 = arith.addf %arg7, %0 : f32
      kvcache.yield %1 : f32
    } mask {
    ^bb0(%arg7: index, %arg8: index, %arg9: index, %arg10: index):
      %0 = arith.cmpi sle, %arg10, %arg9 : index
      kvcache.yield %0 : i1
    } sinks %arg5 mask %arg6 lengths %arg2 : memref<?x32x128xbf16>, !kvcache.paged<bf16, #kv, page_size = 64>, !kvcache.paged<bf16, #kv, page_size = 64>, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<32xf32>, memref<?x?xi32>, memref<?xi32>
    kvcache.attention %arg0, %arg1, %arg1, %arg2, %arg3 outs(%arg4) mask {
    ^bb0(%arg7: index, %arg8: index, %arg9: index, %arg10: index):
      %0 = arith.cmpi ne, %arg10, %arg9 : index
      kvcache.yield %0 : i1
    } : memref<?x32x128xbf16>, !kvcache.paged<bf16, #kv, page_size = 64>, !kvcache.paged<bf16, #kv, page_size = 64>, memref<?xi32>, f32, memref<?x32x128xbf16>
    kvcache.attention %arg0, %arg1, %arg1, %arg2, %arg3 outs(%arg4) score {
    ^bb0(%arg7: f32, %arg8: index, %arg9: index, %arg10: index, %arg11: index):
      kvcache.yield %arg7 : f32
    } mask %arg6 : memref<?x32x128xbf16>, !kvcache.paged<bf16, #kv, page_size = 64>, !kvcache.paged<bf16, #kv, page_size = 64>, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x?xi32>
    return
  }
}

