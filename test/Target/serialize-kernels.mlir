// RUN: kvcache-opt %s --kvcache-serialize-kernels | FileCheck %s
// RUN: not kvcache-opt %s --kvcache-serialize-kernels=format=elf 2>&1 | FileCheck %s --check-prefix=FORMAT
// RUN: not kvcache-opt %s "--kvcache-serialize-kernels=format=cubin toolkit=%t/nowhere" 2>&1 | FileCheck %s --check-prefix=TOOLKIT

// RUN: sed s/sm_90a/sm_99/ %s | not kvcache-opt --kvcache-serialize-kernels 2>&1 | FileCheck %s --check-prefix=CHIP

// FORMAT:  error: unknown format 'elf'; known are ptx, cubin and fatbin
// TOOLKIT: error: expects the toolkit to have '{{.*}}/nowhere/bin/ptxas'
// CHIP:    error: 'gpu.module' op unknown chip 'sm_99'; known are sm_80,

// One object for each target, with what a launch needs of the kernel.

// CHECK-NOT:  gpu.module
// CHECK:      gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_80">,
// CHECK-SAME:   kvcache.kernels = [{block_size = array<i32: 64, 1, 1>, name = "kernel", parameters = [{name = "n", offset = 0 : i64, size = 4 : i64, type = i32}]}]
// CHECK-SAME:   .target sm_80
// CHECK-SAME:   #gpu.object<#nvvm.target<chip = "sm_90a">,
// CHECK-SAME:   .target sm_90a
module attributes {gpu.container_module} {
  gpu.module @kernels [#nvvm.target<chip = "sm_80">, #nvvm.target<chip = "sm_90a">] {
    llvm.func @kernel(%n: i32) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 64>,
                                           kvcache.parameters = [{name = "n", type = i32}]} {
      llvm.return
    }
  }
}
