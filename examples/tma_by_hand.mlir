// Loads a tile with the TMA ops: a descriptor, a barrier, the bytes that it waits for, and the copy.
//
// `async_load_tile` in key_tile.mlir does all of this, on every chip. These ops are for kernels that need the TMA
// instructions of sm_90 and newer. emulator/docs/copies-and-matrices.md shows the errors if one of them is missing.
//
//   kvcache-opt examples/tma_by_hand.mlir --kvcache-to-ptx="chip=sm_90a" --emit-ptx

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!box = !kvcache.tma_tile<64x1x64x1xbf16, swizzle_128b>
!tile = !kvcache.tile<64x128xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

// out[t, d] = keys of layer 0 in one page: thread 0 copies them to shared memory, and 16 threads write each row.
func.func @copy_page(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                     %page: index, %head: index, %out: memref<64x128xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0 : i32
  %cache = kvcache.paged_collection %blocks, %lengths, %lut, %zero, %zero
      : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  %keys = kvcache.paged_view key %cache[%c0] : !collection
  %box = kvcache.create_paged_tma_tile %keys {rows = 64, columns = 128, swizzle = #kvcache.swizzle<swizzle_128b>}
      : !cache -> !box
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%t, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %bytes = arith.constant 16384 : index
    %ticks = arith.constant 10000000 : index
    %false = arith.constant false
    %tile = kvcache.alloc_tile : !tile
    %barrier = nvgpu.mbarrier.create -> !barrier
    %is_first = arith.cmpi eq, %t, %c0 : index
    nvgpu.mbarrier.init %barrier[%c0], %c1, predicate = %is_first : !barrier
    nvvm.fence.mbarrier.init
    gpu.barrier
    scf.if %is_first {
      kvcache.tma_expect %barrier[%c0] bytes %bytes : !barrier
      kvcache.tma_load %box[%c0, %head, %c0, %page], %barrier[%c0] to %tile : !box, !barrier -> !tile
    }
    nvgpu.mbarrier.try_wait.parity %barrier[%c0], %false, %ticks : !barrier
    %x = arith.remui %t, %c16 : index
    %y = arith.divui %t, %c16 : index
    %d = arith.muli %x, %c8 : index
    scf.for %row = %y to %c64 step %c8 {
      %v = kvcache.tile_load %tile[%row, %d] : !tile -> vector<8xbf16>
      vector.store %v, %out[%row, %d] {alignment = 16} : memref<64x128xbf16>, vector<8xbf16>
    }
    gpu.terminator
  }
  return
}
