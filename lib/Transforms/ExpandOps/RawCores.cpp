//===- RawCores.cpp - Products of elements of 8 bits ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RawCores.h"
#include "DeviceMath.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Elements of a product, of a load, and tokens of both, and of a run of two
/// in each lane.
constexpr int64_t kOfProduct = 16, kOfLoad = 32, kTokens = 16, kRun = 8;

static int64_t getSize(Value rows) {
  return cast<ShapedType>(rows.getType()).getDimSize(2);
}

RawCores::RawCores(const Frame &frame, AttentionOp op, const TilePlan &plan,
                   const TiledCache &keys, const TiledCache &values)
    : frame(frame), builder(frame.builder), loc(frame.loc), keys(keys),
      values(values), ofSums(LaneLayout::ofSums(plan)),
      keySize(op.getKeySize()), partSize(getSize(op.getOut()) / plan.parts),
      tokens(plan.tokens),
      keyScales(frame, op.getKeyCache(), keySize, plan, /*hasUnits=*/false),
      // Warps that share the sums of a row share its only group.
      valueScales(frame, op.getValues(), partSize, plan, /*hasUnits=*/true) {}

void RawCores::allocate() {
  keyScales.allocate();
  valueScales.allocate();
}

void RawCores::placeLane(const TensorCores &ofLane, Value ofBlock,
                         Value firstColumn, Value firstOfSums) {
  cores.emplace(ofLane);
  thread = ofBlock;
  column = firstColumn;
  firstSum = firstOfSums;
}

//===----------------------------------------------------------------------===//
// Scales
//===----------------------------------------------------------------------===//

void RawCores::loadScales(Value tile, Value token, const TiledTokens &ofRows,
                          Value condition) {
  storeKeyScales = keyScales.load(thread, keys, tile, token, ofRows, condition);
  storeValueScales =
      valueScales.load(thread, values, tile, token, ofRows, condition);
}

void RawCores::storeScales(TileState &state) const {
  storeKeyScales({});
  storeValueScales(getUnits(state));
}

std::pair<Value, Value> RawCores::getScales(const TileScales &scales,
                                            Value number, int64_t group,
                                            int64_t run) const {
  Value token = frame.add(column, frame.index(ofScores.getColumn(run)));
  return scales.get(thread, number, group, token);
}

MutableArrayRef<Value> RawCores::getUnits(TileState &state) const {
  return MutableArrayRef(state).take_back(2 * valueScales.countUnits());
}

MutableArrayRef<Value> RawCores::getSums(TileState &state) const {
  return MutableArrayRef(state).drop_front(2 * ofSums.countRows());
}

void RawCores::beginUnits(TileState &state) const {
  llvm::append_range(state, valueScales.getFirstUnits());
}

void RawCores::endUnits(TileState &state) const {
  int64_t groups = valueScales.countUnits();
  for (int64_t group = 0; group < groups; ++group)
    for (int64_t r = 0; r < ofSums.countRows(); ++r)
      scaleSums(state, r, group, valueScales.invert(getUnits(state)[group]));
  state.truncate(state.size() - 2 * groups);
}

void RawCores::scaleSums(TileState &state, int64_t row, int64_t group,
                         Value factor) const {
  int64_t size = partSize / std::max<int64_t>(valueScales.countUnits(), 1);
  int64_t first = group * ofSums.countElements(size);
  for (int64_t i : ofSums.getElements(row, size)) {
    Value &sum = getSums(state)[first + i];
    sum = DeviceMath(frame).mul(sum, factor);
  }
}

void RawCores::shrinkSums(TileState &state, int64_t row, Value shrink) const {
  int64_t groups = valueScales.countUnits();
  if (!groups)
    return scaleSums(state, row, 0, shrink);
  for (int64_t group = 0; group < groups; ++group) {
    Value change = getUnits(state)[groups + group];
    scaleSums(state, row, group, DeviceMath(frame).mul(shrink, change));
  }
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

Value RawCores::permute(Value low, Value high, uint32_t selector) const {
  return NVVM::PermuteOp::create(builder, loc, builder.getI32Type(), low, high,
                                 frame.i32(selector),
                                 NVVM::PermuteMode::DEFAULT);
}

std::array<Value, 2> RawCores::widen(Value word, Type element,
                                     bool byParity) const {
  auto f16 = builder.getF16Type();
  auto castTo = [&](Value value, int64_t count, Type type) -> Value {
    return vector::BitCastOp::create(builder, loc, VectorType::get(count, type),
                                     value);
  };
  auto asVector = [&](Value value) -> Value {
    return vector::FromElementsOp::create(
        builder, loc, VectorType::get(1, value.getType()), value);
  };
  auto asWord = [&](Value pair) -> Value {
    return vector::ExtractOp::create(builder, loc,
                                     castTo(pair, 1, builder.getI32Type()), 0);
  };
  std::array<Value, 2> pairs;
  if (element.isInteger()) {
    // A byte u of the mantissa of 1024 is 1024 + u: here u is x + 128.
    constexpr uint32_t kSigns = 0x80808080, kUpper = 0x64646464;
    Value shifted =
        arith::XOrIOp::create(builder, loc, word, frame.i32(int32_t(kSigns)));
    auto type = VectorType::get(2, f16);
    Value offset = arith::ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(type, builder.getF16FloatAttr(1024 + 128)));
    uint32_t selectors[] = {byParity ? 0x4240u : 0x4140u,
                            byParity ? 0x4341u : 0x4342u};
    for (auto [pair, selector] : llvm::zip_equal(pairs, selectors)) {
      Value moved = permute(shifted, frame.i32(kUpper), selector);
      pair = asWord(arith::SubFOp::create(
          builder, loc, castTo(asVector(moved), 2, f16), offset));
    }
    return pairs;
  }
  if (byParity)
    word = permute(word, word, 0x3120);
  Value wide = arith::ExtFOp::create(builder, loc, VectorType::get(4, f16),
                                     castTo(asVector(word), 4, element));
  Value words = castTo(wide, 2, builder.getI32Type());
  for (auto [i, pair] : llvm::enumerate(pairs))
    pair = vector::ExtractOp::create(builder, loc, words, i);
  return pairs;
}

