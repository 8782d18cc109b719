// Copies for pairs of blocks (cta_group::2) count their bytes on an mbarrier of either block.

// DEFINE: %{libs} = %kvcache_emulator,%kvcache_runtime,%mlir_lib_dir/libmlir_c_runner_utils.so,%mlir_lib_dir/libmlir_runner_utils.so
// DEFINE: %{run} = mlir-runner -e main -entry-point-result=void -shared-libs=%{libs}
// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_100a" -o %t.mlir
// RUN: %{run} %t.mlir | FileCheck %s
// RUN: env KVCACHE_EMULATOR_SEED=1 %{run} %t.mlir | FileCheck %s
// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_100a sanitize=false" | %{run} | FileCheck %s

// PRELUDE: cluster-barriers.mlir
// PRELUDE: pointers.mlir
// HOST PRELUDE: tile-maps.mlir

module attributes {gpu.container_module} {

gpu.module @kernels {
  llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<512 x i8>

  // Each block copies two rows to its own tile, and the even block of each pair waits for both.
  gpu.func @boxes(%map: memref<16xi64>, %out: memref<8x64xi32>) kernel {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %both = llvm.mlir.constant(512 : i32) : i32
    %two = llvm.mlir.constant(2 : i32) : i32
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %last = llvm.and %rank, %one : i32
    %is_even = llvm.icmp "eq" %last, %zero : i32
    %bytes = llvm.select %is_even, %both, %zero : i1, i32
    %bar, %tile = func.call @init(%bytes) : (i32) -> (!llvm.ptr<3>, !llvm.ptr<7>)
    %p = func.call @get_map(%map) : (memref<16xi64>) -> !llvm.ptr
    %there = func.call @get_barrier_of_pair(%bar, %zero) : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>
    %row = llvm.mul %rank, %two : i32
    nvvm.cp.async.bulk.tensor.shared.cluster.global %tile, %p, %there, box[%zero, %row] {group = #nvvm.cta_group<cta_2>}
        : !llvm.ptr<7>, !llvm.ptr
    func.call @wait(%bar) : (!llvm.ptr<3>) -> ()
    nvvm.cluster.arrive
    nvvm.cluster.wait
    func.call @store(%out) : (memref<8x64xi32>) -> ()
    gpu.return
  }

  // The first block copies to all; the odd block of each pair waits for both.
  gpu.func @multicast(%map: memref<16xi64>, %out: memref<8x64xi32>) kernel {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %both = llvm.mlir.constant(512 : i32) : i32
    %all = llvm.mlir.constant(15 : i16) : i16
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %last = llvm.and %rank, %one : i32
    %is_odd = llvm.icmp "ne" %last, %zero : i32
    %is_first = llvm.icmp "eq" %rank, %zero : i32
    %bytes = llvm.select %is_odd, %both, %zero : i1, i32
    %bar, %tile = func.call @init(%bytes) : (i32) -> (!llvm.ptr<3>, !llvm.ptr<7>)
    %p = func.call @get_map(%map) : (memref<16xi64>) -> !llvm.ptr
    %there = func.call @get_barrier_of_pair(%bar, %one) : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>
    scf.if %is_first {
      nvvm.cp.async.bulk.tensor.shared.cluster.global %tile, %p, %there, box[%zero, %one] multicast_mask = %all
          {group = #nvvm.cta_group<cta_2>} : !llvm.ptr<7>, !llvm.ptr
    }
    func.call @wait(%bar) : (!llvm.ptr<3>) -> ()
    nvvm.cluster.arrive
    nvvm.cluster.wait
    func.call @store(%out) : (memref<8x64xi32>) -> ()
    gpu.return
  }
}

func.func private @printMemrefI32(memref<*xi32>)

func.func @print(%device: memref<8x64xi32>) {
  %host = memref.alloc() : memref<8x64xi32>
  gpu.memcpy %host, %device : memref<8x64xi32>, memref<8x64xi32>
  %some = memref.subview %host[0, 0] [4, 8] [1, 8] : memref<8x64xi32> to memref<4x8xi32, strided<[64, 8]>>
  %any = memref.cast %some : memref<4x8xi32, strided<[64, 8]>> to memref<*xi32>
  func.call @printMemrefI32(%any) : (memref<*xi32>) -> ()
  memref.dealloc %host : memref<8x64xi32>
  return
}

func.func @main() {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0 : i32
  %tensor = call @make_tensor() : () -> memref<8x32xi32>
  %out = gpu.alloc() : memref<8x64xi32>
  gpu.memset %out, %zero : memref<8x64xi32>, i32
  %rows = arith.constant 0x0002002000000000 : i64
  %plain = arith.constant 0x000402 : i64
  %map = call @make_map(%tensor, %rows, %plain) : (memref<8x32xi32>, i64, i64) -> memref<16xi64>

  // Rows 6 and 7 are after the tensor.
  // CHECK:      [0, 8, 16, 24, 100, 108, 116, 124],
  // CHECK-NEXT: [200, 208, 216, 224, 300, 308, 316, 324],
  // CHECK-NEXT: [400, 408, 416, 424, 500, 508, 516, 524],
  // CHECK-NEXT: [0, 0, 0, 0, 0, 0, 0, 0]
  gpu.launch_func @kernels::@boxes clusters in (%c4, %c1, %c1) blocks in (%c4, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%map : memref<16xi64>, %out : memref<8x64xi32>)
  call @print(%out) : (memref<8x64xi32>) -> ()

  // CHECK:      [100, 108, 116, 124, 200, 208, 216, 224],
  // CHECK-NEXT: [100, 108, 116, 124, 200, 208, 216, 224],
  // CHECK-NEXT: [100, 108, 116, 124, 200, 208, 216, 224],
  // CHECK-NEXT: [100, 108, 116, 124, 200, 208, 216, 224]
  gpu.launch_func @kernels::@multicast clusters in (%c4, %c1, %c1) blocks in (%c4, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%map : memref<16xi64>, %out : memref<8x64xi32>)
  call @print(%out) : (memref<8x64xi32>) -> ()
  return
}

}
