//===- PendingStores.h - Global memory that copies will write ---*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_PENDINGSTORES_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_PENDINGSTORES_H

#include <cstdint>
#include <map>

namespace mlir::kvcache::emulator {

struct BoxCopy;

/// Where tensor and bulk copies of a block are going to write global memory,
/// until a thread has waited for more than their reads (wait_group without
/// .read): PTX ISA, "cp.async.bulk.wait_group".
class PendingStores {
public:
  void clear() { pieces.clear(); }
  /// The copy must stay where it is until it is removed.
  void add(const BoxCopy &copy);
  void remove(const BoxCopy &copy);

  /// The copy that is going to write any of the bytes; null if there is none.
  const BoxCopy *find(const void *pointer, uint64_t bytes) const {
    return pieces.empty() ? nullptr : findOverlap(pointer, bytes);
  }

private:
  struct Piece {
    uintptr_t end;
    const BoxCopy *copy;
  };

  const BoxCopy *findOverlap(const void *pointer, uint64_t bytes) const;

  /// By where they begin; pieces of several copies may overlap.
  std::multimap<uintptr_t, Piece> pieces;
  uint64_t longest = 0;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_PENDINGSTORES_H
