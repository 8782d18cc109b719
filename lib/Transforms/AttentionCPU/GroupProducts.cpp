//===- GroupProducts.cpp - Products of a group of rows and a tile ---------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GroupProducts.h"
#include "HostMmaBuilder.h"
#include "PairBuilder.h"
#include "RowLanes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

/// Tokens whose products are summed at once, at most.
constexpr int64_t kMostColumns = 8;

/// Vectors of sums that are in registers. A CPU with vectors of 512 bits has 32
/// registers, others have 16, of which such a vector takes two or four.
static int64_t countSums(const Frame &frame) {
  int64_t bits = frame.target.vectorBits;
  return bits == 512 ? 16 : bits == 256 ? 4 : 2;
}

GroupProducts::GroupProducts(const HostAttention &attention,
                             const FewRowsMemory &memory, const RowGroup &group,
                             const HeadTile &tile, Value end)
    : attention(attention), frame(attention.frame), memory(memory),
      group(group), tile(tile), end(end),
      columns(
          std::clamp<int64_t>(countSums(frame) / group.size, 1, kMostColumns)),
      prefetchedForKeys(llvm::divideCeil(columns, 2)) {}

Value GroupProducts::getRow(int64_t row) const {
  return frame.add(group.inMemory, frame.index(row));
}

void GroupProducts::forColumns(int64_t count,
                               function_ref<void(const Columns &)> body) const {
  Value seen = frame.min(frame.sub(end, tile.first), frame.index(kTileTokens));
  frame.loop(frame.index(0), seen, frame.index(count), [&](Value first) {
    Columns all{first, {}};
    for (int64_t j = 0; j < count; ++j)
      all.places.push_back(getPlace(attention, memory, group.rows, tile,
                                    frame.add(first, frame.index(j))));
    body(all);
  });
}

//===----------------------------------------------------------------------===//
// Prefetches
//===----------------------------------------------------------------------===//

Place GroupProducts::getNext(Value j, const Place &current) const {
  OpBuilder &builder = frame.builder;
  Value distance =
      arith::SelectOp::create(builder, frame.loc, group.isFirst,
                              frame.index(kTileTokens), frame.index(0));
  Value token = frame.add(tile.first, frame.add(distance, j));
  token = frame.min(token, tile.last);
  if (!memory.ids)
    return attention.loader.getPlace(group.rows, token, Value());
  Value id = attention.loader.loadId(group.rows, tile.head, token);
  Value isToken = frame.less(frame.index(-1), id);
  Place next = attention.loader.getPlace(group.rows, token, id);
  auto select = [&](Value ifToken, Value otherwise) -> Value {
    return arith::SelectOp::create(builder, frame.loc, isToken, ifToken,
                                   otherwise);
  };
  return {next.batch, select(next.token, current.token),
          select(next.page, current.page)};
}

GroupProducts::NextRows
GroupProducts::startPrefetches(const Columns &all, bool isForKeys,
                               ArrayRef<const HeadField *> fields) const {
  const HeadField &first = *fields.front();
  NextRows next{{}, first.size, first.pieces.getWidth()};
  for (auto [j, current] : llvm::enumerate(all.places)) {
    bool isKeys = static_cast<int64_t>(j) % columns < prefetchedForKeys;
    if (isKeys != isForKeys)
      continue;
    Place place = getNext(frame.add(all.first, frame.index(j)), current);
    for (const HeadField *field : fields) {
      Value row =
          getStoredRow(frame, field->cache, place, tile.head, field->size);
      if (!row)
        continue;
      auto type = cast<MemRefType>(row.getType());
      bool isAlike = next.rows.empty() || next.rows[0].getType() == type;
      if (isAlike && type.getDimSize(1) == first.size &&
          next.width >= countInLine(type))
        next.rows.push_back(row);
      else
        prefetchLines(frame, row, frame.index(0), type.getDimSize(1));
    }
  }
  return next;
}

GroupProducts::NextRows
GroupProducts::startPrefetchesForValues(const Columns &all) const {
  SmallVector<const HeadField *> fields = {&memory.values};
  // Values may be elements of keys.
  if (!attention.op.getValueCache())
    fields.clear();
  for (const HeadField &field : memory.keys)
    fields.push_back(&field);
  return startPrefetches(all, /*isForKeys=*/false, fields);
}

