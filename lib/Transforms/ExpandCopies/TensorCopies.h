//===- TensorCopies.h - Copies by tensor maps -------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_TENSORCOPIES_H
#define KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_TENSORCOPIES_H

#include "Blocks.h"
#include "Choice.h"

namespace mlir::kvcache {

/// Tensor copies of the issuer into one tile or more. They complete
/// `getTileBytes` of each on the barrier. What copies have in common is found
/// once, and before the issuer waits for anything: the pages of consecutive
/// tokens, which are the same for keys and values.
class TensorCopies {
public:
  TensorCopies(const IndexBuilder &b, const Issuer &issuer, Barrier barrier)
      : b(b), issuer(issuer), barrier(barrier) {}

  /// Adds a copy, which stays where it is and has to outlive `issue`.
  void add(Operation *copy, const Choice &choice, Value descriptor);
  /// Starts all of them.
  void issue() const;

private:
  /// The boxes of consecutive tokens: where they are, in cache and tile.
  struct Boxes {
    AsyncLoadTileOp op;
    int64_t boxRows;
    /// The tile's valid rows; null if all are.
    Value valid;
    /// For each box its page, or with `valid` its row of the view.
    SmallVector<Value> found;
  };
  struct Copy {
    Operation *op;
    TypedValue<TMATileType> descriptor;
    /// The index of its boxes, unless it is a gather.
    size_t boxes;
  };

  size_t findBoxes(AsyncLoadTileOp op, int64_t boxRows);
  Value lookUpBox(const Boxes &boxes, Value row) const;
  SmallVector<Value> getCoordinates(const Boxes &boxes, AsyncLoadTileOp op,
                                    int64_t box) const;
  void issueBoxes(const Copy &copy) const;

  const IndexBuilder &b;
  const Issuer &issuer;
  Barrier barrier;
  SmallVector<Boxes> allBoxes;
  SmallVector<Copy> copies;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_TENSORCOPIES_H
