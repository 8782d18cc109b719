//===- WarpSizes.cpp - The work of a warp without tensor cores ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpSizes.h"

#include "../Builders/Heads.h"
#include "AttentionShape.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

static int64_t getLanesPerStored(Value cache) {
  return cast<CacheTypeInterface>(cache.getType()).getLanesPerStored();
}

WarpSizes kvcache::computeWarpSizes(AttentionOp op) {
  AttentionShape shape(op);
  int64_t bits = 8;
  SmallVector<Value> caches{op.getKeyCache(), op.getValues()};
  if (op.getRopeCache())
    caches.push_back(op.getRopeCache());
  for (Value cache : caches) {
    Type element = cast<CacheTypeInterface>(cache.getType()).getElementType();
    bits = std::max<int64_t>(bits, element.getIntOrFloatBitWidth());
  }
  int64_t most = std::min<int64_t>(8, 128 / bits);
  // A piece of a key, or a query, is of one array.
  int64_t border =
      std::gcd(std::gcd(shape.keySize,
                        cast<ShapedType>(op.getQ().getType()).getDimSize(2)),
               shape.keySize - op.getRopeSize());
  int64_t common = std::gcd(getLanes(op.getKeyCache(), border, most),
                            getLanes(op.getValues(), shape.valueSize, most));
  // A lane loads whole bytes.
  int64_t leastOfKey = getLanesPerStored(op.getKeyCache()),
          leastOfValue = getLanesPerStored(op.getValues());
  WarpSizes sizes{1};
  int64_t chosen = 0;
  for (int64_t lanes = 1; lanes <= kWarp; lanes *= 2) {
    if (shape.keySize % (lanes * leastOfKey) ||
        shape.valueSize % (lanes * leastOfValue))
      break;
    int64_t width =
        std::gcd(std::gcd(shape.keySize, shape.valueSize) / lanes, common);
    bool fits = shape.keySize / lanes <= kMostElements;
    bool fitted = shape.keySize / sizes.lanes <= kMostElements;
    if (!fitted || (fits && width >= chosen)) {
      sizes.lanes = lanes;
      chosen = width;
    }
  }
  // All are powers of two: a lane's share has whole pieces.
  sizes.keyWidth = std::max(chosen, leastOfKey);
  sizes.valueWidth = std::max(chosen, leastOfValue);
  int64_t perRow = (shape.keySize + shape.valueSize) / sizes.lanes;
  sizes.rows =
      getDivisorUpTo(shape.heads, std::max<int64_t>(kMostFloats / perRow, 1));
  sizes.tokens = shape.keySize / sizes.lanes > kFewElements ? 2 : 4;
  return sizes;
}
