// RUN: kvcache-opt %s --convert-kvcache-to-nvvm --canonicalize --cse | FileCheck %s
// RUN: kvcache-opt %s --convert-kvcache-to-memref --convert-kvcache-to-nvvm --reconcile-unrealized-casts --canonicalize --cse | FileCheck %s --check-prefix=MEMORY
// RUN: not kvcache-opt %s --convert-to-llvm 2>&1 | FileCheck %s --check-prefix=STOCK

// The lowering by upstream's passes follows that of structured branches.
// STOCK: error: 'kvcache.tmem_alloc' op has no lowering here

!k = !kvcache.tile<64x128xbf16, swizzle_128b>
!v = !kvcache.tile<32x512xbf16, swizzle_128b>
!fp8 = !kvcache.tile<128x64xf8E4M3FN, swizzle_32b>
!bars = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>

gpu.module @kernels [#nvvm.target<chip = "sm_100a">] {
  func.func private @use(!kvcache.tmem_tile<64x512xf32>, !kvcache.tmem_tile<128x64xf32>, !kvcache.tmem_tile<128x64xbf16>)

  // A power of two of columns, and the tiles one after the other: 256, 64 and 32. They are given back where the block of
  // ops ends.
  // CHECK-LABEL: gpu.func @alloc(
  // CHECK-SAME:    nvvm.minctasm = 1 : i32
  // CHECK-DAG:     %[[C512:.*]] = arith.constant 512 : i32
  // CHECK-DAG:     %[[C256:.*]] = arith.constant 256 : i32
  // CHECK-DAG:     %[[C320:.*]] = arith.constant 320 : i32
  // CHECK:         %[[IS_FIRST:.*]] = arith.cmpi ult, %{{.*}}, %c32
  // CHECK:         %[[SLOT:.*]] = llvm.inttoptr %{{.*}} : i64 to !llvm.ptr<3>
  // CHECK:         scf.if %[[IS_FIRST]] {
  // CHECK-NEXT:      nvvm.tcgen05.alloc %[[SLOT]], %[[C512]] : !llvm.ptr<3>, i32
  // CHECK-NEXT:      nvvm.tcgen05.relinquish_alloc_permit
  // CHECK-NEXT:    }
  // CHECK-NEXT:    gpu.barrier
  // CHECK-NEXT:    %[[BASE:.*]] = llvm.load %[[SLOT]] : !llvm.ptr<3> -> i32
  // CHECK-DAG:     %[[S:.*]] = arith.addi %[[BASE]], %[[C256]]
  // CHECK-DAG:     %[[W:.*]] = arith.addi %[[BASE]], %[[C320]]
  // CHECK-DAG:     builtin.unrealized_conversion_cast %[[BASE]] : i32 to !kvcache.tmem_tile<64x512xf32>
  // CHECK-DAG:     builtin.unrealized_conversion_cast %[[S]] : i32 to !kvcache.tmem_tile<128x64xf32>
  // CHECK-DAG:     builtin.unrealized_conversion_cast %[[W]] : i32 to !kvcache.tmem_tile<128x64xbf16>
  // CHECK:         call @use
  // CHECK-NEXT:    gpu.barrier
  // CHECK-NEXT:    nvvm.tcgen05.fence <after>
  // CHECK-NEXT:    scf.if %[[IS_FIRST]] {
  // CHECK-NEXT:      %[[POINTER:.*]] = llvm.inttoptr %[[BASE]] : i32 to !llvm.ptr<6>
  // CHECK-NEXT:      nvvm.tcgen05.dealloc %[[POINTER]], %[[C512]] : !llvm.ptr<6>, i32
  gpu.func @alloc() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %o, %s, %w = kvcache.tmem_alloc : !kvcache.tmem_tile<64x512xf32>, !kvcache.tmem_tile<128x64xf32>, !kvcache.tmem_tile<128x64xbf16>
    func.call @use(%o, %s, %w) : (!kvcache.tmem_tile<64x512xf32>, !kvcache.tmem_tile<128x64xf32>, !kvcache.tmem_tile<128x64xbf16>) -> ()
    gpu.return
  }

  // Descriptor 0x4000404000010000 and the address, instruction 0x04100490; the first step overwrites D.
  // CHECK-LABEL:  gpu.func @shared(
  // CHECK-SAME:     %{{[^ ]*}}: !kvcache.tile<64x128xbf16, swizzle_128b>, %[[D:[^ ]*]]: !kvcache.tmem_tile<64x64xf32>)
  // CHECK-DAG:      %[[BITS:.*]] = arith.constant 4611756662049538048 : i64
  // CHECK-DAG:      %[[BITS_1:.*]] = arith.constant 4611756662049538050 : i64
  // CHECK-DAG:      %[[FORM:.*]] = arith.constant 68158608 : i32
  // CHECK-DAG:      %[[FALSE:.*]] = arith.constant false
  // CHECK-DAG:      %[[TRUE:.*]] = arith.constant true
  // CHECK:          nvvm.tcgen05.fence <after>
  // CHECK-DAG:      %[[ADDRESS:.*]] = builtin.unrealized_conversion_cast %[[D]] : !kvcache.tmem_tile<64x64xf32> to i32
  // CHECK-DAG:      %[[TO:.*]] = llvm.inttoptr %[[ADDRESS]] : i32 to !llvm.ptr<6>
  // CHECK-DAG:      %[[A:.*]] = arith.addi %[[UNITS_A:.*]], %[[BITS]] : i64
  // CHECK-DAG:      %[[B:.*]] = arith.addi %[[UNITS_B:.*]], %[[BITS]] : i64
  // CHECK:          nvvm.tcgen05.mma %[[TO]], %[[A]], %[[B]], %[[FORM]], %[[FALSE]] {ctaGroup = #nvvm.cta_group<cta_1>, kind = #nvvm.tcgen05_mma_kind<f16>} : (!llvm.ptr<6>, i64, i64, i32, i1)
  // CHECK-DAG:      %[[A_1:.*]] = arith.addi %[[UNITS_A]], %[[BITS_1]] : i64
  // CHECK-DAG:      %[[B_1:.*]] = arith.addi %[[UNITS_B]], %[[BITS_1]] : i64
  // CHECK:          nvvm.tcgen05.mma %[[TO]], %[[A_1]], %[[B_1]], %[[FORM]], %[[TRUE]]
  // CHECK-COUNT-6:  nvvm.tcgen05.mma %[[TO]],
  // CHECK-NOT:      nvvm.tcgen05.mma
  // MEMORY-LABEL:  gpu.func @shared(
  // MEMORY-SAME:     %[[K:[^ ]*]]: memref<16384xi8, #gpu.address_space<workgroup>>, %[[D:[^ ]*]]: i32)
  // MEMORY-DAG:      %[[TO:.*]] = llvm.inttoptr %[[D]] : i32 to !llvm.ptr<6>
  // MEMORY-DAG:      memref.extract_aligned_pointer_as_index %[[K]]
  // MEMORY:          nvvm.tcgen05.mma %[[TO]],
  gpu.func @shared(%k: !k, %d: !kvcache.tmem_tile<64x64xf32>) {
    %c0 = arith.constant 0 : index
    kvcache.tmem_mma %k[%c0, %c0], %k[%c0, %c0] into %d : !k, !k, !kvcache.tmem_tile<64x64xf32>
    gpu.return
  }

  // Two products of 256 columns: the second one in the other lanes of D and A, 0x100000 further, with B from column 256 on,
  // four chunks of 4096 bytes. 16 elements of A are 8 columns.
  // CHECK-LABEL:  gpu.func @tensor(
  // CHECK-SAME:     %[[A:[^ ]*]]: !kvcache.tmem_tile<64x32xbf16>, %{{[^ ]*}}: !kvcache.tile<32x512xbf16, swizzle_128b>, %[[D:[^ ]*]]: !kvcache.tmem_tile<64x512xf32>, %[[ADD:[^ ]*]]: i1)
  // CHECK-DAG:      %[[FORM:.*]] = arith.constant 71369872 : i32
  // CHECK-DAG:      %[[C8:.*]] = arith.constant 8 : i32
  // CHECK-DAG:      %[[LANES:.*]] = arith.constant 1048576 : i32
  // CHECK-DAG:      %[[LANES_8:.*]] = arith.constant 1048584 : i32
  // CHECK-DAG:      %[[C16384:.*]] = arith.constant 16384 : index
  // CHECK-DAG:      %[[AT_D:.*]] = builtin.unrealized_conversion_cast %[[D]]
  // CHECK-DAG:      %[[AT_A:.*]] = builtin.unrealized_conversion_cast %[[A]]
  // CHECK-DAG:      %[[TO:.*]] = llvm.inttoptr %[[AT_D]] : i32 to !llvm.ptr<6>
  // CHECK-DAG:      %[[A_0:.*]] = llvm.inttoptr %[[AT_A]] : i32 to !llvm.ptr<6>
  // CHECK:          nvvm.tcgen05.mma %[[TO]], %[[A_0]], %{{.*}}, %[[FORM]], %[[ADD]] {{.*}} : (!llvm.ptr<6>, !llvm.ptr<6>, i64, i32, i1)
  // CHECK:          %[[NEXT_A:.*]] = arith.addi %[[AT_A]], %[[C8]]
  // CHECK:          %[[A_1:.*]] = llvm.inttoptr %[[NEXT_A]] : i32 to !llvm.ptr<6>
  // CHECK:          nvvm.tcgen05.mma %[[TO]], %[[A_1]], %{{.*}}, %[[FORM]], %true
  // CHECK-DAG:      %[[OTHER_A:.*]] = arith.addi %[[AT_A]], %[[LANES]]
  // CHECK-DAG:      %[[OTHER_D:.*]] = arith.addi %[[AT_D]], %[[LANES]]
  // CHECK-DAG:      %[[OTHER_TO:.*]] = llvm.inttoptr %[[OTHER_D]] : i32 to !llvm.ptr<6>
  // CHECK-DAG:      %[[A_2:.*]] = llvm.inttoptr %[[OTHER_A]] : i32 to !llvm.ptr<6>
  // CHECK-DAG:      arith.addi %{{.*}}, %[[C16384]] : index
  // CHECK:          nvvm.tcgen05.mma %[[OTHER_TO]], %[[A_2]], %{{.*}}, %[[FORM]], %[[ADD]]
  // CHECK:          %[[LAST_A:.*]] = arith.addi %[[AT_A]], %[[LANES_8]]
  // CHECK:          %[[A_3:.*]] = llvm.inttoptr %[[LAST_A]] : i32 to !llvm.ptr<6>
  // CHECK:          nvvm.tcgen05.mma %[[OTHER_TO]], %[[A_3]], %{{.*}}, %[[FORM]], %true
  gpu.func @tensor(%a: !kvcache.tmem_tile<64x32xbf16>, %v: !v, %d: !kvcache.tmem_tile<64x512xf32>, %add: i1) {
    %c0 = arith.constant 0 : index
    kvcache.tmem_mma %a, %v[%c0, %c0] into %d add %add {major_b = #kvcache.major<mn_major>}
        : !kvcache.tmem_tile<64x32xbf16>, !v, !kvcache.tmem_tile<64x512xf32>
    gpu.return
  }

  // Of 128 rows, the second product is in the next columns. Instruction 0x08400010.
  // CHECK-LABEL:  gpu.func @columns(
  // CHECK-DAG:      %[[FORM:.*]] = arith.constant 138412048 : i32
  // CHECK-DAG:      %[[C256:.*]] = arith.constant 256 : i32
  // CHECK-DAG:      %[[AT_D:.*]] = builtin.unrealized_conversion_cast
  // CHECK:          nvvm.tcgen05.mma %{{.*}}, %[[FORM]], %false {ctaGroup = #nvvm.cta_group<cta_1>, kind = #nvvm.tcgen05_mma_kind<f8f6f4>}
  // CHECK:          %[[NEXT:.*]] = arith.addi %[[AT_D]], %[[C256]]
  // CHECK:          %[[TO:.*]] = llvm.inttoptr %[[NEXT]] : i32 to !llvm.ptr<6>
  // CHECK:          nvvm.tcgen05.mma %[[TO]],
  gpu.func @columns(%a: !fp8, %b: !kvcache.tile<512x64xf8E4M3FN, swizzle_32b>, %d: !kvcache.tmem_tile<128x512xf32>) {
    %c0 = arith.constant 0 : index
    kvcache.tmem_mma %a[%c0, %c0], %b[%c0, %c0] into %d {k = 32}
        : !fp8, !kvcache.tile<512x64xf8E4M3FN, swizzle_32b>, !kvcache.tmem_tile<128x512xf32>
    gpu.return
  }

  // CHECK-LABEL:  gpu.func @commit(
  // CHECK:          %[[NUMBER:.*]] = nvgpu.mbarrier.get %{{.*}}[%c1]
  // CHECK:          %[[BARRIER:.*]] = llvm.inttoptr %[[NUMBER]] : i64 to !llvm.ptr<3>
  // CHECK:          nvvm.tcgen05.commit %[[BARRIER]] : !llvm.ptr<3>
  gpu.func @commit(%bars: !bars) {
    %c1 = arith.constant 1 : index
    kvcache.tmem_commit %bars[%c1] : !bars
    gpu.return
  }

  // 12 registers are 8 and 4, which have 16 and 8 columns. The fence after the wait is LLVM's.
  // CHECK-LABEL:  gpu.func @load(
  // CHECK-SAME:     %[[TILE:[^ ]*]]: !kvcache.tmem_tile<128x64xf32>, %[[COLUMN:[^ ]*]]: index, %[[HALF:[^ ]*]]: index)
  // CHECK-DAG:      %[[C16:.*]] = arith.constant 16 : i32
  // CHECK-DAG:      %[[C96:.*]] = arith.constant 96 : i32
  // CHECK-DAG:      %[[LANE_BIT:.*]] = arith.constant 65536 : i32
  // CHECK-DAG:      %[[BASE:.*]] = builtin.unrealized_conversion_cast %[[TILE]]
  // CHECK-DAG:      %[[OF_WARP:.*]] = arith.andi %{{.*}}, %[[C96]]
  // CHECK-DAG:      %[[HALF_I32:.*]] = arith.index_cast{{.*}} %[[HALF]]
  // CHECK-DAG:      %[[OF_HALF:.*]] = arith.muli %[[HALF_I32]], %[[C16]]
  // CHECK-DAG:      %[[LANE:.*]] = arith.addi %[[OF_WARP]], %[[OF_HALF]]
  // CHECK-DAG:      %[[LANES:.*]] = arith.muli %[[LANE]], %[[LANE_BIT]]
  // CHECK-DAG:      %[[ROW:.*]] = arith.addi %[[BASE]], %[[LANES]]
  // CHECK-DAG:      %[[ADDRESS:.*]] = arith.addi %[[ROW]], %{{.*}} : i32
  // CHECK:          nvvm.tcgen05.fence <after>
  // CHECK:          %[[FROM:.*]] = llvm.inttoptr %[[ADDRESS]] : i32 to !llvm.ptr<6>
  // CHECK:          nvvm.tcgen05.ld %[[FROM]] {shape = #nvvm.tcgen05_ldst_shape<shape_16x256b>} : vector<8xi32>
  // CHECK:          %[[NEXT:.*]] = arith.addi %[[ADDRESS]], %[[C16]]
  // CHECK:          %[[FROM_NEXT:.*]] = llvm.inttoptr %[[NEXT]] : i32 to !llvm.ptr<6>
  // CHECK:          nvvm.tcgen05.ld %[[FROM_NEXT]] {shape = #nvvm.tcgen05_ldst_shape<shape_16x256b>} : vector<4xi32>
  // CHECK:          nvvm.tcgen05.wait <load>
  // CHECK-NEXT:     nvvm.tcgen05.fence <before>
  // CHECK-NEXT:     llvm.inline_asm has_side_effects "", "=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,0,1,2,3,4,5,6,7,8,9,10,11"
  gpu.func @load(%t: !kvcache.tmem_tile<128x64xf32>, %column: index, %half: index) -> vector<12xf32> {
    %v = kvcache.tmem_load %t[%column] half %half : !kvcache.tmem_tile<128x64xf32> -> vector<12xf32>
    gpu.return %v : vector<12xf32>
  }

  // Two elements to a column, in all lanes.
  // CHECK-LABEL:  gpu.func @store(
  // CHECK-SAME:     %[[V:[^ ]*]]: vector<16xbf16>,
  // CHECK-DAG:      %[[C16:.*]] = arith.constant 16 : i32
  // CHECK-DAG:      %[[OTHER_16:.*]] = arith.constant 1048592 : i32
  // CHECK-DAG:      %[[WORDS:.*]] = vector.bitcast %[[V]] : vector<16xbf16> to vector<8xi32>
  // CHECK-DAG:      %[[ADDRESS:.*]] = arith.addi %{{.*}}, %[[C16]] : i32
  // CHECK:          nvvm.tcgen05.fence <after>
  // CHECK:          %[[TO:.*]] = llvm.inttoptr %[[ADDRESS]] : i32 to !llvm.ptr<6>
  // CHECK:          nvvm.tcgen05.st %[[TO]], %[[WORDS]] {shape = #nvvm.tcgen05_ldst_shape<shape_16x128b>} : vector<8xi32>
  // CHECK:          %[[OTHER:.*]] = arith.addi %{{.*}}, %[[OTHER_16]]
  // CHECK:          %[[OTHER_TO:.*]] = llvm.inttoptr %[[OTHER]] : i32 to !llvm.ptr<6>
  // CHECK:          nvvm.tcgen05.st %[[OTHER_TO]], %[[WORDS]]
  // CHECK:          nvvm.tcgen05.wait <store>
  // CHECK-NEXT:     nvvm.tcgen05.fence <before>
  gpu.func @store(%v: vector<16xbf16>, %t: !kvcache.tmem_tile<64x64xbf16>) {
    %c32 = arith.constant 32 : index
    kvcache.tmem_store %v, %t[%c32] : vector<16xbf16>, !kvcache.tmem_tile<64x64xbf16>
    gpu.return
  }

  // The second half of the columns is in the other lanes.
  // CHECK-LABEL:  gpu.func @halves(
  // CHECK-SAME:     %[[COLUMN:[^ ]*]]: index)
  // CHECK-DAG:      %[[C256:.*]] = arith.constant 256 : i32
  // CHECK-DAG:      %[[LANES:.*]] = arith.constant 1048576 : i32
  // CHECK-DAG:      %[[COLUMN_I32:.*]] = arith.index_cast{{.*}} %[[COLUMN]]
  // CHECK-DAG:      %[[NUMBER:.*]] = arith.divui %[[COLUMN_I32]], %[[C256]]
  // CHECK-DAG:      arith.muli %[[NUMBER]], %[[LANES]]
  // CHECK-DAG:      arith.remui %[[COLUMN_I32]], %[[C256]]
  gpu.func @halves(%t: !kvcache.tmem_tile<64x512xf32>, %column: index) -> vector<4xf32> {
    %v = kvcache.tmem_load %t[%column] : !kvcache.tmem_tile<64x512xf32> -> vector<4xf32>
    gpu.return %v : vector<4xf32>
  }

  // A thread has a row, each word of which is a column. The view has the columns from 64 on.
  // CHECK-LABEL:  gpu.func @rows(
  // CHECK:          %[[LANES:.*]] = arith.andi %{{.*}}, %c96_i32
  // CHECK:          nvvm.tcgen05.ld %{{.*}} {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<16xi32>
  // CHECK:          %[[SECOND:.*]] = arith.addi %{{.*}}, %c64_i32
  // CHECK:          nvvm.tcgen05.st %{{.*}}, %{{.*}} {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<8xi32>
  gpu.func @rows(%v: vector<16xbf16>, %column: index) -> vector<16xf32> {
    %c64 = arith.constant 64 : index
    %t = kvcache.tmem_alloc : !kvcache.tmem_tile<128x128xf32>
    %w = kvcache.tmem_load %t[%column] {whole_rows} : !kvcache.tmem_tile<128x128xf32> -> vector<16xf32>
    %p = kvcache.tmem_view %t[%c64] : !kvcache.tmem_tile<128x128xf32> -> !kvcache.tmem_tile<128x128xbf16>
    kvcache.tmem_store %v, %p[%column] {whole_rows} : vector<16xbf16>, !kvcache.tmem_tile<128x128xbf16>
    gpu.return %w : vector<16xf32>
  }
}
