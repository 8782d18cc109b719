// Attention of one query token per sequence over a split of the paged cache: the first half of a decode step that
// spreads long sequences over the chip.
//
//   tokens           = begin to end - 1, where begin = s * chunk, end = min(begin + chunk, cache_length(b))
//   score[t]         = scale_log2 * (q[b, 8 * h + g, :] . keys[b, h, t, :])
//   part_ml[…, g, 0] = max of score[t] over the tokens, or -1e30 without tokens
//   part_ml[…, g, 1] = sum of 2^(score[t] - max)
//   part_o[…, g, :]  = sum of 2^(score[t] - max) * values[b, h, t, :]
//
// Of each sequence b, KV head h and split s, which are the grid, and the 8 query heads g of a KV head. 8 KV heads of
// 128, pages of 16 tokens, bf16; sums are f32, and weights are rounded to bf16 before the product with the values. `chunk` is
// a multiple of 16: every split begins with a page. The host combines splits by
//
//   out[b, 8 * h + g] = sum of part_o[b, h, s, g] * 2^(m[s] - m) / sum of l[s] * 2^(m[s] - m),  m = max of m[s]
//
// over the splits, with m[s] and l[s] from part_ml.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 16>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>
!tile = !kvcache.tile<64x128xbf16, swizzle_128b>
!query = !kvcache.tile<8x128xbf16, swizzle_128b>
!weights = !kvcache.tile<64x8xbf16>
!ring = !kvcache.pipe<3, !tile, !tile>
!memory = memref<16384xi8, #gpu.address_space<workgroup>>
!query_memory = memref<2048xi8, #gpu.address_space<workgroup>>
!weights_memory = memref<1024xi8, #gpu.address_space<workgroup>>
!numbers = memref<4x8xf32, #gpu.address_space<workgroup>>
!heads = memref<?x64x128xbf16>
!part_o = memref<?x8x?x8x128xf32>
!part_ml = memref<?x8x?x8x2xf32>

module attributes {gpu.container_module} {

func.func @decode(%blocks: memref<?x2x?x16x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                  %max_seq: i32, %max_cache: i32, %layer: index, %chunk: i32, %scale_log2: f32,
                  %q: !heads, %part_o: !part_o, %part_ml: !part_ml) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c128 = arith.constant 128 : index
  %batch = memref.dim %part_o, %c0 : !part_o
  %splits = memref.dim %part_o, %c2 : !part_o
  gpu.launch_func @kernels::@decode blocks in (%batch, %c8, %splits) threads in (%c128, %c1, %c1)
      args(%blocks : memref<?x2x?x16x8x128xbf16>, %lengths : memref<?xi32>, %lut : memref<?x?xi32>,
           %max_seq : i32, %max_cache : i32, %layer : index, %chunk : i32, %scale_log2 : f32,
           %q : !heads, %part_o : !part_o, %part_ml : !part_ml)
  return
}

