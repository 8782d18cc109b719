// Causal attention of the new tokens of sequences over a paged cache, for one layer, on Hopper, with the schedule of
// FlashAttention-3: a warpgroup copies tiles, and two warpgroups multiply in turns.
//
//   out[r, n, :] = softmax(scale * q[r, n, :] . keys[b, n / 4, t, :] over t <= cached[b] + r - offsets[b])
//                  . values[b, n / 4, t, :]   for rows r of offsets[b] to offsets[b + 1]
//
// 32 query heads share 8 KV heads of 128 elements; bf16, pages of 64 tokens. `lengths` counts the tokens in the cache
// before the new ones, which are in the pages already. Weights are rounded to bf16 before the product with values.
//
// A thread block has 128 query rows: 32 tokens, each for the 4 query heads of a KV head. Row i of the block is token
// i / 4 and query head 4 * head + i mod 4. Launch a grid of (8 times the blocks of 32 tokens of the longest sequence,
// batch) with 384 threads and 160 KiB of dynamic shared memory: a tile of queries, two of keys and two of values.
// `scale` is positive.
//
// The loop over tiles is written one tile after the other. `kvcache-schedule-attention` makes it start the scores of a
// tile before it waits for the sums of the tile before, so that exponentials overlap products, and the two warpgroups
// multiply in turns.
//
//   kvcache-opt examples/attention_pingpong.mlir --kvcache-to-ptx="chip=sm_90a" --emit-ptx

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!rows = memref<?x32x128xbf16>
!tile = !kvcache.tile<128x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<2, !tile, producers = 4>
!s = !kvcache.fragment<64x128xf32, wgmma_acc>
!fly = !kvcache.in_flight<64x128xf32, wgmma_acc>
!p = !kvcache.fragment<64x128xbf16, wgmma_a16>
!row = !kvcache.fragment<64xf32, wgmma_acc>
!share = !kvcache.fragment<64xf32, wgmma_acc, partial>

