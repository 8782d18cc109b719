// RUN: kvcache-opt %s --pass-pipeline="builtin.module(gpu.module(kvcache-mark-descriptors))" | FileCheck %s

// A descriptor is a parameter of 128 bytes, and by value; the tensor before it
// and functions without a list of parameters stay as they are.

// CHECK-LABEL: llvm.func @descriptor_is_passed_by_value(
// CHECK-SAME:    %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant})
// CHECK-LABEL: llvm.func @function_without_parameters_is_unchanged(
// CHECK-SAME:    %{{[^ ]*}}: !llvm.ptr) {
gpu.module @kernels {
  llvm.func @descriptor_is_passed_by_value(%m: !llvm.ptr, %desc: !llvm.ptr) attributes {
      nvvm.kernel, kvcache.parameters = [{name = "m", type = memref<4xf32>},
                                         {name = "desc", type = !kvcache.tma_tile<64x64xbf16>}]} {
    llvm.return
  }
  llvm.func @function_without_parameters_is_unchanged(%p: !llvm.ptr) {
    llvm.return
  }
}
