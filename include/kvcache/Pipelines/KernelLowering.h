//===- KernelLowering.h - From cache ops to NVVM ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PIPELINES_KERNELLOWERING_H
#define KVCACHE_PIPELINES_KERNELLOWERING_H

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/ArrayRef.h"

namespace mlir::kvcache {

struct KernelLowering {
  llvm::ArrayRef<std::string> chips;
  int optLevel = 3;
  bool noAlias = true;
  bool overlapLaunches = true;
  /// Whether what LLVM has no intrinsic for becomes inline PTX; otherwise ops
  /// of NVVM are left.
  bool makeInlinePTX = true;
};

/// Adds the passes that turn ops on whole caches into kernels of chips:
/// attention is planned and split before. `checks` is that of
/// `kvcache-expand-ops`.
void addOpExpansion(OpPassManager &pm, llvm::ArrayRef<std::string> chips,
                    bool checks);

/// Adds the passes that turn a module with cache ops into gpu.modules of NVVM
/// and LLVM: parallel loops become kernels.
void addKernelLowering(OpPassManager &pm, const KernelLowering &options);

/// Adds the passes that turn launches of compiled kernels, and the host code
/// around them, into LLVM. Public functions have C wrappers, unless those for
/// TVM-FFI are there, and wait for their launches, unless the caller does.
void addLaunchLowering(OpPassManager &pm, bool tvmFFI, bool callerWaits);

} // namespace mlir::kvcache

#endif // KVCACHE_PIPELINES_KERNELLOWERING_H
