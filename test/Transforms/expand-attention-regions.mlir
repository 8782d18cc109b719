// RUN: kvcache-opt %s --kvcache-expand-ops | FileCheck %s --check-prefix=CPU
// RUN: sed "s/swap_ab = true, //" %s | kvcache-opt --kvcache-expand-ops=for-gpu | FileCheck %s --check-prefixes=GPU,MAP,MMA
// RUN: kvcache-opt %s --kvcache-expand-ops="for-gpu chip=sm_90a" | FileCheck %s --check-prefixes=GPU,MAP,WGMMA
// RUN: sed "s/swap_ab = true, //" %s | kvcache-opt --kvcache-expand-ops="for-gpu chip=sm_100a" | FileCheck %s --check-prefixes=GPU,MAP,TMEM

// The slope of a row is loaded once for each row of a lane, the document of the
// sequence once, and that of a token once for each token of a lane. The slopes
// are %arg6, and the documents %arg7. Bounds of tokens load the document of the
// sequence before the loop, and without tensor cores also in it. On the CPU,
// lanes are tokens for few rows, and rows for many: their slopes are loaded
// before the loop over tokens, of which 4 are computed at once.

#kv = #kvcache.params<num_heads = 2, head_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!bytes = !kvcache.paged<f8E4M3FN, #kv, page_size = 64>
!rows = memref<?x8x64xbf16>

// CPU-LABEL: func.func @tiles(
// CPU-COUNT-2: memref.load %arg7[
// CPU: memref.load %arg6[
// CPU-COUNT-17: memref.load %arg7[
// CPU-COUNT-3: memref.load %arg6[
// CPU-COUNT-2: memref.load %arg7[
// CPU-COUNT-16: memref.load %arg6[
// CPU-NEXT: memref.load %arg7[
// CPU: scf.for
// CPU-COUNT-4: memref.load %arg7[
// CPU-NOT: memref.load %arg{{[67]}}[
// MMA-LABEL: func.func @tiles(
// MMA: kvcache.fragment_mma
// MMA: memref.load %arg6[
// MMA-COUNT-2: memref.load %arg7[
// MMA-NOT: memref.load %arg{{[67]}}[
// MMA: kvcache.fragment_mma
// WGMMA-LABEL: func.func @tiles(
// WGMMA: kvcache.fragment_mma
// WGMMA: memref.load %arg6[
// WGMMA-COUNT-2: memref.load %arg7[
// WGMMA-NOT: memref.load %arg{{[67]}}[
// WGMMA: kvcache.fragment_mma
// TMEM-LABEL: func.func @tiles(
// TMEM: kvcache.tmem_mma
// TMEM: memref.load %arg6[
// TMEM-COUNT-2: memref.load %arg7[
// TMEM-NOT: memref.load %arg{{[67]}}[
// TMEM: kvcache.tmem_mma
func.func @tiles(%q: !rows, %keys: !cache, %values: !cache, %offsets: memref<?xi32>, %scale: f32, %out: !rows,
    %slopes: memref<8xf32>, %documents: memref<?xi32>) {
  kvcache.attention %q, %keys, %values, %offsets, %scale outs(%out) {causal}
      score {
      ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
        %slope = memref.load %slopes[%head] : memref<8xf32>
        %y = arith.mulf %s, %slope : f32
        kvcache.yield %y : f32
      } mask {
      ^bb0(%sequence: index, %head: index, %query: index, %key: index):
        %own = memref.load %documents[%sequence] : memref<?xi32>
        %other = memref.load %documents[%key] : memref<?xi32>
        %sees = arith.cmpi eq, %own, %other : i32
        kvcache.yield %sees : i1
      } : !rows, !cache, !cache, memref<?xi32>, f32, !rows
  return
}

