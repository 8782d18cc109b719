// Gathers the rows of an MLA cache that a sparse attention has selected into tiles in shared memory, and sums them up by
// pairs of columns: the least that makes use of every byte.
//
//   out[q, i] = sum over n of row[q, n, 2 * i] + row[q, n, 2 * i + 1], where row[q, n, :] = cache[ids[q, n], :],
//   and zeros where ids[q, n] is no row of the cache, such as -1
//
// The cache has 576 bf16 in a row, 512 of content and 64 of rope, in pages of 16 rows; the id of a row is
// `page * 16 + offset in the page`. A list of ids, (queries, selected), i32, is a multiple of 64 long, the rows of a
// tile, and starts at 16 bytes. Sums are f32, (queries, 288): first over the rows of a tile, then over tiles.
//
// A block of 128 threads for each query. While a tile is in use the next one is on its way, in the layout that
// `ldmatrix` and the tensor cores want. 72 threads read 16 bytes each of a row: four pairs.

#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!collection = !kvcache.paged_collection<bf16, #mla, page_size = 16>
!cache = !kvcache.paged<bf16, #mla, page_size = 16>
!tile = !kvcache.tile<64x576xbf16, swizzle_128b>
!ring = !kvcache.pipe<2, !tile>
!ids = memref<?x?xi32>
!ids_of_tile = memref<64xi32, strided<[1], offset: ?>>
!sums = vector<4xf32>

func.func @sparse_rows(%blocks: memref<?x1x?x16x1x576xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                       %max_seq: i32, %max_cache: i32, %layer: index, %ids: !ids, %out: memref<?x288xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
      : memref<?x1x?x16x1x576xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  %cache = kvcache.paged_view key %collection[%layer] : !collection
  %queries = memref.dim %ids, %c0 : !ids
  scf.parallel (%q) = (%c0) to (%queries) step (%c1) {
    scf.parallel (%x) = (%c0) to (%c128) step (%c1) {
      func.call @sum_rows(%cache, %ids, %q, %x, %out) : (!cache, !ids, index, index, memref<?x288xf32>) -> ()
    }
  }
  return
}

// What thread x does for query q.
func.func private @sum_rows(%cache: !cache, %ids: !ids, %q: index, %x: index, %out: memref<?x288xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %c72 = arith.constant 72 : index
  %zeros = arith.constant dense<0.0> : !sums
  %selected = memref.dim %ids, %c1 : !ids
  %tiles = arith.divui %selected, %c64 : index
  %is_reader = arith.cmpi ult, %x, %c72 : index

  %ring = kvcache.pipe : !ring
  %any = arith.cmpi ne, %tiles, %c0 : index
  scf.if %any {
    %first_ids = func.call @ids_of_tile(%ids, %q, %c0) : (!ids, index, index) -> !ids_of_tile
    kvcache.produce %ring[%c0] : !ring {
    ^bb0(%tile: !tile):
      kvcache.async_gather_tile %cache[%c0, %c0] rows %first_ids to %tile : !cache, !ids_of_tile, !tile
    }
  }
  %sums = scf.for %i = %c0 to %tiles step %c1 iter_args(%before = %zeros) -> (!sums) {
    %next = arith.addi %i, %c1 : index
    %is_tile = arith.cmpi ult, %next, %tiles : index
    scf.if %is_tile {
      %next_ids = func.call @ids_of_tile(%ids, %q, %next) : (!ids, index, index) -> !ids_of_tile
      kvcache.produce %ring[%next] : !ring {
      ^bb0(%tile: !tile):
        kvcache.async_gather_tile %cache[%c0, %c0] rows %next_ids to %tile : !cache, !ids_of_tile, !tile
      }
    }
    %so_far = kvcache.consume %ring[%i] : !ring -> (!sums) {
    ^bb0(%tile: !tile):
      %with_tile = scf.if %is_reader -> (!sums) {
        %sum = func.call @sum_tile(%tile, %x) : (!tile, index) -> !sums
        %new = arith.addf %before, %sum : !sums
        scf.yield %new : !sums
      } else {
        scf.yield %before : !sums
      }
      kvcache.yield %with_tile : !sums
    }
    scf.yield %so_far : !sums
  }
  scf.if %is_reader {
    %i = arith.muli %x, %c4 : index
    vector.store %sums, %out[%q, %i] {alignment = 16} : memref<?x288xf32>, !sums
  }
  return
}

func.func private @ids_of_tile(%ids: !ids, %q: index, %i: index) -> !ids_of_tile {
  %c64 = arith.constant 64 : index
  %first = arith.muli %i, %c64 : index
  %rows = memref.subview %ids[%q, %first] [1, 64] [1, 1] : !ids to !ids_of_tile
  %aligned = memref.assume_alignment %rows, 16 : !ids_of_tile
  return %aligned : !ids_of_tile
}

// Eight rows are the period of the swizzle.
func.func private @sum_tile(%tile: !tile, %x: index) -> !sums {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zeros = arith.constant dense<0.0> : !sums
  %d = arith.muli %x, %c8 : index
  %sum = scf.for %group = %c0 to %c8 step %c1 iter_args(%of_groups = %zeros) -> (!sums) {
    %first = arith.muli %group, %c8 : index
    %of_rows = scf.for %j = %c0 to %c8 step %c1 iter_args(%before = %of_groups) -> (!sums) {
      %row = arith.addi %first, %j : index
      %v = kvcache.tile_load %tile[%row, %d] : !tile -> vector<8xbf16>
      %wide = arith.extf %v : vector<8xbf16> to vector<8xf32>
      %even, %odd = vector.deinterleave %wide : vector<8xf32> -> vector<4xf32>
      %pairs = arith.addf %even, %odd : !sums
      %new = arith.addf %before, %pairs : !sums
      scf.yield %new : !sums
    } {llvm.loop_annotation = #llvm.loop_annotation<unroll = <full = true>>}
    scf.yield %of_rows : !sums
  }
  return %sum : !sums
}
