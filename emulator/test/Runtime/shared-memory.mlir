// Right kernels, which the sanitizer lets pass: order by barriers, by mbarriers,
// by atomic accesses and by waits for copies.

// DEFINE: %{libs} = %kvcache_emulator,%kvcache_runtime,%mlir_lib_dir/libmlir_c_runner_utils.so,%mlir_lib_dir/libmlir_runner_utils.so
// DEFINE: %{run} = mlir-runner -e main -entry-point-result=void -shared-libs=%{libs}
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_90a" | %{run} | FileCheck %s
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_90a" | env KVCACHE_EMULATOR_SEED=5 %{run} | FileCheck %s
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_90a sanitize=false" | %{run} | FileCheck %s

// CHECK: [499500, 42, 1, 9]

module attributes {gpu.container_module} {

gpu.module @kernels {
  llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<1024 x i8>
  llvm.mlir.global internal @full() {addr_space = 3 : i32, alignment = 8 : i64} : i64

  // The sum of the numbers of 1000 threads, which all of them read.
  gpu.func @sum(%out: memref<4xi32>) workgroup(%sum: memref<1xi32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %is_first = arith.cmpi eq, %t, %c0 : index
    scf.if %is_first {
      %zero = arith.constant 0 : i32
      memref.store %zero, %sum[%c0] : memref<1xi32, #gpu.address_space<workgroup>>
    }
    nvvm.barrier0
    %mine = arith.index_cast %t : index to i32
    %old = memref.atomic_rmw addi %mine, %sum[%c0] : (i32, memref<1xi32, #gpu.address_space<workgroup>>) -> i32
    nvvm.barrier0
    %all = memref.load %sum[%c0] : memref<1xi32, #gpu.address_space<workgroup>>
    nvvm.barrier0
    scf.if %is_first {
      memref.store %all, %sum[%c0] : memref<1xi32, #gpu.address_space<workgroup>>
      memref.store %all, %out[%c0] : memref<4xi32>
    }
    gpu.return
  }

  // One thread waits until the other has raised a flag.
  gpu.func @flag(%out: memref<4xi32>) workgroup(%flag: memref<2xi32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %t = gpu.thread_id x
    %is_first = arith.cmpi eq, %t, %c0 : index
    scf.if %is_first {
      memref.store %zero, %flag[%c0] : memref<2xi32, #gpu.address_space<workgroup>>
    }
    nvvm.barrier0
    scf.if %is_first {
      scf.while : () -> () {
        %value = memref.atomic_rmw addi %zero, %flag[%c0] : (i32, memref<2xi32, #gpu.address_space<workgroup>>) -> i32
        %again = arith.cmpi eq, %value, %zero : i32
        scf.condition(%again)
      } do {
        scf.yield
      }
      llvm.fence syncscope("block") acquire
      %value = memref.load %flag[%c1] : memref<2xi32, #gpu.address_space<workgroup>>
      memref.store %value, %out[%c1] : memref<4xi32>
    } else {
      %answer = arith.constant 42 : i32
      memref.store %answer, %flag[%c1] : memref<2xi32, #gpu.address_space<workgroup>>
      llvm.fence syncscope("block") release
      %old = memref.atomic_rmw addi %one, %flag[%c0] : (i32, memref<2xi32, #gpu.address_space<workgroup>>) -> i32
    }
    gpu.return
  }

  // A tile comes three times, every thread adds to its numbers, and the tile
  // goes back.
  gpu.func @pipeline(%out: memref<4xi32>, %data: memref<256xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %one = arith.constant 1 : i32
    %bytes = arith.constant 1024 : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %full = llvm.mlir.addressof @full : !llvm.ptr<3>
    %index = memref.extract_aligned_pointer_as_index %data : memref<256xi32> -> index
    %address = arith.index_cast %index : index to i64
    %global = llvm.inttoptr %address : i64 to !llvm.ptr<1>
    %t = gpu.thread_id x
    %is_first = arith.cmpi eq, %t, %c0 : index
    scf.if %is_first {
      nvvm.mbarrier.init %full, %one : !llvm.ptr<3>, i32
      nvvm.fence.mbarrier.init
    }
    nvvm.barrier0
    scf.for %i = %c0 to %c3 step %c1 {
      scf.if %is_first {
        nvvm.mbarrier.arrive.expect_tx %full, %bytes : !llvm.ptr<3>, i32
        nvvm.cp.async.bulk.shared.cluster.global %tile, %global, %full, %bytes : !llvm.ptr<3>, !llvm.ptr<1>
      }
      %number = arith.index_cast %i : index to i32
      %parity = arith.andi %number, %one : i32
      %ticks = arith.constant 10000000 : i32
      nvvm.mbarrier.try_wait.parity %full, %parity, %ticks : !llvm.ptr<3>, i32, i32
      %lane = arith.index_cast %t : index to i32
      %mine = llvm.getelementptr %tile[%lane] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %old = llvm.load %mine : !llvm.ptr<3> -> i32
      %three = arith.constant 3 : i32
      %new = arith.addi %old, %three : i32
      llvm.store %new, %mine : i32, !llvm.ptr<3>
      nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
      nvvm.barrier0
      scf.if %is_first {
        nvvm.cp.async.bulk.global.shared.cta %global, %tile, %bytes : !llvm.ptr<1>, !llvm.ptr<3>
        nvvm.cp.async.bulk.commit.group
        nvvm.cp.async.bulk.wait_group 0
      }
      nvvm.barrier0
    }
    scf.if %is_first {
      %c2 = arith.constant 2 : index
      %c255 = arith.constant 255 : index
      memref.store %one, %out[%c2] : memref<4xi32>
      %last = memref.load %data[%c255] : memref<256xi32>
      memref.store %last, %out[%c3] : memref<4xi32>
    }
    gpu.return
  }
}

func.func private @printMemrefI32(memref<*xi32>)

func.func @main() {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c256 = arith.constant 256 : index
  %c1000 = arith.constant 1000 : index
  %zero = arith.constant 0 : i32
  %out = gpu.alloc() : memref<4xi32>
  %data = gpu.alloc() : memref<256xi32>
  gpu.memset %data, %zero : memref<256xi32>, i32
  gpu.launch_func @kernels::@sum blocks in (%c1, %c1, %c1) threads in (%c1000, %c1, %c1) args(%out : memref<4xi32>)
  gpu.launch_func @kernels::@flag blocks in (%c1, %c1, %c1) threads in (%c2, %c1, %c1) args(%out : memref<4xi32>)
  gpu.launch_func @kernels::@pipeline blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1) args(%out : memref<4xi32>, %data : memref<256xi32>)
  %host = memref.alloc() : memref<4xi32>
  gpu.memcpy %host, %out : memref<4xi32>, memref<4xi32>
  %any = memref.cast %host : memref<4xi32> to memref<*xi32>
  func.call @printMemrefI32(%any) : (memref<*xi32>) -> ()
  memref.dealloc %host : memref<4xi32>
  gpu.dealloc %out : memref<4xi32>
  gpu.dealloc %data : memref<256xi32>
  return
}

}
