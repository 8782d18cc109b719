; LLVM IR of another compiler as a gpu.module: kernels, what they say of their
; launches, variables, parameters by value, and the lines of instructions.

; RUN: kvcache-translate --import-kernels %s | FileCheck %s
; RUN: llvm-as %s -o - | kvcache-translate --import-kernels | FileCheck %s
; RUN: kvcache-translate --import-kernels --mlir-print-debuginfo %s | FileCheck %s --check-prefix=LINES

source_filename = "import.cu"
target datalayout = "e-p3:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

%struct.Params = type { ptr, i32 }

; CHECK: module attributes {gpu.container_module} {
; CHECK: gpu.module @kernels
; CHECK-NOT: !llvm.ptr<3> = dense<32>
; CHECK-NOT: llvm.module_flags
; CHECK: llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
@shared = external addrspace(3) global [0 x i8]
@text = private constant [11 x i8] c"__CUDA_FTZ\00"
@llvm.used = appending global [1 x ptr] [ptr @text], section "llvm.metadata"

; CHECK-LABEL: llvm.func @scale(
; CHECK-SAME: %[[PARAMS:.*]]: !llvm.ptr {llvm.align = 8 : i64, llvm.byval = !llvm.struct<"struct.Params", (ptr, i32)>
; CHECK-SAME: %{{.*}}: f32) attributes {
; CHECK-SAME: nvvm.cluster_dim = array<i32: 2, 1, 1>
; CHECK-SAME: nvvm.kernel
; CHECK-SAME: nvvm.maxnreg = 64 : i32
; CHECK-SAME: nvvm.minctasm = 2 : i32
; CHECK-SAME: nvvm.reqntid = array<i32: 32, 4>
; CHECK-NOT: target_cpu
define ptx_kernel void @scale(ptr byval(%struct.Params) align 8 %params, float %by) #0 {
  ; LINES: = loc("{{.*}}import.ll":[[#@LINE+1]]:3)
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = load ptr, ptr %params
  %at = getelementptr float, ptr %p, i32 %t
  %x = load float, ptr %at
  ; Functions and their calls have no convention of the chip.
  ; CHECK: llvm.call @double(%{{.*}}) : (f32) -> f32
  %twice = call ptx_device float @double(float %x)
  ; The flags of the module answer the math library.
  ; CHECK-NOT: __nvvm_reflect(
  %ftz = call i32 @__nvvm_reflect(ptr @text)
  store i32 %ftz, ptr %at
  ret void
}

; CHECK: llvm.func @double(%{{.*}}: f32) -> f32 attributes {sym_visibility = "private"}
define internal ptx_device float @double(float %x) {
  %twice = fadd float %x, %x
  ret float %twice
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @__nvvm_reflect(ptr)

attributes #0 = { nounwind "nvvm.reqntid"="32,4" "nvvm.cluster_dim"="2,1,1" "nvvm.minctasm"="2" "nvvm.maxnreg"="64" "target-cpu"="sm_90" }
!llvm.module.flags = !{!0}
!0 = !{i32 4, !"nvvm-reflect-ftz", i32 1}
