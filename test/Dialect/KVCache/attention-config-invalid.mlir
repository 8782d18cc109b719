// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c7_large_workspace(%q: memref<?x1048576x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x1048576x128xbf16>, %w: memref<?xi8>) {
  // expected-error @below {{expects the workspace of a sequence to have less than 2^63 bytes}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) workspace %w {split = #kvcache.split<max = 1048576, rows = 1048576>} : memref<?x1048576x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x1048576x128xbf16>, memref<?xi8>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c11_persistent(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'persistent' above 0 only with 'workspace'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {config = #kvcache.attention_config<persistent = 8>} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @negative_persistent(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %w: memref<?xi8>) {
  // expected-error @below {{expects 'persistent' to be from 0 to 1048576, got -1}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) workspace %w {config = #kvcache.attention_config<persistent = -1>} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>
  return
}

// -----

// (C1) of workspace_size
func.func @c1_large_workspace(%batch: index) -> index {
  // expected-error @below {{expects the workspace of a sequence to have less than 2^63 bytes}}
  %bytes = kvcache.workspace_size %batch {query_heads = 1048576, value_size = 1048576, split = #kvcache.split<max = 1048576, rows = 4>}
  return %bytes : index
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @window(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{attribute 'window' failed to satisfy constraint}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {window = 0} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C7)
func.func @c7_no_workspace(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'split' only with 'workspace', or with 'merge = cluster' in 'config'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {split = #kvcache.split<rows = 4>} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c7_strided_workspace(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %w: memref<?xi8, strided<[2]>>) {
  // expected-error @below {{expects 'workspace' to be contiguous, got 'memref<?xi8, strided<[2]>>'}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) workspace %w : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8, strided<[2]>>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @max_of_split(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %w: memref<?xi8>) {
  // expected-error @below {{expects 'max' to be from 1 to 1048576, got 0}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) workspace %w {split = #kvcache.split<max = 0>} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>
  return
}

// -----

!cache = !kvcache.paged<f32, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c10_cache(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'config' to have no 'rows', and no 'mma' but 'none', with a cache of type !kvcache.paged<f32, #kvcache.params<num_heads = 8, head_size = 128>, page_size = 64>, got #kvcache.attention_config<rows = 64>}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {config = #kvcache.attention_config<rows = 64>} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c10_queries(%q: memref<?x32x128xf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'config' to have no 'rows', and no 'mma' but 'none', with queries of f16, got #kvcache.attention_config<rows = 64>}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {config = #kvcache.attention_config<rows = 64>} : memref<?x32x128xf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 72>, page_size = 64>

func.func @c10_size(%q: memref<?x32x72xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x72xbf16>) {
  // expected-error @below {{expects 'config' to have no 'rows', and no 'mma' but 'none', with heads of 72 elements, got #kvcache.attention_config<rows = 64>}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {config = #kvcache.attention_config<rows = 64>} : memref<?x32x72xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x72xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 272>, page_size = 64>

func.func @c10_large(%q: memref<?x32x272xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x272xbf16>) {
  // expected-error @below {{expects 'config' to have no 'rows', and no 'mma' but 'none', with heads of 272 elements, got #kvcache.attention_config<rows = 64>}}
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {config = #kvcache.attention_config<rows = 64>} : memref<?x32x272xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x272xbf16>
  return
}

// -----

!mla = !kvcache.paged<bf16, <num_heads = 1, head_size = 656, is_mla = true>, page_size = 64>

func.func @c10_large_latent(%q: memref<?x32x656xbf16>, %k: !mla, %n: memref<?xi32>, %s: f32, %out: memref<?x32x512xbf16>) {
  // expected-error @below {{expects 'config' to have no 'rows', and no 'mma' but 'none', with heads of 656 elements, got #kvcache.attention_config<rows = 32>}}
  kvcache.attention %q, %k, %n, %s outs(%out) {config = #kvcache.attention_config<rows = 32>} : memref<?x32x656xbf16>, !mla, memref<?xi32>, f32, memref<?x32x512xbf16>
  return
}

// -----

!mla = !kvcache.paged<bf16, <num_heads = 1, head_size = 576, is_mla = true>, page_size = 64>

func.func @c10_latent_values(%q: memref<?x32x576xbf16>, %k: !mla, %n: memref<?xi32>, %s: f32, %out: memref<?x32x528xbf16>) {
  // expected-error @below {{expects 'config' to have no 'rows', and no 'mma' but 'none', with heads of 528 elements, got #kvcache.attention_config<rows = 32>}}
  kvcache.attention %q, %k, %n, %s outs(%out) {config = #kvcache.attention_config<rows = 32>} : memref<?x32x576xbf16>, !mla, memref<?xi32>, f32, memref<?x32x528xbf16>
  return
}

// -----

!mla = !kvcache.paged<bf16, <num_heads = 1, head_size = 64, is_mla = true>, page_size = 64>

func.func @c10_latent(%q: memref<?x32x64xbf16>, %k: !mla, %n: memref<?xi32>, %s: f32, %out: memref<?x32x64xbf16>) {
  // expected-error @below {{expects 'config' to have no 'rows', and no 'mma' but 'none', with a latent cache and more than 32 rows, or 64 of 'wgmma' and 'tcgen05', got #kvcache.attention_config<rows = 64>}}
  kvcache.attention %q, %k, %n, %s outs(%out) {config = #kvcache.attention_config<rows = 64>} : memref<?x32x64xbf16>, !mla, memref<?xi32>, f32, memref<?x32x64xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @c10_swap_ab(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'rows' to be 16 or 32 with 'swap_ab = true', got 64}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<swap_ab = true, rows = 64>} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @rows_of_config(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'rows' to be 16, 32, 64, 128 or 256, got 48}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<rows = 48>} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @unknown_field(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{unknown field 'tiles'}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<tiles = 2>} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

// expected-error @below {{expects one of none, mma_sync, wgmma, tcgen05, got hmma}}
#config = #kvcache.attention_config<mma = hmma>

// -----

// expected-error @below {{expects one 'rows'}}
#config = #kvcache.attention_config<rows = 16, rows = 32>

// -----

// expected-error @below {{expects true or false}}
#config = #kvcache.attention_config<swap_ab = yes>

// -----

// expected-error @below {{expects 'keys' to be a multiple of 16 from 16 to 128, got 24}}
#config = #kvcache.attention_config<keys = 24>

// -----

// expected-error @below {{expects 'stages' to be from 1 to 16, got 17}}
#config = #kvcache.attention_config<stages = 17>

// -----

// expected-error @below {{unknown field 'parts'}}
#split = #kvcache.split<parts = 2>

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @old_and_new_names(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects either 'config' or the attributes of earlier versions, not both}}
  // expected-warning @below {{'tile_rows' is now 'rows' of 'config', or 'mma = none'}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {tile_rows = 16, config = #kvcache.attention_config<keys = 64>} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @old_name_of_wrong_type(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'split_rows' to be a number that is not negative}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {split_rows = "a"} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @causal_of_wrong_type(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{'kvcache.attention' op attribute 'causal' failed to satisfy constraint: unit attribute}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {causal = true} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @window_of_wrong_type(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{'kvcache.attention' op attribute 'window' failed to satisfy constraint}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {window = "x"} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @soft_cap_of_wrong_type(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{'kvcache.attention' op attribute 'soft_cap' failed to satisfy constraint}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {soft_cap = "a"} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @config_of_wrong_type(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{'kvcache.attention' op attribute 'config' failed to satisfy constraint}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = 1} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @split_of_wrong_type(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{'kvcache.attention' op attribute 'split' failed to satisfy constraint}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {split = 3} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @negative_old_name(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'tile_rows' to be a number that is not negative}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {tile_rows = -1} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @old_flag_of_wrong_type(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'swap_operands' to be true or false}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {swap_operands = 2} : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @old_name_in_generic_form(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{'kvcache.attention' op has no attribute 'tile_rows': its fields are in 'split' and 'config'}}
  "kvcache.attention"(%q, %k, %k, %n, %s, %out) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, tile_rows = 16 : i64}
      : (memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>) -> ()
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C22)
func.func @partial_without_workspace(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'partial' only with 'workspace'}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {partial, config = #kvcache.attention_config<mma = none>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C22)
func.func @partial_of_tensors(%q: tensor<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %w: memref<?xi8>) {
  // expected-error @below {{expects 'partial' only without tensors}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) workspace %w {partial, config = #kvcache.attention_config<mma = none>}
      : tensor<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C23)
func.func @partial_without_dequant(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %w: memref<?xi8>) {
  // expected-error @below {{expects 'partial' only with a 'config' that has 'mma', 'rows', 'keys' and 'dequant', or 'mma = none'}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) workspace %w {partial, config = #kvcache.attention_config<mma = mma_sync, rows = 16, keys = 32>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C23)
func.func @partial_without_config(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %w: memref<?xi8>) {
  // expected-error @below {{expects 'partial' only with a 'config' that has 'mma', 'rows', 'keys' and 'dequant', or 'mma = none'}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) workspace %w {partial}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>
  return
}

// -----

func.func @earlier_name_in_generic_form(%batch: index) -> index {
  // expected-error @below {{'kvcache.workspace_size' op has no attribute 'max_splits': its fields are in 'split'}}
  %bytes = "kvcache.workspace_size"(%batch) <{query_heads = 32 : i64, value_size = 128 : i64}> {max_splits = 16 : i64} : (index) -> index
  return %bytes : index
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C4) of the config
func.func @cluster_of_a_persistent_kernel(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'persistent' to be 0 with 'merge = cluster', got 8}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {split = #kvcache.split<max = 4>, config = #kvcache.attention_config<persistent = 8, merge = cluster>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C5) of the config
func.func @cluster_with_wgmma(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'mma' to be mma_sync with 'merge = cluster', got wgmma}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {split = #kvcache.split<max = 4>, config = #kvcache.attention_config<mma = wgmma, merge = cluster>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @unknown_merge(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects one of launch, cluster, got block}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<merge = block>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C26)
func.func @cluster_of_nine_splits(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'max' of 'split' to be from 2 to 8 with 'merge = cluster' in 'config', got 9}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {split = #kvcache.split<max = 9>, config = #kvcache.attention_config<merge = cluster>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C26)
func.func @cluster_of_one_split(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'max' of 'split' to be from 2 to 8 with 'merge = cluster' in 'config', got 1}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {split = #kvcache.split<max = 1>, config = #kvcache.attention_config<merge = cluster>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C26)
func.func @cluster_of_default_splits(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  // expected-error @below {{expects 'max' of 'split' to be from 2 to 8 with 'merge = cluster' in 'config', got 32}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {config = #kvcache.attention_config<merge = cluster>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C27)
func.func @partial_of_a_cluster(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %w: memref<?xi8>) {
  // expected-error @below {{expects no 'partial' with 'merge = cluster' in 'config'}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) workspace %w {partial, split = #kvcache.split<max = 4>, config = #kvcache.attention_config<mma = mma_sync, rows = 16, keys = 64, dequant = tile, merge = cluster>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

// (C27)
func.func @rows_of_a_cluster(%q: memref<?x32x128xbf16>, %k: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %r: memref<?x?xi32>) {
  // expected-error @below {{expects no 'rows' with 'merge = cluster' in 'config'}}
  kvcache.attention %q, %k, %k, %n, %s outs(%out) {split = #kvcache.split<max = 4>, config = #kvcache.attention_config<merge = cluster>} rows %r
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x?xi32>
  return
}
