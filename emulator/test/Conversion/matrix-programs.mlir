// RUN: kvcache-opt %s --split-input-file --convert-nvvm-to-emulator="sanitize=false" | FileCheck %s

// Instructions whose operands come from each other, though through vectors and
// halves, are one program. Ops that depend on results move after it,
// the others stay before; reads in between may move first. A lane stores words
// of its own: halves of an address are in two registers.

// CHECK-LABEL: llvm.func internal @chain_kernel(
// CHECK-NOT:     kvcacheEmulatorRunMatrices
// CHECK:         llvm.load %{{.*}} : !llvm.ptr -> f32
// CHECK:         %[[ADDRESS:.*]] = llvm.ptrtoint
// CHECK:         llvm.trunc %[[ADDRESS]]
// CHECK:         llvm.store %{{.*}}, %{{.*}} {alignment = 4 : i64} : i32
// CHECK:         llvm.lshr %[[ADDRESS]]
// CHECK:         llvm.store %{{.*}}, %{{.*}} {alignment = 4 : i64} : i32
// CHECK-COUNT-1: llvm.call @kvcacheEmulatorRunMatrices
// CHECK-NOT:     kvcacheEmulatorRunMatrices
// CHECK:         llvm.fmul
// CHECK:         llvm.return

gpu.module @chain [#nvvm.target<chip = "sm_90a">] {
  llvm.func @kernel(%row: !llvm.ptr<3>, %a: i32, %c: f32, %other: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %undefined = llvm.mlir.poison : vector<2xbf16>
    %m = nvvm.ldmatrix %row {num = 2 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32)>
    %m0 = llvm.extractvalue %m[0] : !llvm.struct<(i32, i32)>
    %m1 = llvm.extractvalue %m[1] : !llvm.struct<(i32, i32)>
    %pair = llvm.bitcast %m0 : i32 to vector<2xbf16>
    %low = llvm.extractelement %pair[%c0 : i32] : vector<2xbf16>
    %high = llvm.extractelement %pair[%c1 : i32] : vector<2xbf16>
    %half = llvm.insertelement %low, %undefined[%c0 : i32] : vector<2xbf16>
    %whole = llvm.insertelement %high, %half[%c1 : i32] : vector<2xbf16>
    %b = llvm.bitcast %whole : vector<2xbf16> to i32
    %d = nvvm.mma.sync A[%a, %a, %a, %a] B[%b, %m1] C[%c, %c, %c, %c]
        {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>,
         multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = #nvvm.mma_type<bf16>}
        : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    %d0 = llvm.extractvalue %d[0] : !llvm.struct<(f32, f32, f32, f32)>
    %d1 = llvm.extractvalue %d[1] : !llvm.struct<(f32, f32, f32, f32)>
    %d2 = llvm.extractvalue %d[2] : !llvm.struct<(f32, f32, f32, f32)>
    %square = llvm.fmul %d0, %d0 : f32
    %read = llvm.load %other : !llvm.ptr<1> -> f32
    %e = nvvm.mma.sync A[%a, %a, %a, %a] B[%m1, %b] C[%d0, %d1, %d2, %read]
        {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>,
         multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = #nvvm.mma_type<bf16>}
        : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    %e3 = llvm.extractvalue %e[3] : !llvm.struct<(f32, f32, f32, f32)>
    %sum = llvm.fadd %e3, %square : f32
    llvm.store %sum, %out : f32, !llvm.ptr<1>
    llvm.return
  }
}

// -----

// An operand that is computed from a result, a store and a barrier begin
// another program.

// CHECK-LABEL: llvm.func internal @breaks_kernel(
// CHECK:         llvm.call @kvcacheEmulatorRunMatrices
// CHECK:         llvm.xor
// CHECK:         llvm.call @kvcacheEmulatorRunMatrices
// CHECK:         llvm.store %{{.*}} : i32
// CHECK:         llvm.call @kvcacheEmulatorRunMatrices
// CHECK:         llvm.call @kvcacheEmulatorSyncWarp
// CHECK:         llvm.call @kvcacheEmulatorRunMatrices
// CHECK-NOT:     kvcacheEmulatorRunMatrices
// CHECK:         llvm.return

gpu.module @breaks [#nvvm.target<chip = "sm_90a">] {
  llvm.func @kernel(%row: !llvm.ptr<3>, %mask: i32, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %all = llvm.mlir.constant(-1 : i32) : i32
    %a = nvvm.ldmatrix %row {num = 1 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> i32
    %changed = llvm.xor %a, %mask : i32
    nvvm.stmatrix %row, %changed {layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : !llvm.ptr<3>, i32
    llvm.store %changed, %out : i32, !llvm.ptr<1>
    %b = nvvm.ldmatrix %row {num = 1 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> i32
    nvvm.bar.warp.sync %all : i32
    nvvm.stmatrix %row, %b {layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : !llvm.ptr<3>, i32
    llvm.return
  }
}
