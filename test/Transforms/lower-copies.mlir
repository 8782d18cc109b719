// RUN: kvcache-opt %s --kvcache-choose-copies --kvcache-materialize-descriptors --kvcache-lower-pipes --kvcache-lower-copies --canonicalize --split-input-file | FileCheck %s

// What copies wait for, and where writes need a fence before them.

!cache = !kvcache.paged<bf16, <num_heads = 2, head_size = 128>, page_size = 16>
!kt = !kvcache.tile<16x64xbf16, swizzle_128b>

// The second copy reuses a tile, and so threads synchronize before both, although
// the first copy's tile is untouched.
// CHECK-LABEL: gpu.func @reuse(
// CHECK:         kvcache.tile_load
// CHECK-NOT:     kvcache.tma
// CHECK:         gpu.barrier
// CHECK:         kvcache.tma_expect
// CHECK:         kvcache.tma_load
// CHECK-NOT:     gpu.barrier
// CHECK:         kvcache.tma_expect
// CHECK:         kvcache.tma_load
gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  gpu.func @reuse(%k: !cache, %i: index, %out: memref<bf16>) kernel {
    %c0 = arith.constant 0 : index
    %a = kvcache.alloc_tile : !kt
    %b = kvcache.alloc_tile : !kt
    %t0 = kvcache.async_load_tile %k[%i, %i, %c0, %c0] to %a : !cache, !kt
    kvcache.wait %t0
    %x = kvcache.tile_load %a[%i, %c0] : !kt -> bf16
    memref.store %x, %out[] : memref<bf16>
    %t1 = kvcache.async_load_tile %k[%i, %i, %c0, %c0] to %b : !cache, !kt
    %t2 = kvcache.async_load_tile %k[%i, %i, %c0, %c0] to %a : !cache, !kt
    kvcache.wait %t1
    kvcache.wait %t2
    gpu.return
  }
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 2, head_size = 128>, page_size = 16>
!kt = !kvcache.tile<16x64xbf16, swizzle_128b>

// The second copy comes after a store to its tile.
// CHECK-LABEL: gpu.func @fence(
// CHECK:         kvcache.tile_store
// CHECK:         nvvm.fence.proxy
// CHECK-NEXT:    gpu.barrier
// CHECK-NOT:     gpu.barrier
// CHECK:         gpu.return
gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  gpu.func @fence(%k: !cache, %i: index, %x: bf16) kernel {
    %c0 = arith.constant 0 : index
    %a = kvcache.alloc_tile : !kt
    %b = kvcache.alloc_tile : !kt
    kvcache.tile_store %x, %a[%i, %c0] : bf16, !kt
    %t1 = kvcache.async_load_tile %k[%i, %i, %c0, %c0] to %b : !cache, !kt
    %t2 = kvcache.async_load_tile %k[%i, %i, %c0, %c0] to %a : !cache, !kt
    kvcache.wait %t1
    kvcache.wait %t2
    gpu.return
  }
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 2, head_size = 128>, page_size = 64>
!kt = !kvcache.tile<64x64xbf16, swizzle_128b>

