//===- ScaleRow.h - Scales of the heads of a token --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_BUILDERS_SCALEROW_H
#define KVCACHE_LIB_TRANSFORMS_BUILDERS_SCALEROW_H

#include "Heads.h"

namespace mlir::kvcache {

/// The scales and zero points of the heads of a token. The threads of a block
/// compute them in different warps, each of which would write a part of a
/// sector. They meet in shared memory, from which neighbouring threads store
/// neighbouring ones, so that each sector is written once.
class ScaleRow {
public:
  /// The row of heads [firstHead, firstHead + heads) of a cache, for a block
  /// with this many threads that divide heads by `split`.
  ScaleRow(const Frame &frame, Value cache, int64_t firstHead, int64_t heads,
           int64_t threads, const Split &split);

  /// Whether some sectors would be written in parts without shared memory.
  bool isNeeded() const;

  /// Allocates the shared memory.
  void allocate();
  /// Puts the numbers of the groups from element `d` of a head on: scales, or
  /// zero points.
  void put(Value numbers, Value head, Value d, bool areZeroPoints) const;
  /// Stores the numbers of all threads, which have met in a barrier since they
  /// put theirs. `thread` counts the threads of the block.
  void store(const Place &place, Value thread) const;

private:
  Frame frame;
  OpBuilder &builder;
  Location loc;
  Value cache, tile;
  CacheTypeInterface type;
  /// The type of the view of the scales.
  CacheTypeInterface scales;
  int64_t firstHead, heads, threads;
  Split split;
  /// Bytes of a number.
  int64_t bytes = 0;
};

/// Whether the scales of a token, or of tokens that share them, are rows of
/// heads that `loadScaleRow` copies.
bool hasScaleRows(CacheTypeInterface cache);

/// Loads what a thread copies of the scales and zero points of a token, and
/// returns a function that stores it. `copy` has the first of `heads` heads.
/// `thread` counts the `threads` of the block, of which neighbours copy
/// neighbouring numbers, so that each sector is read and written once.
std::function<void()> loadScaleRow(const Frame &frame, const BitCopy &copy,
                                   int64_t heads, Value thread,
                                   int64_t threads);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_BUILDERS_SCALEROW_H
