// RUN: kvcache-opt %s --kvcache-split-addresses | FileCheck %s

// What computed an index that is no more used goes with it, but for what has
// other users or effects.

// CHECK-LABEL: llvm.func @chain(
// CHECK-SAME:      %[[P:.*]]: !llvm.ptr, %[[I:.*]]: i64, %[[J:.*]]: i64, %[[COUNTER:.*]]: !llvm.ptr)
// CHECK-NOT:     llvm.add
// CHECK-NOT:     llvm.mul
// CHECK:         %[[KEPT:.*]] = llvm.mul %[[J]], %{{.*}} : i64
// CHECK-NEXT:    llvm.load volatile %[[COUNTER]]
// CHECK-NEXT:    %[[ONE:.*]] = llvm.getelementptr %[[P]][%[[I]]]
// CHECK-NEXT:    %[[TWO:.*]] = llvm.getelementptr %[[ONE]][%[[J]]]
// CHECK-NOT:     llvm.add
// CHECK:         llvm.store %[[KEPT]], %[[TWO]]
llvm.func @chain(%p: !llvm.ptr, %i: i64, %j: i64, %counter: !llvm.ptr) {
  %c8 = llvm.mlir.constant(8 : i64) : i64
  %c16 = llvm.mlir.constant(16 : i64) : i64
  %first = llvm.mul %i, %c8 : i64
  %second = llvm.mul %j, %c16 : i64
  %sum = llvm.add %first, %second : i64
  %read = llvm.load volatile %counter : !llvm.ptr -> i64
  %address = llvm.getelementptr %p[%sum] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  llvm.store %second, %address : i64, !llvm.ptr
  llvm.return
}

// Where no thread comes, values may be used before they are defined.

// CHECK-LABEL: llvm.func @unreachable(
// CHECK:         llvm.return
// CHECK-NEXT:  ^[[LOOP:bb[0-9]+]]:
// CHECK-NEXT:    llvm.br ^[[LOOP]]
llvm.func @unreachable(%p: !llvm.ptr, %i: i64) {
  %c8 = llvm.mlir.constant(8 : i64) : i64
  llvm.return
^bb1:
  %address = llvm.getelementptr %p[%sum] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %sum = llvm.add %i, %part : i64
  %part = llvm.mul %i, %c8 : i64
  llvm.br ^bb1
}
