// RUN: kvcache-opt %s --kvcache-lower-fragments --canonicalize --cse | FileCheck %s

!s = !kvcache.fragment<128x8xf32, tmem_acc>
!p = !kvcache.fragment<64x8xbf16, tmem_acc>
!flags = !kvcache.fragment<128xi1, tmem_acc>

gpu.module @kernels {
  func.func private @use(!s)

  // Two warpgroups share 128 rows: the second one has half 1 of each 32 rows.
  // CHECK-LABEL: gpu.func @load(
  // CHECK-SAME:    %[[TILE:.*]]: !kvcache.tmem_tile<128x64xf32>, %[[COLUMN:.*]]: index)
  // CHECK-DAG:     %[[C4:.*]] = arith.constant 4 : index
  // CHECK-DAG:     %[[C8:.*]] = arith.constant 8 : index
  // CHECK-DAG:     %[[C32:.*]] = arith.constant 32 : index
  // CHECK:         %[[WARP:.*]] = arith.divui %{{.*}}, %[[C32]] : index
  // CHECK:         %[[IN_TEAM:.*]] = arith.remui %[[WARP]], %[[C8]] : index
  // CHECK:         %[[HALF:.*]] = arith.divui %[[IN_TEAM]], %[[C4]] : index
  // CHECK:         %[[V:.*]] = kvcache.tmem_load %[[TILE]][%[[COLUMN]]] half %[[HALF]] : {{.*}} -> vector<4xf32>
  // CHECK:         %[[E:.*]]:4 = vector.to_elements %[[V]]
  // CHECK:         call @use(%[[E]]#0, %[[E]]#1, %[[E]]#2, %[[E]]#3)
  gpu.func @load(%tile: !kvcache.tmem_tile<128x64xf32>, %column: index) {
    %f = kvcache.tmem_load %tile[%column] : !kvcache.tmem_tile<128x64xf32> -> !s
    func.call @use(%f) : (!s) -> ()
    gpu.return
  }

  // CHECK-LABEL: func.func @store(
  // CHECK-SAME:    %[[E0:.*]]: bf16, %[[E1:.*]]: bf16, %[[E2:.*]]: bf16, %[[E3:.*]]: bf16, %[[TILE:.*]]: !kvcache.tmem_tile<64x64xbf16>, %[[COLUMN:.*]]: index)
  // CHECK:         %[[V:.*]] = vector.from_elements %[[E0]], %[[E1]], %[[E2]], %[[E3]] : vector<4xbf16>
  // CHECK:         kvcache.tmem_store %[[V]], %[[TILE]][%[[COLUMN]]] : vector<4xbf16>
  func.func @store(%p: !p, %tile: !kvcache.tmem_tile<64x64xbf16>, %column: index) {
    kvcache.tmem_store %p, %tile[%column] : !p, !kvcache.tmem_tile<64x64xbf16>
    return
  }

  // A lane has two rows.
  // CHECK-LABEL: func.func @any(
  // CHECK-SAME:    %[[F0:.*]]: i1, %[[F1:.*]]: i1)
  // CHECK-DAG:     %[[ALL:.*]] = arith.constant -1 : i32
  // CHECK:         %[[ANY:.*]] = arith.ori %[[F0]], %[[F1]] : i1
  // CHECK:         %[[VOTE:.*]] = nvvm.vote.sync any %[[ALL]], %[[ANY]] -> i1
  // CHECK:         return %[[VOTE]] : i1
  func.func @any(%flags: !flags) -> i1 {
    %any = kvcache.warp_any %flags : !flags
    return %any : i1
  }

  // A warpgroup has all rows.
  // CHECK-LABEL: func.func @row(
  // CHECK:         %[[V:.*]] = kvcache.tmem_load %{{.*}}[%{{.*}}] {whole_rows} : {{.*}} -> vector<8xf32>
  // CHECK:         %[[E:.*]]:8 = vector.to_elements %[[V]]
  // CHECK:         arith.maxnumf %[[E]]#0, %[[E]]#4
  // CHECK:         return %{{.*}} : f32
  func.func @row(%tile: !kvcache.tmem_tile<128x64xf32>, %column: index) -> !kvcache.fragment<128xf32, tmem_row> {
    %f = kvcache.tmem_load %tile[%column] : !kvcache.tmem_tile<128x64xf32> -> !kvcache.fragment<128x8xf32, tmem_row>
    %max = kvcache.reduce maxnumf %f : !kvcache.fragment<128x8xf32, tmem_row> -> !kvcache.fragment<128xf32, tmem_row>
    return %max : !kvcache.fragment<128xf32, tmem_row>
  }
}
