//===- Choice.h - How a chip copies into a tile -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_CHOICE_H
#define KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_CHOICE_H

#include "kvcache/IR/KVCache.h"
#include "kvcache/Target/Chip.h"

namespace mlir::kvcache {

/// How a copy into a tile is done.
enum class Way {
  Plain,     ///< loads and stores
  AsyncCopy, ///< cp.async of 16, 8 or 4 bytes
  Boxes,     ///< a tensor copy for the rows of a tile that lie in a page
  Gather,    ///< tma_gather4: a tensor copy for four rows, or for each of them
  BulkRows,  ///< a bulk copy for each row
};

/// The descriptor that a way needs: an op on the copied view, by name.
struct DescriptorRequest {
  StringRef opName;
  DictionaryAttr attributes;

  bool operator==(const DescriptorRequest &other) const {
    return opName == other.opName && attributes == other.attributes;
  }
};

/// The descriptors of a view that its host can make.
enum class Makeable {
  None,
  WithinPages, ///< those that don't count rows through all pages
  Any,         ///< those as well, as far as is known
};

struct Choice {
  Way way = Way::Plain;
  /// Of `Boxes`: the rows that a tensor copy takes.
  int64_t boxRows = 0;
  /// Of `Boxes` and `Gather`.
  std::optional<DescriptorRequest> descriptor = std::nullopt;
  /// Of `AsyncCopy`: the bytes that a thread copies at once.
  int64_t unitBytes = 16;
};

/// How `chip` does a copy; null without GPU code or its target. `hasBarrier`
/// says that a barrier can tell when the copy is complete.
Choice chooseWay(Operation *copy, const Chip *chip, bool hasBarrier,
                 Makeable descriptors);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_CHOICE_H
