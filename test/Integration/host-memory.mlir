// RUN: kvcache-opt %s --kvcache-to-ptx="chip=sm_90a host=true" -o %t.mlir
// DEFINE: %{libs} = %mlir_lib_dir/libmlir_c_runner_utils.so,%kvcache_trace,%kvcache_runtime
// RUN: mlir-runner %t.mlir -e main -entry-point-result=void -shared-libs=%{libs} | FileCheck %s --match-full-lines
// RUN: not mlir-runner %t.mlir -e negative -entry-point-result=void -shared-libs=%{libs} 2>&1 | FileCheck %s --check-prefix=NEGATIVE -DSOURCE=%s

// Memory of the device: what is copied to it and set there comes back.

// CHECK:      ( 1, 2, 3, 4 )
// CHECK-NEXT: ( 0, 0, 0, 0 )
// CHECK-NEXT: ( 7, 7, 7, 7 )
// CHECK-NEXT: ( 0.5, 0.5, 0.5, 0.5 )
// CHECK-NOT:  {{.+}}

// NEGATIVE: [[SOURCE]]:[[# @LINE + 71]]:8: allocation: expects a number of bytes, got -16

memref.global "private" constant @numbers : memref<2x2xi32> = dense<[[1, 2], [3, 4]]>

func.func private @print(%m: memref<2x2xi32>) {
  %c0 = arith.constant 0 : index
  %flat = memref.collapse_shape %m [[0, 1]] : memref<2x2xi32> into memref<4xi32>
  %v = vector.load %flat[%c0] : memref<4xi32>, vector<4xi32>
  vector.print %v : vector<4xi32>
  return
}

func.func private @yes() -> i1 attributes {no_inline} {
  %true = arith.constant true
  return %true : i1
}

func.func @main() {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0 : i32
  %seven = arith.constant 7 : i8
  %half = arith.constant 0.5 : f32
  %yes = func.call @yes() : () -> i1

  // In order, without the host waiting between.
  %numbers = memref.get_global @numbers : memref<2x2xi32>
  %back = memref.alloc() : memref<2x2xi32>
  %t0 = gpu.wait async
  %d, %t1 = gpu.alloc async [%t0] (%c2) : memref<?x2xi32, #gpu.address_space<global>>
  %d0 = memref.memory_space_cast %d : memref<?x2xi32, #gpu.address_space<global>> to memref<?x2xi32>
  %static = memref.cast %d0 : memref<?x2xi32> to memref<2x2xi32>
  %t2 = gpu.memcpy async [%t1] %static, %numbers : memref<2x2xi32>, memref<2x2xi32>
  %t3 = scf.if %yes -> (!gpu.async.token) {
    %t = gpu.memcpy async [%t2] %back, %static : memref<2x2xi32>, memref<2x2xi32>
    scf.yield %t : !gpu.async.token
  } else {
    scf.yield %t2 : !gpu.async.token
  }
  gpu.wait [%t3]
  func.call @print(%back) : (memref<2x2xi32>) -> ()
  %t4 = gpu.memset async [%t3] %d0, %zero : memref<?x2xi32>, i32
  gpu.wait [%t4]
  gpu.memcpy %back, %static : memref<2x2xi32>, memref<2x2xi32>
  func.call @print(%back) : (memref<2x2xi32>) -> ()
  gpu.dealloc %d : memref<?x2xi32, #gpu.address_space<global>>
  memref.dealloc %back : memref<2x2xi32>

  // Memory that both see.
  %shared = gpu.alloc host_shared () : memref<4xi8>
  gpu.memset %shared, %seven : memref<4xi8>, i8
  %v = vector.load %shared[%c0] : memref<4xi8>, vector<4xi8>
  vector.print %v : vector<4xi8>
  gpu.dealloc %shared : memref<4xi8>

  %floats = gpu.alloc host_shared () : memref<4xf32>
  %w = vector.broadcast %half : f32 to vector<4xf32>
  vector.store %w, %floats[%c0] : memref<4xf32>, vector<4xf32>
  %x = vector.load %floats[%c0] : memref<4xf32>, vector<4xf32>
  vector.print %x : vector<4xf32>
  gpu.dealloc %floats : memref<4xf32>
  return
}

func.func private @minus_four() -> index attributes {no_inline} {
  %n = arith.constant -4 : index
  return %n : index
}

func.func @negative() {
  %n = call @minus_four() : () -> index
  %d = gpu.alloc (%n) : memref<?xi32>
  gpu.dealloc %d : memref<?xi32>
  return
}
