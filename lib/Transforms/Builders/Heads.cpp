//===- Heads.cpp - Parts of heads, in memory and in caches ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Heads.h"
#include "ScaleRow.h"

#include "kvcache/IR/AccessOps.h"
#include "kvcache/IR/CheckOps.h"
#include "kvcache/IR/DenseOperands.h"
#include "kvcache/IR/QuantizationOps.h"
#include "kvcache/IR/QueryOps.h"
#include "kvcache/IR/ScalesOps.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

/// Bytes of a line of a CPU's caches.
constexpr int64_t kLineBytes = 64;
/// A CPU drops a prefetch while its queue of misses is full.
constexpr int64_t kPrefetchAttempts = 3;

static unsigned getWidth(Type type) {
  return getLaneType(type).getIntOrFloatBitWidth();
}

Value kvcache::convertLanes(const Frame &frame, Value value, Type lane) {
  OpBuilder &builder = frame.builder;
  Type from = getLaneType(value.getType());
  if (from == lane)
    return value;
  bool isThroughF32 = !from.isF32() && !lane.isF32();
  if (isThroughF32)
    value = convertLanes(frame, value, builder.getF32Type());
  Type to = withLane(value.getType(), lane);
  if (getWidth(value.getType()) < getWidth(to))
    return arith::ExtFOp::create(builder, frame.loc, to, value);
  return arith::TruncFOp::create(builder, frame.loc, to, value);
}

Place kvcache::getPlaceOfRow(const Frame &frame, Value cache, Value row) {
  Value pageSize = frame.getPageSize(cache);
  return {frame.index(0), frame.rem(row, pageSize), frame.div(row, pageSize)};
}

Value kvcache::encodeRow(const Frame &frame, Value cache, Value batch,
                         Value token, StringRef name) {
  Value pageSize = frame.getPageSize(cache);
  Value page = PageIdOp::create(frame.builder, frame.loc, cache, batch, token);
  Value row = frame.add(frame.mul(page, pageSize), frame.rem(token, pageSize));
  if (frame.hasChecks)
    CheckOp::create(frame.builder, frame.loc, row,
                    frame.index(int64_t(1) << 31),
                    ("encoded row of '" + name + "'").str());
  return row;
}

//===----------------------------------------------------------------------===//
// Dense memory
//===----------------------------------------------------------------------===//

// On a GPU, rows are aligned to 16 bytes if heads are. On the CPU, wide
// accesses need no alignment.
int64_t kvcache::getDenseAlignment(const Frame &frame, MemRefType type,
                                   int64_t count) {
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  if (!frame.isGPU)
    return bytes;
  return llvm::MinAlign(getRowAlignment(type), count * bytes);
}

static SmallVector<Value> appendIndex(ValueRange indices, Value d) {
  SmallVector<Value> all(indices);
  all.push_back(d);
  return all;
}

Value kvcache::loadDense(const Frame &frame, Value memref, ValueRange indices,
                         Value d, int64_t count) {
  auto type = cast<MemRefType>(memref.getType());
  auto vector = VectorType::get(count, type.getElementType());
  return vector::LoadOp::create(
      frame.builder, frame.loc, vector, memref, appendIndex(indices, d),
      /*nontemporal=*/false,
      llvm::MaybeAlign(getDenseAlignment(frame, type, count)));
}

Value kvcache::loadJoined(const Frame &frame, const JoinedRows &rows,
                          ValueRange indices, Value d, int64_t count) {
  if (!rows.second)
    return loadDense(frame, rows.first, indices, d, count);
  Value border =
      frame.index(cast<MemRefType>(rows.first.getType()).getShape().back());
  return frame.selectIf(
      frame.below(d, border),
      [&] { return loadDense(frame, rows.first, indices, d, count); },
      [&] {
        return loadDense(frame, rows.second, indices, frame.sub(d, border),
                         count);
      });
}

void kvcache::storeDense(const Frame &frame, Value values, Value memref,
                         ValueRange indices, Value d) {
  auto type = cast<MemRefType>(memref.getType());
  values = convertLanes(frame, values, type.getElementType());
  vector::StoreOp::create(frame.builder, frame.loc, values, memref,
                          appendIndex(indices, d),
                          /*nontemporal=*/false,
                          llvm::MaybeAlign(getDenseAlignment(
                              frame, type, getNumLanes(values.getType()))));
}

