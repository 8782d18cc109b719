// RUN: kvcache-opt %s -o %t.text
// RUN: kvcache-opt %S/checks.mlirbc -o %t.bytecode
// RUN: diff %t.text %t.bytecode

module {
  func.func @check(%arg0: index, %arg1: index) {
    kvcache.check %arg0 below %arg1, "page id"
    kvcache.check %arg0 below %arg1, "a \22quoted\22\0Aid" {note = "kept"}
    return
  }
}

