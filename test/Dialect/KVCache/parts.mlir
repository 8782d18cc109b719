// RUN: kvcache-opt %s --verify-roundtrip | FileCheck %s
// RUN: kvcache-opt %s --emit-bytecode | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!collection = !kvcache.paged_collection<bf16, #mla, page_size = ?>
!open = !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16, layout = [token = 64, head = ?], table = csr>
!scales = !kvcache.scales<!open>
!continuous = !kvcache.continuous<i32, #kv>

// CHECK-LABEL: func.func @blocks(
// CHECK:         kvcache.blocks %{{.*}} {note = "kept"} : !kvcache.paged<bf16,
// CHECK:         kvcache.blocks %{{.*}} : !kvcache.paged_collection<bf16,
// GENERIC-LABEL: sym_name = "blocks"
// GENERIC:         "kvcache.blocks"({{.*}}) {note = "kept"} : ({{.*}}) -> memref<?x64x8x128xbf16, strided<[?, 1024, 128, 1], offset: ?>>
// GENERIC:         "kvcache.blocks"({{.*}}) : ({{.*}}) -> memref<?x1x?x?x1x576xbf16, strided<[?, ?, ?, 576, 576, 1], offset: ?>>
// GENERIC:         "kvcache.blocks"({{.*}}) : ({{.*}}) -> memref<?x64x8x64xi8, strided<[?, 64, ?, 1], offset: ?>>
// GENERIC:         "kvcache.blocks"({{.*}}) : ({{.*}}) -> memref<?x64x8x8xf8E4M3FN, strided<[?, 64, 8, 1], offset: ?>>
// GENERIC:         "kvcache.blocks"({{.*}}) : ({{.*}}) -> memref<?x?x8x128xi32, strided<[?, 1024, 128, 1], offset: ?>>
func.func @blocks(%k: !cache, %c: !collection, %o: !open, %s: !scales, %b: !continuous) {
  %0 = kvcache.blocks %k {note = "kept"} : !cache
  %1 = kvcache.blocks %c : !collection
  %2 = kvcache.blocks %o : !open
  %3 = kvcache.blocks %s : !scales
  %4 = kvcache.blocks %b : !continuous
  return
}

// CHECK-LABEL: func.func @tables(
// CHECK:         kvcache.lookup_table %{{.*}} : !kvcache.paged<bf16,
// GENERIC-LABEL: sym_name = "tables"
// GENERIC:         "kvcache.lookup_table"({{.*}}) : ({{.*}}) -> memref<?x?xi32, strided<[?, 1], offset: ?>>
// GENERIC:         "kvcache.lookup_table"({{.*}}) : ({{.*}}) -> memref<?xi32, strided<[1], offset: ?>>
// GENERIC:         "kvcache.lookup_table"({{.*}}) : ({{.*}}) -> memref<?xi32, strided<[1], offset: ?>>
func.func @tables(%k: !cache, %o: !open, %b: !continuous) {
  %0 = kvcache.lookup_table %k : !cache
  %1 = kvcache.lookup_table %o : !open
  %2 = kvcache.lookup_table %b : !continuous
  return
}

// CHECK-LABEL: func.func @lengths(
// CHECK:         kvcache.cache_lengths %{{.*}} : !kvcache.paged<bf16,
// GENERIC-LABEL: sym_name = "lengths"
// GENERIC:         "kvcache.cache_lengths"({{.*}}) : ({{.*}}) -> memref<?xi32, strided<[1], offset: ?>>
func.func @lengths(%k: !cache, %c: !collection) {
  %0 = kvcache.cache_lengths %k : !cache
  %1 = kvcache.cache_lengths %c : !collection
  return
}
