// RUN: kvcache-opt %s --kvcache-to-ptx="chip=sm_90a,sm_100a host=true" -o %t.mlir
// DEFINE: %{run} = mlir-runner %t.mlir -e main -entry-point-result=void -shared-libs=%mlir_lib_dir/libmlir_runner_utils.so,%mlir_lib_dir/libmlir_c_runner_utils.so,%mlir_lib_dir/libmlir_float16_utils.so,%kvcache_trace,%kvcache_runtime
// RUN: %{run} | FileCheck %s --match-full-lines -DCHIP=sm_90a
// RUN: env KVCACHE_TRACE_CHIP=sm_100a %{run} | FileCheck %s --match-full-lines -DCHIP=sm_100a
// RUN: not env KVCACHE_TRACE_CHIP=sm_80 %{run} 2>&1 | FileCheck %s --check-prefix=OTHER -DSOURCE=%s

// A kernel gets every operand of its launch in as many bytes as it reads.

// CHECK:      launch @kernels::@numbers for [[CHIP]]
// CHECK-NEXT:   grid (2, 3, 4), block (32, 2, 1), shared memory 0, stream default
// CHECK-NEXT:   param 0: 8 bytes, -3 = 0xfffffffffffffffd
// CHECK-NEXT:   param 1: 8 bytes, 81985529216486895 = 0x123456789abcdef
// CHECK-NEXT:   param 2: 4 bytes, -7 = 0xfffffff9
// CHECK-NEXT:   param 3: 2 bytes, 258 = 0x102
// CHECK-NEXT:   param 4: 1 bytes, -1 = 0xff
// CHECK-NEXT:   param 5: 1 bytes, 1 = 0x1
// CHECK-NEXT:   param 6: 8 bytes, 4609434218613702656 = 0x3ff8000000000000
// CHECK-NEXT:   param 7: 4 bytes, 1069547520 = 0x3fc00000
// CHECK-NEXT:   param 8: 2 bytes, 15872 = 0x3e00
// CHECK-NEXT:   param 9: 2 bytes, 16320 = 0x3fc0
// CHECK-NEXT:   param 10: 1 bytes, 60 = 0x3c
// CHECK-NEXT:   param 11: 16 bytes, not a number

// OTHER: [[SOURCE]]:[[# @LINE + 53]]:3: launch of @kernels::@numbers: module @kernels has no code for sm_80: it is for sm_90a, sm_100a

// Of a memref the pointer to its first element, open sizes, open strides.

// CHECK-NEXT: launch @kernels::@window for [[CHIP]]
// CHECK-NEXT:   grid (1, 1, 1), block (64, 1, 1), shared memory 98304, stream default
// CHECK-NEXT:   param 0: 8 bytes, {{.*}} = 0x[[# %x, BASE:]]
// CHECK-NEXT:   param 1: 8 bytes, 64 = 0x40
// CHECK-NEXT:   param 2: 8 bytes, {{.*}} = 0x[[# BASE + 320]]
// CHECK-NEXT:   param 3: 8 bytes, 3 = 0x3
// CHECK-NEXT:   param 4: 8 bytes, 64 = 0x40

// Loops, whose kernels get names from their functions, run by run.

// CHECK-NEXT: launch @scale_kernel::@scale_kernel for [[CHIP]]
// CHECK-NEXT:   grid (1, 1, 1), block (128, 1, 1), shared memory 0, stream default
// CHECK:      launch @scale_kernel::@scale_kernel for [[CHIP]]
// CHECK-NEXT:   grid (2, 1, 1), block (128, 1, 1), shared memory 0, stream default
// CHECK:      launch @scale_kernel::@scale_kernel for [[CHIP]]
// CHECK-NEXT:   grid (3, 1, 1), block (128, 1, 1), shared memory 0, stream default
// CHECK:      ( 1, 2, 3 )
// CHECK-NOT:  {{.+}}

!tile = !kvcache.tile<128x128xbf16, swizzle_128b>

