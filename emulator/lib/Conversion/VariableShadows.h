//===- VariableShadows.h - What variables of a thread hold ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_CONVERSION_VARIABLESHADOWS_H
#define KVCACHE_LIB_EMULATOR_CONVERSION_VARIABLESHADOWS_H

#include "EmulatorCalls.h"
#include "Poison.h"

#include "mlir/Interfaces/DataLayoutInterfaces.h"

namespace mlir::kvcache {

/// The shadows of a function's variables that are followed. Beside a variable
/// that may be read before it is written are its uninitialized bytes;
/// beside one that poisoned values are stored to, their poison.
class VariableShadows {
public:
  VariableShadows(const MaybePoisoned &maybe, EmulatorCalls &calls,
                  const DataLayout &layout)
      : maybe(maybe), calls(calls), layout(layout) {}

  /// The shadow of what a load gives, which may be poisoned.
  Shadow load(LLVM::LoadOp op, LLVM::AllocaOp variable);
  /// A store of a value with a shadow, or of one that is not poisoned.
  void store(LLVM::StoreOp op, LLVM::AllocaOp variable, Shadow shadow);
  /// The life of a variable begins or ends: it holds nothing.
  void empty(Operation *lifetime);

private:
  struct VariableShadow {
    /// A byte for each one of the variable: -1 until it is written, then 0.
    Value unwritten;
    /// The poison of the stored values, and one origin for all of them.
    Value bits, origin;
  };

  Value createBytes(LLVM::AllocaOp variable, int64_t value);
  Value getUnwritten(LLVM::AllocaOp variable);
  VariableShadow &getStored(LLVM::AllocaOp variable);
  void fill(ShadowBuilder &b, Value address, uint64_t bytes, int64_t value);
  Value getOffset(ShadowBuilder &b, Value address, LLVM::AllocaOp variable);
  Value getAddress(ShadowBuilder &b, Value address, LLVM::AllocaOp variable,
                   Value bytes);
  Shadow loadUnwritten(ShadowBuilder &b, LLVM::LoadOp op,
                       LLVM::AllocaOp variable);
  Shadow loadStored(ShadowBuilder &b, LLVM::LoadOp op, LLVM::AllocaOp variable);

  const MaybePoisoned &maybe;
  EmulatorCalls &calls;
  const DataLayout &layout;
  llvm::DenseMap<Operation *, VariableShadow> shadows;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_EMULATOR_CONVERSION_VARIABLESHADOWS_H
