//===- RowGroup.cpp - Query heads of a token on a CPU ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowGroup.h"

#include "../Attention/MaskBounds.h"
#include "../Attention/ScoreRegions.h"
#include "../Attention/SeenRanges.h"
#include "GroupProducts.h"
#include "PairBuilder.h"
#include "SeenBits.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

/// Bytes of a token that are read one after the other, where it has as many: a
/// row of DRAM, or less to have work for other threads.
constexpr int64_t kTokenBytes = 1 << 12, kSharedTokenBytes = 1 << 10;

int64_t kvcache::getGroupSize(const HostAttention &attention) {
  return std::gcd(attention.sizes.group, kFewRows);
}

//===----------------------------------------------------------------------===//
// FewRowsMemory
//===----------------------------------------------------------------------===//

/// The heads whose elements of a token have these bytes, or all.
static int64_t countHeads(const HostAttention &attention) {
  AttentionOp op = attention.op;
  auto cache = cast<CacheTypeInterface>(op.getKeyCache().getType());
  int64_t bits =
      attention.sizes.keySize * cache.getElementType().getIntOrFloatBitWidth();
  int64_t bytes =
      attention.frame.target.threads == 1 ? kTokenBytes : kSharedTokenBytes;
  return getDivisorUpTo(
      attention.sizes.heads,
      std::max<int64_t>(llvm::divideCeil(8 * bytes, bits), 1));
}

static SmallVector<HeadField, 2> getKeyFields(const HostAttention &attention) {
  AttentionOp op = attention.op;
  const AttentionSizes &sizes = attention.sizes;
  int64_t border = getKeyBorder(op);
  auto getFields = [&](int64_t lanes) {
    SmallVector<HeadField, 2> fields;
    auto add = [&](Value cache, int64_t first, int64_t size) {
      fields.push_back(
          {cache, first, size, HeadPieces(attention, cache, border, lanes)});
    };
    add(op.getKeyCache(), 0, sizes.contentSize);
    if (op.getRopeCache())
      add(op.getRopeCache(), sizes.contentSize, op.getRopeSize());
    return fields;
  };
  // Products of both fields have one sum.
  SmallVector<HeadField, 2> fields = getFields(kLanes);
  int64_t lanes = kLanes;
  for (const HeadField &field : fields)
    lanes = std::gcd(lanes, field.pieces.getLanes());
  return lanes == kLanes ? fields : getFields(lanes);
}

static HeadField getValueField(const HostAttention &attention) {
  int64_t size = attention.sizes.valueSize;
  Value cache = attention.op.getValues();
  return {cache, 0, size, HeadPieces(attention, cache, size, kLanes)};
}

/// Whether dot products of pairs multiply few rows: where a CPU has tiles too,
/// dot products take as long as those of f32.
static bool multipliesPairs(const HostAttention &attention,
                            ArrayRef<HeadField> fields) {
  Type query = getElementTypeOrSelf(getQueries(attention.op).first);
  return attention.mma == HostMma::Dot && query.isBF16() &&
         llvm::all_of(fields, [](const HeadField &field) {
           return field.pieces.arePairs();
         });
}

