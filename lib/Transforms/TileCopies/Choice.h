//===- Choice.h - Kinds of copies that are possible -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILECOPIES_CHOICE_H
#define KVCACHE_LIB_TRANSFORMS_TILECOPIES_CHOICE_H

#include "kvcache/IR/KVCacheDialect.h"
#include "kvcache/Target/Chip.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::kvcache {

/// The function that contains a copy.
struct CopySite {
  explicit CopySite(FunctionOpInterface function);

  FunctionOpInterface function;
  /// Null on the host, and without exactly one target.
  const Chip *chip;
  /// The function, if it is a kernel with a target; else null.
  gpu::GPUFuncOp kernel;
};

/// Whether the `wait` of the copy is its only use and stands in its block, so
/// that a barrier of its own completes with the copy.
bool hasOwnWait(TileCopyOpInterface copy);

/// Whether a unit of the hardware copies, and not the threads.
bool isByUnit(CopyKind kind);
/// Whether copies of this kind need a descriptor.
bool needsDescriptor(CopyKind kind);

/// Returns the reason why instructions of this kind can't do the copy where it
/// is, or nothing if they can, given a descriptor.
std::optional<std::string> findObstacle(TileCopyOpInterface copy, CopyKind kind,
                                        const CopySite &site);

/// Returns the reason why the host can't make the descriptor of the copy, or
/// nothing if it can. `launches` are those of the kernel.
std::optional<std::string>
findDescriptorObstacle(TileCopyOpInterface copy, const CopySite &site,
                       ArrayRef<gpu::LaunchFuncOp> launches);

/// Returns the reason why another kind is faster, although this one is
/// possible, or nothing if there is none.
std::optional<std::string> findDrawback(TileCopyOpInterface copy, CopyKind kind,
                                        const CopySite &site);

/// Returns the reason why a copy of this kind can't be multicast where it is,
/// or nothing if it can.
std::optional<std::string> findMulticastObstacle(TileCopyOpInterface copy,
                                                 CopyKind kind);

/// Checks that a copy can be lowered: it has a kind, which is possible, and the
/// descriptor that the kind needs.
LogicalResult checkLowerable(TileCopyOpInterface copy, const CopySite &site);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILECOPIES_CHOICE_H
