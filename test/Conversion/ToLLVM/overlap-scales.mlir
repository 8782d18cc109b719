// RUN: kvcache-opt %s --kvcache-overlap-scales --canonicalize | FileCheck %s

// The scale of the first iteration comes before the loop, and that of the next
// one before the elements of this one, which are loaded again. The last
// elements come after the loop.

// CHECK-LABEL: func.func @heads(
// CHECK-SAME:      %[[X:[^:]*]]: memref<4x16xf32>
// CHECK:         %[[ROW:.*]] = vector.load %[[X]][%[[C0:.*]], %{{.*}}]
// CHECK:         %[[SUM:.*]] = vector.reduction <add>, %[[ROW]]
// CHECK:         %[[FIRST:.*]] = arith.divf %{{.*}}, %[[SUM]] : f32
// CHECK:         scf.for %[[I:.*]] = %{{.*}} iter_args(%[[SCALE:.*]] = %[[FIRST]]) -> (f32) {
// CHECK:           %[[NEXT:.*]] = arith.addi %[[I]], %{{.*}} : index
// CHECK:           %[[NEXT_ROW:.*]] = vector.load %[[X]][%[[NEXT]], %{{.*}}]
// CHECK:           vector.reduction <add>, %[[NEXT_ROW]]
// CHECK:           %[[NEXT_SCALE:.*]] = arith.divf
// CHECK:           %[[AGAIN:.*]] = vector.load %[[X]][%[[I]], %{{.*}}]
// CHECK:           %[[SPREAD:.*]] = vector.broadcast %[[SCALE]]
// CHECK:           arith.mulf %[[AGAIN]], %[[SPREAD]]
// CHECK:           vector.store
// CHECK:           scf.yield %[[NEXT_SCALE]]
// CHECK:         vector.store
// CHECK-NOT:     early_values
func.func @heads(%x: memref<4x16xf32>, %y: memref<4x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %one = arith.constant 1.0 : f32
  scf.for %i = %c0 to %c4 step %c1 {
    %row = vector.load %x[%i, %c0] : memref<4x16xf32>, vector<16xf32>
    %sum = vector.reduction <add>, %row : vector<16xf32> into f32
    %scale = arith.divf %one, %sum {early_values} : f32
    %spread = vector.broadcast %scale : f32 to vector<16xf32>
    %scaled = arith.mulf %row, %spread : vector<16xf32>
    vector.store %scaled, %y[%i, %c0] : memref<4x16xf32>, vector<16xf32>
  } {independent_iterations}
  return
}

// The rows of this iteration are loaded again for a branch, too.

// CHECK-LABEL: func.func @branch(
// CHECK:         scf.for
// CHECK:           vector.load
// CHECK:           %[[NEXT_SUM:.*]] = vector.reduction
// CHECK:           %[[AGAIN:.*]] = vector.load
// CHECK:           scf.if
// CHECK-NEXT:        arith.negf %[[AGAIN]]
// CHECK:           scf.yield %[[NEXT_SUM]]
func.func @branch(%x: memref<4x16xf32>, %y: memref<4x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c4 step %c1 {
    %row = vector.load %x[%i, %c0] : memref<4x16xf32>, vector<16xf32>
    %sum = vector.reduction <add>, %row {early_values} : vector<16xf32> into f32
    %is_negative = arith.cmpf olt, %sum, %zero : f32
    %positive = scf.if %is_negative -> vector<16xf32> {
      %negated = arith.negf %row : vector<16xf32>
      scf.yield %negated : vector<16xf32>
    } else {
      scf.yield %row : vector<16xf32>
    }
    vector.store %positive, %y[%i, %c0] : memref<4x16xf32>, vector<16xf32>
  } {independent_iterations}
  return
}

// A loop stays if its number of iterations is unknown.

// CHECK-LABEL: func.func @unknown_iterations(
// CHECK:         scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{[a-z0-9]*}} {
// CHECK-NEXT:      vector.load
// CHECK-NEXT:      vector.reduction
// CHECK-NEXT:      arith.divf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT:      memref.store
func.func @unknown_iterations(%x: memref<?x16xf32>, %y: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  scf.for %i = %c0 to %n step %c1 {
    %row = vector.load %x[%i, %c0] : memref<?x16xf32>, vector<16xf32>
    %sum = vector.reduction <add>, %row : vector<16xf32> into f32
    %scale = arith.divf %one, %sum {early_values} : f32
    memref.store %scale, %y[%i] : memref<?xf32>
  } {independent_iterations}
  return
}

// Iterations may read what others write.

// CHECK-LABEL: func.func @dependent(
// CHECK:         scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{[a-z0-9]*}} {
// CHECK-NEXT:      memref.load
// CHECK-NEXT:      arith.divf %{{.*}}, %{{.*}} : f32
func.func @dependent(%x: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %one = arith.constant 1.0 : f32
  scf.for %i = %c0 to %c3 step %c1 {
    %sum = memref.load %x[%i] : memref<4xf32>
    %scale = arith.divf %one, %sum {early_values} : f32
    %next = arith.addi %i, %c1 : index
    memref.store %scale, %x[%next] : memref<4xf32>
  }
  return
}

// What writes memory is never early.

// CHECK-LABEL: func.func @writes(
// CHECK:         scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{[a-z0-9]*}} {
// CHECK-NEXT:      %[[SCALE:.*]] = scf.if
func.func @writes(%x: memref<4xf32>, %y: memref<4xf32>, %is_used: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %one = arith.constant 1.0 : f32
  scf.for %i = %c0 to %c4 step %c1 {
    %number = scf.if %is_used -> f32 {
      memref.store %one, %x[%i] : memref<4xf32>
      scf.yield %one : f32
    } else {
      %loaded = memref.load %x[%i] : memref<4xf32>
      scf.yield %loaded : f32
    }
    %scale = arith.divf %one, %number {early_values} : f32
    memref.store %scale, %y[%i] : memref<4xf32>
  } {independent_iterations}
  return
}

// Inner loops are changed before their outer ones are replaced, and loops keep
// their other attributes.

// CHECK-LABEL: func.func @nested(
// CHECK:         scf.for %{{.*}} iter_args(%{{.*}}) -> (f32, f32) {
// CHECK:           scf.for %{{.*}} iter_args(%{{.*}}) -> (f32) {
// CHECK:           } {test.inner}
// CHECK:         } {test.outer}
func.func @nested(%x: memref<4xf32>, %y: memref<4x4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %one = arith.constant 1.0 : f32
  scf.for %i = %c0 to %c4 step %c1 {
    %number = memref.load %x[%i] : memref<4xf32>
    %scale = arith.divf %one, %number {early_values} : f32
    scf.for %j = %c0 to %c4 step %c1 {
      %other = memref.load %x[%j] : memref<4xf32>
      %inner = arith.divf %scale, %other {early_values} : f32
      memref.store %inner, %y[%i, %j] : memref<4x4xf32>
    } {independent_iterations, test.inner}
  } {independent_iterations, test.outer}
  return
}
