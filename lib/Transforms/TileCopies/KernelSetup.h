//===- KernelSetup.h - Barriers at the start of a kernel --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILECOPIES_KERNELSETUP_H
#define KVCACHE_LIB_TRANSFORMS_TILECOPIES_KERNELSETUP_H

#include "Blocks.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::kvcache {

/// The setup at the start of a kernel: one thread initializes all barriers
/// while the others wait. Passes that run one after the other share it:
/// discardable attributes mark its ops.
class KernelSetup {
public:
  KernelSetup(gpu::GPUFuncOp kernel, const Chip &chip)
      : kernel(kernel), chip(chip) {}

  /// Creates barriers in shared memory, without initializing them.
  TypedValue<nvgpu::MBarrierGroupType> createBarriers(int64_t number);
  /// Initializes one of them to expect `count(b)` arrivals.
  void initialize(TypedValue<nvgpu::MBarrierGroupType> barriers, int64_t index,
                  function_ref<Value(const BlockBuilder &b)> count);
  /// Synchronizes the blocks of a cluster after the setup, and at the end of
  /// the kernel: between both, they may access each other's shared memory.
  void meetInCluster();
  /// Creates a variable of each thread, initially 0: `memref<i32>`.
  Value createVariable();

  /// Removes the marks.
  static void finish(FunctionOpInterface function);

  /// Runs `body` in the first warp, with its lanes.
  void runInFirstWarp(const BlockBuilder &b,
                      function_ref<void(Threads lanes)> body);
  /// Runs `body` in the lanes that issue copies.
  void runInIssuer(const BlockBuilder &b,
                   function_ref<void(const Issuer &issuer)> body);

private:
  /// Whether this is the first warp, computed once for the whole kernel.
  Value getIsFirstWarp();
  /// The branch of the one thread, `if thread == 0`; null before `start`.
  scf::IfOp findBranch();
  /// Gives this branch, and creates it if there is none. Variables go before
  /// it.
  scf::IfOp start();

  gpu::GPUFuncOp kernel;
  const Chip &chip;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILECOPIES_KERNELSETUP_H