module attributes {gpu.container_module} {

gpu.module @kernels {
  gpu.func @numbers(%a: index, %b: i64, %c: i32, %d: i16, %e: i8, %f: i1, %g: f64, %h: f32, %i: f16, %j: bf16,
                    %k: f8E4M3FN, %l: vector<4xf32>) kernel {
    gpu.return
  }
  gpu.func @window(%whole: memref<8x?xf32, 1>, %part: memref<4x?xf32, strided<[?, 1], offset: ?>>) kernel {
    %c0 = arith.constant 0 : index
    %a = kvcache.alloc_tile : !tile
    %b = kvcache.alloc_tile : !tile
    %c = kvcache.alloc_tile : !tile
    %x = vector.load %part[%c0, %c0] : memref<4x?xf32, strided<[?, 1], offset: ?>>, vector<8xf32>
    %v = arith.truncf %x : vector<8xf32> to vector<8xbf16>
    kvcache.tile_store %v, %a[%c0, %c0] : vector<8xbf16>, !tile
    kvcache.tile_store %v, %b[%c0, %c0] : vector<8xbf16>, !tile
    kvcache.tile_store %v, %c[%c0, %c0] : vector<8xbf16>, !tile
    gpu.return
  }
}

func.func private @numbers(%a: index, %b: i64, %c: i32, %d: i16, %e: i8, %f: i1, %g: f64, %h: f32, %i: f16, %j: bf16,
                           %k: f8E4M3FN, %l: vector<4xf32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  gpu.launch_func @kernels::@numbers blocks in (%c2, %c3, %c4) threads in (%c32, %c2, %c1)
      args(%a : index, %b : i64, %c : i32, %d : i16, %e : i8, %f : i1, %g : f64, %h : f32, %i : f16, %j : bf16,
           %k : f8E4M3FN, %l : vector<4xf32>)
  return
}

func.func private @window(%whole: memref<8x?xf32, 1>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %plain = memref.memory_space_cast %whole : memref<8x?xf32, 1> to memref<8x?xf32>
  %part = memref.subview %plain[1, 16] [4, 3] [1, 1] : memref<8x?xf32> to memref<4x3xf32, strided<[?, 1], offset: ?>>
  %open = memref.cast %part : memref<4x3xf32, strided<[?, 1], offset: ?>> to memref<4x?xf32, strided<[?, 1], offset: ?>>
  gpu.launch_func @kernels::@window blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%whole : memref<8x?xf32, 1>, %open : memref<4x?xf32, strided<[?, 1], offset: ?>>)
  return
}

func.func private @scale(%m: memref<?x128xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    scf.parallel (%j) = (%c0) to (%c128) step (%c1) {
      %x = memref.load %m[%i, %j] : memref<?x128xf32>
      %y = arith.addf %x, %x : f32
      memref.store %y, %m[%i, %j] : memref<?x128xf32>
    }
  }
  return
}

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %a = arith.constant -3 : index
  %b = arith.constant 0x123456789abcdef : i64
  %c = arith.constant -7 : i32
  %d = arith.constant 258 : i16
  %e = arith.constant -1 : i8
  %f = arith.constant true
  %g = arith.constant 1.5 : f64
  %h = arith.constant 1.5 : f32
  %i = arith.constant 1.5 : f16
  %j = arith.constant 1.5 : bf16
  %k = arith.constant 1.5 : f8E4M3FN
  %l = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : vector<4xf32>
  call @numbers(%a, %b, %c, %d, %e, %f, %g, %h, %i, %j, %k, %l)
      : (index, i64, i32, i16, i8, i1, f64, f32, f16, bf16, f8E4M3FN, vector<4xf32>) -> ()

  %whole = gpu.alloc (%c64) : memref<8x?xf32, 1>
  call @window(%whole) : (memref<8x?xf32, 1>) -> ()
  gpu.dealloc %whole : memref<8x?xf32, 1>

  // What a dry run leaves of memory is what the host wrote.
  %m = gpu.alloc host_shared (%c3) : memref<?x128xf32>
  %r = memref.alloc() : memref<3xi64>
  scf.for %n = %c1 to %c4 step %c1 {
    func.call @scale(%m, %n) : (memref<?x128xf32>, index) -> ()
    %before = arith.subi %n, %c1 : index
    %n64 = arith.index_cast %n : index to i64
    memref.store %n64, %r[%before] : memref<3xi64>
  }
  %v = vector.load %r[%c0] : memref<3xi64>, vector<3xi64>
  vector.print %v : vector<3xi64>
  memref.dealloc %r : memref<3xi64>
  gpu.dealloc %m : memref<?x128xf32>
  return
}

}
