// RUN: kvcache-opt %s --verify-roundtrip | FileCheck %s
// RUN: kvcache-opt %s --mlir-print-op-generic | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --emit-bytecode | kvcache-opt | FileCheck %s

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#latent = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!fp8 = !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 32>
!mla = !kvcache.paged<bf16, #latent, page_size = 64>
#content = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
#rope = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!content = !kvcache.paged<f8E4M3FN, #content, page_size = 64, scale = f32, granularity = 128, layout = [token = 656], scale_layout = [token = 164]>
!rope = !kvcache.paged<bf16, #rope, page_size = 64, layout = [token = 328]>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!rows = memref<?x8x128xbf16>

// CHECK-LABEL: func.func @append(
// CHECK:         kvcache.append %{{.*}}, %{{.*}} to %{{.*}}, %{{.*}} rows %{{.*}} : memref<?x8x128xbf16>, memref<?x8x128xbf16>, !kvcache.paged
// CHECK:         kvcache.append %{{.*}}, %{{.*}} to %{{.*}}, %{{.*}} rows %{{.*}} slots %{{.*}} norm %{{.*}} query_norm %{{.*}} rope %{{.*}} positions %{{.*}} queries %{{.*}} {epsilon = 9.99999974E-6 : f32, interleaved, rope_axes = array<i64: 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, {{.*}}, 2, 2>, rope_begin = 64 : i64}
func.func @append(%k: !rows, %v: !rows, %keys: !cache, %values: !fp8, %offsets: memref<?xi32>, %slots: memref<?xi64>,
                  %w: memref<128xbf16>, %table: memref<?x64xf32>, %positions: memref<3x?xi32>, %q: memref<?x32x128xbf16>) {
  kvcache.append %k, %v to %keys, %keys rows %offsets : !rows, !rows, !cache, !cache, memref<?xi32>
  kvcache.append %k, %v to %keys, %values rows %offsets slots %slots norm %w query_norm %w rope %table
      positions %positions queries %q {epsilon = 1.0e-5 : f32, rope_begin = 64 : i64, interleaved,
        rope_axes = array<i64: 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2>}
      : !rows, !rows, !cache, !fp8, memref<?xi32>, memref<?xi64>, memref<128xbf16>, memref<128xbf16>,
        memref<?x64xf32>, memref<3x?xi32>, memref<?x32x128xbf16>
  return
}

// CHECK-LABEL: func.func @static_scales(
// CHECK:         kvcache.append %{{.*}}, %{{.*}} to %{{.*}}, %{{.*}} rows %{{.*}} key_scale %{{.*}} value_scale %{{.*}} :
// CHECK:         kvcache.gather %{{.*}}, %{{.*}} outs(%{{.*}}, %{{.*}}) output_offsets %{{.*}} key_scale %{{.*}} value_scale %{{.*}} :
func.func @static_scales(%k: !rows, %v: !rows, %fp8: !fp8, %n: memref<?xi32>, %one: f32, %each: memref<8xf32>) {
  kvcache.append %k, %v to %fp8, %fp8 rows %n key_scale %one value_scale %each
      : !rows, !rows, !fp8, !fp8, memref<?xi32>, f32, memref<8xf32>
  kvcache.gather %fp8, %fp8 outs(%k, %v) output_offsets %n key_scale %one value_scale %each
      : !fp8, !fp8, !rows, !rows, memref<?xi32>, f32, memref<8xf32>
  return
}

// CHECK-LABEL: func.func @append_latent(
// CHECK:         kvcache.append %{{.*}} with %{{.*}} to %{{.*}} rows
func.func @append_latent(%k: memref<?x1x512xbf16>, %r: memref<?x1x64xbf16>, %cache: !mla, %offsets: memref<?xi32>) {
  kvcache.append %k with %r to %cache rows %offsets
      : memref<?x1x512xbf16>, memref<?x1x64xbf16>, !mla, memref<?xi32>
  return
}

// CHECK-LABEL: func.func @append_tensors(
// CHECK:         %[[Q:.*]] = kvcache.append {{.*}} queries %{{.*}} -> tensor<?x32x128xbf16>
// CHECK:         return %[[Q]]
func.func @append_tensors(%k: tensor<?x8x128xbf16>, %keys: !cache, %offsets: tensor<?xi32>, %table: tensor<?x64xf32>,
                          %q: tensor<?x32x128xbf16>) -> tensor<?x32x128xbf16> {
  %r = kvcache.append %k, %k to %keys, %keys rows %offsets rope %table queries %q
      : tensor<?x8x128xbf16>, tensor<?x8x128xbf16>, !cache, !cache, tensor<?xi32>, tensor<?x64xf32>, tensor<?x32x128xbf16>
      -> tensor<?x32x128xbf16>
  return %r : tensor<?x32x128xbf16>
}

