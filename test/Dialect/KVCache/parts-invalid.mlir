// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

func.func @blocks_of_a_memref(%m: memref<?xf32>) {
  // expected-error @below {{'kvcache.blocks' op operand #0 must be view or collection that has memory, but got 'memref<?xf32>'}}
  %0 = "kvcache.blocks"(%m) : (memref<?xf32>) -> memref<?x64x8x128xbf16>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @blocks_of_another_type(%k: !cache) {
  // expected-error @below {{failed to infer returned types}}
  // expected-error @below {{are incompatible with return type(s) of operation 'memref<?x64x8x128xbf16>'}}
  %0 = "kvcache.blocks"(%k) : (!cache) -> memref<?x64x8x128xbf16>
  return
}

// -----

func.func @lengths_of_a_memref(%m: memref<?xf32>) {
  // expected-error @below {{'kvcache.cache_lengths' op operand #0 must be view or collection, but got 'memref<?xf32>'}}
  %0 = "kvcache.cache_lengths"(%m) : (memref<?xf32>) -> memref<?xi32, strided<[1], offset: ?>>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @lengths_of_64_bits(%k: !cache) {
  // expected-error @below {{'kvcache.cache_lengths' op result #0 must be 1D memref of 32-bit signless integer values, but got 'memref<?xi64>'}}
  %0 = "kvcache.cache_lengths"(%k) : (!cache) -> memref<?xi64>
  return
}
