// Right programs with copies of all kinds: what they leave in memory.

// DEFINE: %{libs} = %kvcache_emulator,%kvcache_runtime,%mlir_lib_dir/libmlir_c_runner_utils.so,%mlir_lib_dir/libmlir_runner_utils.so
// DEFINE: %{run} = mlir-runner -e main -entry-point-result=void -shared-libs=%{libs}
// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_100a" -o %t.mlir
// RUN: env KVCACHE_EMULATOR_TIMEOUT=10 %{run} %t.mlir | FileCheck %s
// RUN: env KVCACHE_EMULATOR_SEED=3 mlir-runner %t.mlir -e main -entry-point-result=void -shared-libs=%{libs} | FileCheck %s
// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_100a sanitize=false meter=true" | %{run} | FileCheck %s

// PRELUDE: pointers.mlir
// HOST PRELUDE: tile-maps.mlir

module attributes {gpu.container_module} {

gpu.module @kernels {
  llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<512 x i8>
  llvm.mlir.global internal @barrier() {addr_space = 3 : i32, alignment = 8 : i64} : !llvm.array<16 x i8>

  // Waits for copies of 512 bytes in phase 0, and copies the tile to memory as
  // it is.
  func.func private @wait(%tile: !llvm.ptr<3>, %barrier: !llvm.ptr<3>) {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %bytes = llvm.mlir.constant(512 : i32) : i32
    %s = nvvm.mbarrier.arrive.expect_tx %barrier, %bytes : !llvm.ptr<3>, i32 -> i64
    nvvm.mbarrier.try_wait.parity %barrier, %zero, %zero : !llvm.ptr<3>, i32, i32
    return
  }

  func.func private @store(%tile: !llvm.ptr<3>, %out: memref<4x32xi32>) {
    %bytes = llvm.mlir.constant(512 : i32) : i32
    %i = memref.extract_aligned_pointer_as_index %out : memref<4x32xi32> -> index
    %n = arith.index_cast %i : index to i64
    %to = llvm.inttoptr %n : i64 to !llvm.ptr<1>
    nvvm.cp.async.bulk.global.shared.cta %to, %tile, %bytes : !llvm.ptr<1>, !llvm.ptr<3>
    nvvm.cp.async.bulk.commit.group
    nvvm.cp.async.bulk.wait_group 0 {read}
    return
  }

  func.func private @get_shared() -> (!llvm.ptr<3>, !llvm.ptr<3>) {
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %barrier = llvm.mlir.addressof @barrier : !llvm.ptr<3>
    return %tile, %barrier : !llvm.ptr<3>, !llvm.ptr<3>
  }

  func.func private @init() -> (!llvm.ptr<3>, !llvm.ptr<3>) {
    %one = llvm.mlir.constant(1 : i32) : i32
    %tile, %barrier = func.call @get_shared() : () -> (!llvm.ptr<3>, !llvm.ptr<3>)
    nvvm.mbarrier.init %barrier, %one : !llvm.ptr<3>, i32
    nvvm.fence.mbarrier.init
    return %tile, %barrier : !llvm.ptr<3>, !llvm.ptr<3>
  }

  // A box that begins before the tensor in both directions: zeros there. Row r
  // has its units of 16 bytes at the places u ^ r.
  gpu.func @load_swizzled(%map: memref<16xi64>, %out: memref<4x32xi32>) kernel {
    %tile, %barrier = func.call @init() : () -> (!llvm.ptr<3>, !llvm.ptr<3>)
    %p = func.call @get_map(%map) : (memref<16xi64>) -> !llvm.ptr
    %column = llvm.mlir.constant(-4 : i32) : i32
    %row = llvm.mlir.constant(-1 : i32) : i32
    nvvm.cp.async.bulk.tensor.shared.cluster.global %tile, %p, %barrier, box[%column, %row] {isCTAOnly = true}
        : !llvm.ptr<3>, !llvm.ptr
    func.call @wait(%tile, %barrier) : (!llvm.ptr<3>, !llvm.ptr<3>) -> ()
    func.call @store(%tile, %out) : (!llvm.ptr<3>, memref<4x32xi32>) -> ()
    gpu.return
  }

  // Rows that don't exist are zeros.
  gpu.func @gather(%map: memref<16xi64>, %out: memref<4x32xi32>) kernel {
    %tile, %barrier = func.call @init() : () -> (!llvm.ptr<3>, !llvm.ptr<3>)
    %p = func.call @get_map(%map) : (memref<16xi64>) -> !llvm.ptr
    %zero = llvm.mlir.constant(0 : i32) : i32
    %five = llvm.mlir.constant(5 : i32) : i32
    %none = llvm.mlir.constant(-1 : i32) : i32
    %six = llvm.mlir.constant(6 : i32) : i32
    %cluster = llvm.addrspacecast %tile : !llvm.ptr<3> to !llvm.ptr<7>
    nvvm.cp.async.bulk.tensor.shared.cluster.global %cluster, %p, %barrier, box[%zero, %five, %none, %zero, %six]
        {mode = #nvvm.tma_load_mode<tile_gather4>} : !llvm.ptr<7>, !llvm.ptr
    func.call @wait(%tile, %barrier) : (!llvm.ptr<3>, !llvm.ptr<3>) -> ()
    func.call @store(%tile, %out) : (!llvm.ptr<3>, memref<4x32xi32>) -> ()
    gpu.return
  }

  // Of a box that is stored, what is outside of the tensor is dropped. The
  // predicate leaves out the second store.
  gpu.func @store_box(%map: memref<16xi64>, %from: memref<4x32xi32>) kernel {
    %tile, %barrier = func.call @init() : () -> (!llvm.ptr<3>, !llvm.ptr<3>)
    %p = func.call @get_map(%map) : (memref<16xi64>) -> !llvm.ptr
    %i = memref.extract_aligned_pointer_as_index %from : memref<4x32xi32> -> index
    %n = arith.index_cast %i : index to i64
    %source = llvm.inttoptr %n : i64 to !llvm.ptr<1>
    %bytes = llvm.mlir.constant(256 : i32) : i32
    %half = llvm.getelementptr %tile[256] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    nvvm.cp.async.bulk.shared.cluster.global %tile, %source, %barrier, %bytes : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.bulk.shared.cluster.global %half, %source, %barrier, %bytes : !llvm.ptr<3>, !llvm.ptr<1>
    func.call @wait(%tile, %barrier) : (!llvm.ptr<3>, !llvm.ptr<3>) -> ()
    %column = llvm.mlir.constant(28 : i32) : i32
    %row = llvm.mlir.constant(4 : i32) : i32
    %false = llvm.mlir.constant(false) : i1
    nvvm.cp.async.bulk.tensor.global.shared.cta %p, %tile, box[%column, %row] : !llvm.ptr, !llvm.ptr<3>
    nvvm.cp.async.bulk.tensor.global.shared.cta %p, %tile, box[%row, %row], predicate = %false
        : !llvm.ptr, !llvm.ptr<3>
    nvvm.cp.async.bulk.commit.group
    nvvm.cp.async.bulk.wait_group 0
    gpu.return
  }

  // Copies that are done before the arrival, by a wait of the thread, and those
  // that another arrival has waited for: the waiting thread acquires them.
  gpu.func @arrive_after_copies(%from: memref<4x32xi32>, %out: memref<4x32xi32>) kernel {
    %tile, %first = func.call @get_shared() : () -> (!llvm.ptr<3>, !llvm.ptr<3>)
    %second = llvm.getelementptr %first[8] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %i = memref.extract_aligned_pointer_as_index %from : memref<4x32xi32> -> index
    %n = arith.index_cast %i : index to i64
    %source = llvm.inttoptr %n : i64 to !llvm.ptr<1>
    %next = llvm.getelementptr %tile[16] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %is_first = llvm.icmp "eq" %t, %zero : i32
    scf.if %is_first {
      nvvm.mbarrier.init %first, %one : !llvm.ptr<3>, i32
      nvvm.mbarrier.init %second, %one : !llvm.ptr<3>, i32
    }
    nvvm.barrier0
    scf.if %is_first {
      nvvm.cp.async.shared.global %tile, %source, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
      nvvm.cp.async.commit.group
      nvvm.cp.async.wait.group 0
      nvvm.cp.async.shared.global %next, %source, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
      nvvm.cp.async.mbarrier.arrive %first {noinc = true} : !llvm.ptr<3>
      nvvm.mbarrier.try_wait.parity %first, %zero, %zero : !llvm.ptr<3>, i32, i32
      nvvm.cp.async.mbarrier.arrive %second {noinc = true} : !llvm.ptr<3>
    } else {
      nvvm.mbarrier.try_wait.parity %second, %zero, %zero : !llvm.ptr<3>, i32, i32
      %v = llvm.load %tile {alignment = 16 : i64} : !llvm.ptr<3> -> vector<8xi32>
      %c0 = arith.constant 0 : index
      vector.store %v, %out[%c0, %c0] : memref<4x32xi32>, vector<8xi32>
    }
    gpu.return
  }

  // The bytes that a copy has written are there after the wait; those next to them, also before.
  gpu.func @read_what_is_stored(%from: memref<4x32xi32>, %out: memref<4x32xi32>) kernel {
    %tile, %barrier = func.call @get_shared() : () -> (!llvm.ptr<3>, !llvm.ptr<3>)
    %i = memref.extract_aligned_pointer_as_index %from : memref<4x32xi32> -> index
    %n = arith.index_cast %i : index to i64
    %to = llvm.inttoptr %n : i64 to !llvm.ptr<1>
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %bytes = llvm.mlir.constant(16 : i32) : i32
    %values = llvm.mlir.constant(dense<7> : vector<4xi32>) : vector<4xi32>
    llvm.store %values, %tile : vector<4xi32>, !llvm.ptr<3>
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    nvvm.cp.async.bulk.global.shared.cta %to, %tile, %bytes : !llvm.ptr<1>, !llvm.ptr<3>
    nvvm.cp.async.bulk.commit.group
    nvvm.cp.async.bulk.wait_group 0 {read}
    %beside = vector.load %from[%c0, %c4] : memref<4x32xi32>, vector<4xi32>
    nvvm.cp.async.bulk.wait_group 0
    %stored = vector.load %from[%c0, %c0] : memref<4x32xi32>, vector<4xi32>
    vector.store %stored, %out[%c0, %c4] : memref<4x32xi32>, vector<4xi32>
    vector.store %beside, %out[%c0, %c0] : memref<4x32xi32>, vector<4xi32>
    gpu.return
  }

  // Many phases that copies by threads complete: the time goes with their number.
  gpu.func @copy_for_long(%from: memref<4x32xi32>, %out: memref<4x32xi32>) kernel {
    %tile, %barrier = func.call @init() : () -> (!llvm.ptr<3>, !llvm.ptr<3>)
    %i = memref.extract_aligned_pointer_as_index %from : memref<4x32xi32> -> index
    %n = arith.index_cast %i : index to i64
    %source = llvm.inttoptr %n : i64 to !llvm.ptr<1>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %end = arith.constant 100000 : index
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %sum = scf.for %phase = %c0 to %end step %c1 iter_args(%old = %zero) -> (i32) {
      nvvm.cp.async.shared.global %tile, %source, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
      nvvm.cp.async.commit.group
      nvvm.cp.async.mbarrier.arrive %barrier {noinc = true} : !llvm.ptr<3>
      %number = arith.index_cast %phase : index to i32
      %parity = arith.andi %number, %one : i32
      nvvm.mbarrier.try_wait.parity %barrier, %parity, %zero : !llvm.ptr<3>, i32, i32
      %x = llvm.load %tile : !llvm.ptr<3> -> i32
      %new = arith.addi %old, %x : i32
      scf.yield %new : i32
    }
    memref.store %sum, %out[%c0, %c0] : memref<4x32xi32>
    gpu.return
  }

  // Copies by threads, with zeros after their bytes of the source: two
  // groups, and copies that arrive at an mbarrier.
  gpu.func @copy_by_thread(%from: memref<4x32xi32>, %out: memref<4x32xi32>) kernel {
    %tile, %barrier = func.call @init() : () -> (!llvm.ptr<3>, !llvm.ptr<3>)
    %i = memref.extract_aligned_pointer_as_index %from : memref<4x32xi32> -> index
    %n = arith.index_cast %i : index to i64
    %source = llvm.inttoptr %n : i64 to !llvm.ptr<1>
    %to1 = llvm.getelementptr %tile[16] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %to2 = llvm.getelementptr %tile[32] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %to3 = llvm.getelementptr %tile[40] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %from1 = llvm.getelementptr %source[16] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    %eight = llvm.mlir.constant(8 : i32) : i32
    nvvm.cp.async.shared.global %tile, %from1, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.commit.group
    nvvm.cp.async.shared.global %to1, %from1, 16, cache = cg, %eight : !llvm.ptr<3>, !llvm.ptr<1>, i32
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 1
    %c0 = arith.constant 0 : index
    %v = llvm.load %tile : !llvm.ptr<3> -> vector<4xi32>
    vector.store %v, %out[%c0, %c0] : memref<4x32xi32>, vector<4xi32>
    nvvm.cp.async.wait.group 0
    %c4 = arith.constant 4 : index
    %w = llvm.load %to1 : !llvm.ptr<3> -> vector<4xi32>
    vector.store %w, %out[%c0, %c4] : memref<4x32xi32>, vector<4xi32>

    nvvm.cp.async.shared.global %to2, %from1, 8, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.shared.global %to3, %from1, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.mbarrier.arrive %barrier {noinc = true} : !llvm.ptr<3>
    %zero = llvm.mlir.constant(0 : i32) : i32
    scf.while : () -> () {
      %done = nvvm.mbarrier.try_wait %barrier, %zero : !llvm.ptr<3>, i32 -> i1
      %true = llvm.mlir.constant(true) : i1
      %again = llvm.xor %done, %true : i1
      scf.condition(%again)
    } do {
      scf.yield
    }
    %x = llvm.load %to2 {alignment = 4 : i64} : !llvm.ptr<3> -> vector<3xi32>
    %c8 = arith.constant 8 : index
    vector.store %x, %out[%c0, %c8] : memref<4x32xi32>, vector<3xi32>
    gpu.return
  }
}

func.func private @printMemrefI32(memref<*xi32>)

func.func private @print(%device: memref<4x32xi32>) {
  %host = memref.alloc() : memref<4x32xi32>
  gpu.memcpy %host, %device : memref<4x32xi32>, memref<4x32xi32>
  %any = memref.cast %host : memref<4x32xi32> to memref<*xi32>
  func.call @printMemrefI32(%any) : (memref<*xi32>) -> ()
  memref.dealloc %host : memref<4x32xi32>
  return
}

func.func @main() {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %tensor = call @make_tensor() : () -> memref<8x32xi32>
  %out = gpu.alloc() : memref<4x32xi32>
  %four_rows = arith.constant 0x0004002000000000 : i64
  %one_row = arith.constant 0x0001002000000000 : i64
  %swizzled = arith.constant 0x030402 : i64
  %plain = arith.constant 0x000402 : i64

  // CHECK:      [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
  // CHECK-NEXT: [0, 1, 2, 3, 0, 0, 0, 0, 8, 9, 10, 11, 4, 5, 6, 7, 16, 17, 18, 19, 12, 13, 14, 15, 24, 25, 26, 27, 20, 21, 22, 23],
  // CHECK-NEXT: [104, 105, 106, 107, 108, 109, 110, 111, 0, 0, 0, 0, 100, 101, 102, 103, 120, 121, 122, 123, 124, 125, 126, 127, 112, 113, 114, 115, 116, 117, 118, 119],
  // CHECK-NEXT: [208, 209, 210, 211, 204, 205, 206, 207, 200, 201, 202, 203, 0, 0, 0, 0, 224, 225, 226, 227, 220, 221, 222, 223, 216, 217, 218, 219, 212, 213, 214, 215]
  %swizzled_map = call @make_map(%tensor, %four_rows, %swizzled) : (memref<8x32xi32>, i64, i64) -> memref<16xi64>
  gpu.launch_func @kernels::@load_swizzled blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%swizzled_map : memref<16xi64>, %out : memref<4x32xi32>)
  call @print(%out) : (memref<4x32xi32>) -> ()

  // CHECK:      [500, 501, {{.*}}, 531],
  // CHECK-NEXT: [0, 0, {{.*}}, 0],
  // CHECK-NEXT: [0, 1, {{.*}}, 31],
  // CHECK-NEXT: [0, 0, {{.*}}, 0]
  %row_map = call @make_map(%tensor, %one_row, %plain) : (memref<8x32xi32>, i64, i64) -> memref<16xi64>
  gpu.launch_func @kernels::@gather blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%row_map : memref<16xi64>, %out : memref<4x32xi32>)
  call @print(%out) : (memref<4x32xi32>) -> ()

