//===- KernelSetup.h - What a kernel does first for its copies --*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_KERNELSETUP_H
#define KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_KERNELSETUP_H

#include "Blocks.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::kvcache {

/// Sets up barriers at the start of a kernel: one thread initializes them all,
/// before any other goes on.
class KernelSetup {
public:
  KernelSetup(gpu::GPUFuncOp kernel, const Chip &chip)
      : kernel(kernel), chip(chip) {}

  /// Barriers in shared memory, that still have to be initialized.
  TypedValue<nvgpu::MBarrierGroupType> createBarriers(int64_t number);
  /// Initializes one of them to expect `count(b)` arrivals.
  void initialize(TypedValue<nvgpu::MBarrierGroupType> barriers, int64_t index,
                  function_ref<Value(const BlockBuilder &b)> count);
  /// A variable of each thread, 0 at first: `memref<i32>`.
  Value createVariable();

  /// Runs `body` in the first warp, with its lanes.
  void runInFirstWarp(const BlockBuilder &b,
                      function_ref<void(Threads lanes)> body);
  /// Runs `body` in the lanes that issue copies.
  void runInIssuer(const BlockBuilder &b,
                   function_ref<void(const Issuer &issuer)> body);

private:
  /// Whether this is the first warp, once for the whole kernel.
  Value getIsFirstWarp();
  /// Where variables go, and the region of the one thread.
  void start();

  gpu::GPUFuncOp kernel;
  const Chip &chip;
  /// `if thread == 0`; null before anything was set up.
  scf::IfOp inOneThread;
  /// Null before it was needed.
  Value isFirstWarp;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_KERNELSETUP_H
