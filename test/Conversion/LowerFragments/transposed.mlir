// RUN: kvcache-opt %s --kvcache-lower-fragments --canonicalize --cse | FileCheck %s

!s = !kvcache.fragment<16x64xf32, wgmma_acc_t>
!p = !kvcache.fragment<16x64xbf16, wgmma_acc_t>
!o = !kvcache.fragment<16x128xf32, wgmma_acc_t>
!row = !kvcache.fragment<16xf32, wgmma_acc_t>
!fly = !kvcache.in_flight<16x128xf32, wgmma_acc_t>
!weights = !kvcache.tile<64x16xbf16, swizzle_32b>
!values = !kvcache.tile<64x128xbf16, swizzle_128b>
!scratch = !kvcache.tile<4x16xf32>

gpu.module @kernels {
  func.func private @use(!row)

  // A lane has four rows and two columns. Lanes 4, 8 and 16 apart share the rows; the first of them stores the number of
  // its warp, two rows at once, and all combine those of four warps.
  // CHECK-LABEL: func.func @reduce(
  // CHECK-SAME:    %[[E0:[^,]*]]: f32, %[[E1:[^,]*]]: f32, %[[E2:[^,]*]]: f32, %[[E3:[^,]*]]: f32,
  // CHECK-SAME:    %{{[^,]*}}: f32, %{{[^,]*}}: f32, %{{[^,]*}}: f32, %{{[^,]*}}: f32, %[[M0:[^,]*]]: f32, %{{[^,]*}}: f32, %{{[^,]*}}: f32, %{{[^,]*}}: f32, %[[SCRATCH:.*]]: !kvcache.tile<4x16xf32>)
  // CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : index
  // CHECK-DAG:     %[[C2:.*]] = arith.constant 2 : index
  // CHECK-DAG:     %[[C4:.*]] = arith.constant 4 : index
  // CHECK:         %[[PAIR:.*]] = arith.maxnumf %[[E0]], %[[E2]] : f32
  // CHECK:         %[[MAX:.*]] = arith.maxnumf %[[M0]], %[[PAIR]] : f32
  // CHECK:         gpu.shuffle xor %[[MAX]], %c4_i32
  // CHECK:         gpu.shuffle xor %{{.*}}, %c8_i32
  // CHECK:         %[[LAST:.*]], %{{.*}} = gpu.shuffle xor %[[X:.*]], %c16_i32
  // CHECK:         %[[R0:.*]] = arith.maxnumf %[[X]], %[[LAST]] : f32
  // CHECK:         arith.maxnumf %[[E1]], %[[E3]] : f32
  // CHECK:         %[[WARP:.*]] = arith.remui %{{.*}}, %[[C4]] : index
  // CHECK:         %[[IN_ROW:.*]] = arith.remui %[[LANE:.*]], %[[C4]] : index
  // CHECK:         %[[ROW:.*]] = arith.muli %[[IN_ROW]], %[[C2]] : index
  // CHECK:         %[[GROUP:.*]] = arith.divui %[[LANE]], %[[C4]] : index
  // CHECK:         %[[IS_FIRST:.*]] = arith.cmpi eq, %[[GROUP]], %[[C0]] : index
  // CHECK:         scf.if %[[IS_FIRST]] {
  // CHECK:           %[[STORED:.*]] = vector.from_elements %[[R0]], %{{.*}} : vector<2xf32>
  // CHECK:           kvcache.tile_store %[[STORED]], %[[SCRATCH]][%[[WARP]], %[[ROW]]]
  // CHECK:           kvcache.tile_store %{{.*}}, %[[SCRATCH]][%[[WARP]], %{{.*}}]
  // CHECK:         gpu.barrier
  // CHECK-COUNT-8: kvcache.tile_load %[[SCRATCH]]
  func.func @reduce(%s: !s, %init: !row, %scratch: !scratch) -> !row {
    %max = kvcache.reduce maxnumf %s from %init across %scratch : !s, !scratch -> !row
    return %max : !row
  }

  // A barrier, or another tile, is between two stores into a tile.
  // CHECK-LABEL: func.func @reduce_in_turns(
  // CHECK-COUNT-5: gpu.barrier
  // CHECK-NOT:     gpu.barrier
  func.func @reduce_in_turns(%s: !s, %first: !row, %n: index, %one: !scratch, %two: !scratch) -> (!row, !row, !row) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %max = kvcache.reduce maxnumf %s across %one : !s, !scratch -> !row
    gpu.barrier
    %min = kvcache.reduce minnumf %s across %one : !s, !scratch -> !row
    %all = scf.for %i = %c0 to %n step %c1 iter_args(%row = %first) -> (!row) {
      %next = kvcache.reduce maxnumf %s from %row across %two : !s, !scratch -> !row
      %last = kvcache.reduce maxnumf %s from %next across %one : !s, !scratch -> !row
      scf.yield %last : !row
    }
    return %max, %min, %all : !row, !row, !row
  }

  // An instruction for each 64 columns has B as its left operand. All are one group.
  // CHECK-LABEL: func.func @products(
  // CHECK-SAME:    %[[P:[^:]*]]: !kvcache.tile<64x16xbf16, swizzle_32b>, %[[V:[^:]*]]: !kvcache.tile<64x128xbf16, swizzle_128b>
  // CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : index
  // CHECK-DAG:     %[[C64:.*]] = arith.constant 64 : index
  // CHECK:         %[[LOW:.*]] = kvcache.mma %[[V]][%[[C0]], %[[C0]]], %[[P]][%[[C0]], %[[C0]]] add %{{.*}} {grouped, k = 64 : i64, major_a = #kvcache.major<mn_major>, major_b = #kvcache.major<mn_major>} : {{.*}} -> vector<8xf32>
  // CHECK:         %[[HIGH:.*]] = kvcache.mma %[[V]][%[[C0]], %[[C64]]], %[[P]][%[[C0]], %[[C0]]] add %{{.*}} {k = 64
  // CHECK:         kvcache.mma_wait %[[LOW]], %[[HIGH]] : vector<8xf32>, vector<8xf32>
  func.func @products(%p: !weights, %v: !values, %o: !o) -> !o {
    %c0 = arith.constant 0 : index
    %started = kvcache.fragment_mma %p[%c0, %c0], %v[%c0, %c0] add %o
        {k = 64, major_a = #kvcache.major<mn_major>, major_b = #kvcache.major<mn_major>} : !weights, !values, !o -> !fly
    %sums = kvcache.fragment_wait %started : !fly
    return %sums : !o
  }

  // Two rows of a column are beside each other.
  // CHECK-LABEL: func.func @store(
  // CHECK-SAME:    %[[E0:[^,]*]]: bf16, %[[E1:[^,]*]]: bf16
  // CHECK:         %[[PAIR:.*]] = vector.from_elements %[[E0]], %[[E1]] : vector<2xbf16>
  // CHECK:         kvcache.tile_store %[[PAIR]]
  // CHECK-COUNT-3: kvcache.tile_store
  func.func @store(%p: !p, %tile: !weights) {
    %c0 = arith.constant 0 : index
    kvcache.fragment_store %p, %tile[%c0, %c0] transposed : !p, !weights
    return
  }

  // Places of an op with a thread are those of this thread. Others are of the thread's own number.
  // CHECK-LABEL: gpu.func @opaque(
  // CHECK:         %[[OWN:.*]] = arith.remui %{{.*}}, %c32
  // CHECK:         scf.for
  // CHECK:           %[[SHUFFLED:.*]] = nvvm.shfl.sync bfly %c-1_i32, %{{.*}}, %c0_i32, %c31_i32 : i32 -> i32
  // CHECK:           %[[THREAD:.*]] = arith.index_castui %[[SHUFFLED]] : i32 to index
  // CHECK:           arith.remui %[[THREAD]], %c32
  // CHECK-NOT:       %[[OWN]]
  // CHECK:         gpu.return
  gpu.func @opaque(%x: f32, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zeros = kvcache.splat %x : !row
    %first = kvcache.map %zeros at(%c0) : !row -> !row {
    ^bb0(%e: f32, %row: index):
      %i = arith.index_cast %row : index to i32
      %y = arith.sitofp %i : i32 to f32
      kvcache.yield %y : f32
    }
    func.call @use(%first) : (!row) -> ()
    scf.for %j = %c0 to %n step %c1 {
      %thread = kvcache.opaque_thread : index
      %is_first = arith.cmpi eq, %thread, %c0 : index
      scf.if %is_first {
        %places = kvcache.map %zeros at(%c0) thread %thread : !row -> !row {
        ^bb0(%e: f32, %row: index):
          %i = arith.index_cast %row : index to i32
          %y = arith.sitofp %i : i32 to f32
          kvcache.yield %y : f32
        }
        func.call @use(%places) : (!row) -> ()
      }
    }
    gpu.return
  }

  // Each copy stays: they are equal for no pass.
  // CHECK-LABEL: gpu.func @copies(
  // CHECK:         %[[FIRST:.*]] = nvvm.shfl.sync bfly
  // CHECK-NEXT:    arith.index_castui %[[FIRST]]
  // CHECK-NEXT:    %[[SECOND:.*]] = nvvm.shfl.sync bfly
  // CHECK-NEXT:    arith.index_castui %[[SECOND]]
  gpu.func @copies(%out: memref<2xindex>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %first = kvcache.opaque_thread : index
    %second = kvcache.opaque_thread : index
    memref.store %first, %out[%c0] : memref<2xindex>
    memref.store %second, %out[%c1] : memref<2xindex>
    gpu.return
  }
}
