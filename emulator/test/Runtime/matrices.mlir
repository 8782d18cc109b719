// Matrix instructions, on data: A is mostly the identity, so that D is B, and
// more.

// DEFINE: %{libs} = %kvcache_emulator,%kvcache_runtime,%mlir_lib_dir/libmlir_c_runner_utils.so,%mlir_lib_dir/libmlir_runner_utils.so
// DEFINE: %{run} = mlir-runner -e main -entry-point-result=void -shared-libs=%{libs}
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_90a" | %{run} | FileCheck %s
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_90a meter=true" | env KVCACHE_EMULATOR_SEED=5 %{run} | FileCheck %s
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_90a sanitize=false" | %{run} | FileCheck %s

!acc = !llvm.struct<(f32, f32, f32, f32)>
!acc_i32 = !llvm.struct<(i32, i32, i32, i32)>

module attributes {gpu.container_module} {

gpu.module @kernels {
  // Fills 32 rows of 8 elements with their numbers, 8 * row + column, so that
  // matrix i holds 64 i to 64 i + 63.
  func.func private @fill(%shared: memref<32x8xi16, #gpu.address_space<workgroup>>, %lane: i32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %t = arith.index_cast %lane : i32 to index
    scf.for %i = %c0 to %c8 step %c1 {
      %row = arith.muli %t, %c8 : index
      %number = arith.addi %row, %i : index
      %value = arith.index_cast %number : index to i16
      memref.store %value, %shared[%t, %i] : memref<32x8xi16, #gpu.address_space<workgroup>>
    }
    return
  }

  // What each lane loads: register 0 of one matrix; register 3 of four; the
  // same, transposed. Both elements of a register are shown, as 1000 times the
  // second and the first.
  gpu.func @load(%out: memref<4x32xi32>) workgroup(%shared: memref<32x8xi16, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %all = arith.constant -1 : i32
    %lane = nvvm.read.ptx.sreg.laneid range <i32, 0, 32> : i32
    %t = arith.index_cast %lane : i32 to index
    func.call @fill(%shared, %lane) : (memref<32x8xi16, #gpu.address_space<workgroup>>, i32) -> ()
    nvvm.bar.warp.sync %all : i32
    %base = memref.extract_aligned_pointer_as_index %shared : memref<32x8xi16, #gpu.address_space<workgroup>> -> index
    %base_i64 = arith.index_cast %base : index to i64
    %start = llvm.inttoptr %base_i64 : i64 to !llvm.ptr<3>
    %row = llvm.getelementptr %start[%lane] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<8 x i16>
    %one = nvvm.ldmatrix %row {num = 1 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> i32
    %four = nvvm.ldmatrix %row {num = 4 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !acc_i32
    %turned = nvvm.ldmatrix %row {num = 4 : i32, layout = #nvvm.mma_layout<col>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !acc_i32
    %last = llvm.extractvalue %four[3] : !acc_i32
    %last_turned = llvm.extractvalue %turned[3] : !acc_i32
    %shown = func.call @show(%one) : (i32) -> i32
    %shown_last = func.call @show(%last) : (i32) -> i32
    %shown_turned = func.call @show(%last_turned) : (i32) -> i32
    memref.store %shown, %out[%c0, %t] : memref<4x32xi32>
    memref.store %shown_last, %out[%c1, %t] : memref<4x32xi32>
    memref.store %shown_turned, %out[%c2, %t] : memref<4x32xi32>
    gpu.return
  }

  func.func private @show(%register: i32) -> i32 {
    %c16 = arith.constant 16 : i32
    %low = arith.constant 0xffff : i32
    %thousand = arith.constant 1000 : i32
    %second = arith.shrui %register, %c16 : i32
    %first = arith.andi %register, %low : i32
    %product = arith.muli %second, %thousand : i32
    %sum = arith.addi %product, %first : i32
    return %sum : i32
  }

  // Two matrices, loaded as they are and stored transposed.
  gpu.func @store(%out: memref<4x32xi32>) workgroup(%shared: memref<32x8xi16, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %all = arith.constant -1 : i32
    %lane = nvvm.read.ptx.sreg.laneid range <i32, 0, 32> : i32
    %t = arith.index_cast %lane : i32 to index
    func.call @fill(%shared, %lane) : (memref<32x8xi16, #gpu.address_space<workgroup>>, i32) -> ()
    nvvm.bar.warp.sync %all : i32
    %base = memref.extract_aligned_pointer_as_index %shared : memref<32x8xi16, #gpu.address_space<workgroup>> -> index
    %base_i64 = arith.index_cast %base : index to i64
    %start = llvm.inttoptr %base_i64 : i64 to !llvm.ptr<3>
    %row = llvm.getelementptr %start[%lane] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<8 x i16>
    %two = nvvm.ldmatrix %row {num = 2 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32)>
    %first = llvm.extractvalue %two[0] : !llvm.struct<(i32, i32)>
    %second = llvm.extractvalue %two[1] : !llvm.struct<(i32, i32)>
    nvvm.bar.warp.sync %all : i32
    nvvm.stmatrix %row, %first, %second {layout = #nvvm.mma_layout<col>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : !llvm.ptr<3>, i32, i32
    nvvm.bar.warp.sync %all : i32
    // Rows 8 to 11, the first half of the second matrix.
    %div = arith.divui %t, %c8 : index
    %column = arith.remui %t, %c8 : index
    %place = arith.addi %div, %c8 : index
    %element = memref.load %shared[%place, %column] : memref<32x8xi16, #gpu.address_space<workgroup>>
    %wide = arith.extui %element : i16 to i32
    memref.store %wide, %out[%c0, %t] : memref<4x32xi32>
    gpu.return
  }

  // A is 1 at (g, 2 q) for q = g mod 4, and at (g + 8, 2 q + 8), of which lane
  // 4 g + q has the low half of registers 0 and 3.
  func.func private @is_diagonal(%lane: i32) -> i1 {
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %g = arith.shrui %lane, %c2 : i32
    %q = arith.andi %lane, %c3 : i32
    %wanted = arith.andi %g, %c3 : i32
    %is = arith.cmpi eq, %q, %wanted : i32
    return %is : i1
  }

  // B is row + 16 * column: lane 4 g + q has rows 2 q, 2 q + 1 and those
  // 8 after, of column g. C is 1000, and so D (g, n) is 1000 + 2 (g mod 4) + 16 n,
  // D (g + 8, n) 8 more.
  gpu.func @f16(%out: memref<4x32xi32>) kernel {
    %lane = nvvm.read.ptx.sreg.laneid range <i32, 0, 32> : i32
    %zeros = arith.constant dense<0.0> : vector<2xf16>
    %ones = arith.constant dense<[1.0, 0.0]> : vector<2xf16>
    %is = func.call @is_diagonal(%lane) : (i32) -> i1
    %a = arith.select %is, %ones, %zeros : vector<2xf16>
    %b0, %b8 = func.call @rows(%lane) : (i32) -> (vector<2xf32>, vector<2xf32>)
    %b0_f16 = arith.truncf %b0 : vector<2xf32> to vector<2xf16>
    %b8_f16 = arith.truncf %b8 : vector<2xf32> to vector<2xf16>
    %c = arith.constant 1000.0 : f32
    %d = nvvm.mma.sync A[%a, %zeros, %zeros, %a] B[%b0_f16, %b8_f16] C[%c, %c, %c, %c]
        {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>}
        : (vector<2xf16>, vector<2xf16>, f32) -> !acc
    func.call @put(%d, %out, %lane) : (!acc, memref<4x32xi32>, i32) -> ()
    gpu.return
  }

  // The same, where C and D are f16 as well.
  gpu.func @f16_sums(%out: memref<4x32xi32>) kernel {
    %lane = nvvm.read.ptx.sreg.laneid range <i32, 0, 32> : i32
    %zeros = arith.constant dense<0.0> : vector<2xf16>
    %ones = arith.constant dense<[1.0, 0.0]> : vector<2xf16>
    %is = func.call @is_diagonal(%lane) : (i32) -> i1
    %a = arith.select %is, %ones, %zeros : vector<2xf16>
    %b0, %b8 = func.call @rows(%lane) : (i32) -> (vector<2xf32>, vector<2xf32>)
    %b0_f16 = arith.truncf %b0 : vector<2xf32> to vector<2xf16>
    %b8_f16 = arith.truncf %b8 : vector<2xf32> to vector<2xf16>
    %c = arith.constant dense<1000.0> : vector<2xf16>
    %d = nvvm.mma.sync A[%a, %zeros, %zeros, %a] B[%b0_f16, %b8_f16] C[%c, %c]
        {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>}
        : (vector<2xf16>, vector<2xf16>, vector<2xf16>) -> !llvm.struct<(vector<2xf16>, vector<2xf16>)>
    %d0 = llvm.extractvalue %d[0] : !llvm.struct<(vector<2xf16>, vector<2xf16>)>
    %d1 = llvm.extractvalue %d[1] : !llvm.struct<(vector<2xf16>, vector<2xf16>)>
    %w0 = arith.extf %d0 : vector<2xf16> to vector<2xf32>
    %w1 = arith.extf %d1 : vector<2xf16> to vector<2xf32>
    %v0 = vector.extract %w0[0] : f32 from vector<2xf32>
    %v1 = vector.extract %w0[1] : f32 from vector<2xf32>
    %v2 = vector.extract %w1[0] : f32 from vector<2xf32>
    %v3 = vector.extract %w1[1] : f32 from vector<2xf32>
    %s0 = llvm.mlir.undef : !acc
    %s1 = llvm.insertvalue %v0, %s0[0] : !acc
    %s2 = llvm.insertvalue %v1, %s1[1] : !acc
    %s3 = llvm.insertvalue %v2, %s2[2] : !acc
    %s4 = llvm.insertvalue %v3, %s3[3] : !acc
    func.call @put(%s4, %out, %lane) : (!acc, memref<4x32xi32>, i32) -> ()
    gpu.return
  }

  // The same with bf16, as the high halves of f32.
  gpu.func @bf16(%out: memref<4x32xi32>) kernel {
    %lane = nvvm.read.ptx.sreg.laneid range <i32, 0, 32> : i32
    %zeros = arith.constant 0 : i32
    %ones = arith.constant 0x00003f80 : i32
    %is = func.call @is_diagonal(%lane) : (i32) -> i1
    %a = arith.select %is, %ones, %zeros : i32
    %b0, %b8 = func.call @rows(%lane) : (i32) -> (vector<2xf32>, vector<2xf32>)
    %b0_bits = func.call @to_bf16(%b0) : (vector<2xf32>) -> i32
    %b8_bits = func.call @to_bf16(%b8) : (vector<2xf32>) -> i32
    %c = arith.constant 1000.0 : f32
    %d = nvvm.mma.sync A[%a, %zeros, %zeros, %a] B[%b0_bits, %b8_bits] C[%c, %c, %c, %c]
        {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>,
         multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = #nvvm.mma_type<bf16>}
        : (i32, i32, f32) -> !acc
    func.call @put(%d, %out, %lane) : (!acc, memref<4x32xi32>, i32) -> ()
    gpu.return
  }

  func.func private @to_bf16(%pair: vector<2xf32>) -> i32 {
    %c16 = arith.constant 16 : i32
    %first = vector.extract %pair[0] : f32 from vector<2xf32>
    %second = vector.extract %pair[1] : f32 from vector<2xf32>
    %low = arith.bitcast %first : f32 to i32
    %high = arith.bitcast %second : f32 to i32
    %low_bits = arith.shrui %low, %c16 : i32
    %mask = arith.constant 0xffff0000 : i32
    %high_bits = arith.andi %high, %mask : i32
    %bits = arith.ori %low_bits, %high_bits : i32
    return %bits : i32
  }

  func.func private @rows(%lane: i32) -> (vector<2xf32>, vector<2xf32>) {
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %c16 = arith.constant 16 : i32
    %g = arith.shrui %lane, %c2 : i32
    %q = arith.andi %lane, %c3 : i32
    %double = arith.muli %q, %c2 : i32
    %column = arith.muli %g, %c16 : i32
    %number = arith.addi %double, %column : i32
    %f = arith.sitofp %number : i32 to f32
    %first = vector.broadcast %f : f32 to vector<2xf32>
    %offsets = arith.constant dense<[0.0, 1.0]> : vector<2xf32>
    %eight = arith.constant dense<8.0> : vector<2xf32>
    %low = arith.addf %first, %offsets : vector<2xf32>
    %high = arith.addf %low, %eight : vector<2xf32>
    return %low, %high : vector<2xf32>, vector<2xf32>
  }

  func.func private @put(%d: !acc, %out: memref<4x32xi32>, %lane: i32) {
    %t = arith.index_cast %lane : i32 to index
    %d0 = llvm.extractvalue %d[0] : !acc
    %d1 = llvm.extractvalue %d[1] : !acc
    %d2 = llvm.extractvalue %d[2] : !acc
    %d3 = llvm.extractvalue %d[3] : !acc
    %all = vector.from_elements %d0, %d1, %d2, %d3 : vector<4xf32>
    %numbers = arith.fptosi %all : vector<4xf32> to vector<4xi32>
    func.call @put_i32(%numbers, %out, %t) : (vector<4xi32>, memref<4x32xi32>, index) -> ()
    return
  }

  func.func private @put_i32(%numbers: vector<4xi32>, %out: memref<4x32xi32>, %t: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    scf.for %i = %c0 to %c4 step %c1 {
      %number = vector.extract %numbers[%i] : i32 from vector<4xi32>
      memref.store %number, %out[%i, %t] : memref<4x32xi32>
    }
    return
  }

  // Every element of A and B is a row or column of its own: A (r, k) is r + 1
  // for k = 0 to 3 of each 16, or else 0; B (k, n) is n - 4. So D is 8 (r + 1)
  // (n - 4), beside C, which is -5.
  gpu.func @s8(%out: memref<4x32xi32>) kernel {
    %lane = nvvm.read.ptx.sreg.laneid range <i32, 0, 32> : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %c4 = arith.constant 4 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %ff = arith.constant 0xff : i32
    %bytes = arith.constant 0x01010101 : i32
    %g = arith.shrui %lane, %c2 : i32
    %q = arith.andi %lane, %c3 : i32
    %is = arith.cmpi eq, %q, %zero : i32
    %top = arith.addi %g, %one : i32
    %bottom = arith.addi %g, %c9 : i32
    %top_bytes = arith.muli %top, %bytes : i32
    %bottom_bytes = arith.muli %bottom, %bytes : i32
    %a0 = arith.select %is, %top_bytes, %zero : i32
    %a1 = arith.select %is, %bottom_bytes, %zero : i32
    %n = arith.subi %g, %c4 : i32
    %n_byte = arith.andi %n, %ff : i32
    %b = arith.muli %n_byte, %bytes : i32
    %c = arith.constant -5 : i32
    %d = nvvm.mma.sync A[%a0, %a1, %a0, %a1] B[%b, %b] C[%c, %c, %c, %c]
        {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 32>,
         multiplicandAPtxType = #nvvm.mma_type<s8>, multiplicandBPtxType = #nvvm.mma_type<s8>,
         intOverflowBehavior = #nvvm.mma_int_overflow<satfinite>}
        : (i32, i32, i32) -> !acc_i32
    func.call @put_sums(%d, %out, %lane) : (!acc_i32, memref<4x32xi32>, i32) -> ()
    gpu.return
  }

  // A sum that is too large, saturated and wrapped.
  gpu.func @overflow(%out: memref<4x32xi32>) kernel {
    %lane = nvvm.read.ptx.sreg.laneid range <i32, 0, 32> : i32
    %t = arith.index_cast %lane : i32 to index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %ones = arith.constant 0x01010101 : i32
    %c = arith.constant 0x7fffffff : i32
    %d = nvvm.mma.sync A[%ones, %ones] B[%ones] C[%c, %c, %c, %c]
        {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>,
         multiplicandAPtxType = #nvvm.mma_type<u8>, multiplicandBPtxType = #nvvm.mma_type<s8>,
         intOverflowBehavior = #nvvm.mma_int_overflow<satfinite>}
        : (i32, i32, i32) -> !acc_i32
    %e = nvvm.mma.sync A[%ones, %ones] B[%ones] C[%c, %c, %c, %c]
        {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>,
         multiplicandAPtxType = #nvvm.mma_type<u8>, multiplicandBPtxType = #nvvm.mma_type<s8>,
         intOverflowBehavior = #nvvm.mma_int_overflow<wrapped>}
        : (i32, i32, i32) -> !acc_i32
    %saturated = llvm.extractvalue %d[3] : !acc_i32
    %wrapped = llvm.extractvalue %e[3] : !acc_i32
    memref.store %saturated, %out[%c0, %t] : memref<4x32xi32>
    memref.store %wrapped, %out[%c1, %t] : memref<4x32xi32>
    gpu.return
  }

  func.func private @put_sums(%d: !acc_i32, %out: memref<4x32xi32>, %lane: i32) {
    %t = arith.index_cast %lane : i32 to index
    %d0 = llvm.extractvalue %d[0] : !acc_i32
    %d1 = llvm.extractvalue %d[1] : !acc_i32
    %d2 = llvm.extractvalue %d[2] : !acc_i32
    %d3 = llvm.extractvalue %d[3] : !acc_i32
    %all = vector.from_elements %d0, %d1, %d2, %d3 : vector<4xi32>
    func.call @put_i32(%all, %out, %t) : (vector<4xi32>, memref<4x32xi32>, index) -> ()
    return
  }

  // A is 2 (0x40) in rows 0 to 7 and -1 (0xb8) below; B is 1 (0x38) in even
  // rows and 0.5 (0x30) in odd ones. So D is C, 100, and 32 * 0.75 times that.
  gpu.func @e4m3(%out: memref<4x32xi32>) kernel {
    %lane = nvvm.read.ptx.sreg.laneid range <i32, 0, 32> : i32
    %two = arith.constant 0x40404040 : i32
    %minus = arith.constant 0xb8b8b8b8 : i32
    %b = arith.constant 0x30383038 : i32
    %c = arith.constant 100.0 : f32
    %d = llvm.call_intrinsic "llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e4m3.f32"(%two, %minus, %two, %minus, %b, %b, %c, %c, %c, %c)
        : (i32, i32, i32, i32, i32, i32, f32, f32, f32, f32) -> !acc
    func.call @put(%d, %out, %lane) : (!acc, memref<4x32xi32>, i32) -> ()
    gpu.return
  }

  // The same bits of A as e5m2: 2 (0x40) and -0.5 (0xb8).
  gpu.func @e5m2(%out: memref<4x32xi32>) kernel {
    %lane = nvvm.read.ptx.sreg.laneid range <i32, 0, 32> : i32
    %two = arith.constant 0x40404040 : i32
    %minus = arith.constant 0xb8b8b8b8 : i32
    %b = arith.constant 0x30383038 : i32
    %c = arith.constant 100.0 : f32
    %d = llvm.call_intrinsic "llvm.nvvm.mma.m16n8k32.row.col.f32.e5m2.e4m3.f32"(%two, %minus, %two, %minus, %b, %b, %c, %c, %c, %c)
        : (i32, i32, i32, i32, i32, i32, f32, f32, f32, f32) -> !acc
    func.call @put(%d, %out, %lane) : (!acc, memref<4x32xi32>, i32) -> ()
    gpu.return
  }
}

func.func private @printMemrefI32(memref<*xi32>)

func.func private @print(%device: memref<4x32xi32>, %rows: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %host = memref.alloc() : memref<4x32xi32>
  gpu.memcpy %host, %device : memref<4x32xi32>, memref<4x32xi32>
  scf.for %row = %c0 to %rows step %c1 {
    %one = memref.subview %host[%row, 0] [1, 32] [1, 1] : memref<4x32xi32> to memref<32xi32, strided<[1], offset: ?>>
    %any = memref.cast %one : memref<32xi32, strided<[1], offset: ?>> to memref<*xi32>
    func.call @printMemrefI32(%any) : (memref<*xi32>) -> ()
  }
  memref.dealloc %host : memref<4x32xi32>
  return
}

// CHECK:      [1000, 3002, 5004, 7006, 9008, 11010, 13012, 15014, 17016, 19018, 21020, 23022, 25024, 27026, 29028, 31030, 33032, 35034, 37036, 39038, 41040, 43042, 45044, 47046, 49048, 51050, 53052, 55054, 57056, 59058, 61060, 63062]
// CHECK:      [193192, 195194, 197196, 199198, 201200, 203202, 205204, 207206, 209208, 211210, 213212, 215214, 217216, 219218, 221220, 223222, 225224, 227226, 229228, 231230, 233232, 235234, 237236, 239238, 241240, 243242, 245244, 247246, 249248, 251250, 253252, 255254]
// CHECK:      [200192, 216208, 232224, 248240, 201193, 217209, 233225, 249241, 202194, 218210, 234226, 250242, 203195, 219211, 235227, 251243, 204196, 220212, 236228, 252244, 205197, 221213, 237229, 253245, 206198, 222214, 238230, 254246, 207199, 223215, 239231, 255247]

// CHECK:      [64, 72, 80, 88, 96, 104, 112, 120, 65, 73, 81, 89, 97, 105, 113, 121, 66, 74, 82, 90, 98, 106, 114, 122, 67, 75, 83, 91, 99, 107, 115, 123]

// CHECK:      [1000, 1032, 1064, 1096, 1002, 1034, 1066, 1098, 1004, 1036, 1068, 1100, 1006, 1038, 1070, 1102, 1000, 1032, 1064, 1096, 1002, 1034, 1066, 1098, 1004, 1036, 1068, 1100, 1006, 1038, 1070, 1102]
// CHECK:      [1016, 1048, 1080, 1112, 1018, 1050, 1082, 1114, 1020, 1052, 1084, 1116, 1022, 1054, 1086, 1118, 1016, 1048, 1080, 1112, 1018, 1050, 1082, 1114, 1020, 1052, 1084, 1116, 1022, 1054, 1086, 1118]
// CHECK:      [1008, 1040, 1072, 1104, 1010, 1042, 1074, 1106, 1012, 1044, 1076, 1108, 1014, 1046, 1078, 1110, 1008, 1040, 1072, 1104, 1010, 1042, 1074, 1106, 1012, 1044, 1076, 1108, 1014, 1046, 1078, 1110]
// CHECK:      [1024, 1056, 1088, 1120, 1026, 1058, 1090, 1122, 1028, 1060, 1092, 1124, 1030, 1062, 1094, 1126, 1024, 1056, 1088, 1120, 1026, 1058, 1090, 1122, 1028, 1060, 1092, 1124, 1030, 1062, 1094, 1126]

// CHECK:      [1000, 1032, 1064, 1096, 1002, 1034, 1066, 1098, 1004, 1036, 1068, 1100, 1006, 1038, 1070, 1102, 1000, 1032, 1064, 1096, 1002, 1034, 1066, 1098, 1004, 1036, 1068, 1100, 1006, 1038, 1070, 1102]
// CHECK:      [1016, 1048, 1080, 1112, 1018, 1050, 1082, 1114, 1020, 1052, 1084, 1116, 1022, 1054, 1086, 1118, 1016, 1048, 1080, 1112, 1018, 1050, 1082, 1114, 1020, 1052, 1084, 1116, 1022, 1054, 1086, 1118]
// CHECK:      [1008, 1040, 1072, 1104, 1010, 1042, 1074, 1106, 1012, 1044, 1076, 1108, 1014, 1046, 1078, 1110, 1008, 1040, 1072, 1104, 1010, 1042, 1074, 1106, 1012, 1044, 1076, 1108, 1014, 1046, 1078, 1110]
// CHECK:      [1024, 1056, 1088, 1120, 1026, 1058, 1090, 1122, 1028, 1060, 1092, 1124, 1030, 1062, 1094, 1126, 1024, 1056, 1088, 1120, 1026, 1058, 1090, 1122, 1028, 1060, 1092, 1124, 1030, 1062, 1094, 1126]

// CHECK:      [1000, 1032, 1064, 1096, 1002, 1034, 1066, 1098, 1004, 1036, 1068, 1100, 1006, 1038, 1070, 1102, 1000, 1032, 1064, 1096, 1002, 1034, 1066, 1098, 1004, 1036, 1068, 1100, 1006, 1038, 1070, 1102]
// CHECK:      [1016, 1048, 1080, 1112, 1018, 1050, 1082, 1114, 1020, 1052, 1084, 1116, 1022, 1054, 1086, 1118, 1016, 1048, 1080, 1112, 1018, 1050, 1082, 1114, 1020, 1052, 1084, 1116, 1022, 1054, 1086, 1118]
// CHECK:      [1008, 1040, 1072, 1104, 1010, 1042, 1074, 1106, 1012, 1044, 1076, 1108, 1014, 1046, 1078, 1110, 1008, 1040, 1072, 1104, 1010, 1042, 1074, 1106, 1012, 1044, 1076, 1108, 1014, 1046, 1078, 1110]
// CHECK:      [1024, 1056, 1088, 1120, 1026, 1058, 1090, 1122, 1028, 1060, 1092, 1124, 1030, 1062, 1094, 1126, 1024, 1056, 1088, 1120, 1026, 1058, 1090, 1122, 1028, 1060, 1092, 1124, 1030, 1062, 1094, 1126]

// CHECK:      [-37, -21, -5, 11, -69, -37, -5, 27, -101, -53, -5, 43, -133, -69, -5, 59, -165, -85, -5, 75, -197, -101, -5, 91, -229, -117, -5, 107, -261, -133, -5, 123]
// CHECK:      [-29, -13, 3, 19, -53, -21, 11, 43, -77, -29, 19, 67, -101, -37, 27, 91, -125, -45, 35, 115, -149, -53, 43, 139, -173, -61, 51, 163, -197, -69, 59, 187]
// CHECK:      [-293, -149, -5, 139, -325, -165, -5, 155, -357, -181, -5, 171, -389, -197, -5, 187, -421, -213, -5, 203, -453, -229, -5, 219, -485, -245, -5, 235, -517, -261, -5, 251]
// CHECK:      [-221, -77, 67, 211, -245, -85, 75, 235, -269, -93, 83, 259, -293, -101, 91, 283, -317, -109, 99, 307, -341, -117, 107, 331, -365, -125, 115, 355, -389, -133, 123, 379]

// CHECK:      [2147483647, {{(2147483647, )+}}2147483647]
// CHECK:      [-2147483633, {{(-2147483633, )+}}-2147483633]

// CHECK:      [148, {{(148, )+}}148]
// CHECK:      [148, {{(148, )+}}148]
// CHECK:      [76, {{(76, )+}}76]
// CHECK:      [76, {{(76, )+}}76]

// CHECK:      [148, {{(148, )+}}148]
// CHECK:      [148, {{(148, )+}}148]
// CHECK:      [88, {{(88, )+}}88]
// CHECK:      [88, {{(88, )+}}88]
func.func @main() {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %device = gpu.alloc() : memref<4x32xi32>
  %zero = arith.constant 0 : i32
  %t0 = gpu.wait async
  %t1 = gpu.memset async [%t0] %device, %zero : memref<4x32xi32>, i32
  gpu.wait [%t1]
  gpu.launch_func @kernels::@load blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
      args(%device : memref<4x32xi32>)
  func.call @print(%device, %c3) : (memref<4x32xi32>, index) -> ()
  gpu.launch_func @kernels::@store blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
      args(%device : memref<4x32xi32>)
  func.call @print(%device, %c1) : (memref<4x32xi32>, index) -> ()
  gpu.launch_func @kernels::@f16 blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
      args(%device : memref<4x32xi32>)
  func.call @print(%device, %c4) : (memref<4x32xi32>, index) -> ()
  gpu.launch_func @kernels::@f16_sums blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
      args(%device : memref<4x32xi32>)
  func.call @print(%device, %c4) : (memref<4x32xi32>, index) -> ()
  gpu.launch_func @kernels::@bf16 blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
      args(%device : memref<4x32xi32>)
  func.call @print(%device, %c4) : (memref<4x32xi32>, index) -> ()
  gpu.launch_func @kernels::@s8 blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
      args(%device : memref<4x32xi32>)
  func.call @print(%device, %c4) : (memref<4x32xi32>, index) -> ()
  gpu.launch_func @kernels::@overflow blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
      args(%device : memref<4x32xi32>)
  func.call @print(%device, %c2) : (memref<4x32xi32>, index) -> ()
  gpu.launch_func @kernels::@e4m3 blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
      args(%device : memref<4x32xi32>)
  func.call @print(%device, %c4) : (memref<4x32xi32>, index) -> ()
  gpu.launch_func @kernels::@e5m2 blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
      args(%device : memref<4x32xi32>)
  func.call @print(%device, %c4) : (memref<4x32xi32>, index) -> ()
  gpu.dealloc %device : memref<4x32xi32>
  return
}

}
