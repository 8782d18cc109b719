// RUN: kvcache-opt %s --kvcache-bounds-checks --kvcache-to-cpu -o %t.mlir
// DEFINE: %{run} = mlir-runner %t.mlir -entry-point-result=void -shared-libs=%mlir_lib_dir/libmlir_c_runner_utils.so,%kvcache_runtime

// A check that fails prints where, what and how far, and exits with status 1.

// RUN: %{run} -e holds | FileCheck %s --check-prefix=HOLDS
// RUN: not %{run} -e sequence 2>&1 | FileCheck %s --check-prefixes=FAILS,SEQUENCE -DSOURCE=%s
// RUN: not %{run} -e head 2>&1 | FileCheck %s --check-prefixes=FAILS,HEAD -DSOURCE=%s
// RUN: not %{run} -e token 2>&1 | FileCheck %s --check-prefixes=FAILS,TOKEN -DSOURCE=%s
// RUN: not %{run} -e page 2>&1 | FileCheck %s --check-prefixes=FAILS,PAGE -DSOURCE=%s
// RUN: not %{run} -e element 2>&1 | FileCheck %s --check-prefixes=FAILS,ELEMENT -DSOURCE=%s
// RUN: not %{run} -e width 2>&1 | FileCheck %s --check-prefixes=FAILS,WIDTH -DSOURCE=%s
// RUN: not %{run} -e negative 2>&1 | FileCheck %s --check-prefixes=FAILS,NEGATIVE -DSOURCE=%s
// RUN: %python %S/Inputs/expect_status.py 1 %{run} -e page

// FAILS-NOT: )
// HOLDS:     ( {{.*}} )
// SEQUENCE: [[SOURCE]]:[[# @LINE + 26]]:8: error: 'kvcache.load' op sequence is out of range: 1 is not in [0, 1)
// HEAD:     [[SOURCE]]:[[# @LINE + 25]]:8: error: 'kvcache.load' op head is out of range: 2 is not in [0, 2)
// TOKEN:    [[SOURCE]]:[[# @LINE + 24]]:8: error: 'kvcache.load' op token is out of range: 8 is not in [0, 8)
// PAGE:     [[SOURCE]]:[[# @LINE + 23]]:8: error: 'kvcache.load' op page id is out of range: 7 is not in [0, 2)
// ELEMENT:  [[SOURCE]]:[[# @LINE + 22]]:8: error: 'kvcache.load' op element is out of range: 4 is not in [0, 3)
// WIDTH:    [[SOURCE]]:[[# @LINE + 21]]:8: error: 'kvcache.load' op element modulo 2, which must be 0, is out of range: 1 is not in [0, 1)
// NEGATIVE: [[SOURCE]]:[[# @LINE + 20]]:8: error: 'kvcache.load' op head is out of range: -1 is not in [0, 2)
// FAILS-NOT: {{.}}

#kv = #kvcache.params<num_heads = 2, head_size = 4>
!collection = !kvcache.paged_collection<f32, #kv, page_size = 4>
!cache = !kvcache.paged<f32, #kv, page_size = 4>

// The table names pages 1 and 7, of which there are two.
memref.global "private" constant @table : memref<1x2xi32> = dense<[[1, 7]]>
memref.global "private" constant @lengths : memref<1xi32> = dense<[8]>

func.func @load(%b: index, %h: index, %t: index, %d: index) {
  %c0 = arith.constant 0 : index
  %max = arith.constant 8 : i32
  %blocks = memref.alloc() {alignment = 64} : memref<2x2x1x4x2x4xf32>
  %lut = memref.get_global @table : memref<1x2xi32>
  %lengths = memref.get_global @lengths : memref<1xi32>
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
      : memref<2x2x1x4x2x4xf32>, memref<1xi32>, memref<1x2xi32> -> !collection
  %k = kvcache.paged_view key %c[%c0] : !collection
  %v = kvcache.load %k[%b, %h, %t, %d] : !cache -> vector<2xf32>
  vector.print %v : vector<2xf32>
  memref.dealloc %blocks : memref<2x2x1x4x2x4xf32>
  return
}

func.func @holds() {
  %b = arith.constant 0 : index
  %h = arith.constant 1 : index
  %t = arith.constant 3 : index
  %d = arith.constant 2 : index
  func.call @load(%b, %h, %t, %d) : (index, index, index, index) -> ()
  return
}

func.func @sequence() {
  %b = arith.constant 1 : index
  %h = arith.constant 0 : index
  %t = arith.constant 0 : index
  %d = arith.constant 0 : index
  func.call @load(%b, %h, %t, %d) : (index, index, index, index) -> ()
  return
}

func.func @head() {
  %b = arith.constant 0 : index
  %h = arith.constant 2 : index
  %t = arith.constant 0 : index
  %d = arith.constant 0 : index
  func.call @load(%b, %h, %t, %d) : (index, index, index, index) -> ()
  return
}

func.func @token() {
  %b = arith.constant 0 : index
  %h = arith.constant 0 : index
  %t = arith.constant 8 : index
  %d = arith.constant 0 : index
  func.call @load(%b, %h, %t, %d) : (index, index, index, index) -> ()
  return
}

func.func @page() {
  %b = arith.constant 0 : index
  %h = arith.constant 0 : index
  %t = arith.constant 5 : index
  %d = arith.constant 0 : index
  func.call @load(%b, %h, %t, %d) : (index, index, index, index) -> ()
  return
}

func.func @element() {
  %b = arith.constant 0 : index
  %h = arith.constant 0 : index
  %t = arith.constant 0 : index
  %d = arith.constant 4 : index
  func.call @load(%b, %h, %t, %d) : (index, index, index, index) -> ()
  return
}

func.func @width() {
  %b = arith.constant 0 : index
  %h = arith.constant 0 : index
  %t = arith.constant 0 : index
  %d = arith.constant 1 : index
  func.call @load(%b, %h, %t, %d) : (index, index, index, index) -> ()
  return
}

func.func @negative() {
  %b = arith.constant 0 : index
  %h = arith.constant -1 : index
  %t = arith.constant 0 : index
  %d = arith.constant 0 : index
  func.call @load(%b, %h, %t, %d) : (index, index, index, index) -> ()
  return
}
