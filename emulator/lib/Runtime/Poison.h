//===- Poison.h - Uninitialized bytes, and their reads ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_POISON_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_POISON_H

#include "kvcache/Emulator/ABI.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

namespace mlir::kvcache::emulator {

/// The uninitialized bytes of an access.
struct Poison {
  /// A bit for each of the first 64 bytes.
  uint64_t mask = 0;
  /// 0 if all bytes have been written.
  uint32_t origin = 0;
};

/// The origins of poisoned values of a block.
class Origins {
public:
  /// The first uninitialized byte of an access.
  struct Origin {
    const KVCacheSite *site;
    uint64_t begin;
    bool isGlobal, mayArrive;
    /// The bytes of the thread's variable that holds it, or 0.
    uint64_t variableBytes = 0;
    /// Whether it is of a word of tensor memory, at its address.
    bool isTensor = false;
  };

  void clear() {
    origins.clear();
    numbers.clear();
  }
  /// The number of an origin, which is not 0.
  uint32_t add(const Origin &origin);
  const Origin &get(uint32_t number) const { return origins[number - 1]; }

private:
  std::vector<Origin> origins;
  std::map<std::tuple<const KVCacheSite *, uint64_t, uint64_t>, uint32_t>
      numbers;
};

/// The uninitialized bytes of global memory that a copy reads.
struct Unwritten {
  /// The number of a range that it reads, and an offset in that.
  struct Byte {
    size_t range;
    uint64_t offset;
  };
  std::vector<Byte> bytes;
  uint32_t origin = 0;
};

/// The poison of bytes of a granule of shared memory, to which poisoned values
/// were stored.
struct StoredPoison {
  uint16_t mask = 0;
  uint32_t origin = 0;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_POISON_H
