// Kernels that read bytes which are uninitialized, and discard what depends on
// them: they are right. Of 32 lanes 5 have a valid row. Kernels that use such
// values are in poison-errors.mlir.

// DEFINE: %{libs} = %kvcache_emulator,%kvcache_runtime,%mlir_lib_dir/libmlir_c_runner_utils.so,%mlir_lib_dir/libmlir_runner_utils.so
// DEFINE: %{run} = mlir-runner -e main -entry-point-result=void -shared-libs=%{libs}
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_100a" | %{run} | FileCheck %s
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_100a meter=true" | env KVCACHE_EMULATOR_SEED=5 %{run} -O3 | FileCheck %s
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_100a sanitize=false" | %{run} | FileCheck %s

!tile = memref<32x4xi32, #gpu.address_space<workgroup>>
!out = memref<32xi32>
!pair = !llvm.struct<(i32, i32)>
!acc = !llvm.struct<(f32, f32, f32, f32)>

module attributes {gpu.container_module} {

gpu.module @kernels {
  // The first 5 rows have four times 10 + their number.
  func.func private @fill(%tile: !tile, %lane: index) -> i1 {
    %c0 = arith.constant 0 : index
    %c5 = arith.constant 5 : index
    %ten = arith.constant 10 : i32
    %all = arith.constant -1 : i32
    %is_valid = arith.cmpi ult, %lane, %c5 : index
    %number = arith.index_cast %lane : index to i32
    %value = arith.addi %number, %ten : i32
    %row = vector.broadcast %value : i32 to vector<4xi32>
    scf.if %is_valid {
      vector.store %row, %tile[%lane, %c0] {alignment = 16 : i64} : !tile, vector<4xi32>
    }
    nvvm.bar.warp.sync %all : i32
    return %is_valid : i1
  }

  gpu.func @vectors_chosen_by_lane(%out: !out) workgroup(%tile: !tile) kernel {
    %c0 = arith.constant 0 : index
    %lane = gpu.thread_id x
    %zeros = arith.constant dense<0> : vector<4xi32>
    %is_valid = func.call @fill(%tile, %lane) : (!tile, index) -> i1
    %row = vector.load %tile[%lane, %c0] {alignment = 16 : i64} : !tile, vector<4xi32>
    %double = arith.addi %row, %row : vector<4xi32>
    %chosen = arith.select %is_valid, %double, %zeros : vector<4xi32>
    %sum = vector.reduction <add>, %chosen : vector<4xi32> into i32
    memref.store %sum, %out[%lane] : !out
    gpu.return
  }

  // Control goes around the use.
  gpu.func @used_after_a_branch(%out: !out) workgroup(%tile: !tile) kernel {
    %c0 = arith.constant 0 : index
    %lane = gpu.thread_id x
    %is_valid = func.call @fill(%tile, %lane) : (!tile, index) -> i1
    %word = memref.load %tile[%lane, %c0] : !tile
    %next = arith.addi %word, %word : i32
    scf.if %is_valid {
      memref.store %next, %out[%lane] : !out
    }
    gpu.return
  }

  // Bits that an `and` clears, shifts that drop them, and an `or` that
  // sets them.
  gpu.func @bits_masked_away(%out: !out) workgroup(%tile: !tile) kernel {
    %lane = gpu.thread_id x
    %c16 = arith.constant 16 : i32
    %upper = arith.constant 0xffff0000 : i32
    %number = arith.index_cast %lane : index to i16
    %halves = memref.extract_aligned_pointer_as_index %tile : !tile -> index
    %address = arith.index_cast %halves : index to i64
    %base = llvm.inttoptr %address : i64 to !llvm.ptr<3>
    %at = arith.index_cast %lane : index to i32
    %place = llvm.getelementptr %base[%at] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %number, %place : i16, !llvm.ptr<3>
    %word = llvm.load %place : !llvm.ptr<3> -> i32
    %shifted = arith.shli %word, %c16 : i32
    %back = arith.shrui %shifted, %c16 : i32
    %set = arith.ori %word, %upper : i32
    %low = arith.xori %set, %upper : i32
    %sum = arith.addi %back, %low : i32
    memref.store %sum, %out[%lane] : !out
    gpu.return
  }

  // Lanes read from the lanes that have valid rows, and a vote counts only
  // those.
  gpu.func @exchanged_by_valid_lanes(%out: !out) workgroup(%tile: !tile) kernel {
    %c0 = arith.constant 0 : index
    %lane = gpu.thread_id x
    %all = arith.constant -1 : i32
    %clamp = arith.constant 31 : i32
    %twelve = arith.constant 12 : i32
    %two = arith.constant 2 : i32
    %is_valid = func.call @fill(%tile, %lane) : (!tile, index) -> i1
    %word = memref.load %tile[%lane, %c0] : !tile
    %third = nvvm.shfl.sync idx %all, %word, %two, %clamp : i32 -> i32
    %is_large = arith.cmpi ugt, %word, %twelve : i32
    %counts = arith.andi %is_valid, %is_large : i1
    %ballot = nvvm.vote.sync ballot %all, %counts -> i32
    %sum = arith.addi %third, %ballot : i32
    memref.store %sum, %out[%lane] : !out
    gpu.return
  }

  // Through shared memory, a variable of the thread and a loop.
  gpu.func @kept_for_later(%out: !out) workgroup(%tile: !tile, %copy: !tile) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %zero = arith.constant 0 : i32
    %lane = gpu.thread_id x
    %mine = memref.alloca() : memref<2xi32>
    %is_valid = func.call @fill(%tile, %lane) : (!tile, index) -> i1
    %row = vector.load %tile[%lane, %c0] {alignment = 16 : i64} : !tile, vector<4xi32>
    vector.store %row, %copy[%lane, %c0] {alignment = 16 : i64} : !tile, vector<4xi32>
    %word = memref.load %copy[%lane, %c1] : !tile
    %last = scf.for %i = %c0 to %c2 step %c1 iter_args(%carried = %word) -> i32 {
      memref.store %carried, %mine[%i] : memref<2xi32>
      %kept = memref.load %mine[%i] : memref<2xi32>
      %next = arith.addi %kept, %kept : i32
      scf.yield %next : i32
    }
    %result = arith.select %is_valid, %last, %zero : i32
    // What has been stored over poison is written.
    memref.store %result, %copy[%lane, %c0] : !tile
    memref.store %result, %mine[%c0] : memref<2xi32>
    %first = memref.load %copy[%lane, %c0] : !tile
    %second = memref.load %mine[%c0] : memref<2xi32>
    %sum = arith.addi %first, %second : i32
    memref.store %sum, %out[%lane] : !out
    gpu.return
  }

