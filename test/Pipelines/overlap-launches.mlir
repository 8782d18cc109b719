// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_90a | FileCheck %s
// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_90a | sed 's/\\0A/\n/g' | FileCheck %s --check-prefix=PTX
// RUN: kvcache-opt %s --kvcache-to-ptx="chip=sm_90a overlap-launches=false" | FileCheck %s --check-prefix=OFF
// RUN: kvcache-opt %s --kvcache-to-ptx="chip=sm_80,sm_90a" | FileCheck %s --check-prefix=OFF
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_100a tvm-ffi" | FileCheck %s --check-prefix=ONCE

// From sm_90 on, kernels of ops on whole caches wait for earlier launches before
// they access memory, which is then not memory that stays the same.

// OFF-NOT: griddepcontrol
// OFF-NOT: kvcache.programmatic

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!rows = memref<?x8x128xbf16>
!q = memref<?x32x128xbf16>

// CHECK-LABEL:   func.func @step
// CHECK-COUNT-7:   gpu.launch_func {{.*}}{kvcache.programmatic}
// CHECK:           return

// PTX:      .visible .entry
// PTX-NOT:  {{ld.global|st.global|cp.async|atom}}
// PTX:      griddepcontrol.wait;
// PTX-NEXT: {{.*}}griddepcontrol.launch_dependents;
// PTX-NOT:  ld.global.nc
// PTX:      .visible .entry
// PTX-NOT:  {{ld.global|st.global|cp.async|atom}}
// PTX:      griddepcontrol.wait;
// PTX-NEXT: {{.*}}griddepcontrol.launch_dependents;
// PTX-NOT:  ld.global.nc
// PTX:      .visible .entry
// PTX-NOT:  {{ld.global|st.global|cp.async|atom}}
// PTX:      griddepcontrol.wait;
// PTX-NEXT: {{.*}}griddepcontrol.launch_dependents;
// PTX-NOT:  ld.global.nc
// PTX:      .visible .entry
// PTX-NOT:  {{ld.global|st.global|cp.async|atom}}
// PTX:      griddepcontrol.wait;
// PTX-NEXT: {{.*}}griddepcontrol.launch_dependents;
// PTX-NOT:  ld.global.nc
// PTX:      .visible .entry
// PTX-NOT:  {{ld.global|st.global|cp.async|atom}}
// PTX:      griddepcontrol.wait;
// PTX-NEXT: {{.*}}griddepcontrol.launch_dependents;
// PTX-NOT:  ld.global.nc
// PTX:      .visible .entry
// PTX-NOT:  {{ld.global|st.global|cp.async|atom}}
// PTX:      griddepcontrol.wait;
// PTX-NEXT: {{.*}}griddepcontrol.launch_dependents;
// PTX-NOT:  ld.global.nc
// PTX:      .visible .entry
// PTX-NOT:  {{ld.global|st.global|cp.async|atom}}
// PTX:      griddepcontrol.wait;
// PTX-NEXT: {{.*}}griddepcontrol.launch_dependents;
// PTX-NOT:  ld.global.nc

// Host code waits once, after the last launch.
// ONCE-COUNT-7:  llvm.call @kvcacheLaunch
// ONCE:          llvm.call @kvcacheStreamSynchronize
// ONCE-NOT:      llvm.call @kvcacheStreamSynchronize
func.func @step(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %max_seq: i32,
                %max_cache: i32, %layer: index, %k: !rows, %v: !rows, %row_offsets: memref<?xi32>, %q: !q, %scale: f32,
                %out: !q, %w: memref<?xi8>, %dense: memref<?x?x8x128xbf16>, %pairs: memref<?x2xi32>,
                %splits: memref<2x?x32x128xbf16>, %logs: memref<2x?x32xf32>, %tokens: memref<?x?xi32>,
                %ids: memref<?x?xi32>, %lse: memref<?x32xf32>) {
  %cache = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
      : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  %keys = kvcache.paged_view key %cache[%layer] : !collection
  %values = kvcache.paged_view value %cache[%layer] : !collection
  kvcache.append %k, %v to %keys, %values rows %row_offsets : !rows, !rows, !cache, !cache, memref<?xi32>
  kvcache.attention %q, %keys, %values, %row_offsets, %scale outs(%out) workspace %w
      {causal, split = #kvcache.split<keys = 64, max = 4, rows = 4>, config = #kvcache.attention_config<rows = 64>}
      : !q, !cache, !cache, memref<?xi32>, f32, !q, memref<?xi8>
  kvcache.gather %keys outs(%dense) : !cache, memref<?x?x8x128xbf16>
  kvcache.copy %keys to %values : !cache, !cache
  kvcache.copy_pages %cache pairs %pairs : !collection, memref<?x2xi32>
  kvcache.merge_states %splits, %logs outs(%out, %lse) : memref<2x?x32x128xbf16>, memref<2x?x32xf32>, !q, memref<?x32xf32>
  kvcache.remap_rows %tokens, %keys rows %row_offsets outs(%ids) : memref<?x?xi32>, !cache, memref<?xi32>, memref<?x?xi32>
  return
}