// CPU-LABEL: func.func @swap_ab(
// MMA-LABEL: func.func @swap_ab(
// MMA: kvcache.fragment_mma
// MMA: memref.load %arg6[
// MMA-COUNT-2: memref.load %arg7[
// MMA-NOT: memref.load %arg{{[67]}}[
// MMA: kvcache.fragment_mma
// WGMMA-LABEL: func.func @swap_ab(
// WGMMA: kvcache.fragment_mma
// WGMMA: memref.load %arg6[
// WGMMA-COUNT-2: memref.load %arg7[
// WGMMA-NOT: memref.load %arg{{[67]}}[
// WGMMA: kvcache.fragment_mma
// TMEM-LABEL: func.func @swap_ab(
// TMEM: kvcache.fragment_mma
// TMEM: memref.load %arg6[
// TMEM-COUNT-2: memref.load %arg7[
// TMEM-NOT: memref.load %arg{{[67]}}[
// TMEM: kvcache.fragment_mma
func.func @swap_ab(%q: !rows, %keys: !cache, %values: !cache, %offsets: memref<?xi32>, %scale: f32, %out: !rows,
    %slopes: memref<8xf32>, %documents: memref<?xi32>) {
  kvcache.attention %q, %keys, %values, %offsets, %scale outs(%out) {causal, config = #kvcache.attention_config<swap_ab = true, rows = 16>}
      score {
      ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
        %slope = memref.load %slopes[%head] : memref<8xf32>
        %y = arith.mulf %s, %slope : f32
        kvcache.yield %y : f32
      } mask {
      ^bb0(%sequence: index, %head: index, %query: index, %key: index):
        %own = memref.load %documents[%sequence] : memref<?xi32>
        %other = memref.load %documents[%key] : memref<?xi32>
        %sees = arith.cmpi eq, %own, %other : i32
        kvcache.yield %sees : i1
      } : !rows, !cache, !cache, memref<?xi32>, f32, !rows
  return
}

// MAP-LABEL: func.func @dequantized(
// MAP: kvcache.fragment_mma
// MAP: memref.load %arg6[
// MAP-COUNT-2: memref.load %arg7[
// MAP-NOT: memref.load %arg{{[67]}}[
// MAP: kvcache.fragment_mma
func.func @dequantized(%q: !rows, %keys: !bytes, %values: !bytes, %offsets: memref<?xi32>, %scale: f32, %out: !rows,
    %slopes: memref<8xf32>, %documents: memref<?xi32>) {
  kvcache.attention %q, %keys, %values, %offsets, %scale outs(%out) {causal, tile_rows = 16}
      score {
      ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
        %slope = memref.load %slopes[%head] : memref<8xf32>
        %y = arith.mulf %s, %slope : f32
        kvcache.yield %y : f32
      } mask {
      ^bb0(%sequence: index, %head: index, %query: index, %key: index):
        %own = memref.load %documents[%sequence] : memref<?xi32>
        %other = memref.load %documents[%key] : memref<?xi32>
        %sees = arith.cmpi eq, %own, %other : i32
        kvcache.yield %sees : i1
      } : !rows, !bytes, !bytes, memref<?xi32>, f32, !rows
  return
}

// GPU-LABEL: func.func @warps(
// GPU: gpu.shuffle
// GPU: memref.load %arg6[
// GPU-COUNT-5: memref.load %arg7[
// GPU-COUNT-3: memref.load %arg6[
// GPU-NOT: memref.load %arg{{[67]}}[
func.func @warps(%q: !rows, %keys: !cache, %values: !cache, %offsets: memref<?xi32>, %scale: f32, %out: !rows,
    %slopes: memref<8xf32>, %documents: memref<?xi32>) {
  kvcache.attention %q, %keys, %values, %offsets, %scale outs(%out) {causal, tile_rows = 0}
      score {
      ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
        %slope = memref.load %slopes[%head] : memref<8xf32>
        %y = arith.mulf %s, %slope : f32
        kvcache.yield %y : f32
      } mask {
      ^bb0(%sequence: index, %head: index, %query: index, %key: index):
        %own = memref.load %documents[%sequence] : memref<?xi32>
        %other = memref.load %documents[%key] : memref<?xi32>
        %sees = arith.cmpi eq, %own, %other : i32
        kvcache.yield %sees : i1
      } : !rows, !cache, !cache, memref<?xi32>, f32, !rows
  return
}

// Tokens past the end have positions of their own, unless an op that depends on
// the token reads or may trap.
// CPU-LABEL: func.func @bias(
// CPU-NOT: arith.minui
// CPU-LABEL: func.func @bias_of_tokens(
// CPU: arith.minui {{.*}} : vector<16xi32>
// CPU-COUNT-4: arith.minui {{.*}} : i32
// MAP-LABEL: func.func @bias(
// MAP-NOT: arith.minui
// MAP-LABEL: func.func @bias_of_tokens(
// MAP: arith.minui {{.*}} : i32
// MAP-NOT: arith.minui
func.func @bias(%q: !rows, %keys: !cache, %values: !cache, %offsets: memref<?xi32>, %scale: f32, %out: !rows,
    %slopes: memref<8xf32>) {
  kvcache.attention %q, %keys, %values, %offsets, %scale outs(%out)
      score {
      ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
        %slope = memref.load %slopes[%head] : memref<8xf32>
        %integer = arith.index_cast %key : index to i32
        %float = arith.sitofp %integer : i32 to f32
        %y = math.fma %slope, %float, %s : f32
        kvcache.yield %y : f32
      } : !rows, !cache, !cache, memref<?xi32>, f32, !rows
  return
}

func.func @bias_of_tokens(%q: !rows, %keys: !cache, %values: !cache, %offsets: memref<?xi32>, %scale: f32,
    %out: !rows, %biases: memref<?xf32>) {
  kvcache.attention %q, %keys, %values, %offsets, %scale outs(%out)
      score {
      ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
        %bias = memref.load %biases[%key] : memref<?xf32>
        %y = arith.addf %s, %bias : f32
        kvcache.yield %y : f32
      } : !rows, !cache, !cache, memref<?xi32>, f32, !rows
  return
}
