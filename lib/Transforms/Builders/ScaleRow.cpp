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
  scales = getViewType(type, /*isScales=*/true);
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

/// Numbers of a head of scales that one access may have.
static int64_t getWidth(Value cache) {
  CacheTypeInterface scales =
      getViewType(cast<CacheTypeInterface>(cache.getType()), /*isScales=*/true);
  uint64_t bytes = scales.getElementType().getIntOrFloatBitWidth() / 8;
  uint64_t alignment = getInPageAlignment(
      scales, getPageAlignment(cache, /*isScales=*/true, kPromisedAlignment));
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

namespace {

/// The scales of a token, or of tokens that share them, in memory.
class StoredRow {
public:
  StoredRow(const Frame &frame, Value cache, const Place &place,
            Value firstHead)
      : frame(frame), firstHead(firstHead), row(place.token), page(place.page) {
    auto type = cast<CacheTypeInterface>(cache.getType());
    Value view = ScalesViewOp::create(frame.builder, frame.loc, cache);
    size = cast<CacheTypeInterface>(view.getType()).getStoredHeadSize();
    base = ScalesBaseOp::create(frame.builder, frame.loc, view);
    if (!page) {
      page = PageIdOp::create(frame.builder, frame.loc, view, place.batch,
                              place.token);
      row = frame.rem(row, frame.getPageSize(view));
    }
    if (type.getTokenGranularity() > 1)
      row = frame.div(row, type.getTokenGranularity());
    frame.checkIndex(page, "page id", "scales", base, 0);
  }

  /// Loads the numbers from `column` on: a vector, or one.
  Value load(Value column, int64_t width) const {
    Type element = getElementTypeOrSelf(base.getType());
    if (width == 1)
      return memref::LoadOp::create(frame.builder, frame.loc, base,
                                    getIndices(column));
    return vector::LoadOp::create(
        frame.builder, frame.loc, VectorType::get(width, element), base,
        getIndices(column), /*nontemporal=*/false, getAlignment(width));
  }

  /// Zeros in place of such numbers.
  Value getZeros(int64_t width) const {
    Type element = getElementTypeOrSelf(base.getType());
    Type type = width == 1 ? element : VectorType::get(width, element);
    return arith::ConstantOp::create(frame.builder, frame.loc,
                                     frame.builder.getZeroAttr(type));
  }

  /// Stores numbers.
  void store(Value numbers, Value column) const {
    auto vector = dyn_cast<VectorType>(numbers.getType());
    if (!vector) {
      memref::StoreOp::create(frame.builder, frame.loc, numbers, base,
                              getIndices(column));
      return;
    }
    vector::StoreOp::create(
        frame.builder, frame.loc, numbers, base, getIndices(column),
        /*nontemporal=*/false, getAlignment(vector.getNumElements()));
  }

private:
  SmallVector<Value> getIndices(Value column) const {
    Value head = frame.div(column, size);
    if (firstHead)
      head = frame.add(head, firstHead);
    return {page, row, head, frame.rem(column, size)};
  }

  llvm::MaybeAlign getAlignment(int64_t width) const {
    Type element = getElementTypeOrSelf(base.getType());
    return llvm::MaybeAlign(width * element.getIntOrFloatBitWidth() / 8);
  }

  const Frame &frame;
  Value firstHead, row, page, base;
  int64_t size = 0;
};

} // namespace

void ScaleRow::store(const Place &place, Value thread) const {
  StoredRow row(frame, cache, place,
                firstHead ? frame.index(firstHead) : Value());
  int64_t width = getWidth(cache);
  int64_t count = heads * scales.getStoredHeadSize() / width;
  Type element = scales.getElementType();
  Type loaded = width == 1 ? element : VectorType::get(width, element);
  auto storeShare = [&](Value share) {
    Value column = frame.mul(share, width);
    Value numbers =
        TileLoadOp::create(builder, loc, loaded, tile, frame.index(0), column);
    row.store(numbers, column);
  };
  if (count > threads)
    frame.loop(thread, frame.index(count), frame.index(threads), storeShare);
  else if (count == threads)
    storeShare(thread);
  else
    frame.runIf(frame.below(thread, frame.index(count)),
                [&] { storeShare(thread); });
}

bool kvcache::hasScaleRows(CacheTypeInterface cache) {
  LayoutAttrInterface layout = cache.getScaleLayout();
  return cache.isQuantized() && (!layout || layout.getInterleave() == 1);
}

std::function<void()> kvcache::loadScaleRow(const Frame &frame,
                                            const BitCopy &copy, int64_t heads,
                                            Value thread, int64_t threads) {
  auto type = cast<CacheTypeInterface>(copy.source.getType());
  CacheTypeInterface scales = getViewType(type, /*isScales=*/true);
  int64_t width = std::min(getWidth(copy.source), getWidth(copy.target));
  int64_t count = heads * scales.getStoredHeadSize() / width;
  StoredRow from(frame, copy.source, copy.from, copy.sourceHead);
  StoredRow to(frame, copy.target, copy.to, copy.targetHead);
  auto load = [=, &frame](Value share) {
    return from.load(frame.mul(share, width), width);
  };
  auto store = [=, &frame](Value numbers, Value share) {
    to.store(numbers, frame.mul(share, width));
  };
  // The first of the tokens that share their scales copies them.
  Value isOwn;
  if (int64_t tokens = type.getTokenGranularity(); tokens > 1)
    isOwn = frame.equal(frame.rem(copy.from.token, tokens), frame.index(0));
  if (count > threads)
    return [=, &frame] {
      runIfGiven(frame, isOwn, [&] {
        frame.loop(thread, frame.index(count), frame.index(threads),
                   [&](Value share) { store(load(share), share); });
      });
    };
  if (count < threads) {
    Value isInside = frame.below(thread, frame.index(count));
    isOwn =
        isOwn ? arith::AndIOp::create(frame.builder, frame.loc, isOwn, isInside)
                    .getResult()
              : isInside;
  }
  Value numbers = isOwn ? frame.selectIf(
                              isOwn, [&] { return load(thread); },
                              [&] { return from.getZeros(width); })
                        : load(thread);
  return [=, &frame] {
    runIfGiven(frame, isOwn, [&] { store(numbers, thread); });
  };
}
