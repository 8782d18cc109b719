// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{expects rows and columns to be positive, got 0x128}}
func.func private @c1_rows(!kvcache.tile<0x128xbf16>)

// -----

// expected-error @below {{expects a tile of fewer than 2^31 bytes, got 65536x32768 of 'i8'}}
func.func private @c1_bytes(!kvcache.tile<65536x32768xi8>)

// -----

// expected-error @below {{expects an integer or float element type of 1, 2, 4 or 8 bytes, got 'f4E2M1FN'}}
func.func private @c2_half_bytes(!kvcache.tile<8x32xf4E2M1FN>)

// -----

// expected-error @below {{expects an integer or float element type of 1, 2, 4 or 8 bytes, got 'index'}}
func.func private @c2_index(!kvcache.tile<8x32xindex>)

// -----

// expected-error @below {{expects an integer or float element type of 1, 2, 4 or 8 bytes, got 'i24'}}
func.func private @c2_odd_integers(!kvcache.tile<8x32xi24>)

// -----

// expected-error @below {{expects rows of a multiple of 16 bytes, got 24}}
func.func private @c3_rows_of_odd_bytes(!kvcache.tile<8x12xbf16>)

// -----

// expected-error @below {{expects a multiple of 8 rows for several chunks of 64 columns, got 12}}
func.func private @c4_rows_of_chunks(!kvcache.tile<12x128xbf16, swizzle_128b>)

// -----

// One chunk may have any number of rows.
func.func private @c4_rows_of_a_chunk(!kvcache.tile<12x64xbf16, swizzle_128b>)

// -----

// expected-error @below {{expects rows and columns, got 1 sizes}}
func.func private @one_size(!kvcache.tile<12xbf16>)

// -----

