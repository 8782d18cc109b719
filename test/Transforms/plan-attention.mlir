// RUN: kvcache-opt %s --kvcache-plan-attention=chip=sm_80 | FileCheck %s --check-prefixes=CHECK,SM80
// RUN: kvcache-opt %s --kvcache-plan-attention=chip=sm_90a | FileCheck %s --check-prefixes=CHECK,SM90
// RUN: kvcache-opt %s --kvcache-plan-attention=chip=sm_100a | FileCheck %s --check-prefixes=CHECK,SM100
// RUN: kvcache-opt %s --kvcache-plan-attention=chip=sm_90a --kvcache-plan-attention=chip=sm_90a | FileCheck %s --check-prefixes=CHECK,SM90
// RUN: kvcache-opt %s --kvcache-plan-attention=chip=sm_90a,sm_100a | FileCheck %s --check-prefixes=CHECK,BOTH
// RUN: not kvcache-opt %s --kvcache-plan-attention=chip=sm_99 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not kvcache-opt %s --kvcache-tile-attention=chip=sm_99 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not kvcache-opt %s --kvcache-expand-ops="for-gpu chip=sm_90a,sm_99" 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// Planned twice, a config stays as it is. Kernels for several chips have what
// all of them have.

// UNKNOWN: error: {{.*}}unknown chip 'sm_99'

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!latent = !kvcache.paged<bf16, #mla, page_size = 64>
!fp8 = !kvcache.paged<f8E4M3FN, #kv, page_size = 64>
!wide = !kvcache.paged<f32, #kv, page_size = 64>

