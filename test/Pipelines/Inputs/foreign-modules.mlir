module {}
// -----
gpu.module @no_target {
  gpu.func @kernel() kernel { gpu.return }
}
// -----
gpu.module @amd [#rocdl.target<chip = "gfx942">] {
  gpu.func @kernel(%m: memref<4xf32>) kernel {
    %t = gpu.thread_id x
    %x = memref.load %m[%t] : memref<4xf32>
    %y = math.exp %x : f32
    memref.store %y, %m[%t] : memref<4xf32>
    gpu.return
  }
}
// -----
gpu.module @spirv [#spirv.target_env<#spirv.vce<v1.0, [Kernel], []>, #spirv.resource_limits<>>] {
  gpu.func @kernel() kernel { gpu.return }
}
// -----
gpu.module @xe [#xevm.target<chip = "pvc">] {
  gpu.func @kernel() kernel { gpu.return }
}
// -----
gpu.module @two [#nvvm.target<chip = "sm_90a">, #rocdl.target<chip = "gfx942">] {
  gpu.func @kernel() kernel { gpu.return }
}
// -----
gpu.module @unknown [#nvvm.target<chip = "sm_1234">] {
  gpu.func @kernel() kernel { gpu.return }
}
// -----
module @outer {
  module @inner {
    gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
      gpu.func @kernel() kernel { gpu.return }
    }
    func.func @f(%m: memref<?xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = memref.dim %m, %c0 : memref<?xf32>
      scf.parallel (%i) = (%c0) to (%n) step (%c1) {
        scf.parallel (%j) = (%c0) to (%c1) step (%c1) {
          %x = arith.constant 1.0 : f32
          memref.store %x, %m[%i] : memref<?xf32>
        }
      }
      return
    }
  }
}
// -----
module {
  gpu.module @outer_kernels {
    llvm.func @nvvm_kernel() attributes {nvvm.kernel} { llvm.return }
    llvm.func @rocdl_kernel() attributes {rocdl.kernel} { llvm.return }
  }
  llvm.func @host()
  llvm.mlir.global external @g() : i32
}
// -----
module attributes {gpu.container_module} { gpu.binary @binary [#gpu.object<#rocdl.target<chip = "gfx942">, bin = "">]
func.func @launch() {
  %c1 = arith.constant 1 : index
  gpu.launch_func @binary::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
  return
}
}
// -----
module attributes {gpu.container_module} {
gpu.module @amd [#rocdl.target<chip = "gfx942">] {
  gpu.func @kernel() kernel { gpu.return }
}
func.func @launch() {
  %c1 = arith.constant 1 : index
  gpu.launch_func @amd::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
  return
}
}
// -----
spirv.module Logical GLSL450 {}
// -----
func.func private @declared()
// -----
gpu.module @clone [#nvvm.target<chip = "sm_90a">] attributes {kvcache.clone_of = @nowhere} {
  llvm.func @kernel() attributes {nvvm.kernel} { llvm.return }
}
// -----
gpu.module @clone_llvm [#nvvm.target<chip = "sm_90a">] attributes {kvcache.clone_of = @f} {
  llvm.func @kernel(%x: i32) attributes {nvvm.kernel, kvcache.parameters = []} { llvm.return }
}
llvm.func @f()
// -----
gpu.module @parameters [#nvvm.target<chip = "sm_90a">] {
  llvm.func @kernel(%x: i32) attributes {nvvm.kernel, kvcache.parameters = [1]} { llvm.return }
}
// -----
gpu.module @cycle_a [#nvvm.target<chip = "sm_90a">] attributes {kvcache.clone_of = @cycle_b} {
  llvm.func @kernel() attributes {nvvm.kernel} { llvm.return }
}
gpu.module @cycle_b [#nvvm.target<chip = "sm_90a">] attributes {kvcache.clone_of = @cycle_a} {
  llvm.func @kernel() attributes {nvvm.kernel} { llvm.return }
}
// -----
gpu.module @chain_a [#nvvm.target<chip = "sm_80">] {
  llvm.func @kernel() attributes {nvvm.kernel} { llvm.return }
}
gpu.module @chain_b [#nvvm.target<chip = "sm_90a">] attributes {kvcache.clone_of = @chain_a} {
  llvm.func @kernel() attributes {nvvm.kernel} { llvm.return }
}
gpu.module @chain_c [#nvvm.target<chip = "sm_100a">] attributes {kvcache.clone_of = @chain_b} {
  llvm.func @kernel() attributes {nvvm.kernel} { llvm.return }
}
