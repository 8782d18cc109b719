// Gathers one layer's keys from the paged cache into a contiguous buffer.
//
//   out[b, t, h, d] = keys[b, h, t, d]   for t < cache_length(b), and 0 above
//
// The shapes are Llama-3-8B's: pages of 64 tokens, 8 KV heads of 128, bf16. For the values, write `value` for `key`.
// One source for both machines: on the CPU the parallel loops run as loops; on a GPU the outer one is the grid (one
// block for 8 tokens of a sequence) and the inner one the block. Its last dimension becomes threadIdx.x, so that
// neighbouring threads touch neighbouring 16 bytes. A thread loads 4 x 16 bytes before it stores them.
//
//   kvcache-opt examples/gather.mlir --kvcache-to-ptx="chip=sm_90a" --emit-ptx
//
//   program = kvcache.jit(pathlib.Path("examples/gather.mlir"), target="cpu")
//   program.call("gather_keys", blocks, lengths, lut, max_seq, max_cache, layer, out)

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @gather_keys(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                       %max_seq: i32, %max_cache: i32, %layer: index, %out: memref<?x?x8x128xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant dense<0.0> : vector<8xbf16>

  %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
      : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  %keys = kvcache.paged_view key %collection[%layer] : !collection
  %batch = memref.dim %out, %c0 : memref<?x?x8x128xbf16>
  %tokens = memref.dim %out, %c1 : memref<?x?x8x128xbf16>

  scf.parallel (%b, %first) = (%c0, %c0) to (%batch, %tokens) step (%c1, %c8) {
    scf.parallel (%row, %h, %lane) = (%c0, %c0, %c0) to (%c2, %c8, %c16) step (%c1, %c1, %c1) {
      %d = arith.muli %lane, %c8 : index
      %t0 = arith.addi %first, %row : index
      %t1 = arith.addi %t0, %c2 : index
      %t2 = arith.addi %t0, %c4 : index
      %t3 = arith.addi %t0, %c6 : index

      %length = kvcache.cache_length %keys[%b] : !cache
      %used0 = arith.cmpi ult, %t0, %length : index
      %used1 = arith.cmpi ult, %t1, %length : index
      %used2 = arith.cmpi ult, %t2, %length : index
      %used3 = arith.cmpi ult, %t3, %length : index
      %v0 = scf.if %used0 -> vector<8xbf16> {
        %v = kvcache.load %keys[%b, %h, %t0, %d] : !cache -> vector<8xbf16>
        scf.yield %v : vector<8xbf16>
      } else {
        scf.yield %zero : vector<8xbf16>
      }
      %v1 = scf.if %used1 -> vector<8xbf16> {
        %v = kvcache.load %keys[%b, %h, %t1, %d] : !cache -> vector<8xbf16>
        scf.yield %v : vector<8xbf16>
      } else {
        scf.yield %zero : vector<8xbf16>
      }
      %v2 = scf.if %used2 -> vector<8xbf16> {
        %v = kvcache.load %keys[%b, %h, %t2, %d] : !cache -> vector<8xbf16>
        scf.yield %v : vector<8xbf16>
      } else {
        scf.yield %zero : vector<8xbf16>
      }
      %v3 = scf.if %used3 -> vector<8xbf16> {
        %v = kvcache.load %keys[%b, %h, %t3, %d] : !cache -> vector<8xbf16>
        scf.yield %v : vector<8xbf16>
      } else {
        scf.yield %zero : vector<8xbf16>
      }

      %inside0 = arith.cmpi ult, %t0, %tokens : index
      %inside1 = arith.cmpi ult, %t1, %tokens : index
      %inside2 = arith.cmpi ult, %t2, %tokens : index
      %inside3 = arith.cmpi ult, %t3, %tokens : index
      scf.if %inside0 {
        vector.store %v0, %out[%b, %t0, %h, %d] {alignment = 16 : i64} : memref<?x?x8x128xbf16>, vector<8xbf16>
      }
      scf.if %inside1 {
        vector.store %v1, %out[%b, %t1, %h, %d] {alignment = 16 : i64} : memref<?x?x8x128xbf16>, vector<8xbf16>
      }
      scf.if %inside2 {
        vector.store %v2, %out[%b, %t2, %h, %d] {alignment = 16 : i64} : memref<?x?x8x128xbf16>, vector<8xbf16>
      }
      scf.if %inside3 {
        vector.store %v3, %out[%b, %t3, %h, %d] {alignment = 16 : i64} : memref<?x?x8x128xbf16>, vector<8xbf16>
      }
    }
  }
  return
}
