// RUN: kvcache-opt %s --verify-roundtrip | FileCheck %s
// RUN: kvcache-opt %s --emit-bytecode | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --mlir-print-op-generic | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

// CHECK-LABEL: func.func @check(
// CHECK-SAME:    %[[PAGE:[^:]*]]: index, %[[PAGES:[^:]*]]: index)
// CHECK:         kvcache.check %[[PAGE]] below %[[PAGES]], "page id"
// CHECK:         kvcache.check %[[PAGE]] below %[[PAGES]], "{{a \\22quoted\\22\\0Aid}}" {note = "kept"}
// GENERIC:       "kvcache.check"({{.*}}) <{what = "page id"}> : (index, index) -> ()
func.func @check(%page: index, %pages: index) {
  kvcache.check %page below %pages, "page id"
  kvcache.check %page below %pages, "a \"quoted\"\nid" {note = "kept"}
  return
}
