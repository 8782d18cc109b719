//===- Passes.td - The conversion for the emulator -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_EMULATOR_PASSES_TD
#define KVCACHE_EMULATOR_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertNVVMToEmulator : Pass<"convert-nvvm-to-emulator",
                                 "::mlir::ModuleOp"> {
  let summary = "Lower kernels to functions that the emulator runs";
  let description = [{
    Converts the kernels of every `gpu.module`, at the level of NVVM and LLVM
    before inline PTX, to host functions. Each instruction of the chip becomes a
    call to a function in `kvcache/Emulator`, with the executing thread and the
    source location. An op that the emulator does not support, or that the chip of
    the module does not have, is an error at its location.

    The pass replaces the module by a `gpu.binary` of the same name. Its objects
    name the constants that describe the kernels. `kvcache-lower-launches`
    converts these to the binaries that libkvcache_emulator.so launches.

    bf16 arithmetic computes in f32 and rounds. Unless both options are off, the
    kernel announces each load and store before it executes it.
  }];
  let dependentDialects = [
    "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect"
  ];
  let options = [
    Option<"sanitize", "sanitize", "bool", /*default=*/"true",
           "Check accesses: bounds, order and initialization">,
    Option<"meter", "meter", "bool", /*default=*/"false",
           "Count the memory traffic of kernels">,
    Option<"rewrites", "rewrites", "bool", /*default=*/"false",
           "Let threads of a block store the same value to the same place of "
           "shared memory, without an order between them">
  ];
}

#endif // KVCACHE_EMULATOR_PASSES_TD
