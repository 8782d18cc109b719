// RUN: kvcache-opt %s -o %t.text
// RUN: kvcache-opt %S/parts.mlirbc -o %t.bytecode
// RUN: diff %t.text %t.bytecode

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#kv1 = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
module {
  func.func @blocks(%arg0: !kvcache.paged<bf16, #kv, page_size = 64>, %arg1: !kvcache.paged_collection<bf16, #kv1, page_size = ?>, %arg2: !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16, layout = [token = 64, head = ?], table = csr>, %arg3: !kvcache.scales<!kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16, layout = [token = 64, head = ?], table = csr>>, %arg4: !kvcache.continuous<i32, #kv>) {
    %0 = kvcache.blocks %arg0 {note = "kept"} : !kvcache.paged<bf16, #kv, page_size = 64>
    %1 = kvcache.blocks %arg1 : !kvcache.paged_collection<bf16, #kv1, page_size = ?>
    %2 = kvcache.blocks %arg2 : !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16, layout = [token = 64, head = ?], table = csr>
    %3 = kvcache.blocks %arg3 : !kvcache.scales<!kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16, layout = [token = 64, head = ?], table = csr>>
    %4 = kvcache.blocks %arg4 : !kvcache.continuous<i32, #kv>
    return
  }
  func.func @tables(%arg0: !kvcache.paged<bf16, #kv, page_size = 64>, %arg1: !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16, layout = [token = 64, head = ?], table = csr>, %arg2: !kvcache.continuous<i32, #kv>) {
    %0 = kvcache.lookup_table %arg0 : !kvcache.paged<bf16, #kv, page_size = 64>
    %1 = kvcache.lookup_table %arg1 : !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16, layout = [token = 64, head = ?], table = csr>
    %2 = kvcache.lookup_table %arg2 : !kvcache.continuous<i32, #kv>
    return
  }
  func.func @lengths(%arg0: !kvcache.paged<bf16, #kv, page_size = 64>, %arg1: !kvcache.paged_collection<bf16, #kv1, page_size = ?>) {
    %0 = kvcache.cache_lengths %arg0 : !kvcache.paged<bf16, #kv, page_size = 64>
    %1 = kvcache.cache_lengths %arg1 : !kvcache.paged_collection<bf16, #kv1, page_size = ?>
    return
  }
}

