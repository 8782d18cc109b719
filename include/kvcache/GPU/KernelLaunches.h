//===- KernelLaunches.h - Launches of a kernel ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_GPU_KERNELLAUNCHES_H
#define KVCACHE_GPU_KERNELLAUNCHES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

#include <utility>

namespace mlir::kvcache {

/// The launches in a module, by kernel. Valid until one of them is erased.
class KernelLaunches {
public:
  explicit KernelLaunches(ModuleOp module);

  /// Returns the launches of `kernel`, in order. A kernel in a clone of a
  /// `gpu.module` has the launches of the original.
  ArrayRef<gpu::LaunchFuncOp> lookup(gpu::GPUFuncOp kernel) const;

private:
  /// The names of the `gpu.module` and the kernel.
  using Key = std::pair<StringAttr, StringAttr>;

  DenseMap<Key, SmallVector<gpu::LaunchFuncOp>> launches;
};

} // namespace mlir::kvcache

#endif // KVCACHE_GPU_KERNELLAUNCHES_H
