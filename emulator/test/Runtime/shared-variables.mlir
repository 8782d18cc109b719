// Right kernels with several variables in shared memory. Addresses beside them
// may be computed, and addresses modulo 1024 are the same with red zones and
// without.

// DEFINE: %{libs} = %kvcache_emulator,%kvcache_runtime,%mlir_lib_dir/libmlir_c_runner_utils.so,%mlir_lib_dir/libmlir_runner_utils.so
// DEFINE: %{run} = mlir-runner -e main -entry-point-result=void -shared-libs=%{libs}
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_90a" | env KVCACHE_EMULATOR_THREADS=1 %{run} | FileCheck %s
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_90a" | env KVCACHE_EMULATOR_THREADS=4 %{run} | FileCheck %s
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_90a meter=true" | %{run} | FileCheck %s
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_90a sanitize=false" | %{run} | FileCheck %s

module attributes {gpu.container_module} {

gpu.module @kernels {
  llvm.mlir.global internal @numbers() {addr_space = 3 : i32, alignment = 4 : i64} : !llvm.array<5 x i32>
  llvm.mlir.global internal @others() {addr_space = 3 : i32, alignment = 4 : i64} : !llvm.array<3 x i32>
  llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<1024 x i8>
  memref.global "private" @small : memref<8192xi32, #gpu.address_space<workgroup>> = uninitialized
  memref.global "private" @large : memref<16384xi32, #gpu.address_space<workgroup>> = uninitialized

  // A loop whose last pointer is after the end, and one that begins before the
  // start. 5 times 3 and 3 times 4.
  gpu.func @ends(%out: memref<8xi32>) kernel {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0 : i32
    %three = arith.constant 3 : i32
    %four = arith.constant 4 : i32
    %numbers = llvm.mlir.addressof @numbers : !llvm.ptr<3>
    %numbers_end = llvm.getelementptr %numbers[5] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i32
    %others = llvm.mlir.addressof @others : !llvm.ptr<3>
    %before = llvm.getelementptr %others[-1] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i32
    scf.while (%p = %numbers) : (!llvm.ptr<3>) -> !llvm.ptr<3> {
      %more = llvm.icmp "ne" %p, %numbers_end : !llvm.ptr<3>
      scf.condition(%more) %p : !llvm.ptr<3>
    } do {
    ^bb0(%p: !llvm.ptr<3>):
      llvm.store %three, %p : i32, !llvm.ptr<3>
      %next = llvm.getelementptr %p[1] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i32
      scf.yield %next : !llvm.ptr<3>
    }
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    scf.for %i = %c1 to %c4 step %c1 {
      %n = arith.index_cast %i : index to i32
      %p = llvm.getelementptr %before[%n] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      llvm.store %four, %p : i32, !llvm.ptr<3>
    }
    %c5 = arith.constant 5 : index
    %sum = scf.for %i = %c0 to %c5 step %c1 iter_args(%sum = %zero) -> i32 {
      %n = arith.index_cast %i : index to i32
      %p = llvm.getelementptr %numbers[%n] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %v = llvm.load %p : !llvm.ptr<3> -> i32
      %more = arith.addi %sum, %v : i32
      scf.yield %more : i32
    }
    memref.store %sum, %out[%c0] : memref<8xi32>
    %last = llvm.getelementptr %others[2] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i32
    %v = llvm.load %last : !llvm.ptr<3> -> i32
    memref.store %v, %out[%c1] : memref<8xi32>
    gpu.return
  }

  // Numbers, others and a tile: at 0, 20 and 1024.
  gpu.func @addresses(%out: memref<8xi32>) kernel {
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %mask = arith.constant 1023 : i32
    %numbers = llvm.mlir.addressof @numbers : !llvm.ptr<3>
    %others = llvm.mlir.addressof @others : !llvm.ptr<3>
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    llvm.store %mask, %numbers : i32, !llvm.ptr<3>
    %at_others = llvm.ptrtoint %others : !llvm.ptr<3> to i32
    %at_tile = llvm.ptrtoint %tile : !llvm.ptr<3> to i32
    %others_rest = arith.andi %at_others, %mask : i32
    %tile_rest = arith.andi %at_tile, %mask : i32
    memref.store %others_rest, %out[%c2] : memref<8xi32>
    memref.store %tile_rest, %out[%c3] : memref<8xi32>
    gpu.return
  }

  // Beyond 48 KB: in one buffer, where a variable index is from the beginning
  // of its own array.
  gpu.func @packed(%out: memref<8xi32>) kernel {
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %last_small = arith.constant 8191 : index
    %last_large = arith.constant 16383 : index
    %t = gpu.thread_id x
    %i = arith.subi %last_small, %t : index
    %j = arith.subi %last_large, %t : index
    %five = arith.constant 5 : i32
    %six = arith.constant 6 : i32
    %small = memref.get_global @small : memref<8192xi32, #gpu.address_space<workgroup>>
    %large = memref.get_global @large : memref<16384xi32, #gpu.address_space<workgroup>>
    memref.store %five, %small[%last_small] : memref<8192xi32, #gpu.address_space<workgroup>>
    memref.store %six, %large[%t] : memref<16384xi32, #gpu.address_space<workgroup>>
    memref.store %six, %large[%j] : memref<16384xi32, #gpu.address_space<workgroup>>
    %a = memref.load %small[%i] : memref<8192xi32, #gpu.address_space<workgroup>>
    %b = memref.load %large[%last_large] : memref<16384xi32, #gpu.address_space<workgroup>>
    memref.store %a, %out[%c4] : memref<8xi32>
    memref.store %b, %out[%c5] : memref<8xi32>
    gpu.return
  }

  // After a variable of 20 bytes.
  gpu.func @dynamic(%out: memref<8xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c6 = arith.constant 6 : index
    %c7 = arith.constant 7 : index
    %c15 = arith.constant 15 : index
    %seven = arith.constant 7 : i32
    %numbers = llvm.mlir.addressof @numbers : !llvm.ptr<3>
    llvm.store %seven, %numbers : i32, !llvm.ptr<3>
    %all = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %view = memref.view %all[%c0][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<16xi32, #gpu.address_space<workgroup>>
    memref.store %seven, %view[%c15] : memref<16xi32, #gpu.address_space<workgroup>>
    %v = memref.load %view[%c15] : memref<16xi32, #gpu.address_space<workgroup>>
    memref.store %v, %out[%c6] : memref<8xi32>
    %index = memref.extract_aligned_pointer_as_index %view : memref<16xi32, #gpu.address_space<workgroup>> -> index
    %mask = arith.constant 1023 : index
    %rest = arith.andi %index, %mask : index
    %r = arith.index_cast %rest : index to i32
    memref.store %r, %out[%c7] : memref<8xi32>
    gpu.return
  }
}

func.func private @printMemrefI32(memref<*xi32>)

func.func @main() {
  %c1 = arith.constant 1 : index
  %bytes = arith.constant 64 : i32
  %out = gpu.alloc() : memref<8xi32>
  gpu.launch_func @kernels::@ends blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : memref<8xi32>)
  gpu.launch_func @kernels::@addresses blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : memref<8xi32>)
  gpu.launch_func @kernels::@packed blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : memref<8xi32>)
  gpu.launch_func @kernels::@dynamic blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) dynamic_shared_memory_size %bytes args(%out : memref<8xi32>)
  %host = memref.alloc() : memref<8xi32>
  gpu.memcpy %host, %out : memref<8xi32>, memref<8xi32>
  %any = memref.cast %host : memref<8xi32> to memref<*xi32>
  // CHECK: [15, 4, 20, 0, 5, 6, 7, 0]
  func.call @printMemrefI32(%any) : (memref<*xi32>) -> ()
  memref.dealloc %host : memref<8xi32>
  gpu.dealloc %out : memref<8xi32>
  return
}

}
