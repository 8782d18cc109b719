// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{expects rows, and at most columns, got 0 sizes}}
func.func private @c1_no_rows(!kvcache.fragment<f32, wgmma_acc>)

// -----

// expected-error @below {{expects rows, and at most columns, got 3 sizes}}
func.func private @c1_rank(!kvcache.fragment<64x8x8xf32, wgmma_acc>)

// -----

// expected-error @below {{expects wgmma_acc to have 64 rows, got 16}}
func.func private @c1_rows(!kvcache.fragment<16x8xf32, wgmma_acc>)

// -----

// expected-error @below {{expects mma_a16 to have a multiple of 16 columns up to 1024, got 24}}
func.func private @c1_columns(!kvcache.fragment<16x24xbf16, mma_a16>)

// -----

// expected-error @below {{expects mma_acc to have a multiple of 8 columns up to 1024, got 0}}
func.func private @c1_no_columns(!kvcache.fragment<16x0xf32, mma_acc>)

// -----

// expected-error @below {{expects mma_acc to have a multiple of 8 columns up to 1024, got 1032}}
func.func private @c1_too_many(!kvcache.fragment<16x1032xf32, mma_acc>)

// -----

// expected-error @below {{expects floats or signless integers of at most 32 bits as elements, got 'index'}}
func.func private @c2_index(!kvcache.fragment<64x8xindex, wgmma_acc>)

// -----

// expected-error @below {{expects floats or signless integers of at most 32 bits as elements, got 'f64'}}
func.func private @c2_wide(!kvcache.fragment<64x8xf64, wgmma_acc>)

// -----

// expected-error @below {{expects floats or signless integers of at most 32 bits as elements, got 'ui8'}}
func.func private @c2_unsigned(!kvcache.fragment<64x8xui8, wgmma_acc>)

// -----

// expected-error @below {{expects elements of 16 bits in wgmma_a16, got 'f32'}}
func.func private @c2_bits(!kvcache.fragment<64x32xf32, wgmma_a16>)

// -----

// expected-error @below {{expects a partial fragment to have one dimension and an accumulator's layout, got 2 and wgmma_acc}}
func.func private @c3_matrix(!kvcache.fragment<64x8xf32, wgmma_acc, partial>)

// -----

// expected-error @below {{expects a partial fragment to have one dimension and an accumulator's layout, got 1 and wgmma_a16}}
func.func private @c3_operand(!kvcache.fragment<64xbf16, wgmma_a16, partial>)

// -----

// expected-error @below {{failed to parse KVCache_FragmentType parameter 'layout' which is to be a `::mlir::kvcache::FragmentLayout`}}
// expected-error @below {{expected one of [mma_acc, mma_a16, wgmma_acc, wgmma_a16, wgmma_a8, tmem_acc, wgmma_acc_t, mma_a16_pairs, mma_acc_pairs, tmem_row, mma_a16_quads, mma_acc_quads] for which elements of a matrix a thread has, got: wgmma}}
func.func private @layout(!kvcache.fragment<64x8xf32, wgmma>)

// -----

// expected-error @below {{expected 'partial'}}
func.func private @partial(!kvcache.fragment<64xf32, wgmma_acc, whole>)

// -----

// expected-error @below {{expects tmem_acc to have 64 or 128 rows, got 96}}
func.func private @c1_tmem_rows(!kvcache.fragment<96x8xf32, tmem_acc>)

// -----

// expected-error @below {{expects tmem_row to have 128 rows, got 64}}
func.func private @c1_rows_of_threads(!kvcache.fragment<64x8xf32, tmem_row>)

// -----

// expected-error @below {{expects the layout of an accumulator in registers, got tmem_acc}}
func.func private @in_flight_c1_tmem(!kvcache.in_flight<128x8xf32, tmem_acc>)

// -----

// expected-error @below {{expects the layout of an accumulator in registers, got tmem_row}}
func.func private @in_flight_c1_tmem_row(!kvcache.in_flight<128x8xf32, tmem_row>)

// -----

// expected-error @below {{expects rows and columns, got one size}}
func.func private @in_flight_c1_rank(!kvcache.in_flight<64xf32, wgmma_acc>)

// -----

// expected-error @below {{expects the layout of an accumulator in registers, got wgmma_a16}}
func.func private @in_flight_c1_layout(!kvcache.in_flight<64x32xbf16, wgmma_a16>)

// -----

// expected-error @below {{expects f32, f16 or i32 as element type, got 'bf16'}}
func.func private @in_flight_c2(!kvcache.in_flight<64x32xbf16, wgmma_acc>)

// -----

// expected-error @below {{expects wgmma_acc_t to have a multiple of 8 rows up to 256, got 12}}
func.func private @c1_transposed_rows(!kvcache.fragment<12x64xf32, wgmma_acc_t>)

// -----

// expected-error @below {{expects wgmma_acc_t to have a multiple of 8 rows up to 256, got 264}}
func.func private @c1_transposed_most_rows(!kvcache.fragment<264x64xf32, wgmma_acc_t>)

// -----

// expected-error @below {{expects wgmma_acc_t to have a multiple of 64 columns up to 1024, got 32}}
func.func private @c1_transposed_columns(!kvcache.in_flight<16x32xf32, wgmma_acc_t>)
