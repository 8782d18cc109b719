//===- PipeRegisters.h - Registers of producers and consumers ---*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILECOPIES_PIPEREGISTERS_H
#define KVCACHE_LIB_TRANSFORMS_TILECOPIES_PIPEREGISTERS_H

#include "kvcache/IR/PipeOps.h"
#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace mlir::kvcache {

/// Moves registers from the producers of a pipe of `kernel` to its consumers,
/// as `producer_registers` and `consumer_registers` say: at the beginning of
/// the branch of each. Does nothing for a pipe without them, and for chips
/// without setmaxnreg. Comes before the lowering of `produce` and `consume`.
LogicalResult setRegisters(PipeOp pipe, gpu::GPUFuncOp kernel,
                           const Chip &chip);

/// Whether code of a kernel sets the number of registers.
bool setsRegisters(gpu::GPUFuncOp kernel);

/// Returns the registers with which the threads of a kernel begin. Without a
/// bound, the kernel gets that of one block of so many threads.
int64_t boundByBlock(gpu::GPUFuncOp kernel, int64_t threads);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILECOPIES_PIPEREGISTERS_H
