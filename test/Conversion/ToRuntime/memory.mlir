// RUN: kvcache-opt %s --kvcache-lower-launches --canonicalize | FileCheck %s

// CHECK:       llvm.func @kvcacheMemSet(!llvm.ptr, i8 {llvm.zeroext}, i64, !llvm.ptr) -> i32

// CHECK-LABEL: func.func @allocate(
// CHECK-SAME:      %[[N:.*]]: index)
// CHECK:         %[[SLOT:.*]] = llvm.alloca
// CHECK:         %[[BYTES:.*]] = arith.muli %[[N]], %c32
// CHECK:         %[[BYTES64:.*]] = arith.index_cast %[[BYTES]] : index to i64
// CHECK:         llvm.call @kvcacheMemAlloc(%[[BYTES64]], %[[SLOT]])
// CHECK:         scf.if
// CHECK:         %[[POINTER:.*]] = llvm.load %[[SLOT]]
// CHECK:         llvm.insertvalue %[[POINTER]], %{{.*}}[1]
// CHECK:         memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [%[[N]], 4, 4], strides: [16, 4, 1]
func.func @allocate(%n: index) -> memref<?x4x4xbf16> {
  %m = gpu.alloc (%n) : memref<?x4x4xbf16>
  return %m : memref<?x4x4xbf16>
}

// CHECK-LABEL: func.func @allocate_managed(
// CHECK-DAG:     %[[BYTES:.*]] = arith.constant 64 : i64
// CHECK:         llvm.call @kvcacheMemAllocManaged(%[[BYTES]], %{{.*}})
func.func @allocate_managed() -> memref<4x4xf32> {
  %m = gpu.alloc host_shared () : memref<4x4xf32>
  return %m : memref<4x4xf32>
}

// CHECK-LABEL: func.func @free(
// CHECK:         %[[POINTER:.*]] = llvm.inttoptr
// CHECK:         llvm.call @kvcacheMemFree(%[[POINTER]])
func.func @free(%m: memref<?xf32>) {
  gpu.dealloc %m : memref<?xf32>
  return
}

// A copy that isn't asynchronous waits.

// CHECK-LABEL: func.func @copy(
// CHECK:         %[[SIZE:.*]] = arith.muli
// CHECK:         %[[BYTES:.*]] = arith.index_cast %[[SIZE]] : index to i64
// CHECK:         %[[STREAM:.*]] = llvm.call @kvcacheScopeStream()
// CHECK:         llvm.call @kvcacheMemCopy(%{{.*}}, %{{.*}}, %[[BYTES]], %[[STREAM]])
// CHECK:         %[[SAME:.*]] = llvm.call @kvcacheScopeStream()
// CHECK:         llvm.call @kvcacheStreamSynchronize(%[[SAME]])
func.func @copy(%a: memref<?x8xi32>, %b: memref<?x8xi32>) {
  gpu.memcpy %a, %b : memref<?x8xi32>, memref<?x8xi32>
  return
}

// CHECK-LABEL: func.func @set(
// CHECK-SAME:      %{{.*}}: memref<16xi8>, %[[BYTE:.*]]: i8, %{{.*}}: memref<16xf32>)
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0 : i8
// CHECK-DAG:     %[[B16:.*]] = arith.constant 16 : i64
// CHECK-DAG:     %[[B64:.*]] = arith.constant 64 : i64
// CHECK:         llvm.call @kvcacheMemSet(%{{.*}}, %[[BYTE]], %[[B16]], %{{.*}})
// CHECK:         llvm.call @kvcacheMemSet(%{{.*}}, %[[ZERO]], %[[B64]], %{{.*}})
func.func @set(%a: memref<16xi8>, %byte: i8, %b: memref<16xf32>) {
  %zero = arith.constant 0.0 : f32
  gpu.memset %a, %byte : memref<16xi8>, i8
  gpu.memset %b, %zero : memref<16xf32>, f32
  return
}
