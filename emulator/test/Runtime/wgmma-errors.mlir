// Reports of kernels that use wgmma wrongly, one for each rule.
// PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions".

// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// RUN: %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"

// PRELUDE: wgmma.mlir

!acc = !llvm.struct<(f32, f32, f32, f32)>
!out = memref<128x4xf32>

module attributes {gpu.container_module} {

gpu.module @kernels {
  // LAUNCH: 128 threads
  gpu.func @no_fence(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    // CHECK-LABEL: run @no_fence:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: nvvm.wgmma.mma_async: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) has executed no wgmma.fence before it
    %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    func.call @save(%t, %d, %out) : (index, !acc, !out) -> ()
    gpu.return
  }

  // The other threads write by the generic proxy.
  // LAUNCH: 128 threads
  gpu.func @no_proxy_fence(%out: !out) kernel {
    %zero = llvm.mlir.zero : !acc
    %t, %a, %b = func.call @fill() : () -> (index, i64, i64)
    nvvm.barrier0
    nvvm.wgmma.fence.aligned
    // CHECK-LABEL: run @no_proxy_fence:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: nvvm.wgmma.mma_async: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) reads 16 bytes at byte 0 of shared @ops, which thread (0, 0, 0) writes in llvm.store at [[FILE]]:{{[0-9:]+}} without a proxy fence between them (fence.proxy.async)
    %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    func.call @save(%t, %d, %out) : (index, !acc, !out) -> ()
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @no_barrier(%out: !out) kernel {
    %zero = llvm.mlir.zero : !acc
    %t, %a, %b = func.call @fill() : () -> (index, i64, i64)
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
    nvvm.wgmma.fence.aligned
    // CHECK-LABEL: run @no_barrier:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: nvvm.wgmma.mma_async: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) reads 16 bytes at byte 0 of shared @ops, which thread (0, 0, 0) writes in llvm.store at [[FILE]]:{{[0-9:]+}} without order between them (a race)
    %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    func.call @save(%t, %d, %out) : (index, !acc, !out) -> ()
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @no_wait(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    nvvm.wgmma.fence.aligned
    %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    // CHECK-LABEL: run @no_wait:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: llvm.call: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) reads the accumulators of nvvm.wgmma.mma_async at [[FILE]]:[[#@LINE-3]]:{{[0-9]+}}, which are in flight: no wgmma.wait_group has waited for their group
    func.call @save(%t, %d, %out) : (index, !acc, !out) -> ()
    nvvm.wgmma.wait.group.sync.aligned 0
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @no_commit(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    nvvm.wgmma.fence.aligned
    %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.wait.group.sync.aligned 0
    // CHECK-LABEL: run @no_commit:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: llvm.call: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) reads the accumulators of nvvm.wgmma.mma_async at [[FILE]]:[[#@LINE-3]]:{{[0-9]+}}, which are in flight: no wgmma.commit_group has followed
    func.call @save(%t, %d, %out) : (index, !acc, !out) -> ()
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @waits_for_the_older_group(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    nvvm.wgmma.fence.aligned
    %d0 = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 1
    func.call @save(%t, %d0, %out) : (index, !acc, !out) -> ()
    // CHECK-LABEL: run @waits_for_the_older_group:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: llvm.call: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) reads the accumulators of nvvm.wgmma.mma_async at [[FILE]]:[[#@LINE-5]]:{{[0-9]+}}, which are in flight: no wgmma.wait_group has waited for their group
    func.call @save(%t, %d, %out) : (index, !acc, !out) -> ()
    nvvm.wgmma.wait.group.sync.aligned 0
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @overwrite_in_flight(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    %one = llvm.mlir.constant(1 : i32) : i32
    %ops = llvm.mlir.addressof @ops : !llvm.ptr<3>
    nvvm.wgmma.fence.aligned
    %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    // CHECK-LABEL: run @overwrite_in_flight:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: llvm.store: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) writes 4 bytes at byte 0 of shared @ops, which a product issued by thread (0, 0, 0) in nvvm.wgmma.mma_async at [[FILE]]:[[#@LINE-3]]:{{[0-9]+}} still reads
    llvm.store %one, %ops : i32, !llvm.ptr<3>
    nvvm.wgmma.wait.group.sync.aligned 0
    func.call @save(%t, %d, %out) : (index, !acc, !out) -> ()
    gpu.return
  }

  // Warp 1 still reads B.
  // LAUNCH: 128 threads
  gpu.func @overwrite_before_others_have_waited(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    %one = llvm.mlir.constant(1 : i32) : i32
    %ops = llvm.mlir.addressof @ops : !llvm.ptr<3>
    %c0 = arith.constant 0 : index
    %is_first = arith.cmpi eq, %t, %c0 : index
    nvvm.wgmma.fence.aligned
    %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    scf.if %is_first {
      %p = llvm.getelementptr %ops[2048] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    // CHECK-LABEL: run @overwrite_before_others_have_waited:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: llvm.store: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) writes 4 bytes at byte 2048 of shared @ops, which a product issued by thread (32, 0, 0) in nvvm.wgmma.mma_async at [[FILE]]:[[#@LINE-6]]:{{[0-9]+}} has read, but the thread has not waited for its barrier
      llvm.store %one, %p : i32, !llvm.ptr<3>
    }
    func.call @save(%t, %d, %out) : (index, !acc, !out) -> ()
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @two_take_over(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    nvvm.wgmma.fence.aligned
    %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    %d1 = nvvm.wgmma.mma_async %a, %b, %d, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    // CHECK-LABEL: run @two_take_over:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: nvvm.wgmma.mma_async: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) reads the accumulators of nvvm.wgmma.mma_async at [[FILE]]:[[#@LINE-3]]:{{[0-9]+}}, which nvvm.wgmma.mma_async at [[FILE]]:[[#@LINE-2]]:{{[0-9]+}} already accumulates into
    %d2 = nvvm.wgmma.mma_async %a, %b, %d, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    func.call @save(%t, %d1, %out) : (index, !acc, !out) -> ()
    func.call @save(%t, %d2, %out) : (index, !acc, !out) -> ()
    gpu.return
  }

  // %d is read late, when the registers have the sum of both.
  // LAUNCH: 128 threads
  gpu.func @taken_over(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    nvvm.wgmma.fence.aligned
    %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    %d1 = nvvm.wgmma.mma_async %a, %b, %d, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    func.call @save(%t, %d1, %out) : (index, !acc, !out) -> ()
    // CHECK-LABEL: run @taken_over:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: llvm.call: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) reads the accumulators of nvvm.wgmma.mma_async at [[FILE]]:[[#@LINE-6]]:{{[0-9]+}}, which nvvm.wgmma.mma_async at [[FILE]]:[[#@LINE-5]]:{{[0-9]+}} already accumulates into
    func.call @save(%t, %d, %out) : (index, !acc, !out) -> ()
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @changed_in_flight(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    nvvm.wgmma.fence.aligned
    %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    %x = llvm.extractvalue %d[0] : !acc
    // CHECK-LABEL: run @changed_in_flight:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: llvm.fadd: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) reads the accumulators of nvvm.wgmma.mma_async at [[FILE]]:[[#@LINE-4]]:{{[0-9]+}}, which are in flight: no wgmma.wait_group has waited for their group
    %y = llvm.fadd %x, %x : f32
    %e = llvm.insertvalue %y, %d[0] : !acc
    nvvm.wgmma.fence.aligned
    %d1 = nvvm.wgmma.mma_async %a, %b, %e, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    func.call @save(%t, %d1, %out) : (index, !acc, !out) -> ()
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @written_without_fence(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    nvvm.wgmma.fence.aligned
    %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    %x = llvm.extractvalue %d[0] : !acc
    %y = llvm.fadd %x, %x : f32
    %e = llvm.insertvalue %y, %d[0] : !acc
    // CHECK-LABEL: run @written_without_fence:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: nvvm.wgmma.mma_async: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) has accumulators that another instruction has written since the last wgmma.fence
    %d1 = nvvm.wgmma.mma_async %a, %b, %e, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    func.call @save(%t, %d1, %out) : (index, !acc, !out) -> ()
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @read_without_fence(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    nvvm.wgmma.fence.aligned
    %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    func.call @save(%t, %d, %out) : (index, !acc, !out) -> ()
    // CHECK-LABEL: run @read_without_fence:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: nvvm.wgmma.mma_async: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) has accumulators that another instruction has read since the last wgmma.fence
    %d1 = nvvm.wgmma.mma_async %a, %b, %d, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    func.call @save(%t, %d1, %out) : (index, !acc, !out) -> ()
    gpu.return
  }

  // The loop reads what its last iteration has left in flight.
  // LAUNCH: 128 threads
  gpu.func @carried_in_flight(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %d = scf.for %i = %c0 to %c3 step %c1 iter_args(%acc = %zero) -> !acc {
      %x = llvm.extractvalue %acc[3] : !acc
    // CHECK-LABEL: run @carried_in_flight:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: llvm.fmul: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) reads the accumulators of nvvm.wgmma.mma_async at [[FILE]]:[[#@LINE+4]]:{{[0-9]+}}, which are in flight: no wgmma.wait_group has waited for their group
      %y = llvm.fmul %x, %x : f32
      %e = llvm.insertvalue %y, %acc[3] : !acc
      nvvm.wgmma.fence.aligned
      %n = nvvm.wgmma.mma_async %a, %b, %e, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
      nvvm.wgmma.commit.group.sync.aligned
      scf.yield %n : !acc
    }
    nvvm.wgmma.wait.group.sync.aligned 0
    func.call @save(%t, %d, %out) : (index, !acc, !out) -> ()
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @another_shape_in_flight(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    nvvm.wgmma.fence.aligned
    %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    // CHECK-LABEL: run @another_shape_in_flight:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: nvvm.wgmma.mma_async: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) has the accumulators of a wgmma of another shape, nvvm.wgmma.mma_async at [[FILE]]:[[#@LINE-2]]:{{[0-9]+}}, which are in flight
    %d1 = nvvm.wgmma.mma_async %a, %b, %d, #nvvm.shape<m = 64, n = 8, k = 8>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<tf32>, #nvvm.wgmma_scale_in<one>, <row>], B [<tf32>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    func.call @save(%t, %d1, %out) : (index, !acc, !out) -> ()
    gpu.return
  }

  // LAUNCH: 64 threads
  gpu.func @half_a_warpgroup(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    nvvm.wgmma.fence.aligned
    // CHECK-LABEL: run @half_a_warpgroup:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: nvvm.wgmma.mma_async: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) requires all 128 threads of warps 0 to 3, but the block has 64 threads
    %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    func.call @save(%t, %d, %out) : (index, !acc, !out) -> ()
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @some_have_ended(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    %c96 = arith.constant 96 : index
    %is = arith.cmpi ult, %t, %c96 : index
    scf.if %is {
      nvvm.wgmma.fence.aligned
    // CHECK-LABEL: run @some_have_ended:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: nvvm.wgmma.mma_async: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) requires all 128 threads of warps 0 to 3, but thread ({{[0-9]+}}, 0, 0) has ended
      %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
      nvvm.wgmma.commit.group.sync.aligned
      nvvm.wgmma.wait.group.sync.aligned 0
    }
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @some_wait_elsewhere(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    %c64 = arith.constant 64 : index
    %is = arith.cmpi ult, %t, %c64 : index
    nvvm.wgmma.fence.aligned
    scf.if %is {
      %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    } else {
    // CHECK-LABEL: run @some_wait_elsewhere:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: nvvm.wgmma.mma_async: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) executes it while thread ({{[0-9]+}}, 0, 0) of its warpgroup waits in nvvm.wgmma.mma_async at [[FILE]]:[[#@LINE-3]]:{{[0-9]+}}
      %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    }
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @half_a_warp_waits(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    %c16 = arith.constant 16 : index
    %is = arith.cmpi ult, %t, %c16 : index
    nvvm.wgmma.fence.aligned
    %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    scf.if %is {
    // CHECK-LABEL: run @half_a_warp_waits:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: nvvm.wgmma.wait.group.sync.aligned: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) requires all lanes of its warp, but lanes 16 to 31 of warp 0 have ended or are not in the block
      nvvm.wgmma.wait.group.sync.aligned 0
    }
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @one_warp_waits(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    %c32 = arith.constant 32 : index
    %is = arith.cmpi ult, %t, %c32 : index
    nvvm.wgmma.fence.aligned
    %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    scf.if %is {
      nvvm.wgmma.wait.group.sync.aligned 0
    }
    nvvm.wgmma.fence.aligned
    // CHECK-LABEL: run @one_warp_waits:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: nvvm.wgmma.mma_async: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) executes it when warp 0 has executed wgmma.wait_group 1 times, and warp 1 0 times: all threads of a warpgroup must execute it
    %d1 = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @descriptors_differ(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    %c32 = arith.constant 32 : index
    %is = arith.cmpi ult, %t, %c32 : index
    %other = arith.select %is, %a, %b : i64
    nvvm.wgmma.fence.aligned
    // CHECK-LABEL: run @descriptors_differ:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: nvvm.wgmma.mma_async: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) has the descriptor 0x{{[0-9a-f]+}} of A, and thread (0, 0, 0) of its warpgroup has 0x{{[0-9a-f]+}}
    %d = nvvm.wgmma.mma_async %other, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    func.call @save(%t, %d, %out) : (index, !acc, !out) -> ()
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @reserved_bits(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    %bit = llvm.mlir.constant(4503599627370496 : i64) : i64
    %odd = llvm.add %b, %bit : i64
    nvvm.wgmma.fence.aligned
    // CHECK-LABEL: run @reserved_bits:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: nvvm.wgmma.mma_async: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) has the descriptor 0x{{[0-9a-f]+}} of B, in which reserved bits are set
    %d = nvvm.wgmma.mma_async %a, %odd, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    func.call @save(%t, %d, %out) : (index, !acc, !out) -> ()
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @base_offset(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    %bit = llvm.mlir.constant(1688849860263936 : i64) : i64
    %odd = llvm.add %a, %bit : i64
    nvvm.wgmma.fence.aligned
    // CHECK-LABEL: run @base_offset:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: nvvm.wgmma.mma_async: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) has the descriptor 0x{{[0-9a-f]+}} of A, which has the base offset 3: the emulator supports only patterns at multiples of their size, whose base offset is 0
    %d = nvvm.wgmma.mma_async %odd, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    func.call @save(%t, %d, %out) : (index, !acc, !out) -> ()
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @beside_its_pattern(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    %bit = llvm.mlir.constant(8 : i64) : i64
    %odd = llvm.add %a, %bit : i64
    nvvm.wgmma.fence.aligned
    // CHECK-LABEL: run @beside_its_pattern:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: nvvm.wgmma.mma_async: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) has the descriptor 0x{{[0-9a-f]+}} of A, which begins at byte 128 of shared @ops: with a swizzle of 32 bytes and the base offset 0, the pattern starts at a multiple of 256 bytes
    %d = nvvm.wgmma.mma_async %odd, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    func.call @save(%t, %d, %out) : (index, !acc, !out) -> ()
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @out_of_bounds(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    %bit = llvm.mlir.constant(64 : i64) : i64
    %odd = llvm.add %a, %bit : i64
    nvvm.wgmma.fence.aligned
    // CHECK-LABEL: run @out_of_bounds:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: nvvm.wgmma.mma_async: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) reads 16 bytes of A at byte 2304 of shared @ops, which has 2304 bytes, for row 40 and k = 0
    %d = nvvm.wgmma.mma_async %odd, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    func.call @save(%t, %d, %out) : (index, !acc, !out) -> ()
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @in_flight_at_the_end(%out: !out) kernel {
    %t, %a, %b, %zero = func.call @prepare() : () -> (index, i64, i64, !acc)
    nvvm.wgmma.fence.aligned
    // CHECK-LABEL: run @in_flight_at_the_end:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: nvvm.wgmma.mma_async: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) is in flight when the block ends
    %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    gpu.return
  }

  // Row 5 of A is not written, and row 5 of D is stored.
  // LAUNCH: 128 threads
  gpu.func @unwritten_row(%out: !out) kernel {
    %zero = llvm.mlir.zero : !acc
    %t, %a, %b = func.call @fill_but_row_5() : () -> (index, i64, i64)
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
    nvvm.barrier0
    nvvm.wgmma.fence.aligned
    %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<bf16>, #nvvm.wgmma_scale_in<one>, <row>], B [<bf16>, #nvvm.wgmma_scale_in<one>, <col>] : !acc -> !acc
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    %c0 = arith.constant 0 : index
    %x = llvm.extractvalue %d[0] : !acc
    // CHECK-LABEL: run @unwritten_row:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: llvm.store: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when nvvm.wgmma.mma_async at [[FILE]]:[[#@LINE-6]]:{{[0-9]+}} read them; the first is byte 160 of shared @ops
    memref.store %x, %out[%t, %c0] : !out
    gpu.return
  }
}

}
