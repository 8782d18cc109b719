//===- Warpgroups.h - wgmma and its registers -------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_CONVERSION_WARPGROUPS_H
#define KVCACHE_LIB_EMULATOR_CONVERSION_WARPGROUPS_H

#include "EmulatorCalls.h"
#include "kvcache/Emulator/Warpgroups.h"

namespace mlir::kvcache {

/// Whether an op is a wgmma.mma_async: the op of the NVVM dialect, or inline
/// assembly with A in registers.
bool isWgmma(Operation *op);

/// The operands of a wgmma.mma_async.
struct WgmmaOperands {
  explicit WgmmaOperands(Operation *wgmma);

  /// One structure of registers, or one value for each.
  OperandRange accumulators;
  /// The registers of A; none if it is in shared memory.
  OperandRange registersA;
  Value descriptorA, descriptorB;
};

/// Finds the form of a wgmma. None if the emulator does not support its types,
/// or if the number of its accumulators differs from the instruction's
/// registers of 32 bits.
std::optional<KVCacheWgmma> getWgmmaForm(Operation *wgmma);

/// The KVCacheWgmmaRegisters that the wgmma of a function share.
class WgmmaRegisters {
public:
  WgmmaRegisters(Operation *op, EmulatorCalls &calls);

  void store(OpBuilder &builder, Value value, size_t offset);
  /// Stores values of 32 bits, or one structure of them, one after another.
  void storeAll(OpBuilder &builder, ValueRange values, size_t offset);
  Value load(OpBuilder &builder, Type type, size_t offset);

  Value get() const { return slot; }

private:
  Value getAddress(OpBuilder &builder, size_t offset);

  Location loc;
  EmulatorCalls &calls;
  Value slot;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_EMULATOR_CONVERSION_WARPGROUPS_H