  // Rows 4 to 7 of the tensor now.
  // CHECK:      [400, 401, {{.*}}, 427, 500, 501, 502, 503],
  // CHECK-NEXT: [500, 501, {{.*}}, 527, 0, 0, 0, 0],
  // CHECK-NEXT: [600, 601, {{.*}}, 627, 628, 629, 630, 631],
  // CHECK-NEXT: [700, 701, {{.*}}, 727, 728, 729, 730, 731]
  %plain_map = call @make_map(%tensor, %four_rows, %plain) : (memref<8x32xi32>, i64, i64) -> memref<16xi64>
  gpu.launch_func @kernels::@store_box blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%plain_map : memref<16xi64>, %out : memref<4x32xi32>)
  %last_host = memref.alloc() : memref<4x32xi32>
  %whole = memref.alloc() : memref<8x32xi32>
  gpu.memcpy %whole, %tensor : memref<8x32xi32>, memref<8x32xi32>
  %rows = memref.subview %whole[4, 0] [4, 32] [1, 1]
      : memref<8x32xi32> to memref<4x32xi32, strided<[32, 1], offset: 128>>
  memref.copy %rows, %last_host : memref<4x32xi32, strided<[32, 1], offset: 128>> to memref<4x32xi32>
  %any = memref.cast %last_host : memref<4x32xi32> to memref<*xi32>
  call @printMemrefI32(%any) : (memref<*xi32>) -> ()

  // CHECK:      [504, 505, 506, 507, 504, 505, 0, 0, 504, 505, 504, 0,
  %filled = gpu.alloc() : memref<4x32xi32>
  gpu.memset %filled, %zero : memref<4x32xi32>, i32
  gpu.launch_func @kernels::@copy_by_thread blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%out : memref<4x32xi32>, %filled : memref<4x32xi32>)
  call @print(%filled) : (memref<4x32xi32>) -> ()

  // CHECK:      [504, 505, 506, 507, 504, 505, 506, 507, 504,
  %c2 = arith.constant 2 : index
  gpu.launch_func @kernels::@arrive_after_copies blocks in (%c1, %c1, %c1) threads in (%c2, %c1, %c1)
      args(%filled : memref<4x32xi32>, %filled : memref<4x32xi32>)
  call @print(%filled) : (memref<4x32xi32>) -> ()

  // CHECK:      [504, 505, 506, 507, 7, 7, 7, 7, 504,
  gpu.launch_func @kernels::@read_what_is_stored blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%out : memref<4x32xi32>, %filled : memref<4x32xi32>)
  call @print(%filled) : (memref<4x32xi32>) -> ()

  // CHECK:      [50400000, 505,
  gpu.launch_func @kernels::@copy_for_long blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%filled : memref<4x32xi32>, %filled : memref<4x32xi32>)
  call @print(%filled) : (memref<4x32xi32>) -> ()
  return
}

}
