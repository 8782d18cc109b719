//===- ScaleRow.cpp - Scales of the heads of a token ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScaleRow.h"

#include "kvcache/IR/CacheShape.h"
#include "kvcache/IR/QueryOps.h"
#include "kvcache/IR/ScalesOps.h"
#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::kvcache;

constexpr int64_t kWarp = 32;
/// Bytes that memory is read and written by.
constexpr int64_t kSector = 32;
/// Bytes of an access, at most.
constexpr int64_t kMostWidth = 16;
/// Bytes of a row, at most: more would leave room for fewer blocks.
constexpr int64_t kMostBytes = 8192;

ScaleRow::ScaleRow(const Frame &frame, Value cache, int64_t firstHead,
                   int64_t heads, int64_t threads, const Split &split)
    : frame(frame), builder(frame.builder), loc(frame.loc), cache(cache),
      type(cast<CacheTypeInterface>(cache.getType())), firstHead(firstHead),
      heads(heads), threads(threads), split(split) {
  if (!type.isQuantized())
    return;
  scales = getViewType(type, /*ofScales=*/true);
  bytes = scales.getElementType().getIntOrFloatBitWidth() / 8;
}

bool ScaleRow::isNeeded() const {
  if (!frame.isGPU || !scales || scales.getInterleave() != 1 ||
      type.getTokenGranularity() != 1)
    return false;
  // Units have whole groups, or a group has whole units.
  int64_t granularity = type.getGranularity();
  if (type.getHeadSize() % granularity != 0)
    return false;
  if (heads * scales.getStoredHeadSize() * bytes > kMostBytes)
    return false;
  // Zero points are a request of their own.
  if (type.hasZeroPoints())
    return true;
  // One request has all.
  if (threads <= kWarp && threads >= heads * split.lanes)
    return false;
  if (scales.getHeadStride() != scales.getStoredHeadSize())
    return kWarp % split.lanes != 0;
  return kWarp * split.unit * bytes % (granularity * kSector) != 0;
}

int64_t ScaleRow::getWidth() const {
  uint64_t alignment = getInPageAlignment(
      scales, getPageAlignment(cache, /*ofScales=*/true, kPromisedAlignment));
  uint64_t most = llvm::MinAlign(std::min<uint64_t>(alignment, kMostWidth),
                                 scales.getStoredHeadSize() * bytes);
  return std::max<int64_t>(most / bytes, 1);
}

void ScaleRow::allocate() {
  int64_t columns =
      llvm::alignTo(heads * scales.getStoredHeadSize(), kMostWidth / bytes);
  auto row = TileType::get(builder.getContext(), /*rows=*/1, columns,
                           scales.getElementType(), Swizzle::None);
  tile = AllocTileOp::create(builder, loc, row, IntegerAttr());
}

void ScaleRow::put(Value numbers, Value head, Value d,
                   bool areZeroPoints) const {
  Value local = firstHead ? frame.sub(head, frame.index(firstHead)) : head;
  Value column = frame.add(frame.mul(local, scales.getStoredHeadSize()),
                           frame.div(d, type.getGranularity()));
  if (areZeroPoints)
    column = frame.add(column, frame.index(scales.getStoredLanesPerHead()));
  auto vector = dyn_cast<VectorType>(numbers.getType());
  for (int64_t lane = 0; lane < getNumLanes(numbers.getType()); ++lane) {
    Value number = numbers;
    if (vector)
      number = vector::ExtractOp::create(builder, loc, numbers, lane);
    TileStoreOp::create(builder, loc, number, tile, frame.index(0),
                        frame.add(column, frame.index(lane)));
  }
}

void ScaleRow::store(const Place &place, Value thread) const {
  Value view = ScalesViewOp::create(builder, loc, cache);
  Value base = ScalesBaseOp::create(builder, loc, view);
  Value page = place.page, offset = place.token;
  if (!page) {
    page = PageIdOp::create(builder, loc, view, place.batch, place.token);
    offset = frame.rem(place.token, frame.getPageSize(view));
  }
  frame.checkIndex(page, "page id", "scales", base, 0);
  int64_t width = getWidth(), size = scales.getStoredHeadSize();
  int64_t count = heads * size / width;
  Type element = scales.getElementType();
  Type loaded = width == 1 ? element : VectorType::get(width, element);
  auto storeShare = [&](Value share) {
    Value column = frame.mul(share, width);
    Value numbers =
        TileLoadOp::create(builder, loc, loaded, tile, frame.index(0), column);
    Value head = frame.div(column, size);
    if (firstHead)
      head = frame.add(head, frame.index(firstHead));
    SmallVector<Value> indices = {page, offset, head, frame.rem(column, size)};
    if (width == 1)
      memref::StoreOp::create(builder, loc, numbers, base, indices);
    else
      vector::StoreOp::create(builder, loc, numbers, base, indices,
                              /*nontemporal=*/false,
                              llvm::MaybeAlign(width * bytes));
  };
  if (count > threads)
    frame.loop(thread, frame.index(count), frame.index(threads), storeShare);
  else if (count == threads)
    storeShare(thread);
  else
    frame.runIf(frame.below(thread, frame.index(count)),
                [&] { storeShare(thread); });
}
