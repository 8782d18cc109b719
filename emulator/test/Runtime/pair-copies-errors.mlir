// Reports of copies for pairs of blocks whose barrier is not of the pair, or whose
// data are read too early.

// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_100a" -o %t.mlir
// RUN: %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"

// PRELUDE: cluster-barriers.mlir
// PRELUDE: pointers.mlir
// HOST PRELUDE: tile-maps.mlir

module attributes {gpu.container_module} {

gpu.module @kernels {
  llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<512 x i8>

  // The barrier is one of the other pair.
  gpu.func @barrier_of_another_pair(%map: memref<16xi64>) kernel {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %two = llvm.mlir.constant(2 : i32) : i32
    %bar, %tile = func.call @init(%zero) : (i32) -> (!llvm.ptr<3>, !llvm.ptr<7>)
    %p = func.call @get_map(%map) : (memref<16xi64>) -> !llvm.ptr
    %of_third = nvvm.mapa %bar, %two : !llvm.ptr<3> -> !llvm.ptr<7>
    %bits = llvm.ptrtoint %of_third : !llvm.ptr<7> to i32
    %there = llvm.inttoptr %bits : i32 to !llvm.ptr<3>
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %is_first = llvm.icmp "eq" %rank, %zero : i32
    scf.if %is_first {
      // CHECK-LABEL: run @barrier_of_another_pair:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: nvvm.cp.async.bulk.tensor.shared.cluster.global: thread (0, 0, 0) of block (0, 0, 0) copies to shared memory of block (0, 0, 0) with an mbarrier of block (2, 0, 0): both must be in one pair
      nvvm.cp.async.bulk.tensor.shared.cluster.global %tile, %p, %there, box[%zero, %zero] {group = #nvvm.cta_group<cta_2>}
          : !llvm.ptr<7>, !llvm.ptr
    }
    nvvm.cluster.arrive
    nvvm.cluster.wait
    gpu.return
  }

  // Only a thread that has waited is ordered after the copy.
  gpu.func @read_without_a_synchronization(%map: memref<16xi64>) kernel {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %bytes = llvm.mlir.constant(256 : i32) : i32
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %is_even = llvm.icmp "eq" %rank, %zero : i32
    %expected = llvm.select %is_even, %bytes, %zero : i1, i32
    %bar, %tile = func.call @init(%expected) : (i32) -> (!llvm.ptr<3>, !llvm.ptr<7>)
    %p = func.call @get_map(%map) : (memref<16xi64>) -> !llvm.ptr
    %there = func.call @get_barrier_of_pair(%bar, %zero) : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>
    scf.if %is_even {
    } else {
      nvvm.cp.async.bulk.tensor.shared.cluster.global %tile, %p, %there, box[%zero, %zero] {group = #nvvm.cta_group<cta_2>}
          : !llvm.ptr<7>, !llvm.ptr
    }
    func.call @wait(%bar) : (!llvm.ptr<3>) -> ()
    %address = llvm.mlir.addressof @tile : !llvm.ptr<3>
    // CHECK-LABEL: run @read_without_a_synchronization:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: llvm.load: thread (0, 0, 0) of block (1, 0, 0) reads 4 bytes at byte 0 of shared @tile of block (1, 0, 0), which a copy
    %v = llvm.load %address {volatile_} : !llvm.ptr<3> -> i32
    nvvm.cluster.arrive
    nvvm.cluster.wait
    gpu.return
  }
}

func.func @barrier_of_another_pair() {
  %c1 = arith.constant 1 : index
  %blocks = arith.constant 4 : index
  %tensor = call @make_tensor() : () -> memref<8x32xi32>
  %rows = arith.constant 0x0002002000000000 : i64
  %plain = arith.constant 0x000402 : i64
  %map = call @make_map(%tensor, %rows, %plain) : (memref<8x32xi32>, i64, i64) -> memref<16xi64>
  gpu.launch_func @kernels::@barrier_of_another_pair clusters in (%blocks, %c1, %c1) blocks in (%blocks, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%map : memref<16xi64>)
  return
}

func.func @read_without_a_synchronization() {
  %c1 = arith.constant 1 : index
  %blocks = arith.constant 2 : index
  %tensor = call @make_tensor() : () -> memref<8x32xi32>
  %rows = arith.constant 0x0002002000000000 : i64
  %plain = arith.constant 0x000402 : i64
  %map = call @make_map(%tensor, %rows, %plain) : (memref<8x32xi32>, i64, i64) -> memref<16xi64>
  gpu.launch_func @kernels::@read_without_a_synchronization clusters in (%blocks, %c1, %c1) blocks in (%blocks, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%map : memref<16xi64>)
  return
}

}
