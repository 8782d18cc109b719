// Our passes and pipelines in a stock mlir-opt.

// RUN: mlir-opt %s %kvcache_plugin | FileCheck %s --check-prefix=DIALECT
// RUN: mlir-opt %s %kvcache_plugin --pass-pipeline="builtin.module(kvcache-hoist-lookups)" | FileCheck %s --check-prefix=HOISTED
// RUN: mlir-opt %s %kvcache_plugin --pass-pipeline="builtin.module(convert-kvcache-to-memref)" | FileCheck %s --check-prefix=MEMREF --implicit-check-not=kvcache.
// RUN: mlir-opt %s %kvcache_plugin --pass-pipeline="builtin.module(kvcache-to-cpu)" | FileCheck %s --check-prefix=CPU
// RUN: mlir-opt %s %kvcache_plugin --pass-pipeline="builtin.module(kvcache-to-ptx{chip=sm_90a})" | FileCheck %s --check-prefix=PTX
// RUN: mlir-opt %s %kvcache_plugin --pass-pipeline="builtin.module(kvcache-to-emulator{chip=sm_90a})" | FileCheck %s --check-prefix=EMULATOR

// RUN: mlir-opt %s %kvcache_plugin --emit-bytecode | kvcache-opt | FileCheck %s --check-prefix=DIALECT
// RUN: not mlir-opt %s 2>&1 | FileCheck %s --check-prefix=WITHOUT

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// WITHOUT: error:
// DIALECT: kvcache.paged_view key
// DIALECT: kvcache.load
// HOISTED: %[[PAGE:.*]] = kvcache.page_id
// HOISTED: scf.for
// HOISTED:   kvcache.load {{.*}} page %[[PAGE]]
// MEMREF:  vector.load
// CPU:     llvm.func @copy_head(
// PTX:     gpu.binary {{.*}} kvcache.kernels = {{.*}}.visible .entry copy_head_kernel(
// EMULATOR: llvm.func @_mlir_ciface_copy_head(
func.func @copy_head(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                     %max_seq: i32, %max_cache: i32, %out: memref<?x128xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c128 = arith.constant 128 : index
  %n = memref.dim %out, %c0 : memref<?x128xbf16>
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
      : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  scf.parallel (%b) = (%c0) to (%n) step (%c1) {
    scf.parallel (%i) = (%c0) to (%c1) step (%c1) {
      %k = kvcache.paged_view key %c[%c0] : !collection
      scf.for %d = %c0 to %c128 step %c8 {
        %v = kvcache.load %k[%b, %c0, %c0, %d] : !cache -> vector<8xbf16>
        vector.store %v, %out[%b, %d] {alignment = 16} : memref<?x128xbf16>, vector<8xbf16>
      }
    }
  }
  return
}
