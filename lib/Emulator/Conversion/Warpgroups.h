//===- Warpgroups.h - Accumulators of wgmma ---------------------*- C++ -*-===//
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

/// Whether the accumulators of a wgmma are as many registers of 32 bits as the
/// instruction has.
bool hasKnownAccumulators(Operation *wgmma);

/// The KVCacheWgmmaRegisters that the wgmma of a function share.
class WgmmaRegisters {
public:
  WgmmaRegisters(Operation *op, EmulatorCalls &calls);

  void store(OpBuilder &builder, Value value, size_t offset);
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
