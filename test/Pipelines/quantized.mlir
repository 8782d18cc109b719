// REQUIRES: ptxas

// Kernels of quantized caches, with scales of 16 and 32 bits, assemble and spill
// nothing.

// DEFINE: %{chip} =
// DEFINE: %{assemble} = kvcache-opt %s --kvcache-to-ptx=chip=%{chip} --emit-ptx -o %t.%{chip}.ptx && \
// DEFINE:   ptxas --verbose --gpu-name %{chip} %t.%{chip}.ptx -o %t.cubin 2>&1 | FileCheck %s

// CHECK-COUNT-5: ptxas info    : Compiling entry function
// CHECK-NOT: {{[^0-9][1-9][0-9]* bytes (spill|stack)}}

// REDEFINE: %{chip} = sm_80
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_89
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_90a
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_100a
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_120a
// RUN: %{assemble}

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#ragged = #kvcache.params<num_heads = 8, head_size = 80>
!e4m3 = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>
!e5m2 = !kvcache.paged<f8E5M2, #kv, page_size = 48, scale = f16, granularity = 24>
!int8 = !kvcache.paged<i8, #ragged, page_size = 16, scale = bf16, granularity = 32>
!scales = !kvcache.scales<!e4m3>
!rows = !kvcache.row_indices<rows = 128, page_size = 64>

gpu.module @kernels {
  gpu.func @dequantize_at_load(%e4m3: !e4m3, %e5m2: !e5m2, %int8: !int8, %b: index, %h: index,
                               %out: memref<?x16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %x = kvcache.load %e4m3[%b, %h, %t, %c0] : !e4m3 -> vector<16xf32>
    %y = kvcache.load %e5m2[%b, %h, %t, %c0] : !e5m2 -> vector<16xf32>
    %z = kvcache.load %int8[%b, %h, %t, %c0] : !int8 -> vector<16xf32>
    %xy = arith.addf %x, %y : vector<16xf32>
    %xyz = arith.addf %xy, %z : vector<16xf32>
    vector.store %xyz, %out[%t, %c0] {alignment = 16} : memref<?x16xf32>, vector<16xf32>
    gpu.return
  }

  gpu.func @elements_and_scales_apart(%k: !e4m3, %b: index, %h: index, %out: memref<?x16xbf16>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %t = gpu.thread_id x
    %w = kvcache.load_quantized %k[%b, %h, %t, %c0] : !e4m3 -> vector<16xf8E4M3FN>
    %s = kvcache.load_scale %k[%b, %h, %t, %c0] : !e4m3 -> f32
    %x = kvcache.dequantize %w, %s : vector<16xf8E4M3FN>, f32 -> vector<16xbf16>
    vector.store %x, %out[%t, %c0] {alignment = 16} : memref<?x16xbf16>, vector<16xbf16>
    kvcache.store %w, %k[%b, %c0, %t, %c0] : vector<16xf8E4M3FN>, !e4m3
    kvcache.store_scale %s, %k[%b, %c0, %t, %c0] : f32, !e4m3
    gpu.return
  }

  gpu.func @quantize_at_store(%in: memref<?x32xbf16>, %e4m3: !e4m3, %int8: !int8, %b: index, %h: index) kernel {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %x = vector.load %in[%t, %c0] {alignment = 16} : memref<?x32xbf16>, vector<32xbf16>
    kvcache.store_quantized %x, %e4m3[%b, %h, %t, %c0] : vector<32xbf16>, !e4m3
    kvcache.store_quantized %x, %int8[%b, %h, %t, %c0] : vector<32xbf16>, !int8
    gpu.return
  }

  gpu.func @quantize_over_lanes(%in: memref<?x8xbf16>, %e4m3: !e4m3, %b: index, %h: index) kernel {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %lane = gpu.lane_id upper_bound 32
    %t = gpu.block_id x
    %x = vector.load %in[%lane, %c0] {alignment = 16} : memref<?x8xbf16>, vector<8xbf16>
    %w, %s = kvcache.quantize %x {lanes = 4} : vector<8xbf16> -> vector<8xf8E4M3FN>, f32
    %in_head = arith.remui %lane, %c4 : index
    %d = arith.muli %in_head, %c8 : index
    kvcache.store %w, %e4m3[%b, %h, %t, %d] : vector<8xf8E4M3FN>, !e4m3
    %leads = arith.cmpi eq, %in_head, %c0 : index
    scf.if %leads {
      kvcache.store_scale %s, %e4m3[%b, %h, %t, %d] : f32, !e4m3
    }
    gpu.return
  }

  gpu.func @scales_as_an_operand(%k: !e4m3, %s: !scales, %b: index, %h: index, %out: memref<?xf32>,
                                 %rows_out: memref<?xindex>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %t = gpu.thread_id x
    %view = kvcache.scales_view %k : !e4m3
    %x = kvcache.load %s[%b, %h, %t, %c0] : !scales -> f32
    kvcache.store %x, %view[%b, %h, %t, %c0] : f32, !scales
    %base = kvcache.scales_base %k : !e4m3
    %y = memref.load %base[%c0, %t, %h, %c1] : memref<?x64x8x4xf32, strided<[?, 32, 4, 1], offset: ?>>
    %tile = kvcache.scales_block_tile %k[%b, %h, %c0, %c0]
        : !e4m3 -> memref<16x4xf32, strided<[32, 1], offset: ?>>
    %z = memref.load %tile[%t, %c1] : memref<16x4xf32, strided<[32, 1], offset: ?>>
    %sum = arith.addf %y, %z : f32
    memref.store %sum, %out[%t] : memref<?xf32>
    %n = kvcache.num_scale_rows %k : !e4m3
    %row = kvcache.scale_row_index %k[%b, %t] : !e4m3
    %tma_row, %page = kvcache.scale_tma_coords %k[%b, %t] : !e4m3
    %rows = kvcache.populate %s[%b, %c0] : !scales -> !rows
    %first = kvcache.get_row %rows[%t] : !rows
    %sum0 = arith.addi %n, %row : index
    %sum1 = arith.addi %tma_row, %page : index
    %sum2 = arith.addi %sum0, %sum1 : index
    %sum3 = arith.addi %sum2, %first : index
    memref.store %sum3, %rows_out[%t] : memref<?xindex>
    gpu.return
  }
}
