// RUN: kvcache-opt %s --kvcache-lower-launches | FileCheck %s

// CHECK-DAG: llvm.mlir.global internal constant @[[WHERE:.*]]("{{.*}}descriptors.mlir:[[# @LINE + 38]]:8: descriptor\00")
// CHECK-DAG: llvm.func @kvcacheTensorMapEncode(!llvm.ptr, !llvm.ptr) -> i32

// The offset of a memref is in the address, and that of the op in the map.

// CHECK-LABEL: func.func @encode(
// CHECK-SAME:      %[[BASE:[^:]*]]: memref<?xf8E4M3FN, strided<[1], offset: ?>>, %[[COLUMNS:[^:]*]]: index, %[[ROWS:[^:]*]]: index
// CHECK-SAME:      -> vector<128xi8>
// CHECK-DAG:     %[[SLOT:.*]] = llvm.alloca %{{.*}} x vector<128xi8> {alignment = 64 : i64}
// CHECK-DAG:     %[[MAP:.*]] = llvm.alloca %{{.*}} x !llvm.struct<(ptr, array<5 x i64>, array<5 x i64>, array<5 x i64>, i64, i32, i32, i32, i32)>
// CHECK:         %[[POINTER:.*]] = llvm.inttoptr
// CHECK:         llvm.insertvalue %[[POINTER]], %{{.*}}[0]
// CHECK:         %[[DIM:.*]] = arith.index_cast %[[COLUMNS]] : index to i64
// CHECK:         llvm.insertvalue %[[DIM]], %{{.*}}[1, 0]
// CHECK:         llvm.insertvalue %{{.*}}, %{{.*}}[1, 1]
// CHECK:         %[[ONE:.*]] = llvm.mlir.constant(1 : i64)
// CHECK:         llvm.insertvalue %[[ONE]], %{{.*}}[2, 0]
// CHECK:         llvm.insertvalue %{{.*}}, %{{.*}}[2, 1]
// CHECK:         %[[SIDE:.*]] = llvm.mlir.constant(64 : i64)
// CHECK:         llvm.insertvalue %[[SIDE]], %{{.*}}[3, 0]
// CHECK:         llvm.insertvalue %{{.*}}, %{{.*}}[3, 1]
// CHECK:         %[[OFFSET:.*]] = llvm.mlir.constant(-512 : i64)
// CHECK:         llvm.insertvalue %[[OFFSET]], %{{.*}}[4]
// CHECK:         %[[RANK:.*]] = llvm.mlir.constant(2 : i32)
// CHECK:         llvm.insertvalue %[[RANK]], %{{.*}}[5]
// CHECK:         %[[BYTES:.*]] = llvm.mlir.constant(2 : i32)
// CHECK:         llvm.insertvalue %[[BYTES]], %{{.*}}[6]
// CHECK:         %[[SWIZZLE:.*]] = llvm.mlir.constant(128 : i32)
// CHECK:         llvm.insertvalue %[[SWIZZLE]], %{{.*}}[7]
// CHECK:         %[[PROMOTION:.*]] = llvm.mlir.constant(256 : i32)
// CHECK:         %[[FIELDS:.*]] = llvm.insertvalue %[[PROMOTION]], %{{.*}}[8]
// CHECK:         llvm.store %[[FIELDS]], %[[MAP]]
// CHECK:         llvm.call @kvcacheTensorMapEncode(%[[MAP]], %[[SLOT]])
// CHECK:         scf.if
// CHECK:         %[[DESC:.*]] = llvm.load %[[SLOT]] {alignment = 64 : i64} : !llvm.ptr -> vector<128xi8>
// CHECK:         return %[[DESC]] : vector<128xi8>
!desc = !kvcache.tma_tile<64x8xbf16, swizzle_128b, l2_promotion = 256>
func.func @encode(%base: memref<?xf8E4M3FN, strided<[1], offset: ?>>, %columns: index, %rows: index) -> !desc {
  %d = kvcache.encode_tensor_map %base sizes [%columns, %rows] strides [%columns] {offset = -512}
      : memref<?xf8E4M3FN, strided<[1], offset: ?>> -> !desc
  return %d : !desc
}

// Through everything that carries values.

// CHECK-LABEL: func.func @carry(
// CHECK-NOT:     kvcache
// CHECK:         scf.for {{.*}} -> (vector<128xi8>)
// CHECK-NOT:     kvcache
// CHECK:         arith.select %{{.*}} : vector<128xi8>
// CHECK-NOT:     kvcache
// CHECK:         cf.br ^{{.*}}(%{{.*}} : vector<128xi8>)
// CHECK:       ^{{.*}}(%[[LAST:.*]]: vector<128xi8>):
// CHECK:         call @carry(%{{.*}}, %[[LAST]], %{{.*}}) : (i1, vector<128xi8>, index) -> vector<128xi8>
func.func @carry(%condition: i1, %desc: !desc, %n: index) -> !desc {
  %a = scf.for %i = %n to %n step %n iter_args(%x = %desc) -> (!desc) {
    scf.yield %x : !desc
  }
  %b = arith.select %condition, %a, %desc : !desc
  cf.br ^last(%b : !desc)
^last(%c: !desc):
  %d = call @carry(%condition, %c, %n) : (i1, !desc, index) -> !desc
  return %d : !desc
}
