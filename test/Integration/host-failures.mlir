// RUN: kvcache-opt %s --kvcache-to-ptx="chip=sm_90a host=true" -o %t.mlir
// DEFINE: %{trace} = mlir-runner %t.mlir -entry-point-result=void -shared-libs=%mlir_lib_dir/libmlir_c_runner_utils.so,%kvcache_trace,%kvcache_runtime
// DEFINE: %{cuda} = mlir-runner %t.mlir -entry-point-result=void -shared-libs=%mlir_lib_dir/libmlir_c_runner_utils.so,%kvcache_cuda,%kvcache_runtime

// A call that fails prints where, what was done and why, and exits with status
// 1; nothing after it runs.

// RUN: not %{trace} -e page_distance 2>&1 | FileCheck %s --check-prefixes=FAILS,DISTANCE -DSOURCE=%s
// RUN: not %{trace} -e grid 2>&1 | FileCheck %s --check-prefixes=FAILS,GRID -DSOURCE=%s
// RUN: not env KVCACHE_CUDA_DRIVER=/nonexistent/libcuda.so %{cuda} -e no_driver 2>&1 | FileCheck %s --check-prefixes=FAILS,DRIVER -DSOURCE=%s
// RUN: %python %S/Inputs/expect_status.py 1 %{trace} -e grid

// FAILS-NOT: launch @
// DISTANCE: [[SOURCE]]:[[# @LINE + 37]]:8: descriptor: tensor map: expects stride 3 to be a multiple of 16 bytes, got 32776
// GRID:     [[SOURCE]]:[[# @LINE + 50]]:3: launch of @kernels::@nothing: expects the grid of kernel @kernels::@nothing to have sides from 0 to 2^31 - 1, got -1
// DRIVER:   [[SOURCE]]:[[# @LINE + 55]]:3: launch of @kernels::@nothing: no CUDA driver: tried to open /nonexistent/libcuda.so: {{.*}} (KVCACHE_CUDA_DRIVER may name another library)
// FAILS-NOT: {{.}}

#kv = #kvcache.params<num_heads = 8, head_size = 64>
!coll = !kvcache.paged_collection<bf16, #kv, page_size = 16>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>
!desc = !kvcache.tma_tile<64x1x16x1xbf16, swizzle_128b>
!blocks = memref<?x2x?x16x8x64xbf16, strided<[?, ?, ?, 512, 64, 1], offset: ?>>

module attributes {gpu.container_module} {

gpu.module @kernels {
  gpu.func @prefetch(%d: !desc) kernel {
    kvcache.tma_prefetch %d : !desc
    gpu.return
  }
  gpu.func @nothing() kernel {
    gpu.return
  }
}

func.func @launch(%distance: index) attributes {no_inline} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c0 = arith.constant 0 : index
  %max = arith.constant 16 : i32
  %bytes = memref.alloc() {alignment = 128} : memref<65536xbf16>
  %blocks = memref.reinterpret_cast %bytes to offset: [%c0], sizes: [2, 2, 1, 16, 8, 64],
      strides: [%distance, 8192, 8192, 512, 64, 1]
      : memref<65536xbf16> to memref<2x2x1x16x8x64xbf16, strided<[?, 8192, 8192, 512, 64, 1], offset: ?>>
  %open = memref.cast %blocks : memref<2x2x1x16x8x64xbf16, strided<[?, 8192, 8192, 512, 64, 1], offset: ?>> to !blocks
  %lut = memref.alloc(%c2, %c2) : memref<?x?xi32>
  %lengths = memref.alloc(%c2) : memref<?xi32>
  %coll = kvcache.paged_collection %open, %lengths, %lut, %max, %max : !blocks, memref<?xi32>, memref<?x?xi32> -> !coll
  %k = kvcache.paged_view key %coll[%c0] : !coll
  %d = kvcache.create_paged_tma_tile %k {rows = 16, columns = 64, swizzle = #kvcache.swizzle<swizzle_128b>} : !cache -> !desc
  gpu.launch_func @kernels::@prefetch blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%d : !desc)
  return
}

func.func @page_distance() {
  %distance = arith.constant 16388 : index
  call @launch(%distance) : (index) -> ()
  return
}

func.func @grid() {
  %c1 = arith.constant 1 : index
  %m1 = arith.constant -1 : index
  gpu.launch_func @kernels::@nothing blocks in (%m1, %c1, %c1) threads in (%c1, %c1, %c1)
  return
}

func.func @no_driver() {
  %c1 = arith.constant 1 : index
  gpu.launch_func @kernels::@nothing blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
  return
}

}
