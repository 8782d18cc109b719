//===- WarpRoles.h - Branches of warps --------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILECOPIES_WARPROLES_H
#define KVCACHE_LIB_TRANSFORMS_TILECOPIES_WARPROLES_H

#include "kvcache/IR/PipeOps.h"
#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace mlir::kvcache {

/// Returns the number of warps of all roles that consumptions are in, if they
/// are in roles.
std::optional<int64_t> countWarpsOfRoles(ArrayRef<ConsumeOp> consumes);

/// Replaces roles by branches on the number of the warp, which begin with their
/// numbers of registers.
LogicalResult lowerWarpRoles(WarpRolesOp op, gpu::GPUFuncOp kernel,
                             const Chip &chip);

/// Replaces roles by their code in order, for the one thread of the CPU.
void joinWarpRoles(WarpRolesOp op);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILECOPIES_WARPROLES_H
