// RUN: kvcache-opt %s --convert-nvvm-to-emulator --split-input-file --verify-diagnostics

gpu.module @quad_pairs [#nvvm.target<chip = "sm_90a">] {
  llvm.func @kernel(%a: vector<2xf16>, %c: f32) attributes {nvvm.kernel} {
    // expected-error @below {{'nvvm.mma.sync' op of m8n8k4 on f16 and f16, from f32 to f32, has no lowering for the emulator}}
    %d = nvvm.mma.sync A[%a, %a] B[%a, %a] C[%c, %c, %c, %c, %c, %c, %c, %c]
        {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 8, n = 8, k = 4>}
        : (vector<2xf16>, vector<2xf16>, f32) -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32)>
    llvm.return
  }
}

// -----

gpu.module @bits [#nvvm.target<chip = "sm_90a">] {
  llvm.func @kernel(%a: i32) attributes {nvvm.kernel} {
    // expected-error @below {{'nvvm.mma.sync' op of m16n8k128 on b1 and b1, from s32 to s32, has no lowering for the emulator}}
    %d = nvvm.mma.sync A[%a, %a] B[%a] C[%a, %a, %a, %a]
        {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 128>,
         multiplicandAPtxType = #nvvm.mma_type<b1>, multiplicandBPtxType = #nvvm.mma_type<b1>, b1Op = #nvvm.mma_b1op<xor_popc>}
        : (i32, i32, i32) -> !llvm.struct<(i32, i32, i32, i32)>
    llvm.return
  }
}

// -----

gpu.module @scaled [#nvvm.target<chip = "sm_120a">] {
  llvm.func @kernel(%a: i32, %c: f32) attributes {nvvm.kernel} {
    // expected-error @below {{'llvm.call_intrinsic' op of m16n8k32 on e3m2 and e3m2, from f32 to f32, has no lowering for the emulator}}
    %d = llvm.call_intrinsic "llvm.nvvm.mma.m16n8k32.row.col.f32.e3m2.e3m2.f32"(%c, %c, %c, %c)
        : (f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    llvm.return
  }
}

// -----

gpu.module @too_few_registers [#nvvm.target<chip = "sm_90a">] {
  llvm.func @kernel(%a: i32, %c: f32) attributes {nvvm.kernel} {
    // expected-error @below {{'llvm.call_intrinsic' op of m16n8k32 on e4m3 and e4m3, from f32 to f32, has no lowering for the emulator}}
    %d = llvm.call_intrinsic "llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e4m3.f32"(%a, %a, %c, %c, %c, %c)
        : (i32, i32, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    llvm.return
  }
}

// -----

gpu.module @unpacked_columns [#nvvm.target<chip = "sm_100a">] {
  llvm.func @kernel(%row: !llvm.ptr<3>) attributes {nvvm.kernel} {
    // expected-error @below {{'nvvm.ldmatrix' op of 16x16 matrices of b8x16.b4x16_p64 has no lowering for the emulator}}
    %d = nvvm.ldmatrix %row {num = 1 : i32, layout = #nvvm.mma_layout<col>, shape = #nvvm.ld_st_matrix_shape<m = 16, n = 16>, eltType = #nvvm.ld_st_matrix_elt_type<b8x16.b4x16_p64>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32)>
    llvm.return
  }
}

// -----

gpu.module @accumulators_of_f64 [#nvvm.target<chip = "sm_90a">] {
  llvm.func @kernel(%a: i64, %acc: !llvm.struct<(f64, f64, f64, f64)>) attributes {nvvm.kernel} {
    // expected-error @below {{'nvvm.wgmma.mma_async' op on bf16, with accumulators '!llvm.struct<(f64, f64, f64, f64)>', has no lowering for the emulator}}
    %d = nvvm.wgmma.mma_async %a, %a, %acc, #nvvm.shape<m = 64, n = 8, k = 16>,
        D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>],
        B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>]
        : !llvm.struct<(f64, f64, f64, f64)> -> !llvm.struct<(f64, f64, f64, f64)>
    llvm.return
  }
}
