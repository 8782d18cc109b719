// RUN: kvcache-opt %s --kvcache-plan-attention=chip=sm_90a --split-input-file --verify-diagnostics
// RUN: kvcache-opt %s "--kvcache-expand-ops=for-gpu chip=sm_90a" --split-input-file --verify-diagnostics

// Fields that the chip can't have. Expansion refuses them as well.

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @mma_of_another_chip(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'config' to have an 'mma' and 'rows' that the chip has for such caches, got #kvcache.attention_config<mma = tcgen05>}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<mma = tcgen05>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @rows_without_wgmma(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'config' to have an 'mma' and 'rows' that the chip has for such caches, got #kvcache.attention_config<mma = wgmma, rows = 16>}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<mma = wgmma, rows = 16>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @shared_memory(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'config' to have tiles of at most 231424 bytes of shared memory, got 557056}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<rows = 128, keys = 128, stages = 8>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @dequant(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'config' to have 'dequant' = tile here, got registers}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<dequant = registers>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @shares(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'config' to have 'acc_shares' = 1 here, got 2}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<acc_shares = 2>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @schedule_of_splits(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %w: memref<?xi8>) {
  // expected-error @below {{expects 'config' to have 'schedule' = prefetch here, got ping_pong}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) workspace %w {causal, config = #kvcache.attention_config<rows = 128, schedule = ping_pong>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @turns_of_one_warpgroup(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'config' to have 'schedule' = prefetch here, got ping_pong}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {causal, config = #kvcache.attention_config<rows = 64, schedule = ping_pong>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!latent = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @seesaw_of_converted_tiles(%q: memref<?x64x576xbf16>, %k: !latent, %n: memref<?xi32>, %s: f32, %out: memref<?x64x512xbf16>) {
  // expected-error @below {{expects 'config' to have 'schedule' = prefetch here, as seesaw needs rows that copies bring without a conversion, got seesaw}}
  kvcache.attention %q, %k, %n, %s outs(%out) {config = #kvcache.attention_config<schedule = seesaw>}
      : memref<?x64x576xbf16>, !latent, memref<?xi32>, f32, memref<?x64x512xbf16>
  return
}

// -----

!latent = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @pair_of_sm_90a(%q: memref<?x128x576xbf16>, %k: !latent, %n: memref<?xi32>, %s: f32, %out: memref<?x128x512xbf16>) {
  // expected-error @below {{expects 'config' to have 'schedule' = seesaw or prefetch here, as pair needs tcgen05, got pair}}
  kvcache.attention %q, %k, %n, %s outs(%out) {config = #kvcache.attention_config<schedule = pair>}
      : memref<?x128x576xbf16>, !latent, memref<?xi32>, f32, memref<?x128x512xbf16>
  return
}

// -----

!latent = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @seesaw_of_swap_ab(%q: memref<?x32x576xbf16>, %k: !latent, %n: memref<?xi32>, %s: f32, %out: memref<?x32x512xbf16>) {
  // expected-error @below {{expects 'config' to have 'schedule' = prefetch here, as seesaw needs wgmma without swapAB, got seesaw}}
  kvcache.attention %q, %k, %n, %s outs(%out) {config = #kvcache.attention_config<schedule = seesaw>}
      : memref<?x32x576xbf16>, !latent, memref<?xi32>, f32, memref<?x32x512xbf16>
  return
}

// -----

!latent = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @seesaw_of_few_keys(%q: memref<?x64x576xbf16>, %k: !latent, %n: memref<?xi32>, %s: f32, %out: memref<?x64x512xbf16>) {
  // expected-error @below {{expects 'config' to have 'schedule' = prefetch here, as seesaw needs 64 keys, got seesaw}}
  kvcache.attention %q, %k, %n, %s outs(%out) {config = #kvcache.attention_config<keys = 32, schedule = seesaw>}
      : memref<?x64x576xbf16>, !latent, memref<?xi32>, f32, memref<?x64x512xbf16>
  return
}

// -----

!latent = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @seesaw_of_one_stage(%q: memref<?x64x576xbf16>, %k: !latent, %n: memref<?xi32>, %s: f32, %out: memref<?x64x512xbf16>) {
  // expected-error @below {{expects 'config' to have 'schedule' = prefetch here, as seesaw needs 2 stages, got seesaw}}
  kvcache.attention %q, %k, %n, %s outs(%out) {config = #kvcache.attention_config<stages = 1, schedule = seesaw>}
      : memref<?x64x576xbf16>, !latent, memref<?xi32>, f32, memref<?x64x512xbf16>
  return
}

// -----

!latent = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @seesaw_of_a_window(%q: memref<?x64x576xbf16>, %k: !latent, %n: memref<?xi32>, %s: f32, %out: memref<?x64x512xbf16>) {
  // expected-error @below {{expects 'config' to have 'schedule' = prefetch here, as seesaw needs no window, chunk or ranges, got seesaw}}
  kvcache.attention %q, %k, %n, %s outs(%out) {window = 100, config = #kvcache.attention_config<schedule = seesaw>}
      : memref<?x64x576xbf16>, !latent, memref<?xi32>, f32, memref<?x64x512xbf16>
  return
}

// -----

!latent = !kvcache.paged<bf16, <num_heads = 1, head_size = 320, is_mla = true>, page_size = 64>

func.func @seesaw_of_short_values(%q: memref<?x64x320xbf16>, %k: !latent, %n: memref<?xi32>, %s: f32, %out: memref<?x64x256xbf16>) {
  // expected-error @below {{expects 'config' to have 'schedule' = prefetch here, as seesaw needs values that two warpgroups share, got seesaw}}
  kvcache.attention %q, %k, %n, %s outs(%out) {config = #kvcache.attention_config<schedule = seesaw>}
      : memref<?x64x320xbf16>, !latent, memref<?xi32>, f32, memref<?x64x256xbf16>
  return
}

// -----

!latent = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @seesaw_of_a_long_rope(%q: memref<?x64x576xbf16>, %k: !latent, %n: memref<?xi32>, %s: f32, %out: memref<?x64x384xbf16>) {
  // expected-error @below {{expects 'config' to have 'schedule' = prefetch here, as seesaw needs a rope of 64 elements, got seesaw}}
  kvcache.attention %q, %k, %n, %s outs(%out) {config = #kvcache.attention_config<schedule = seesaw>}
      : memref<?x64x576xbf16>, !latent, memref<?xi32>, f32, memref<?x64x384xbf16>
  return
}

// -----

!latent = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @seesaw_of_sparse_rows(%q: memref<?x64x576xbf16>, %k: !latent, %n: memref<?xi32>, %s: f32, %out: memref<?x64x512xbf16>, %rows: memref<?x1x128xi32>) {
  // expected-error @below {{expects 'config' to have 'schedule' = prefetch here, as seesaw needs no sparse 'rows', got seesaw}}
  kvcache.attention %q, %k, %n, %s outs(%out) {config = #kvcache.attention_config<schedule = seesaw>} rows %rows
      : memref<?x64x576xbf16>, !latent, memref<?xi32>, f32, memref<?x64x512xbf16>, memref<?x1x128xi32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @seesaw_of_values(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'config' to have 'schedule' = prefetch here, as seesaw needs a latent cache, got seesaw}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {causal, config = #kvcache.attention_config<schedule = seesaw>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!latent = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @turns_of_latent_rows(%q: memref<?x64x576xbf16>, %k: !latent, %n: memref<?xi32>, %s: f32, %out: memref<?x64x512xbf16>) {
  // expected-error @below {{expects 'config' to have 'schedule' = seesaw or prefetch here, got ping_pong}}
  kvcache.attention %q, %k, %n, %s outs(%out) {config = #kvcache.attention_config<schedule = ping_pong>}
      : memref<?x64x576xbf16>, !latent, memref<?xi32>, f32, memref<?x64x512xbf16>
  return
}

// -----

!latent = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @keys_of_swap_ab(%q: memref<?x32x576xbf16>, %k: !latent, %n: memref<?xi32>, %s: f32, %out: memref<?x32x512xbf16>) {
  // expected-error @below {{expects 'config' to have 'keys' = 64 here, got 32}}
  kvcache.attention %q, %k, %n, %s outs(%out) {config = #kvcache.attention_config<keys = 32>}
      : memref<?x32x576xbf16>, !latent, memref<?xi32>, f32, memref<?x32x512xbf16>
  return
}

// -----

!wide = !kvcache.paged<f32, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @tiles_of_warps(%q: memref<?x32x128xf32>, %k: !wide, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xf32>) {
  // expected-error @below {{expects 'config' to have an 'mma', or no fields of tiles, for a kernel without tensor cores, got #kvcache.attention_config<keys = 32, stages = 3>}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<keys = 32, stages = 3>}
      : memref<?x32x128xf32>, !wide, !wide, memref<?xi32>, f32, memref<?x32x128xf32>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @swap_of_narrow_values(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x48xbf16>) {
  // expected-error @below {{expects 'config' to have 'swap_ab' = false here, got true}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<swap_ab = true>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x48xbf16>
  return
}

// -----

!wide = !kvcache.paged<f32, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @swap_of_warps(%q: memref<?x32x128xf32>, %k: !wide, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xf32>) {
  // expected-error @below {{expects 'config' to have an 'mma', or no fields of tiles, for a kernel without tensor cores, got #kvcache.attention_config<swap_ab = true>}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<swap_ab = true>}
      : memref<?x32x128xf32>, !wide, !wide, memref<?xi32>, f32, memref<?x32x128xf32>
  return
}

// -----

!wide = !kvcache.paged<f32, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @persistent_warps(%q: memref<?x32x128xf32>, %k: !wide, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xf32>, %w: memref<?xi8>) {
  // expected-error @below {{expects 'config' to have an 'mma', or no fields of tiles, for a kernel without tensor cores, got #kvcache.attention_config<persistent = 64>}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) workspace %w {config = #kvcache.attention_config<persistent = 64>}
      : memref<?x32x128xf32>, !wide, !wide, memref<?xi32>, f32, memref<?x32x128xf32>, memref<?xi8>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @loads_of_copied_tiles(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'config' to have no 'convert_loads' here, where threads convert no elements, got 9}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<convert_loads = 9>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!mla = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

// The split of a thread block takes 66,560 bytes beside the tiles.
func.func @shared_memory_of_a_cluster(%q: memref<?x32x576xbf16>, %k: !mla, %n: memref<?xi32>, %s: f32, %out: memref<?x32x512xbf16>) {
  // expected-error @below {{expects 'config' to have tiles of at most 231424 bytes of shared memory, got 250880}}
  kvcache.attention %q, %k, %n, %s outs(%out) {split = #kvcache.split<max = 8>, config = #kvcache.attention_config<rows = 32, keys = 64, stages = 2, merge = cluster>}
      : memref<?x32x576xbf16>, !mla, memref<?xi32>, f32, memref<?x32x512xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 72>, page_size = 64>

func.func @cluster_without_tensor_cores(%q: memref<?x32x72xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x72xbf16>) {
  // expected-error @below {{expects 'config' to have an 'mma', or no fields of tiles, for a kernel without tensor cores, got #kvcache.attention_config<merge = cluster>}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {split = #kvcache.split<max = 8>, config = #kvcache.attention_config<merge = cluster>}
      : memref<?x32x72xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x72xbf16>
  return
}
