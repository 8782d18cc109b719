// Attention of one query token per sequence over the paged cache (a decode step), for one layer, on the tensor cores,
// with a pipe of key and value tiles.
//
//   out[b, n, :] = softmax(scale * q[b, n, :] . keys[b, n / group, t, :] over t < cache_length(b))
//                  . values[b, n / group, t, :]
//
// 8 KV heads of 128 elements, pages of 64 tokens, bf16. A KV head has a group of up to 8 query heads, an eighth of the
// heads of `q`: 4 in Llama-3-8B, 8 in Llama-3-70B. Sums are f32, weights are rounded to bf16 before the product with
// the values, and an empty sequence gives zeros. In NumPy, with all numbers in f32:
//
//   group = q.shape[1] // 8
//   for b, n in np.ndindex(out.shape[:2]):
//       t = np.arange(lengths[b])
//       keys, values = (blocks[lut[b, t // 64], kv, layer, t % 64, n // group] for kv in (0, 1))
//       scores = scale * keys @ q[b, n]
//       weights = np.exp(scores - scores.max(initial=-np.inf))
//       out[b, n] = weights @ values / (weights.sum() or 1)
//
// Launch a grid of (8, batch) blocks of 128 threads with 96 KB of dynamic shared memory: three stages of a key tile and
// a value tile, 64 tokens each. While threads use one stage, the copies of the other two are in flight. The compiler
// chooses the copies: sm_90 and newer use tensor copies, with two descriptors as the last parameters; older chips use
// cp.async. An SM has room for two such blocks, so ptxas need not save registers for more.
// attention.mlir has the same attention for CPUs.
//
//   kvcache-opt examples/attention_pipe.mlir --kvcache-to-ptx="chip=sm_90a" --emit-ptx

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!tile = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !tile, !tile>
!memory = memref<16384xi8, #gpu.address_space<workgroup>>
!heads = memref<?x?x128xbf16>
!floats = memref<4x8x128xf32, #gpu.address_space<workgroup>>
!numbers = memref<4x8xf32, #gpu.address_space<workgroup>>

