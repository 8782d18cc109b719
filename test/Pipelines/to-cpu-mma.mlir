// RUN: kvcache-opt %s --kvcache-to-cpu="vector-bits=512 mma=amx" | mlir-translate --mlir-to-llvmir \
// RUN:   | opt -O2 -mtriple=x86_64-linux -mattr=+fma,+avx512bw,+avx512vl,+amx-bf16 \
// RUN:   | llc -O2 -mtriple=x86_64-linux -mattr=+fma,+avx512bw,+avx512vl,+amx-bf16 | FileCheck %s --check-prefix=AMX
// RUN: kvcache-opt %s --kvcache-to-cpu="vector-bits=512 mma=dot" | mlir-translate --mlir-to-llvmir \
// RUN:   | opt -O2 -mtriple=x86_64-linux -mattr=+fma,+avx512bw,+avx512vl,+avx512bf16 \
// RUN:   | llc -O2 -mtriple=x86_64-linux -mattr=+fma,+avx512bw,+avx512vl,+avx512bf16 | FileCheck %s --check-prefix=DOT

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// LLVM configures tiles, and keeps all of them in registers.
// AMX-LABEL: attend:
// AMX-NOT:     1024-byte
// AMX:         ldtilecfg
// AMX-COUNT-4: tilezero
// AMX-COUNT-4: tileloadd
// AMX-COUNT-4: tdpbf16ps
// AMX-NOT:     1024-byte
// AMX-COUNT-4: tilestored
// AMX-NOT:     1024-byte
// AMX:         tilerelease
//
// Few rows: 4 heads have products with 4 pieces of 4 keys, and then with 4 pairs of values of a piece. Many rows: 16 products
// for 4 vectors of queries and 4 keys.
// DOT-LABEL: attend:
// DOT-COUNT-64: vdpbf16ps
// DOT-NOT:      vdpbf16ps
// DOT:          jb
// DOT-COUNT-32: vdpbf16ps
// DOT-NOT:      vdpbf16ps
// DOT:          jb
// DOT-COUNT-16: vdpbf16ps
// DOT-NOT:      vdpbf16ps
// DOT:          jne
func.func @attend(%q: memref<?x32x128xbf16>, %keys: !cache, %values: !cache, %n: memref<?xi32>, %scale: f32,
                  %out: memref<?x32x128xbf16>) {
  kvcache.attention %q, %keys, %values, %n, %scale outs(%out) {causal}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}
