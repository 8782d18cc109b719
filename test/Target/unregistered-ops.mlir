// RUN: not kvcache-opt %s --kvcache-to-ptx=chip=sm_90a --allow-unregistered-dialect 2>&1 | FileCheck %s
// RUN: not kvcache-opt %s --kvcache-to-emulator=chip=sm_90a --allow-unregistered-dialect 2>&1 | FileCheck %s

// An unregistered op ends in an error at its place, not in a crash.
// CHECK: unregistered-ops.mlir:[[@LINE+5]]:{{.*}}: error: {{.*}}test.op
// CHECK-NOT: Stack dump

gpu.module @kernels {
  gpu.func @f() kernel {
    "test.op"() : () -> ()
    gpu.return
  }
}
