// RUN: kvcache-opt %s --convert-kvcache-to-memref --split-input-file --verify-diagnostics
// RUN: kvcache-opt %s --kvcache-to-cpu --split-input-file --verify-diagnostics

// Constants that are no multiples of the width of their access.

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>

func.func @load(%k: !cache, %i: index) -> vector<8xbf16> {
  %c12 = arith.constant 12 : index
  // expected-error @below {{'kvcache.load' op expects element 12 to be a multiple of the access's width (8)}}
  %v = kvcache.load %k[%i, %i, %i, %c12] : !cache -> vector<8xbf16>
  return %v : vector<8xbf16>
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>

func.func @store(%k: !cache, %i: index, %v: vector<4xbf16>) {
  %c2 = arith.constant 2 : index
  // expected-error @below {{'kvcache.store' op expects element 2 to be a multiple of the access's width (4)}}
  kvcache.store %v, %k[%i, %i, %i, %c2] : vector<4xbf16>, !cache
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>
!tile = memref<4x64xbf16, strided<[1024, 1], offset: ?>>

func.func @block_tile(%k: !cache, %i: index) -> bf16 {
  %c32 = arith.constant 32 : index
  // expected-error @below {{'kvcache.block_tile' op expects element 32 to be a multiple of the access's width (64)}}
  %m = kvcache.block_tile %k[%i, %i, %i, %c32] : !cache -> !tile
  %x = memref.load %m[%i, %i] : !tile
  return %x : bf16
}

// -----

!cache = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 16, scale = f32, granularity = 32>

func.func @load_quantized(%k: !cache, %i: index) -> vector<16xf8E4M3FN> {
  %c8 = arith.constant 8 : index
  // expected-error @below {{'kvcache.load_quantized' op expects element 8 to be a multiple of the access's width (16)}}
  %v = kvcache.load_quantized %k[%i, %i, %i, %c8] : !cache -> vector<16xf8E4M3FN>
  return %v : vector<16xf8E4M3FN>
}

// -----

!cache = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 16, scale = f32, granularity = 32>

func.func @store_quantized(%k: !cache, %i: index, %v: vector<32xbf16>) {
  %c16 = arith.constant 16 : index
  // expected-error @below {{'kvcache.store_quantized' op expects element 16 to be a multiple of the access's width (32)}}
  kvcache.store_quantized %v, %k[%i, %i, %i, %c16] : vector<32xbf16>, !cache
  return
}

// -----

!cache = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 16, scale = f32, granularity = 32>

func.func @load_scale(%k: !cache, %i: index) -> (f32, vector<2xf32>) {
  %c33 = arith.constant 33 : index
  // One scale is that of the element's group.
  %s = kvcache.load_scale %k[%i, %i, %i, %c33] : !cache -> f32
  // expected-error @below {{'kvcache.load_scale' op expects the group of element 33 to be a multiple of the access's width (2)}}
  %v = kvcache.load_scale %k[%i, %i, %i, %c33] : !cache -> vector<2xf32>
  return %s, %v : f32, vector<2xf32>
}

// -----

!cache = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 16, scale = f32, granularity = 32>
!scales = !kvcache.scales<!cache>

func.func @scales(%s: !scales, %i: index) -> vector<4xf32> {
  %c32 = arith.constant 32 : index
  // expected-error @below {{'kvcache.load' op expects the group of element 32 to be a multiple of the access's width (4)}}
  %v = kvcache.load %s[%i, %i, %i, %c32] : !scales -> vector<4xf32>
  return %v : vector<4xf32>
}

// -----

!cache = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 128>, page_size = 16, scale = f32, granularity = 32>
!scales = !kvcache.scales<!cache>

func.func @load_scale_of_a_view(%s: !scales, %i: index) -> (vector<2xf32>, vector<4xf32>) {
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %u = kvcache.load_scale %s[%i, %i, %i, %c64] : !scales -> vector<2xf32>
  // expected-error @below {{'kvcache.load_scale' op expects the group of element 32 to be a multiple of the access's width (4)}}
  %v = kvcache.load_scale %s[%i, %i, %i, %c32] : !scales -> vector<4xf32>
  return %u, %v : vector<2xf32>, vector<4xf32>
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!kivi = !kvcache.paged<i4, #kv, page_size = 64, scale = f16, zero_point = f16, token_granularity = 32>

func.func @store_from_within_a_group_of_tokens(%v: vector<32x2xbf16>, %k: !kivi, %i: index) {
  %c40 = arith.constant 40 : index
  // expected-error @below {{'kvcache.store_quantized' op expects token 40 to be a multiple of token_granularity (32), because scales are those of whole groups}}
  kvcache.store_quantized %v, %k[%i, %i, %c40, %i] : vector<32x2xbf16>, !kivi
  return
}
