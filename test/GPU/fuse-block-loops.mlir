// RUN: kvcache-opt %s --kvcache-fuse-block-loops | FileCheck %s

// The loops of a block become one. The first thread stores, between barriers,
// and constants of a combiner go with it.

// CHECK-LABEL: func.func @phases(
// CHECK:         scf.parallel (%[[I:.*]]) =
// CHECK:           scf.parallel (%[[J:.*]]) = (%[[LOWER:.*]]) to
// CHECK-NEXT:        %[[IS_FIRST:.*]] = arith.cmpi eq, %[[J]], %[[LOWER]]
// CHECK-NEXT:        %[[V:.*]] = memref.load %{{.*}}[%[[I]], %[[J]]]
// CHECK-NEXT:        %[[ALL:.*]] = gpu.all_reduce %[[V]] uniform {
// CHECK:               ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32):
// CHECK:                 %[[HALF:.*]] = arith.constant 5.0
// CHECK:                 %[[SUM:.*]] = arith.addf %[[A]], %[[B]]
// CHECK:                 arith.mulf %[[SUM]], %[[HALF]]
// CHECK:             %[[SUM:.*]] = arith.addf %{{.*}}, %[[ALL]]
// CHECK-NEXT:        %[[RESULT:.*]] = arith.mulf %[[SUM]],
// CHECK-NEXT:        gpu.barrier
// CHECK-NEXT:        scf.if %[[IS_FIRST]] {
// CHECK-NEXT:          memref.store %[[RESULT]], %{{.*}}[%[[I]], %{{.*}}]
// CHECK-NEXT:        }
// CHECK-NEXT:        gpu.barrier
// CHECK-NEXT:        memref.store %[[RESULT]], %{{.*}}[%[[I]], %[[J]]]
// CHECK-NOT:       scf.parallel
func.func @phases(%x: memref<?x64xf32>, %y: memref<?x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %n = memref.dim %x, %c0 : memref<?x64xf32>
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %s = scf.parallel (%j) = (%c0) to (%c64) step (%c1) init (%zero) -> f32 {
      %v = memref.load %x[%i, %j] : memref<?x64xf32>
      scf.reduce(%v : f32) {
      ^bb0(%a: f32, %b: f32):
        %sum = arith.addf %a, %b : f32
        %m = arith.mulf %sum, %half : f32
        scf.reduce.return %m : f32
      }
    }
    memref.store %s, %y[%i, %c0] : memref<?x64xf32>
    scf.parallel (%j) = (%c0) to (%c64) step (%c1) {
      memref.store %s, %y[%i, %j] : memref<?x64xf32>
    }
  }
  return
}

// A barrier of the user separates accesses too: no second one is added.

// CHECK-LABEL: func.func @barrier(
// CHECK:         gpu.all_reduce
// CHECK:         gpu.barrier
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      memref.store
// CHECK-NEXT:    }
// CHECK-NEXT:    gpu.barrier
// CHECK-NEXT:    memref.load
// CHECK-NOT:     gpu.barrier
// CHECK:         return
func.func @barrier(%x: memref<?x64xf32>, %y: memref<?x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %n = memref.dim %x, %c0 : memref<?x64xf32>
  %zero = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %s = scf.parallel (%j) = (%c0) to (%c64) step (%c1) init (%zero) -> f32 {
      %v = memref.load %x[%i, %j] : memref<?x64xf32>
      scf.reduce(%v : f32) {
      ^bb0(%a: f32, %b: f32):
        %sum = arith.addf %a, %b : f32
        scf.reduce.return %sum : f32
      }
    }
    memref.store %s, %y[%i, %c0] : memref<?x64xf32>
    gpu.barrier
    scf.parallel (%j) = (%c0) to (%c64) step (%c1) {
      %v = memref.load %y[%i, %c0] : memref<?x64xf32>
      %w = arith.addf %v, %s : f32
    }
  }
  return
}

// The first thread frees memory, after all threads have read it.

// CHECK-LABEL: func.func @free(
// CHECK:         %[[IS_FIRST:.*]] = arith.cmpi eq
// CHECK:         %[[P:.*]] = memref.alloc()
// CHECK:         memref.load %[[P]]
// CHECK:         gpu.all_reduce
// CHECK:         gpu.barrier
// CHECK-NEXT:    scf.if %[[IS_FIRST]] {
// CHECK-NEXT:      memref.dealloc %[[P]]
// CHECK-NEXT:    }
func.func @free(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %p = memref.alloc() : memref<64xf32, #gpu.address_space<workgroup>>
    %s = scf.parallel (%j) = (%c0) to (%c64) step (%c1) init (%zero) -> f32 {
      %v = memref.load %p[%j] : memref<64xf32, #gpu.address_space<workgroup>>
      scf.reduce(%v : f32) {
      ^bb0(%a: f32, %b: f32):
        %sum = arith.addf %a, %b : f32
        scf.reduce.return %sum : f32
      }
    }
    memref.dealloc %p : memref<64xf32, #gpu.address_space<workgroup>>
  }
  return
}

// Thread blocks without a reduction stay as they are.

// CHECK-LABEL: func.func @others(
// CHECK-NOT:     gpu.
// CHECK:         return
func.func @others(%y: memref<?x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %y, %c0 : memref<?x64xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    scf.parallel (%j) = (%c0) to (%c64) step (%c1) {
      memref.store %zero, %y[%i, %j] : memref<?x64xf32>
    }
  }
  return
}
