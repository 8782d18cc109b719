// RUN: kvcache-opt %s --kvcache-lower-fragments --canonicalize --cse | FileCheck %s

!s = !kvcache.fragment<16x8xf32, mma_acc>
!wide = !kvcache.fragment<16x16xf32, mma_acc>
!p = !kvcache.fragment<16x16xbf16, mma_a16>
!row = !kvcache.fragment<16xf32, mma_acc>
!share = !kvcache.fragment<16xf32, mma_acc, partial>
!group = !kvcache.fragment<64x8xi32, wgmma_acc>

gpu.module @kernels {
  func.func private @use(!s, !row)
  func.func private @use_group(!group)

  // A lane has two rows, 8 apart, and two columns of each 8. What depends on the row alone is there twice.
  // CHECK-LABEL: gpu.func @map(
  // CHECK-SAME:    %[[FIRST:.*]]: index, %[[KEY:.*]]: index, %[[BIASES:.*]]: memref<?xf32>, %[[X:.*]]: f32)
  // CHECK-DAG:     %[[C1:.*]] = arith.constant 1 : index
  // CHECK-DAG:     %[[C2:.*]] = arith.constant 2 : index
  // CHECK-DAG:     %[[C4:.*]] = arith.constant 4 : index
  // CHECK-DAG:     %[[C8:.*]] = arith.constant 8 : index
  // CHECK-DAG:     %[[C32:.*]] = arith.constant 32 : index
  // CHECK:         %[[LANE:.*]] = arith.remui %{{.*}}, %[[C32]] : index
  // CHECK:         %[[IN_WARP:.*]] = arith.divui %[[LANE]], %[[C4]] : index
  // CHECK:         %[[IN_ROW:.*]] = arith.remui %[[LANE]], %[[C4]] : index
  // CHECK:         %[[TIMES:.*]] = arith.muli %[[IN_ROW]], %[[C2]] : index
  // CHECK:         %[[ROW:.*]] = arith.addi %[[FIRST]], %[[IN_WARP]] : index
  // CHECK:         %[[COLUMN:.*]] = arith.addi %[[KEY]], %[[TIMES]] : index
  // CHECK:         %[[SLOPE:.*]] = arith.index_cast %[[ROW]] : index to i32
  // CHECK:         %[[ROW_FLOAT:.*]] = arith.sitofp %[[SLOPE]] : i32 to f32
  // CHECK:         %[[BIAS:.*]] = memref.load %[[BIASES]][%[[COLUMN]]] : memref<?xf32>
  // CHECK:         %[[E0:.*]] = math.fma %[[X]], %[[ROW_FLOAT]], %[[BIAS]] : f32
  // CHECK:         %[[NEXT:.*]] = arith.addi %[[COLUMN]], %[[C1]] : index
  // CHECK:         %[[NEXT_BIAS:.*]] = memref.load %[[BIASES]][%[[NEXT]]] : memref<?xf32>
  // CHECK:         %[[E1:.*]] = math.fma %[[X]], %[[ROW_FLOAT]], %[[NEXT_BIAS]] : f32
  // CHECK:         %[[BELOW:.*]] = arith.addi %[[ROW]], %[[C8]] : index
  // CHECK:         %[[LOW_FLOAT:.*]] = arith.sitofp
  // CHECK:         %[[E2:.*]] = math.fma %[[X]], %[[LOW_FLOAT]], %[[BIAS]] : f32
  // CHECK:         %[[E3:.*]] = math.fma %[[X]], %[[LOW_FLOAT]], %[[NEXT_BIAS]] : f32
  // CHECK-NOT:     memref.load
  // CHECK:         call @use(%[[E0]], %[[E1]], %[[E2]], %[[E3]], %[[X]], %[[X]])
  gpu.func @map(%first: index, %key: index, %biases: memref<?xf32>, %x: f32) kernel {
    %s = kvcache.splat %x : !s
    %r = kvcache.splat %x : !row
    %y = kvcache.map %s at(%first, %key) : !s -> !s {
    ^bb0(%e: f32, %row: index, %column: index):
      %number = arith.index_cast %row : index to i32
      %slope = arith.sitofp %number : i32 to f32
      %bias = memref.load %biases[%column] : memref<?xf32>
      %z = math.fma %e, %slope, %bias : f32
      kvcache.yield %z : f32
    }
    func.call @use(%y, %r) : (!s, !row) -> ()
    gpu.return
  }

  // The first column of a lane is subtracted once for each row, and the distances of others are constants.
  // CHECK-LABEL: gpu.func @lane_columns(
  // CHECK-SAME:    %[[END:.*]]: index, %[[X:.*]]: f32, %[[LOW:.*]]: f32)
  // CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : index
  // CHECK-DAG:     %[[C1:.*]] = arith.constant 1 : index
  // CHECK-DAG:     %[[C2:.*]] = arith.constant 2 : index
  // CHECK:         %[[COLUMN:.*]] = arith.muli %{{.*}}, %[[C2]] : index
  // CHECK:         %[[BOUND:.*]] = arith.subi %[[END]], %[[COLUMN]] : index
  // CHECK:         %[[SEES0:.*]] = arith.cmpi sgt, %[[BOUND]], %[[C0]] : index
  // CHECK:         %[[E0:.*]] = arith.select %[[SEES0]], %[[X]], %[[LOW]] : f32
  // CHECK:         %[[SEES1:.*]] = arith.cmpi sgt, %[[BOUND]], %[[C1]] : index
  // CHECK:         %[[E1:.*]] = arith.select %[[SEES1]], %[[X]], %[[LOW]] : f32
  // CHECK-NOT:     arith
  // CHECK:         call @use(%[[E0]], %[[E1]], %[[E0]], %[[E1]], %[[X]], %[[X]])
  gpu.func @lane_columns(%end: index, %x: f32, %low: f32) kernel {
    %c0 = arith.constant 0 : index
    %s = kvcache.splat %x : !s
    %r = kvcache.splat %x : !row
    %y = kvcache.map %s at(%c0, %c0) {lane_columns} : !s -> !s {
    ^bb0(%e: f32, %row: index, %column: index, %distance: index):
      %bound = arith.subi %end, %column : index
      %sees = arith.cmpi slt, %distance, %bound : index
      %seen = arith.select %sees, %e, %low : f32
      kvcache.yield %seen : f32
    }
    func.call @use(%y, %r) : (!s, !row) -> ()
    gpu.return
  }

  // The larger of two elements at a time; lanes 1 and 2 apart share a row.
  // CHECK-LABEL: func.func @reduce(
  // CHECK-SAME:    %[[E0:[^,]*]]: f32, %[[E1:[^,]*]]: f32, %{{[^,]*}}: f32, %{{[^,]*}}: f32, %[[INIT:[^,]*]]: f32, %{{[^,]*}}: f32, %[[SHARE:[^,]*]]: f32, %{{[^,]*}}: f32)
  // CHECK-DAG:     %[[ONE:.*]] = arith.constant 1 : i32
  // CHECK-DAG:     %[[TWO:.*]] = arith.constant 2 : i32
  // CHECK-DAG:     %[[WIDTH:.*]] = arith.constant 32 : i32
  // CHECK:         %[[PAIR:.*]] = arith.maxnumf %[[E0]], %[[E1]] : f32
  // CHECK:         %[[MAX:.*]] = arith.maxnumf %[[INIT]], %[[PAIR]] : f32
  // CHECK:         %[[OTHER:.*]], %{{.*}} = gpu.shuffle xor %[[MAX]], %[[ONE]], %[[WIDTH]] : f32
  // CHECK:         %[[OF_TWO:.*]] = arith.maxnumf %[[MAX]], %[[OTHER]] : f32
  // CHECK:         %[[LAST:.*]], %{{.*}} = gpu.shuffle xor %[[OF_TWO]], %[[TWO]], %[[WIDTH]] : f32
  // CHECK:         arith.maxnumf %[[OF_TWO]], %[[LAST]] : f32
  // Sums go from left to right, and a share needs no other lane.
  // CHECK:         %[[SUM:.*]] = arith.addf %[[SHARE]], %[[E0]] : f32
  // CHECK-NOT:     gpu.shuffle
  // CHECK:         %[[NEXT:.*]] = arith.addf %[[SUM]], %[[E1]] : f32
  // CHECK:         gpu.shuffle xor %[[NEXT]], %[[ONE]], %[[WIDTH]] : f32
  func.func @reduce(%s: !s, %init: !row, %shares: !share) -> (!row, !row) {
    %max = kvcache.reduce maxnumf %s from %init : !s -> !row
    %added = kvcache.reduce addf %s from %shares : !s -> !share
    %sum = kvcache.reduce addf %added : !share -> !row
    return %max, %sum : !row, !row
  }

  // Two elements of 16 bits to a word.
  // CHECK-LABEL: func.func @operand(
  // CHECK-SAME:    %[[E0:[^,]*]]: f32, %[[E1:[^,]*]]: f32
  // CHECK:         %[[PAIR:.*]] = vector.from_elements %[[E0]], %[[E1]] : vector<2xf32>
  // CHECK:         %[[ROUNDED:.*]] = arith.truncf %[[PAIR]] : vector<2xf32> to vector<2xbf16>
  // CHECK:         %[[WORDS:.*]] = vector.bitcast %[[ROUNDED]] : vector<2xbf16> to vector<1xi32>
  // CHECK:         %[[WORD:.*]] = vector.extract %[[WORDS]][0] : i32 from vector<1xi32>
  // CHECK:         return %[[WORD]], %{{.*}}, %{{.*}}, %{{.*}} : i32, i32, i32, i32
  func.func @operand(%s: !wide) -> !p {
    %p = kvcache.to_operand %s : !wide -> !p
    return %p : !p
  }

  // Warps of a warpgroup have 16 rows each.
  // CHECK-LABEL: gpu.func @group(
  // CHECK-DAG:     %[[C4:.*]] = arith.constant 4 : index
  // CHECK-DAG:     %[[C16:.*]] = arith.constant 16 : index
  // CHECK-DAG:     %[[C32:.*]] = arith.constant 32 : index
  // CHECK:         %[[WARP:.*]] = arith.divui %{{.*}}, %[[C32]] : index
  // CHECK:         %[[IN_GROUP:.*]] = arith.remui %[[WARP]], %[[C4]] : index
  // CHECK:         arith.muli %[[IN_GROUP]], %[[C16]] : index
  gpu.func @group(%x: i32, %first: index, %key: index) kernel {
    %s = kvcache.splat %x : !group
    %y = kvcache.map %s at(%first, %key) : !group -> !group {
    ^bb0(%e: i32, %row: index, %column: index):
      %z = arith.index_cast %row : index to i32
      kvcache.yield %z : i32
    }
    func.call @use_group(%y) : (!group) -> ()
    gpu.return
  }
}
