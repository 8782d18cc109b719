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
// 128, pages of 16 tokens, bf16; sums are f32, and weights are rounded to bf16 before they meet the values. `chunk` is a
// multiple of 16, so that a split depends on its own sequence's length only. The host combines splits by
//
//   out[b, 8 * h + g] = sum of part_o[b, h, s, g] * 2^(m[s] - m) / sum of l[s] * 2^(m[s] - m),  m = max of m[s]
//
// over the splits, with m[s] and l[s] from part_ml.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 16>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>
!tile = !kvcache.tile<64x128xbf16, swizzle_128b>
!weights = !kvcache.tile<8x64xbf16, swizzle_128b>
!memory = memref<16384xi8, #gpu.address_space<workgroup>>
!weights_memory = memref<1024xi8, #gpu.address_space<workgroup>>
!numbers = memref<8x4xf32, #gpu.address_space<workgroup>>
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

// Products are mma.sync.m16n8k16. Of a tile of 64 tokens each of the four warps computes the scores of 16, with the 8
// query heads and padding as rows, and then a quarter of the columns of the result, with these as rows: the weights of
// all tokens pass through shared memory, and nothing is left to be combined. Lane l has in its registers
//
//   - scores of head l / 4, for four tokens: which token is which column of a product is free, and it is chosen so that
//     the 16 bytes that eight lanes load at once come from different banks
//   - sums of heads 2 * (l mod 4) and the next one.
gpu.module @kernels {
  gpu.func @decode(%blocks: memref<?x2x?x16x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                   %max_seq: i32, %max_cache: i32, %layer: index, %chunk: i32, %scale_log2: f32,
                   %q: !heads, %part_o: !part_o, %part_ml: !part_ml)
      workgroup(%all_max: !numbers, %all_sum: !numbers)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %no_tokens = arith.constant 0 : i32
    %four = arith.constant 4 : i32
    %warp_size = arith.constant 32 : i32
    %zero = arith.constant 0.0 : f32
    %lowest = arith.constant -1.0e30 : f32
    %none = arith.constant dense<0.0> : vector<4xf32>

    %b = gpu.block_id x
    %h = gpu.block_id y
    %s = gpu.block_id z
    %thread = gpu.thread_id x
    %warp = arith.divui %thread, %c32 : index
    %lane = arith.remui %thread, %c32 : index
    %lane_row = arith.divui %lane, %c4 : index
    %lane_pair = arith.remui %lane, %c4 : index
    %is_first_pair = arith.cmpi eq, %lane_pair, %c0 : index

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
    %count_i32 = arith.select %is_any, %most, %no_tokens : i32
    %count = arith.index_castui %count_i32 : i32 to index
    %begin = arith.index_castui %begin_i32 : i32 to index
    %tiles = arith.ceildivui %count, %c64 : index

    %first_head = arith.muli %h, %c8 : index
    %head = arith.addi %first_head, %lane_row : index
    %unit_column = arith.muli %lane_pair, %c8 : index
    %query:4 = func.call @load_query(%q, %b, %head, %unit_column)
        : (!heads, index, index, index) -> (vector<8xbf16>, vector<8xbf16>, vector<8xbf16>, vector<8xbf16>)

    // The keys of which a lane loads parts: 0, 4, 1, 5, … by its row.
    %first_token = arith.muli %warp, %c16 : index
    %half_row = arith.divui %lane_row, %c2 : index
    %odd_row = arith.remui %lane_row, %c2 : index
    %odd_token = arith.muli %odd_row, %c4 : index
    %token_of_row = arith.addi %half_row, %odd_token : index
    %key_token = arith.addi %first_token, %token_of_row : index
    %lane_token = arith.addi %first_token, %lane_pair : index
    %weight_column = arith.muli %lane_pair, %c2 : index
    %place = arith.addi %first_token, %weight_column : index

    // Of values a lane names 8 columns of a token: for ldmatrix lanes below 16 of the first 8 tokens, the others of the
    // next 8, in the same order as those of keys; every other 8 lanes the next 8 columns.
    %row8 = arith.remui %lane, %c8 : index
    %group = arith.divui %lane, %c8 : index
    %half8 = arith.divui %row8, %c2 : index
    %odd8 = arith.remui %row8, %c2 : index
    %odd_token8 = arith.muli %odd8, %c4 : index
    %token8 = arith.addi %half8, %odd_token8 : index
    %later = arith.divui %group, %c2 : index
    %later_token = arith.muli %later, %c8 : index
    %value_token = arith.addi %token8, %later_token : index
    %first_column = arith.muli %warp, %c32 : index
    %right = arith.remui %group, %c2 : index
    %right_column = arith.muli %right, %c8 : index
    %value_column = arith.addi %first_column, %right_column : index
    %group_column = arith.muli %group, %c8 : index
    %shrink_lane = arith.index_cast %unit_column : index to i32
    %next_lane = arith.addi %shrink_lane, %four : i32

    %ring = kvcache.pipe : !kvcache.pipe<3, !tile, !tile>
    %weights = kvcache.alloc_tile : !weights

    // Tiles are on their way two rounds before they are used.
    %rounds = arith.addi %tiles, %c2 : index
    %max, %lane_sum, %mix0, %mix1 = scf.for %round = %c0 to %rounds step %c1
        iter_args(%old_max = %lowest, %old_sum = %zero, %old0 = %none, %old1 = %none)
        -> (f32, f32, vector<4xf32>, vector<4xf32>) {
      %is_tile = arith.cmpi ult, %round, %tiles : index
      scf.if %is_tile {
        %t = arith.muli %round, %c64 : index
        %token = arith.addi %begin, %t : index
        %left = arith.subi %count, %t : index
        kvcache.produce %ring[%round] {
        ^bb0(%key_tile: !tile, %value_tile: !tile):
          kvcache.async_load_tile %keys[%b, %h, %token, %c0] valid %left to %key_tile {base_alignment = 16}
              : !cache, !tile
          kvcache.async_load_tile %values[%b, %h, %token, %c0] valid %left to %value_tile {base_alignment = 16}
              : !cache, !tile
        }
      }

      %is_here = arith.cmpi uge, %round, %c2 : index
      %next:4 = scf.if %is_here -> (f32, f32, vector<4xf32>, vector<4xf32>) {
        %i = arith.subi %round, %c2 : index
        %result:4 = kvcache.consume %ring[%i] -> (f32, f32, vector<4xf32>, vector<4xf32>) {
        ^bb0(%key_tile: !tile, %value_tile: !tile):
          %raw = func.call @multiply_keys(%query#0, %query#1, %query#2, %query#3, %key_tile, %key_token, %unit_column)
              : (vector<8xbf16>, vector<8xbf16>, vector<8xbf16>, vector<8xbf16>, !tile, index, index) -> vector<4xf32>
          %t = arith.muli %i, %c64 : index
          %left = arith.subi %count, %t : index
          %scores = func.call @mask(%raw, %scale_log2, %lane_token, %left)
              : (vector<4xf32>, f32, index, index) -> vector<4xf32>

          %lane_max = vector.reduction <maximumf>, %scores : vector<4xf32> into f32
          %warp_max = gpu.subgroup_reduce maximumf %lane_max cluster(size = 4) : (f32) -> f32
          scf.if %is_first_pair {
            memref.store %warp_max, %all_max[%lane_row, %warp] : !numbers
          }
          gpu.barrier
          %maxes = vector.load %all_max[%lane_row, %c0] {alignment = 16} : !numbers, vector<4xf32>
          %new_max = vector.reduction <maximumf>, %maxes, %old_max : vector<4xf32> into f32
          %change = arith.subf %old_max, %new_max : f32
          %shrink = math.exp2 %change fastmath<afn> : f32
          %new_maxes = vector.broadcast %new_max : f32 to vector<4xf32>
          %distances = arith.subf %scores, %new_maxes : vector<4xf32>
          %added = math.exp2 %distances fastmath<afn> : vector<4xf32>
          %added_sum = vector.reduction <add>, %added fastmath<reassoc> : vector<4xf32> into f32
          %new_sum = math.fma %old_sum, %shrink, %added_sum : f32
          func.call @store_weights(%added, %weights, %lane_row, %place) : (vector<4xf32>, !weights, index, index) -> ()
          gpu.barrier

          // Lane 4 * n has what the sums of head n shrink by.
          %shrink0, %is_lane0 = gpu.shuffle idx %shrink, %shrink_lane, %warp_size : f32
          %shrink1, %is_lane1 = gpu.shuffle idx %shrink, %next_lane, %warp_size : f32
          %shrinks = vector.from_elements %shrink0, %shrink1, %shrink0, %shrink1 : vector<4xf32>
          %shrunk0 = arith.mulf %old0, %shrinks : vector<4xf32>
          %shrunk1 = arith.mulf %old1, %shrinks : vector<4xf32>
          %new0, %new1 = func.call @add_values(%weights, %row8, %group_column, %value_tile, %value_token, %value_column,
                                               %shrunk0, %shrunk1)
              : (!weights, index, index, !tile, index, index, vector<4xf32>, vector<4xf32>)
              -> (vector<4xf32>, vector<4xf32>)
          kvcache.yield %new_max, %new_sum, %new0, %new1 : f32, f32, vector<4xf32>, vector<4xf32>
        }
        scf.yield %result#0, %result#1, %result#2, %result#3 : f32, f32, vector<4xf32>, vector<4xf32>
      } else {
        scf.yield %old_max, %old_sum, %old0, %old1 : f32, f32, vector<4xf32>, vector<4xf32>
      }
      scf.yield %next#0, %next#1, %next#2, %next#3 : f32, f32, vector<4xf32>, vector<4xf32>
    }

    %row0 = arith.addi %first_column, %lane_row : index
    %row1 = arith.addi %row0, %c16 : index
    func.call @store_mix(%mix0, %part_o, %b, %h, %s, %weight_column, %row0)
        : (vector<4xf32>, !part_o, index, index, index, index, index) -> ()
    func.call @store_mix(%mix1, %part_o, %b, %h, %s, %weight_column, %row1)
        : (vector<4xf32>, !part_o, index, index, index, index, index) -> ()

    // Each warp has the sums of its tokens.
    %sum = gpu.subgroup_reduce add %lane_sum cluster(size = 4) : (f32) -> f32
    scf.if %is_first_pair {
      memref.store %sum, %all_sum[%lane_row, %warp] : !numbers
    }
    gpu.barrier
    %is_first_warp = arith.cmpi eq, %warp, %c0 : index
    %is_writer = arith.andi %is_first_warp, %is_first_pair : i1
    scf.if %is_writer {
      %sums = vector.load %all_sum[%lane_row, %c0] {alignment = 16} : !numbers, vector<4xf32>
      %total = vector.reduction <add>, %sums fastmath<reassoc> : vector<4xf32> into f32
      %max_and_sum = vector.from_elements %max, %total : vector<2xf32>
      vector.store %max_and_sum, %part_ml[%b, %h, %s, %lane_row, %c0] {alignment = 8} : !part_ml, vector<2xf32>
    }
    gpu.return
  }

  // --- Products ------------------------------------------------------------------------------------------------------

  // The 16 x 8 sums `c`, plus the 16 x 16 elements `a` times the 16 x 8 elements `b`.
  func.func private @mma(%a: vector<4xi32>, %b: vector<2xi32>, %c: vector<4xf32>) -> vector<4xf32> {
    %a0, %a1, %a2, %a3 = vector.to_elements %a : vector<4xi32>
    %b0, %b1 = vector.to_elements %b : vector<2xi32>
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

  // Four 8 x 8 matrices of a tile, of which each lane names a row.
  func.func private @load_values(%tile: !tile, %row: index, %column: index) -> vector<4xi32> {
    %memory = kvcache.tile_memory %tile : !tile -> !memory
    %offset = kvcache.tile_offset %tile[%row, %column] : !tile
    %begin = memref.extract_aligned_pointer_as_index %memory : !memory -> index
    %address = arith.addi %begin, %offset : index
    %address_i64 = arith.index_cast %address : index to i64
    %pointer = llvm.inttoptr %address_i64 : i64 to !llvm.ptr<3>
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

  // --- Scores --------------------------------------------------------------------------------------------------------

  // A lane's part of a query: 8 of every 32 columns. The first four are its columns of one product, the others of
  // another; their order is free, and the same for keys.
  func.func private @load_query(%q: !heads, %b: index, %head: index, %column: index)
      -> (vector<8xbf16>, vector<8xbf16>, vector<8xbf16>, vector<8xbf16>) {
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %c96 = arith.constant 96 : index
    %d1 = arith.addi %column, %c32 : index
    %d2 = arith.addi %column, %c64 : index
    %d3 = arith.addi %column, %c96 : index
    %q0 = vector.load %q[%b, %head, %column] {alignment = 16} : !heads, vector<8xbf16>
    %q1 = vector.load %q[%b, %head, %d1] {alignment = 16} : !heads, vector<8xbf16>
    %q2 = vector.load %q[%b, %head, %d2] {alignment = 16} : !heads, vector<8xbf16>
    %q3 = vector.load %q[%b, %head, %d3] {alignment = 16} : !heads, vector<8xbf16>
    return %q0, %q1, %q2, %q3 : vector<8xbf16>, vector<8xbf16>, vector<8xbf16>, vector<8xbf16>
  }

  // The scores of 16 tokens, of which a lane has four.
  func.func private @multiply_keys(%q0: vector<8xbf16>, %q1: vector<8xbf16>, %q2: vector<8xbf16>, %q3: vector<8xbf16>,
                                   %keys: !tile, %token: index, %column: index) -> vector<4xf32> {
    %c8 = arith.constant 8 : index
    %next = arith.addi %token, %c8 : index
    %left = func.call @multiply_8_keys(%q0, %q1, %q2, %q3, %keys, %token, %column)
        : (vector<8xbf16>, vector<8xbf16>, vector<8xbf16>, vector<8xbf16>, !tile, index, index) -> vector<4xf32>
    %right = func.call @multiply_8_keys(%q0, %q1, %q2, %q3, %keys, %next, %column)
        : (vector<8xbf16>, vector<8xbf16>, vector<8xbf16>, vector<8xbf16>, !tile, index, index) -> vector<4xf32>
    // The other elements are padding's.
    %result = vector.shuffle %left, %right [0, 1, 4, 5] : vector<4xf32>, vector<4xf32>
    return %result : vector<4xf32>
  }

  func.func private @multiply_8_keys(%q0: vector<8xbf16>, %q1: vector<8xbf16>, %q2: vector<8xbf16>,
                                     %q3: vector<8xbf16>, %keys: !tile, %token: index, %column: index)
      -> vector<4xf32> {
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %c96 = arith.constant 96 : index
    %none = arith.constant dense<0.0> : vector<4xf32>
    %d1 = arith.addi %column, %c32 : index
    %d2 = arith.addi %column, %c64 : index
    %d3 = arith.addi %column, %c96 : index
    %k0 = kvcache.tile_load %keys[%token, %column] : !tile -> vector<8xbf16>
    %k1 = kvcache.tile_load %keys[%token, %d1] : !tile -> vector<8xbf16>
    %k2 = kvcache.tile_load %keys[%token, %d2] : !tile -> vector<8xbf16>
    %k3 = kvcache.tile_load %keys[%token, %d3] : !tile -> vector<8xbf16>
    %s0 = func.call @add_scores(%q0, %k0, %none) : (vector<8xbf16>, vector<8xbf16>, vector<4xf32>) -> vector<4xf32>
    %s1 = func.call @add_scores(%q1, %k1, %s0) : (vector<8xbf16>, vector<8xbf16>, vector<4xf32>) -> vector<4xf32>
    %s2 = func.call @add_scores(%q2, %k2, %s1) : (vector<8xbf16>, vector<8xbf16>, vector<4xf32>) -> vector<4xf32>
    %s3 = func.call @add_scores(%q3, %k3, %s2) : (vector<8xbf16>, vector<8xbf16>, vector<4xf32>) -> vector<4xf32>
    return %s3 : vector<4xf32>
  }

  // 32 columns: two products, with rows of zeros for the padding.
  func.func private @add_scores(%q: vector<8xbf16>, %k: vector<8xbf16>, %scores: vector<4xf32>) -> vector<4xf32> {
    %padding = arith.constant 0 : i32
    %q_i32 = vector.bitcast %q : vector<8xbf16> to vector<4xi32>
    %k_i32 = vector.bitcast %k : vector<8xbf16> to vector<4xi32>
    %q0, %q1, %q2, %q3 = vector.to_elements %q_i32 : vector<4xi32>
    %a0 = vector.from_elements %q0, %padding, %q1, %padding : vector<4xi32>
    %a1 = vector.from_elements %q2, %padding, %q3, %padding : vector<4xi32>
    %b0 = vector.extract_strided_slice %k_i32 {offsets = [0], sizes = [2], strides = [1]}
        : vector<4xi32> to vector<2xi32>
    %b1 = vector.extract_strided_slice %k_i32 {offsets = [2], sizes = [2], strides = [1]}
        : vector<4xi32> to vector<2xi32>
    %s0 = func.call @mma(%a0, %b0, %scores) : (vector<4xi32>, vector<2xi32>, vector<4xf32>) -> vector<4xf32>
    %s1 = func.call @mma(%a1, %b1, %s0) : (vector<4xi32>, vector<2xi32>, vector<4xf32>) -> vector<4xf32>
    return %s1 : vector<4xf32>
  }

  // Scales a lane's scores, and takes out those of tokens that are not left: the last tile's.
  func.func private @mask(%raw: vector<4xf32>, %scale: f32, %token: index, %left: index) -> vector<4xf32> {
    %lane_tokens = arith.constant dense<[0, 4, 8, 12]> : vector<4xi32>
    %lowest = arith.constant dense<-1.0e30> : vector<4xf32>
    %token_i32 = arith.index_cast %token : index to i32
    %left_i32 = arith.index_cast %left : index to i32
    %lane_left = arith.subi %left_i32, %token_i32 : i32
    %lane_lefts = vector.broadcast %lane_left : i32 to vector<4xi32>
    %used = arith.cmpi slt, %lane_tokens, %lane_lefts : vector<4xi32>
    %scales = vector.broadcast %scale : f32 to vector<4xf32>
    %scaled = arith.mulf %raw, %scales : vector<4xf32>
    %scores = arith.select %used, %scaled, %lowest : vector<4xi1>, vector<4xf32>
    return %scores : vector<4xf32>
  }

  // --- Values --------------------------------------------------------------------------------------------------------

  func.func private @store_weights(%weights: vector<4xf32>, %tile: !weights, %row: index, %column: index) {
    %c8 = arith.constant 8 : index
    %next = arith.addi %column, %c8 : index
    %bf16 = arith.truncf %weights : vector<4xf32> to vector<4xbf16>
    %left = vector.extract_strided_slice %bf16 {offsets = [0], sizes = [2], strides = [1]}
        : vector<4xbf16> to vector<2xbf16>
    %right = vector.extract_strided_slice %bf16 {offsets = [2], sizes = [2], strides = [1]}
        : vector<4xbf16> to vector<2xbf16>
    kvcache.tile_store %left, %tile[%row, %column] : vector<2xbf16>, !weights
    kvcache.tile_store %right, %tile[%row, %next] : vector<2xbf16>, !weights
    return
  }

  // The weights of 32 tokens: two times the elements `b` of a product.
  func.func private @load_weights(%tile: !weights, %row: index, %column: index) -> (vector<2xi32>, vector<2xi32>) {
    %memory = kvcache.tile_memory %tile : !weights -> !weights_memory
    %offset = kvcache.tile_offset %tile[%row, %column] : !weights
    %begin = memref.extract_aligned_pointer_as_index %memory : !weights_memory -> index
    %address = arith.addi %begin, %offset : index
    %address_i64 = arith.index_cast %address : index to i64
    %pointer = llvm.inttoptr %address_i64 : i64 to !llvm.ptr<3>
    %m = nvvm.ldmatrix %pointer {num = 4 : i32, layout = #nvvm.mma_layout<row>,
        shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>}
        : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
    %m0 = llvm.extractvalue %m[0] : !llvm.struct<(i32, i32, i32, i32)>
    %m1 = llvm.extractvalue %m[1] : !llvm.struct<(i32, i32, i32, i32)>
    %m2 = llvm.extractvalue %m[2] : !llvm.struct<(i32, i32, i32, i32)>
    %m3 = llvm.extractvalue %m[3] : !llvm.struct<(i32, i32, i32, i32)>
    %b0 = vector.from_elements %m0, %m1 : vector<2xi32>
    %b1 = vector.from_elements %m2, %m3 : vector<2xi32>
    return %b0, %b1 : vector<2xi32>, vector<2xi32>
  }

  // Adds 32 columns of the values of 64 tokens, times their weights.
  func.func private @add_values(%weights: !weights, %weight_row: index, %weight_column: index, %values: !tile,
                                %token: index, %column: index, %mix0: vector<4xf32>, %mix1: vector<4xf32>)
      -> (vector<4xf32>, vector<4xf32>) {
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %next_column = arith.addi %column, %c16 : index
    %next_weights = arith.addi %weight_column, %c32 : index
    %w0, %w1 = func.call @load_weights(%weights, %weight_row, %weight_column)
        : (!weights, index, index) -> (vector<2xi32>, vector<2xi32>)
    %w2, %w3 = func.call @load_weights(%weights, %weight_row, %next_weights)
        : (!weights, index, index) -> (vector<2xi32>, vector<2xi32>)
    %result0 = func.call @add_16_columns(%w0, %w1, %w2, %w3, %values, %token, %column, %mix0)
        : (vector<2xi32>, vector<2xi32>, vector<2xi32>, vector<2xi32>, !tile, index, index, vector<4xf32>)
        -> vector<4xf32>
    %result1 = func.call @add_16_columns(%w0, %w1, %w2, %w3, %values, %token, %next_column, %mix1)
        : (vector<2xi32>, vector<2xi32>, vector<2xi32>, vector<2xi32>, !tile, index, index, vector<4xf32>)
        -> vector<4xf32>
    return %result0, %result1 : vector<4xf32>, vector<4xf32>
  }

  func.func private @add_16_columns(%w0: vector<2xi32>, %w1: vector<2xi32>, %w2: vector<2xi32>, %w3: vector<2xi32>,
                                    %values: !tile, %token: index, %column: index, %mix: vector<4xf32>)
      -> vector<4xf32> {
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
    %m0 = func.call @mma(%v0, %w0, %mix) : (vector<4xi32>, vector<2xi32>, vector<4xf32>) -> vector<4xf32>
    %m1 = func.call @mma(%v1, %w1, %m0) : (vector<4xi32>, vector<2xi32>, vector<4xf32>) -> vector<4xf32>
    %m2 = func.call @mma(%v2, %w2, %m1) : (vector<4xi32>, vector<2xi32>, vector<4xf32>) -> vector<4xf32>
    %m3 = func.call @mma(%v3, %w3, %m2) : (vector<4xi32>, vector<2xi32>, vector<4xf32>) -> vector<4xf32>
    return %m3 : vector<4xf32>
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
