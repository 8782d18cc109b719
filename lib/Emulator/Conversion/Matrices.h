//===- Matrices.h - Operands of matrix instructions -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_CONVERSION_MATRICES_H
#define KVCACHE_LIB_EMULATOR_CONVERSION_MATRICES_H

#include "EmulatorCalls.h"

namespace mlir::kvcache {

/// The registers of the fragments that an mma gets.
struct MmaOperands {
  ValueRange a, b, c;
};

/// Those of an op; none if it isn't an mma that has a lowering by its name.
std::optional<MmaOperands> getMmaOperands(Operation *op);

/// The KVCacheMatrixRegisters that the matrix instructions of a function share:
/// each writes its operands there and reads its result.
class MatrixRegisters {
public:
  MatrixRegisters(Operation *op, EmulatorCalls &calls);

  /// Stores values of 32 bits, one per register, in front of the op.
  void store(ValueRange values, size_t offset);
  /// Loads a value of a type that is in 32-bit registers.
  Value load(OpBuilder &builder, Type type, size_t offset);

  Value get() const { return slot; }

private:
  Value getAddress(OpBuilder &builder, size_t offset);
  Value findSlot();

  Operation *op;
  EmulatorCalls &calls;
  Value slot;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_EMULATOR_CONVERSION_MATRICES_H