//===----------------------------------------------------------------------===//
// Caches
//===----------------------------------------------------------------------===//

static CacheTypeInterface getCacheType(Value cache) {
  return cast<CacheTypeInterface>(cache.getType());
}

/// The scales' page, which a cache without scales does not take.
static Value getScalePage(Value cache, const Place &place) {
  return getCacheType(cache).isQuantized() ? place.page : Value();
}

Value kvcache::loadStaticScale(const Frame &frame, Value scale, Value head) {
  if (!scale || !isa<MemRefType>(scale.getType()))
    return scale;
  return memref::LoadOp::create(frame.builder, frame.loc, scale, head);
}

Value kvcache::loadElements(const Frame &frame, Value cache, const Place &place,
                            Value head, Value d, int64_t count, Type lane,
                            Value factor, bool nontemporal) {
  auto vector = VectorType::get(count, lane);
  return LoadOp::create(frame.builder, frame.loc, vector, cache, place.batch,
                        head, place.token, d, place.page,
                        getScalePage(cache, place), factor, nontemporal);
}

int64_t kvcache::getLanes(Value cache, int64_t size, int64_t most) {
  CacheTypeInterface type = getCacheType(cache);
  // Groups of one element do not limit loads.
  int64_t granularity = type.isQuantized() && type.getGranularity() > 1
                            ? type.getGranularity()
                            : most;
  return std::max(std::gcd(std::gcd(most, size), granularity),
                  type.getLanesPerStored());
}

bool kvcache::hasTokenScales(CacheTypeInterface cache) {
  return cache.isQuantized() && cache.getNumGroups() == 1 &&
         !cache.hasZeroPoints() && multipliesInF32(cache);
}

bool kvcache::multipliesInF32(CacheTypeInterface cache) {
  unsigned bits = cache.isQuantized() ? getWidth(cache.getScale()) : 32;
  return bits == 32 || bits == 8;
}

Value kvcache::loadTokenScale(const Frame &frame, Value cache,
                              const Place &place, Value head) {
  return loadScale(frame, cache, place, head, frame.index(0));
}

Value kvcache::loadScale(const Frame &frame, Value cache, const Place &place,
                         Value head, Value d) {
  Value scale = LoadScaleOp::create(
      frame.builder, frame.loc, getCacheType(cache).getScale(), cache,
      place.batch, head, place.token, d, getScalePage(cache, place),
      /*zero_point=*/false);
  return convertLanes(frame, scale, frame.builder.getF32Type());
}

int64_t kvcache::countScaleGroups(Value cache, int64_t size) {
  CacheTypeInterface type = getCacheType(cache);
  return type.isQuantized() ? llvm::divideCeil(size, type.getGranularity()) : 0;
}

SmallVector<Value> kvcache::loadScales(const Frame &frame, Value cache,
                                       const Place &place, Value head,
                                       int64_t groups, bool areZeroPoints) {
  CacheTypeInterface type = getCacheType(cache);
  // Vectors of at most 16 bytes.
  int64_t bytes = getWidth(type.getScale()) / 8;
  int64_t count = std::gcd(type.getNumGroups(), std::gcd(groups, 16 / bytes));
  SmallVector<Value> scales;
  for (int64_t group = 0; group < groups; group += count) {
    Value some = LoadScaleOp::create(frame.builder, frame.loc,
                                     VectorType::get(count, type.getScale()),
                                     cache, place.batch, head, place.token,
                                     frame.index(group * type.getGranularity()),
                                     getScalePage(cache, place), areZeroPoints);
    some = convertLanes(frame, some, frame.builder.getF32Type());
    llvm::append_range(
        scales, vector::ToElementsOp::create(frame.builder, frame.loc, some)
                    .getResults());
  }
  return scales;
}

Value kvcache::loadStoredScales(const Frame &frame, Value cache,
                                const Place &place, Value head,
                                int64_t groups) {
  return LoadScaleOp::create(
      frame.builder, frame.loc,
      VectorType::get(groups, getCacheType(cache).getScale()), cache,
      place.batch, head, place.token, frame.index(0),
      getScalePage(cache, place), /*zero_point=*/false);
}

