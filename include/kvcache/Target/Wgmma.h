//===- Wgmma.h - wgmma with a matrix in registers ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The NVVM dialect has wgmma.mma_async only with both matrices in shared
// memory. With A in registers, it is inline assembly of a fixed text, so that
// the emulator can read it again.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TARGET_WGMMA_H
#define KVCACHE_TARGET_WGMMA_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace mlir::kvcache {

/// A wgmma.mma_async with A in registers. The operands of its op are the four
/// registers of A as i32, the descriptor of B, and the accumulators as f32, or
/// as i32 if they are i32 or pairs of f16.
struct RegisterWgmma {
  static constexpr unsigned kNumRegistersA = 4;

  int64_t n = 0, k = 0;
  NVVM::WGMMATypes typeD = NVVM::WGMMATypes::f32, typeA = typeD, typeB = typeD;
  bool isMNMajorB = false;
  /// Whether D is added, or else only written.
  bool accumulates = true;

  /// The number of registers of D.
  int64_t getNumRegisters() const {
    return typeD == NVVM::WGMMATypes::f16 ? n / 4 : n / 2;
  }
  /// The type of each.
  Type getRegisterType(MLIRContext *context) const;

  /// Creates the op, whose result is a structure of the registers of D.
  LLVM::InlineAsmOp create(OpBuilder &builder, Location loc, ValueRange a,
                           Value descriptorB, ValueRange accumulators) const;

  /// The instruction of an op that `create` has made; none of other ops.
  static std::optional<RegisterWgmma> get(LLVM::InlineAsmOp op);
};

/// Creates inline assembly without an instruction that takes registers and
/// gives them back: uses of the results stay after the op. The results are
/// 32-bit scalars like the operands.
SmallVector<Value> createRegisterFence(OpBuilder &builder, Location loc,
                                       ValueRange registers);

/// Whether an op is such a fence.
bool isRegisterFence(LLVM::InlineAsmOp op);

} // namespace mlir::kvcache

#endif // KVCACHE_TARGET_WGMMA_H
