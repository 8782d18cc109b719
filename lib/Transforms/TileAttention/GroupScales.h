//===- GroupScales.h - Scales of groups of elements of tiles ----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_GROUPSCALES_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_GROUPSCALES_H

#include "../Builders/Heads.h"

namespace mlir::kvcache {

/// The scales of a tile of tokens, and of the next one, in shared memory: for
/// each token, those of all groups of its elements. Threads load them while the
/// tile before is multiplied, and dequantize stored elements with them.
class GroupScales {
public:
  /// The scales of the first `size` elements of the tokens of a cache.
  GroupScales(const Frame &frame, Value cache, int64_t size, int64_t tokens,
              int64_t threads);

  void allocate();
  /// Loads the scales of a tile whose rows `getPlace` finds, and returns a
  /// function that stores them. Barriers are the caller's.
  std::function<void()>
  load(Value thread, Value head, Value tile,
       function_ref<std::pair<Place, Value>(Value row)> getPlace) const;
  /// The scale of the element `d` of a row of a tile.
  Value get(Value tile, Value row, Value d) const;

private:
  Value getRow(Value tile, Value row) const;

  Frame frame;
  OpBuilder &builder;
  Location loc;
  Value cache;
  int64_t groups, tokens, threads;
  Value scales;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_GROUPSCALES_H