// Products are mma.sync.m16n8k16: their rows are tokens, then columns of the result; their columns are the 8 query
// heads. Of a tile of 64 tokens each of the four warps computes the scores of 16, and then a quarter of the columns of
// the result from all of them: weights pass through shared memory, and at the end nothing is left to be combined. Of a
// product's 16 x 8 results, lane l has two columns, 2 * (l mod 4) and the next one, of the rows l / 4 and l / 4 + 8.
//
// Three stages of 32 KB leave room for two blocks in an SM (one on Ampere), so registers need not be saved for more.
gpu.module @kernels {
  gpu.func @decode(%blocks: memref<?x2x?x16x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                   %max_seq: i32, %max_cache: i32, %layer: index, %chunk: i32, %scale_log2: f32,
                   %q: !heads, %part_o: !part_o, %part_ml: !part_ml)
      workgroup(%all_max: !numbers, %all_sum: !numbers)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>, nvvm.minctasm = 2 : i32} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %c0_i32 = arith.constant 0 : i32
    %c1_i32 = arith.constant 1 : i32
    %c2_i32 = arith.constant 2 : i32
    %c64_i32 = arith.constant 64 : i32
    %lowest = arith.constant dense<-1.0e30> : vector<2xf32>
    %no_sum = arith.constant dense<0.0> : vector<2xf32>
    %no_mix = arith.constant dense<0.0> : vector<4xf32>

    %b = gpu.block_id x
    %h = gpu.block_id y
    %s = gpu.block_id z
    %thread = gpu.thread_id x
    %warp = arith.divui %thread, %c32 : index
    %lane = arith.remui %thread, %c32 : index
    %lane_row = arith.divui %lane, %c4 : index
    %lane_pair = arith.remui %lane, %c4 : index
    %lane_head = arith.muli %lane_pair, %c2 : index
    %is_first_row = arith.cmpi eq, %lane_row, %c0 : index

    %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
        : memref<?x2x?x16x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
    %keys = kvcache.paged_view key %collection[%layer] : !collection
    %values = kvcache.paged_view value %collection[%layer] : !collection

    // The split's tokens, of which there may be none.
    %length = kvcache.cache_length %keys[%b] : !cache
    %length_i32 = arith.index_castui %length : index to i32
    %s_i32 = arith.index_castui %s : index to i32
    %begin_i32 = arith.muli %s_i32, %chunk : i32
    %rest = arith.subi %length_i32, %begin_i32 : i32
    %most = arith.minui %rest, %chunk : i32
    %is_any = arith.cmpi ult, %begin_i32, %length_i32 : i32
    %count = arith.select %is_any, %most, %c0_i32 : i32
    %begin = arith.index_castui %begin_i32 : i32 to index
    %tiles = arith.ceildivui %count, %c64_i32 : i32

    // The queries' way to products is through shared memory: each thread takes 8 columns.
    %query_tile = kvcache.alloc_tile : !query
    %query_head = arith.divui %thread, %c16 : index
    %query_unit = arith.remui %thread, %c16 : index
    %query_column = arith.muli %query_unit, %c8 : index
    %first_head = arith.muli %h, %c8 : index
    %head = arith.addi %first_head, %query_head : index
    %query_part = vector.load %q[%b, %head, %query_column] {alignment = 16} : !heads, vector<8xbf16>
    kvcache.tile_store %query_part, %query_tile[%query_head, %query_column] : vector<8xbf16>, !query
    gpu.barrier
    %row8 = arith.remui %lane, %c8 : index
    %group = arith.divui %lane, %c8 : index
    %group_column = arith.muli %group, %c8 : index
    %query:4 = func.call @load_query(%query_tile, %row8, %group_column)
        : (!query, index, index) -> (vector<4xi32>, vector<4xi32>, vector<4xi32>, vector<4xi32>)

    // For ldmatrix a lane names 8 columns of a token. Of keys, lanes below 16 name the first 8 of 16 tokens, the others
    // the next 8; of values, which are transposed, 8 lanes name 8 tokens, the next 8 lanes the next columns of these.
    %first_token = arith.muli %warp, %c16 : index
    %row16 = arith.remui %lane, %c16 : index
    %key_token = arith.addi %first_token, %row16 : index
    %key_half = arith.divui %lane, %c16 : index
    %key_column = arith.muli %key_half, %c8 : index
    %value_half = arith.muli %key_half, %c8 : index
    %value_token = arith.addi %value_half, %row8 : index
    %first_column = arith.muli %warp, %c32 : index
    %value_right = arith.remui %group, %c2 : index
    %value_unit = arith.muli %value_right, %c8 : index
    %value_column = arith.addi %first_column, %value_unit : index
    %lane_token = arith.addi %first_token, %lane_row : index

    %ring = kvcache.pipe : !ring
    %weights = kvcache.alloc_tile : !weights

    // Tiles are on their way two rounds before they are used.
    %rounds = arith.addi %tiles, %c2_i32 : i32
    %max, %lane_sum, %mix0, %mix1 = scf.for %round = %c0_i32 to %rounds step %c1_i32
        iter_args(%old_max = %lowest, %old_sum = %no_sum, %old0 = %no_mix, %old1 = %no_mix)
        -> (vector<2xf32>, vector<2xf32>, vector<4xf32>, vector<4xf32>) : i32 {
      %is_tile = arith.cmpi ult, %round, %tiles : i32
      scf.if %is_tile {
        %i = arith.index_castui %round : i32 to index
        %t = arith.muli %i, %c64 : index
        %token = arith.addi %begin, %t : index
        %t_i32 = arith.muli %round, %c64_i32 : i32
        %left_i32 = arith.subi %count, %t_i32 overflow<nuw> : i32
        %left = arith.index_castui %left_i32 : i32 to index
        kvcache.produce %ring[%i] : !ring {
        ^bb0(%key_tile: !tile, %value_tile: !tile):
          kvcache.async_load_tile %keys[%b, %h, %token, %c0] valid %left to %key_tile {base_alignment = 16}
              : !cache, !tile
          kvcache.async_load_tile %values[%b, %h, %token, %c0] valid %left to %value_tile {base_alignment = 16}
              : !cache, !tile
        }
      }

      %is_here = arith.cmpi uge, %round, %c2_i32 : i32
      %next:4 = scf.if %is_here -> (vector<2xf32>, vector<2xf32>, vector<4xf32>, vector<4xf32>) {
        %i_i32 = arith.subi %round, %c2_i32 overflow<nsw, nuw> : i32
        %i = arith.index_castui %i_i32 : i32 to index
        %result:4 = kvcache.consume %ring[%i] : !ring -> (vector<2xf32>, vector<2xf32>, vector<4xf32>, vector<4xf32>) {
        ^bb0(%key_tile: !tile, %value_tile: !tile):
          %raw = func.call @multiply_keys(%query#0, %query#1, %query#2, %query#3, %key_tile, %key_token, %key_column)
              : (vector<4xi32>, vector<4xi32>, vector<4xi32>, vector<4xi32>, !tile, index, index) -> vector<4xf32>
          %t = arith.muli %i_i32, %c64_i32 : i32
          %left = arith.subi %count, %t overflow<nuw> : i32
          %scores0, %scores1 = func.call @mask(%raw, %scale_log2, %lane_token, %left)
              : (vector<4xf32>, f32, index, i32) -> (vector<2xf32>, vector<2xf32>)

          // The maximum over the tile's tokens, for the lane's two heads.
          %lane_max = arith.maximumf %scores0, %scores1 : vector<2xf32>
          %warp_max = func.call @reduce_max(%lane_max) : (vector<2xf32>) -> vector<2xf32>
          scf.if %is_first_row {
            vector.store %warp_max, %all_max[%warp, %lane_head] {alignment = 8} : !numbers, vector<2xf32>
          }
          gpu.barrier
          %max0 = vector.load %all_max[%c0, %lane_head] {alignment = 8} : !numbers, vector<2xf32>
          %max1 = vector.load %all_max[%c1, %lane_head] {alignment = 8} : !numbers, vector<2xf32>
          %max2 = vector.load %all_max[%c2, %lane_head] {alignment = 8} : !numbers, vector<2xf32>
          %max3 = vector.load %all_max[%c3, %lane_head] {alignment = 8} : !numbers, vector<2xf32>
          %max01 = arith.maximumf %max0, %max1 : vector<2xf32>
          %max23 = arith.maximumf %max2, %max3 : vector<2xf32>
          %tile_max = arith.maximumf %max01, %max23 : vector<2xf32>
          %new_max = arith.maximumf %old_max, %tile_max : vector<2xf32>

          %change = arith.subf %old_max, %new_max : vector<2xf32>
          %shrink = math.exp2 %change fastmath<afn> : vector<2xf32>
          %distance0 = arith.subf %scores0, %new_max : vector<2xf32>
          %distance1 = arith.subf %scores1, %new_max : vector<2xf32>
          %weight0 = math.exp2 %distance0 fastmath<afn> : vector<2xf32>
          %weight1 = math.exp2 %distance1 fastmath<afn> : vector<2xf32>
          %added_sum = arith.addf %weight0, %weight1 : vector<2xf32>
          %new_sum = math.fma %old_sum, %shrink, %added_sum : vector<2xf32>

          func.call @store_weights(%weight0, %weight1, %weights, %lane_token, %lane_head)
              : (vector<2xf32>, vector<2xf32>, !weights, index, index) -> ()
          gpu.barrier
          %shrinks = vector.shuffle %shrink, %shrink [0, 1, 0, 1] : vector<2xf32>, vector<2xf32>
          %shrunk0 = arith.mulf %old0, %shrinks : vector<4xf32>
          %shrunk1 = arith.mulf %old1, %shrinks : vector<4xf32>
          %new0, %new1 = func.call @add_values(%weights, %lane, %value_tile, %value_token, %value_column,
                                               %shrunk0, %shrunk1)
              : (!weights, index, !tile, index, index, vector<4xf32>, vector<4xf32>) -> (vector<4xf32>, vector<4xf32>)
          kvcache.yield %new_max, %new_sum, %new0, %new1 : vector<2xf32>, vector<2xf32>, vector<4xf32>, vector<4xf32>
        }
        scf.yield %result#0, %result#1, %result#2, %result#3
            : vector<2xf32>, vector<2xf32>, vector<4xf32>, vector<4xf32>
      } else {
        scf.yield %old_max, %old_sum, %old0, %old1 : vector<2xf32>, vector<2xf32>, vector<4xf32>, vector<4xf32>
      }
      scf.yield %next#0, %next#1, %next#2, %next#3 : vector<2xf32>, vector<2xf32>, vector<4xf32>, vector<4xf32>
    }

    %row0 = arith.addi %first_column, %lane_row : index
    %row1 = arith.addi %row0, %c16 : index
    func.call @store_mix(%mix0, %part_o, %b, %h, %s, %lane_head, %row0)
        : (vector<4xf32>, !part_o, index, index, index, index, index) -> ()
    func.call @store_mix(%mix1, %part_o, %b, %h, %s, %lane_head, %row1)
        : (vector<4xf32>, !part_o, index, index, index, index, index) -> ()

    // Each warp has the sums of its tokens.
    %warp_sum = func.call @reduce_sum(%lane_sum) : (vector<2xf32>) -> vector<2xf32>
    scf.if %is_first_row {
      vector.store %warp_sum, %all_sum[%warp, %lane_head] {alignment = 8} : !numbers, vector<2xf32>
    }
    gpu.barrier
    %is_first_pair = arith.cmpi ult, %thread, %c4 : index
    scf.if %is_first_pair {
      %sum0 = vector.load %all_sum[%c0, %lane_head] {alignment = 8} : !numbers, vector<2xf32>
      %sum1 = vector.load %all_sum[%c1, %lane_head] {alignment = 8} : !numbers, vector<2xf32>
      %sum2 = vector.load %all_sum[%c2, %lane_head] {alignment = 8} : !numbers, vector<2xf32>
      %sum3 = vector.load %all_sum[%c3, %lane_head] {alignment = 8} : !numbers, vector<2xf32>
      %sum01 = arith.addf %sum0, %sum1 : vector<2xf32>
      %sum23 = arith.addf %sum2, %sum3 : vector<2xf32>
      %sum = arith.addf %sum01, %sum23 : vector<2xf32>
      %max_and_sum = vector.interleave %max, %sum : vector<2xf32> -> vector<4xf32>
      %head0 = vector.extract_strided_slice %max_and_sum {offsets = [0], sizes = [2], strides = [1]}
          : vector<4xf32> to vector<2xf32>
      %head1 = vector.extract_strided_slice %max_and_sum {offsets = [2], sizes = [2], strides = [1]}
          : vector<4xf32> to vector<2xf32>
      %next_head = arith.addi %lane_head, %c1 : index
      vector.store %head0, %part_ml[%b, %h, %s, %lane_head, %c0] {alignment = 8} : !part_ml, vector<2xf32>
      vector.store %head1, %part_ml[%b, %h, %s, %next_head, %c0] {alignment = 8} : !part_ml, vector<2xf32>
    }
    gpu.return
  }

  // --- Products ------------------------------------------------------------------------------------------------------

  // The 16 x 8 sums `c`, plus the 16 x 16 elements `a` times the 16 x 8 elements `b`.
  func.func private @mma(%a: vector<4xi32>, %b0: i32, %b1: i32, %c: vector<4xf32>) -> vector<4xf32> {
    %a0, %a1, %a2, %a3 = vector.to_elements %a : vector<4xi32>
    %c0, %c1, %c2, %c3 = vector.to_elements %c : vector<4xf32>
    %d = nvvm.mma.sync A[%a0, %a1, %a2, %a3] B[%b0, %b1] C[%c0, %c1, %c2, %c3]
        {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>,
         multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = #nvvm.mma_type<bf16>}
        : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    %d0 = llvm.extractvalue %d[0] : !llvm.struct<(f32, f32, f32, f32)>
    %d1 = llvm.extractvalue %d[1] : !llvm.struct<(f32, f32, f32, f32)>
    %d2 = llvm.extractvalue %d[2] : !llvm.struct<(f32, f32, f32, f32)>
    %d3 = llvm.extractvalue %d[3] : !llvm.struct<(f32, f32, f32, f32)>
    %result = vector.from_elements %d0, %d1, %d2, %d3 : vector<4xf32>
    return %result : vector<4xf32>
  }

  // Two products with 32 elements of each row: the lanes' parts of `b` are next to each other.
  func.func private @mma_pair(%a0: vector<4xi32>, %a1: vector<4xi32>, %b: vector<4xi32>, %c: vector<4xf32>)
      -> vector<4xf32> {
    %b0, %b1, %b2, %b3 = vector.to_elements %b : vector<4xi32>
    %d0 = func.call @mma(%a0, %b0, %b1, %c) : (vector<4xi32>, i32, i32, vector<4xf32>) -> vector<4xf32>
    %d1 = func.call @mma(%a1, %b2, %b3, %d0) : (vector<4xi32>, i32, i32, vector<4xf32>) -> vector<4xf32>
    return %d1 : vector<4xf32>
  }

  // Where a byte of shared memory is.
  func.func private @get_pointer(%begin: index, %offset: index) -> !llvm.ptr<3> {
    %address = arith.addi %begin, %offset : index
    %address_i64 = arith.index_cast %address : index to i64
    %pointer = llvm.inttoptr %address_i64 : i64 to !llvm.ptr<3>
    return %pointer : !llvm.ptr<3>
  }

  // Four 8 x 8 matrices, of which each lane names a row.
  func.func private @load_matrices(%pointer: !llvm.ptr<3>) -> vector<4xi32> {
    %m = nvvm.ldmatrix %pointer {num = 4 : i32, layout = #nvvm.mma_layout<row>,
        shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>}
        : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
    %m0 = llvm.extractvalue %m[0] : !llvm.struct<(i32, i32, i32, i32)>
    %m1 = llvm.extractvalue %m[1] : !llvm.struct<(i32, i32, i32, i32)>
    %m2 = llvm.extractvalue %m[2] : !llvm.struct<(i32, i32, i32, i32)>
    %m3 = llvm.extractvalue %m[3] : !llvm.struct<(i32, i32, i32, i32)>
    %result = vector.from_elements %m0, %m1, %m2, %m3 : vector<4xi32>
    return %result : vector<4xi32>
  }

  func.func private @load_transposed(%pointer: !llvm.ptr<3>) -> vector<4xi32> {
    %m = nvvm.ldmatrix %pointer {num = 4 : i32, layout = #nvvm.mma_layout<col>,
        shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>}
        : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
    %m0 = llvm.extractvalue %m[0] : !llvm.struct<(i32, i32, i32, i32)>
    %m1 = llvm.extractvalue %m[1] : !llvm.struct<(i32, i32, i32, i32)>
    %m2 = llvm.extractvalue %m[2] : !llvm.struct<(i32, i32, i32, i32)>
    %m3 = llvm.extractvalue %m[3] : !llvm.struct<(i32, i32, i32, i32)>
    %result = vector.from_elements %m0, %m1, %m2, %m3 : vector<4xi32>
    return %result : vector<4xi32>
  }

  // Over lanes of the same columns.
  func.func private @reduce_max(%value: vector<2xf32>) -> vector<2xf32> {
    %v0, %v1 = vector.to_elements %value : vector<2xf32>
    %r0 = gpu.subgroup_reduce maximumf %v0 cluster(size = 8, stride = 4) : (f32) -> f32
    %r1 = gpu.subgroup_reduce maximumf %v1 cluster(size = 8, stride = 4) : (f32) -> f32
    %result = vector.from_elements %r0, %r1 : vector<2xf32>
    return %result : vector<2xf32>
  }

  func.func private @reduce_sum(%value: vector<2xf32>) -> vector<2xf32> {
    %v0, %v1 = vector.to_elements %value : vector<2xf32>
    %r0 = gpu.subgroup_reduce add %v0 cluster(size = 8, stride = 4) : (f32) -> f32
    %r1 = gpu.subgroup_reduce add %v1 cluster(size = 8, stride = 4) : (f32) -> f32
    %result = vector.from_elements %r0, %r1 : vector<2xf32>
    return %result : vector<2xf32>
  }

  // --- Scores --------------------------------------------------------------------------------------------------------

  // All columns of the query heads, 32 in each vector.
  func.func private @load_query(%tile: !query, %row: index, %column: index)
      -> (vector<4xi32>, vector<4xi32>, vector<4xi32>, vector<4xi32>) {
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %c96 = arith.constant 96 : index
    %d1 = arith.addi %column, %c32 : index
    %d2 = arith.addi %column, %c64 : index
    %d3 = arith.addi %column, %c96 : index
    %q0 = func.call @load_query_columns(%tile, %row, %column) : (!query, index, index) -> vector<4xi32>
    %q1 = func.call @load_query_columns(%tile, %row, %d1) : (!query, index, index) -> vector<4xi32>
    %q2 = func.call @load_query_columns(%tile, %row, %d2) : (!query, index, index) -> vector<4xi32>
    %q3 = func.call @load_query_columns(%tile, %row, %d3) : (!query, index, index) -> vector<4xi32>
    return %q0, %q1, %q2, %q3 : vector<4xi32>, vector<4xi32>, vector<4xi32>, vector<4xi32>
  }

  func.func private @load_query_columns(%tile: !query, %row: index, %column: index) -> vector<4xi32> {
    %memory = kvcache.tile_memory %tile : !query -> !query_memory
    %begin = memref.extract_aligned_pointer_as_index %memory : !query_memory -> index
    %offset = kvcache.tile_offset %tile[%row, %column] : !query
    %pointer = func.call @get_pointer(%begin, %offset) : (index, index) -> !llvm.ptr<3>
    %result = func.call @load_matrices(%pointer) : (!llvm.ptr<3>) -> vector<4xi32>
    return %result : vector<4xi32>
  }

  // The scores of 16 tokens. All of their keys are on their way before the first product.
  func.func private @multiply_keys(%q0: vector<4xi32>, %q1: vector<4xi32>, %q2: vector<4xi32>, %q3: vector<4xi32>,
                                   %keys: !tile, %token: index, %column: index) -> vector<4xf32> {
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %c96 = arith.constant 96 : index
    %none = arith.constant dense<0.0> : vector<4xf32>
    %d1 = arith.addi %column, %c32 : index
    %d2 = arith.addi %column, %c64 : index
    %d3 = arith.addi %column, %c96 : index
    %k0, %k1 = func.call @load_keys(%keys, %token, %column) : (!tile, index, index) -> (vector<4xi32>, vector<4xi32>)
    %k2, %k3 = func.call @load_keys(%keys, %token, %d1) : (!tile, index, index) -> (vector<4xi32>, vector<4xi32>)
    %k4, %k5 = func.call @load_keys(%keys, %token, %d2) : (!tile, index, index) -> (vector<4xi32>, vector<4xi32>)
    %k6, %k7 = func.call @load_keys(%keys, %token, %d3) : (!tile, index, index) -> (vector<4xi32>, vector<4xi32>)
    %s0 = func.call @mma_pair(%k0, %k1, %q0, %none)
        : (vector<4xi32>, vector<4xi32>, vector<4xi32>, vector<4xf32>) -> vector<4xf32>
    %s1 = func.call @mma_pair(%k2, %k3, %q1, %s0)
        : (vector<4xi32>, vector<4xi32>, vector<4xi32>, vector<4xf32>) -> vector<4xf32>
    %s2 = func.call @mma_pair(%k4, %k5, %q2, %s1)
        : (vector<4xi32>, vector<4xi32>, vector<4xi32>, vector<4xf32>) -> vector<4xf32>
    %s3 = func.call @mma_pair(%k6, %k7, %q3, %s2)
        : (vector<4xi32>, vector<4xi32>, vector<4xi32>, vector<4xf32>) -> vector<4xf32>
    return %s3 : vector<4xf32>
  }

  // 32 columns of the keys of 16 tokens.
  func.func private @load_keys(%tile: !tile, %token: index, %column: index) -> (vector<4xi32>, vector<4xi32>) {
    %c16 = arith.constant 16 : index
    %next = arith.addi %column, %c16 : index
    %memory = kvcache.tile_memory %tile : !tile -> !memory
    %begin = memref.extract_aligned_pointer_as_index %memory : !memory -> index
    %offset0 = kvcache.tile_offset %tile[%token, %column] : !tile
    %offset1 = kvcache.tile_offset %tile[%token, %next] : !tile
    %pointer0 = func.call @get_pointer(%begin, %offset0) : (index, index) -> !llvm.ptr<3>
    %pointer1 = func.call @get_pointer(%begin, %offset1) : (index, index) -> !llvm.ptr<3>
    %k0 = func.call @load_matrices(%pointer0) : (!llvm.ptr<3>) -> vector<4xi32>
    %k1 = func.call @load_matrices(%pointer1) : (!llvm.ptr<3>) -> vector<4xi32>
    return %k0, %k1 : vector<4xi32>, vector<4xi32>
  }

  // Scales a lane's scores of `token` and of the token 8 later, and takes out those that are not left: the last tile's.
  func.func private @mask(%raw: vector<4xf32>, %scale: f32, %token: index, %left: i32)
      -> (vector<2xf32>, vector<2xf32>) {
    %c8 = arith.constant 8 : i32
    %lowest = arith.constant dense<-1.0e30> : vector<2xf32>
    %scales = vector.broadcast %scale : f32 to vector<4xf32>
    %scaled = arith.mulf %raw, %scales : vector<4xf32>
    %scores0 = vector.extract_strided_slice %scaled {offsets = [0], sizes = [2], strides = [1]}
        : vector<4xf32> to vector<2xf32>
    %scores1 = vector.extract_strided_slice %scaled {offsets = [2], sizes = [2], strides = [1]}
        : vector<4xf32> to vector<2xf32>
    %token_i32 = arith.index_cast %token : index to i32
    %next_i32 = arith.addi %token_i32, %c8 : i32
    %is_left0 = arith.cmpi ult, %token_i32, %left : i32
    %is_left1 = arith.cmpi ult, %next_i32, %left : i32
    %masked0 = arith.select %is_left0, %scores0, %lowest : vector<2xf32>
    %masked1 = arith.select %is_left1, %scores1, %lowest : vector<2xf32>
    return %masked0, %masked1 : vector<2xf32>, vector<2xf32>
  }

  // --- Values --------------------------------------------------------------------------------------------------------

  // The weights of `token` and of the token 8 later, for two heads.
  func.func private @store_weights(%weight0: vector<2xf32>, %weight1: vector<2xf32>, %tile: !weights, %token: index,
                                   %head: index) {
    %c8 = arith.constant 8 : index
    %next = arith.addi %token, %c8 : index
    %bf16_0 = arith.truncf %weight0 : vector<2xf32> to vector<2xbf16>
    %bf16_1 = arith.truncf %weight1 : vector<2xf32> to vector<2xbf16>
    kvcache.tile_store %bf16_0, %tile[%token, %head] : vector<2xbf16>, !weights
    kvcache.tile_store %bf16_1, %tile[%next, %head] : vector<2xbf16>, !weights
    return
  }

  // The weights of 32 tokens, of which each lane names one.
  func.func private @load_weights(%tile: !weights, %token: index) -> vector<4xi32> {
    %c0 = arith.constant 0 : index
    %memory = kvcache.tile_memory %tile : !weights -> !weights_memory
    %begin = memref.extract_aligned_pointer_as_index %memory : !weights_memory -> index
    %offset = kvcache.tile_offset %tile[%token, %c0] : !weights
    %pointer = func.call @get_pointer(%begin, %offset) : (index, index) -> !llvm.ptr<3>
    %result = func.call @load_transposed(%pointer) : (!llvm.ptr<3>) -> vector<4xi32>
    return %result : vector<4xi32>
  }

  // Adds 32 columns of the values of 64 tokens, times their weights.
  func.func private @add_values(%weights: !weights, %lane: index, %values: !tile, %token: index, %column: index,
                                %mix0: vector<4xf32>, %mix1: vector<4xf32>) -> (vector<4xf32>, vector<4xf32>) {
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %next_lane = arith.addi %lane, %c32 : index
    %next_column = arith.addi %column, %c16 : index
    %w0 = func.call @load_weights(%weights, %lane) : (!weights, index) -> vector<4xi32>
    %w1 = func.call @load_weights(%weights, %next_lane) : (!weights, index) -> vector<4xi32>
    %result0 = func.call @add_columns(%w0, %w1, %values, %token, %column, %mix0)
        : (vector<4xi32>, vector<4xi32>, !tile, index, index, vector<4xf32>) -> vector<4xf32>
    %result1 = func.call @add_columns(%w0, %w1, %values, %token, %next_column, %mix1)
        : (vector<4xi32>, vector<4xi32>, !tile, index, index, vector<4xf32>) -> vector<4xf32>
    return %result0, %result1 : vector<4xf32>, vector<4xf32>
  }

  // The same of 16 columns.
  func.func private @add_columns(%w0: vector<4xi32>, %w1: vector<4xi32>, %values: !tile, %token: index,
                                 %column: index, %mix: vector<4xf32>) -> vector<4xf32> {
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c48 = arith.constant 48 : index
    %t1 = arith.addi %token, %c16 : index
    %t2 = arith.addi %token, %c32 : index
    %t3 = arith.addi %token, %c48 : index
    %v0 = func.call @load_values(%values, %token, %column) : (!tile, index, index) -> vector<4xi32>
    %v1 = func.call @load_values(%values, %t1, %column) : (!tile, index, index) -> vector<4xi32>
    %v2 = func.call @load_values(%values, %t2, %column) : (!tile, index, index) -> vector<4xi32>
    %v3 = func.call @load_values(%values, %t3, %column) : (!tile, index, index) -> vector<4xi32>
    %mix01 = func.call @mma_pair(%v0, %v1, %w0, %mix)
        : (vector<4xi32>, vector<4xi32>, vector<4xi32>, vector<4xf32>) -> vector<4xf32>
    %mix23 = func.call @mma_pair(%v2, %v3, %w1, %mix01)
        : (vector<4xi32>, vector<4xi32>, vector<4xi32>, vector<4xf32>) -> vector<4xf32>
    return %mix23 : vector<4xf32>
  }

  // 16 columns of 16 tokens, as rows.
  func.func private @load_values(%tile: !tile, %token: index, %column: index) -> vector<4xi32> {
    %memory = kvcache.tile_memory %tile : !tile -> !memory
    %begin = memref.extract_aligned_pointer_as_index %memory : !memory -> index
    %offset = kvcache.tile_offset %tile[%token, %column] : !tile
    %pointer = func.call @get_pointer(%begin, %offset) : (index, index) -> !llvm.ptr<3>
    %result = func.call @load_transposed(%pointer) : (!llvm.ptr<3>) -> vector<4xi32>
    return %result : vector<4xi32>
  }

  // Columns `d` and `d + 8` of two heads.
  func.func private @store_mix(%mix: vector<4xf32>, %part_o: !part_o, %b: index, %h: index, %s: index, %head: index,
                               %d: index) {
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %next_head = arith.addi %head, %c1 : index
    %d8 = arith.addi %d, %c8 : index
    %m0, %m1, %m2, %m3 = vector.to_elements %mix : vector<4xf32>
    memref.store %m0, %part_o[%b, %h, %s, %head, %d] : !part_o
    memref.store %m1, %part_o[%b, %h, %s, %next_head, %d] : !part_o
    memref.store %m2, %part_o[%b, %h, %s, %head, %d8] : !part_o
    memref.store %m3, %part_o[%b, %h, %s, %next_head, %d8] : !part_o
    return
  }
}
}
