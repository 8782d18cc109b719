// Multicast copies bring data and bytes to the same places in each block that
// their mask names.

// DEFINE: %{libs} = %kvcache_emulator,%kvcache_runtime,%mlir_lib_dir/libmlir_c_runner_utils.so,%mlir_lib_dir/libmlir_runner_utils.so
// DEFINE: %{run} = mlir-runner -e main -entry-point-result=void -shared-libs=%{libs}
// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_100a" -o %t.mlir
// RUN: %{run} %t.mlir | FileCheck %s
// RUN: env KVCACHE_EMULATOR_SEED=1 %{run} %t.mlir | FileCheck %s
// RUN: env KVCACHE_EMULATOR_SEED=5 %{run} %t.mlir | FileCheck %s
// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_90 sanitize=false" | %{run} | FileCheck %s

// PRELUDE: cluster-barriers.mlir
// PRELUDE: pointers.mlir
// HOST PRELUDE: tile-maps.mlir

module attributes {gpu.container_module} {

gpu.module @kernels {
  llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<512 x i8>

  // Each block copies two rows to both blocks of its cluster.
  gpu.func @boxes(%map: memref<16xi64>, %tensor: memref<8x32xi32>, %out: memref<8x64xi32>) kernel
      attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %two = llvm.mlir.constant(2 : i32) : i32
    %c128 = llvm.mlir.constant(128 : i32) : i32
    %bytes = llvm.mlir.constant(256 : i32) : i32
    %mask = llvm.mlir.constant(3 : i16) : i16
    %bar, %tile = func.call @init(%bytes) : (i32) -> (!llvm.ptr<3>, !llvm.ptr<7>)
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %p = func.call @get_map(%map) : (memref<16xi64>) -> !llvm.ptr
    %offset = llvm.mul %rank, %c128 : i32
    %to = llvm.getelementptr %tile[%offset] : (!llvm.ptr<7>, i32) -> !llvm.ptr<7>, i8
    %row = llvm.mul %rank, %two : i32
    nvvm.cp.async.bulk.tensor.shared.cluster.global %to, %p, %bar, box[%zero, %row] multicast_mask = %mask
        : !llvm.ptr<7>, !llvm.ptr
    func.call @wait(%bar) : (!llvm.ptr<3>) -> ()
    func.call @store(%out) : (memref<8x64xi32>) -> ()
    gpu.return
  }

  // The first block copies to those in the mask, one of which is not it. The
  // destination names the place only: it is an address in the third block.
  gpu.func @rows(%map: memref<16xi64>, %tensor: memref<8x32xi32>, %out: memref<8x64xi32>) kernel {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %two = llvm.mlir.constant(2 : i32) : i32
    %bytes = llvm.mlir.constant(256 : i32) : i32
    %half = llvm.mlir.constant(128 : i32) : i32
    %mask = llvm.mlir.constant(14 : i16) : i16
    %only = llvm.mlir.constant(1 : i16) : i16
    %bar, %tile = func.call @init(%bytes) : (i32) -> (!llvm.ptr<3>, !llvm.ptr<7>)
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %source = func.call @get_source(%tensor) : (memref<8x32xi32>) -> !llvm.ptr<1>
    %is_first = llvm.icmp "eq" %rank, %zero : i32
    scf.if %is_first {
      %address = llvm.mlir.addressof @tile : !llvm.ptr<3>
      %third = nvvm.mapa %address, %two : !llvm.ptr<3> -> !llvm.ptr<7>
      %later = llvm.getelementptr %third[128] : (!llvm.ptr<7>) -> !llvm.ptr<7>, i8
      %next = llvm.getelementptr %source[128] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
      %barrier = llvm.mlir.addressof @bar : !llvm.ptr<3>
      %of_third = nvvm.mapa %barrier, %two : !llvm.ptr<3> -> !llvm.ptr<7>
      %bits = llvm.ptrtoint %of_third : !llvm.ptr<7> to i32
      %there = llvm.inttoptr %bits : i32 to !llvm.ptr<3>
      nvvm.cp.async.bulk.shared.cluster.global %third, %next, %there, %half multicast_mask = %mask : !llvm.ptr<7>, !llvm.ptr<1>
      nvvm.cp.async.bulk.shared.cluster.global %later, %source, %there, %half multicast_mask = %mask : !llvm.ptr<7>, !llvm.ptr<1>
      nvvm.cp.async.bulk.shared.cluster.global %tile, %source, %bar, %bytes multicast_mask = %only : !llvm.ptr<7>, !llvm.ptr<1>
    }
    func.call @wait(%bar) : (!llvm.ptr<3>) -> ()
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
  %rows = arith.constant 0x0002001000000000 : i64
  %plain = arith.constant 0x000402 : i64

  // CHECK:      [0, 8, 100, 108, 200, 208, 300, 308],
  // CHECK-NEXT: [0, 8, 100, 108, 200, 208, 300, 308],
  // CHECK-NEXT: [0, 8, 100, 108, 200, 208, 300, 308],
  // CHECK-NEXT: [0, 8, 100, 108, 200, 208, 300, 308]
  %map = call @make_map(%tensor, %rows, %plain) : (memref<8x32xi32>, i64, i64) -> memref<16xi64>
  gpu.launch_func @kernels::@boxes blocks in (%c4, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%map : memref<16xi64>, %tensor : memref<8x32xi32>, %out : memref<8x64xi32>)
  call @print(%out) : (memref<8x64xi32>) -> ()

  // CHECK:      [0, 8, 16, 24, 100, 108, 116, 124],
  // CHECK-NEXT: [100, 108, 116, 124, 0, 8, 16, 24],
  // CHECK-NEXT: [100, 108, 116, 124, 0, 8, 16, 24],
  // CHECK-NEXT: [100, 108, 116, 124, 0, 8, 16, 24]
  gpu.launch_func @kernels::@rows clusters in (%c4, %c1, %c1) blocks in (%c4, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%map : memref<16xi64>, %tensor : memref<8x32xi32>, %out : memref<8x64xi32>)
  call @print(%out) : (memref<8x64xi32>) -> ()
  return
}

}
