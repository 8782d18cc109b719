//===- Passes.td - Kernels of other compilers -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IMPORT_PASSES_TD
#define KVCACHE_IMPORT_PASSES_TD

include "mlir/Pass/PassBase.td"

def WrapKernels : Pass<"kvcache-wrap-kernels", "::mlir::ModuleOp"> {
  let summary = "Put kernels of the LLVM dialect into a gpu.module";
  let description = [{
    Another compiler's LLVM IR, imported as a module of the LLVM dialect, becomes
    a `gpu.module @kernels`. Functions with the calling convention of kernels get
    `nvvm.kernel`, and what their attributes say of blocks and clusters becomes
    attributes of the NVVM dialect. What holds only for the chip goes: other
    calling conventions, features, metadata. Locations keep files and lines.

    Modules that have a `gpu.module` stay as they are. A module for another
    target, and one without a kernel, is an error.
  }];
  let dependentDialects = [
    "::mlir::DLTIDialect", "::mlir::gpu::GPUDialect", "::mlir::NVVM::NVVMDialect"
  ];
}

def ExpandInlinePTX : Pass<"kvcache-expand-inline-ptx",
                           "::mlir::gpu::GPUModuleOp"> {
  let summary = "Replace inline PTX by ops of the NVVM and LLVM dialects";
  let description = [{
    Parses the PTX in each `llvm.inline_asm`: registers, predicates, vectors,
    labels and branches. Each instruction becomes the op or the intrinsic that
    LLVM translates to it. Predicated instructions and branches become branches
    of the function. An instruction that has no op is an error that names it.

    Calls of `llvm.nvvm` intrinsics that the import leaves by name become the
    same ops, and calls of `__nvvm_reflect` constants. Inline assembly that `kvcache.mma` makes stays as it is.
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"
  ];
}

def AssumeFences : Pass<"kvcache-assume-fences", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Add the fences that chips do without";
  let description = [{
    PTX requires a `fence.mbarrier_init` after the initialization of mbarriers that
    copies use, `tcgen05.fence` around synchronizations of threads that access
    tensor memory, and a proxy fence before a copy overwrites the address that
    `tcgen05.alloc` has stored. Compilers that leave them out have kernels that work on today's
    chips. This pass adds them, so that the emulator reports other errors.
  }];
  let dependentDialects = ["::mlir::NVVM::NVVMDialect"];
}

#endif // KVCACHE_IMPORT_PASSES_TD
