//===- AttentionTiles.cpp - When attention takes tensor cores -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/IR/AttentionOps.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::kvcache;

/// The largest head whose sums a warp keeps in registers.
constexpr int64_t kMostElements = 256;
/// The largest latent row and value: two warps share the sums of a row.
constexpr int64_t kMostLatent = 640, kMostOfLatent = 512;
/// Rows of a block that leave room for latent rows in shared memory, at most,
/// with `mma.sync` and with the matrix instructions of warpgroups.
constexpr int64_t kLatentRows = 32, kLatentRowsOfWarpgroups = 64;

static FloatType getSixteenBits(Type element) {
  return isa<Float16Type, BFloat16Type>(element) ? cast<FloatType>(element)
                                                 : FloatType();
}

FloatType AttentionOp::getTileElement(Value cache) {
  auto type = cast<CacheTypeInterface>(cache.getType());
  Type element = type.getElementType();
  if (!type.isQuantized() && element.getIntOrFloatBitWidth() > 8)
    return getSixteenBits(element);
  Type query = cast<ShapedType>(getQ().getType()).getElementType();
  return query.getIntOrFloatBitWidth() == 8
             ? FloatType(BFloat16Type::get(getContext()))
             : getSixteenBits(query);
}

std::string AttentionOp::getTileObstacle() {
  bool isLatent = !getValueCache();
  AttentionConfig config = getFields();
  bool hasWarpgroups =
      config.mma == MmaKind::Wgmma || config.mma == MmaKind::Tcgen05;
  int64_t mostRows = hasWarpgroups ? kLatentRowsOfWarpgroups : kLatentRows;
  if (isLatent && config.rows.value_or(0) > mostRows)
    return llvm::formatv("a latent cache and more than {0} rows, or {1} of "
                         "'wgmma' and 'tcgen05'",
                         kLatentRows, kLatentRowsOfWarpgroups);
  Type query = cast<ShapedType>(getQ().getType()).getElementType();
  FloatType key = getTileElement(getKeyCache());
  bool isNarrow = query.getIntOrFloatBitWidth() == 8;
  if (!isNarrow && (!getSixteenBits(query) || (key && query != key)))
    return llvm::formatv("queries of {0}", query);
  for (Value cache : {Value(getKeyCache()), getValues(), Value(getRopeCache())})
    if (cache && !getTileElement(cache))
      return llvm::formatv("a cache of type {0}", cache.getType());
  // Elements of 16 bits are not rounded to another type of 16 bits.
  if (getRopeCache() && getTileElement(getRopeCache()) != key)
    return llvm::formatv("queries of {0}, or ropes of {1}", query,
                         getTileElement(getRopeCache()));
  auto getSize = [](Value rows) {
    return cast<ShapedType>(rows.getType()).getDimSize(2);
  };
  int64_t size = getKeySize(), valueSize = getSize(getOut());
  if (size % 16 || size > (isLatent ? kMostLatent : kMostElements))
    return llvm::formatv("heads of {0} elements", size);
  if (valueSize % (valueSize > kMostElements ? 32 : 16) ||
      valueSize > (isLatent ? kMostOfLatent : kMostElements))
    return llvm::formatv("heads of {0} elements", valueSize);
  for (int64_t border : {getSize(getQ()), size - getRopeSize()})
    if (border % 16)
      return llvm::formatv("the first {0} elements of heads in one array",
                           border);
  return "";
}
