//===- HeadPieces.h - Elements of heads in registers ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_HEADPIECES_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_HEADPIECES_H

#include "HostAttention.h"

namespace mlir::kvcache {

/// How elements of the heads of a cache are loaded as f32: in pieces of
/// `width` elements, each one vector or two.
///
/// Two elements of bf16 are 32 bits, of which each is an f32 with a shift or a
/// mask. So pieces of bf16 are a vector of the even elements and one of the odd
/// ones, for which no lane moves. Memory of f32 that they are multiplied with
/// has elements in the same order.
class HeadPieces {
public:
  /// Pieces of at most `most` lanes that do not cross multiples of `boundary`
  /// elements.
  HeadPieces(const HostAttention &attention, Value cache, int64_t boundary,
             int64_t most);

  int64_t getWidth() const { return width; }
  /// Whether pieces are pairs of bf16 in memory.
  bool arePairs() const { return isPaired; }
  int64_t countVectors() const { return isPaired ? 2 : 1; }
  /// The lanes of a vector.
  int64_t getLanes() const { return width / countVectors(); }

  /// Loads a piece from `d` on of a head of a cache like that of the
  /// constructor.
  SmallVector<Value> load(Value cache, const Place &place, Value head,
                          Value d) const;
  /// Loads such a piece of pairs, as i32.
  Value loadPairs(Value cache, const Place &place, Value head, Value d) const;
  /// Loads and stores the vectors of a piece of row `row` of memory.
  SmallVector<Value> load(Value memory, Value row, Value d) const;
  void store(ArrayRef<Value> vectors, Value memory, Value row, Value d) const;

  /// The vectors of the elements of a piece, and the elements of vectors.
  SmallVector<Value> divide(Value elements) const;
  Value join(ArrayRef<Value> vectors) const;

private:
  const HostAttention *attention;
  bool isPaired;
  int64_t width;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_HEADPIECES_H
