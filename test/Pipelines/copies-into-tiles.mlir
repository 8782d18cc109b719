// RUN: kvcache-opt %s --kvcache-to-ptx="chip=sm_80" --emit-ptx | FileCheck %s --check-prefix=SM80 --implicit-check-not=.local
// RUN: kvcache-opt %s --kvcache-to-ptx="chip=sm_90a" --emit-ptx | FileCheck %s --check-prefix=SM90 --implicit-check-not=.local
// RUN: kvcache-opt %s --kvcache-to-ptx="chip=sm_100a" --emit-ptx | FileCheck %s --check-prefix=SM90 --implicit-check-not=.local

// One source: the threads of a block copy 16 bytes each, or one of them has a
// tensor copy do it for each chunk and page.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

// SM80-LABEL: .visible .entry keys(
// SM80-NOT:     .b8 keys_param
// SM80:         .shared .align 1024 .b8 kvcache_tile[16384];
// SM80:         cp.async.cg.shared.global [{{.*}}], [{{.*}}], 16, %r{{[0-9]+}};
// SM80:         cp.async.commit_group;
// SM80:         cp.async.wait_group 0;
// SM80:         bar.sync 0;
// SM80:         ld.shared.v4.b32

// SM90-LABEL: .visible .entry keys(
// SM90:         .param .align 64 .b8 keys_param_12[128]
// SM90:         shfl.sync.idx.b32
// SM90:         mbarrier.init.shared.b64
// SM90-NEXT:    fence.mbarrier_init.release.cluster;
// SM90-NEXT:    prefetch.param.tensormap
// SM90-NOT:     prefetch
// SM90:         bar.sync 0;
// SM90:         elect.sync
// SM90:         ld.global.nc.b32
// SM90:         mbarrier.arrive.expect_tx.shared.b64
// SM90-COUNT-8: cp.async.bulk.tensor.4d.shared::cta.global.tile.mbarrier::complete_tx::bytes
// SM90-NOT:     cp.async.bulk
// SM90:         mbarrier.try_wait.parity.shared.b64
// SM90:         ld.shared.v4.b32
gpu.module @kernels {
  gpu.func @keys(%k: !cache, %n: index, %out: memref<64x128xbf16>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %b = gpu.block_id x
    %h = gpu.block_id y
    %thread = gpu.thread_id x
    %kt = kvcache.alloc_tile : !kt
    %tok = kvcache.async_load_tile %k[%b, %h, %c0, %c0] valid %n to %kt : !cache, !kt
    kvcache.wait %tok
    %row = arith.divui %thread, %c8 : index
    %unit = arith.remui %thread, %c8 : index
    %column = arith.muli %unit, %c8 : index
    %v = kvcache.tile_load %kt[%row, %column] : !kt -> vector<8xbf16>
    vector.store %v, %out[%row, %column] {alignment = 16} : memref<64x128xbf16>, vector<8xbf16>
    gpu.return
  }
}
