// REQUIRES: ptxas
// UNSUPPORTED: quick

// What is compiled for a chip assembles for it, and spills nothing.

// DEFINE: %{chip} =
// DEFINE: %{assemble} = kvcache-opt %examples/gather.mlir --kvcache-to-ptx=chip=%{chip} --emit-ptx -o %t.gather.ptx && \
// DEFINE:   ptxas --verbose --gpu-name %{chip} %t.gather.ptx -o %t.cubin 2>&1 | FileCheck %s && \
// DEFINE:   kvcache-opt %s --kvcache-to-ptx=chip=%{chip} --emit-ptx -o %t.ptx && \
// DEFINE:   ptxas --verbose --gpu-name %{chip} %t.ptx -o %t.cubin 2>&1 | FileCheck %s

// CHECK:     ptxas info    : Compiling entry function
// CHECK-NOT: {{[^0-9][1-9][0-9]* bytes (spill|stack)}}

// REDEFINE: %{chip} = sm_80
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_86
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_87
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_88
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_89
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_90
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_90a
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_100
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_100a
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_100f
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_103
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_103a
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_103f
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_110
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_110a
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_110f
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_120
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_120a
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_120f
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_121
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_121a
// RUN: %{assemble}
// REDEFINE: %{chip} = sm_121f
// RUN: %{assemble}

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 48>
!e4m3 = !kvcache.paged<f8E4M3FN, #kv, page_size = 48>
!e5m2 = !kvcache.continuous<f8E5M2, #kv>
!bf16 = !kvcache.paged<bf16, #kv, page_size = 16>
!rows = !kvcache.row_indices<rows = 192, page_size = 16>

gpu.module @kernels {
  gpu.func @everything(%c: !collection, %layer: index, %other: !e5m2, %bf16: !bf16, %b: index, %n: index,
                       %rows_out: memref<?xindex>)
      workgroup(%shared: memref<8xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64})
      kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %thread = gpu.thread_id x
    %keys = kvcache.paged_view key %c[%layer] : !collection
    %values = kvcache.paged_view value %c[%layer] : !collection
    %length = kvcache.cache_length %keys[%b] : !e4m3
    scf.for %h = %c0 to %n step %c1 {
      %key = kvcache.load %keys[%b, %h, %thread, %c8] : !e4m3 -> vector<8xf32>
      %e5m2 = kvcache.load %other[%b, %h, %thread, %c8] : !e5m2 -> vector<8xf32>
      %sum = arith.addf %key, %e5m2 : vector<8xf32>
      %weight = math.exp %sum : vector<8xf32>
      vector.store %weight, %shared[%c0] : memref<8xf32, #gpu.address_space<workgroup>>, vector<8xf32>
      gpu.barrier
      %narrow = arith.truncf %weight : vector<8xf32> to vector<8xf8E4M3FN>
      kvcache.store %narrow, %values[%b, %h, %thread, %c8] : vector<8xf8E4M3FN>, !e4m3
    }
    %rows = kvcache.populate %bf16[%b, %length] : !bf16 -> !rows
    %row = kvcache.get_row %rows[%thread] : !rows
    memref.store %row, %rows_out[%thread] : memref<?xindex>
    gpu.return
  }
}
