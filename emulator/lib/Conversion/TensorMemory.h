//===- TensorMemory.h - Operands of tcgen05 ---------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_CONVERSION_TENSORMEMORY_H
#define KVCACHE_LIB_EMULATOR_CONVERSION_TENSORMEMORY_H

#include "EmulatorCalls.h"

namespace mlir::kvcache {

/// A structure in the frame of a function that all its ops of a kind share:
/// kernels have many of them, and small stacks.
class TensorSlot {
public:
  TensorSlot(Operation *op, EmulatorCalls &calls, StringRef mark,
             int64_t bytes);

  void store(OpBuilder &builder, Value value, size_t offset);
  Value load(OpBuilder &builder, Type type, size_t offset);

  Value get() const { return slot; }

private:
  Value getAddress(OpBuilder &builder, size_t offset);
  Value findSlot(StringRef mark, int64_t bytes);

  Operation *op;
  EmulatorCalls &calls;
  Value slot;
};

/// The KVCacheTmemRegisters of loads and stores.
class TensorRegisters : public TensorSlot {
public:
  TensorRegisters(Operation *op, EmulatorCalls &calls);
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_EMULATOR_CONVERSION_TENSORMEMORY_H