// expected-error @below {{swizzle}}
func.func private @unknown_swizzle(!kvcache.tile<8x64xbf16, swizzle_256b>)

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @c1_load_of_another_type(%kt: !kt, %i: index) {
  // expected-error @below {{'kvcache.tile_load' op expects 'result' to have the tile's element type ('bf16'), got 'f16'}}
  %v = kvcache.tile_load %kt[%i, %i] : !kt -> vector<8xf16>
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @c2_load_of_more_than_a_unit(%kt: !kt, %i: index) {
  // expected-error @below {{'kvcache.tile_load' op expects 'result' to have a power of two of lanes, and at most 16 bytes, got 'vector<16xbf16>'}}
  %v = kvcache.tile_load %kt[%i, %i] : !kt -> vector<16xbf16>
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @c2_load_of_odd_lanes(%kt: !kt, %i: index) {
  // expected-error @below {{'kvcache.tile_load' op expects 'result' to have a power of two of lanes, and at most 16 bytes, got 'vector<3xbf16>'}}
  %v = kvcache.tile_load %kt[%i, %i] : !kt -> vector<3xbf16>
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @c1_store_of_another_type(%v: vector<4xf32>, %kt: !kt, %i: index) {
  // expected-error @below {{'kvcache.tile_store' op expects 'value' to have the tile's element type ('bf16'), got 'f32'}}
  kvcache.tile_store %v, %kt[%i, %i] : vector<4xf32>, !kt
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @c2_store_of_more_than_a_unit(%v: vector<32xbf16>, %kt: !kt, %i: index) {
  // expected-error @below {{'kvcache.tile_store' op expects 'value' to have a power of two of lanes, and at most 16 bytes, got 'vector<32xbf16>'}}
  kvcache.tile_store %v, %kt[%i, %i] : vector<32xbf16>, !kt
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @c1_memory_of_another_size(%kt: !kt) {
  // expected-error @below {{expects 'memory' to be 'memref<16384xi8, #gpu.address_space<workgroup>>', got 'memref<8192xi8, #gpu.address_space<workgroup>>'}}
  %m = kvcache.tile_memory %kt : !kt -> memref<8192xi8, #gpu.address_space<workgroup>>
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @c1_memory_of_another_space(%kt: !kt) {
  // expected-error @below {{got 'memref<16384xi8>'}}
  %m = kvcache.tile_memory %kt : !kt -> memref<16384xi8>
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>

func.func @load_of_a_cache(%k: !cache, %i: index) {
  // expected-error @below {{operand #0 must be tile of a cache in shared memory, but got '!kvcache.paged<bf16,}}
  %v = kvcache.tile_load %k[%i, %i] : !cache -> vector<8xbf16>
  return
}

// -----

func.func @c1_alignment_below_the_swizzle() {
  // expected-error @below {{'kvcache.alloc_tile' op expects 'alignment' to be at least 1024 bytes, got 512}}
  %kt = kvcache.alloc_tile {alignment = 512} : !kvcache.tile<64x128xbf16, swizzle_128b>
  return
}

// -----

func.func @c1_alignment_of_a_plain_tile() {
  // expected-error @below {{'kvcache.alloc_tile' op expects 'alignment' to be at least 128 bytes, got 64}}
  %kt = kvcache.alloc_tile {alignment = 64} : !kvcache.tile<64x128xbf16>
  return
}

// -----

func.func @c1_alignment_of_no_power_of_two() {
  // expected-error @below {{'kvcache.alloc_tile' op attribute 'alignment' failed to satisfy constraint: 64-bit signless integer attribute whose value is a power of two > 0}}
  %kt = kvcache.alloc_tile {alignment = 1536} : !kvcache.tile<64x128xbf16, swizzle_128b>
  return
}

// -----

func.func @c1_negative_alignment() {
  // expected-error @below {{'kvcache.alloc_tile' op attribute 'alignment' failed to satisfy constraint: 64-bit signless integer attribute whose value is a power of two > 0}}
  %kt = kvcache.alloc_tile {alignment = -1024} : !kvcache.tile<64x128xbf16, swizzle_128b>
  return
}

// -----

!memory = memref<8192xi8, #gpu.address_space<workgroup>>

func.func @c1_view_of_another_size(%m: !memory) {
  // expected-error @below {{'kvcache.tile_view' op expects 'memory' to be 'memref<16384xi8, #gpu.address_space<workgroup>>', got 'memref<8192xi8, #gpu.address_space<workgroup>>'}}
  %kt = kvcache.tile_view %m : !memory -> !kvcache.tile<64x128xbf16, swizzle_128b>
  return
}

// -----

func.func @c1_view_of_another_space(%m: memref<16384xi8>) {
  // expected-error @below {{'kvcache.tile_view' op expects 'memory' to be 'memref<16384xi8, #gpu.address_space<workgroup>>', got 'memref<16384xi8>'}}
  %kt = kvcache.tile_view %m : memref<16384xi8> -> !kvcache.tile<64x128xbf16, swizzle_128b>
  return
}

// -----

!memory = memref<16384xi8, strided<[1], offset: ?>, #gpu.address_space<workgroup>>

func.func @c1_view_with_an_offset(%m: !memory) {
  // expected-error @below {{expects 'memory' to be 'memref<16384xi8, #gpu.address_space<workgroup>>', got 'memref<16384xi8, strided<[1], offset: ?>, #gpu.address_space<workgroup>>'}}
  %kt = kvcache.tile_view %m : !memory -> !kvcache.tile<64x128xbf16, swizzle_128b>
  return
}

// -----

!memory = memref<8192xbf16, #gpu.address_space<workgroup>>

func.func @view_of_elements(%m: !memory) {
  // expected-error @below {{'kvcache.tile_view' op operand #0 must be 1D memref of 8-bit signless integer values, but got 'memref<8192xbf16, #gpu.address_space<workgroup>>'}}
  %kt = kvcache.tile_view %m : !memory -> !kvcache.tile<64x128xbf16, swizzle_128b>
  return
}

// -----

!memory = memref<16384xi8, #gpu.address_space<workgroup>>

func.func @view_as_no_tile(%m: !memory) {
  // expected-error @below {{'kvcache.tile_view' op result #0 must be tile of a cache in shared memory, but got 'index'}}
  %kt = kvcache.tile_view %m : !memory -> index
  return
}

// -----

// expected-error @below {{expects a tile of fewer than 2^31 bytes, got 9223372036854775807x9223372036854775807 of 'i64'}}
func.func private @c1_sides_of_64_bits(!kvcache.tile<9223372036854775807x9223372036854775807xi64>)

// -----

// expected-error @below {{invalid dimension}}
func.func private @sides_of_more_bits(!kvcache.tile<99999999999999999999x64xbf16>)

// -----

// expected-error @below {{expected static shape}}
func.func private @dynamic_rows(!kvcache.tile<?x64xbf16>)

// -----

// expected-error @below {{expects rows and columns, got 3 sizes}}
func.func private @three_sizes(!kvcache.tile<8x8x64xbf16>)

// -----

// expected-error @below {{expected '>'}}
func.func private @two_swizzles(!kvcache.tile<64x64xbf16, swizzle_128b, swizzle_128b>)

// -----

func.func @offset_in_a_memref(%m: memref<64x128xbf16>, %i: index) {
  // expected-error @below {{'kvcache.tile_offset' op operand #0 must be tile of a cache in shared memory, but got 'memref<64x128xbf16>'}}
  %0 = "kvcache.tile_offset"(%m, %i, %i) : (memref<64x128xbf16>, index, index) -> index
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @offset_of_a_row_of_32_bits(%kt: !kt, %i: i32) {
  // expected-error @below {{'kvcache.tile_offset' op operand #1 must be index, but got 'i32'}}
  %0 = "kvcache.tile_offset"(%kt, %i, %i) : (!kt, i32, i32) -> index
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @c1_cluster_load_of_another_type(%kt: !kt, %i: index) {
  // expected-error @below {{'kvcache.cluster_load' op expects 'result' to have the tile's element type ('bf16'), got 'f16'}}
  %v = kvcache.cluster_load %kt[%i, %i] rank %i : !kt -> vector<8xf16>
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @c2_cluster_load_of_32_bytes(%kt: !kt, %i: index) {
  // expected-error @below {{'kvcache.cluster_load' op expects 'result' to have a power of two of lanes, and at most 16 bytes, got 'vector<16xbf16>'}}
  %v = kvcache.cluster_load %kt[%i, %i] rank %i : !kt -> vector<16xbf16>
  return
}

// -----

func.func @c1_cluster_of_16() {
  // expected-error @below {{attribute 'blocks' failed to satisfy constraint: 64-bit signless integer attribute whose minimum value is 2 whose maximum value is 8}}
  kvcache.cluster_barrier {blocks = 16 : i64}
  return
}

// -----

func.func @c1_cluster_of_one() {
  // expected-error @below {{attribute 'blocks' failed to satisfy constraint: 64-bit signless integer attribute whose minimum value is 2 whose maximum value is 8}}
  kvcache.cluster_barrier {blocks = 1 : i64}
  return
}