// CHECK-LABEL: func.func @gather(
// CHECK:         kvcache.gather %{{.*}}, %{{.*}} rows %{{.*}} begin %{{.*}} end %{{.*}} outs(%{{.*}}, %{{.*}}) :
// CHECK:         kvcache.gather %{{.*}} outs(%{{.*}}) :
func.func @gather(%keys: !cache, %fp8: !fp8, %n: memref<?xi32>, %a: memref<?x?x8x128xf32>, %b: memref<?x?x8x128xbf16>) {
  kvcache.gather %keys, %fp8 rows %n begin %n end %n outs(%a, %b)
      : !cache, !fp8, memref<?xi32>, memref<?xi32>, memref<?xi32>, memref<?x?x8x128xf32>, memref<?x?x8x128xbf16>
  kvcache.gather %fp8 outs(%a) : !fp8, memref<?x?x8x128xf32>
  return
}

// CHECK-LABEL: func.func @copies(
// CHECK:         kvcache.copy %{{.*}} to %{{.*}} begin %{{.*}} end %{{.*}} {heads = 2 : i64, source_head = 6 : i64, target_head = 1 : i64}
// CHECK:         kvcache.copy %{{.*}} to %{{.*}} source_scale %{{.*}} target_scale %{{.*}} {heads = 4 : i64, target_head = 4 : i64} :
// CHECK:         kvcache.copy_pages %{{.*}} pairs %{{.*}} :
func.func @copies(%a: !cache, %b: !fp8, %n: memref<?xi32>, %c: !collection, %pairs: memref<?x2xi32>, %one: f32,
                  %each: memref<8xf32>) {
  kvcache.copy %a to %b begin %n end %n {source_head = 6 : i64, target_head = 1 : i64, heads = 2 : i64}
      : !cache, !fp8, memref<?xi32>, memref<?xi32>
  kvcache.copy %b to %b source_scale %one target_scale %each {heads = 4, target_head = 4} : !fp8, !fp8, f32, memref<8xf32>
  kvcache.copy_pages %c pairs %pairs : !collection, memref<?x2xi32>
  return
}

// CHECK-LABEL: func.func @merge_and_remap(
// CHECK:         kvcache.merge_states %{{.*}}, %{{.*}} outs(%{{.*}}, %{{.*}}) : {{.*}} -> tensor<?x32x128xbf16>, tensor<?x32xf32>
// CHECK:         kvcache.remap_rows %{{.*}}, %{{.*}} rows %{{.*}} outs(%{{.*}}) :
func.func @merge_and_remap(%splits: tensor<?x?x32x128xbf16>, %lses: tensor<?x?x32xf32>, %out: tensor<?x32x128xbf16>,
                           %lse: tensor<?x32xf32>, %tokens: memref<?x64xi32>, %mla: !mla, %n: memref<?xi32>) {
  %r:2 = kvcache.merge_states %splits, %lses outs(%out, %lse)
      : tensor<?x?x32x128xbf16>, tensor<?x?x32xf32>, tensor<?x32x128xbf16>, tensor<?x32xf32>
      -> tensor<?x32x128xbf16>, tensor<?x32xf32>
  kvcache.remap_rows %tokens, %mla rows %n outs(%tokens) : memref<?x64xi32>, !mla, memref<?xi32>, memref<?x64xi32>
  return
}

