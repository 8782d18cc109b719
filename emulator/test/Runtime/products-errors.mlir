// Reports of kernels that use products of tiles wrongly, one for each rule.

// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// RUN: %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"

!a = !kvcache.tile<64x16xbf16, swizzle_32b>
!b = !kvcache.tile<24x16xbf16, swizzle_32b>
!h = !kvcache.tile<64x16xf16, swizzle_32b>
!out = memref<128x4xf32>

module attributes {gpu.container_module} {

gpu.module @kernels {
  // Ones, but for the last 8 rows of B.
  func.func private @fill(%t: index, %a: !a, %b: !b, %h: !h) {
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %c128 = arith.constant 128 : index
    %n = gpu.block_dim x
    %ones = arith.constant dense<1.0> : vector<8xbf16>
    %others = arith.constant dense<1.0> : vector<8xf16>
    scf.for %i = %t to %c128 step %n {
      %row = arith.divui %i, %c2 : index
      %half = arith.remui %i, %c2 : index
      %column = arith.muli %half, %c8 : index
      kvcache.tile_store %ones, %a[%row, %column] : vector<8xbf16>, !a
      kvcache.tile_store %others, %h[%row, %column] : vector<8xf16>, !h
      %is = arith.cmpi ult, %i, %c32 : index
      scf.if %is {
        kvcache.tile_store %ones, %b[%row, %column] : vector<8xbf16>, !b
      }
    }
    return
  }

  // The thread, and the tiles, filled.
  func.func private @allocate() -> (index, !a, !b, !h) {
    %t = gpu.thread_id x
    %a = kvcache.alloc_tile : !a
    %b = kvcache.alloc_tile : !b
    %h = kvcache.alloc_tile : !h
    func.call @fill(%t, %a, %b, %h) : (index, !a, !b, !h) -> ()
    return %t, %a, %b, %h : index, !a, !b, !h
  }

  // Likewise, for products by all threads.
  func.func private @prepare() -> (index, !a, !b, !h) {
    %t, %a, %b, %h = func.call @allocate() : () -> (index, !a, !b, !h)
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    gpu.barrier
    return %t, %a, %b, %h : index, !a, !b, !h
  }

  func.func private @save(%t: index, %x: vector<4xf32>, %out: !out) {
    %c0 = arith.constant 0 : index
    vector.store %x, %out[%t, %c0] : !out, vector<4xf32>
    return
  }

  // LAUNCH: 128 threads
  gpu.func @no_wait(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %t, %a, %b, %h = func.call @prepare() : () -> (index, !a, !b, !h)
    %d = kvcache.mma %a[%c0, %c0], %b[%c0, %c0] : !a, !b -> vector<4xf32>
    // CHECK-LABEL: run @no_wait:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: llvm.{{.*}}: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) reads the accumulators of nvvm.wgmma.mma_async at [[FILE]]:[[#@LINE-2]]:{{[0-9]+}}, which are in flight: no wgmma.wait_group has waited for their group
    %e = arith.addf %d, %d : vector<4xf32>
    kvcache.mma_wait
    func.call @save(%t, %e, %out) : (index, vector<4xf32>, !out) -> ()
    gpu.return
  }

  // The last group is the one that the value is of.
  // LAUNCH: 128 threads
  gpu.func @pending(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %t, %a, %b, %h = func.call @prepare() : () -> (index, !a, !b, !h)
    %d = kvcache.mma %a[%c0, %c0], %b[%c0, %c0] : !a, !b -> vector<4xf32>
    %e = kvcache.mma_wait %d pending 1 : vector<4xf32>
    // CHECK-LABEL: run @pending:
    // CHECK: {{.*}}: llvm.store: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) reads the accumulators of nvvm.wgmma.mma_async at [[FILE]]:[[#@LINE-3]]:{{[0-9]+}}, which are in flight: no wgmma.wait_group has waited for their group
    func.call @save(%t, %e, %out) : (index, vector<4xf32>, !out) -> ()
    kvcache.mma_wait
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @another_is_waited_for(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %t, %a, %b, %h = func.call @prepare() : () -> (index, !a, !b, !h)
    %d = kvcache.mma %a[%c0, %c0], %b[%c0, %c0] : !a, !b -> vector<4xf32>
    %e = kvcache.mma %a[%c0, %c0], %b[%c0, %c0] : !a, !b -> vector<4xf32>
    // CHECK-LABEL: run @another_is_waited_for:
    // CHECK: [[FILE]]:[[#@LINE+2]]:{{[0-9]+}}: llvm.{{.*}}: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) reads the accumulators of nvvm.wgmma.mma_async at [[FILE]]:[[#@LINE-2]]:{{[0-9]+}}, which are in flight: no wgmma.wait_group has waited for their group
    %f = kvcache.mma_wait %d pending 1 : vector<4xf32>
    %g = arith.addf %f, %e : vector<4xf32>
    kvcache.mma_wait
    func.call @save(%t, %g, %out) : (index, vector<4xf32>, !out) -> ()
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @two_take_over(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %t, %a, %b, %h = func.call @prepare() : () -> (index, !a, !b, !h)
    %d = kvcache.mma %a[%c0, %c0], %b[%c0, %c0] : !a, !b -> vector<4xf32>
    %e = kvcache.mma %a[%c0, %c0], %b[%c0, %c0] add %d : !a, !b -> vector<4xf32>
    // CHECK-LABEL: run @two_take_over:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: nvvm.wgmma.mma_async: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) reads the accumulators of nvvm.wgmma.mma_async at [[FILE]]:[[#@LINE-3]]:{{[0-9]+}}, which nvvm.wgmma.mma_async at [[FILE]]:[[#@LINE-2]]:{{[0-9]+}} already accumulates into
    %f = kvcache.mma %a[%c0, %c0], %b[%c0, %c0] add %d : !a, !b -> vector<4xf32>
    %g, %i = kvcache.mma_wait %e, %f : vector<4xf32>, vector<4xf32>
    %sum = arith.addf %g, %i : vector<4xf32>
    func.call @save(%t, %sum, %out) : (index, vector<4xf32>, !out) -> ()
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @fragment_in_flight(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %t, %a, %b, %h = func.call @prepare() : () -> (index, !a, !b, !h)
    %d = kvcache.mma %h[%c0, %c0], %h[%c0, %c0] : !h, !h -> vector<8xf16>
    // CHECK-LABEL: run @fragment_in_flight:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: llvm.inline_asm: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) reads the accumulators of nvvm.wgmma.mma_async at [[FILE]]:[[#@LINE-2]]:{{[0-9]+}}, which are in flight: no wgmma.wait_group has waited for their group
    %e = kvcache.mma %d, %h[%c0, %c0] : vector<8xf16>, !h -> vector<4xf32>
    %f = kvcache.mma_wait %e : vector<4xf32>
    func.call @save(%t, %f, %out) : (index, vector<4xf32>, !out) -> ()
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @no_proxy_fence(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %t, %a, %b, %h = func.call @allocate() : () -> (index, !a, !b, !h)
    gpu.barrier
    // CHECK-LABEL: run @no_proxy_fence:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: nvvm.wgmma.mma_async: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) reads 16 bytes at byte {{[0-9]+}} of shared @{{.*}}, which thread ({{[0-9]+}}, 0, 0) writes in llvm.store at {{.*}} without a proxy fence between them (fence.proxy.async)
    %d = kvcache.mma %a[%c0, %c0], %b[%c0, %c0] : !a, !b -> vector<4xf32>
    %e = kvcache.mma_wait %d : vector<4xf32>
    func.call @save(%t, %e, %out) : (index, vector<4xf32>, !out) -> ()
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @no_barrier(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %t, %a, %b, %h = func.call @allocate() : () -> (index, !a, !b, !h)
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    // CHECK-LABEL: run @no_barrier:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: nvvm.wgmma.mma_async: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) reads 16 bytes at byte {{[0-9]+}} of shared @{{.*}}, which thread ({{[0-9]+}}, 0, 0) writes in llvm.store at {{.*}} without order between them (a race)
    %d = kvcache.mma %a[%c0, %c0], %b[%c0, %c0] : !a, !b -> vector<4xf32>
    %e = kvcache.mma_wait %d : vector<4xf32>
    func.call @save(%t, %e, %out) : (index, vector<4xf32>, !out) -> ()
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @overwrite_in_flight(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %t, %a, %b, %h = func.call @prepare() : () -> (index, !a, !b, !h)
    %d = kvcache.mma %a[%c0, %c0], %b[%c0, %c0] : !a, !b -> vector<4xf32>
    %x = arith.constant dense<2.0> : vector<8xbf16>
    %row = arith.remui %t, %c8 : index
    // CHECK-LABEL: run @overwrite_in_flight:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: llvm.store: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) writes 16 bytes at byte {{[0-9]+}} of shared @{{.*}}, which a product issued by thread ({{[0-9]+}}, 0, 0) in nvvm.wgmma.mma_async at [[FILE]]:[[#@LINE-4]]:{{[0-9]+}} still reads: no wait for it has completed
    kvcache.tile_store %x, %b[%row, %c0] : vector<8xbf16>, !b
    %e = kvcache.mma_wait %d : vector<4xf32>
    func.call @save(%t, %e, %out) : (index, vector<4xf32>, !out) -> ()
    gpu.return
  }

  // Its own wait says nothing of other warps.
  // LAUNCH: 128 threads
  gpu.func @overwrite_before_others_have_waited(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %t, %a, %b, %h = func.call @prepare() : () -> (index, !a, !b, !h)
    %d = kvcache.mma %a[%c0, %c0], %b[%c0, %c0] : !a, !b -> vector<4xf32>
    %e = kvcache.mma_wait %d : vector<4xf32>
    %x = arith.constant dense<2.0> : vector<8xbf16>
    %row = arith.remui %t, %c8 : index
    // CHECK-LABEL: run @overwrite_before_others_have_waited:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: llvm.store: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) writes 16 bytes at byte {{[0-9]+}} of shared @{{.*}}, which a product issued by thread ({{[0-9]+}}, 0, 0) in nvvm.wgmma.mma_async at [[FILE]]:[[#@LINE-5]]:{{[0-9]+}} still reads: no wait for it has completed
    kvcache.tile_store %x, %b[%row, %c0] : vector<8xbf16>, !b
    func.call @save(%t, %e, %out) : (index, vector<4xf32>, !out) -> ()
    gpu.return
  }

  // LAUNCH: 64 threads
  gpu.func @half_a_warpgroup(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %t, %a, %b, %h = func.call @prepare() : () -> (index, !a, !b, !h)
    // CHECK-LABEL: run @half_a_warpgroup:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: nvvm.wgmma.mma_async: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) requires all 128 threads of warps 0 to 3, but the block has 64 threads
    %d = kvcache.mma %a[%c0, %c0], %b[%c0, %c0] : !a, !b -> vector<4xf32>
    %e = kvcache.mma_wait %d : vector<4xf32>
    func.call @save(%t, %e, %out) : (index, vector<4xf32>, !out) -> ()
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @rows_differ(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c64 = arith.constant 64 : index
    %t, %a, %b, %h = func.call @prepare() : () -> (index, !a, !b, !h)
    %half = arith.divui %t, %c64 : index
    %row = arith.muli %half, %c8 : index
    // CHECK-LABEL: run @rows_differ:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: nvvm.wgmma.mma_async: {{.*}} has the descriptor {{.*}} of B, and thread (0, 0, 0) of its warpgroup has
    %d = kvcache.mma %a[%c0, %c0], %b[%row, %c0] : !a, !b -> vector<4xf32>
    %e = kvcache.mma_wait %d : vector<4xf32>
    func.call @save(%t, %e, %out) : (index, vector<4xf32>, !out) -> ()
    gpu.return
  }

  // The row is no constant, so that the lowering cannot see that it is 4.
  // LAUNCH: 128 threads
  gpu.func @beside_the_pattern(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %t, %a, %b, %h = func.call @prepare() : () -> (index, !a, !b, !h)
    %n = gpu.block_dim x
    %row = arith.divui %n, %c32 : index
    // CHECK-LABEL: run @beside_the_pattern:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: nvvm.wgmma.mma_async: {{.*}} has the descriptor {{.*}} of B, which begins at {{.*}}: with a swizzle of 32 bytes and the base offset 0, the pattern starts at a multiple of 256 bytes
    %d = kvcache.mma %a[%c0, %c0], %b[%row, %c0] : !a, !b -> vector<4xf32>
    %e = kvcache.mma_wait %d : vector<4xf32>
    func.call @save(%t, %e, %out) : (index, vector<4xf32>, !out) -> ()
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @in_flight_at_the_end(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %t, %a, %b, %h = func.call @prepare() : () -> (index, !a, !b, !h)
    // CHECK-LABEL: run @in_flight_at_the_end:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: nvvm.wgmma.mma_async: {{.*}} is in flight when the block ends
    %d = kvcache.mma %a[%c0, %c0], %b[%c0, %c0] : !a, !b -> vector<4xf32>
    gpu.return
  }

  // Row 16 of B is column 0 of the product.
  // LAUNCH: 128 threads
  gpu.func @unwritten(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %t, %a, %b, %h = func.call @prepare() : () -> (index, !a, !b, !h)
    // CHECK-LABEL: run @unwritten:
    // CHECK: {{.*}}: llvm.store: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when nvvm.wgmma.mma_async at [[FILE]]:[[#@LINE+1]]:{{[0-9]+}} read them
    %d = kvcache.mma %a[%c0, %c0], %b[%c16, %c0] : !a, !b -> vector<4xf32>
    %e = kvcache.mma_wait %d : vector<4xf32>
    func.call @save(%t, %e, %out) : (index, vector<4xf32>, !out) -> ()
    gpu.return
  }
}

}