gpu.module @kernels {
  gpu.func @attention_pingpong(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                               %max_seq: i32, %max_cache: i32, %layer: index, %offsets: memref<?xi32>, %scale: f32,
                               %q: !rows, %out: !rows)
      kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %c384 = arith.constant 384 : index
    %c2048 = arith.constant 2048 : index
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %lowest = arith.constant -1.0e30 : f32
    %log2e = arith.constant 1.44269504 : f32
    %zeros = arith.constant dense<0.0> : vector<8xbf16>

    %head_and_block = gpu.block_id x
    %head = arith.remui %head_and_block, %c8 : index
    %block = arith.divui %head_and_block, %c8 : index
    %seq = gpu.block_id y
    %thread = gpu.thread_id x
    %c = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
      : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
    %keys = kvcache.paged_view key %c[%layer] : !collection
    %values = kvcache.paged_view value %c[%layer] : !collection

    // The tokens of the block: from `first` on in the sequence, and row `row` of `q`.
    %next_seq = arith.addi %seq, %c1 : index
    %begin32 = memref.load %offsets[%seq] : memref<?xi32>
    %end32 = memref.load %offsets[%next_seq] : memref<?xi32>
    %begin = arith.index_cast %begin32 : i32 to index
    %end = arith.index_cast %end32 : i32 to index
    %cached = kvcache.cache_length %c[%seq] : !collection
    %token = arith.muli %block, %c32 : index
    %row = arith.addi %begin, %token : index
    %first = arith.addi %cached, %token : index
    // Blocks after the last token have none. They compute, too: ptxas grants registers to roles only outside of
    // branches.
    %left_rows = arith.subi %end, %row : index
    %some_rows = arith.maxsi %left_rows, %c0 : index
    %count = arith.minui %some_rows, %c32 : index
    // Some row sees keys [0, to), and every row sees keys [0, all).
    %to = arith.addi %first, %count : index
    %all = arith.addi %first, %c1 : index
    %all_tiles = arith.ceildivui %to, %c128 : index
    %tiles = arith.maxui %all_tiles, %c1 : index
    %factor = arith.mulf %scale, %log2e : f32

    // All threads copy the queries, 8 elements at a time. Rows after the last token are zeros.
    %qt = kvcache.alloc_tile : !tile
    %kr = kvcache.pipe {producer_registers = 40, consumer_registers = 232} : !ring
    %vr = kvcache.pipe : !ring
    scf.for %i = %thread to %c2048 step %c384 {
      %r = arith.divui %i, %c16 : index
      %piece = arith.remui %i, %c16 : index
      %column = arith.muli %piece, %c8 : index
      %t = arith.divui %r, %c4 : index
      %h = arith.remui %r, %c4 : index
      %first_head = arith.muli %head, %c4 : index
      %query_head = arith.addi %first_head, %h : index
      %exists = arith.cmpi ult, %t, %count : index
      %x = scf.if %exists -> vector<8xbf16> {
        %query_row = arith.addi %row, %t : index
        %loaded = vector.load %q[%query_row, %query_head, %column] : !rows, vector<8xbf16>
        scf.yield %loaded : vector<8xbf16>
      } else {
        scf.yield %zeros : vector<8xbf16>
      }
      kvcache.tile_store %x, %qt[%r, %column] : vector<8xbf16>, !tile
    }
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    gpu.barrier

    %produces = arith.cmpi ult, %thread, %c128 : index
    scf.if %produces {
      scf.for %j = %c0 to %tiles step %c1 {
        %key = arith.muli %j, %c128 : index
        %left = arith.subi %to, %key : index
        kvcache.produce %kr[%j] : !ring {
        ^bb0(%kt: !tile):
          kvcache.async_load_tile %keys[%seq, %head, %key, %c0] valid %left to %kt : !cache, !tile
        }
        kvcache.produce %vr[%j] : !ring {
        ^bb0(%vt: !tile):
          kvcache.async_load_tile %values[%seq, %head, %key, %c0] valid %left to %vt : !cache, !tile
        }
      }
    } else {
      %consumer = arith.subi %thread, %c128 : index
      %team = arith.divui %consumer, %c128 : index
      %r0 = arith.muli %team, %c64 : index
      %m0 = kvcache.splat %lowest : !row
      %l0 = kvcache.splat %zero : !share
      %o0 = kvcache.splat %zero : !s
      %m, %l, %sums = scf.for %j = %c0 to %tiles step %c1 iter_args(%mj = %m0, %lj = %l0, %oj = %o0)
          -> (!row, !share, !s) {
        %key = arith.muli %j, %c128 : index
        %s = kvcache.consume %kr[%j] : !ring -> !s {
        ^bb0(%kt: !tile):
          %qk = kvcache.fragment_mma %qt[%r0, %c0], %kt[%c0, %c0] {k = 128} : !tile, !tile -> !fly
          %done = kvcache.fragment_wait %qk : !fly
          kvcache.yield %done : !s
        }
        // Keys that some row does not see are masked. From `all` on, there are such keys.
        %next_key = arith.addi %key, %c128 : index
        %some = arith.cmpi ugt, %next_key, %all : index
        %x = scf.if %some -> !s {
          %masked = kvcache.map %s at(%r0, %key) : !s -> !s {
          ^bb0(%e: f32, %r: index, %k: index):
            %t = arith.divui %r, %c4 : index
            %query = arith.addi %first, %t : index
            %sees = arith.cmpi ule, %k, %query : index
            %y = arith.select %sees, %e, %lowest : f32
            kvcache.yield %y : f32
          }
          scf.yield %masked : !s
        } else {
          scf.yield %s : !s
        }
        // The softmax: weights, and the factor of earlier sums.
        %mn = kvcache.reduce maxnumf %x from %mj : !s -> !row
        %alpha = kvcache.map %mj, %mn : !row, !row -> !row {
        ^bb0(%old: f32, %new: f32):
          %d = arith.subf %old, %new : f32
          %scaled = arith.mulf %d, %factor : f32
          %a = math.exp2 %scaled fastmath<afn> : f32
          kvcache.yield %a : f32
        }
        %probs = kvcache.map %x, %mn : !s, !row -> !s {
        ^bb0(%e: f32, %most: f32):
          %scaled = arith.mulf %most, %factor : f32
          %minus = arith.negf %scaled : f32
          %z = math.fma %e, %factor, %minus : f32
          %y = math.exp2 %z fastmath<afn> : f32
          kvcache.yield %y : f32
        }
        %ls = kvcache.map arith.mulf(%lj, %alpha) : !share, !row -> !share
        %ln = kvcache.reduce addf %probs from %ls : !s -> !share
        %weights = kvcache.to_operand %probs : !s -> !p
        %os = kvcache.map arith.mulf(%oj, %alpha) : !s, !row -> !s
        %on = kvcache.consume %vr[%j] : !ring -> !s {
        ^bb0(%vt: !tile):
          %pv = kvcache.fragment_mma %weights, %vt[%c0, %c0] add %os {major_b = #kvcache.major<mn_major>}
            : !p, !tile, !s -> !fly
          %done = kvcache.fragment_wait %pv : !fly
          kvcache.yield %done : !s
        }
        scf.yield %mn, %ln, %on : !row, !share, !s
      } {kvcache.schedule = #kvcache.schedule<ping_pong>}

      // Each warp stores its own rows of the queries' tile, of which it is the last reader, and copies them.
      %total = kvcache.reduce addf %l : !share -> !row
      %inverse = kvcache.map %total : !row -> !row {
      ^bb0(%e: f32):
        %y = arith.divf %one, %e : f32
        kvcache.yield %y : f32
      }
      %result = kvcache.map arith.mulf(%sums, %inverse) : !s, !row -> !s
      %rounded = kvcache.to_operand %result : !s -> !p
      kvcache.fragment_store %rounded, %qt[%r0, %c0] : !p, !tile
      %mask = arith.constant -1 : i32
      nvvm.bar.warp.sync %mask : i32
      %warp = arith.divui %consumer, %c32 : index
      %lane = arith.remui %consumer, %c32 : index
      %warp_row = arith.muli %warp, %c16 : index
      %lane_row = arith.divui %lane, %c16 : index
      %lane_piece = arith.remui %lane, %c16 : index
      %column = arith.muli %lane_piece, %c8 : index
      %c2 = arith.constant 2 : index
      scf.for %i = %lane_row to %c16 step %c2 {
        %r = arith.addi %warp_row, %i : index
        %t = arith.divui %r, %c4 : index
        %h = arith.remui %r, %c4 : index
        %exists = arith.cmpi ult, %t, %count : index
        scf.if %exists {
          %first_head = arith.muli %head, %c4 : index
          %query_head = arith.addi %first_head, %h : index
          %query_row = arith.addi %row, %t : index
          %x = kvcache.tile_load %qt[%r, %column] : !tile -> vector<8xbf16>
          vector.store %x, %out[%query_row, %query_head, %column] : !rows, vector<8xbf16>
        }
      }
    }
    gpu.return
  }
}
