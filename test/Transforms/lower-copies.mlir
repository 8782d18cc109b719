// RUN: kvcache-opt %s --kvcache-choose-copies --kvcache-materialize-descriptors --kvcache-lower-pipes --kvcache-lower-copies --canonicalize --split-input-file | FileCheck %s

// What copies wait for, and where writes need a fence before them.

#kv = #kvcache.params<num_heads = 2, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>
!kt = !kvcache.tile<16x64xbf16, swizzle_128b>

// The second copy reuses a tile, and so threads meet before both, although
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

#kv = #kvcache.params<num_heads = 2, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>
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

#kv = #kvcache.params<num_heads = 2, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>
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

#odd = #kvcache.params<num_heads = 1, head_size = 18>
#kv = #kvcache.params<num_heads = 2, head_size = 64>
!odd = !kvcache.paged<f8E4M3FN, #odd, page_size = 16>
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

#kv = #kvcache.params<num_heads = 2, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>
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