Value kvcache::loadUnscaled(const Frame &frame, Value cache, const Place &place,
                            Value head, Value d, int64_t count, Type lane,
                            bool nontemporal) {
  CacheTypeInterface type = getCacheType(cache);
  if (!hasTokenScales(type))
    return loadElements(frame, cache, place, head, d, count, lane, Value(),
                        nontemporal);
  OpBuilder &builder = frame.builder;
  Value elements = LoadQuantizedOp::create(
      builder, frame.loc, VectorType::get(count, type.getElementType()), cache,
      place.batch, head, place.token, d, place.page, nontemporal);
  Value one =
      arith::ConstantOp::create(builder, frame.loc, builder.getF32FloatAttr(1));
  return DequantizeOp::create(builder, frame.loc, VectorType::get(count, lane),
                              elements, one, /*tensor_scale=*/Value());
}

Value kvcache::getStoredRow(const Frame &frame, Value cache, const Place &place,
                            Value head, int64_t count) {
  CacheTypeInterface type = getCacheType(cache);
  if (!type.hasRowsOfTokens())
    return {};
  OpBuilder &builder = frame.builder;
  int64_t columns = count / type.getLanesPerStored();
  auto layout = StridedLayoutAttr::get(
      builder.getContext(), ShapedType::kDynamic, {type.getTokenStride(), 1});
  return BlockTileOp::create(
      builder, frame.loc,
      MemRefType::get({1, columns}, type.getStorageType(), layout), cache,
      place.batch, head, place.token, frame.index(0), place.page);
}

int64_t kvcache::countInLine(MemRefType row) {
  return kLineBytes * 8 / row.getElementTypeBitWidth();
}

void kvcache::prefetchRow(const Frame &frame, Value memref, ValueRange indices,
                          Value d, int64_t count, int32_t locality) {
  int64_t line = countInLine(cast<MemRefType>(memref.getType()));
  for (int64_t column = 0; column < count; column += line) {
    SmallVector<Value> place(indices);
    place.push_back(frame.add(d, frame.index(column)));
    memref::PrefetchOp::create(frame.builder, frame.loc, memref, place,
                               /*isWrite=*/false, locality,
                               /*isDataCache=*/true);
  }
}

void kvcache::prefetchLines(const Frame &frame, Value row, Value d,
                            int64_t count) {
  for (int64_t attempt = 0; attempt < kPrefetchAttempts; ++attempt)
    prefetchRow(frame, row, frame.index(0), d, count);
}

/// The bytes of rows that are quantized together: a quarter of 32 registers of
/// 512 bits, beside the rows whose scales are computed meanwhile.
constexpr int64_t kBytesOfRows = 512;

static bool hasWideRegisters(const Frame &frame) {
  return !frame.isGPU && frame.target.vectorBits == 512;
}

Split kvcache::splitForStore(const Frame &frame, CacheTypeInterface cache,
                             int64_t boundary, int64_t width) {
  int64_t stored = cache.getLanesPerStored();
  Split split = splitHead(cache.getHeadSize(), boundary, width,
                          cache.isQuantized() ? cache.getGranularity() : 0,
                          frame.isGPU ? stored : 0);
  // Rows are then read in their order, also if heads are stored together.
  constexpr int64_t most = 256;
  if (hasWideRegisters(frame) && cache.isQuantized() &&
      cache.getHeadSize() <= most)
    split.unit = cache.getHeadSize();
  // Threads that share a byte would store over each other.
  split.unit = std::lcm(split.unit, stored);
  split.lanes = cache.getHeadSize() / split.unit;
  return split;
}

int64_t kvcache::countHeadsAtOnce(const Frame &frame, CacheTypeInterface cache,
                                  const Split &split, Type row) {
  bool hasWholeGroups =
      cache.isQuantized() && split.unit % cache.getGranularity() == 0;
  if (!hasWideRegisters(frame) || !hasWholeGroups)
    return 1;
  int64_t most = kBytesOfRows * 8 / getWidth(row) / split.unit;
  return getDivisorUpTo(cache.getNumHeads(), std::max<int64_t>(most, 1));
}

