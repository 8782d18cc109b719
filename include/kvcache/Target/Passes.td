//===- Passes.td - Passes that use the table of chips -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TARGET_PASSES_TD
#define KVCACHE_TARGET_PASSES_TD

include "mlir/Pass/PassBase.td"

def CheckInstructions : Pass<"kvcache-check-instructions",
                             "::mlir::gpu::GPUModuleOp"> {
  let summary = "Reject instructions that the chip of a module lacks";
  let description = [{
    LLVM's back end ends the process on such an instruction. Here, an op of the
    NVVM or LLVM dialect that the chip has no instruction for gets an error that
    says which chips have one.
  }];
}

def SerializeKernels : Pass<"kvcache-serialize-kernels", "::mlir::ModuleOp"> {
  let summary = "Compile every gpu.module to PTX, a cubin or a fat binary";
  let description = [{
    Replaces every `gpu.module` by a `gpu.binary` with one object per target.
    The property `kvcache.kernels` of an object describes each kernel: its
    `parameters`, in order with name and type, and its `block_size`, if known.
  }];
  let options = [
    Option<"format", "format", "std::string", /*default=*/"\"ptx\"",
           "ptx, cubin or fatbin">,
    Option<"toolkit", "toolkit", "std::string", /*default=*/"\"\"",
           "The folder of the CUDA toolkit, with bin/ptxas and nvvm/libdevice">
  ];
}

#endif // KVCACHE_TARGET_PASSES_TD
