//===- Variables.h - Variables of a thread that it may access ---*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_VARIABLES_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_VARIABLES_H

#include "kvcache/Emulator/ABI.h"

#include <cstdint>
#include <vector>

namespace mlir::kvcache::emulator {

struct Thread;

/// Those on its stack whose addresses go around.
class Variables {
public:
  struct Variable {
    uintptr_t begin, end;
  };

  void clear() { variables.clear(); }

  /// Adds one, and drops those of functions that have returned since: on a
  /// stack that ends at `top`, or where the new one is.
  void add(uintptr_t begin, uint64_t bytes, uintptr_t top);

  /// The one that all bytes are in; null if there is none.
  const Variable *find(uintptr_t begin, uint64_t bytes) const;
  /// The one that an address is in, or next to.
  const Variable *findNear(uintptr_t address) const;

private:
  std::vector<Variable> variables;
};

/// An access of the thread's stack, with the flags of `kvcacheEmulatorAccess`.
/// Fails as an error of the thread if no variable is there.
void accessStack(const Thread &thread, const KVCacheSite *site,
                 const void *pointer, uint64_t bytes, uint32_t flags);

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_VARIABLES_H