/// The part of a vector of several heads that has those of one: a number where
/// it has one.
static Value extractHead(const Frame &frame, Value values, int64_t head,
                         int64_t heads) {
  OpBuilder &builder = frame.builder;
  int64_t lanes = getNumLanes(values.getType()) / heads;
  if (heads == 1)
    return values;
  if (lanes == 1)
    return vector::ExtractOp::create(builder, frame.loc, values, head);
  auto extract = [&](Value from, int64_t count) -> Value {
    return vector::ExtractStridedSliceOp::create(
        builder, frame.loc, from, head * count, count, /*strides=*/1);
  };
  if (getWidth(values.getType()) >= 8)
    return extract(values, lanes);
  // LLVM would take 4-bit elements one by one, but not the bytes of pairs.
  auto bytes = VectorType::get(heads * lanes / 2, builder.getI8Type());
  Value part = extract(
      vector::BitCastOp::create(builder, frame.loc, bytes, values), lanes / 2);
  return vector::BitCastOp::create(
      builder, frame.loc,
      VectorType::get(lanes, getElementTypeOrSelf(values.getType())), part);
}

/// Quantizes the groups of a thread, or a group that several threads share, and
/// stores them with their scales.
static void storeGroups(const Frame &frame, Value values, Value cache,
                        const Place &place, ValueRange heads, Value d,
                        const Split &split, const StoreOptions &options) {
  OpBuilder &builder = frame.builder;
  CacheTypeInterface type = getCacheType(cache);
  bool isShared = split.lanesPerGroup > 1;
  auto getGroupsType = [&](Type number) -> Type {
    int64_t groups =
        isShared ? 1 : getNumLanes(values.getType()) / type.getGranularity();
    return !number || groups == 1 ? number : VectorType::get(groups, number);
  };
  auto quantize = QuantizeOp::create(
      builder, frame.loc, withLane(values.getType(), type.getElementType()),
      getGroupsType(type.getScale()), getGroupsType(type.getZeroPoint()),
      values, options.factor,
      isShared ? builder.getI64IntegerAttr(split.lanesPerGroup) : IntegerAttr(),
      options.powerOfTwo, options.leastAmax);
  auto storeNumbers = [&](Value head, int64_t i) {
    for (Value numbers : {quantize.getScale(), quantize.getZeroPoint()}) {
      bool areZeroPoints = numbers == quantize.getZeroPoint();
      if (!numbers)
        continue;
      Value own = extractHead(frame, numbers, i, heads.size());
      if (options.scales)
        options.scales->put(own, head, d, areZeroPoints);
      else
        StoreScaleOp::create(builder, frame.loc, own, cache, place.batch, head,
                             place.token, d, place.page, areZeroPoints);
    }
  };
  runIfGiven(frame, options.condition, [&] {
    for (auto [i, head] : llvm::enumerate(heads))
      StoreOp::create(
          builder, frame.loc,
          extractHead(frame, quantize.getQuantized(), i, heads.size()), cache,
          place.batch, head, place.token, d, place.page);
    Value isFirst;
    if (isShared)
      isFirst = frame.equal(frame.rem(d, frame.index(type.getGranularity())),
                            frame.index(0));
    runIfGiven(frame, isFirst, [&] {
      for (auto [i, head] : llvm::enumerate(heads))
        storeNumbers(head, i);
    });
  });
}

/// Stores what a thread needs no other for.
static void storeAlone(const Frame &frame, Value values, Value cache,
                       const Place &place, Value head, Value d,
                       const StoreOptions &options) {
  OpBuilder &builder = frame.builder;
  CacheTypeInterface type = getCacheType(cache);
  if (type.isQuantized() || options.factor) {
    StoreQuantizedOp::create(
        builder, frame.loc, values, cache, place.batch, head, place.token, d,
        place.page, getScalePage(cache, place), options.factor,
        /*nontemporal=*/false, options.powerOfTwo, options.leastAmax);
    return;
  }
  values = convertLanes(frame, values, type.getElementType());
  StoreOp::create(builder, frame.loc, values, cache, place.batch, head,
                  place.token, d, place.page);
}

void kvcache::storeGroup(const Frame &frame, ValueRange rows, Value cache,
                         const Place &place, Value head, Value d,
                         Value factor) {
  OpBuilder &builder = frame.builder;
  auto row = cast<VectorType>(rows.front().getType());
  auto type =
      VectorType::get({static_cast<int64_t>(rows.size()), row.getNumElements()},
                      row.getElementType());
  Value values =
      arith::ConstantOp::create(builder, frame.loc, builder.getZeroAttr(type));
  for (auto [token, row] : llvm::enumerate(rows))
    values = vector::InsertOp::create(builder, frame.loc, row, values, token);
  StoreQuantizedOp::create(builder, frame.loc, values, cache, place.batch, head,
                           place.token, d, place.page, place.page, factor);
}

