// RUN: kvcache-opt %s --kvcache-lower-control-flow | FileCheck %s

// Loops of each kind around a loop: their bodies have one block until the inner
// loop is lowered.

// CHECK-LABEL: func.func @loops_in_loops(
// CHECK-NOT:     scf.
// CHECK:         memref.store
// CHECK-NOT:     scf.
// CHECK:         return
func.func @loops_in_loops(%n: index, %out: memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.forall (%i) in (%n) {
    scf.parallel (%j) = (%c0) to (%n) step (%c1) {
      scf.forall (%k) in (%n) {
        scf.for %l = %c0 to %n step %c1 {
          memref.store %l, %out[%k] : memref<?xindex>
        }
      }
    }
  }
  return
}

// Reductions that return an argument: the last value, and the first.

// CHECK-LABEL: func.func @arguments(
// CHECK-SAME:    %[[N:.*]]: index
// CHECK:         cf.br ^[[HEAD:.*]](%[[C0:.*]], %{{.*}}, %[[N]] : index, index, index)
// CHECK:       ^[[HEAD]](%[[I:.*]]: index, %{{.*}}: index, %[[FIRST:.*]]: index)
// CHECK:         cf.br ^[[HEAD]](%{{.*}}, %[[I]], %[[FIRST]] : index, index, index)
// CHECK-NOT:     unrealized_conversion_cast
// CHECK:         return
func.func @arguments(%n: index) -> (index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last, %first = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%c0, %n) -> (index, index) {
    scf.reduce(%i, %i : index, index) {
    ^bb0(%before: index, %now: index):
      scf.reduce.return %now : index
    }, {
    ^bb0(%before: index, %now: index):
      scf.reduce.return %before : index
    }
  }
  return %last, %first : index, index
}

// The loops of a parallel loop have its annotation, and those in it their own.

#no_unrolling = #llvm.loop_annotation<unroll = <disable = true>>

// CHECK-LABEL: func.func @annotation(
// CHECK-COUNT-2: cf.br ^{{.*}} {llvm.loop_annotation = #loop_annotation}
// CHECK-NOT:     loop_annotation
func.func @annotation(%n: index, %out: memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%n, %n) step (%c1, %c1) {
    scf.for %k = %c0 to %n step %c1 {
      memref.store %k, %out[%i] : memref<?xindex>
    }
  } {llvm.loop_annotation = #no_unrolling}
  return
}
