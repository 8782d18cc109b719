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
