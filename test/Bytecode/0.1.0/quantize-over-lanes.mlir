// RUN: kvcache-opt %s -o %t.text
// RUN: kvcache-opt %S/quantize-over-lanes.mlirbc -o %t.bytecode
// RUN: diff %t.text %t.bytecode

module {
  func.func @shared_groups_do_not_sink(%arg0: vector<2xf32>, %arg1: i1, %arg2: memref<?xf32>, %arg3: index) {
    %quantized, %scale = kvcache.quantize %arg0 {lanes = 8 : i64} : vector<2xf32> -> vector<2xi8>, f32
    scf.if %arg1 {
      memref.store %scale, %arg2[%arg3] : memref<?xf32>
    }
    return
  }
  func.func @groups_of_one_thread_sink(%arg0: vector<2xf32>, %arg1: i1, %arg2: memref<?xf32>, %arg3: index) {
    %quantized, %scale = kvcache.quantize %arg0 : vector<2xf32> -> vector<2xi8>, f32
    scf.if %arg1 {
      memref.store %scale, %arg2[%arg3] : memref<?xf32>
    }
    return
  }
  func.func @shared_groups_stay_in_loops(%arg0: vector<2xf32>, %arg1: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %arg2 = %c0 to %arg1 step %c1 {
      %quantized, %scale = kvcache.quantize %arg0 {lanes = 32 : i64} : vector<2xf32> -> vector<2xi8>, f32
      %quantized_0, %scale_1 = kvcache.quantize %arg0 {lanes = 32 : i64} : vector<2xf32> -> vector<2xi8>, f32
    }
    return
  }
}

