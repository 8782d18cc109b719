// RUN: kvcache-opt %s --convert-kvcache-checks | FileCheck %s --implicit-check-not=kvcache.check --implicit-check-not=cf.assert

// A failed check calls the runtime with a printf format, the value and the
// bound. The position is the check's, however its location is wrapped.

// CHECK-DAG: llvm.mlir.global internal constant @[[PAGE:.*]]("pages.mlir:12:5: error: page id is out of range: %lld is not in [0, %lld)\00")
// CHECK-DAG: llvm.mlir.global internal constant @[[FUSED:.*]]("fused.mlir:3:4: error: head is out of range: %lld is not in [0, %lld)\00")
// CHECK-DAG: llvm.mlir.global internal constant @[[CALLEE:.*]]("callee.mlir:5:6: error: token is out of range: %lld is not in [0, %lld)\00")
// CHECK-DAG: llvm.mlir.global internal constant @[[NOWHERE:.*]]("error: layer is out of range: %lld is not in [0, %lld)\00")
// CHECK-DAG: llvm.mlir.global internal constant @[[PERCENT:.*]]("100%%.mlir:1:2: error: 50%% \22full\22 is out of range: %lld is not in [0, %lld)\00")
// CHECK-DAG: llvm.mlir.global internal constant @[[ASSERT:.*]]("assert.mlir:7:8: error: at least 100%%\00")
// CHECK-DAG: llvm.func @kvcacheCheckFailed(!llvm.ptr, i64, i64)

// CHECK-LABEL: func.func @check_calls_the_runtime(
// CHECK-SAME:      %[[VALUE:.*]]: index, %[[BOUND:.*]]: index)
// CHECK-DAG:     %[[VALUE64:.*]] = arith.index_cast %[[VALUE]] : index to i64
// CHECK-DAG:     %[[BOUND64:.*]] = arith.index_cast %[[BOUND]] : index to i64
// CHECK-DAG:     %[[FORMAT:.*]] = llvm.mlir.addressof @[[PAGE]] : !llvm.ptr
// CHECK:         llvm.call @kvcache_check(%[[FORMAT]], %[[VALUE64]], %[[BOUND64]])
// CHECK-NEXT:    return
func.func @check_calls_the_runtime(%value: index, %bound: index) {
  kvcache.check %value below %bound, "page id" loc("pages.mlir":12:5)
  return
}

// CHECK-LABEL: func.func @position_of_wrapped_locations(
// CHECK:         llvm.mlir.addressof @[[FUSED]]
// CHECK:         llvm.mlir.addressof @[[CALLEE]]
// CHECK:         llvm.mlir.addressof @[[NOWHERE]]
func.func @position_of_wrapped_locations(%head: index, %token: index, %layer: index, %bound: index) {
  kvcache.check %head below %bound, "head" loc(fused["fused.mlir":3:4, "other.mlir":9:9])
  kvcache.check %token below %bound, "token" loc(callsite("name"("callee.mlir":5:6) at "caller.mlir":7:8))
  kvcache.check %layer below %bound, "layer" loc(unknown)
  return
}

// CHECK-LABEL: func.func @percent_signs_are_escaped(
// CHECK:         llvm.mlir.addressof @[[PERCENT]]
func.func @percent_signs_are_escaped(%value: index, %bound: index) {
  kvcache.check %value below %bound, "50% \"full\"" loc("100%.mlir":1:2)
  return
}

// One message is one string.

// CHECK-LABEL: func.func @messages_are_shared(
// CHECK:         llvm.mlir.addressof @[[PAGE]] : !llvm.ptr
func.func @messages_are_shared(%value: index, %bound: index) {
  kvcache.check %value below %bound, "page id" loc("pages.mlir":12:5)
  return
}

// CHECK-LABEL: func.func @assert_calls_the_runtime(
// CHECK-SAME:      %[[CONDITION:.*]]: i1)
// CHECK:         %[[ONE:.*]] = arith.constant 1 : i64
// CHECK:         %[[HOLDS:.*]] = arith.extui %[[CONDITION]] : i1 to i64
// CHECK:         %[[FAILS:.*]] = arith.subi %[[ONE]], %[[HOLDS]] : i64
// CHECK:         %[[FORMAT:.*]] = llvm.mlir.addressof @[[ASSERT]]
// CHECK:         llvm.call @kvcache_check(%[[FORMAT]], %[[FAILS]], %[[ONE]])
func.func @assert_calls_the_runtime(%condition: i1) {
  cf.assert %condition, "at least 100%" loc("assert.mlir":7:8)
  return
}

// CHECK-LABEL: func.func @checks_in_loops_and_branches(
// CHECK:         scf.for
// CHECK:           llvm.call @kvcache_check
// CHECK:         cf.br
// CHECK:         llvm.call @kvcache_check
func.func @checks_in_loops_and_branches(%value: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    kvcache.check %i below %value, "token"
  }
  cf.br ^next
^next:
  kvcache.check %value below %n, "token"
  return
}

// After a check that passed, an equal one passes as well.

// CHECK-LABEL: func.func @repeated_checks(
// CHECK:         scf.if
// CHECK:           llvm.call @kvcache_check
// CHECK-NEXT:    }
// CHECK:         llvm.call @kvcache_check
// CHECK-NOT:     llvm.call
// CHECK:         return
func.func @repeated_checks(%value: index, %bound: index, %condition: i1) {
  scf.if %condition {
    kvcache.check %value below %bound, "token"
  }
  kvcache.check %value below %bound, "token"
  kvcache.check %value below %bound, "page id"
  scf.if %condition {
    kvcache.check %value below %bound, "token"
  }
  return
}

// CHECK-LABEL: llvm.func internal @kvcache_check(
// CHECK-SAME:      %[[FORMAT:.*]]: !llvm.ptr, %[[VALUE:.*]]: i64, %[[BOUND:.*]]: i64)
// CHECK:         %[[HOLDS:.*]] = llvm.icmp "ult" %[[VALUE]], %[[BOUND]] : i64
// CHECK:         llvm.cond_br %[[HOLDS]], ^[[PASSED:.*]], ^[[FAILED:.*]]
// CHECK:       ^[[FAILED]]:
// CHECK:         llvm.call @kvcacheCheckFailed(%[[FORMAT]], %[[VALUE]], %[[BOUND]])
// CHECK-NEXT:    llvm.unreachable
// CHECK:       ^[[PASSED]]:
// CHECK-NEXT:    llvm.return
