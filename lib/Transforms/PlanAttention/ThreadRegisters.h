//===- ThreadRegisters.h - Registers of the threads of a kernel -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_PLANATTENTION_THREADREGISTERS_H
#define KVCACHE_LIB_TRANSFORMS_PLANATTENTION_THREADREGISTERS_H

#include "../Builders/Frame.h"
#include "kvcache/IR/AttentionOps.h"

namespace mlir::kvcache {

/// The bounds of the registers of threads that copy and of those that multiply;
/// 0 where ptxas chooses them.
struct ThreadRegisters {
  int64_t producer = 0, consumer = 0;
};

/// Chooses the registers of a kernel with a complete config.
ThreadRegisters chooseRegisters(AttentionOp op, const AttentionConfig &config,
                                const Target &target);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_PLANATTENTION_THREADREGISTERS_H