// CHECK-LABEL: func.func @prompt(
// SM80:          config = #kvcache.attention_config<mma = mma_sync, rows = 64, keys = 64, stages = 2, acc_shares = 1, dequant = tile, raw_stages = 0, persistent = 0, l2_hint = evict_normal, schedule = prefetch>
// SM90:          config = #kvcache.attention_config<mma = wgmma, swap_ab = false, rows = 128, keys = 128, stages = 2, {{.*}} schedule = ping_pong>
// SM100:         config = #kvcache.attention_config<mma = tcgen05, rows = 128, keys = 64, stages = 2,
// BOTH:          config = #kvcache.attention_config<mma = mma_sync, rows = 64, keys = 64, stages = 2,
func.func @prompt(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {causal}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// CHECK-LABEL: func.func @latent_decode_of_64_heads(
// SM90:          mma = wgmma, swap_ab = false, rows = 64, keys = 64, stages = 2, acc_shares = 2, {{.*}} persistent = 0, {{.*}} schedule = seesaw>
// SM90:          persistent = 192, {{.*}} schedule = prefetch>
// SM90:          persistent = 0, {{.*}} schedule = prefetch>
// SM90:          persistent = 0, {{.*}} schedule = prefetch>
func.func @latent_decode_of_64_heads(%q: memref<?x64x576xbf16>, %k: !latent, %n: memref<?xi32>, %s: f32, %out: memref<?x64x512xbf16>, %w: memref<?xi8>) {
  kvcache.attention %q, %k, %n, %s outs(%out) workspace %w {config = #kvcache.attention_config<persistent = 0>}
      : memref<?x64x576xbf16>, !latent, memref<?xi32>, f32, memref<?x64x512xbf16>, memref<?xi8>
  // A persistent kernel has too few registers.
  kvcache.attention %q, %k, %n, %s outs(%out) workspace %w
      : memref<?x64x576xbf16>, !latent, memref<?xi32>, f32, memref<?x64x512xbf16>, memref<?xi8>
  kvcache.attention %q, %k, %n, %s outs(%out) workspace %w {config = #kvcache.attention_config<persistent = 0, schedule = prefetch>}
      : memref<?x64x576xbf16>, !latent, memref<?xi32>, f32, memref<?x64x512xbf16>, memref<?xi8>
  // Rows of a window may begin in a tile.
  kvcache.attention %q, %k, %n, %s outs(%out) workspace %w {config = #kvcache.attention_config<persistent = 0>, window = 100}
      : memref<?x64x576xbf16>, !latent, memref<?xi32>, f32, memref<?x64x512xbf16>, memref<?xi8>
  return
}

// CHECK-LABEL: func.func @latent_decode(
// SM90:          mma = wgmma, swap_ab = true, rows = 32, keys = 64, stages = 2, acc_shares = 1, dequant = tile, raw_stages = 0, persistent =
func.func @latent_decode(%q: memref<?x32x576xbf16>, %k: !latent, %n: memref<?xi32>, %s: f32, %out: memref<?x32x512xbf16>, %w: memref<?xi8>) {
  kvcache.attention %q, %k, %n, %s outs(%out) workspace %w
      : memref<?x32x576xbf16>, !latent, memref<?xi32>, f32, memref<?x32x512xbf16>, memref<?xi8>
  return
}

// Elements of 8 bits are dequantized in registers, unless the config says not to.

// CHECK-LABEL: func.func @stored_elements(
// CHECK:         mma = mma_sync, rows = 16, keys = {{[0-9]+}}, stages = {{[0-9]+}}, acc_shares = 1, dequant = registers
// CHECK:         mma = mma_sync, rows = 16, keys = {{[0-9]+}}, stages = {{[0-9]+}}, acc_shares = {{[0-9]+}}, dequant = tile
// CHECK:         config = #kvcache.attention_config<mma = none, l2_hint = evict_first>
func.func @stored_elements(%q: memref<?x32x128xf16>, %k: !fp8, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xf16>, %w: memref<?xi8>) {
  kvcache.attention %q, %k, %k, %n, %s outs(%out) workspace %w
      : memref<?x32x128xf16>, !fp8, !fp8, memref<?xi32>, f32, memref<?x32x128xf16>, memref<?xi8>
  kvcache.attention %q, %k, %k, %n, %s outs(%out) workspace %w {config = #kvcache.attention_config<mma = mma_sync, rows = 16, dequant = tile>}
      : memref<?x32x128xf16>, !fp8, !fp8, memref<?xi32>, f32, memref<?x32x128xf16>, memref<?xi8>
  kvcache.attention %q, %k, %k, %n, %s outs(%out) workspace %w {config = #kvcache.attention_config<mma = none>}
      : memref<?x32x128xf16>, !fp8, !fp8, memref<?xi32>, f32, memref<?x32x128xf16>, memref<?xi8>
  return
}

// Fields that are set are kept.

// CHECK-LABEL: func.func @given_fields(
// CHECK:         mma = mma_sync, rows = 128, keys = 32, stages = 1, acc_shares = 1, dequant = tile, raw_stages = 0, convert_loads = 8, persistent = 0, l2_hint = evict_last
func.func @given_fields(%q: memref<?x32x128xbf16>, %k: !fp8, %v: !fp8, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out)
      {config = #kvcache.attention_config<mma = mma_sync, rows = 128, keys = 32, stages = 1, convert_loads = 8, l2_hint = evict_last>}
      : memref<?x32x128xbf16>, !fp8, !fp8, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// CHECK-LABEL: func.func @no_tensor_cores(
// CHECK-COUNT-2: config = #kvcache.attention_config<mma = none, l2_hint = evict_normal>
func.func @no_tensor_cores(%q: memref<?x32x128xf32>, %k: !wide, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xf32>) {
  kvcache.attention %q, %k, %k, %n, %s outs(%out)
      : memref<?x32x128xf32>, !wide, !wide, memref<?xi32>, f32, memref<?x32x128xf32>
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<swap_ab = false, persistent = 0>}
      : memref<?x32x128xf32>, !wide, !wide, memref<?xi32>, f32, memref<?x32x128xf32>
  return
}
