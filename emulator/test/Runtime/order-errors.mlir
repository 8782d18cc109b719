// Reports of kernels that wait, arrive or fence where they should,
// but for one place.

// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_100a" -o %t.mlir
// RUN: %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"

// PRELUDE: tile-barrier.mlir

module attributes {gpu.container_module} {

gpu.module @kernels {
  gpu.func @tile_read_before_the_wait(%g: !llvm.ptr<1>) kernel {
    %tile, %b, %s = func.call @begin_copy(%g) : (!llvm.ptr<1>) -> (!llvm.ptr<3>, !llvm.ptr<3>, i64)
    // CHECK-LABEL: run @tile_read_before_the_wait:
    // CHECK: [[FILE]]:[[#@LINE+1]]:14: llvm.load: thread (0, 0, 0) of block (0, 0, 0) reads 4 bytes at byte 0 of shared @tile, which a copy issued by thread (0, 0, 0) in nvvm.cp.async.bulk.shared.cluster.global at [[FILE]]:{{.*}} has in flight: its barrier has not completed
    %value = llvm.load %tile : !llvm.ptr<3> -> i32
    llvm.store %value, %g : i32, !llvm.ptr<1>
    gpu.return
  }

  gpu.func @thread_copy_read_before_the_wait(%g: !llvm.ptr<1>) kernel {
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    nvvm.cp.async.shared.global %tile, %g, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.commit.group
    // CHECK-LABEL: run @thread_copy_read_before_the_wait:
    // CHECK: [[FILE]]:[[#@LINE+1]]:14: llvm.load: thread (0, 0, 0) of block (0, 0, 0) reads 4 bytes at byte 0 of shared @tile, which a copy issued by thread (0, 0, 0) in nvvm.cp.async.shared.global at [[FILE]]:{{.*}} has in flight: no wait for it has completed
    %value = llvm.load %tile : !llvm.ptr<3> -> i32
    llvm.store %value, %g : i32, !llvm.ptr<1>
    gpu.return
  }

  gpu.func @tile_written_while_in_flight(%g: !llvm.ptr<1>) kernel {
    %tile, %b, %s = func.call @begin_copy(%g) : (!llvm.ptr<1>) -> (!llvm.ptr<3>, !llvm.ptr<3>, i64)
    %one = llvm.mlir.constant(1 : i32) : i32
    // CHECK-LABEL: run @tile_written_while_in_flight:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (0, 0, 0) of block (0, 0, 0) writes 4 bytes at byte 0 of shared @tile, which a copy issued by thread (0, 0, 0) in nvvm.cp.async.bulk.shared.cluster.global at [[FILE]]:{{.*}} has in flight: its barrier has not completed
    llvm.store %one, %tile : i32, !llvm.ptr<3>
    %zero = llvm.mlir.constant(0 : i32) : i32
    nvvm.mbarrier.try_wait.parity %b, %zero, %zero : !llvm.ptr<3>, i32, i32
    gpu.return
  }

  gpu.func @no_proxy_fence_before_a_store(%g: !llvm.ptr<1>) kernel {
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %bytes = llvm.mlir.constant(64 : i32) : i32
    %values = llvm.mlir.constant(dense<7> : vector<16xi32>) : vector<16xi32>
    llvm.store %values, %tile {alignment = 4 : i64} : vector<16xi32>, !llvm.ptr<3>
    // CHECK-LABEL: run @no_proxy_fence_before_a_store:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.global.shared.cta: thread (0, 0, 0) of block (0, 0, 0) issues a copy that reads 64 bytes at byte 0 of shared @tile, which thread (0, 0, 0) writes in llvm.store at [[FILE]]:{{.*}} without a proxy fence between them (fence.proxy.async)
    nvvm.cp.async.bulk.global.shared.cta %g, %tile, %bytes : !llvm.ptr<1>, !llvm.ptr<3>
    nvvm.cp.async.bulk.commit.group
    nvvm.cp.async.bulk.wait_group 0 {read}
    gpu.return
  }

  gpu.func @no_proxy_fence_before_a_load(%g: !llvm.ptr<1>) kernel {
    %tile, %b = func.call @init() : () -> (!llvm.ptr<3>, !llvm.ptr<3>)
    %one = llvm.mlir.constant(1 : i32) : i32
    %bytes = llvm.mlir.constant(64 : i32) : i32
    llvm.store %one, %tile : i32, !llvm.ptr<3>
    %s = nvvm.mbarrier.arrive.expect_tx %b, %bytes : !llvm.ptr<3>, i32 -> i64
    // CHECK-LABEL: run @no_proxy_fence_before_a_load:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.shared.cluster.global: thread (0, 0, 0) of block (0, 0, 0) issues a copy that writes 64 bytes at byte 0 of shared @tile, which thread (0, 0, 0) writes in llvm.store at [[FILE]]:{{.*}} without a proxy fence between them (fence.proxy.async)
    nvvm.cp.async.bulk.shared.cluster.global %tile, %g, %b, %bytes : !llvm.ptr<3>, !llvm.ptr<1>
    %zero = llvm.mlir.constant(0 : i32) : i32
    nvvm.mbarrier.try_wait.parity %b, %zero, %zero : !llvm.ptr<3>, i32, i32
    gpu.return
  }

  gpu.func @tile_reused_before_it_is_stored(%g: !llvm.ptr<1>) kernel {
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %bytes = llvm.mlir.constant(64 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %values = llvm.mlir.constant(dense<7> : vector<16xi32>) : vector<16xi32>
    llvm.store %values, %tile {alignment = 4 : i64} : vector<16xi32>, !llvm.ptr<3>
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    nvvm.cp.async.bulk.global.shared.cta %g, %tile, %bytes : !llvm.ptr<1>, !llvm.ptr<3>
    // CHECK-LABEL: run @tile_reused_before_it_is_stored:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (0, 0, 0) of block (0, 0, 0) writes 4 bytes at byte 0 of shared @tile, which a copy issued by thread (0, 0, 0) in nvvm.cp.async.bulk.global.shared.cta at [[FILE]]:{{.*}} still reads: no wait for it has completed
    llvm.store %one, %tile : i32, !llvm.ptr<3>
    nvvm.cp.async.bulk.commit.group
    nvvm.cp.async.bulk.wait_group 0 {read}
    gpu.return
  }

  // Each lane has written the row that it gives the address of, not those that
  // it gets bytes of.
  // LAUNCH: 32 threads
  gpu.func @matrix_of_rows_of_others(%g: !llvm.ptr<1>) kernel {
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %lane = nvvm.read.ptx.sreg.laneid range <i32, 0, 32> : i32
    %row = llvm.getelementptr %tile[%lane] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<16 x i8>
    %values = llvm.mlir.constant(dense<7> : vector<4xi32>) : vector<4xi32>
    llvm.store %values, %row : vector<4xi32>, !llvm.ptr<3>
    // CHECK-LABEL: run @matrix_of_rows_of_others:
    // CHECK: [[FILE]]:[[#@LINE+1]]:12: nvvm.ldmatrix: thread (1, 0, 0) of block (0, 0, 0) reads 4 bytes at byte 4 of shared @tile, which thread (0, 0, 0) writes in llvm.store at [[FILE]]:{{.*}} without order between them (a race)
    %one = nvvm.ldmatrix %row {num = 1 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> i32
    llvm.store %one, %g : i32, !llvm.ptr<1>
    gpu.return
  }

  // A row has been written by four lanes, from any of which its address may be.
  // LAUNCH: 32 threads
  gpu.func @matrix_read_before_a_barrier(%g: !llvm.ptr<1>) kernel {
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %lane = nvvm.read.ptx.sreg.laneid range <i32, 0, 32> : i32
    %row = llvm.getelementptr %tile[%lane] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<16 x i8>
    %zero = llvm.mlir.constant(0 : i32) : i32
    nvvm.stmatrix %row, %zero {layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : !llvm.ptr<3>, i32
    %second = llvm.getelementptr %tile[4] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    // CHECK-LABEL: run @matrix_read_before_a_barrier:
    // CHECK: [[FILE]]:[[#@LINE+1]]:14: llvm.load: thread (31, 0, 0) of block (0, 0, 0) reads 4 bytes at byte 4 of shared @tile, which thread (1, 0, 0) writes in nvvm.stmatrix at [[FILE]]:{{.*}} without order between them (a race)
    %value = llvm.load %second : !llvm.ptr<3> -> i32
    llvm.store %value, %g : i32, !llvm.ptr<1>
    gpu.return
  }

  gpu.func @memory_read_after_a_wait_for_reads(%g: !llvm.ptr<1>) kernel {
    %tile = func.call @begin_store(%g) : (!llvm.ptr<1>) -> !llvm.ptr<3>
    nvvm.cp.async.bulk.wait_group 0 {read}
    %last = llvm.getelementptr %g[60] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    // CHECK-LABEL: run @memory_read_after_a_wait_for_reads:
    // CHECK: [[FILE]]:[[#@LINE+1]]:14: llvm.load: thread (0, 0, 0) of block (0, 0, 0) reads 4 bytes at byte {{[0-9]+}} of an allocation of {{[0-9]+}} bytes, which a copy issued by thread (0, 0, 0) in nvvm.cp.async.bulk.global.shared.cta at [[FILE]]:{{.*}} may still write: no wait for its writes has completed (wait_group without .read)
    %value = llvm.load %last : !llvm.ptr<1> -> i32
    llvm.store %value, %tile : i32, !llvm.ptr<3>
    gpu.return
  }

  gpu.func @memory_written_before_a_store_completes(%g: !llvm.ptr<1>) kernel {
    %tile = func.call @begin_store(%g) : (!llvm.ptr<1>) -> !llvm.ptr<3>
    %bytes = llvm.mlir.constant(64 : i32) : i32
    nvvm.cp.async.bulk.wait_group 0 {read}
    %last = llvm.getelementptr %g[60] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    // CHECK-LABEL: run @memory_written_before_a_store_completes:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (0, 0, 0) of block (0, 0, 0) writes 4 bytes at byte {{[0-9]+}} of an allocation of {{[0-9]+}} bytes, which a copy issued by thread (0, 0, 0) in nvvm.cp.async.bulk.global.shared.cta at [[FILE]]:{{.*}} may still write: no wait for its writes has completed (wait_group without .read)
    llvm.store %bytes, %last : i32, !llvm.ptr<1>
    gpu.return
  }

  gpu.func @memory_copied_before_a_store_completes(%g: !llvm.ptr<1>) kernel {
    %tile = func.call @begin_store(%g) : (!llvm.ptr<1>) -> !llvm.ptr<3>
    nvvm.cp.async.bulk.wait_group 1
    %last = llvm.getelementptr %g[60] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    // CHECK-LABEL: run @memory_copied_before_a_store_completes:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.shared.global: thread (0, 0, 0) of block (0, 0, 0) issues a copy that reads 4 bytes at byte {{[0-9]+}} of an allocation of {{[0-9]+}} bytes, which a copy issued by thread (0, 0, 0) in nvvm.cp.async.bulk.global.shared.cta at [[FILE]]:{{.*}} may still write: no wait for its writes has completed (wait_group without .read)
    nvvm.cp.async.shared.global %tile, %last, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
    gpu.return
  }
}

}
