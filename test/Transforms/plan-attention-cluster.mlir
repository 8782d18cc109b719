// RUN: kvcache-opt %s --kvcache-plan-attention=chip=sm_90a | FileCheck %s
// RUN: kvcache-opt %s --kvcache-plan-attention=chip=sm_100a | FileCheck %s
// RUN: not kvcache-opt %s --kvcache-plan-attention=chip=sm_89 2>&1 | FileCheck %s --check-prefix=SM89

// Splits that a cluster merges have warps with mma.sync, and no persistent kernel. They are for no chip before sm_90.

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!fp8 = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 64>
!mla = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

// SM89: error: 'kvcache.attention' op expects 'config' to have 'merge' = launch on chips without clusters, which need sm_90 or newer, got cluster
// CHECK-LABEL: func.func @keys_and_values(
// CHECK:         mma = mma_sync, rows = 16, keys = 64, {{.*}}persistent = 0, {{.*}}schedule = prefetch, merge = cluster>
func.func @keys_and_values(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {split = #kvcache.split<max = 8>, config = #kvcache.attention_config<merge = cluster>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// CHECK-LABEL: func.func @stored_elements(
// CHECK:         mma = mma_sync, rows = 16, {{.*}}dequant = registers, {{.*}}persistent = 0, {{.*}}merge = cluster>
func.func @stored_elements(%q: memref<?x32x128xbf16>, %k: !fp8, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {split = #kvcache.split<max = 8>, config = #kvcache.attention_config<merge = cluster>}
      : memref<?x32x128xbf16>, !fp8, !fp8, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// CHECK-LABEL: func.func @latent_rows(
// CHECK:         mma = mma_sync, rows = 16, {{.*}}persistent = 0, {{.*}}merge = cluster>
func.func @latent_rows(%q: memref<?x16x576xbf16>, %k: !mla, %n: memref<?xi32>, %s: f32, %out: memref<?x16x512xbf16>) {
  kvcache.attention %q, %k, %n, %s outs(%out) {split = #kvcache.split<max = 8>, config = #kvcache.attention_config<rows = 16, merge = cluster>}
      : memref<?x16x576xbf16>, !mla, memref<?xi32>, f32, memref<?x16x512xbf16>
  return
}
