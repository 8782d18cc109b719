// RUN: kvcache-opt %s --allow-unregistered-dialect --kvcache-attach-targets=chip=sm_80 --kvcache-choose-copies --kvcache-materialize-descriptors --kvcache-lower-pipes --canonicalize --cse | FileCheck %s --check-prefix=CHECK80
// RUN: kvcache-opt %s --allow-unregistered-dialect --kvcache-attach-targets=chip=sm_90a --kvcache-choose-copies --kvcache-materialize-descriptors --kvcache-lower-pipes --canonicalize --cse | FileCheck %s --check-prefix=CHECK90

// Barriers, phases, bytes and slots of a pipe.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!latent = !kvcache.paged<f8E4M3FN, #mla, page_size = 64>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 16>
!page16 = !kvcache.paged<bf16, #kv, page_size = 16>
!kt = !kvcache.tile<64x64xbf16, swizzle_128b>
!lt = !kvcache.tile<64x576xf8E4M3FN>

gpu.module @kernels {
  // Hopper: one elected lane waits until the slot is free, and expects the bytes; four warps free it.
  // CHECK90-LABEL: gpu.func @all(
  // CHECK90:         %[[BARS:.*]] = nvgpu.mbarrier.create -> <{{.*}} num_barriers = 6>
  // CHECK90:         %[[WARP:.*]] = nvvm.shfl.sync
  // CHECK90:         %[[INDEX:.*]] = arith.index_cast %[[WARP]]
  // CHECK90:         %[[IS_FIRST:.*]] = arith.cmpi eq, %[[INDEX]], %c0
  // CHECK90:         scf.if %{{.*}} {
  // CHECK90-NEXT:      nvgpu.mbarrier.init %[[BARS]][%c0], %c1 :
  // CHECK90-NEXT:      nvgpu.mbarrier.init %[[BARS]][%c1], %c1 :
  // CHECK90-NEXT:      nvgpu.mbarrier.init %[[BARS]][%c2], %c1 :
  // CHECK90-NEXT:      nvgpu.mbarrier.init %[[BARS]][%c3], %c4 :
  // CHECK90-NEXT:      nvgpu.mbarrier.init %[[BARS]][%c4], %c4 :
  // CHECK90-NEXT:      nvgpu.mbarrier.init %[[BARS]][%c5], %c4 :
  // CHECK90-NEXT:      nvvm.fence.mbarrier.init
  // CHECK90:         gpu.barrier
  // CHECK90:         %[[SLOTS:.*]] = kvcache.alloc_tile {alignment = 1024 : i64} : !kvcache.tile<1536x16xi8>
  // CHECK90:         scf.for %[[I:.*]] = %c0 to
  // CHECK90:           scf.if %[[IS_FIRST]] {
  // CHECK90:             %[[ELECTED:.*]] = nvvm.elect.sync
  // CHECK90:             %[[SLOT:.*]] = arith.remui %[[I]], %c3 : index
  // The lookup is under way while the warp waits.
  // CHECK90:             kvcache.page_id
  // CHECK90:             %[[EMPTY:.*]] = arith.addi %[[SLOT]], %c3
  // CHECK90:             %[[ROUND:.*]] = arith.divui %[[I]], %c3
  // CHECK90:             %[[NEXT:.*]] = arith.addi %[[ROUND]], %c1
  // CHECK90:             arith.remui %[[NEXT]], %c2
  // CHECK90:             nvgpu.mbarrier.get %[[BARS]][%[[EMPTY]]]
  // CHECK90:             nvvm.mbarrier.try_wait
  // CHECK90:             scf.if %[[ELECTED]] {
  // CHECK90-NEXT:          kvcache.tma_expect %[[BARS]][%[[SLOT]]] bytes %c8192
  // CHECK90:               kvcache.tma_load
  // The consumers wait for the phase of this round, and a lane of each warp arrives.
  // CHECK90:           %[[FULL:.*]] = arith.remui %[[I]], %c3
  // CHECK90:           %[[THIS:.*]] = arith.divui %[[I]], %c3
  // CHECK90:           arith.remui %[[THIS]], %c2
  // CHECK90:           nvgpu.mbarrier.get %[[BARS]][%[[FULL]]]
  // CHECK90:           nvvm.mbarrier.try_wait
  // CHECK90:           %[[X:.*]] = kvcache.tile_load
  // CHECK90-NOT:       nvvm.fence.proxy
  // CHECK90:           nvvm.bar.warp.sync
  // CHECK90:           scf.if
  // CHECK90-NEXT:        nvgpu.mbarrier.arrive
  // CHECK90:           "test.use"(%[[X]])

  // Ampere: 128 threads issue, and the hardware arrives for each.
  // CHECK80-LABEL: gpu.func @all(
  // CHECK80:         nvgpu.mbarrier.init %{{.*}}[%c2], %c128 :
  // CHECK80:         nvgpu.mbarrier.init %{{.*}}[%c5], %c4 :
  // CHECK80-NOT:     nvvm.fence.mbarrier.init
  // CHECK80:         gpu.barrier
  // CHECK80:         scf.for
  // CHECK80:           nvvm.mbarrier.test.wait
  // CHECK80:           nvvm.cp.async.shared.global
  // CHECK80:           nvvm.cp.async.mbarrier.arrive %{{.*}} {noinc = true}
  // CHECK80:           nvvm.mbarrier.test.wait
  // CHECK80:           kvcache.tile_load
  // CHECK80:           nvgpu.mbarrier.arrive
  gpu.func @all(%k: !cache, %b: index, %h: index, %n: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %ring = kvcache.pipe : !kvcache.pipe<3, !kt>
    scf.for %i = %c0 to %n step %c1 {
      %t = arith.muli %i, %c64 : index
      kvcache.produce %ring[%i] : !kvcache.pipe<3, !kt> {
      ^bb0(%ks: !kt):
        kvcache.async_load_tile %k[%b, %h, %t, %c0] to %ks : !cache, !kt
      }
      %v = kvcache.consume %ring[%i] : !kvcache.pipe<3, !kt> -> (bf16) {
      ^bb0(%ks: !kt):
        %x = kvcache.tile_load %ks[%c0, %c0] : !kt -> bf16
        kvcache.yield %x : bf16
      }
      "test.use"(%v) : (bf16) -> ()
    }
    gpu.return
  }

  // One warp produces: its lanes arrive for the bulk copies, one thread for the tensor copy; the others are four warps.
  // CHECK90-LABEL: gpu.func @producer_warp(
  // CHECK90:         nvgpu.mbarrier.init %{{.*}}[%c1], %c33 :
  // CHECK90:         nvgpu.mbarrier.init %{{.*}}[%c3], %c4 :
  // CHECK90:         kvcache.tma_expect %{{.*}} bytes %c8192
  // CHECK90:         kvcache.tma_load
  // CHECK90-NOT:     kvcache.tma_load
  // CHECK90:         nvvm.mbarrier.try_wait
  // CHECK90:         nvvm.cp.async.bulk.shared.cluster.global
  // CHECK90:         nvvm.fence.proxy
  // CHECK90:         nvgpu.mbarrier.arrive
  // CHECK90:         nvvm.mbarrier.try_wait

  // CHECK80-LABEL: gpu.func @producer_warp(
  // CHECK80:         nvgpu.mbarrier.init %{{.*}}[%c1], %c32 :
  // CHECK80:         nvgpu.mbarrier.init %{{.*}}[%c3], %c4 :
  // CHECK80-COUNT-2: nvvm.cp.async.shared.global
  // CHECK80:         nvvm.cp.async.mbarrier.arrive %{{.*}} {noinc = true}
  gpu.func @producer_warp(%k: !cache, %l: !latent, %b: index, %h: index, %n: index, %ids: memref<64xi32>) kernel
      attributes {known_block_size = array<i32: 160, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %thread = gpu.thread_id x
    %ring = kvcache.pipe : !kvcache.pipe<2, !kt, !lt, producers = 1>
    %produces = arith.cmpi ult, %thread, %c32 : index
    scf.if %produces {
      scf.for %i = %c0 to %n step %c1 {
        %t = arith.muli %i, %c64 : index
        kvcache.produce %ring[%i] : !kvcache.pipe<2, !kt, !lt, producers = 1> {
        ^bb0(%ks: !kt, %ls: !lt):
          kvcache.async_load_tile %k[%b, %h, %t, %c0] to %ks : !cache, !kt
          kvcache.async_gather_tile %l[%c0, %c0] rows %ids to %ls : !latent, memref<64xi32>, !lt
        }
      }
    } else {
      scf.for %i = %c0 to %n step %c1 {
        kvcache.consume %ring[%i] : !kvcache.pipe<2, !kt, !lt, producers = 1> {
        ^bb0(%ks: !kt, %ls: !lt):
          %x = kvcache.tile_load %ks[%c0, %c0] : !kt -> bf16
          "test.use"(%x) : (bf16) -> ()
        }
      }
    }
    gpu.return
  }

  // Only the slot that is written needs a fence when it is free.
  // CHECK90-LABEL:  gpu.func @write_of_another_slot(
  // CHECK90:          kvcache.tile_store
  // CHECK90:          nvvm.fence.proxy
  // CHECK90:          nvgpu.mbarrier.arrive
  // CHECK90-NOT:      nvvm.fence.proxy
  // CHECK90:          nvgpu.mbarrier.arrive
  // CHECK90:          gpu.return
  gpu.func @write_of_another_slot(%k: !cache, %b: index, %h: index, %t: index)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %zeros = arith.constant dense<0.0> : vector<8xbf16>
    %reads = kvcache.pipe : !kvcache.pipe<2, !kt>
    %writes = kvcache.pipe : !kvcache.pipe<2, !kt>
    kvcache.produce %reads[%c0] : !kvcache.pipe<2, !kt> {
    ^bb0(%ks: !kt):
      kvcache.async_load_tile %k[%b, %h, %t, %c0] to %ks : !cache, !kt
    }
    kvcache.produce %writes[%c0] : !kvcache.pipe<2, !kt> {
    ^bb0(%ks: !kt):
      kvcache.async_load_tile %k[%b, %h, %t, %c0] to %ks : !cache, !kt
    }
    kvcache.consume %reads[%c0] : !kvcache.pipe<2, !kt> {
    ^bb0(%read: !kt):
      kvcache.consume %writes[%c0] : !kvcache.pipe<2, !kt> {
      ^bb0(%written: !kt):
        kvcache.tile_store %zeros, %written[%c0, %c0] : vector<8xbf16>, !kt
      }
    }
    gpu.return
  }

  // Keys and values of the same tokens are in the same pages: each lane looks one up, and all receive it. A tile
  // that is not of the pipe may be written without a fence.
  // CHECK90-LABEL:  gpu.func @keys_and_values(
  // CHECK90:          nvgpu.mbarrier.create
  // CHECK90:          nvvm.elect.sync
  // CHECK90:          kvcache.row_index
  // CHECK90-COUNT-4:  nvvm.shfl.sync
  // CHECK90-NOT:      {{row_index|nvvm.shfl}}
  // CHECK90:          kvcache.tma_expect
  // CHECK90-COUNT-8:  kvcache.tma_load
  // CHECK90-NOT:      {{row_index|nvvm.shfl|nvvm.fence.proxy}}
  // CHECK90:          gpu.return
  gpu.func @keys_and_values(%c: !collection, %b: index, %h: index, %t: index, %n: index)
      workgroup(%shared: memref<4xf32, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %zeros = arith.constant dense<0.0> : vector<8xbf16>
    %k = kvcache.paged_view key %c[%c0] : !collection
    %v = kvcache.paged_view value %c[%c0] : !collection
    %own = kvcache.alloc_tile : !kt
    %ring = kvcache.pipe : !kvcache.pipe<3, !kt, !kt>
    kvcache.produce %ring[%c0] : !kvcache.pipe<3, !kt, !kt> {
    ^bb0(%ks: !kt, %vs: !kt):
      kvcache.async_load_tile %k[%b, %h, %t, %c0] valid %n to %ks {base_alignment = 16} : !page16, !kt
      kvcache.async_load_tile %v[%b, %h, %t, %c0] valid %n to %vs {base_alignment = 16} : !page16, !kt
    }
    kvcache.consume %ring[%c0] : !kvcache.pipe<3, !kt, !kt> {
    ^bb0(%ks: !kt, %vs: !kt):
      kvcache.tile_store %zeros, %own[%c0, %c0] : vector<8xbf16>, !kt
    }
    "test.use"(%shared) : (memref<4xf32, #gpu.address_space<workgroup>>) -> ()
    gpu.return
  }

  // Each of 384 threads begins with 65536 / 384 registers, in eights, and producers give most of theirs to the others.
  // CHECK90-LABEL: gpu.func @registers(
  // CHECK90-SAME:    nvvm.maxnreg = 168 : i32
  // CHECK90-NOT:     nvvm.setmaxregister
  // CHECK90:         gpu.barrier
  // CHECK90:         scf.if
  // CHECK90-NEXT:      nvvm.setmaxregister decrease 24
  // CHECK90-NEXT:      scf.for
  // CHECK90:         else
  // CHECK90-NEXT:      nvvm.setmaxregister increase 240
  // CHECK90-NEXT:      scf.for

  // CHECK80-LABEL: gpu.func @registers(
  // CHECK80-NOT:     {{nvvm.maxnreg|nvvm.setmaxregister}}
  // CHECK80:         gpu.return
  gpu.func @registers(%k: !cache, %b: index, %h: index, %n: index) kernel
      attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %thread = gpu.thread_id x
    %ring = kvcache.pipe {producer_registers = 24, consumer_registers = 240} : !kvcache.pipe<2, !kt, producers = 4>
    %produces = arith.cmpi ult, %thread, %c128 : index
    scf.if %produces {
      scf.for %i = %c0 to %n step %c1 {
        %t = arith.muli %i, %c64 : index
        kvcache.produce %ring[%i] : !kvcache.pipe<2, !kt, producers = 4> {
        ^bb0(%ks: !kt):
          kvcache.async_load_tile %k[%b, %h, %t, %c0] to %ks : !cache, !kt
        }
      }
    } else {
      scf.for %i = %c0 to %n step %c1 {
        kvcache.consume %ring[%i] : !kvcache.pipe<2, !kt, producers = 4> {
        ^bb0(%ks: !kt):
          %x = kvcache.tile_load %ks[%c0, %c0] : !kt -> bf16
          "test.use"(%x) : (bf16) -> ()
        }
      }
    }
    gpu.return
  }

  // All threads copy and consume: the bound is one of the kernel, on all chips, unless it has one.
  // CHECK90-LABEL: gpu.func @register_bound(
  // CHECK90-SAME:    nvvm.maxnreg = 216 : i32
  // CHECK90-NOT:     nvvm.setmaxregister
  // CHECK80-LABEL: gpu.func @register_bound(
  // CHECK80-SAME:    nvvm.maxnreg = 216 : i32
  gpu.func @register_bound() kernel {
    %ring = kvcache.pipe {consumer_registers = 216} : !kvcache.pipe<2, !kt>
    gpu.return
  }

  // CHECK90-LABEL: gpu.func @register_bound_of_a_kernel(
  // CHECK90-SAME:    nvvm.maxnreg = 128 : i32
  gpu.func @register_bound_of_a_kernel() kernel attributes {nvvm.maxnreg = 128 : i32} {
    %ring = kvcache.pipe {consumer_registers = 216} : !kvcache.pipe<2, !kt>
    gpu.return
  }

  // Two blocks on a multiprocessor: 128 registers for each of 256 threads. Consumers keep them.
  // CHECK90-LABEL: gpu.func @registers_of_two_blocks(
  // CHECK90-NOT:     nvvm.maxnreg
  // CHECK90:         nvvm.setmaxregister decrease 40
  // CHECK90-NOT:     nvvm.setmaxregister
  // CHECK90:         gpu.return
  gpu.func @registers_of_two_blocks(%k: !cache, %b: index, %h: index, %n: index) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 2 : i32} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %thread = gpu.thread_id x
    %ring = kvcache.pipe {producer_registers = 40, consumer_registers = 128} : !kvcache.pipe<2, !kt, producers = 4>
    %produces = arith.cmpi ult, %thread, %c128 : index
    scf.if %produces {
      scf.for %i = %c0 to %n step %c1 {
        %t = arith.muli %i, %c64 : index
        kvcache.produce %ring[%i] : !kvcache.pipe<2, !kt, producers = 4> {
        ^bb0(%ks: !kt):
          kvcache.async_load_tile %k[%b, %h, %t, %c0] to %ks : !cache, !kt
        }
      }
    } else {
      scf.for %i = %c0 to %n step %c1 {
        kvcache.consume %ring[%i] : !kvcache.pipe<2, !kt, producers = 4> {
        ^bb0(%ks: !kt):
          %x = kvcache.tile_load %ks[%c0, %c0] : !kt -> bf16
          "test.use"(%x) : (bf16) -> ()
        }
      }
    }
    gpu.return
  }

  // Products read by the asynchronous proxy what threads have copied. They write no tile: a slot is free without a fence.
  // CHECK90-LABEL: gpu.func @products_of_copies(
  // CHECK90:         nvvm.cp.async.shared.global
  // CHECK90:         nvvm.cp.async.mbarrier.arrive
  // CHECK90:         nvvm.mbarrier.try_wait
  // CHECK90:         nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
  // CHECK90:         kvcache.mma
  // CHECK90-NOT:     nvvm.fence.proxy
  // CHECK90:         nvvm.bar.warp.sync
  gpu.func @products_of_copies(%k: !cache, %b: index, %h: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %q = kvcache.alloc_tile : !kt
    %ring = kvcache.pipe : !kvcache.pipe<2, !kt>
    kvcache.produce %ring[%c0] : !kvcache.pipe<2, !kt> {
    ^bb0(%ks: !kt):
      kvcache.async_load_tile %k[%b, %h, %c0, %c0] to %ks {copy = #kvcache.copy<cp_async>} : !cache, !kt
    }
    %s = kvcache.consume %ring[%c0] : !kvcache.pipe<2, !kt> -> (vector<32xf32>) {
    ^bb0(%ks: !kt):
      %d = kvcache.mma %q[%c0, %c0], %ks[%c0, %c0] : !kt, !kt -> vector<32xf32>
      %e = kvcache.mma_wait %d : vector<32xf32>
      kvcache.yield %e : vector<32xf32>
    }
    "test.use"(%s) : (vector<32xf32>) -> ()
    gpu.return
  }

  // So do products into tensor memory.
  // CHECK90-LABEL: gpu.func @products_into_tensor_memory(
  // CHECK90:         nvvm.mbarrier.try_wait
  // CHECK90:         nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
  // CHECK90:         kvcache.tmem_mma
  // CHECK90-NOT:     nvvm.fence.proxy
  // CHECK90:         nvvm.bar.warp.sync
  gpu.func @products_into_tensor_memory(%k: !cache, %b: index, %h: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %q = kvcache.alloc_tile : !kt
    %d = kvcache.tmem_alloc : !kvcache.tmem_tile<64x64xf32>
    %ring = kvcache.pipe : !kvcache.pipe<2, !kt>
    kvcache.produce %ring[%c0] : !kvcache.pipe<2, !kt> {
    ^bb0(%ks: !kt):
      kvcache.async_load_tile %k[%b, %h, %c0, %c0] to %ks {copy = #kvcache.copy<cp_async>} : !cache, !kt
    }
    kvcache.consume %ring[%c0] : !kvcache.pipe<2, !kt> {
    ^bb0(%ks: !kt):
      kvcache.tmem_mma %q[%c0, %c0], %ks[%c0, %c0] into %d : !kt, !kt, !kvcache.tmem_tile<64x64xf32>
    }
    gpu.return
  }

  // Tensor copies write by the same proxy as products read, also those that begin while a slot is used.
  // CHECK90-LABEL: gpu.func @products_of_tensor_copies(
  // CHECK90-NOT:     nvvm.fence.proxy
  // CHECK90:         kvcache.mma
  // CHECK90-NOT:     nvvm.fence.proxy
  // CHECK90:         gpu.return
  gpu.func @products_of_tensor_copies(%k: !cache, %b: index, %h: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %ring = kvcache.pipe : !kvcache.pipe<2, !kt>
    kvcache.produce %ring[%c0] : !kvcache.pipe<2, !kt> {
    ^bb0(%ks: !kt):
      kvcache.async_load_tile %k[%b, %h, %c0, %c0] to %ks : !cache, !kt
    }
    %s = kvcache.consume %ring[%c0] : !kvcache.pipe<2, !kt> -> (vector<32xf32>) {
    ^bb0(%ks: !kt):
      %d = kvcache.mma %ks[%c0, %c0], %ks[%c0, %c0] : !kt, !kt -> vector<32xf32>
      kvcache.produce %ring[%c1] : !kvcache.pipe<2, !kt> {
      ^bb0(%next: !kt):
        kvcache.async_load_tile %k[%b, %h, %c1, %c0] to %next : !cache, !kt
      }
      %e = kvcache.mma_wait %d : vector<32xf32>
      kvcache.yield %e : vector<32xf32>
    }
    "test.use"(%s) : (vector<32xf32>) -> ()
    gpu.return
  }

  // The barriers of a pipe that is used in a region of another are no writes to its tiles.
  // CHECK90-LABEL: gpu.func @nested(
  // CHECK90-NOT:     nvvm.fence.proxy
  // CHECK90-COUNT-2: nvgpu.mbarrier.arrive
  // CHECK90-NOT:     nvvm.fence.proxy
  // CHECK90:         gpu.return
  gpu.func @nested(%k: !cache, %v: !cache, %b: index, %h: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %keys = kvcache.pipe : !kvcache.pipe<2, !kt>
    %values = kvcache.pipe : !kvcache.pipe<2, !kt>
    kvcache.produce %keys[%c0] : !kvcache.pipe<2, !kt> {
    ^bb0(%ks: !kt):
      kvcache.async_load_tile %k[%b, %h, %c0, %c0] to %ks : !cache, !kt
    }
    kvcache.produce %values[%c0] : !kvcache.pipe<2, !kt> {
    ^bb0(%vs: !kt):
      kvcache.async_load_tile %v[%b, %h, %c0, %c0] to %vs : !cache, !kt
    }
    %s = kvcache.consume %values[%c0] : !kvcache.pipe<2, !kt> -> (vector<32xf32>) {
    ^bb0(%vs: !kt):
      %d = kvcache.consume %keys[%c0] : !kvcache.pipe<2, !kt> -> (vector<32xf32>) {
      ^bb0(%ks: !kt):
        %started = kvcache.mma %ks[%c0, %c0], %vs[%c0, %c0] : !kt, !kt -> vector<32xf32>
        %done = kvcache.mma_wait %started : vector<32xf32>
        kvcache.yield %done : vector<32xf32>
      }
      kvcache.yield %d : vector<32xf32>
    }
    "test.use"(%s) : (vector<32xf32>) -> ()
    gpu.return
  }
}
