// Kernels that use wgmma rightly, though not as the simplest ones do. Those that
// are wrong are in wgmma-errors.mlir; products of all kinds are compared with
// NumPy in test_wgmma.py.

// DEFINE: %{libs} = %kvcache_emulator,%kvcache_runtime,%mlir_lib_dir/libmlir_c_runner_utils.so
// DEFINE: %{run} = mlir-runner -e main -entry-point-result=void -shared-libs=%{libs}
// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// RUN: %{run} %t.mlir | FileCheck %s
// RUN: env KVCACHE_EMULATOR_SEED=5 %{run} %t.mlir | FileCheck %s
// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_90a sanitize=false meter=true" | %{run} | FileCheck %s

// PRELUDE: wgmma.mlir

!acc = !llvm.struct<(f32, f32, f32, f32)>
!out = memref<128x4xf32>

module attributes {gpu.container_module} {

gpu.module @kernels {
  // Accumulators of one shape need no fence between them.
  gpu.func @chained(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    nvvm.wgmma.fence.aligned
    %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    %d1 = nvvm.wgmma.mma_async %a, %b, %d, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    %d2 = nvvm.wgmma.mma_async %a, %b, %d1, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    func.call @save(%t, %d2, %out) : (index, !acc, !out) -> ()
    gpu.return
  }

  // The older one is read while the younger one is in flight.
  gpu.func @two_groups_in_flight(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    nvvm.wgmma.fence.aligned
    %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    %d1 = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 1
    %x = llvm.extractvalue %d[0] : !acc
    %twice = llvm.fadd %x, %x : f32
    nvvm.wgmma.wait.group.sync.aligned 0
    %y = llvm.extractvalue %d1[0] : !acc
    %z = llvm.extractvalue %d[1] : !acc
    %w = llvm.fadd %y, %z : f32
    %e0 = llvm.insertvalue %twice, %d1[0] : !acc
    %e1 = llvm.insertvalue %w, %e0[1] : !acc
    %e2 = llvm.insertvalue %twice, %e1[2] : !acc
    %e3 = llvm.insertvalue %w, %e2[3] : !acc
    func.call @save(%t, %e3, %out) : (index, !acc, !out) -> ()
    gpu.return
  }

  // A loop carries accumulators in flight, and waits for the group before the last.
  gpu.func @carried(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    nvvm.wgmma.fence.aligned
    %d = scf.for %i = %c0 to %c3 step %c1 iter_args(%acc = %zero) -> !acc {
      %n = nvvm.wgmma.mma_async %a, %b, %acc, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
      nvvm.wgmma.commit.group.sync.aligned
      nvvm.wgmma.wait.group.sync.aligned 1
      scf.yield %n : !acc
    }
    nvvm.wgmma.wait.group.sync.aligned 0
    func.call @save(%t, %d, %out) : (index, !acc, !out) -> ()
    gpu.return
  }

  // Vectors and structures only rename registers.
  gpu.func @in_vectors(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    nvvm.wgmma.fence.aligned
    %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    %v0 = llvm.mlir.undef : vector<4xf32>
    %i0 = llvm.mlir.constant(0 : i32) : i32
    %x0 = llvm.extractvalue %d[0] : !acc
    %v1 = llvm.insertelement %x0, %v0[%i0 : i32] : vector<4xf32>
    %i1 = llvm.mlir.constant(1 : i32) : i32
    %x1 = llvm.extractvalue %d[1] : !acc
    %v2 = llvm.insertelement %x1, %v1[%i1 : i32] : vector<4xf32>
    %i2 = llvm.mlir.constant(2 : i32) : i32
    %x2 = llvm.extractvalue %d[2] : !acc
    %v3 = llvm.insertelement %x2, %v2[%i2 : i32] : vector<4xf32>
    %i3 = llvm.mlir.constant(3 : i32) : i32
    %x3 = llvm.extractvalue %d[3] : !acc
    %v4 = llvm.insertelement %x3, %v3[%i3 : i32] : vector<4xf32>
    %s0 = llvm.mlir.undef : !acc
    %y0 = llvm.extractelement %v4[%i0 : i32] : vector<4xf32>
    %s1 = llvm.insertvalue %y0, %s0[0] : !acc
    %y1 = llvm.extractelement %v4[%i1 : i32] : vector<4xf32>
    %s2 = llvm.insertvalue %y1, %s1[1] : !acc
    %y2 = llvm.extractelement %v4[%i2 : i32] : vector<4xf32>
    %s3 = llvm.insertvalue %y2, %s2[2] : !acc
    %y3 = llvm.extractelement %v4[%i3 : i32] : vector<4xf32>
    %s4 = llvm.insertvalue %y3, %s3[3] : !acc
    %d1 = nvvm.wgmma.mma_async %a, %b, %s4, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    func.call @save(%t, %d1, %out) : (index, !acc, !out) -> ()
    gpu.return
  }

  gpu.func @changed_between_fences(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    nvvm.wgmma.fence.aligned
    %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    %x0 = llvm.extractvalue %d[0] : !acc
    %y0 = llvm.fadd %x0, %x0 : f32
    %e0 = llvm.insertvalue %y0, %d[0] : !acc
    %x1 = llvm.extractvalue %d[1] : !acc
    %y1 = llvm.fadd %x1, %x1 : f32
    %e1 = llvm.insertvalue %y1, %e0[1] : !acc
    %x2 = llvm.extractvalue %d[2] : !acc
    %y2 = llvm.fadd %x2, %x2 : f32
    %e2 = llvm.insertvalue %y2, %e1[2] : !acc
    %x3 = llvm.extractvalue %d[3] : !acc
    %y3 = llvm.fadd %x3, %x3 : f32
    %e3 = llvm.insertvalue %y3, %e2[3] : !acc
    nvvm.wgmma.fence.aligned
    %d1 = nvvm.wgmma.mma_async %a, %b, %e3, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    func.call @save(%t, %d1, %out) : (index, !acc, !out) -> ()
    gpu.return
  }

  // Zeros for the second product, when all warps have read the ones.
  gpu.func @written_after_a_barrier(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    nvvm.wgmma.fence.aligned
    %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    nvvm.barrier0
    %ops = llvm.mlir.addressof @ops : !llvm.ptr<3>
    %none = llvm.mlir.constant(0 : i32) : i32
    %n = arith.index_cast %t : index to i32
    %n0 = llvm.mlir.constant(0 : i32) : i32
    %m0 = llvm.add %n, %n0 : i32
    %p0 = llvm.getelementptr %ops[%m0] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %none, %p0 : i32, !llvm.ptr<3>
    %n1 = llvm.mlir.constant(128 : i32) : i32
    %m1 = llvm.add %n, %n1 : i32
    %p1 = llvm.getelementptr %ops[%m1] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %none, %p1 : i32, !llvm.ptr<3>
    %n2 = llvm.mlir.constant(256 : i32) : i32
    %m2 = llvm.add %n, %n2 : i32
    %p2 = llvm.getelementptr %ops[%m2] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %none, %p2 : i32, !llvm.ptr<3>
    %n3 = llvm.mlir.constant(384 : i32) : i32
    %m3 = llvm.add %n, %n3 : i32
    %p3 = llvm.getelementptr %ops[%m3] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %none, %p3 : i32, !llvm.ptr<3>
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
    nvvm.barrier0
    nvvm.wgmma.fence.aligned
    %d1 = nvvm.wgmma.mma_async %a, %b, %d, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    func.call @save(%t, %d1, %out) : (index, !acc, !out) -> ()
    gpu.return
  }

  // A warp reads 16 rows of A only: those of others need no order.
  gpu.func @rows_of_the_own_warp(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    nvvm.wgmma.fence.aligned
    %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    %ops = llvm.mlir.addressof @ops : !llvm.ptr<3>
    %none = llvm.mlir.constant(0 : i32) : i32
    %all = llvm.mlir.constant(-1 : i32) : i32
    nvvm.bar.warp.sync %all : i32
    %n = arith.index_cast %t : index to i32
    %c4 = llvm.mlir.constant(4 : i32) : i32
    %first = llvm.mul %n, %c4 : i32
    %n0 = llvm.mlir.constant(0 : i32) : i32
    %m0 = llvm.add %first, %n0 : i32
    %p0 = llvm.getelementptr %ops[%m0] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %none, %p0 : i32, !llvm.ptr<3>
    %n1 = llvm.mlir.constant(1 : i32) : i32
    %m1 = llvm.add %first, %n1 : i32
    %p1 = llvm.getelementptr %ops[%m1] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %none, %p1 : i32, !llvm.ptr<3>
    %n2 = llvm.mlir.constant(2 : i32) : i32
    %m2 = llvm.add %first, %n2 : i32
    %p2 = llvm.getelementptr %ops[%m2] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %none, %p2 : i32, !llvm.ptr<3>
    %n3 = llvm.mlir.constant(3 : i32) : i32
    %m3 = llvm.add %first, %n3 : i32
    %p3 = llvm.getelementptr %ops[%m3] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %none, %p3 : i32, !llvm.ptr<3>
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
    nvvm.bar.warp.sync %all : i32
    nvvm.wgmma.fence.aligned
    %d1 = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    func.call @save(%t, %d1, %out) : (index, !acc, !out) -> ()
    gpu.return
  }

  // Row 5 of D, in lanes 20 to 23 of warp 0, is not used: 16 elements are zeros.
  gpu.func @unwritten_row_left_out(%out: !out) kernel {
    %zero = llvm.mlir.zero : !acc
    %t, %a, %b = func.call @fill_but_row_5() : () -> (index, i64, i64)
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
    nvvm.barrier0
    nvvm.wgmma.fence.aligned
    %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    %c20 = arith.constant 20 : index
    %c24 = arith.constant 24 : index
    %below = arith.cmpi ult, %t, %c20 : index
    %above = arith.cmpi uge, %t, %c24 : index
    %is = arith.ori %below, %above : i1
    scf.if %is {
      func.call @save(%t, %d, %out) : (index, !acc, !out) -> ()
    } else {
      func.call @save(%t, %zero, %out) : (index, !acc, !out) -> ()
    }
    gpu.return
  }

  // Each goes its own way.
  gpu.func @two_warpgroups(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    %c128 = arith.constant 128 : index
    %is = arith.cmpi ult, %t, %c128 : index
    %n = llvm.mlir.undef : !acc
    scf.if %is {
      nvvm.wgmma.fence.aligned
      %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
      nvvm.wgmma.commit.group.sync.aligned
      nvvm.wgmma.wait.group.sync.aligned 0
      func.call @save(%t, %d, %out) : (index, !acc, !out) -> ()
    } else {
      nvvm.wgmma.fence.aligned
      %d = nvvm.wgmma.mma_async %a, %b, %n, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<zero>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
      %d1 = nvvm.wgmma.mma_async %a, %b, %d, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
      nvvm.wgmma.commit.group.sync.aligned
      nvvm.wgmma.wait.group.sync.aligned 0
    }
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
  %c256 = arith.constant 256 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@chained blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1) args(%out : !out)
  call @print_sum(%out) : (!out) -> ()
  // CHECK: {{^}}24576{{$}}
  gpu.launch_func @kernels::@two_groups_in_flight blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1) args(%out : !out)
  call @print_sum(%out) : (!out) -> ()
  // CHECK: {{^}}16384{{$}}
  gpu.launch_func @kernels::@carried blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1) args(%out : !out)
  call @print_sum(%out) : (!out) -> ()
  // CHECK: {{^}}24576{{$}}
  gpu.launch_func @kernels::@in_vectors blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1) args(%out : !out)
  call @print_sum(%out) : (!out) -> ()
  // CHECK: {{^}}16384{{$}}
  gpu.launch_func @kernels::@changed_between_fences blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1) args(%out : !out)
  call @print_sum(%out) : (!out) -> ()
  // CHECK: {{^}}24576{{$}}
  gpu.launch_func @kernels::@written_after_a_barrier blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1) args(%out : !out)
  call @print_sum(%out) : (!out) -> ()
  // CHECK: {{^}}8192{{$}}
  gpu.launch_func @kernels::@rows_of_the_own_warp blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1) args(%out : !out)
  call @print_sum(%out) : (!out) -> ()
  // CHECK: {{^}}0{{$}}
  gpu.launch_func @kernels::@unwritten_row_left_out blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1) args(%out : !out)
  call @print_sum(%out) : (!out) -> ()
  // CHECK: {{^}}7936{{$}}
  gpu.launch_func @kernels::@two_warpgroups blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1) args(%out : !out)
  call @print_sum(%out) : (!out) -> ()
  // CHECK: {{^}}8192{{$}}
  gpu.dealloc %out : !out
  return
}

}