// Products read by the asynchronous proxy what threads have copied.
// CHECK-LABEL: gpu.func @products(
// CHECK:         nvvm.cp.async.wait.group 0
// CHECK-NEXT:    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// CHECK-NEXT:    gpu.barrier
// CHECK-NEXT:    kvcache.mma
// They do not write it: a tensor copy into the same tile needs no fence.
// CHECK-LABEL: gpu.func @products_of_tensor_copies(
// CHECK-NOT:     nvvm.fence.proxy
// CHECK:         kvcache.mma
// CHECK-NOT:     nvvm.fence.proxy
// CHECK:         gpu.return
gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  gpu.func @products(%k: !cache, %i: index, %out: memref<128x32xf32>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kt
    %tok = kvcache.async_load_tile %k[%i, %i, %i, %c0] to %kt {copy = #kvcache.copy<cp_async>} : !cache, !kt
    kvcache.wait %tok
    %d = kvcache.mma %kt[%c0, %c0], %kt[%c0, %c0] : !kt, !kt -> vector<32xf32>
    %e = kvcache.mma_wait %d : vector<32xf32>
    %t = gpu.thread_id x
    vector.store %e, %out[%t, %c0] : memref<128x32xf32>, vector<32xf32>
    gpu.return
  }
  gpu.func @products_of_tensor_copies(%k: !cache, %i: index, %n: index, %out: memref<128x32xf32>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %t = gpu.thread_id x
    %kt = kvcache.alloc_tile : !kt
    scf.for %j = %c0 to %n step %c1 {
      %tok = kvcache.async_load_tile %k[%i, %i, %j, %c0] to %kt : !cache, !kt
      kvcache.wait %tok
      %d = kvcache.mma %kt[%c0, %c0], %kt[%c0, %c0] : !kt, !kt -> vector<32xf32>
      %e = kvcache.mma_wait %d : vector<32xf32>
      vector.store %e, %out[%t, %c0] : memref<128x32xf32>, vector<32xf32>
    }
    gpu.return
  }
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 2, head_size = 128>, page_size = 16>
!kt = !kvcache.tile<16x64xbf16, swizzle_128b>
!memory = memref<2048xi8, #gpu.address_space<workgroup>>

// Given memory may have been written by other names.
// CHECK-LABEL: gpu.func @given_memory(
// CHECK:         memref.store
// CHECK:         nvvm.fence.proxy
// CHECK-NEXT:    gpu.barrier
gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  memref.global "private" @buffer : !memory {alignment = 1024}
  gpu.func @given_memory(%k: !cache, %i: index, %x: i8) kernel {
    %c0 = arith.constant 0 : index
    %memory = memref.get_global @buffer : !memory
    memref.store %x, %memory[%i] : !memory
    %a = kvcache.tile_view %memory : !memory -> !kt
    %t = kvcache.async_load_tile %k[%i, %i, %c0, %c0] to %a : !cache, !kt
    kvcache.wait %t
    gpu.return
  }
}

// -----

#kv = #kvcache.params<num_heads = 2, head_size = 64>
!odd = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 18>, page_size = 16>
!cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 16>
!plain = !kvcache.tile<16x16xf8E4M3FN>
!async = !kvcache.tile<16x64xf8E4M3FN>

// A wait is for groups that were committed.
// CHECK-LABEL: gpu.func @plain_and_async(
// CHECK:         nvvm.cp.async.shared.global
// CHECK:         nvvm.cp.async.commit.group
// CHECK-NEXT:    nvvm.cp.async.wait.group 0
// CHECK-NEXT:    nvgpu.mbarrier.arrive
gpu.module @kernels [#nvvm.target<chip = "sm_80">] {
  gpu.func @plain_and_async(%a: !odd, %b: !cache, %i: index) kernel {
    %c0 = arith.constant 0 : index
    %ring = kvcache.pipe : !kvcache.pipe<2, !plain, !async>
    kvcache.produce %ring[%i] : !kvcache.pipe<2, !plain, !async> {
    ^bb0(%x: !plain, %y: !async):
      kvcache.async_load_tile %b[%i, %i, %i, %c0] to %y : !cache, !async
      kvcache.async_load_tile %a[%i, %i, %i, %c0] to %x : !odd, !plain
    }
    gpu.return
  }
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 2, head_size = 128>, page_size = 16>
!kt = !kvcache.tile<16x64xbf16, swizzle_128b>
!memory = memref<2048xi8, #gpu.address_space<workgroup>>

// Any op that writes to a slot's memory makes it need a fence, other writes
// don't.
// CHECK-LABEL: gpu.func @writes_slot(
// CHECK:         vector.transfer_write
// CHECK:         nvvm.fence.proxy
// CHECK-NEXT:    nvgpu.mbarrier.arrive
// CHECK-LABEL: gpu.func @writes_elsewhere(
// CHECK:         memref.store
// CHECK-NOT:     nvvm.fence.proxy
gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  gpu.func @writes_slot(%k: !cache, %i: index, %x: vector<16xi8>) kernel {
    %c0 = arith.constant 0 : index
    %ring = kvcache.pipe : !kvcache.pipe<2, !kt>
    kvcache.produce %ring[%i] : !kvcache.pipe<2, !kt> {
    ^bb0(%s: !kt):
      kvcache.async_load_tile %k[%i, %i, %c0, %c0] to %s : !cache, !kt
    }
    kvcache.consume %ring[%i] : !kvcache.pipe<2, !kt> {
    ^bb0(%s: !kt):
      %memory = kvcache.tile_memory %s : !kt -> !memory
      vector.transfer_write %x, %memory[%c0] : vector<16xi8>, !memory
    }
    gpu.return
  }
  gpu.func @writes_elsewhere(%k: !cache, %i: index, %out: memref<bf16>) kernel {
    %c0 = arith.constant 0 : index
    %ring = kvcache.pipe : !kvcache.pipe<2, !kt>
    kvcache.produce %ring[%i] : !kvcache.pipe<2, !kt> {
    ^bb0(%s: !kt):
      kvcache.async_load_tile %k[%i, %i, %c0, %c0] to %s : !cache, !kt
    }
    kvcache.consume %ring[%i] : !kvcache.pipe<2, !kt> {
    ^bb0(%s: !kt):
      %x = kvcache.tile_load %s[%i, %c0] : !kt -> bf16
      memref.store %x, %out[] : memref<bf16>
    }
    gpu.return
  }
}

