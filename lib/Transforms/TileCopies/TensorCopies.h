//===- TensorCopies.h - Copies by tensor maps -------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILECOPIES_TENSORCOPIES_H
#define KVCACHE_LIB_TRANSFORMS_TILECOPIES_TENSORCOPIES_H

#include "Blocks.h"

#include "kvcache/IR/KVCacheDialect.h"

namespace mlir::kvcache {

/// Tensor copies of the issuer into one or more tiles. The barrier receives the
/// bytes of all tiles. Copies of the same rows share their lookups, as the keys
/// and values of the same tokens do; the lookups come before the issuer waits.
class TensorCopies {
public:
  TensorCopies(const IndexBuilder &b, const Issuer &issuer, Barrier barrier)
      : b(b), issuer(issuer), barrier(barrier) {}

  /// Adds a copy with a descriptor, which must outlive `issue`.
  void add(TileCopyOpInterface copy);
  /// Emits all copies, and does not erase the ops.
  void issue() const;

private:
  /// The boxes of consecutive tokens: where they are, in cache and tile.
  struct Boxes {
    TileCopyOpInterface op;
    int64_t boxRows;
    /// The tile's valid rows; null if all are.
    Value valid;
    /// For each box its page, or with `valid` its row of the view.
    SmallVector<Value> found;
  };
  struct Copy {
    TileCopyOpInterface op;
    /// The index of its boxes; none for a copy with row ids.
    std::optional<size_t> boxes;
  };

  size_t findBoxes(TileCopyOpInterface op);
  Value lookUpBox(const Boxes &boxes, Value row) const;
  SmallVector<Value> getCoordinates(const Boxes &boxes, TileCopyOpInterface op,
                                    int64_t box) const;
  void issueBox(const Boxes &boxes, TileCopyOpInterface op, int64_t box) const;
  void issueBoxes(const Copy &copy) const;

  IndexBuilder b;
  const Issuer &issuer;
  Barrier barrier;
  SmallVector<Boxes> allBoxes;
  SmallVector<Copy> copies;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILECOPIES_TENSORCOPIES_H
