// RUN: kvcache-opt %s --convert-kvcache-to-nvvm --canonicalize --cse | FileCheck %s
// RUN: kvcache-opt %s --convert-kvcache-to-memref --convert-kvcache-to-nvvm --reconcile-unrealized-casts --canonicalize --cse | FileCheck %s --check-prefix=MEMORY
// RUN: kvcache-opt %s --pass-pipeline="builtin.module(convert-kvcache-to-memref,gpu.module(convert-gpu-to-nvvm,reconcile-unrealized-casts))" | FileCheck %s --check-prefix=STOCK
// RUN: not kvcache-opt %s --convert-to-llvm 2>&1 | FileCheck %s --check-prefix=TILES

// TILES:       error: 'kvcache.mma' op has no lowering here
// STOCK-NOT:   kvcache.mma

!q = !kvcache.tile<128x128xbf16, swizzle_128b>
!k = !kvcache.tile<32x128xbf16, swizzle_128b>
!f16 = !kvcache.tile<64x64xf16, swizzle_64b>
!fp8 = !kvcache.tile<64x64xf8E4M3FN, swizzle_32b>
!i8 = !kvcache.tile<64x64xi8, swizzle_64b>

gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  // The descriptor of a K-major matrix with 8 rows of 128 bytes to an atom, 0x4000004000010000 and the address. A step
  // of K is 32 bytes further, and the fifth in the next chunk.
  // CHECK-LABEL:  gpu.func @k_major(
  // CHECK-SAME:     %[[Q:[^ ]*]]: !kvcache.tile<128x128xbf16, swizzle_128b>, %[[K:[^ ]*]]: !kvcache.tile<32x128xbf16, swizzle_128b>)
  // CHECK-DAG:      %[[BITS:.*]] = arith.constant 4611686293305360384 : i64
  // CHECK-DAG:      %[[BITS_1:.*]] = arith.constant 4611686293305360386 : i64
  // CHECK-DAG:      %[[BITS_4:.*]] = arith.constant 4611686293305360640 : i64
  // CHECK-DAG:      %[[BITS_4_Q:.*]] = arith.constant 4611686293305361408 : i64
  // CHECK-DAG:      %[[C8192:.*]] = arith.constant 8192 : index
  // CHECK-DAG:      %[[UNIT:.*]] = arith.constant 4 : i32
  // CHECK-DAG:      %[[Q_MEMORY:.*]] = kvcache.tile_memory %[[Q]]
  // CHECK-DAG:      %[[Q_BYTE:.*]] = memref.extract_aligned_pointer_as_index %[[Q_MEMORY]]
  // CHECK-DAG:      %[[Q_ROW:.*]] = arith.addi %[[Q_BYTE]], %[[C8192]] : index
  // CHECK-DAG:      %[[Q_NUMBER:.*]] = arith.index_cast %[[Q_ROW]] : index to i64
  // CHECK-DAG:      %[[Q_POINTER:.*]] = llvm.inttoptr %[[Q_NUMBER]] : i64 to !llvm.ptr<3>
  // CHECK-DAG:      %[[Q_ADDRESS:.*]] = llvm.ptrtoint %[[Q_POINTER]] : !llvm.ptr<3> to i32
  // CHECK-DAG:      %[[Q_WORD:.*]] = arith.shrui %[[Q_ADDRESS]], %[[UNIT]] : i32
  // CHECK-DAG:      %[[Q_FENCED:.*]] = llvm.inline_asm has_side_effects "", "=r,0" %[[Q_WORD]] : (i32) -> i32
  // CHECK-DAG:      %[[Q_UNITS:.*]] = arith.extui %[[Q_FENCED]] : i32 to i64
  // CHECK-DAG:      %[[A:.*]] = arith.addi %[[Q_UNITS]], %[[BITS]] : i64
  // CHECK-DAG:      %[[A_1:.*]] = arith.addi %[[Q_UNITS]], %[[BITS_1]] : i64
  // CHECK-DAG:      %[[A_4:.*]] = arith.addi %[[Q_UNITS]], %[[BITS_4_Q]] : i64
  // CHECK-DAG:      %[[B:.*]] = arith.addi %[[K_UNITS:.*]], %[[BITS]] : i64
  // CHECK-DAG:      %[[B_1:.*]] = arith.addi %[[K_UNITS]], %[[BITS_1]] : i64
  // CHECK-DAG:      %[[B_4:.*]] = arith.addi %[[K_UNITS]], %[[BITS_4]] : i64
  // CHECK:          nvvm.wgmma.fence.aligned
  // CHECK-NEXT:     %[[D:.*]] = nvvm.wgmma.mma_async %[[A]], %[[B]], %{{.*}}, <m = 64, n = 32, k = 16>, D[<f32>, <zero>], A[<bf16>, <one>, <row>], B[<bf16>, <one>, <col>]
  // CHECK-NEXT:     %[[D_1:.*]] = nvvm.wgmma.mma_async %[[A_1]], %[[B_1]], %[[D]], <m = 64, n = 32, k = 16>, D[<f32>, <one>],
  // CHECK-COUNT-2:  nvvm.wgmma.mma_async
  // CHECK-NEXT:     nvvm.wgmma.mma_async %[[A_4]], %[[B_4]],
  // CHECK-COUNT-3:  nvvm.wgmma.mma_async
  // CHECK-NEXT:     nvvm.wgmma.commit.group.sync.aligned
  // CHECK:          nvvm.wgmma.wait.group.sync.aligned 0
  // CHECK-NEXT:     llvm.inline_asm has_side_effects "", "=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15"
  // MEMORY-LABEL: gpu.func @k_major(
  // MEMORY-SAME:    %[[Q:[^ ]*]]: memref<32768xi8, #gpu.address_space<workgroup>>,
  // MEMORY:         memref.extract_aligned_pointer_as_index %[[Q]]
  gpu.func @k_major(%q: !q, %k: !k) -> vector<16xf32> {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %d = kvcache.mma %q[%c64, %c0], %k[%c0, %c0] : !q, !k -> vector<16xf32>
    %e = kvcache.mma_wait %d : vector<16xf32>
    gpu.return %e : vector<16xf32>
  }

  // Down the rows: 16 of them are a step, and chunks are 4096 bytes apart. The columns of A are a row further.
  // CHECK-LABEL:  gpu.func @mn_major(
  // CHECK-SAME:     %[[ROW:[^ ]*]]: index)
  // CHECK-DAG:      %[[BITS_A:.*]] = arith.constant -9223371899399045120 : i64
  // CHECK-DAG:      %[[BITS_B:.*]] = arith.constant 4611686293322072064 : i64
  // CHECK-DAG:      %[[BITS_B_1:.*]] = arith.constant 4611686293322072192 : i64
  // CHECK-DAG:      %[[SPAN:.*]] = arith.constant 128 : index
  // CHECK-DAG:      %[[BYTES:.*]] = arith.muli %[[ROW]], %[[SPAN]]
  // CHECK-DAG:      %[[BYTE:.*]] = arith.addi %{{.*}}, %[[BYTES]]
  // CHECK-DAG:      %[[NUMBER:.*]] = arith.index_cast %[[BYTE]] : index to i64
  // CHECK-DAG:      %[[POINTER:.*]] = llvm.inttoptr %[[NUMBER]]
  // CHECK-DAG:      %[[ADDRESS:.*]] = llvm.ptrtoint %[[POINTER]]
  // CHECK-DAG:      %[[WORD:.*]] = arith.shrui %[[ADDRESS]],
  // CHECK-DAG:      %[[FENCED:.*]] = llvm.inline_asm has_side_effects "", "=r,0" %[[WORD]]
  // CHECK-DAG:      %[[UNITS:.*]] = arith.extui %[[FENCED]] : i32 to i64
  // CHECK-DAG:      arith.addi %{{.*}}, %[[BITS_A]]
  // CHECK-DAG:      %[[B:.*]] = arith.addi %[[UNITS]], %[[BITS_B]] : i64
  // CHECK-DAG:      %[[B_1:.*]] = arith.addi %[[UNITS]], %[[BITS_B_1]] : i64
  // CHECK:          nvvm.wgmma.fence.aligned
  // CHECK-NEXT:     nvvm.wgmma.mma_async %{{.*}}, %[[B]], %{{.*}}, <m = 64, n = 128, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <col>], B[<f16>, <one>, <row>]
  // CHECK-NEXT:     nvvm.wgmma.mma_async %{{.*}}, %[[B_1]],
  // CHECK-NEXT:     nvvm.wgmma.commit.group.sync.aligned
  gpu.func @mn_major(%q: !f16, %v: !kvcache.tile<32x128xf16, swizzle_128b>, %acc: vector<64xf32>, %row: index) -> vector<64xf32> {
    %c0 = arith.constant 0 : index
    %d = kvcache.mma %q[%c0, %c0], %v[%row, %c0] add %acc
        {k = 32, major_a = #kvcache.major<mn_major>, major_b = #kvcache.major<mn_major>}
        : !f16, !kvcache.tile<32x128xf16, swizzle_128b> -> vector<64xf32>
    gpu.return %d : vector<64xf32>
  }

  // A column that is not a constant may be in any chunk, for each step.
  // CHECK-LABEL:  gpu.func @column(
  // CHECK-SAME:     %[[COLUMN:[^ ]*]]: index)
  // CHECK-DAG:      arith.divui %[[COLUMN]], %c32
  // CHECK-DAG:      %[[NEXT:.*]] = arith.addi %[[COLUMN]], %c32
  // CHECK-DAG:      arith.divui %[[NEXT]], %c32
  // CHECK-COUNT-2:  nvvm.wgmma.mma_async %{{.*}}, <m = 64, n = 8, k = 32>, D[<f32>, <{{.*}}>], A[<e4m3>, <one>, <row>], B[<e4m3>, <one>, <col>]
  gpu.func @column(%k: !fp8, %column: index) -> vector<4xf32> {
    %c0 = arith.constant 0 : index
    %d = kvcache.mma %k[%c0, %c0], %k[%c0, %column] : !fp8, !fp8 -> vector<4xf32>
    gpu.return %d : vector<4xf32>
  }

  // f16 accumulators are two to a register.
  // CHECK-LABEL:  gpu.func @pairs(
  // CHECK-SAME:     %[[C:[^ ]*]]: vector<4xf16>)
  // CHECK:          %[[WORDS:.*]] = vector.bitcast %[[C]] : vector<4xf16> to vector<2xi32>
  // CHECK:          %[[C01:.*]]:2 = vector.to_elements %[[WORDS]]
  // CHECK:          nvvm.wgmma.mma_async {{.*}} D[<f16>, <one>], {{.*}} : !llvm.struct<(i32, i32)> -> !llvm.struct<(i32, i32)>
  // CHECK:          %[[D:.*]] = vector.from_elements
  // CHECK:          vector.bitcast %[[D]] : vector<2xi32> to vector<4xf16>
  gpu.func @pairs(%k: !fp8, %c: vector<4xf16>) -> vector<4xf16> {
    %c0 = arith.constant 0 : index
    %d = kvcache.mma %k[%c0, %c0], %k[%c0, %c0] add %c {k = 32} : !fp8, !fp8 -> vector<4xf16>
    gpu.return %d : vector<4xf16>
  }

  // The NVVM dialect has no op for A in registers.
  // CHECK-LABEL:  gpu.func @fragment(
  // CHECK-SAME:     %[[P:[^ ]*]]: vector<16xbf16>,
  // CHECK:          %[[WORDS:.*]] = vector.bitcast %[[P]] : vector<16xbf16> to vector<8xi32>
  // CHECK:          %[[A:.*]]:8 = vector.to_elements %[[WORDS]]
  // CHECK:          nvvm.wgmma.fence.aligned
  // CHECK-NEXT:     %[[D:.*]] = llvm.inline_asm has_side_effects "{\0A.reg .pred p;\0Asetp.ne.b32 p, 0, 0;\0Awgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {$0, $1, $2, $3}, {$4, $5, $6, $7}, $8, p, 1, 1, 1;\0A}", "=f,=f,=f,=f,r,r,r,r,l,0,1,2,3" %[[A]]#0, %[[A]]#1, %[[A]]#2, %[[A]]#3, %{{.*}} : (i32, i32, i32, i32, i64, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
  // CHECK-COUNT-4:  llvm.extractvalue %[[D]]
  // CHECK-NEXT:     llvm.inline_asm has_side_effects "{\0A.reg .pred p;\0Asetp.ne.b32 p, 1, 0;\0Awgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {$0, $1, $2, $3}, {$4, $5, $6, $7}, $8, p, 1, 1, 1;\0A}", "=f,=f,=f,=f,r,r,r,r,l,0,1,2,3" %[[A]]#4, %[[A]]#5, %[[A]]#6, %[[A]]#7,
  // CHECK:          nvvm.wgmma.commit.group.sync.aligned
  gpu.func @fragment(%p: vector<16xbf16>, %v: !k) -> vector<4xf32> {
    %c0 = arith.constant 0 : index
    %d = kvcache.mma %p, %v[%c0, %c0] {major_b = #kvcache.major<mn_major>} : vector<16xbf16>, !k -> vector<4xf32>
    gpu.return %d : vector<4xf32>
  }

  // Only floats have signs, and only 16 bits a transposed B.
  // CHECK-LABEL:  gpu.func @other_fragments(
  // CHECK:          wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {$0, $1, $2, $3}, {$4, $5, $6, $7}, $8, p;\0A}", "=r,=r,=r,=r,r,r,r,r,l,0,1,2,3"
  // CHECK:          wgmma.mma_async.sync.aligned.m64n8k32.f16.e5m2.e4m3 {$0, $1}, {$2, $3, $4, $5}, $6, p, 1, 1;\0A}", "=r,=r,r,r,r,r,l,0,1"
  gpu.func @other_fragments(%p: vector<16xi8>, %a: !i8, %r: vector<16xf8E5M2>, %b: !fp8) -> (vector<4xi32>, vector<4xf16>) {
    %c0 = arith.constant 0 : index
    %d = kvcache.mma %p, %a[%c0, %c0] : vector<16xi8>, !i8 -> vector<4xi32>
    %e = kvcache.mma %r, %b[%c0, %c0] : vector<16xf8E5M2>, !fp8 -> vector<4xf16>
    gpu.return %d, %e : vector<4xi32>, vector<4xf16>
  }

  // The second product ends the group of both.
  // CHECK-LABEL:  gpu.func @group(
  // CHECK-COUNT-8:  nvvm.wgmma.mma_async
  // CHECK-NOT:      nvvm.wgmma.commit.group
  // CHECK-COUNT-8:  nvvm.wgmma.mma_async
  // CHECK-NEXT:     nvvm.wgmma.commit.group.sync.aligned
  // CHECK:          nvvm.wgmma.wait.group.sync.aligned 0
  gpu.func @group(%q: !q, %k: !k) -> (vector<16xf32>, vector<16xf32>) {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %d = kvcache.mma %q[%c0, %c0], %k[%c0, %c0] {grouped} : !q, !k -> vector<16xf32>
    %e = kvcache.mma %q[%c64, %c0], %k[%c0, %c0] : !q, !k -> vector<16xf32>
    %f:2 = kvcache.mma_wait %d, %e : vector<16xf32>, vector<16xf32>
    gpu.return %f#0, %f#1 : vector<16xf32>, vector<16xf32>
  }

  // CHECK-LABEL:  gpu.func @waits(
  // CHECK-NEXT:     nvvm.wgmma.wait.group.sync.aligned 2
  // CHECK-NEXT:     gpu.return
  gpu.func @waits() {
    kvcache.mma_wait pending 2
    gpu.return
  }
}
