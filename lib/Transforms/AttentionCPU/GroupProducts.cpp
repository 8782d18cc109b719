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
      nextTile(attention, memory, group, tile, columns) {}

Value GroupProducts::getRow(int64_t row) const {
  return frame.add(group.inMemory, frame.index(row));
}

void GroupProducts::forColumns(
    int64_t count, function_ref<void(const TileColumns &)> body) const {
  Value seen = frame.min(frame.sub(end, tile.first), frame.index(kTileTokens));
  frame.loop(frame.index(0), seen, frame.index(count), [&](Value first) {
    TileColumns all{first, {}};
    for (int64_t j = 0; j < count; ++j)
      all.places.push_back(getPlace(attention, memory, group.rows, tile,
                                    frame.add(first, frame.index(j))));
    body(all);
  });
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

void GroupProducts::multiplyKeys() const {
  const FloatBuilder &f = attention.f;
  forColumns(columns, [&](const TileColumns &all) {
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

SmallVector<Value> GroupProducts::sumProducts(const TileColumns &all) const {
  const FloatBuilder &f = attention.f;
  HostMmaBuilder mma(frame, memory.hasDots() ? HostMma::Dot : HostMma::FMA);
  int64_t lanes = memory.keys.front().pieces.getLanes();
  SmallVector<Value> sums(group.size * columns,
                          f.constant(f.vectorOf(lanes), 0));
  for (const HeadField &field : memory.keys) {
    const HeadPieces &pieces = field.pieces;
    NextTile::Rows next = nextTile.startWithKeys(field, all);
    auto addPiece = [&](Value d, MutableArrayRef<Value> carried) {
      nextTile.prefetchPiece(next, d);
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
               [&](const TileColumns &all) { addColumns(all, skipsUnseen); });
  };
  auto addSeen = [&] {
    if (!memory.hasDots())
      return add(false);
    // As many vectors of sums and of probs are in registers.
    int64_t most = std::max<int64_t>(2 * countSums(frame) / group.size, 2);
    forColumns(std::min(most, kMostColumns),
               [&](const TileColumns &all) { addPairs(all); });
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

void GroupProducts::addColumns(const TileColumns &all, bool skipsUnseen) const {
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
  NextTile::Rows next = nextTile.startWithValues(all);
  auto addPiece = [&](Value d) {
    nextTile.prefetchPiece(next, d);
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

void GroupProducts::addPairs(const TileColumns &all) const {
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
  NextTile::Rows next = nextTile.startWithValues(all);
  auto addPiece = [&](Value d) {
    nextTile.prefetchPiece(next, d);
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
