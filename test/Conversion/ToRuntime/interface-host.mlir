// RUN: kvcache-opt %s --convert-to-llvm --reconcile-unrealized-casts | FileCheck %s

// CHECK-LABEL: llvm.func @check(
// CHECK-SAME:      %[[PAGE:[^,]*]]: i64, %[[PAGES:[^,]*]]: i64)
// CHECK:         %[[HOLDS:.*]] = llvm.icmp "ult" %[[PAGE]], %[[PAGES]]
// CHECK:         llvm.cond_br %[[HOLDS]]
// CHECK:         llvm.call @abort()
func.func @check(%page: index, %pages: index) {
  kvcache.check %page below %pages, "page id"
  return
}
