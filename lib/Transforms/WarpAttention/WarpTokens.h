//===- WarpTokens.h - Tokens that lanes of a warp load ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_WARPATTENTION_WARPTOKENS_H
#define KVCACHE_LIB_TRANSFORMS_WARPATTENTION_WARPTOKENS_H

#include "../Attention/SeenRanges.h"
#include "../Attention/TokenLoader.h"
#include "../Attention/VisibleTokens.h"
#include "WarpLanes.h"

namespace mlir::kvcache {

/// A token of a lane: its number, its pieces, whether the row sees it by
/// position, and its scales, which are null without them.
struct WarpToken {
  Value number, isSeen, keyScale, valueScale;
  SmallVector<Value> key, value;
};

/// Loads the tokens of a warp.
class WarpTokens {
public:
  WarpTokens(const Frame &frame, AttentionOp op, const WarpLanes &lanes)
      : frame(frame), op(op), lanes(lanes), ranges(frame, op) {}

  /// Loads token `number` for row `first + i`; after the last one, the one
  /// before `end` again.
  WarpToken load(const QueryRows &rows, Value i, Value number, Value end) const;
  /// Whether row `first + i` may see one of some tokens, by its ranges and the
  /// region `mask`: the same in all lanes. Null without them.
  Value isAnySeen(const QueryRows &rows, Value i, Value first,
                  int64_t count) const;

private:
  /// Loads a piece of a key or a value as f32. Keys may end with those of a
  /// rope.
  Value loadPiece(Value cache, const Place &place, int64_t piece,
                  int64_t width) const;
  /// Loads the key and the value, and their scales.
  void loadPieces(const Place &place, WarpToken &token) const;
  Value isAnyInRanges(const QueryRows &rows, Value i, Value first,
                      int64_t count) const;
  /// Whether the region `mask` may admit one of some tokens: the same in all
  /// lanes.
  Value isAnyAdmitted(const QueryRows &rows, Value i, Value first,
                      int64_t count) const;

  const Frame &frame;
  /// Mutable because accessors of ops are not const.
  mutable AttentionOp op;
  const WarpLanes &lanes;
  SeenRanges ranges;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_WARPATTENTION_WARPTOKENS_H