// CHECK-LABEL: func.func @attention(
// CHECK:         kvcache.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} outs(%{{.*}}) : memref<?x32x128xbf16>
// CHECK:         kvcache.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} outs(%{{.*}}) {config = #kvcache.attention_config<swap_ab = false, rows = 128, l2_hint = evict_last>} :
// CHECK:         kvcache.attention {{.*}} outs(%{{.*}}, %{{.*}}) workspace %{{.*}} {causal, chunk = 8192 : i64, config = #kvcache.attention_config<persistent = 264>, soft_cap = 5.000000e+01 : f64, window = 4096 : i64} sinks %{{.*}} mask %{{.*}} lengths %{{.*}} :
func.func @attention(%q: memref<?x32x128xbf16>, %keys: !cache, %values: !fp8, %n: memref<?xi32>, %scale: f32,
                     %out: memref<?x32x128xbf16>, %short: memref<?x32x64xf32>, %lse: memref<?x32xf32>,
                     %w: memref<?xi8>, %sinks: memref<32xf32>, %bits: memref<?x?xi32>) {
  kvcache.attention %q, %keys, %values, %n, %scale outs(%out)
      : memref<?x32x128xbf16>, !cache, !fp8, memref<?xi32>, f32, memref<?x32x128xbf16>
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out) {config = #kvcache.attention_config<swap_ab = false, rows = 128, l2_hint = evict_last>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  kvcache.attention %q, %keys, %values, %n, %scale outs(%short, %lse) workspace %w
      {causal, window = 4096, soft_cap = 50.0, chunk = 8192, config = #kvcache.attention_config<persistent = 264>} sinks %sinks mask %bits lengths %n
      : memref<?x32x128xbf16>, !cache, !fp8, memref<?xi32>, f32, memref<?x32x64xf32>, memref<?x32xf32>, memref<?xi8>,
        memref<32xf32>, memref<?x?xi32>, memref<?xi32>
  return
}

// CHECK-LABEL: func.func @masks_and_statistics(
// CHECK:         kvcache.attention {{.*}} outs(%{{.*}}, %{{.*}}) max_logits %{{.*}} workspace %{{.*}} {sinkless_lse, whole_mask} sinks %{{.*}} mask %{{.*}} ranges %{{.*}} :
// CHECK:         kvcache.attention {{.*}} outs(%{{.*}}) max_logits %{{.*}} ranges %{{.*}} : {{.*}} -> tensor<?x32x128xbf16>, tensor<?x32xf32>
func.func @masks_and_statistics(%q: memref<?x32x128xbf16>, %keys: !cache, %n: memref<?xi32>, %scale: f32, %out: memref<?x32x128xbf16>,
                                %lse: memref<?x32xf32>, %m: memref<?x32xf32>, %w: memref<?xi8>, %sinks: memref<32xf32>,
                                %bits: memref<?x?xi32>, %ranges: memref<?x?x2xi32>) {
  kvcache.attention %q, %keys, %keys, %n, %scale outs(%out, %lse) max_logits %m workspace %w
      {sinkless_lse, whole_mask} sinks %sinks mask %bits ranges %ranges
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x32xf32>, memref<?x32xf32>,
        memref<?xi8>, memref<32xf32>, memref<?x?xi32>, memref<?x?x2xi32>
  return
}
func.func @maxima_of_tensors(%q: tensor<?x32x128xbf16>, %keys: !cache, %n: tensor<?xi32>, %scale: f32, %out: tensor<?x32x128xbf16>,
                             %m: tensor<?x32xf32>, %ranges: tensor<?x1x2xi32>) -> tensor<?x32xf32> {
  %r:2 = kvcache.attention %q, %keys, %keys, %n, %scale outs(%out) max_logits %m ranges %ranges
      : tensor<?x32x128xbf16>, !cache, !cache, tensor<?xi32>, f32, tensor<?x32x128xbf16>, tensor<?x32xf32>, tensor<?x1x2xi32>
      -> tensor<?x32x128xbf16>, tensor<?x32xf32>
  return %r#1 : tensor<?x32xf32>
}

// CHECK-LABEL: func.func @latent_attention(
// CHECK:         kvcache.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} outs(%{{.*}}, %{{.*}}) rows %{{.*}} : {{.*}} -> tensor<?x128x512xbf16>, tensor<?x128xf32>
func.func @latent_attention(%q: tensor<?x128x576xbf16>, %cache: !mla, %n: tensor<?xi32>, %scale: f32,
                            %out: tensor<?x128x512xbf16>, %lse: tensor<?x128xf32>, %ids: tensor<?x2048xi32>)
    -> tensor<?x128x512xbf16> {
  %r:2 = kvcache.attention %q, %cache, %n, %scale outs(%out, %lse) rows %ids
      : tensor<?x128x576xbf16>, !mla, tensor<?xi32>, f32, tensor<?x128x512xbf16>, tensor<?x128xf32>, tensor<?x2048xi32>
      -> tensor<?x128x512xbf16>, tensor<?x128xf32>
  return %r#0 : tensor<?x128x512xbf16>
}

// CHECK-LABEL: func.func @narrow_attention(
// CHECK:         kvcache.attention {{.*}} outs(%{{.*}}) query_scale %{{.*}} out_scale %{{.*}} : memref<?x32x128xf8E4M3FN>, {{.*}}, memref<?x32x128xf8E5M2>, f32, memref<32xf32>
func.func @narrow_attention(%q: memref<?x32x128xf8E4M3FN>, %cache: !fp8, %n: memref<?xi32>, %scale: f32,
                            %out: memref<?x32x128xf8E5M2>, %each: memref<32xf32>) {
  kvcache.attention %q, %cache, %cache, %n, %scale outs(%out) query_scale %scale out_scale %each
      : memref<?x32x128xf8E4M3FN>, !fp8, !fp8, memref<?xi32>, f32, memref<?x32x128xf8E5M2>, f32, memref<32xf32>
  return
}

// CHECK-LABEL: func.func @attention_to_fields(
// CHECK:         kvcache.attention {{.*}} outs(%{{.*}}) {causal} q_rope %{{.*}} rope_cache %{{.*}} : memref<?x16x512xbf16, strided<[?, ?, 1]>>, {{.*}}, memref<?x16x64xbf16, strided<[?, ?, 1]>>,
// CHECK:         kvcache.attention {{.*}} rope_cache %{{.*}} : tensor<?x16x576xbf16>, {{.*}} -> tensor<?x16x512xbf16>
func.func @attention_to_fields(%q: memref<?x16x512xbf16, strided<[?, ?, 1]>>, %p: memref<?x16x64xbf16, strided<[?, ?, 1]>>,
                               %keys: !content, %ropes: !rope, %n: memref<?xi32>, %scale: f32, %out: memref<?x16x512xbf16>,
                               %whole: tensor<?x16x576xbf16>, %rows: tensor<?xi32>, %init: tensor<?x16x512xbf16>) -> tensor<?x16x512xbf16> {
  kvcache.attention %q, %keys, %n, %scale outs(%out) {causal} q_rope %p rope_cache %ropes
      : memref<?x16x512xbf16, strided<[?, ?, 1]>>, !content, memref<?xi32>, f32, memref<?x16x512xbf16>,
        memref<?x16x64xbf16, strided<[?, ?, 1]>>, !rope
  %r = kvcache.attention %whole, %keys, %rows, %scale outs(%init) rope_cache %ropes
      : tensor<?x16x576xbf16>, !content, tensor<?xi32>, f32, tensor<?x16x512xbf16>, !rope -> tensor<?x16x512xbf16>
  return %r : tensor<?x16x512xbf16>
}

// CHECK-LABEL: func.func @queries_of_fp8(
// CHECK:         kvcache.append {{.*}} queries %{{.*}} query_out %{{.*}} query_scale %{{.*}} : {{.*}}, memref<?x32x128xf8E4M3FN>, memref<32xf32>
func.func @queries_of_fp8(%k: !rows, %cache: !cache, %n: memref<?xi32>, %q: memref<?x32x128xbf16>, %out: memref<?x32x128xf8E4M3FN>,
                          %scale: memref<32xf32>) {
  kvcache.append %k to %cache rows %n queries %q query_out %out query_scale %scale
      : !rows, !cache, memref<?xi32>, memref<?x32x128xbf16>, memref<?x32x128xf8E4M3FN>, memref<32xf32>
  return
}

// CHECK-LABEL: func.func @merge_to_fp8(
// CHECK:         kvcache.merge_states %{{.*}}, %{{.*}} outs(%{{.*}}, %{{.*}}) out_scale %{{.*}} {block_threads = 64 : i64} : {{.*}}, memref<?x32x128xf8E5M2>, memref<?x32xf32>, f32
func.func @merge_to_fp8(%splits: memref<?x?x32x128xbf16>, %lses: memref<?x?x32xf32>, %out: memref<?x32x128xf8E5M2>,
                        %lse: memref<?x32xf32>, %scale: f32) {
  kvcache.merge_states %splits, %lses outs(%out, %lse) out_scale %scale {block_threads = 64}
      : memref<?x?x32x128xbf16>, memref<?x?x32xf32>, memref<?x32x128xf8E5M2>, memref<?x32xf32>, f32
  return
}

// CHECK-LABEL: func.func @split_attention(
// CHECK:         kvcache.workspace_size %{{.*}} {query_heads = 32 : i64, value_size = 128 : i64}
// CHECK:         kvcache.workspace_size %{{.*}} {query_heads = 32 : i64, split = #kvcache.split<keys = 256, max = 16, rows = 4>, value_size = 128 : i64}
// CHECK:         kvcache.attention {{.*}} workspace %{{.*}} {split = #kvcache.split<keys = 512, max = 16, rows = 4>} key_scale %{{.*}} value_scale %{{.*}} :
func.func @split_attention(%q: memref<?x32x128xbf16>, %cache: !fp8, %n: memref<?xi32>, %scale: f32,
                           %out: memref<?x32x128xbf16>, %w: memref<?xi8>, %each: memref<8xf32>, %batch: index)
    -> (index, index) {
  %0 = kvcache.workspace_size %batch {query_heads = 32, value_size = 128}
  %1 = kvcache.workspace_size %batch {query_heads = 32, value_size = 128, split = #kvcache.split<max = 16, rows = 4>}
  kvcache.attention %q, %cache, %cache, %n, %scale outs(%out) workspace %w
      {split = #kvcache.split<keys = 512, max = 16, rows = 4>} key_scale %scale value_scale %each
      : memref<?x32x128xbf16>, !fp8, !fp8, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>, f32, memref<8xf32>
  return %0, %1 : index, index
}

// CHECK-LABEL: func.func @tiling_hints(
// CHECK:         kvcache.append %{{.*}} {block_threads = 1024 : i64, interleaved} :
// CHECK:         kvcache.gather %{{.*}} {block_threads = 32 : i64, heads_per_thread = 32 : i64} :
// CHECK:         kvcache.copy %{{.*}} {heads = 4 : i64, heads_per_thread = 1 : i64, target_head = 4 : i64} :
// CHECK:         kvcache.copy_pages %{{.*}} {block_threads = 64 : i64} :
// CHECK:         kvcache.merge_states %{{.*}} {block_threads = 128 : i64} :
// CHECK:         kvcache.remap_rows %{{.*}} {block_threads = 96 : i64} :
func.func @tiling_hints(%k: !rows, %cache: !cache, %n: memref<?xi32>, %rope: memref<?x64xf32>, %out: memref<?x?x8x128xbf16>,
                        %collection: !collection, %pairs: memref<?x2xi32>, %lses: memref<?x?x8xf32>, %lse: memref<?x8xf32>,
                        %tokens: memref<?x4xi32>) {
  kvcache.append %k to %cache rows %n rope %rope {block_threads = 1024, interleaved} : !rows, !cache, memref<?xi32>, memref<?x64xf32>
  kvcache.gather %cache outs(%out) {block_threads = 32, heads_per_thread = 32} : !cache, memref<?x?x8x128xbf16>
  kvcache.copy %cache to %cache {heads_per_thread = 1, heads = 4, target_head = 4} : !cache, !cache
  kvcache.copy_pages %collection pairs %pairs {block_threads = 64} : !collection, memref<?x2xi32>
  kvcache.merge_states %out, %lses outs(%k, %lse) {block_threads = 128} : memref<?x?x8x128xbf16>, memref<?x?x8xf32>, !rows, memref<?x8xf32>
  kvcache.remap_rows %tokens, %cache rows %n outs(%tokens) {block_threads = 96} : memref<?x4xi32>, !cache, memref<?xi32>, memref<?x4xi32>
  return
}

// CHECK-LABEL: func.func @merge_splits(
// CHECK:         kvcache.attention {{.*}} workspace %{{.*}} {config = #kvcache.attention_config<mma = none>, partial} : {{.*}}
// CHECK:         kvcache.merge_splits %{{.*}}, %{{.*}} outs(%{{.*}}) count {
// CHECK-NEXT:    ^bb0(%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %[[I:.*]]: index):
// CHECK-NEXT:      kvcache.yield %[[I]] : index
// CHECK-NEXT:    } : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>
// CHECK:         kvcache.merge_splits {{.*}} outs(%{{.*}}, %{{.*}}) max_logits %{{.*}} sinks %{{.*}} value_scale %{{.*}} out_scale %{{.*}} {exponent_bias = 1.500000e+01 : f32, sinkless_lse, split = #kvcache.split<keys = 256, max = 32, rows = 4>} count {
func.func @merge_splits(%q: memref<?x32x128xbf16>, %cache: !cache, %n: memref<?xi32>, %scale: f32,
                        %out: memref<?x32x128xbf16>, %narrow: memref<?x32x128xf8E4M3FN>, %lse: memref<?x32xf32>,
                        %most: memref<?x32xf32>, %sinks: memref<32xbf16>, %w: memref<?xi8>, %each: memref<8xf32>) {
  kvcache.attention %q, %cache, %cache, %n, %scale outs(%out) workspace %w
      {partial, config = #kvcache.attention_config<mma = none>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>
  kvcache.merge_splits %w, %n outs(%out) count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      kvcache.yield %i : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>
  kvcache.merge_splits %w, %n outs(%narrow, %lse) max_logits %most sinks %sinks value_scale %each out_scale %scale
      {sinkless_lse, exponent_bias = 15.0 : f32, split = #kvcache.split<keys = 256, max = 32, rows = 4>} count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      kvcache.yield %rows : index
    }
    : memref<?xi8>, memref<?xi32>, memref<?x32x128xf8E4M3FN>, memref<?x32xf32>, memref<?x32xf32>, memref<32xbf16>,
      memref<8xf32>, f32
  return
}
