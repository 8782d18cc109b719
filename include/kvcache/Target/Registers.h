//===- Registers.h - Registers of the threads of a kernel -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Warpgroups can pass registers to each other (PTX ISA, "setmaxnreg"). The
// number with which all begin has to be known.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TARGET_REGISTERS_H
#define KVCACHE_TARGET_REGISTERS_H

#include "mlir/Support/LLVM.h"

#include <cstdint>
#include <optional>

namespace mlir {
class Operation;

namespace gpu {
class GPUFuncOp;
} // namespace gpu
} // namespace mlir

namespace mlir::kvcache {

struct Chip;

/// Registers of a multiprocessor, the same on all chips that have setmaxnreg
/// (CUDA C++ Programming Guide, "Technical Specifications per Compute
/// Capability").
inline constexpr int64_t kRegistersOfSM = 65536;

/// The number of registers of a thread is a multiple of this.
inline constexpr int64_t kRegisterUnit = 8;

/// Whether code for the chip may have setmaxnreg.
bool hasSetMaxRegisters(const Chip &chip);

/// Returns the maximum number of registers of a thread where a multiprocessor
/// runs `blocks` blocks of `threads` threads; 0 for too many.
int64_t getMaxRegisters(int64_t threads, int64_t blocks);

/// Returns the registers with which each thread of a kernel begins, a
/// `gpu.func` or `llvm.func`: `nvvm.maxnreg`, or the share of a thread where a
/// multiprocessor has `nvvm.minctasm` blocks of the kernel's size. Without
/// these attributes, ptxas ignores setmaxnreg (C7508).
std::optional<int64_t> getInitialRegisters(Operation *kernel);

/// Promises ptxas that one block of a kernel is enough for a multiprocessor,
/// by `nvvm.minctasm`. Otherwise it spills registers, or waits for each load,
/// to make room for blocks that have no other room. A kernel with a bound of
/// registers keeps it. PTX ISA, ".minnctapersm": beside a known number of
/// threads.
void allowOneBlock(gpu::GPUFuncOp kernel);

} // namespace mlir::kvcache

#endif // KVCACHE_TARGET_REGISTERS_H
