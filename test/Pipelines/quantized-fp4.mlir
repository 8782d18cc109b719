// REQUIRES: ptxas

// Kernels with elements of 4 bits and scales of 8 assemble and spill nothing.

// DEFINE: %{chip} =
// DEFINE: %{assemble} = kvcache-opt %s --kvcache-to-ptx=chip=%{chip} --emit-ptx -o %t.%{chip}.ptx && \
// DEFINE:   ptxas --verbose --gpu-name %{chip} %t.%{chip}.ptx -o %t.cubin 2>&1 | FileCheck %s

// CHECK-COUNT-4: ptxas info    : Compiling entry function
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
!nvfp4 = !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16>
!mxfp4 = !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E8M0FNU, granularity = 32>
!mxfp8 = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f8E8M0FNU, granularity = 32>
!scales = !kvcache.scales<!mxfp4>

gpu.module @kernels {
  gpu.func @dequantize_at_load(%nvfp4: !nvfp4, %mxfp4: !mxfp4, %mxfp8: !mxfp8, %b: index, %h: index, %g: f32,
                               %out: memref<?x16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %x = kvcache.load %nvfp4[%b, %h, %t, %c0] tensor_scale %g : !nvfp4 -> vector<16xf32>
    %y = kvcache.load %mxfp4[%b, %h, %t, %c0] : !mxfp4 -> vector<16xf32>
    %z = kvcache.load %mxfp8[%b, %h, %t, %c0] : !mxfp8 -> vector<16xf32>
    %xy = arith.addf %x, %y : vector<16xf32>
    %xyz = arith.addf %xy, %z : vector<16xf32>
    vector.store %xyz, %out[%t, %c0] {alignment = 16} : memref<?x16xf32>, vector<16xf32>
    gpu.return
  }

  gpu.func @elements_and_scales_apart(%k: !nvfp4, %b: index, %h: index, %out: memref<?x16xbf16>) kernel {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %w = kvcache.load_quantized %k[%b, %h, %t, %c0] : !nvfp4 -> vector<16xf4E2M1FN>
    %s = kvcache.load_scale %k[%b, %h, %t, %c0] : !nvfp4 -> f8E4M3FN
    %x = kvcache.dequantize %w, %s : vector<16xf4E2M1FN>, f8E4M3FN -> vector<16xbf16>
    vector.store %x, %out[%t, %c0] {alignment = 16} : memref<?x16xbf16>, vector<16xbf16>
    kvcache.store %w, %k[%b, %c0, %t, %c0] : vector<16xf4E2M1FN>, !nvfp4
    kvcache.store_scale %s, %k[%b, %c0, %t, %c0] : f8E4M3FN, !nvfp4
    gpu.return
  }

  gpu.func @quantize_at_store(%in: memref<?x32xbf16>, %nvfp4: !nvfp4, %mxfp4: !mxfp4, %mxfp8: !mxfp8, %b: index,
                              %h: index, %g: f32) kernel {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %x = vector.load %in[%t, %c0] {alignment = 16} : memref<?x32xbf16>, vector<32xbf16>
    kvcache.store_quantized %x, %nvfp4[%b, %h, %t, %c0] tensor_scale %g : vector<32xbf16>, !nvfp4
    kvcache.store_quantized %x, %mxfp4[%b, %h, %t, %c0] : vector<32xbf16>, !mxfp4
    kvcache.store_quantized %x, %mxfp8[%b, %h, %t, %c0] : vector<32xbf16>, !mxfp8
    gpu.return
  }

  gpu.func @scales_as_an_operand(%s: !scales, %b: index, %h: index, %out: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %x = kvcache.load %s[%b, %h, %t, %c0] : !scales -> f32
    memref.store %x, %out[%t] : memref<?xf32>
    gpu.return
  }
}