// -----

#kv = #kvcache.params<num_heads = 2, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>
!rows = !kvcache.paged<bf16, <num_heads = 1, head_size = 24>, page_size = 16>
!blocks = memref<?x2x?x16x2x128xbf16>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 16>
!kt = !kvcache.tile<16x64xbf16, swizzle_128b>
!rt = !kvcache.tile<16x24xbf16>

// The threads that issue copies of a cache make what has been stored to it
// visible first, whether the store stands before the copy or after it.
// CHECK-LABEL: gpu.func @stores(
// CHECK:           nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.global>}
// CHECK-NEXT:      kvcache.tma_expect
// CHECK:           kvcache.tma_load
// CHECK-LABEL: gpu.func @stores_to_window(
// CHECK:           nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.global>}
// CHECK-NEXT:      kvcache.tma_expect
// CHECK-LABEL: gpu.func @stores_rows(
// CHECK:           nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.global>}
// CHECK:           nvvm.cp.async.bulk.shared.cluster.global
// CHECK-LABEL: gpu.func @stores_in_consume(
// CHECK:           nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.global>}
// CHECK-NEXT:      kvcache.tma_expect
// CHECK-LABEL: gpu.func @stores_to_blocks(
// CHECK:           nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.global>}
// CHECK-NEXT:      kvcache.tma_expect
// CHECK-LABEL: gpu.func @stores_to_unknown(
// CHECK:           nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.global>}
// CHECK-NEXT:      kvcache.tma_expect
// CHECK-LABEL: gpu.func @stores_to_other(
// CHECK-NOT:       nvvm.fence.proxy
// CHECK:           kvcache.tma_expect
// CHECK-NOT:       nvvm.fence.proxy
// CHECK:           gpu.return
module attributes {gpu.container_module} {
  gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
    gpu.func @stores(%k: !cache, %i: index, %x: bf16) kernel {
      %c0 = arith.constant 0 : index
      %a = kvcache.alloc_tile : !kt
      %t = kvcache.async_load_tile %k[%i, %i, %c0, %c0] to %a : !cache, !kt
      kvcache.wait %t
      kvcache.store %x, %k[%i, %i, %i, %c0] : bf16, !cache
      gpu.return
    }
    gpu.func @stores_to_window(%c: !collection, %i: index, %x: bf16) kernel {
      %c0 = arith.constant 0 : index
      %k = kvcache.paged_view key %c[%i] : !collection
      %v = kvcache.paged_view value %c[%i] : !collection
      %w = kvcache.block_tile %v[%i, %i, %c0, %c0] : !cache -> memref<16x64xbf16, strided<[256, 1], offset: ?>>
      memref.store %x, %w[%i, %i] : memref<16x64xbf16, strided<[256, 1], offset: ?>>
      %a = kvcache.alloc_tile : !kt
      %t = kvcache.async_load_tile %k[%i, %i, %c0, %c0] to %a : !cache, !kt
      kvcache.wait %t
      gpu.return
    }
    gpu.func @stores_rows(%k: !rows, %ids: memref<16xi32>, %i: index, %x: bf16) kernel {
      %c0 = arith.constant 0 : index
      kvcache.store %x, %k[%i, %c0, %i, %c0] : bf16, !rows
      %a = kvcache.alloc_tile : !rt
      %t = kvcache.async_gather_tile %k[%c0, %c0] rows %ids to %a {copy = #kvcache.copy<bulk_rows>} : !rows, memref<16xi32>, !rt
      kvcache.wait %t
      gpu.return
    }
    gpu.func @stores_in_consume(%k: !cache, %i: index, %x: bf16) kernel {
      %c0 = arith.constant 0 : index
      %ring = kvcache.pipe : !kvcache.pipe<2, !kt>
      kvcache.produce %ring[%i] : !kvcache.pipe<2, !kt> {
      ^bb0(%s: !kt):
        kvcache.async_load_tile %k[%i, %i, %c0, %c0] to %s : !cache, !kt
      }
      kvcache.consume %ring[%i] : !kvcache.pipe<2, !kt> {
      ^bb0(%s: !kt):
        kvcache.store %x, %k[%i, %i, %i, %c0] : bf16, !cache
      }
      gpu.return
    }
    gpu.func @stores_to_blocks(%c: !collection, %blocks: !blocks, %i: index, %x: bf16) kernel {
      %c0 = arith.constant 0 : index
      %k = kvcache.paged_view key %c[%i] : !collection
      memref.store %x, %blocks[%i, %c0, %i, %c0, %c0, %c0] : !blocks
      %a = kvcache.alloc_tile : !kt
      %t = kvcache.async_load_tile %k[%i, %i, %c0, %c0] to %a : !cache, !kt
      kvcache.wait %t
      gpu.return
    }
    gpu.func @stores_to_unknown(%k: !cache, %one: memref<bf16>, %other: memref<bf16>, %which: i1, %i: index, %x: bf16) kernel {
      %c0 = arith.constant 0 : index
      %any = arith.select %which, %one, %other : memref<bf16>
      memref.store %x, %any[] : memref<bf16>
      %a = kvcache.alloc_tile : !kt
      %t = kvcache.async_load_tile %k[%i, %i, %c0, %c0] to %a : !cache, !kt
      kvcache.wait %t
      gpu.return
    }
    gpu.func @stores_to_other(%k: !cache, %l: !cache, %out: memref<?xbf16>, %i: index, %x: bf16) kernel {
      %c0 = arith.constant 0 : index
      %own = memref.alloca() : memref<4xbf16>
      memref.store %x, %own[%i] : memref<4xbf16>
      memref.store %x, %out[%i] : memref<?xbf16>
      kvcache.store %x, %l[%i, %i, %i, %c0] : bf16, !cache
      %a = kvcache.alloc_tile : !kt
      %t = kvcache.async_load_tile %k[%i, %i, %c0, %c0] to %a : !cache, !kt
      kvcache.wait %t
      gpu.return
    }
  }

  func.func @launch(%blocks: !blocks, %lengths: memref<?xi32>, %table: memref<?x?xi32>, %max: i32, %i: index, %x: bf16) {
    %c1 = arith.constant 1 : index
    %c = kvcache.paged_collection %blocks, %lengths, %table, %max, %max : !blocks, memref<?xi32>, memref<?x?xi32> -> !collection
    gpu.launch_func @kernels::@stores_to_blocks blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%c : !collection, %blocks : !blocks, %i : index, %x : bf16)
    return
  }
}