void GroupProducts::prefetchPiece(const NextRows &next, Value d) const {
  int64_t count = next.rows.size();
  int64_t parts = std::gcd(next.size / next.width, count);
  if (count == 0)
    return;
  Value part = frame.div(d, next.size / parts);
  Value first = frame.mul(frame.rem(d, frame.index(next.size / parts)), parts);
  for (int64_t i = 0; i < count / parts; ++i) {
    Value row = next.rows[i];
    for (int64_t other = 1; other < parts; ++other)
      row = arith::SelectOp::create(frame.builder, frame.loc,
                                    frame.below(part, frame.index(other)), row,
                                    next.rows[other * count / parts + i]);
    prefetchLines(frame, row, first, next.width * parts);
  }
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

void GroupProducts::multiplyKeys() const {
  const FloatBuilder &f = attention.f;
  forColumns(columns, [&](const Columns &all) {
    SmallVector<Value> sums = sumProducts(all);
    auto store = [&](int64_t row, Value scores) {
      vector::StoreOp::create(frame.builder, frame.loc, scores, memory.scores,
                              ValueRange{frame.index(row), all.first});
    };
    int64_t lanes = memory.keys.front().pieces.getLanes();
    bool areJoint = static_cast<int64_t>(sums.size()) <= lanes;
    Value joint = areJoint ? f.sumsOf(sums) : Value();
    for (int64_t row = 0; row < group.size; ++row) {
      if (!areJoint) {
        store(row, f.sumsOf(ArrayRef(sums).slice(row * columns, columns)));
        continue;
      }
      store(row, vector::ExtractStridedSliceOp::create(frame.builder, frame.loc,
                                                       joint, {row * columns},
                                                       {columns}, {1}));
    }
  });
}

SmallVector<Value> GroupProducts::loadKey(const HeadField &field,
                                          const Place &place, Value d) const {
  const HeadPieces &pieces = field.pieces;
  if (!memory.hasDots())
    return pieces.load(field.cache, place, tile.head, d);
  Value pairs = pieces.loadPairs(field.cache, place, tile.head, d);
  return {PairBuilder(frame).getElements(pairs)};
}

SmallVector<Value> GroupProducts::loadQuery(const HeadField &field, int64_t row,
                                            Value d) const {
  Value column = frame.add(d, frame.index(field.first));
  if (!memory.hasDots())
    return field.pieces.load(memory.queries, getRow(row), column);
  auto words = VectorType::get(kLanes, frame.builder.getI32Type());
  Value pairs =
      vector::LoadOp::create(frame.builder, frame.loc, words, memory.queries,
                             ValueRange{getRow(row), frame.div(column, 2)});
  return {PairBuilder(frame).getElements(pairs)};
}

SmallVector<Value> GroupProducts::sumProducts(const Columns &all) const {
  const FloatBuilder &f = attention.f;
  HostMmaBuilder mma(frame, memory.hasDots() ? HostMma::Dot : HostMma::FMA);
  int64_t lanes = memory.keys.front().pieces.getLanes();
  SmallVector<Value> sums(group.size * columns,
                          f.constant(f.vectorOf(lanes), 0));
  for (const HeadField &field : memory.keys) {
    const HeadPieces &pieces = field.pieces;
    SmallVector<const HeadField *> fields = {&field};
    if (attention.op.getValueCache() && &field == memory.keys.begin())
      fields.push_back(&memory.values);
    NextRows next = startPrefetches(all, /*isForKeys=*/true, fields);
    auto addPiece = [&](Value d, MutableArrayRef<Value> carried) {
      prefetchPiece(next, d);
      SmallVector<SmallVector<Value>> keys;
      for (const Place &place : all.places)
        keys.push_back(loadKey(field, place, d));
      for (int64_t row = 0; row < group.size; ++row) {
        SmallVector<Value> q = loadQuery(field, row, d);
        for (int64_t j = 0; j < columns; ++j)
          for (auto [lhs, rhs] : llvm::zip_equal(q, keys[j])) {
            Value &sum = carried[row * columns + j];
            sum = mma.multiply(lhs, rhs, sum);
          }
      }
    };
    auto loop = scf::ForOp::create(
        frame.builder, frame.loc, frame.index(0), frame.index(field.size),
        frame.index(pieces.getWidth()), sums,
        [&](OpBuilder &, Location, Value d, ValueRange carried) {
          SmallVector<Value> added(carried);
          addPiece(d, added);
          scf::YieldOp::create(frame.builder, frame.loc, added);
        });
    sums = llvm::to_vector_of<Value>(loop.getResults());
  }
  return sums;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

void GroupProducts::addValues(Value factors, Value areAllSeen) const {
  rescale(factors);
  auto add = [&](bool skipsUnseen) {
    forColumns(columns,
               [&](const Columns &all) { addColumns(all, skipsUnseen); });
  };
  auto addSeen = [&] {
    if (!memory.hasDots())
      return add(false);
    // As many vectors of sums and of probs are in registers.
    int64_t most = std::max<int64_t>(2 * countSums(frame) / group.size, 2);
    forColumns(std::min(most, kMostColumns),
               [&](const Columns &all) { addPairs(all); });
  };
  frame.runIf(areAllSeen, addSeen, [&] { add(true); });
}

void GroupProducts::rescale(Value factors) const {
  const FloatBuilder &f = attention.f;
  const HeadPieces &pieces = memory.values.pieces;
  auto rescalePiece = [&](Value d) {
    for (int64_t row = 0; row < group.size; ++row) {
      Value factor = f.splat(
          vector::ExtractOp::create(frame.builder, frame.loc, factors, row),
          pieces.getLanes());
      SmallVector<Value> acc = pieces.load(memory.acc, getRow(row), d);
      for (Value &sum : acc)
        sum = f.mul(sum, factor);
      pieces.store(acc, memory.acc, getRow(row), d);
    }
  };
  frame.runIf(attention.changesAny(factors), [&] {
    frame.loop(frame.index(0), frame.index(memory.values.size),
               frame.index(pieces.getWidth()), rescalePiece);
  });
}

void GroupProducts::addColumns(const Columns &all, bool skipsUnseen) const {
  const FloatBuilder &f = attention.f;
  const HeadPieces &pieces = memory.values.pieces;
  SmallVector<Value> probs, areSeen;
  for (int64_t row = 0; row < group.size; ++row)
    for (int64_t j = 0; j < columns; ++j) {
      Value prob = memref::LoadOp::create(
          frame.builder, frame.loc, memory.scores,
          ValueRange{frame.index(row), frame.add(all.first, frame.index(j))});
      probs.push_back(f.splat(prob, pieces.getLanes()));
      if (!skipsUnseen)
        continue;
      Value bits = arith::BitcastOp::create(frame.builder, frame.loc,
                                            frame.builder.getI32Type(), prob);
      areSeen.push_back(arith::CmpIOp::create(frame.builder, frame.loc,
                                              arith::CmpIPredicate::ne, bits,
                                              frame.i32(kUnseenProb)));
    }
  NextRows next = startPrefetchesForValues(all);
  auto addPiece = [&](Value d) {
    prefetchPiece(next, d);
    SmallVector<SmallVector<Value>> values;
    for (const Place &place : all.places)
      values.push_back(pieces.load(memory.values.cache, place, tile.head, d));
    for (int64_t row = 0; row < group.size; ++row) {
      SmallVector<Value> acc = pieces.load(memory.acc, getRow(row), d);
      for (auto [v, sum] : llvm::enumerate(acc))
        for (int64_t j = 0; j < columns; ++j) {
          int64_t number = row * columns + j;
          Value next = f.fma(probs[number], values[j][v], sum);
          sum = skipsUnseen ? f.select(areSeen[number], next, sum) : next;
        }
      pieces.store(acc, memory.acc, getRow(row), d);
    }
  };
  frame.loop(frame.index(0), frame.index(memory.values.size),
             frame.index(pieces.getWidth()), addPiece);
}

void GroupProducts::addPairs(const Columns &all) const {
  PairBuilder pairs(frame);
  HostMmaBuilder mma(frame, HostMma::Dot);
  LaneBuilder lanes(frame);
  const HeadPieces &pieces = memory.values.pieces;
  int64_t count = all.places.size() / 2;
  SmallVector<Value> probs;
  for (int64_t row = 0; row < group.size; ++row)
    for (int64_t pair = 0; pair < count; ++pair)
      probs.push_back(pairs.getElements(
          lanes.broadcast(memory.probPairs,
                          {frame.index(row), frame.add(frame.div(all.first, 2),
                                                       frame.index(pair))})));
  NextRows next = startPrefetchesForValues(all);
  auto addPiece = [&](Value d) {
    prefetchPiece(next, d);
    SmallVector<SmallVector<Value>> values;
    for (int64_t pair = 0; pair < count; ++pair) {
      auto load = [&](const Place &place) {
        return pieces.load(memory.values.cache, place, tile.head, d);
      };
      SmallVector<Value> &joined = values.emplace_back();
      for (auto [low, high] : llvm::zip_equal(load(all.places[2 * pair]),
                                              load(all.places[2 * pair + 1])))
        joined.push_back(pairs.getElements(pairs.join(low, high)));
    }
    for (int64_t row = 0; row < group.size; ++row) {
      SmallVector<Value> acc = pieces.load(memory.acc, getRow(row), d);
      for (auto [v, sum] : llvm::enumerate(acc))
        for (int64_t pair = 0; pair < count; ++pair)
          sum = mma.multiply(values[pair][v], probs[row * count + pair], sum);
      pieces.store(acc, memory.acc, getRow(row), d);
    }
  };
  frame.loop(frame.index(0), frame.index(memory.values.size),
             frame.index(pieces.getWidth()), addPiece);
}
