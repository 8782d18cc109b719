//===- WarpLanes.h - How lanes of a warp share heads ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_WARPATTENTION_WARPLANES_H
#define KVCACHE_LIB_TRANSFORMS_WARPATTENTION_WARPLANES_H

#include "../Builders/DeviceMath.h"
#include "../PlanAttention/WarpSizes.h"

namespace mlir::kvcache {

/// The heads of a warp, and the elements that each lane has of them, in pieces.
struct WarpLanes {
  WarpLanes(AttentionOp op, const AttentionConfig &config);

  /// Tokens that the warp computes at once.
  int64_t countTokens() const { return kWarp / sizes.lanes; }
  /// The first element of a piece of so many elements.
  Value getElement(const Frame &frame, int64_t piece, int64_t width) const;
  Value getQueryHead(const Frame &frame, int64_t g) const;
  /// Sums, or maxima, over lanes that have the same elements.
  Value reduceTokens(const DeviceMath &f, Value value, bool isMax) const;
  /// The sum of the elements of `vector` over such lanes.
  Value sumTokens(const DeviceMath &f, Value vector) const;
  /// The sum over the lanes that share a token.
  Value sumElements(const DeviceMath &f, Value value) const;

  WarpSizes sizes;
  /// The hint of loads from the cache, or null.
  EvictionAttr hint;
  int64_t keyPieces, valuePieces;
  /// The lane among those of a token, and the token of the warp.
  Value lane, warp;
  /// The head of the caches, and the first query head.
  Value head, firstHead;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_WARPATTENTION_WARPLANES_H
