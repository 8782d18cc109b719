// Instructions that the lanes of a warp execute together, on data.

// DEFINE: %{libs} = %kvcache_emulator,%kvcache_runtime,%mlir_lib_dir/libmlir_c_runner_utils.so,%mlir_lib_dir/libmlir_runner_utils.so
// DEFINE: %{run} = mlir-runner -e main -entry-point-result=void -shared-libs=%{libs}
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_100a" | %{run} | FileCheck %s --check-prefixes=CHECK,HIGHEST
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_100a" | env KVCACHE_EMULATOR_SEED=3 %{run} | FileCheck %s --check-prefixes=CHECK,HIGHEST
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_100a sanitize=false" | %{run} | FileCheck %s --check-prefixes=CHECK,LOWEST

module attributes {gpu.container_module} {

gpu.module @kernels {
  // Rows of results, a column per lane: the xor of the lane and 1; the lane
  // below, or itself for the first of each half; two lanes above, within eight;
  // the first lane of each quarter.
  gpu.func @shuffle(%out: memref<4x32xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %all = arith.constant -1 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %zero = arith.constant 0 : i32
    %whole = arith.constant 0x1f : i32
    // (32 - width) << 8, and 31 as the clamp but for up.
    %halves_up = arith.constant 0x1000 : i32
    %quarters = arith.constant 0x181f : i32
    %lane = nvvm.read.ptx.sreg.laneid range <i32, 0, 32> : i32
    %t = arith.index_cast %lane : i32 to index
    %f = arith.uitofp %lane : i32 to f32
    %bfly = nvvm.shfl.sync bfly %all, %lane, %one, %whole : i32 -> i32
    memref.store %bfly, %out[%c0, %t] : memref<4x32xi32>
    %up = nvvm.shfl.sync up %all, %f, %one, %halves_up : f32 -> f32
    %up_i = arith.fptoui %up : f32 to i32
    memref.store %up_i, %out[%c1, %t] : memref<4x32xi32>
    %down = nvvm.shfl.sync down %all, %lane, %two, %quarters {return_value_and_is_valid} : i32 -> !llvm.struct<(i32, i1)>
    %down_value = llvm.extractvalue %down[0] : !llvm.struct<(i32, i1)>
    %down_valid = llvm.extractvalue %down[1] : !llvm.struct<(i32, i1)>
    %hundred = arith.constant 100 : i32
    %shown = arith.select %down_valid, %down_value, %hundred : i32
    memref.store %shown, %out[%c2, %t] : memref<4x32xi32>
    %idx = nvvm.shfl.sync idx %all, %lane, %zero, %quarters : i32 -> i32
    memref.store %idx, %out[%c3, %t] : memref<4x32xi32>
    gpu.return
  }

  // Lanes 0 to 15 and the others apart.
  gpu.func @halves(%out: memref<4x32xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %low = arith.constant 0x0000ffff : i32
    %high = arith.constant 0xffff0000 : i32
    %c16 = arith.constant 16 : i32
    %c8 = arith.constant 8 : i32
    %c3_i32 = arith.constant 3 : i32
    %lane = nvvm.read.ptx.sreg.laneid range <i32, 0, 32> : i32
    %t = arith.index_cast %lane : i32 to index
    %is_low = arith.cmpi ult, %lane, %c16 : i32
    %is_first = arith.cmpi ult, %lane, %c8 : i32
    %mask = arith.select %is_low, %low, %high : i32
    %ballot = nvvm.vote.sync ballot %mask, %is_first -> i32
    memref.store %ballot, %out[%c0, %t] : memref<4x32xi32>
    %any = nvvm.vote.sync any %mask, %is_first -> i1
    %every = nvvm.vote.sync all %mask, %is_first -> i1
    %uni = nvvm.vote.sync uni %mask, %is_first -> i1
    %any_i = arith.extui %any : i1 to i32
    %every_i = arith.extui %every : i1 to i32
    %uni_i = arith.extui %uni : i1 to i32
    %c10 = arith.constant 10 : i32
    %c100 = arith.constant 100 : i32
    %tens = arith.muli %every_i, %c10 : i32
    %hundreds = arith.muli %uni_i, %c100 : i32
    %sum = arith.addi %any_i, %tens : i32
    %votes = arith.addi %sum, %hundreds : i32
    memref.store %votes, %out[%c1, %t] : memref<4x32xi32>
    %quad = arith.shrui %lane, %c3_i32 : i32
    %match = nvvm.match.sync any %mask, %quad : i32 -> i32
    memref.store %match, %out[%c2, %t] : memref<4x32xi32>
    %half = arith.extui %is_low : i1 to i64
    %alike = nvvm.match.sync all %mask, %half : i64 -> !llvm.struct<(i32, i1)>
    %lanes = llvm.extractvalue %alike[0] : !llvm.struct<(i32, i1)>
    memref.store %lanes, %out[%c3, %t] : memref<4x32xi32>
    nvvm.bar.warp.sync %mask : i32
    gpu.return
  }

  gpu.func @reduce(%out: memref<4x32xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %all = arith.constant -1 : i32
    %c16 = arith.constant 16 : i32
    %lane = nvvm.read.ptx.sreg.laneid range <i32, 0, 32> : i32
    %t = arith.index_cast %lane : i32 to index
    %centered = arith.subi %lane, %c16 : i32
    %add = nvvm.redux.sync add %centered, %all : i32 -> i32
    memref.store %add, %out[%c0, %t] : memref<4x32xi32>
    %min = nvvm.redux.sync min %centered, %all : i32 -> i32
    memref.store %min, %out[%c1, %t] : memref<4x32xi32>
    %umin = nvvm.redux.sync umin %centered, %all : i32 -> i32
    %or = nvvm.redux.sync or %lane, %all : i32 -> i32
    %both = arith.addi %umin, %or : i32
    memref.store %both, %out[%c2, %t] : memref<4x32xi32>
    %f = arith.sitofp %centered : i32 to f32
    %fmax = nvvm.redux.sync fmax %f, %all {abs = true} : f32 -> f32
    %fmax_i = arith.fptosi %fmax : f32 to i32
    memref.store %fmax_i, %out[%c3, %t] : memref<4x32xi32>
    gpu.return
  }

  // No code may count on which lane it is.
  gpu.func @elect(%out: memref<4x32xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %lane = nvvm.read.ptx.sreg.laneid range <i32, 0, 32> : i32
    %t = arith.index_cast %lane : i32 to index
    %is_leader = nvvm.elect.sync -> i1
    %leader = arith.extui %is_leader : i1 to i32
    memref.store %leader, %out[%c0, %t] : memref<4x32xi32>
    %mask = arith.constant 0x0ff0 : i32
    %c4 = arith.constant 4 : i32
    %c8 = arith.constant 8 : i32
    %place = arith.subi %lane, %c4 : i32
    %is_in = arith.cmpi ult, %place, %c8 : i32
    scf.if %is_in {
      %is_one = nvvm.elect.sync %mask -> i1
      %one = arith.extui %is_one : i1 to i32
      memref.store %one, %out[%c1, %t] : memref<4x32xi32>
    }
    gpu.return
  }

  // Lanes that have ended are not waited for, and those that never were, in the
  // last warp of a block of 40.
  gpu.func @few(%out: memref<4x32xi32>) kernel {
    %c0 = arith.constant 0 : index
    %all = arith.constant -1 : i32
    %one = arith.constant 1 : i32
    %whole = arith.constant 0x1f : i32
    %warp = nvvm.read.ptx.sreg.tid.x range <i32, 0, 1024> : i32
    %c32 = arith.constant 32 : i32
    %lane = nvvm.read.ptx.sreg.laneid range <i32, 0, 32> : i32
    %t = arith.index_cast %lane : i32 to index
    %stays = arith.cmpi uge, %warp, %c32 : i32
    scf.if %stays {
      %other = nvvm.shfl.sync bfly %all, %lane, %one, %whole : i32 -> i32
      %true = arith.constant true
      %ballot = nvvm.vote.sync ballot %all, %true -> i32
      %sum = arith.addi %other, %ballot : i32
      memref.store %sum, %out[%c0, %t] : memref<4x32xi32>
    }
    gpu.return
  }
}

func.func private @printMemrefI32(memref<*xi32>)

func.func private @print(%device: memref<4x32xi32>, %rows: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %host = memref.alloc() : memref<4x32xi32>
  gpu.memcpy %host, %device : memref<4x32xi32>, memref<4x32xi32>
  scf.for %row = %c0 to %rows step %c1 {
    %one = memref.subview %host[%row, 0] [1, 32] [1, 1] : memref<4x32xi32> to memref<32xi32, strided<[1], offset: ?>>
    %any = memref.cast %one : memref<32xi32, strided<[1], offset: ?>> to memref<*xi32>
    func.call @printMemrefI32(%any) : (memref<*xi32>) -> ()
  }
  memref.dealloc %host : memref<4x32xi32>
  %zeros = gpu.wait async
  %t = gpu.memset async [%zeros] %device, %zero : memref<4x32xi32>, i32
  gpu.wait [%t]
  return
}

// CHECK:      [1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14, 17, 16, 19, 18, 21, 20, 23, 22, 25, 24, 27, 26, 29, 28, 31, 30]
// CHECK:      [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30]
// CHECK:      [2, 3, 4, 5, 6, 7, 100, 100, 10, 11, 12, 13, 14, 15, 100, 100, 18, 19, 20, 21, 22, 23, 100, 100, 26, 27, 28, 29, 30, 31, 100, 100]
// CHECK:      [0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 8, 8, 8, 8, 8, 8, 16, 16, 16, 16, 16, 16, 16, 16, 24, 24, 24, 24, 24, 24, 24, 24]

// CHECK:      [255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
// CHECK:      [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100]
// CHECK:      [255, 255, 255, 255, 255, 255, 255, 255, 65280, 65280, 65280, 65280, 65280, 65280, 65280, 65280, 16711680, 16711680, 16711680, 16711680, 16711680, 16711680, 16711680, 16711680, -16777216, -16777216, -16777216, -16777216, -16777216, -16777216, -16777216, -16777216]
// CHECK:      [65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, -65536, -65536, -65536, -65536, -65536, -65536, -65536, -65536, -65536, -65536, -65536, -65536, -65536, -65536, -65536, -65536]

// CHECK:      [-16, -16, {{(-16, )+}}-16]
// CHECK:      [-16, -16, {{(-16, )+}}-16]
// CHECK:      [31, 31, {{(31, )+}}31]
// CHECK:      [16, 16, {{(16, )+}}16]

// HIGHEST:    [{{(0, )+}}1]
// HIGHEST:    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, {{(0, )+}}0]
// LOWEST:     [1{{(, 0)+}}]
// LOWEST:     [0, 0, 0, 0, 1, 0{{(, 0)+}}]

// CHECK:      [256, 255, 258, 257, 260, 259, 262, 261, 0, {{(0, )+}}0]
func.func @main() {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %c40 = arith.constant 40 : index
  %device = gpu.alloc() : memref<4x32xi32>
  gpu.launch_func @kernels::@shuffle blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
      args(%device : memref<4x32xi32>)
  func.call @print(%device, %c4) : (memref<4x32xi32>, index) -> ()
  gpu.launch_func @kernels::@halves blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
      args(%device : memref<4x32xi32>)
  func.call @print(%device, %c4) : (memref<4x32xi32>, index) -> ()
  gpu.launch_func @kernels::@reduce blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
      args(%device : memref<4x32xi32>)
  func.call @print(%device, %c4) : (memref<4x32xi32>, index) -> ()
  gpu.launch_func @kernels::@elect blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
      args(%device : memref<4x32xi32>)
  func.call @print(%device, %c2) : (memref<4x32xi32>, index) -> ()
  gpu.launch_func @kernels::@few blocks in (%c1, %c1, %c1) threads in (%c40, %c1, %c1)
      args(%device : memref<4x32xi32>)
  func.call @print(%device, %c1) : (memref<4x32xi32>, index) -> ()
  gpu.dealloc %device : memref<4x32xi32>
  return
}

}