  // Scores of 8 tokens, of which 5 are valid: a column is a token.
  gpu.func @columns_of_a_product(%out: !out) workgroup(%tile: memref<16x8xf16, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %all = arith.constant -1 : i32
    %none = arith.constant 0.0 : f32
    %ones = arith.constant dense<1.0> : vector<2xf16>
    %row_of_ones = arith.constant dense<1.0> : vector<8xf16>
    %lane = gpu.thread_id x
    // Rows 0 to 7 are the first halves of tokens, rows 8 to 15 the others.
    %row = arith.remui %lane, %c16 : index
    %token = arith.remui %lane, %c8 : index
    %is_row = arith.cmpi ult, %lane, %c16 : index
    %is_token = arith.cmpi ult, %token, %c5 : index
    %is_valid = arith.andi %is_row, %is_token : i1
    scf.if %is_valid {
      vector.store %row_of_ones, %tile[%row, %c0] {alignment = 16 : i64} : memref<16x8xf16, #gpu.address_space<workgroup>>, vector<8xf16>
    }
    nvvm.bar.warp.sync %all : i32
    %base = memref.extract_aligned_pointer_as_index %tile : memref<16x8xf16, #gpu.address_space<workgroup>> -> index
    %address = arith.index_cast %base : index to i64
    %start = llvm.inttoptr %address : i64 to !llvm.ptr<3>
    %number = arith.index_cast %row : index to i32
    %place = llvm.getelementptr %start[%number] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<16 x i8>
    %b = nvvm.ldmatrix %place {num = 2 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !pair
    %b0 = llvm.extractvalue %b[0] : !pair
    %b1 = llvm.extractvalue %b[1] : !pair
    %h0 = llvm.bitcast %b0 : i32 to vector<2xf16>
    %h1 = llvm.bitcast %b1 : i32 to vector<2xf16>
    %d = nvvm.mma.sync A[%ones, %ones, %ones, %ones] B[%h0, %h1] C[%none, %none, %none, %none]
        {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>}
        : (vector<2xf16>, vector<2xf16>, f32) -> !acc
    %even = llvm.extractvalue %d[0] : !acc
    %odd = llvm.extractvalue %d[1] : !acc
    %quad = arith.remui %lane, %c4 : index
    %column = arith.muli %quad, %c2 : index
    %next_column = arith.addi %column, %c1 : index
    %is_even_valid = arith.cmpi ult, %column, %c5 : index
    %is_odd_valid = arith.cmpi ult, %next_column, %c5 : index
    %masked_even = arith.select %is_even_valid, %even, %none : f32
    %masked_odd = arith.select %is_odd_valid, %odd, %none : f32
    %sum = arith.addf %masked_even, %masked_odd : f32
    %result = arith.fptosi %sum : f32 to i32
    memref.store %result, %out[%lane] : !out
    gpu.return
  }

  // The halves of registers are rows of two tokens, of which the last is alone.
  gpu.func @half_of_a_register(%out: !out) workgroup(%tile: memref<8x8xi16, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %all = arith.constant -1 : i32
    %low = arith.constant 0xffff : i32
    %zero = arith.constant 0 : i32
    %fives = arith.constant dense<5> : vector<8xi16>
    %lane = gpu.thread_id x
    %row = arith.remui %lane, %c8 : index
    %is_valid = arith.cmpi ult, %lane, %c3 : index
    scf.if %is_valid {
      vector.store %fives, %tile[%row, %c0] {alignment = 16 : i64} : memref<8x8xi16, #gpu.address_space<workgroup>>, vector<8xi16>
    }
    nvvm.bar.warp.sync %all : i32
    %base = memref.extract_aligned_pointer_as_index %tile : memref<8x8xi16, #gpu.address_space<workgroup>> -> index
    %address = arith.index_cast %base : index to i64
    %start = llvm.inttoptr %address : i64 to !llvm.ptr<3>
    %number = arith.index_cast %row : index to i32
    %place = llvm.getelementptr %start[%number] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<16 x i8>
    %register = nvvm.ldmatrix %place {num = 1 : i32, layout = #nvvm.mma_layout<col>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> i32
    // Lane 4 g + q has the rows 2 q and 2 q + 1: that of 1 has the last row.
    %c1 = arith.constant 1 : index
    %quad = arith.remui %lane, %c4 : index
    %is_first = arith.cmpi eq, %quad, %c0 : index
    %is_second = arith.cmpi eq, %quad, %c1 : index
    %half = arith.andi %register, %low : i32
    %one_row = arith.select %is_second, %half, %zero : i32
    %rows = arith.select %is_first, %register, %one_row : i32
    memref.store %rows, %out[%lane] : !out
    gpu.return
  }

  // Of 16 bytes that a copy brings, and of those that another one reads, only
  // the first 4 are used.
  gpu.func @copied_and_unused(%out: !out, %scratch: !out) workgroup(%tile: !tile) kernel {
    %c0 = arith.constant 0 : index
    %seven = arith.constant 7 : i32
    %bytes = arith.constant 16 : i32
    %first_word = arith.constant 0x000f : i16
    memref.store %seven, %scratch[%c0] : !out
    %scratch_index = memref.extract_aligned_pointer_as_index %scratch : !out -> index
    %scratch_address = arith.index_cast %scratch_index : index to i64
    %from = llvm.inttoptr %scratch_address : i64 to !llvm.ptr<1>
    %tile_index = memref.extract_aligned_pointer_as_index %tile : !tile -> index
    %tile_address = arith.index_cast %tile_index : index to i64
    %shared = llvm.inttoptr %tile_address : i64 to !llvm.ptr<3>
    nvvm.cp.async.shared.global %shared, %from, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    %row = vector.load %tile[%c0, %c0] {alignment = 16 : i64} : !tile, vector<4xi32>
    %none = arith.constant dense<0> : vector<4xi32>
    %is_first = arith.constant dense<[true, false, false, false]> : vector<4xi1>
    %chosen = arith.select %is_first, %row, %none : vector<4xi1>, vector<4xi32>
    vector.store %chosen, %out[%c0] {alignment = 16 : i64} : !out, vector<4xi32>
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
    %out_index = memref.extract_aligned_pointer_as_index %out : !out -> index
    %out_address = arith.index_cast %out_index : index to i64
    %out_pointer = llvm.inttoptr %out_address : i64 to !llvm.ptr<1>
    %to = llvm.getelementptr %out_pointer[4] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    nvvm.cp.async.bulk.global.shared.cta %to, %shared, %bytes byte_mask = %first_word : !llvm.ptr<1>, !llvm.ptr<3>
    nvvm.cp.async.bulk.commit.group
    nvvm.cp.async.bulk.wait_group 0
    gpu.return
  }
}

func.func private @printMemrefI32(memref<*xi32>) attributes {llvm.emit_c_interface}

func.func @print(%out: !out) {
  %host = memref.alloc() : !out
  gpu.memcpy %host, %out : !out, !out
  %any = memref.cast %host : !out to memref<*xi32>
  call @printMemrefI32(%any) : (memref<*xi32>) -> ()
  memref.dealloc %host : !out
  return
}

func.func @main() {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0 : i32
  %out = gpu.alloc() : !out

  // CHECK: [80,  88,  96,  104,  112,  0,  0,
  gpu.launch_func @kernels::@vectors_chosen_by_lane blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%out : !out)
  call @print(%out) : (!out) -> ()
  // CHECK: [20,  22,  24,  26,  28,  0,  0,
  gpu.memset %out, %zero : !out, i32
  gpu.launch_func @kernels::@used_after_a_branch blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%out : !out)
  call @print(%out) : (!out) -> ()
  // CHECK: [0,  2,  4,  6,  8,  10,  12,
  gpu.launch_func @kernels::@bits_masked_away blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%out : !out)
  call @print(%out) : (!out) -> ()
  // CHECK: [36,  36,  36,  36,  36,  36,
  gpu.launch_func @kernels::@exchanged_by_valid_lanes blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%out : !out)
  call @print(%out) : (!out) -> ()
  // CHECK: [80,  88,  96,  104,  112,  0,  0,
  gpu.launch_func @kernels::@kept_for_later blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%out : !out)
  call @print(%out) : (!out) -> ()
  // CHECK: [32,  32,  16,  0,  32,  32,  16,  0,
  gpu.launch_func @kernels::@columns_of_a_product blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%out : !out)
  call @print(%out) : (!out) -> ()
  // CHECK: [327685,  5,  0,  0,  327685,  5,  0,  0,
  gpu.launch_func @kernels::@half_of_a_register blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%out : !out)
  call @print(%out) : (!out) -> ()
  // CHECK: [7,  0,  0,  0,  7,  0,  0,  0,  0,
  %scratch = gpu.alloc() : !out
  gpu.memset %out, %zero : !out, i32
  gpu.launch_func @kernels::@copied_and_unused blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%out : !out, %scratch : !out)
  call @print(%out) : (!out) -> ()
  return
}

}
