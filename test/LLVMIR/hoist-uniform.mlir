// RUN: kvcache-opt %s --kvcache-hoist-uniform | FileCheck %s
// RUN: kvcache-opt %s --kvcache-hoist-uniform --remarks-filter='kvcache-.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: [Passed] uniform | Category:kvcache-hoist-uniform | Function={{.*}} | Count={{[1-9].*}}, Remark="operations moved to the entry block"

// What all threads share is computed once, in the entry block.

// CHECK-LABEL: llvm.func @address_arithmetic_of_parameters(
// CHECK-SAME:      %[[PTR:.*]]: !llvm.ptr, %[[N:.*]]: i64, %[[C:.*]]: i1)
// CHECK-DAG:     %[[FOUR:.*]] = llvm.mlir.constant(4 : i64)
// CHECK-DAG:     %[[BLOCK:.*]] = nvvm.read.ptx.sreg.ctaid.x
// CHECK-DAG:     %[[BLOCK64:.*]] = llvm.sext %[[BLOCK]]
// CHECK-DAG:     %[[ROW:.*]] = llvm.mul %[[BLOCK64]], %[[N]]
// CHECK-DAG:     %[[OFFSET:.*]] = llvm.mul %[[ROW]], %[[FOUR]]
// CHECK-DAG:     %[[ADDRESS:.*]] = llvm.getelementptr %[[PTR]][%[[OFFSET]]]
// CHECK:         llvm.cond_br %[[C]], ^[[THEN:.*]], ^
// CHECK:       ^[[THEN]]:
// CHECK-NEXT:    %[[THREAD:.*]] = nvvm.read.ptx.sreg.tid.x
// CHECK-NEXT:    %[[THREAD64:.*]] = llvm.sext %[[THREAD]]
// CHECK-NEXT:    %[[MINE:.*]] = llvm.getelementptr %[[ADDRESS]][%[[THREAD64]]]
// CHECK-NEXT:    %[[LOADED:.*]] = llvm.load %[[ADDRESS]]
// CHECK-NEXT:    %[[SUM:.*]] = llvm.add %[[LOADED]], %[[N]]
// CHECK-NEXT:    llvm.store %[[SUM]], %[[MINE]]
llvm.func @address_arithmetic_of_parameters(%ptr: !llvm.ptr, %n: i64, %c: i1) attributes {nvvm.kernel} {
  llvm.cond_br %c, ^then, ^done
^then:
  %four = llvm.mlir.constant(4 : i64) : i64
  %block = nvvm.read.ptx.sreg.ctaid.x : i32
  %block64 = llvm.sext %block : i32 to i64
  %row = llvm.mul %block64, %n : i64
  %offset = llvm.mul %row, %four : i64
  %address = llvm.getelementptr %ptr[%offset] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %thread = nvvm.read.ptx.sreg.tid.x : i32
  %thread64 = llvm.sext %thread : i32 to i64
  %mine = llvm.getelementptr %address[%thread64] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %loaded = llvm.load %address : !llvm.ptr -> i64
  %sum = llvm.add %loaded, %n : i64
  llvm.store %sum, %mine : i64, !llvm.ptr
  llvm.br ^done
^done:
  llvm.return
}

// A branch may protect a division by zero.

// CHECK-LABEL: llvm.func @division_stays(
// CHECK:         llvm.cond_br
// CHECK:         llvm.udiv
llvm.func @division_stays(%ptr: !llvm.ptr, %n: i64, %m: i64) attributes {nvvm.kernel} {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %c = llvm.icmp "ne" %n, %zero : i64
  llvm.cond_br %c, ^then, ^done
^then:
  %q = llvm.udiv %m, %n : i64
  llvm.store %q, %ptr : i64, !llvm.ptr
  llvm.br ^done
^done:
  llvm.return
}

// A block's argument depends on the way there.

// CHECK-LABEL: llvm.func @block_arguments_are_not_uniform(
// CHECK:       ^{{.*}}(%[[X:.*]]: i64):
// CHECK-NEXT:    llvm.add %[[X]]
llvm.func @block_arguments_are_not_uniform(%ptr: !llvm.ptr, %n: i64, %m: i64, %c: i1) attributes {nvvm.kernel} {
  llvm.cond_br %c, ^join(%n : i64), ^join(%m : i64)
^join(%x: i64):
  %sum = llvm.add %x, %n : i64
  llvm.store %sum, %ptr : i64, !llvm.ptr
  llvm.return
}

// Functions that are no kernels may be called by some threads only.

// CHECK-LABEL: llvm.func @no_kernel(
// CHECK:         llvm.cond_br
// CHECK:         llvm.mul
llvm.func @no_kernel(%ptr: !llvm.ptr, %n: i64, %c: i1) {
  llvm.cond_br %c, ^then, ^done
^then:
  %square = llvm.mul %n, %n : i64
  llvm.store %square, %ptr : i64, !llvm.ptr
  llvm.br ^done
^done:
  llvm.return
}

// A guard may be all that keeps a divisor from being 0.

// CHECK-LABEL: llvm.func @guarded_division(
// CHECK:         llvm.cond_br
// CHECK:         llvm.udiv %{{.*}}, %[[N:.*]] : i64
llvm.func @guarded_division(%n: i64, %out: !llvm.ptr) attributes {nvvm.kernel} {
  %c0 = llvm.mlir.constant(0 : i64) : i64
  %c100 = llvm.mlir.constant(100 : i64) : i64
  %some = llvm.icmp "ne" %n, %c0 : i64
  llvm.cond_br %some, ^bb1, ^bb2
^bb1:
  %q = llvm.udiv %c100, %n : i64
  llvm.store %q, %out : i64, !llvm.ptr
  llvm.br ^bb2
^bb2:
  llvm.return
}
