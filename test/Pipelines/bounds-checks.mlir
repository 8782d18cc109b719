// RUN: kvcache-opt %s --kvcache-bounds-checks --kvcache-to-ptx=chip=sm_90a --emit-ptx | FileCheck %s
// RUN: kvcache-opt %s --kvcache-bounds-checks --kvcache-to-ptx=chip=sm_90a --emit-ptx -o %t.ptx
// RUN: %python %S/Inputs/strings.py %t.ptx | FileCheck %s --check-prefix=TEXT
// RUN: kvcache-opt %examples/gather.mlir --kvcache-bounds-checks --kvcache-to-ptx=chip=sm_90a --emit-ptx | FileCheck %s --check-prefix=PARALLEL

// Parallel loops with checks become kernels as well.

// PARALLEL: .visible .entry gather_keys_kernel(
// PARALLEL: __assertfail


// CHECK-DAG:     .extern .func __assertfail
// CHECK-DAG:     .extern .func {{.*}} vprintf
// CHECK:         .visible .entry load(
// CHECK-DAG:     call.uni {{.*}} vprintf
// CHECK-DAG:     call.uni __assertfail
// CHECK-DAG:     ld.global.nc.v4.b32

// What is printed, and what the assertion says, have the line of the op.

// TEXT-DAG:      {{bounds-checks.mlir:[0-9]+:[0-9]+}}: error: 'kvcache.paged_view' op layer is out of range: %lld is not in [0, %lld)
// TEXT-DAG:      {{bounds-checks.mlir:[0-9]+:[0-9]+}}: error: 'kvcache.load' op sequence is out of range: %lld is not in [0, %lld)
// TEXT-DAG:      {{bounds-checks.mlir:[0-9]+:[0-9]+}}: error: 'kvcache.load' op page id is out of range: %lld is not in [0, %lld)
// TEXT-DAG:      {{^}}'kvcache.load' op page id is out of range{{$}}
// TEXT-DAG:      {{^.*}}bounds-checks.mlir{{$}}

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

gpu.module @kernels {
  gpu.func @load(%c: !collection, %layer: index, %b: index, %h: index, %t: index, %d: index, %out: memref<8xbf16>)
      kernel {
    %c0 = arith.constant 0 : index
    %k = kvcache.paged_view value %c[%layer] : !collection
    %v = kvcache.load %k[%b, %h, %t, %d] : !cache -> vector<8xbf16>
    vector.store %v, %out[%c0] : memref<8xbf16>, vector<8xbf16>
    gpu.return
  }
}
