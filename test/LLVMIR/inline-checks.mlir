// RUN: kvcache-opt %s --kvcache-inline-checks --split-input-file | FileCheck %s

// CHECK-NOT:   llvm.func internal @check
// CHECK-LABEL: llvm.func @two_checks(
// CHECK-SAME:      %[[A:.*]]: i64, %[[B:.*]]: i64)
// CHECK:         %[[FIRST:.*]] = llvm.icmp "ult" %[[A]], %[[B]]
// CHECK:         llvm.cond_br %[[FIRST]], ^[[PASSED:.*]], ^[[FAILED:.*]]
// CHECK:       ^[[FAILED]]:
// CHECK-NEXT:    llvm.call @fail(%[[A]])
// CHECK-NEXT:    llvm.unreachable
// CHECK:       ^[[PASSED]]:
// CHECK-NEXT:    %[[SECOND:.*]] = llvm.icmp "ult" %[[B]], %[[A]]
// CHECK:         llvm.cond_br %[[SECOND]]
// CHECK:         llvm.return %[[A]]
llvm.func @fail(i64)
llvm.func internal @check(%value: i64, %bound: i64) attributes {always_inline} {
  %holds = llvm.icmp "ult" %value, %bound : i64
  llvm.cond_br %holds, ^passed, ^failed
^failed:
  llvm.call @fail(%value) : (i64) -> ()
  llvm.unreachable
^passed:
  llvm.return
}
llvm.func @two_checks(%a: i64, %b: i64) -> i64 {
  llvm.call @check(%a, %b) : (i64, i64) -> ()
  llvm.call @check(%b, %a) : (i64, i64) -> ()
  llvm.return %a : i64
}

// -----

// Others stay calls: of functions that someone else may call or that don't ask
// for it, and of a function in itself.

// CHECK-LABEL: llvm.func @others(
// CHECK-NEXT:    llvm.call @public
// CHECK-NEXT:    llvm.call @plain
// CHECK-NEXT:    llvm.call @declared
// CHECK-NEXT:    llvm.return
llvm.func @declared() attributes {always_inline}
llvm.func @public() attributes {always_inline} {
  llvm.return
}
llvm.func internal @plain() {
  llvm.return
}
llvm.func @others() {
  llvm.call @public() : () -> ()
  llvm.call @plain() : () -> ()
  llvm.call @declared() : () -> ()
  llvm.return
}

// CHECK-LABEL: llvm.func internal @recursive(
// CHECK-NEXT:    llvm.call @recursive
llvm.func internal @recursive() attributes {always_inline} {
  llvm.call @recursive() : () -> ()
  llvm.return
}

// -----

// A function of several blocks does not fit into the one block of a loop.

// CHECK-LABEL: llvm.func @in_a_loop(
// CHECK:         scf.for
// CHECK-NEXT:      llvm.call @check
llvm.func internal @check(%ok: i1) attributes {always_inline} {
  llvm.cond_br %ok, ^end, ^failed
^failed:
  llvm.br ^end
^end:
  llvm.return
}
llvm.func @in_a_loop(%n: i32, %ok: i1) {
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    llvm.call @check(%ok) : (i1) -> ()
  }
  llvm.return
}

// -----

// A nested module has functions of its own, of the same names.

// CHECK-LABEL: llvm.func @check_of_another_module(
// CHECK-NEXT:    llvm.call @check()
llvm.func @fail()
llvm.func internal @check() attributes {always_inline} {
  llvm.call @fail() : () -> ()
  llvm.return
}
module {
  llvm.func @check()
  llvm.func @check_of_another_module() {
    llvm.call @check() : () -> ()
    llvm.return
  }
}
