; Constants of floats that newer versions of LLVM print are read as well.

; RUN: kvcache-translate --import-kernels %s | FileCheck %s

target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: llvm.func @constants(
define ptx_kernel void @constants(ptr addrspace(1) %p, float %x, i1 %is) {
  ; CHECK-DAG: llvm.mlir.constant(9.99999996E-13 : f32) : f32
  %a = fadd float %x, f0x2B8CBCCC
  ; CHECK-DAG: llvm.mlir.constant(-1.000000e+30 : f32) : f32
  %b = select i1 %is, float -1.000000e+30, float %a
  ; CHECK-DAG: llvm.mlir.constant(0x7F800000 : f32) : f32
  %c = call float @llvm.maxnum.f32(float %b, float +inf)
  ; CHECK-DAG: llvm.mlir.constant(dense<1.000000e-01> : vector<2xf32>) : vector<2xf32>
  store <2 x float> splat (float 0.1), ptr addrspace(1) %p
  ; CHECK-DAG: llvm.mlir.constant(9.997550e-02 : f16) : f16
  store half 0.1, ptr addrspace(1) %p
  ; CHECK-DAG: llvm.mlir.constant(1.000980e-01 : bf16) : bf16
  store bfloat f0x3DCD, ptr addrspace(1) %p
  ; CHECK-DAG: llvm.mlir.constant(1.000000e-01 : f64) : f64
  store double 0.1, ptr addrspace(1) %p
  store float %c, ptr addrspace(1) %p
  ret void
}
declare float @llvm.maxnum.f32(float, float)
