//===- TensorScales.h - Block scales in tensor memory -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_TENSORSCALES_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_TENSORSCALES_H

#include "kvcache/Emulator/ABI.h"

#include <cstdint>

namespace mlir::kvcache::emulator {

class Block;
struct Thread;

/// The scales of the rows of a factor in the tensor memory of a block. PTX ISA,
/// "Block Scaling": word i / 32 of lane i % 32 has those of row i, in bytes
/// from `id` on, and each quarter of the lanes has a copy of all of them, which
/// is the one that it multiplies with.
struct TensorScales {
  Block *block = nullptr;
  /// The first word, in lane 0.
  uint32_t address = 0;
  uint32_t rows = 0;
  /// The first byte of a word, and how many a row has.
  uint32_t id = 0, count = 0;
  /// Formats ue8m0 or ue4m3.
  bool isE8M0 = false;

  /// The scales of a row, and the origin of their poison, or 0.
  struct Row {
    double values[4] = {1, 1, 1, 1};
    uint32_t origin = 0;
  };

  /// Fails as an error of the thread if they can't be there.
  void check(const Thread &thread, const KVCacheSite *site,
             const char *operand) const;
  /// Orders the reads, which belong to the access that has begun.
  void touch() const;
  Row read(const KVCacheSite *site, uint32_t quarter, uint32_t row) const;

private:
  template <typename Visitor> void forEachRegion(Visitor visit) const;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_TENSORSCALES_H
