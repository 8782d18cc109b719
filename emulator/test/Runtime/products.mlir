// Kernels that use products of tiles rightly, though not as the simplest ones do. Those that are wrong are in
// products-errors.mlir; products of all kinds are compared with NumPy in test_mma.py.

// DEFINE: %{libs} = %kvcache_emulator,%kvcache_runtime,%mlir_lib_dir/libmlir_c_runner_utils.so
// DEFINE: %{run} = mlir-runner -e main -entry-point-result=void -shared-libs=%{libs}
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// RUN: %{run} %t.mlir | FileCheck %s

!a = !kvcache.tile<64x16xbf16, swizzle_32b>
!b = !kvcache.tile<24x16xbf16, swizzle_32b>
!out = memref<128x4xf32>

module attributes {gpu.container_module} {

gpu.module @kernels {
  // Ones, but for the last 8 rows of B.
  func.func private @fill(%t: index, %a: !a, %b: !b) {
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %c128 = arith.constant 128 : index
    %n = gpu.block_dim x
    %ones = arith.constant dense<1.0> : vector<8xbf16>
    scf.for %i = %t to %c128 step %n {
      %row = arith.divui %i, %c2 : index
      %half = arith.remui %i, %c2 : index
      %column = arith.muli %half, %c8 : index
      kvcache.tile_store %ones, %a[%row, %column] : vector<8xbf16>, !a
      %is = arith.cmpi ult, %i, %c32 : index
      scf.if %is {
        kvcache.tile_store %ones, %b[%row, %column] : vector<8xbf16>, !b
      }
    }
    return
  }

  func.func private @save(%t: index, %x: vector<4xf32>, %out: !out) {
    %c0 = arith.constant 0 : index
    vector.store %x, %out[%t, %c0] : !out, vector<4xf32>
    return
  }

  // A loop carries a product in flight, and waits for the one before.
  gpu.func @carried(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %t = gpu.thread_id x
    %a = kvcache.alloc_tile : !a
    %b = kvcache.alloc_tile : !b
    func.call @fill(%t, %a, %b) : (index, !a, !b) -> ()
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    gpu.barrier
    %z = arith.constant dense<0.0> : vector<4xf32>
    %first = kvcache.mma %a[%c0, %c0], %b[%c0, %c0] : !a, !b -> vector<4xf32>
    %last, %sum = scf.for %i = %c0 to %c3 step %c1 iter_args(%d = %first, %s = %z) -> (vector<4xf32>, vector<4xf32>) {
      %next = kvcache.mma %a[%c0, %c0], %b[%c0, %c0] : !a, !b -> vector<4xf32>
      %done = kvcache.mma_wait %d pending 1 : vector<4xf32>
      %more = arith.addf %s, %done : vector<4xf32>
      scf.yield %next, %more : vector<4xf32>, vector<4xf32>
    }
    %done = kvcache.mma_wait %last : vector<4xf32>
    %all = arith.addf %sum, %done : vector<4xf32>
    func.call @save(%t, %all, %out) : (index, vector<4xf32>, !out) -> ()
    gpu.return
  }

  // Accumulators go from one to the next in flight, also out of a branch.
  gpu.func @chained(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %t = gpu.thread_id x
    %a = kvcache.alloc_tile : !a
    %b = kvcache.alloc_tile : !b
    func.call @fill(%t, %a, %b) : (index, !a, !b) -> ()
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    gpu.barrier
    %d = kvcache.mma %a[%c0, %c0], %b[%c0, %c0] : !a, !b -> vector<4xf32>
    %n = gpu.block_dim x
    %is = arith.cmpi ugt, %n, %c64 : index
    %e = scf.if %is -> vector<4xf32> {
      %f = kvcache.mma %a[%c0, %c0], %b[%c0, %c0] add %d : !a, !b -> vector<4xf32>
      scf.yield %f : vector<4xf32>
    } else {
      scf.yield %d : vector<4xf32>
    }
    %g = kvcache.mma %a[%c0, %c0], %b[%c0, %c0] add %e : !a, !b -> vector<4xf32>
    %done = kvcache.mma_wait %g : vector<4xf32>
    func.call @save(%t, %done, %out) : (index, vector<4xf32>, !out) -> ()
    gpu.return
  }

  // No instruction uses the second product, which is a group all the same.
  gpu.func @dead(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %a = kvcache.alloc_tile : !a
    %b = kvcache.alloc_tile : !b
    func.call @fill(%t, %a, %b) : (index, !a, !b) -> ()
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    gpu.barrier
    %d = kvcache.mma %a[%c0, %c0], %b[%c0, %c0] : !a, !b -> vector<4xf32>
    %e = kvcache.mma %a[%c0, %c0], %b[%c0, %c0] : !a, !b -> vector<4xf32>
    %done = kvcache.mma_wait %d pending 1 : vector<4xf32>
    func.call @save(%t, %done, %out) : (index, vector<4xf32>, !out) -> ()
    kvcache.mma_wait
    gpu.return
  }

  // After a wait and a barrier, the tile may be written.
  gpu.func @rewritten(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %t = gpu.thread_id x
    %a = kvcache.alloc_tile : !a
    %b = kvcache.alloc_tile : !b
    func.call @fill(%t, %a, %b) : (index, !a, !b) -> ()
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    gpu.barrier
    %d = kvcache.mma %a[%c0, %c0], %b[%c0, %c0] : !a, !b -> vector<4xf32>
    %e = kvcache.mma_wait %d : vector<4xf32>
    gpu.barrier
    %x = arith.constant dense<2.0> : vector<8xbf16>
    %is = arith.cmpi ult, %t, %c8 : index
    scf.if %is {
      kvcache.tile_store %x, %b[%t, %c0] : vector<8xbf16>, !b
      kvcache.tile_store %x, %b[%t, %c8] : vector<8xbf16>, !b
    }
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    gpu.barrier
    %f = kvcache.mma %a[%c0, %c0], %b[%c0, %c0] add %e : !a, !b -> vector<4xf32>
    %done = kvcache.mma_wait %f : vector<4xf32>
    func.call @save(%t, %done, %out) : (index, vector<4xf32>, !out) -> ()
    gpu.return
  }
}

// The sum of 512 elements.
func.func private @print_sum(%out: !out) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  %host = memref.alloc() : !out
  gpu.memcpy %host, %out : !out, !out
  %sum = scf.for %i = %c0 to %c128 step %c1 iter_args(%before = %zero) -> f32 {
    %row = scf.for %j = %c0 to %c4 step %c1 iter_args(%left = %before) -> f32 {
      %x = memref.load %host[%i, %j] : !out
      %more = arith.addf %left, %x : f32
      scf.yield %more : f32
    }
    scf.yield %row : f32
  }
  memref.dealloc %host : !out
  vector.print %sum : f32
  return
}

func.func @main() {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@carried blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1) args(%out : !out)
  call @print_sum(%out) : (!out) -> ()
  // CHECK: {{^}}32768{{$}}
  gpu.launch_func @kernels::@chained blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1) args(%out : !out)
  call @print_sum(%out) : (!out) -> ()
  // CHECK: {{^}}24576{{$}}
  gpu.launch_func @kernels::@dead blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1) args(%out : !out)
  call @print_sum(%out) : (!out) -> ()
  // CHECK: {{^}}8192{{$}}
  gpu.launch_func @kernels::@rewritten blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1) args(%out : !out)
  call @print_sum(%out) : (!out) -> ()
  // CHECK: {{^}}24576{{$}}
  gpu.dealloc %out : !out
  return
}

}
