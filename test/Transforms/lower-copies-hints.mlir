// RUN: kvcache-opt %s --kvcache-choose-copies --kvcache-materialize-descriptors --kvcache-lower-pipes --kvcache-lower-copies --canonicalize | FileCheck %s
// RUN: kvcache-opt %s --kvcache-to-ptx --emit-ptx --emit-ptx-module=ampere | FileCheck %s --check-prefix=AMPERE
// RUN: kvcache-opt %s --kvcache-to-ptx --emit-ptx --emit-ptx-module=hopper | FileCheck %s --check-prefix=HOPPER
// RUN: kvcache-opt %s --kvcache-to-ptx --emit-ptx --emit-ptx-module=blackwell | FileCheck %s --check-prefix=BLACKWELL

// How long what a copy reads stays in the L2 cache: every instruction has the hint of the copy.

#kv = #kvcache.params<num_heads = 2, head_size = 128>
#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!short = !kvcache.paged<bf16, #kv, page_size = 16>
!latent = !kvcache.paged<f8E4M3FN, #mla, page_size = 64>
!kt = !kvcache.tile<64x64xbf16, swizzle_128b>
!rows = !kvcache.tile<64x576xf8E4M3FN>
!pipe = !kvcache.pipe<2, !kt>
!ids = memref<64xi32>

gpu.module @ampere [#nvvm.target<chip = "sm_80">] {
  // CHECK-LABEL: gpu.func @threads(
  // CHECK:         nvvm.cp.async.shared.global {{.*}}, 16, cache =  cg, %{{.*}} {kvcache.l2_hint = #kvcache.eviction<evict_first>} :
  // CHECK:         nvvm.cp.async.shared.global {{.*}}, 16, cache =  cg {kvcache.l2_hint = #kvcache.eviction<evict_last>} :
  // CHECK:         nvvm.cp.async.shared.global {{.*}}, 16, cache =  cg :
  // AMPERE-LABEL: .entry threads(
  // AMPERE:         mov.b64 [[FIRST:%rd[0-9]+]], 1364590687093260288;
  // AMPERE:         cp.async.cg.shared.global.L2::cache_hint [%r{{[0-9]+}}], [%rd{{[0-9]+}}], 16, %r{{[0-9]+}}, [[FIRST]];
  // AMPERE:         cp.async.cg.shared.global.L2::cache_hint [%r{{[0-9]+}}], [%rd{{[0-9]+}}], 16, %rd{{[0-9]+}};
  // AMPERE:         cp.async.cg.shared.global [
  gpu.func @threads(%k: !cache, %b: index, %n: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %first = kvcache.alloc_tile : !kt
    %last = kvcache.alloc_tile : !kt
    %none = kvcache.alloc_tile : !kt
    %t0 = kvcache.async_load_tile %k[%b, %c0, %c0, %c0] valid %n to %first {l2_hint = #kvcache.eviction<evict_first>} : !cache, !kt
    %t1 = kvcache.async_load_tile %k[%b, %c0, %c0, %c0] to %last {l2_hint = #kvcache.eviction<evict_last>} : !cache, !kt
    %t2 = kvcache.async_load_tile %k[%b, %c0, %c0, %c0] to %none : !cache, !kt
    kvcache.wait %t0
    kvcache.wait %t1
    kvcache.wait %t2
    gpu.return
  }

  // Loads have no other hint than that of streams.
  // CHECK-LABEL: gpu.func @loads(
  // CHECK:         kvcache.load {{.*}} {nontemporal = true}
  // CHECK:         kvcache.load {{.*}}] : {{.*}} -> vector<8xbf16>
  // AMPERE-LABEL: .entry loads(
  // AMPERE:         ld.global.cs.nc.v4.b32
  // AMPERE:         ld.global.nc.v4.b32
  gpu.func @loads(%k: !cache, %b: index) kernel {
    %c0 = arith.constant 0 : index
    %first = kvcache.alloc_tile : !kt
    %last = kvcache.alloc_tile : !kt
    %t0 = kvcache.async_load_tile %k[%b, %c0, %c0, %c0] to %first
        {copy = #kvcache.copy<plain>, l2_hint = #kvcache.eviction<evict_first>} : !cache, !kt
    %t1 = kvcache.async_load_tile %k[%b, %c0, %c0, %c0] to %last
        {copy = #kvcache.copy<plain>, l2_hint = #kvcache.eviction<evict_last>} : !cache, !kt
    kvcache.wait %t0
    kvcache.wait %t1
    gpu.return
  }
}

gpu.module @hopper [#nvvm.target<chip = "sm_90a">] {
  // Boxes of pages of 16 rows, in a pipe.
  // CHECK-LABEL: gpu.func @boxes(
  // CHECK-COUNT-4: kvcache.tma_load {{.*}} {l2_hint = #kvcache.eviction<evict_first>} :
  // CHECK-NOT:     kvcache.tma_load
  // CHECK:         gpu.return
  // HOPPER-LABEL: .entry boxes(
  // HOPPER-COUNT-4: cp.async.bulk.tensor.4d.shared::cta.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint
  gpu.func @boxes(%k: !short, %b: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %pipe = kvcache.pipe : !pipe
    kvcache.produce %pipe[%c0] : !pipe {
    ^bb0(%to: !kt):
      kvcache.async_load_tile %k[%b, %c0, %c0, %c0] to %to {l2_hint = #kvcache.eviction<evict_first>} : !short, !kt
    }
    kvcache.consume %pipe[%c0] : !pipe {
    ^bb0(%from: !kt):
    }
    gpu.return
  }

  // CHECK-LABEL: gpu.func @rows(
  // CHECK:         %[[FIRST:.*]] = arith.constant 1364590687093260288 : i64
  // CHECK:         nvvm.cp.async.bulk.shared.cluster.global {{.*}} l2_cache_hint = %[[FIRST]]
  // HOPPER-LABEL: .entry rows(
  // HOPPER:         cp.async.bulk.{{.*}}.L2::cache_hint
  gpu.func @rows(%k: !latent, %ids: !ids) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %rows = kvcache.alloc_tile : !rows
    %tok = kvcache.async_gather_tile %k[%c0, %c0] rows %ids to %rows {l2_hint = #kvcache.eviction<evict_first>} : !latent, !ids, !rows
    kvcache.wait %tok
    gpu.return
  }
}

gpu.module @blackwell [#nvvm.target<chip = "sm_100a">] {
  // CHECK-LABEL: gpu.func @gather(
  // CHECK-COUNT-16: kvcache.tma_gather4 {{.*}} {l2_hint = #kvcache.eviction<evict_first>}
  // BLACKWELL-LABEL: .entry gather(
  // BLACKWELL-COUNT-16: cp.async.bulk.tensor.2d.{{.*}}tile::gather4.{{.*}}.L2::cache_hint
  gpu.func @gather(%k: !latent, %ids: !ids) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %rows = kvcache.alloc_tile : !rows
    %tok = kvcache.async_gather_tile %k[%c0, %c0] rows %ids to %rows {l2_hint = #kvcache.eviction<evict_first>} : !latent, !ids, !rows
    kvcache.wait %tok
    gpu.return
  }
}