void RawCores::accumulate(MutableArrayRef<Value> sums, const Fragment &a,
                          Value b0, Value b1) const {
  Accumulator sum;
  std::copy_n(sums.begin(), sum.size(), sum.begin());
  sum = cores->multiply(a, b0, b1, sum, builder.getF16Type());
  llvm::copy(sum, sums.begin());
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static Type getElement(Value tile) {
  return cast<TileType>(tile.getType()).getElementType();
}

TileState RawCores::multiplyRows(const QueryTile &queries, Value firstRow,
                                 Value keyTile, Value number) const {
  DeviceMath f(frame);
  TileState scores(tokens / 2, f.constant(0));
  TileState products(scores);
  SmallVector<Fragment> loaded(tokens / kTokens);
  int64_t groups = keyScales.countGroups();
  int64_t ofGroup = keySize / std::max<int64_t>(groups, 1);
  for (int64_t d = 0; d < keySize; d += kOfProduct) {
    Fragment query = queries.get(*cores, firstRow, d);
    for (auto [t, words] : llvm::enumerate(loaded)) {
      if (d % kOfLoad == 0)
        words = cores->load(keyTile, frame.index(kTokens * t), frame.index(d),
                            /*transposed=*/false);
      for (int64_t half = 0; half < 2; ++half) {
        auto [b0, b1] = widen(words[2 * (d % kOfLoad / kOfProduct) + half],
                              getElement(keyTile), /*byParity=*/false);
        accumulate(MutableArrayRef(products).drop_front(8 * t + 4 * half),
                   query, b0, b1);
      }
    }
    if (!groups || (d + kOfProduct) % ofGroup)
      continue;
    for (int64_t run = 0; run < tokens / kRun; ++run) {
      auto [even, odd] = getScales(keyScales, number, d / ofGroup, run);
      for (int64_t i = 4 * run; i < 4 * run + 4; ++i) {
        scores[i] = f.fma(products[i], i % 2 ? odd : even, scores[i]);
        products[i] = f.constant(0);
      }
    }
  }
  return groups ? scores : products;
}

SmallVector<Fragment> RawCores::packWeights(ArrayRef<Value> weights,
                                            Value number, int64_t group) const {
  SmallVector<Value> scaled(weights);
  for (int64_t run = 0; hasUnits() && run < tokens / kRun; ++run) {
    auto [even, odd] = getScales(valueScales, number, group, run);
    for (int64_t i = 4 * run; i < 4 * run + 4; ++i)
      scaled[i] = DeviceMath(frame).mul(weights[i], i % 2 ? odd : even);
  }
  SmallVector<Fragment> packed(tokens / kTokens);
  for (auto [t, fragment] : llvm::enumerate(packed))
    for (auto [p, pair] : llvm::enumerate(fragment))
      pair = cores->pack(scaled[8 * t + 2 * p], scaled[8 * t + 2 * p + 1],
                         builder.getF16Type());
  return packed;
}

void RawCores::addColumns(ArrayRef<Value> weights, Value valueTile,
                          Value number, TileState &state) const {
  int64_t ofGroup = partSize / std::max<int64_t>(valueScales.countGroups(), 1);
  SmallVector<Fragment> packed, loaded(tokens / kTokens);
  for (int64_t d = 0; d < partSize; d += kOfProduct) {
    if (d % ofGroup == 0)
      packed = packWeights(weights, number, d / ofGroup);
    for (auto [t, words] : llvm::enumerate(loaded)) {
      if (d % kOfLoad == 0)
        words = cores->load(valueTile, frame.index(kTokens * t),
                            frame.add(firstSum, frame.index(d)),
                            /*transposed=*/true);
      int64_t first = 2 * (d % kOfLoad / kOfProduct);
      Type element = getElement(valueTile);
      auto low = widen(words[first], element, /*byParity=*/true);
      auto high = widen(words[first + 1], element, /*byParity=*/true);
      for (int64_t odd = 0; odd < 2; ++odd)
        accumulate(getSums(state).drop_front(d / 2 + 4 * odd), packed[t],
                   low[odd], high[odd]);
    }
  }
}
