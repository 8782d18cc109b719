//===- Instructions.h - The chips that have an instruction ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TARGET_INSTRUCTIONS_H
#define KVCACHE_TARGET_INSTRUCTIONS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace mlir::kvcache {

struct Chip;

/// Whether `chip` has the instructions of all ops of the NVVM and LLVM dialects
/// in a module. The error names the op, what it needs, and the chip.
LogicalResult checkInstructions(gpu::GPUModuleOp module, const Chip &chip);

} // namespace mlir::kvcache

#endif // KVCACHE_TARGET_INSTRUCTIONS_H