// A product is mma.sync.m16n8k16. Its 16 rows are the query heads of the group and padding. Lane l has the columns
// 2 * (l mod 4) and 2 * (l mod 4) + 1 of row l / 4, and of row l / 4 + 8, which is always padding.
//
// Each warp processes 16 tokens of a tile: scores, an online softmax as in attention.mlir, and the sum of values. The
// four warps combine their results only at the end.
gpu.module @kernels {
  gpu.func @attention_pipe(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                           %max_seq: i32, %max_cache: i32, %layer: index,
                           %scale: f32, %q: !heads, %out: !heads)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>, nvvm.minctasm = 2 : i32} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %lowest = arith.constant -1.0e30 : f32
    %no_mix = arith.constant dense<0.0> : vector<8x8xf32>
    %log2e = arith.constant 1.44269504 : f32

    %h = gpu.block_id x
    %b = gpu.block_id y
    %thread = gpu.thread_id x
    %warp = arith.divui %thread, %c32 : index
    %lane = arith.remui %thread, %c32 : index
    %lane_row = arith.divui %lane, %c4 : index
    %lane_pair = arith.remui %lane, %c4 : index
    %lane_column = arith.muli %lane_pair, %c2 : index

    %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
        : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
    %keys = kvcache.paged_view key %collection[%layer] : !collection
    %values = kvcache.paged_view value %collection[%layer] : !collection
    %length = kvcache.cache_length %keys[%b] : !cache
    %tiles = arith.ceildivui %length, %c64 : index

    %ring = kvcache.pipe : !ring
    %ahead = arith.minui %tiles, %c2 : index
    scf.for %i = %c0 to %ahead step %c1 {
      %t = arith.muli %i, %c64 : index
      %left = arith.subi %length, %t : index
      kvcache.produce %ring[%i] : !ring {
      ^bb0(%key_tile: !tile, %value_tile: !tile):
        kvcache.async_load_tile %keys[%b, %h, %t, %c0] valid %left to %key_tile : !cache, !tile
        kvcache.async_load_tile %values[%b, %h, %t, %c0] valid %left to %value_tile : !cache, !tile
      }
    }

    // Padding repeats the last query head, so that every lane loads a valid head.
    %query_heads = memref.dim %q, %c1 : !heads
    %group = arith.divui %query_heads, %c8 : index
    %first_head = arith.muli %h, %group : index
    %last = arith.subi %group, %c1 : index
    %query_row = arith.minui %lane_row, %last : index
    %head = arith.addi %first_head, %query_row : index
    %query = func.call @load_query(%q, %b, %head, %lane_column) : (!heads, index, index, index) -> vector<8x2xi32>
    %scale_log2 = arith.mulf %scale, %log2e : f32

    // For ldmatrix, a lane addresses 8 elements of a row: lanes below 16 the columns 0 to 7, the others 8 to 15.
    %first_row = arith.muli %warp, %c16 : index
    %row_of_warp = arith.remui %lane, %c16 : index
    %row = arith.addi %first_row, %row_of_warp : index
    %half = arith.divui %lane, %c16 : index
    %column = arith.muli %half, %c8 : index
    %lane_token = arith.addi %first_row, %lane_column : index

    %max, %lane_sum, %mix = scf.for %i = %c0 to %tiles step %c1
        iter_args(%old_max = %lowest, %old_sum = %zero, %old_mix = %no_mix) -> (f32, f32, vector<8x8xf32>) {
      %next = arith.addi %i, %c2 : index
      %is_tile = arith.cmpi ult, %next, %tiles : index
      scf.if %is_tile {
        %t = arith.muli %next, %c64 : index
        %left = arith.subi %length, %t : index
        kvcache.produce %ring[%next] : !ring {
        ^bb0(%key_tile: !tile, %value_tile: !tile):
          kvcache.async_load_tile %keys[%b, %h, %t, %c0] valid %left to %key_tile : !cache, !tile
          kvcache.async_load_tile %values[%b, %h, %t, %c0] valid %left to %value_tile : !cache, !tile
        }
      }

      %new_max, %new_sum, %new_mix = kvcache.consume %ring[%i] : !ring -> (f32, f32, vector<8x8xf32>) {
      ^bb0(%key_tile: !tile, %value_tile: !tile):
        %raw_scores = func.call @multiply_keys(%query, %key_tile, %row, %column)
            : (vector<8x2xi32>, !tile, index, index) -> vector<4xf32>
        %tile_token = arith.muli %i, %c64 : index
        %token = arith.addi %tile_token, %lane_token : index
        %scores = func.call @mask(%raw_scores, %scale_log2, %token, %length)
            : (vector<4xf32>, f32, index, index) -> vector<4xf32>

        %lane_max = vector.reduction <maximumf>, %scores : vector<4xf32> into f32
        %row_max = gpu.subgroup_reduce maximumf %lane_max cluster(size = 4) : (f32) -> f32
        %max_so_far = arith.maximumf %old_max, %row_max : f32
        %max_change = arith.subf %old_max, %max_so_far : f32
        %shrink = math.exp2 %max_change : f32
        %maxes = vector.broadcast %max_so_far : f32 to vector<4xf32>
        %distances = arith.subf %scores, %maxes : vector<4xf32>
        %weights = math.exp2 %distances : vector<4xf32>
        %added_sum = vector.reduction <add>, %weights fastmath<reassoc> : vector<4xf32> into f32
        %sum_so_far = math.fma %old_sum, %shrink, %added_sum : f32

        %shrinks = vector.broadcast %shrink : f32 to vector<8x8xf32>
        %shrunk_mix = arith.mulf %old_mix, %shrinks : vector<8x8xf32>
        %mix_so_far = func.call @add_values(%weights, %value_tile, %row, %column, %shrunk_mix)
            : (vector<4xf32>, !tile, index, index, vector<8x8xf32>) -> vector<8x8xf32>
        kvcache.yield %max_so_far, %sum_so_far, %mix_so_far : f32, f32, vector<8x8xf32>
      }
      scf.yield %new_max, %new_sum, %new_mix : f32, f32, vector<8x8xf32>
    }

    // Each warp has processed different tokens. A `produce` without copies gives them a slot for partial results.
    %sum = gpu.subgroup_reduce add %lane_sum cluster(size = 4) : (f32) -> f32
    kvcache.produce %ring[%tiles] : !ring {
    ^bb0(%key_tile: !tile, %value_tile: !tile):
    }
    kvcache.consume %ring[%tiles] : !ring {
    ^bb0(%key_tile: !tile, %value_tile: !tile):
      %key_memory = kvcache.tile_memory %key_tile : !tile -> !memory
      %value_memory = kvcache.tile_memory %value_tile : !tile -> !memory
      %c128 = arith.constant 128 : index
      %all_mix = memref.view %key_memory[%c0][] : !memory to !floats
      %all_max = memref.view %value_memory[%c0][] : !memory to !numbers
      %all_sum = memref.view %value_memory[%c128][] : !memory to !numbers
      func.call @leave_mix(%mix, %all_mix, %warp, %lane_row, %lane_column)
          : (vector<8x8xf32>, !floats, index, index, index) -> ()
      %is_first = arith.cmpi eq, %lane_column, %c0 : index
      scf.if %is_first {
        memref.store %max, %all_max[%warp, %lane_row] : !numbers
        memref.store %sum, %all_sum[%warp, %lane_row] : !numbers
      }
      gpu.barrier

      // 16 threads store a query head, 8 elements each.
      %out_row = arith.divui %thread, %c16 : index
      %is_head = arith.cmpi ult, %out_row, %group : index
      scf.if %is_head {
        %thread_of_row = arith.remui %thread, %c16 : index
        %d = arith.muli %thread_of_row, %c8 : index
        %result = func.call @combine(%all_mix, %all_max, %all_sum, %out_row, %d)
            : (!floats, !numbers, !numbers, index, index) -> vector<8xbf16>
        %out_head = arith.addi %first_head, %out_row : index
        vector.store %result, %out[%b, %out_head, %d] {alignment = 16 : i64} : !heads, vector<8xbf16>
      }
    }
    gpu.return
  }

  // --- Products ------------------------------------------------------------------------------------------------------

  // The 16 x 8 sums `c` plus the product of the 16 x 16 elements `a` and the 16 x 8 elements `b`. A lane has two
  // elements of `c` and two of padding, and two pairs of `a`; the padding of `a` is zero.
  func.func private @mma(%a: vector<2xi32>, %b: vector<2xi32>, %c: vector<4xf32>) -> vector<4xf32> {
    %padding = arith.constant 0 : i32
    %a0 = vector.extract %a[0] : i32 from vector<2xi32>
    %a1 = vector.extract %a[1] : i32 from vector<2xi32>
    %b0 = vector.extract %b[0] : i32 from vector<2xi32>
    %b1 = vector.extract %b[1] : i32 from vector<2xi32>
    %c0, %c1, %c2, %c3 = vector.to_elements %c : vector<4xf32>
    %d = nvvm.mma.sync A[%a0, %padding, %a1, %padding] B[%b0, %b1] C[%c0, %c1, %c2, %c3]
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

  // Two adjacent products, with 16 columns of `b` and of the sums.
  func.func private @mma_pair(%a: vector<2xi32>, %b: vector<4xi32>, %c: vector<8xf32>) -> vector<8xf32> {
    %b_left = vector.extract_strided_slice %b {offsets = [0], sizes = [2], strides = [1]}
        : vector<4xi32> to vector<2xi32>
    %b_right = vector.extract_strided_slice %b {offsets = [2], sizes = [2], strides = [1]}
        : vector<4xi32> to vector<2xi32>
    %c_left = vector.extract_strided_slice %c {offsets = [0], sizes = [4], strides = [1]}
        : vector<8xf32> to vector<4xf32>
    %c_right = vector.extract_strided_slice %c {offsets = [4], sizes = [4], strides = [1]}
        : vector<8xf32> to vector<4xf32>
    %left = func.call @mma(%a, %b_left, %c_left) : (vector<2xi32>, vector<2xi32>, vector<4xf32>) -> vector<4xf32>
    %right = func.call @mma(%a, %b_right, %c_right) : (vector<2xi32>, vector<2xi32>, vector<4xf32>) -> vector<4xf32>
    %result = vector.shuffle %left, %right [0, 1, 2, 3, 4, 5, 6, 7] : vector<4xf32>, vector<4xf32>
    return %result : vector<8xf32>
  }

  // The address of the 8 elements of a lane for ldmatrix.
  func.func private @get_pointer(%tile: !tile, %row: index, %column: index) -> !llvm.ptr<3> {
    %memory = kvcache.tile_memory %tile : !tile -> !memory
    %offset = kvcache.tile_offset %tile[%row, %column] : !tile
    %begin = memref.extract_aligned_pointer_as_index %memory : !memory -> index
    %address = arith.addi %begin, %offset : index
    %address_i64 = arith.index_cast %address : index to i64
    %pointer = llvm.inttoptr %address_i64 : i64 to !llvm.ptr<3>
    return %pointer : !llvm.ptr<3>
  }

  // The scores of 16 tokens. A lane has the scores of one row for the tokens 0, 1, 8 and 9 after its first token.
  func.func private @multiply_keys(%query: vector<8x2xi32>, %keys: !tile, %row: index, %column: index)
      -> vector<4xf32> {
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c48 = arith.constant 48 : index
    %c64 = arith.constant 64 : index
    %c80 = arith.constant 80 : index
    %c96 = arith.constant 96 : index
    %c112 = arith.constant 112 : index
    %no_scores = arith.constant dense<0.0> : vector<8xf32>
    %d1 = arith.addi %column, %c16 : index
    %d2 = arith.addi %column, %c32 : index
    %d3 = arith.addi %column, %c48 : index
    %d4 = arith.addi %column, %c64 : index
    %d5 = arith.addi %column, %c80 : index
    %d6 = arith.addi %column, %c96 : index
    %d7 = arith.addi %column, %c112 : index
    %q0 = vector.extract %query[0] : vector<2xi32> from vector<8x2xi32>
    %q1 = vector.extract %query[1] : vector<2xi32> from vector<8x2xi32>
    %q2 = vector.extract %query[2] : vector<2xi32> from vector<8x2xi32>
    %q3 = vector.extract %query[3] : vector<2xi32> from vector<8x2xi32>
    %q4 = vector.extract %query[4] : vector<2xi32> from vector<8x2xi32>
    %q5 = vector.extract %query[5] : vector<2xi32> from vector<8x2xi32>
    %q6 = vector.extract %query[6] : vector<2xi32> from vector<8x2xi32>
    %q7 = vector.extract %query[7] : vector<2xi32> from vector<8x2xi32>
    %s0 = func.call @add_scores(%q0, %keys, %row, %column, %no_scores)
        : (vector<2xi32>, !tile, index, index, vector<8xf32>) -> vector<8xf32>
    %s1 = func.call @add_scores(%q1, %keys, %row, %d1, %s0)
        : (vector<2xi32>, !tile, index, index, vector<8xf32>) -> vector<8xf32>
    %s2 = func.call @add_scores(%q2, %keys, %row, %d2, %s1)
        : (vector<2xi32>, !tile, index, index, vector<8xf32>) -> vector<8xf32>
    %s3 = func.call @add_scores(%q3, %keys, %row, %d3, %s2)
        : (vector<2xi32>, !tile, index, index, vector<8xf32>) -> vector<8xf32>
    %s4 = func.call @add_scores(%q4, %keys, %row, %d4, %s3)
        : (vector<2xi32>, !tile, index, index, vector<8xf32>) -> vector<8xf32>
    %s5 = func.call @add_scores(%q5, %keys, %row, %d5, %s4)
        : (vector<2xi32>, !tile, index, index, vector<8xf32>) -> vector<8xf32>
    %s6 = func.call @add_scores(%q6, %keys, %row, %d6, %s5)
        : (vector<2xi32>, !tile, index, index, vector<8xf32>) -> vector<8xf32>
    %s7 = func.call @add_scores(%q7, %keys, %row, %d7, %s6)
        : (vector<2xi32>, !tile, index, index, vector<8xf32>) -> vector<8xf32>
    %scores = vector.shuffle %s7, %s7 [0, 1, 4, 5] : vector<8xf32>, vector<8xf32>
    return %scores : vector<4xf32>
  }

  // Adds the product of 16 columns to the scores of 16 tokens. A row of keys is a column of `b`, without transposition.
  func.func private @add_scores(%query: vector<2xi32>, %keys: !tile, %row: index, %column: index,
                                %scores: vector<8xf32>) -> vector<8xf32> {
    %pointer = func.call @get_pointer(%keys, %row, %column) : (!tile, index, index) -> !llvm.ptr<3>
    %m = nvvm.ldmatrix %pointer {num = 4 : i32, layout = #nvvm.mma_layout<row>,
        shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>}
        : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
    %m0 = llvm.extractvalue %m[0] : !llvm.struct<(i32, i32, i32, i32)>
    %m1 = llvm.extractvalue %m[1] : !llvm.struct<(i32, i32, i32, i32)>
    %m2 = llvm.extractvalue %m[2] : !llvm.struct<(i32, i32, i32, i32)>
    %m3 = llvm.extractvalue %m[3] : !llvm.struct<(i32, i32, i32, i32)>
    // Matrices 0 and 1 are the columns 0 to 7 of the first and the second 8 tokens.
    %b = vector.from_elements %m0, %m2, %m1, %m3 : vector<4xi32>
    %result = func.call @mma_pair(%query, %b, %scores) : (vector<2xi32>, vector<4xi32>, vector<8xf32>) -> vector<8xf32>
    return %result : vector<8xf32>
  }

  // The lanes that have the score of a token also need its weight.
  func.func private @add_values(%weights: vector<4xf32>, %values: !tile, %row: index, %column: index,
                                %mix: vector<8x8xf32>) -> vector<8x8xf32> {
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c48 = arith.constant 48 : index
    %c64 = arith.constant 64 : index
    %c80 = arith.constant 80 : index
    %c96 = arith.constant 96 : index
    %c112 = arith.constant 112 : index
    %d1 = arith.addi %column, %c16 : index
    %d2 = arith.addi %column, %c32 : index
    %d3 = arith.addi %column, %c48 : index
    %d4 = arith.addi %column, %c64 : index
    %d5 = arith.addi %column, %c80 : index
    %d6 = arith.addi %column, %c96 : index
    %d7 = arith.addi %column, %c112 : index
    %weights_bf16 = arith.truncf %weights : vector<4xf32> to vector<4xbf16>
    %w = vector.bitcast %weights_bf16 : vector<4xbf16> to vector<2xi32>
    %old0 = vector.extract %mix[0] : vector<8xf32> from vector<8x8xf32>
    %old1 = vector.extract %mix[1] : vector<8xf32> from vector<8x8xf32>
    %old2 = vector.extract %mix[2] : vector<8xf32> from vector<8x8xf32>
    %old3 = vector.extract %mix[3] : vector<8xf32> from vector<8x8xf32>
    %old4 = vector.extract %mix[4] : vector<8xf32> from vector<8x8xf32>
    %old5 = vector.extract %mix[5] : vector<8xf32> from vector<8x8xf32>
    %old6 = vector.extract %mix[6] : vector<8xf32> from vector<8x8xf32>
    %old7 = vector.extract %mix[7] : vector<8xf32> from vector<8x8xf32>
    %new0 = func.call @add_columns(%w, %values, %row, %column, %old0)
        : (vector<2xi32>, !tile, index, index, vector<8xf32>) -> vector<8xf32>
    %new1 = func.call @add_columns(%w, %values, %row, %d1, %old1)
        : (vector<2xi32>, !tile, index, index, vector<8xf32>) -> vector<8xf32>
    %new2 = func.call @add_columns(%w, %values, %row, %d2, %old2)
        : (vector<2xi32>, !tile, index, index, vector<8xf32>) -> vector<8xf32>
    %new3 = func.call @add_columns(%w, %values, %row, %d3, %old3)
        : (vector<2xi32>, !tile, index, index, vector<8xf32>) -> vector<8xf32>
    %new4 = func.call @add_columns(%w, %values, %row, %d4, %old4)
        : (vector<2xi32>, !tile, index, index, vector<8xf32>) -> vector<8xf32>
    %new5 = func.call @add_columns(%w, %values, %row, %d5, %old5)
        : (vector<2xi32>, !tile, index, index, vector<8xf32>) -> vector<8xf32>
    %new6 = func.call @add_columns(%w, %values, %row, %d6, %old6)
        : (vector<2xi32>, !tile, index, index, vector<8xf32>) -> vector<8xf32>
    %new7 = func.call @add_columns(%w, %values, %row, %d7, %old7)
        : (vector<2xi32>, !tile, index, index, vector<8xf32>) -> vector<8xf32>
    %mix0 = vector.insert %new0, %mix [0] : vector<8xf32> into vector<8x8xf32>
    %mix1 = vector.insert %new1, %mix0 [1] : vector<8xf32> into vector<8x8xf32>
    %mix2 = vector.insert %new2, %mix1 [2] : vector<8xf32> into vector<8x8xf32>
    %mix3 = vector.insert %new3, %mix2 [3] : vector<8xf32> into vector<8x8xf32>
    %mix4 = vector.insert %new4, %mix3 [4] : vector<8xf32> into vector<8x8xf32>
    %mix5 = vector.insert %new5, %mix4 [5] : vector<8xf32> into vector<8x8xf32>
    %mix6 = vector.insert %new6, %mix5 [6] : vector<8xf32> into vector<8x8xf32>
    %mix7 = vector.insert %new7, %mix6 [7] : vector<8xf32> into vector<8x8xf32>
    return %mix7 : vector<8x8xf32>
  }

  // Adds 16 columns of the values of 16 tokens, times their weights. A row of values is a row of `b`, transposed.
  func.func private @add_columns(%weights: vector<2xi32>, %values: !tile, %row: index, %column: index,
                                 %mix: vector<8xf32>) -> vector<8xf32> {
    %pointer = func.call @get_pointer(%values, %row, %column) : (!tile, index, index) -> !llvm.ptr<3>
    %m = nvvm.ldmatrix %pointer {num = 4 : i32, layout = #nvvm.mma_layout<col>,
        shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>}
        : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
    %m0 = llvm.extractvalue %m[0] : !llvm.struct<(i32, i32, i32, i32)>
    %m1 = llvm.extractvalue %m[1] : !llvm.struct<(i32, i32, i32, i32)>
    %m2 = llvm.extractvalue %m[2] : !llvm.struct<(i32, i32, i32, i32)>
    %m3 = llvm.extractvalue %m[3] : !llvm.struct<(i32, i32, i32, i32)>
    %b = vector.from_elements %m0, %m1, %m2, %m3 : vector<4xi32>
    %result = func.call @mma_pair(%weights, %b, %mix) : (vector<2xi32>, vector<4xi32>, vector<8xf32>) -> vector<8xf32>
    return %result : vector<8xf32>
  }

  // --- Queries, scores and results -----------------------------------------------------------------------------------

  // The part of a lane of a query as rows of `a`: in every 16 columns, its pair and the pair 8 columns later.
  func.func private @load_query(%q: !heads, %b: index, %head: index, %column: index) -> vector<8x2xi32> {
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c48 = arith.constant 48 : index
    %c64 = arith.constant 64 : index
    %c80 = arith.constant 80 : index
    %c96 = arith.constant 96 : index
    %c112 = arith.constant 112 : index
    %none = arith.constant dense<0> : vector<8x2xi32>
    %d1 = arith.addi %column, %c16 : index
    %d2 = arith.addi %column, %c32 : index
    %d3 = arith.addi %column, %c48 : index
    %d4 = arith.addi %column, %c64 : index
    %d5 = arith.addi %column, %c80 : index
    %d6 = arith.addi %column, %c96 : index
    %d7 = arith.addi %column, %c112 : index
    %q0 = func.call @load_columns(%q, %b, %head, %column) : (!heads, index, index, index) -> vector<2xi32>
    %q1 = func.call @load_columns(%q, %b, %head, %d1) : (!heads, index, index, index) -> vector<2xi32>
    %q2 = func.call @load_columns(%q, %b, %head, %d2) : (!heads, index, index, index) -> vector<2xi32>
    %q3 = func.call @load_columns(%q, %b, %head, %d3) : (!heads, index, index, index) -> vector<2xi32>
    %q4 = func.call @load_columns(%q, %b, %head, %d4) : (!heads, index, index, index) -> vector<2xi32>
    %q5 = func.call @load_columns(%q, %b, %head, %d5) : (!heads, index, index, index) -> vector<2xi32>
    %q6 = func.call @load_columns(%q, %b, %head, %d6) : (!heads, index, index, index) -> vector<2xi32>
    %q7 = func.call @load_columns(%q, %b, %head, %d7) : (!heads, index, index, index) -> vector<2xi32>
    %query0 = vector.insert %q0, %none [0] : vector<2xi32> into vector<8x2xi32>
    %query1 = vector.insert %q1, %query0 [1] : vector<2xi32> into vector<8x2xi32>
    %query2 = vector.insert %q2, %query1 [2] : vector<2xi32> into vector<8x2xi32>
    %query3 = vector.insert %q3, %query2 [3] : vector<2xi32> into vector<8x2xi32>
    %query4 = vector.insert %q4, %query3 [4] : vector<2xi32> into vector<8x2xi32>
    %query5 = vector.insert %q5, %query4 [5] : vector<2xi32> into vector<8x2xi32>
    %query6 = vector.insert %q6, %query5 [6] : vector<2xi32> into vector<8x2xi32>
    %query7 = vector.insert %q7, %query6 [7] : vector<2xi32> into vector<8x2xi32>
    return %query7 : vector<8x2xi32>
  }

  func.func private @load_columns(%q: !heads, %b: index, %head: index, %column: index) -> vector<2xi32> {
    %c8 = arith.constant 8 : index
    %next = arith.addi %column, %c8 : index
    %pair0 = vector.load %q[%b, %head, %column] {alignment = 4 : i64} : !heads, vector<2xbf16>
    %pair1 = vector.load %q[%b, %head, %next] {alignment = 4 : i64} : !heads, vector<2xbf16>
    %pairs = vector.shuffle %pair0, %pair1 [0, 1, 2, 3] : vector<2xbf16>, vector<2xbf16>
    %result = vector.bitcast %pairs : vector<4xbf16> to vector<2xi32>
    return %result : vector<2xi32>
  }

  // Scales the scores of a lane to base 2, and masks those of tokens past the length, in the last tile.
  func.func private @mask(%raw: vector<4xf32>, %scale: f32, %token: index, %length: index) -> vector<4xf32> {
    %tokens_of_lane = arith.constant dense<[0, 1, 8, 9]> : vector<4xi32>
    %lowest = arith.constant dense<-1.0e30> : vector<4xf32>
    %token_i32 = arith.index_castui %token : index to i32
    %length_i32 = arith.index_castui %length : index to i32
    %token0 = vector.broadcast %token_i32 : i32 to vector<4xi32>
    %tokens = arith.addi %token0, %tokens_of_lane : vector<4xi32>
    %lengths = vector.broadcast %length_i32 : i32 to vector<4xi32>
    %used = arith.cmpi ult, %tokens, %lengths : vector<4xi32>
    %scales = vector.broadcast %scale : f32 to vector<4xf32>
    %scaled = arith.mulf %raw, %scales : vector<4xf32>
    %scores = arith.select %used, %scaled, %lowest : vector<4xi1>, vector<4xf32>
    return %scores : vector<4xf32>
  }

  // Stores the sums of a warp in shared memory. Groups of 8 columns shift by the row, which avoids bank conflicts.
  func.func private @leave_mix(%mix: vector<8x8xf32>, %all_mix: !floats, %warp: index, %row: index, %column: index) {
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c48 = arith.constant 48 : index
    %c64 = arith.constant 64 : index
    %c80 = arith.constant 80 : index
    %c96 = arith.constant 96 : index
    %c112 = arith.constant 112 : index
    %d1 = arith.addi %column, %c16 : index
    %d2 = arith.addi %column, %c32 : index
    %d3 = arith.addi %column, %c48 : index
    %d4 = arith.addi %column, %c64 : index
    %d5 = arith.addi %column, %c80 : index
    %d6 = arith.addi %column, %c96 : index
    %d7 = arith.addi %column, %c112 : index
    %mix0 = vector.extract %mix[0] : vector<8xf32> from vector<8x8xf32>
    %mix1 = vector.extract %mix[1] : vector<8xf32> from vector<8x8xf32>
    %mix2 = vector.extract %mix[2] : vector<8xf32> from vector<8x8xf32>
    %mix3 = vector.extract %mix[3] : vector<8xf32> from vector<8x8xf32>
    %mix4 = vector.extract %mix[4] : vector<8xf32> from vector<8x8xf32>
    %mix5 = vector.extract %mix[5] : vector<8xf32> from vector<8x8xf32>
    %mix6 = vector.extract %mix[6] : vector<8xf32> from vector<8x8xf32>
    %mix7 = vector.extract %mix[7] : vector<8xf32> from vector<8x8xf32>
    func.call @leave_columns(%mix0, %all_mix, %warp, %row, %column)
        : (vector<8xf32>, !floats, index, index, index) -> ()
    func.call @leave_columns(%mix1, %all_mix, %warp, %row, %d1)
        : (vector<8xf32>, !floats, index, index, index) -> ()
    func.call @leave_columns(%mix2, %all_mix, %warp, %row, %d2)
        : (vector<8xf32>, !floats, index, index, index) -> ()
    func.call @leave_columns(%mix3, %all_mix, %warp, %row, %d3)
        : (vector<8xf32>, !floats, index, index, index) -> ()
    func.call @leave_columns(%mix4, %all_mix, %warp, %row, %d4)
        : (vector<8xf32>, !floats, index, index, index) -> ()
    func.call @leave_columns(%mix5, %all_mix, %warp, %row, %d5)
        : (vector<8xf32>, !floats, index, index, index) -> ()
    func.call @leave_columns(%mix6, %all_mix, %warp, %row, %d6)
        : (vector<8xf32>, !floats, index, index, index) -> ()
    func.call @leave_columns(%mix7, %all_mix, %warp, %row, %d7)
        : (vector<8xf32>, !floats, index, index, index) -> ()
    return
  }

  func.func private @leave_columns(%mix: vector<8xf32>, %all_mix: !floats, %warp: index, %row: index, %column: index) {
    %c8 = arith.constant 8 : index
    %shift = arith.muli %row, %c8 : index
    %next = arith.addi %column, %c8 : index
    %place = arith.xori %column, %shift : index
    %next_place = arith.xori %next, %shift : index
    %left = vector.extract_strided_slice %mix {offsets = [0], sizes = [2], strides = [1]}
        : vector<8xf32> to vector<2xf32>
    %right = vector.extract_strided_slice %mix {offsets = [4], sizes = [2], strides = [1]}
        : vector<8xf32> to vector<2xf32>
    vector.store %left, %all_mix[%warp, %row, %place] {alignment = 8 : i64} : !floats, vector<2xf32>
    vector.store %right, %all_mix[%warp, %row, %next_place] {alignment = 8 : i64} : !floats, vector<2xf32>
    return
  }

  // 8 columns of the result of a query head, from the partial results of the four warps. Without tokens, sums are zero.
  func.func private @combine(%all_mix: !floats, %all_max: !numbers, %all_sum: !numbers, %row: index, %column: index)
      -> vector<8xbf16> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %lowest = arith.constant -1.0e30 : f32
    %no_mix = arith.constant dense<0.0> : vector<8xf32>
    %shift = arith.muli %row, %c8 : index
    %place = arith.xori %column, %shift : index
    %max = scf.for %warp = %c0 to %c4 step %c1 iter_args(%old_max = %lowest) -> (f32) {
      %warp_max = memref.load %all_max[%warp, %row] : !numbers
      %new_max = arith.maximumf %old_max, %warp_max : f32
      scf.yield %new_max : f32
    }
    %sum, %mix = scf.for %warp = %c0 to %c4 step %c1
        iter_args(%old_sum = %zero, %old_mix = %no_mix) -> (f32, vector<8xf32>) {
      %warp_max = memref.load %all_max[%warp, %row] : !numbers
      %warp_sum = memref.load %all_sum[%warp, %row] : !numbers
      %warp_mix = vector.load %all_mix[%warp, %row, %place] {alignment = 16 : i64} : !floats, vector<8xf32>
      %distance = arith.subf %warp_max, %max : f32
      %weight = math.exp2 %distance : f32
      %weights = vector.broadcast %weight : f32 to vector<8xf32>
      %new_sum = math.fma %warp_sum, %weight, %old_sum : f32
      %new_mix = math.fma %warp_mix, %weights, %old_mix : vector<8xf32>
      scf.yield %new_sum, %new_mix : f32, vector<8xf32>
    }
    %any = arith.cmpf ogt, %sum, %zero : f32
    %divisor = arith.select %any, %sum, %one : f32
    %factor = arith.divf %one, %divisor fastmath<arcp, afn> : f32
    %factors = vector.broadcast %factor : f32 to vector<8xf32>
    %mean = arith.mulf %mix, %factors : vector<8xf32>
    %result = arith.truncf %mean : vector<8xf32> to vector<8xbf16>
    return %result : vector<8xbf16>
  }
}
