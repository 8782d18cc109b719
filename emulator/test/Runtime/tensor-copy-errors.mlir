// Reports of kernels that copy wrongly, one for each rule: tensor
// copies and their maps.
// PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy".

// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_100a" -o %t.mlir
// RUN: %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"

// PRELUDE: tile-barrier.mlir

module attributes {gpu.container_module} {

gpu.module @kernels {
  // Makes the first 128 bytes at `p` the descriptor of 4 rows of 32 numbers,
  // as kvcache/TMA/Encoding.h has it.
  llvm.func internal @make_map(%p: !llvm.ptr<1>) {
    %words = llvm.mlir.constant(dense<[0x000170616d74766b, 0, 0, 1, 32, 0, 0, 0, 0x400000020, 0, 0x0004002000000000, 0,
                                       0x000402, 0, 0, 0]> : vector<16xi64>) : vector<16xi64>
    llvm.store %words, %p {alignment = 8 : i64} : vector<16xi64>, !llvm.ptr<1>
    %base = llvm.ptrtoint %p : !llvm.ptr<1> to i64
    %p1 = llvm.getelementptr %p[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i64
    llvm.store %base, %p1 : i64, !llvm.ptr<1>
    llvm.return
  }

  // Likewise of 2 heads of 32 numbers in 4 rows, or with a swizzle of 128 bytes.
  llvm.func internal @make_heads_map(%p: !llvm.ptr<1>, %kind: i64) {
    %words = llvm.mlir.constant(dense<[0x000170616d74766b, 0, 0, 1, 32, 64, 0, 0, 0x200000020, 4, 0x0001002000000000, 4,
                                       0, 0, 0, 0]> : vector<16xi64>) : vector<16xi64>
    llvm.store %words, %p {alignment = 8 : i64} : vector<16xi64>, !llvm.ptr<1>
    %base = llvm.ptrtoint %p : !llvm.ptr<1> to i64
    %p1 = llvm.getelementptr %p[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i64
    llvm.store %base, %p1 : i64, !llvm.ptr<1>
    %p12 = llvm.getelementptr %p[12] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i64
    llvm.store %kind, %p12 : i64, !llvm.ptr<1>
    llvm.return
  }

  // The tile, the mbarrier, the descriptor and a zero.
  func.func private @begin_rows(%g: !llvm.ptr<1>) -> (!llvm.ptr<3>, !llvm.ptr<3>, !llvm.ptr, i32) {
    %tile, %b = func.call @init() : () -> (!llvm.ptr<3>, !llvm.ptr<3>)
    %p = llvm.addrspacecast %g : !llvm.ptr<1> to !llvm.ptr
    %zero = llvm.mlir.constant(0 : i32) : i32
    llvm.call @make_map(%g) : (!llvm.ptr<1>) -> ()
    return %tile, %b, %p, %zero : !llvm.ptr<3>, !llvm.ptr<3>, !llvm.ptr, i32
  }

  func.func private @begin_heads(%g: !llvm.ptr<1>, %kind: i64) -> (!llvm.ptr<3>, !llvm.ptr<3>, !llvm.ptr, i32) {
    llvm.call @make_heads_map(%g, %kind) : (!llvm.ptr<1>, i64) -> ()
    %tile, %b = func.call @init() : () -> (!llvm.ptr<3>, !llvm.ptr<3>)
    %p = llvm.addrspacecast %g : !llvm.ptr<1> to !llvm.ptr
    %zero = llvm.mlir.constant(0 : i32) : i32
    return %tile, %b, %p, %zero : !llvm.ptr<3>, !llvm.ptr<3>, !llvm.ptr, i32
  }

  gpu.func @store_without_a_wait(%g: !llvm.ptr<1>) kernel {
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %bytes = llvm.mlir.constant(64 : i32) : i32
    %value = llvm.mlir.constant(dense<7> : vector<16xi32>) : vector<16xi32>
    llvm.store %value, %tile {alignment = 4 : i64} : vector<16xi32>, !llvm.ptr<3>
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    // CHECK-LABEL: run @store_without_a_wait:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.global.shared.cta: thread (0, 0, 0) of block (0, 0, 0) has a copy of 64 bytes in flight, which reads shared memory, when the block ends
    nvvm.cp.async.bulk.global.shared.cta %g, %tile, %bytes : !llvm.ptr<1>, !llvm.ptr<3>
    nvvm.cp.async.bulk.commit.group
    nvvm.cp.async.bulk.wait_group 1
    gpu.return
  }

  gpu.func @no_tensor_map(%g: !llvm.ptr<1>) kernel {
    %tile, %b = func.call @init() : () -> (!llvm.ptr<3>, !llvm.ptr<3>)
    %p = llvm.addrspacecast %g : !llvm.ptr<1> to !llvm.ptr
    %zero = llvm.mlir.constant(0 : i32) : i32
    // CHECK-LABEL: run @no_tensor_map:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.tensor.shared.cluster.global: thread (0, 0, 0) of block (0, 0, 0) expects a tensor map, got 128 other bytes
    nvvm.cp.async.bulk.tensor.shared.cluster.global %tile, %p, %b, box[%zero, %zero] {isCTAOnly = true}
        : !llvm.ptr<3>, !llvm.ptr
    gpu.return
  }

  gpu.func @no_tensor_map_to_prefetch(%g: !llvm.ptr<1>) kernel {
    %p = llvm.addrspacecast %g : !llvm.ptr<1> to !llvm.ptr
    // CHECK-LABEL: run @no_tensor_map_to_prefetch:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.prefetch: thread (0, 0, 0) of block (0, 0, 0) expects a tensor map, got 128 other bytes
    nvvm.prefetch tensormap, %p : !llvm.ptr
    gpu.return
  }

  gpu.func @wrong_number_of_coordinates(%g: !llvm.ptr<1>) kernel {
    %tile, %b, %p, %zero = func.call @begin_rows(%g) : (!llvm.ptr<1>) -> (!llvm.ptr<3>, !llvm.ptr<3>, !llvm.ptr, i32)
    // CHECK-LABEL: run @wrong_number_of_coordinates:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.tensor.shared.cluster.global: thread (0, 0, 0) of block (0, 0, 0) expects a tensor map of 1 dimensions, got one of 2
    nvvm.cp.async.bulk.tensor.shared.cluster.global %tile, %p, %b, box[%zero] {isCTAOnly = true}
        : !llvm.ptr<3>, !llvm.ptr
    gpu.return
  }

  gpu.func @tensor_copy_to_odd_place(%g: !llvm.ptr<1>) kernel {
    %tile, %b, %p, %zero = func.call @begin_rows(%g) : (!llvm.ptr<1>) -> (!llvm.ptr<3>, !llvm.ptr<3>, !llvm.ptr, i32)
    %odd = llvm.getelementptr %tile[64] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    // CHECK-LABEL: run @tensor_copy_to_odd_place:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.tensor.shared.cluster.global: thread (0, 0, 0) of block (0, 0, 0) expects an address at a multiple of 128 bytes, got byte 64 of shared @tile
    nvvm.cp.async.bulk.tensor.shared.cluster.global %odd, %p, %b, box[%zero, %zero] {isCTAOnly = true}
        : !llvm.ptr<3>, !llvm.ptr
    gpu.return
  }

  gpu.func @gather_of_boxes_of_rows(%g: !llvm.ptr<1>) kernel {
    %tile, %b, %p, %zero = func.call @begin_rows(%g) : (!llvm.ptr<1>) -> (!llvm.ptr<3>, !llvm.ptr<3>, !llvm.ptr, i32)
    // CHECK-LABEL: run @gather_of_boxes_of_rows:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.tensor.shared.cluster.global: thread (0, 0, 0) of block (0, 0, 0) expects a tensor map with boxes of 1 row, got 4 rows
    nvvm.cp.async.bulk.tensor.shared.cluster.global %tile, %p, %b,
        box[%zero, %zero, %zero, %zero, %zero] {isCTAOnly = true, mode = #nvvm.tma_load_mode<tile_gather4>}
        : !llvm.ptr<3>, !llvm.ptr
    gpu.return
  }

  gpu.func @store_before_the_tensor(%g: !llvm.ptr<1>) kernel {
    %tile, %b, %p, %zero = func.call @begin_rows(%g) : (!llvm.ptr<1>) -> (!llvm.ptr<3>, !llvm.ptr<3>, !llvm.ptr, i32)
    %before = llvm.mlir.constant(-1 : i32) : i32
    // CHECK-LABEL: run @store_before_the_tensor:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.tensor.global.shared.cta: thread (0, 0, 0) of block (0, 0, 0) stores a box at coordinate -1 of dimension 1, which must not be negative
    nvvm.cp.async.bulk.tensor.global.shared.cta %p, %tile, box[%zero, %before] : !llvm.ptr, !llvm.ptr<3>
    gpu.return
  }

  gpu.func @fence_of_half_a_tensor_map(%g: !llvm.ptr<1>) kernel {
    %p = llvm.addrspacecast %g : !llvm.ptr<1> to !llvm.ptr
    %half = llvm.mlir.constant(128 : i32) : i32
    %odd = llvm.getelementptr %p[32] : (!llvm.ptr) -> !llvm.ptr, i8
    // CHECK-LABEL: run @fence_of_half_a_tensor_map:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.fence.proxy.acquire: thread (0, 0, 0) of block (0, 0, 0) expects an address at a multiple of 64 bytes, got 0x{{.*}}
    nvvm.fence.proxy.acquire #nvvm.mem_scope<gpu> %odd, %half
    gpu.return
  }

  gpu.func @load_of_no_head(%g: !llvm.ptr<1>) kernel {
    %kind = llvm.mlir.constant(0x000403 : i64) : i64
    %tile, %b, %p, %zero = func.call @begin_heads(%g, %kind) : (!llvm.ptr<1>, i64) -> (!llvm.ptr<3>, !llvm.ptr<3>, !llvm.ptr, i32)
    %head = llvm.mlir.constant(2 : i32) : i32
    // CHECK-LABEL: run @load_of_no_head:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.tensor.shared.cluster.global: thread (0, 0, 0) of block (0, 0, 0) copies a box at coordinate 2 of dimension 1, which is outside of the tensor: the size is 2
    nvvm.cp.async.bulk.tensor.shared.cluster.global %tile, %p, %b, box[%zero, %head, %zero] {isCTAOnly = true} : !llvm.ptr<3>, !llvm.ptr
    gpu.return
  }

  gpu.func @load_of_a_head_before_the_first(%g: !llvm.ptr<1>) kernel {
    %kind = llvm.mlir.constant(0x000403 : i64) : i64
    %tile, %b, %p, %zero = func.call @begin_heads(%g, %kind) : (!llvm.ptr<1>, i64) -> (!llvm.ptr<3>, !llvm.ptr<3>, !llvm.ptr, i32)
    %head = llvm.mlir.constant(-1 : i32) : i32
    // CHECK-LABEL: run @load_of_a_head_before_the_first:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.tensor.shared.cluster.global: thread (0, 0, 0) of block (0, 0, 0) copies a box at coordinate -1 of dimension 1, which is outside of the tensor: the size is 2
    nvvm.cp.async.bulk.tensor.shared.cluster.global %tile, %p, %b, box[%zero, %head, %zero] {isCTAOnly = true} : !llvm.ptr<3>, !llvm.ptr
    gpu.return
  }

  gpu.func @load_of_no_page(%g: !llvm.ptr<1>) kernel {
    %kind = llvm.mlir.constant(0x000403 : i64) : i64
    %tile, %b, %p, %zero = func.call @begin_heads(%g, %kind) : (!llvm.ptr<1>, i64) -> (!llvm.ptr<3>, !llvm.ptr<3>, !llvm.ptr, i32)
    %row = llvm.mlir.constant(4 : i32) : i32
    // CHECK-LABEL: run @load_of_no_page:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.tensor.shared.cluster.global: thread (0, 0, 0) of block (0, 0, 0) copies a box at coordinate 4 of dimension 2, which is outside of the tensor: the size is 4
    nvvm.cp.async.bulk.tensor.shared.cluster.global %tile, %p, %b, box[%zero, %zero, %row] {isCTAOnly = true} : !llvm.ptr<3>, !llvm.ptr
    gpu.return
  }

  gpu.func @store_to_no_head(%g: !llvm.ptr<1>) kernel {
    %kind = llvm.mlir.constant(0x000403 : i64) : i64
    %tile, %b, %p, %zero = func.call @begin_heads(%g, %kind) : (!llvm.ptr<1>, i64) -> (!llvm.ptr<3>, !llvm.ptr<3>, !llvm.ptr, i32)
    %head = llvm.mlir.constant(2 : i32) : i32
    // CHECK-LABEL: run @store_to_no_head:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.tensor.global.shared.cta: thread (0, 0, 0) of block (0, 0, 0) copies a box at coordinate 2 of dimension 1, which is outside of the tensor: the size is 2
    nvvm.cp.async.bulk.tensor.global.shared.cta %p, %tile, box[%zero, %head, %zero] : !llvm.ptr, !llvm.ptr<3>
    gpu.return
  }

  gpu.func @swizzled_tile_beside_its_pattern(%g: !llvm.ptr<1>) kernel {
    %kind = llvm.mlir.constant(0x030403 : i64) : i64
    %tile, %b, %p, %zero = func.call @begin_heads(%g, %kind) : (!llvm.ptr<1>, i64) -> (!llvm.ptr<3>, !llvm.ptr<3>, !llvm.ptr, i32)
    %to = llvm.getelementptr %tile[128] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    // CHECK-LABEL: run @swizzled_tile_beside_its_pattern:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.tensor.shared.cluster.global: thread (0, 0, 0) of block (0, 0, 0) copies a box with a swizzle of 128 bytes, which requires a multiple of 512 bytes in shared memory, got byte 128 of shared @tile
    nvvm.cp.async.bulk.tensor.shared.cluster.global %to, %p, %b, box[%zero, %zero, %zero] {isCTAOnly = true} : !llvm.ptr<3>, !llvm.ptr
    gpu.return
  }
}

}