FewRowsMemory::FewRowsMemory(const HostAttention &attention)
    : heads(countHeads(attention)), keys(getKeyFields(attention)),
      values(getValueField(attention)) {
  AttentionOp op = attention.op;
  int64_t rows = heads * kFewRows;
  Type f32 = attention.frame.builder.getF32Type();
  Type i32 = attention.frame.builder.getI32Type();
  if (multipliesPairs(attention, keys) && values.pieces.arePairs()) {
    queries = attention.allocate({rows, attention.sizes.keySize / 2}, i32);
    factors = attention.allocate({rows}, f32);
    probPairs = attention.allocate({kFewRows, kTileTokens / 2}, i32);
  } else {
    queries = attention.allocate({rows, attention.sizes.keySize}, f32);
  }
  acc = attention.allocate({rows, attention.sizes.valueSize}, f32);
  rowMax = attention.allocate({rows}, f32);
  rowSum = attention.allocate({rows}, f32);
  auto allocateScales = [&](Value cache) {
    return attention.loader.isUnscaled(cache)
               ? attention.allocate({kTileTokens}, f32)
               : Value();
  };
  keyScales = allocateScales(op.getKeyCache());
  valueScales =
      op.getValueCache() ? allocateScales(op.getValueCache()) : keyScales;
  if (op.getRows())
    ids = attention.allocate({kWordTokens}, i32);
  scores = attention.allocate({kFewRows, kTileTokens}, f32);
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

bool kvcache::havePagesOfTiles(AttentionOp op) {
  return llvm::all_of(
      ArrayRef<Value>{op.getKeyCache(), op.getRopeCache(), op.getValueCache()},
      [](Value cache) {
        if (!cache)
          return true;
        auto type = dyn_cast<PagedCacheType>(cache.getType());
        return type && type.hasStaticPageSize() &&
               type.getPageSize() % kTileTokens == 0;
      });
}

Value kvcache::getNearest(const Frame &frame, const HeadTile &tile,
                          Value token) {
  return frame.min(frame.max(token, tile.from), tile.last);
}

Place kvcache::getPlace(const HostAttention &attention,
                        const FewRowsMemory &memory, const QueryRows &rows,
                        const HeadTile &tile, Value j) {
  const Frame &frame = attention.frame;
  if (!memory.ids) {
    Value token = frame.add(tile.first, j);
    if (!havePagesOfTiles(attention.op))
      token = getNearest(frame, tile, token);
    return attention.loader.getPlace(rows, token, Value());
  }
  Value id = memref::LoadOp::create(frame.builder, frame.loc, memory.ids, j);
  id = arith::SelectOp::create(frame.builder, frame.loc,
                               frame.less(id, frame.i32(0)), tile.otherId, id);
  return attention.loader.getPlace(rows, Value(), frame.fromI32(id));
}

namespace {

/// The softmax of a group's scores of a tile.
class GroupSoftmax {
public:
  GroupSoftmax(const HostAttention &attention, const FewRowsMemory &memory,
               const RowGroup &group, const HeadTile &tile)
      : attention(attention), frame(attention.frame), f(attention.f),
        memory(memory), group(group), tile(tile) {}

  /// Whether the rows may see a token of the tile, of those they see by
  /// position.
  Value isAny(const TokenRange &seen) const;
  /// Turns products of queries and keys into probs; a token that a row does
  /// not see has -0. Maxima and sums follow.
  struct Result {
    /// The factors of the accumulators of rows, which come first.
    Value factors;
    Value areAllSeen;
  };
  Result run(const TokenRange &seen) const;

private:
  Value both(Value lhs, Value rhs) const {
    return arith::AndIOp::create(frame.builder, frame.loc, lhs, rhs);
  }
  Value getEnd() const {
    return frame.add(tile.first, frame.index(kTileTokens));
  }
  Value splat(Value number) const {
    auto type = VectorType::get(kTileTokens, number.getType());
    return vector::BroadcastOp::create(frame.builder, frame.loc, type, number);
  }
  /// The numbers of the tokens, as a vector of a type.
  Value getTokens(Type type) const;
  Value areSeen(const TokenRange &seen) const;
  SmallVector<Value> getScores() const;
  Value loadScales(Value scales) const {
    return vector::LoadOp::create(frame.builder, frame.loc,
                                  f.vectorOf(kTileTokens), scales,
                                  frame.index(0));
  }
  Value loadFactor(int64_t row) const {
    Value inMemory = frame.add(group.inMemory, frame.index(row));
    return f.splat(memref::LoadOp::create(frame.builder, frame.loc,
                                          memory.factors, inMemory),
                   kTileTokens);
  }
  Value loadOfRows(Value numbers) const {
    return vector::LoadOp::create(frame.builder, frame.loc,
                                  f.vectorOf(group.size), numbers,
                                  group.inMemory);
  }
  void storeOfRows(Value numbers, Value target) const {
    vector::StoreOp::create(frame.builder, frame.loc, numbers, target,
                            group.inMemory);
  }

  const HostAttention &attention;
  const Frame &frame;
  const DeviceMath &f;
  const FewRowsMemory &memory;
  const RowGroup &group;
  const HeadTile &tile;
};

} // namespace

Value GroupSoftmax::isAny(const TokenRange &seen) const {
  AttentionOp op = attention.op;
  Value end = getEnd();
  Value isAny =
      both(frame.less(tile.first, seen.to), frame.less(seen.from, end));
  if (Region *mask = op.getMaskRegion()) {
    Value query = getQueryPosition(frame, op, group.rows, group.first.i);
    Value head = group.first.queryHead;
    Value lastHead =
        group.size == 1 ? head : frame.add(head, frame.index(group.size - 1));
    RowBox box{
        group.rows.batch, {head, lastHead}, {query, query}, group.rows.tokens};
    Value last = frame.sub(end, frame.index(1));
    isAny =
        both(isAny, computePairs(frame, *mask, box, {tile.first, last}).any);
  }
  if (hasGaps(op.getRanges()))
    isAny = both(isAny, SeenRanges(frame, op)
                            .computePairs(group.first.row, {tile.first, end})
                            .any);
  return isAny;
}

Value GroupSoftmax::getTokens(Type type) const {
  Value first = type.isIndex() ? tile.first : frame.toI32(tile.first);
  SmallVector<Attribute> steps;
  for (int64_t j = 0; j < kTileTokens; ++j)
    steps.push_back(IntegerAttr::get(type, j));
  auto vector = VectorType::get(kTileTokens, type);
  Value step = arith::ConstantOp::create(frame.builder, frame.loc,
                                         DenseElementsAttr::get(vector, steps));
  return arith::AddIOp::create(frame.builder, frame.loc, splat(first), step);
}

Value GroupSoftmax::areSeen(const TokenRange &seen) const {
  OpBuilder &builder = frame.builder;
  Value from = frame.toI32(seen.from);
  Value count =
      frame.toI32(frame.max(frame.sub(seen.to, seen.from), frame.index(0)));
  Value distance = arith::SubIOp::create(
      builder, frame.loc, getTokens(builder.getI32Type()), splat(from));
  Value flags = arith::CmpIOp::create(
      builder, frame.loc, arith::CmpIPredicate::ult, distance, splat(count));
  if (!haveSeenBits(attention.op))
    return flags;
  SeenBits seenBits(attention, group.rows);
  Value word =
      seenBits.computeWord(seenBits.getGivenWord(memory.ids, frame.index(0)),
                           group.first.i, tile.first);
  Type half = builder.getIntegerType(kTileTokens);
  Value bits = vector::BroadcastOp::create(
      builder, frame.loc, VectorType::get(1, half),
      arith::TruncIOp::create(builder, frame.loc, half, word));
  return both(flags, vector::BitCastOp::create(builder, frame.loc,
                                               flags.getType(), bits));
}

/// The scores in base 2: -inf where a region excludes a token.
SmallVector<Value> GroupSoftmax::getScores() const {
  AttentionOp op = attention.op;
  ScoreRegions regions(frame, op, group.rows);
  if (!op.getModifiers().empty())
    regions.addColumn(getTokens(frame.builder.getIndexType()));
  SmallVector<Value> scores;
  for (int64_t k = 0; k < group.size; ++k) {
    Value score = vector::LoadOp::create(
        frame.builder, frame.loc, f.vectorOf(kTileTokens), memory.scores,
        ValueRange{frame.index(k), frame.index(0)});
    if (memory.hasDots())
      score = f.mul(score, loadFactor(k));
    if (memory.keyScales)
      score = f.mul(score, loadScales(memory.keyScales));
    regions.addRow(frame.add(group.first.queryHead, frame.index(k)),
                   group.first.i);
    scores.push_back(
        regions.apply(attention.scores.applySoftCap(score), k, /*column=*/0));
  }
  return scores;
}

GroupSoftmax::Result GroupSoftmax::run(const TokenRange &seen) const {
  Value flags = areSeen(seen), areAllSeen;
  Value lowest = f.constant(f.vectorOf(kTileTokens), kLowest);
  Value none = f.constant(f.vectorOf(kTileTokens), -0.0f);
  SmallVector<Value> areAdmitted, scores, probs;
  for (Value score : getScores()) {
    areAdmitted.push_back(attention.scores.isAdmitted(flags, score));
    scores.push_back(f.select(areAdmitted.back(), score, lowest));
    areAllSeen =
        areAllSeen ? both(areAllSeen, areAdmitted.back()) : areAdmitted.back();
  }
  // A NaN among the scores of a row makes its sums NaN in any case.
  Value oldMax = loadOfRows(memory.rowMax);
  Value newMax = f.larger(oldMax, f.maximaOf(scores));
  Value factors = f.exp2(f.sub(oldMax, newMax));
  for (auto [k, score] : llvm::enumerate(scores)) {
    Value max = vector::ExtractOp::create(frame.builder, frame.loc, newMax, k);
    Value powers = f.exp2(f.sub(score, f.splat(max, kTileTokens)));
    probs.push_back(f.select(areAdmitted[k], powers, none));
  }
  Value sum = f.fma(loadOfRows(memory.rowSum), factors, f.sumsOf(probs));
  storeOfRows(newMax, memory.rowMax);
  storeOfRows(sum, memory.rowSum);
  for (auto [k, prob] : llvm::enumerate(probs)) {
    if (memory.valueScales)
      prob = f.select(areAdmitted[k],
                      f.mul(prob, loadScales(memory.valueScales)), none);
    if (memory.hasDots())
      vector::StoreOp::create(
          frame.builder, frame.loc, PairBuilder(frame).roundElements(prob),
          memory.probPairs, ValueRange{frame.index(k), frame.index(0)});
    vector::StoreOp::create(frame.builder, frame.loc, prob, memory.scores,
                            ValueRange{frame.index(k), frame.index(0)});
  }
  return {factors,
          vector::ReductionOp::create(frame.builder, frame.loc,
                                      vector::CombiningKind::AND, areAllSeen)};
}

void kvcache::addTile(const HostAttention &attention,
                      const FewRowsMemory &memory, const RowGroup &group,
                      const HeadTile &tile) {
  TokenRange seen = attention.visible.get(group.rows, group.first.i);
  GroupSoftmax softmax(attention, memory, group, tile);
  attention.frame.runIf(softmax.isAny(seen), [&] {
    GroupProducts products(attention, memory, group, tile, seen.to);
    products.multiplyKeys();
    GroupSoftmax::Result result = softmax.run(seen);
    products.addValues(result.factors, result.areAllSeen);
  });
}
