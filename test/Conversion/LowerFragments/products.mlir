// RUN: kvcache-opt %s --kvcache-lower-fragments --canonicalize --cse | FileCheck %s

!tile = !kvcache.tile<64x64xbf16, swizzle_128b>
!q = !kvcache.fragment<16x32xbf16, mma_a16>
!s = !kvcache.fragment<16x16xf32, mma_acc>
!fly = !kvcache.in_flight<16x16xf32, mma_acc>
!p = !kvcache.fragment<64x32xbf16, wgmma_a16>
!acc = !kvcache.fragment<64x16xf32, wgmma_acc>
!wfly = !kvcache.in_flight<64x16xf32, wgmma_acc>
!fp8 = !kvcache.tile<64x64xf8E4M3FN, swizzle_64b>
!p8 = !kvcache.fragment<64x32xf8E4M3FN, wgmma_a8>

gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  func.func private @use(!s)
  func.func private @use_group(!acc)
  func.func private @use_pairs(!kvcache.fragment<16x16xf16, mma_a16_pairs>)
  func.func private @use_bytes(!kvcache.fragment<16x48xf32, mma_acc_pairs>)

  // 16 x 16 elements of B at a time, for two products of 8 columns.
  // CHECK-LABEL: gpu.func @sync(
  // CHECK-COUNT-2: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>, num = 4 : i32
  // CHECK:         nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>, num = 4 : i32
  // CHECK-COUNT-2: nvvm.mma.sync {{.*}}shape = #nvvm.shape<m = 16, n = 8, k = 16>
  // CHECK:         nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>, num = 4 : i32
  // CHECK-COUNT-2: nvvm.mma.sync
  // Columns of a tile are rows of B.
  // CHECK:         nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<col>, num = 4 : i32
  // CHECK-COUNT-2: nvvm.mma.sync
  // CHECK-NOT:     kvcache.mma
  gpu.func @sync() kernel {
    %c0 = arith.constant 0 : index
    %tile = kvcache.alloc_tile : !tile
    %q = kvcache.fragment_load %tile[%c0, %c0] : !tile -> !q
    %first = kvcache.fragment_mma %q, %tile[%c0, %c0] : !q, !tile -> !fly
    %s = kvcache.fragment_wait %first : !fly
    %second = kvcache.fragment_mma %q, %tile[%c0, %c0] add %s {major_b = #kvcache.major<mn_major>} : !q, !tile, !s -> !fly
    %o = kvcache.fragment_wait %second : !fly
    func.call @use(%o) : (!s) -> ()
    gpu.return
  }

  // Four bytes of a lane become two words of A, and 16 bytes of a row are two
  // matrices. Of values, even and odd elements have products of their own.
  // CHECK-LABEL: gpu.func @stored_bytes(
  // CHECK-COUNT-12: kvcache.tile_load {{.*}} -> vector<2xf16>
  // CHECK:         nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>, num = 4 : i32
  // CHECK:         arith.extf %{{.*}} : vector<4xf8E4M3FN> to vector<4xf16>
  // CHECK:         nvvm.mma.sync {{.*}}shape = #nvvm.shape<m = 16, n = 8, k = 16>
  // CHECK-COUNT-3: nvvm.mma.sync
  // CHECK:         nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>, num = 2 : i32
  // CHECK-COUNT-2: nvvm.mma.sync
  // CHECK-NOT:     nvvm.mma.sync
  // CHECK:         nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<col>, num = 4 : i32
  // CHECK:         nvvm.prmt
  // CHECK-COUNT-4: nvvm.mma.sync
  // CHECK:         nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<col>, num = 2 : i32
  // CHECK-COUNT-2: nvvm.mma.sync
  gpu.func @stored_bytes() kernel {
    %c0 = arith.constant 0 : index
    %tile = kvcache.alloc_tile : !kvcache.tile<16x48xf16>
    %bytes = kvcache.alloc_tile : !kvcache.tile<16x48xf8E4M3FN>
    %q = kvcache.fragment_load %tile[%c0, %c0] : !kvcache.tile<16x48xf16> -> !kvcache.fragment<16x48xf16, mma_a16_pairs>
    %qk = kvcache.fragment_mma %q, %bytes[%c0, %c0]
      : !kvcache.fragment<16x48xf16, mma_a16_pairs>, !kvcache.tile<16x48xf8E4M3FN> -> !fly
    %s = kvcache.fragment_wait %qk : !fly
    %p = kvcache.to_operand %s : !s -> !kvcache.fragment<16x16xf16, mma_a16>
    %pv = kvcache.fragment_mma %p, %bytes[%c0, %c0] {major_b = #kvcache.major<mn_major>}
      : !kvcache.fragment<16x16xf16, mma_a16>, !kvcache.tile<16x48xf8E4M3FN> -> !kvcache.in_flight<16x48xf32, mma_acc_pairs>
    %o = kvcache.fragment_wait %pv : !kvcache.in_flight<16x48xf32, mma_acc_pairs>
    func.call @use_bytes(%o) : (!kvcache.fragment<16x48xf32, mma_acc_pairs>) -> ()
    gpu.return
  }

  // Keys of 8 bits are a left operand: a lane's word of 16 columns becomes two
  // of f16. Queries have the columns of each 16 in the same order.
  // CHECK-LABEL: gpu.func @stored_rows(
  // CHECK:         nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>, num = 4 : i32
  // CHECK-COUNT-4: arith.extf %{{.*}} : vector<4xf8E4M3FN> to vector<4xf16>
  // CHECK:         nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>, num = 2 : i32
  // CHECK-COUNT-2: arith.extf %{{.*}} : vector<4xf8E4M3FN> to vector<4xf16>
  // CHECK-COUNT-3: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>, num = 4 : i32
  // CHECK-NOT:     nvvm.ldmatrix
  // CHECK:         gpu.return
  gpu.func @stored_rows() kernel {
    %c0 = arith.constant 0 : index
    %keys = kvcache.alloc_tile : !kvcache.tile<16x48xf8E4M3FN>
    %queries = kvcache.alloc_tile : !kvcache.tile<16x48xf16>
    %k = kvcache.fragment_load %keys[%c0, %c0] : !kvcache.tile<16x48xf8E4M3FN> -> !kvcache.fragment<16x48xf16, mma_a16_pairs>
    %started = kvcache.fragment_mma %k, %queries[%c0, %c0] {paired}
      : !kvcache.fragment<16x48xf16, mma_a16_pairs>, !kvcache.tile<16x48xf16> -> !fly
    %s = kvcache.fragment_wait %started : !fly
    func.call @use(%s) : (!s) -> ()
    gpu.return
  }

  // A thread loads a number of a column once for both of its rows. Columns in
  // pairs take one ldmatrix.
  // CHECK-LABEL: gpu.func @loads(
  // CHECK-COUNT-2: kvcache.tile_load {{.*}} -> vector<2xf32>
  // CHECK-NOT:     kvcache.tile_load
  // CHECK:         nvvm.ldmatrix {{.*}} num = 4 : i32
  // CHECK-NOT:     kvcache.tile_load
  // CHECK:         gpu.return
  gpu.func @loads(%i: index) kernel {
    %c0 = arith.constant 0 : index
    %scales = kvcache.alloc_tile : !kvcache.tile<3x16xf32>
    %rows = kvcache.alloc_tile : !kvcache.tile<16x16xf16>
    %x = kvcache.fragment_load %scales[%i, %c0] {repeated} : !kvcache.tile<3x16xf32> -> !s
    func.call @use(%x) : (!s) -> ()
    %y = kvcache.fragment_load %rows[%c0, %c0] {paired} : !kvcache.tile<16x16xf16> -> !kvcache.fragment<16x16xf16, mma_a16_pairs>
    func.call @use_pairs(%y) : (!kvcache.fragment<16x16xf16, mma_a16_pairs>) -> ()
    gpu.return
  }

  // CHECK-LABEL: gpu.func @wgmma(
  // CHECK:         %[[FIRST:.*]] = kvcache.mma %[[TILE:.*]][%{{.*}}, %{{.*}}], %[[TILE]][%{{.*}}, %{{.*}}] {k = 32 : i64} : !kvcache.tile<64x64xbf16, swizzle_128b>, !kvcache.tile<64x64xbf16, swizzle_128b> -> vector<8xf32>
  // CHECK:         %[[NEXT:.*]] = kvcache.mma %{{.*}} add %[[FIRST]]
  // CHECK:         %[[DONE:.*]] = kvcache.mma_wait %[[NEXT]] pending 1 : vector<8xf32>
  // CHECK:         %[[LEFT:.*]] = vector.bitcast %{{.*}} : vector<8xi32> to vector<16xbf16>
  // CHECK:         kvcache.mma %[[LEFT]], %{{.*}} add %[[DONE]] {major_b = #kvcache.major<mn_major>} : vector<16xbf16>, !kvcache.tile<64x64xbf16, swizzle_128b> -> vector<8xf32>
  gpu.func @wgmma(%word: bf16) kernel {
    %c0 = arith.constant 0 : index
    %tile = kvcache.alloc_tile : !tile
    %first = kvcache.fragment_mma %tile[%c0, %c0], %tile[%c0, %c0] {k = 32} : !tile, !tile -> !wfly
    %next = kvcache.fragment_mma %tile[%c0, %c0], %tile[%c0, %c0] add %first {k = 32} : !tile, !tile, !wfly -> !wfly
    %s = kvcache.fragment_wait %next pending 1 : !wfly
    %p = kvcache.fragment_load %tile[%c0, %c0] : !tile -> !p
    %second = kvcache.fragment_mma %p, %tile[%c0, %c0] add %s {major_b = #kvcache.major<mn_major>} : !p, !tile, !acc -> !wfly
    %o = kvcache.fragment_wait %second : !wfly
    func.call @use_group(%o) : (!acc) -> ()
    gpu.return
  }

  // A branch that is never taken.
  // CHECK-LABEL: gpu.func @fence(
  // CHECK-SAME:    %[[A:.*]]: f32)
  // CHECK:         %[[NEGATIVE:.*]] = arith.cmpf olt, %[[A]], %{{.*}} : f32
  // CHECK:         %[[ANY:.*]] = nvvm.vote.sync any %{{.*}}, %[[NEGATIVE]] -> i1
  // CHECK:         scf.if %[[ANY]] {
  // CHECK-NEXT:      kvcache.mma_wait
  // CHECK-NEXT:      llvm.intr.trap
  gpu.func @fence(%a: f32) kernel {
    %sums = kvcache.splat %a : !kvcache.fragment<64xf32, wgmma_acc, partial>
    kvcache.schedule_fence %sums : !kvcache.fragment<64xf32, wgmma_acc, partial>
    gpu.return
  }

  // Four elements of a row at a time.
  // CHECK-LABEL: gpu.func @bytes(
  // CHECK-COUNT-4: kvcache.tile_load {{.*}} -> vector<4xf8E4M3FN>
  // CHECK:         %[[LEFT:.*]] = vector.bitcast %{{.*}} : vector<4xi32> to vector<16xf8E4M3FN>
  // CHECK:         kvcache.mma %[[LEFT]]
  gpu.func @bytes() kernel {
    %c0 = arith.constant 0 : index
    %tile = kvcache.alloc_tile : !fp8
    %p = kvcache.fragment_load %tile[%c0, %c0] : !fp8 -> !p8
    %product = kvcache.fragment_mma %p, %tile[%c0, %c0] : !p8, !fp8 -> !wfly
    %s = kvcache.fragment_wait %product : !wfly
    func.call @use_group(%s) : (!acc) -> ()
    gpu.return
  }
}

!probs = !kvcache.fragment<64x64xbf16, wgmma_a16>

// From sm_90 on, stmatrix stores the words that ldmatrix loads.
gpu.module @stores [#nvvm.target<chip = "sm_90a">] {
  // CHECK-LABEL: func.func @store_matrices(
  // CHECK-COUNT-4: nvvm.stmatrix {{.*}}layout = #nvvm.mma_layout<row>
  // CHECK-NOT:     {{nvvm.stmatrix|kvcache.tile_store}}
  func.func @store_matrices(%p: !probs, %tile: !kvcache.tile<64x64xbf16, swizzle_128b>) {
    %c0 = arith.constant 0 : index
    kvcache.fragment_store %p, %tile[%c0, %c0] : !probs, !kvcache.tile<64x64xbf16, swizzle_128b>
    return
  }
}

gpu.module @stores_before [#nvvm.target<chip = "sm_80">] {
  // CHECK-LABEL: func.func @store_runs(
  // CHECK-NOT:     nvvm.stmatrix
  // CHECK-COUNT-16: kvcache.tile_store
  func.func @store_runs(%p: !probs, %tile: !kvcache.tile<64x64xbf16, swizzle_128b>) {
    %c0 = arith.constant 0 : index
    kvcache.fragment_store %p, %tile[%c0, %c0] : !probs, !kvcache.tile<64x64xbf16, swizzle_128b>
    return
  }
}
