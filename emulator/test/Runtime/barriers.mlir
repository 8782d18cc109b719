// Barriers of a block, on data: stores of a thread before a barrier are visible to others
// after it.

// DEFINE: %{libs} = %kvcache_emulator,%kvcache_runtime,%mlir_lib_dir/libmlir_c_runner_utils.so,%mlir_lib_dir/libmlir_runner_utils.so
// DEFINE: %{run} = mlir-runner -e main -entry-point-result=void -shared-libs=%{libs}
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_90a" | %{run} | FileCheck %s
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_90a" | env KVCACHE_EMULATOR_SEED=11 %{run} | FileCheck %s
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_90a sanitize=false" | %{run} | FileCheck %s

module attributes {gpu.container_module} {

gpu.module @kernels {
  // In each round, every thread adds what the next one in the block of 72
  // had before.
  gpu.func @all_threads(%out: memref<4xi32>) workgroup(%shared: memref<2x72xi32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c6 = arith.constant 6 : index
    %c72 = arith.constant 72 : index
    %t = gpu.thread_id x
    %one = arith.constant 1 : i32
    memref.store %one, %shared[%c0, %t] : memref<2x72xi32, #gpu.address_space<workgroup>>
    nvvm.barrier0
    scf.for %i = %c0 to %c6 step %c1 {
      %from = arith.remui %i, %c2 : index
      %to = arith.subi %c1, %from : index
      %later = arith.addi %t, %c1 : index
      %wrapped = arith.remui %later, %c72 : index
      %mine = memref.load %shared[%from, %t] : memref<2x72xi32, #gpu.address_space<workgroup>>
      %other = memref.load %shared[%from, %wrapped] : memref<2x72xi32, #gpu.address_space<workgroup>>
      %sum = arith.addi %mine, %other : i32
      memref.store %sum, %shared[%to, %t] : memref<2x72xi32, #gpu.address_space<workgroup>>
      nvvm.barrier0
    }
    %is_first = arith.cmpi eq, %t, %c0 : index
    scf.if %is_first {
      %c71 = arith.constant 71 : index
      %last = memref.load %shared[%c0, %c71] : memref<2x72xi32, #gpu.address_space<workgroup>>
      memref.store %last, %out[%c0] : memref<4xi32>
    }
    gpu.return
  }

  // Warp 0 waits for what warp 1 announces, warp 2 for no other.
  gpu.func @some_warps(%out: memref<4xi32>) workgroup(%shared: memref<32xi32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c31 = arith.constant 31 : index
    %full = arith.constant 5 : i32
    %empty = arith.constant 6 : i32
    %count = arith.constant 64 : i32
    %lane_i32 = nvvm.read.ptx.sreg.laneid range <i32, 0, 32> : i32
    %lane = arith.index_cast %lane_i32 : i32 to index
    %warp_i32 = nvvm.read.ptx.sreg.warpid range <i32, 0, 32> : i32
    %warp = arith.index_cast %warp_i32 : i32 to index
    %is_first = arith.cmpi eq, %lane, %c0 : index
    scf.index_switch %warp
    case 0 {
      scf.for %i = %c0 to %c2 step %c1 {
        nvvm.barrier id = %full number_of_threads = %count
        %back = arith.subi %c31, %lane : index
        %value = memref.load %shared[%back] : memref<32xi32, #gpu.address_space<workgroup>>
        scf.if %is_first {
          memref.store %value, %out[%i] : memref<4xi32>
        }
        nvvm.barrier.arrive id = %empty number_of_threads = %count
      }
      scf.yield
    }
    case 1 {
      scf.for %i = %c0 to %c2 step %c1 {
        %add = arith.index_cast %i : index to i32
        %value = arith.addi %lane_i32, %add : i32
        memref.store %value, %shared[%lane] : memref<32xi32, #gpu.address_space<workgroup>>
        nvvm.barrier.arrive id = %full number_of_threads = %count
        nvvm.barrier id = %empty number_of_threads = %count
      }
      scf.yield
    }
    default {}
    gpu.return
  }

  // Warps that have ended don't count.
  gpu.func @reduced(%out: memref<4xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c10 = arith.constant 10 : index
    %c64 = arith.constant 64 : index
    %t = gpu.thread_id x
    %stays = arith.cmpi ult, %t, %c64 : index
    scf.if %stays {
      %is_true = arith.cmpi ult, %t, %c10 : index
      %predicate = arith.extui %is_true : i1 to i32
      %popc = nvvm.barrier #nvvm.reduction<popc> %predicate -> i32
      %and = nvvm.barrier #nvvm.reduction<and> %predicate -> i32
      %or = nvvm.barrier #nvvm.reduction<or> %predicate -> i32
      %is_first = arith.cmpi eq, %t, %c0 : index
      scf.if %is_first {
        memref.store %popc, %out[%c0] : memref<4xi32>
        memref.store %and, %out[%c1] : memref<4xi32>
        memref.store %or, %out[%c2] : memref<4xi32>
      }
    }
    gpu.return
  }
}

func.func private @printMemrefI32(memref<*xi32>)

func.func private @print(%device: memref<4xi32>) {
  %host = memref.alloc() : memref<4xi32>
  gpu.memcpy %host, %device : memref<4xi32>, memref<4xi32>
  %any = memref.cast %host : memref<4xi32> to memref<*xi32>
  func.call @printMemrefI32(%any) : (memref<*xi32>) -> ()
  memref.dealloc %host : memref<4xi32>
  return
}

// CHECK: [64, 0, 0, 0]
// CHECK: [31, 32, 0, 0]
// CHECK: [10, 0, 1, 0]
func.func @main() {
  %c1 = arith.constant 1 : index
  %c72 = arith.constant 72 : index
  %c96 = arith.constant 96 : index
  %zero = arith.constant 0 : i32
  %device = gpu.alloc() : memref<4xi32>
  %t0 = gpu.wait async
  %t1 = gpu.memset async [%t0] %device, %zero : memref<4xi32>, i32
  gpu.wait [%t1]
  gpu.launch_func @kernels::@all_threads blocks in (%c1, %c1, %c1) threads in (%c72, %c1, %c1)
      args(%device : memref<4xi32>)
  func.call @print(%device) : (memref<4xi32>) -> ()
  gpu.launch_func @kernels::@some_warps blocks in (%c1, %c1, %c1) threads in (%c96, %c1, %c1)
      args(%device : memref<4xi32>)
  func.call @print(%device) : (memref<4xi32>) -> ()
  gpu.launch_func @kernels::@reduced blocks in (%c1, %c1, %c1) threads in (%c96, %c1, %c1)
      args(%device : memref<4xi32>)
  func.call @print(%device) : (memref<4xi32>) -> ()
  gpu.dealloc %device : memref<4xi32>
  return
}

}