void kvcache::storeElements(const Frame &frame, Value values, Value cache,
                            const Place &place, ValueRange heads, Value d,
                            const Split &split, const StoreOptions &options) {
  if (options.scales || split.lanesPerGroup > 1 || heads.size() > 1)
    return storeGroups(frame, values, cache, place, heads, d, split, options);
  runIfGiven(frame, options.condition, [&] {
    storeAlone(frame, values, cache, place, heads.front(), d, options);
  });
}

//===----------------------------------------------------------------------===//
// Copies of bits
//===----------------------------------------------------------------------===//

bool kvcache::haveOneFormat(CacheTypeInterface lhs, CacheTypeInterface rhs) {
  return lhs.getElementType() == rhs.getElementType() &&
         lhs.getScale() == rhs.getScale() &&
         lhs.getGranularity() == rhs.getGranularity() &&
         lhs.getZeroPoint() == rhs.getZeroPoint() &&
         lhs.getTokenGranularity() == rhs.getTokenGranularity();
}

Split kvcache::splitForCopy(const Frame &frame, CacheTypeInterface cache) {
  // 16 bytes of a thread; on the CPU, some vector registers.
  int64_t bits = cache.getElementType().getIntOrFloatBitWidth();
  int64_t width = (frame.isGPU ? 128 : 1024) / bits;
  return splitHead(cache.getHeadSize(), cache.getHeadSize(), width);
}

/// Copies the scales of a lane's share of groups, and their zero points.
static void copyScales(const Frame &frame, const BitCopy &copy, Value lane,
                       const Split &split) {
  OpBuilder &builder = frame.builder;
  Location loc = frame.loc;
  CacheTypeInterface type = getCacheType(copy.source);
  auto copyOne = [&](Value element, bool isZeroPoint) {
    Value scale = LoadScaleOp::create(
        builder, loc, type.getScale(), copy.source, copy.from.batch,
        copy.sourceHead, copy.from.token, element, copy.from.page, isZeroPoint);
    StoreScaleOp::create(builder, loc, scale, copy.target, copy.to.batch,
                         copy.targetHead, copy.to.token, element, copy.to.page,
                         isZeroPoint);
  };
  auto copyScale = [&](Value group) {
    Value element = frame.mul(group, frame.index(type.getGranularity()));
    copyOne(element, /*isZeroPoint=*/false);
    if (type.hasZeroPoints())
      copyOne(element, /*isZeroPoint=*/true);
  };
  frame.loop(lane, frame.index(type.getNumGroups()), frame.index(split.lanes),
             copyScale);
}

std::function<void()> kvcache::loadBits(const Frame &frame, const BitCopy &copy,
                                        Value lane, const Split &split,
                                        bool withScales) {
  OpBuilder &builder = frame.builder;
  Location loc = frame.loc;
  CacheTypeInterface type = getCacheType(copy.source);
  Value d = frame.mul(lane, frame.index(split.unit));
  auto vector = VectorType::get(split.unit, type.getElementType());
  Value elements;
  if (type.isQuantized())
    elements = LoadQuantizedOp::create(builder, loc, vector, copy.source,
                                       copy.from.batch, copy.sourceHead,
                                       copy.from.token, d, copy.from.page);
  else
    elements = loadElements(frame, copy.source, copy.from, copy.sourceHead, d,
                            split.unit, type.getElementType());
  return [=, &frame] {
    StoreOp::create(frame.builder, frame.loc, elements, copy.target,
                    copy.to.batch, copy.targetHead, copy.to.token, d,
                    copy.to.page);
    if (!type.isQuantized() || !withScales)
      return;
    int64_t tokens = type.getTokenGranularity();
    if (tokens == 1)
      return copyScales(frame, copy, lane, split);
    // The first token copies for all that share its scales.
    Value offset = frame.rem(copy.from.token, frame.index(tokens));
    frame.runIf(frame.equal(offset, frame.index(0)),
                [&] { copyScales(frame, copy, lane, split); });
  };
}
