// RUN: kvcache-opt %s --convert-kvcache-checks | FileCheck %s --implicit-check-not=kvcache.check --implicit-check-not=kvcacheCheckFailed

// On a GPU the values are printed, because an assertion's text is static; the
// assertion has a plain location, because others print as unknown.

// CHECK-LABEL: gpu.func @check_prints_and_asserts(
// CHECK-SAME:      %[[VALUE:.*]]: index, %[[BOUND:.*]]: index)
// CHECK:         %[[HOLDS:.*]] = arith.cmpi ult, %[[VALUE]], %[[BOUND]] : index
// CHECK:         %[[FAILS:.*]] = arith.xori %[[HOLDS]], %{{.*}} : i1
// CHECK:         scf.if %[[FAILS]] {
// CHECK-DAG:       %[[VALUE64:.*]] = arith.index_cast %[[VALUE]] : index to i64
// CHECK-DAG:       %[[BOUND64:.*]] = arith.index_cast %[[BOUND]] : index to i64
// CHECK:           gpu.printf "pages.mlir:12:5: error: page id is out of range: %lld is not in [0, %lld)\0A", %[[VALUE64]], %[[BOUND64]] : i64, i64
// CHECK-NEXT:    }
// CHECK-NEXT:    cf.assert %[[HOLDS]], "page id is out of range"
// CHECK-NEXT:    gpu.return
gpu.module @kernels {
  gpu.func @check_prints_and_asserts(%value: index, %bound: index) kernel {
    kvcache.check %value below %bound, "page id" loc("pages.mlir":12:5)
    gpu.return
  }

  // CHECK-LABEL: func.func @check_in_a_device_function(
  // CHECK:         gpu.printf
  // CHECK:         cf.assert
  func.func @check_in_a_device_function(%value: index, %bound: index) {
    kvcache.check %value below %bound, "page id"
    return
  }

  // An assertion of the author's own stays as it is.

  // CHECK-LABEL: gpu.func @assert_stays(
  // CHECK-SAME:      %[[CONDITION:.*]]: i1)
  // CHECK-NEXT:    cf.assert %[[CONDITION]], "100%"
  // CHECK-NEXT:    gpu.return
  gpu.func @assert_stays(%condition: i1) kernel {
    cf.assert %condition, "100%"
    gpu.return
  }
}

// CHECK-LABEL: func.func @check_in_a_launch(
// CHECK:         gpu.launch
// CHECK:           gpu.printf
// CHECK:           cf.assert
func.func @check_in_a_launch(%value: index, %bound: index) {
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %value, %gy = %value, %gz = %value)
             threads(%tx, %ty, %tz) in (%sx = %value, %sy = %value, %sz = %value) {
    kvcache.check %value below %bound, "page id"
    gpu.terminator
  }
  return
}
