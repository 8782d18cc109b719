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
#include <optional>
#include <string>
#include <vector>

namespace mlir::kvcache::emulator {

struct Thread;

/// The variables on the stack whose addresses escape.
class Variables {
public:
  struct Variable {
    uintptr_t begin, end;
    /// Its uninitialized bytes; empty if there are none.
    std::vector<bool> unwritten;

    uint64_t size() const { return end - begin; }
    /// The first such byte of an access, as an offset.
    std::optional<uint64_t> findUnwritten(uintptr_t address,
                                          uint64_t bytes) const;
    void write(uintptr_t address, uint64_t bytes);
    /// The bytes become as those of another variable are.
    void copy(uintptr_t address, const Variable &from, uintptr_t fromAddress,
              uint64_t bytes);
  };

  void clear() { variables.clear(); }

  /// Adds one, and drops those of functions that have returned since: on a
  /// stack that ends at `top`, or where the new one is. A written one may be
  /// there already.
  void add(uintptr_t begin, uint64_t bytes, uintptr_t top, bool isWritten);

  /// The one that all bytes are in; null if there is none.
  Variable *find(uintptr_t begin, uint64_t bytes);
  /// The one that an address is in, or next to.
  const Variable *findNear(uintptr_t address) const;
  /// A byte of one, in messages.
  static std::string describe(int64_t offset, uint64_t size);

private:
  std::vector<Variable> variables;
};

/// An access of the thread's stack, with the flags of `kvcacheEmulatorAccess`.
/// Fails as an error of the thread if no variable is there.
void accessStack(Thread &thread, const KVCacheSite *site, const void *pointer,
                 uint64_t bytes, uint32_t flags);

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_VARIABLES_H
