//===- TokenTile.cpp - Tokens of a cache in the memory of rows ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenTile.h"

#include "NonFiniteValues.h"
#include "PairBuilder.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

/// The bits of the largest float, and those of a float without its sign.
constexpr int64_t kLargestFinite = 0x7f7fffff, kMagnitude = 0x7fffffff;
/// The bits of the largest bf16, and those of a pair without its signs.
constexpr int64_t kLargestFiniteOfBF16 = 0x7f7f, kMagnitudes = 0x7fff7fff;
/// Tokens from one that is loaded to one that is prefetched.
constexpr int64_t kTokensAhead = 8;

/// Pairs of bf16 as vectors of both elements.
static Value splitPairs(const Frame &frame, Value pairs) {
  int64_t count = cast<VectorType>(pairs.getType()).getNumElements();
  auto type = VectorType::get(2 * count, frame.builder.getI16Type());
  return vector::BitCastOp::create(frame.builder, frame.loc, type, pairs);
}

static int64_t countTokensAtOnce(const HostAttention &attention) {
  return attention.usesPairs() ? 2 : 1;
}

TokenTile::TokenTile(const HostAttention &attention, int64_t tokens)
    : tokens(tokens), keyLanes(getKeyLanes(attention.op, kLanes)),
      valueLanes(getLanes(attention.op.getValues(), attention.sizes.valueSize,
                          kLanes)),
      attention(attention) {
  AttentionOp op = attention.op;
  OpBuilder &builder = attention.frame.builder;
  const AttentionSizes &sizes = attention.sizes;
  bool isPaired = attention.usesPairs();
  Type element = isPaired ? Type(builder.getI32Type()) : builder.getF32Type();
  int64_t pair = countTokensAtOnce(attention);
  auto allocateScales = [&](Value cache) {
    return attention.loader.isUnscaled(cache)
               ? attention.allocate({tokens}, builder.getF32Type())
               : Value();
  };
  bool isTiled = attention.mma == HostMma::AMX;
  auto allocateMatrix = [&](int64_t rows, int64_t columns) {
    if (!isTiled)
      return attention.allocate({rows, columns}, element);
    return attention.allocate({rows / kLanes, columns / kLanes, kLanes, kLanes},
                              element);
  };
  keys = allocateMatrix(tokens, sizes.keySize / pair);
  keyScales = allocateScales(op.getKeyCache());
  bool hasValues = static_cast<bool>(op.getValueCache());
  auto allocateValues = [&] {
    return attention.allocate({tokens / pair, sizes.valueSize}, element);
  };
  values = hasValues || isPaired ? allocateValues() : keys;
  valueScales = hasValues ? allocateScales(op.getValueCache()) : keyScales;
  if (isPaired)
    nonFinite = allocateValues();
  if (isTiled)
    transposedValues = allocateMatrix(sizes.valueSize, tokens / pair);
  if (op.getRows())
    ids = attention.allocate({tokens}, builder.getI32Type());
}

Value TokenTile::load(const QueryRows &rows, Value head, Value first,
                      Value count, Value last) const {
  const Frame &frame = attention.frame;
  OpBuilder &builder = frame.builder;
  AttentionOp op = attention.op;
  int64_t atOnce = countTokensAtOnce(attention);
  bool areKeys = values == keys;
  auto lanes =
      VectorType::get(areKeys ? keyLanes : valueLanes, builder.getI32Type());
  Value none =
      arith::ConstantOp::create(builder, frame.loc, builder.getZeroAttr(lanes));
  auto loadTokens = [&](Value j, Value worst) {
    SmallVector<Token> loaded;
    for (int64_t i = 0; i < atOnce; ++i) {
      Value own = frame.add(j, frame.index(i));
      Value column = frame.min(frame.add(first, own), last);
      Token token = getToken(rows, head, column, own);
      loaded.push_back(token);
      if (!ids)
        prefetch(rows, head,
                 frame.min(frame.add(column, frame.index(kTokensAhead)), last));
      Value largest =
          storeKeys(op.getKeyCache(), token, own, 0,
                    attention.sizes.contentSize, areKeys ? worst : Value());
      if (areKeys)
        worst = largest;
      if (op.getRopeCache())
        storeKeys(op.getRopeCache(), token, own, attention.sizes.contentSize,
                  op.getRopeSize(), Value());
      storeScale(op.getKeyCache(), token, keyScales, own);
      if (op.getValueCache())
        storeScale(op.getValueCache(), token, valueScales, own);
    }
    return areKeys ? worst : storeValues(loaded, j, worst);
  };
  auto loop = scf::ForOp::create(
      builder, frame.loc, frame.index(0), count, frame.index(atOnce), none,
      [&](OpBuilder &, Location, Value j, ValueRange worst) {
        scf::YieldOp::create(builder, frame.loc, loadTokens(j, worst.front()));
      });
  Value all = loop.getResult(0);
  if (nonFinite)
    all = splitPairs(frame, all);
  Value worst = vector::ReductionOp::create(builder, frame.loc,
                                            vector::CombiningKind::MAXSI, all);
  int64_t finite = nonFinite ? kLargestFiniteOfBF16 : kLargestFinite;
  Value hasNonFinite = arith::CmpIOp::create(
      builder, frame.loc, arith::CmpIPredicate::sgt, worst,
      arith::ConstantIntOp::create(builder, frame.loc, worst.getType(),
                                   finite));
  if (nonFinite)
    frame.runIf(hasNonFinite, [&] {
      separateNonFinite(frame, values, nonFinite, frame.div(count, atOnce));
    });
  if (transposedValues)
    transposeValues(count);
  return hasNonFinite;
}

TokenTile::Token TokenTile::getToken(const QueryRows &rows, Value head,
                                     Value column, Value j) const {
  const Frame &frame = attention.frame;
  const TokenLoader &loader = attention.loader;
  if (!ids)
    return {loader.getPlace(rows, column, Value()), head, Value()};
  Value id = loader.loadId(rows, head, column);
  memref::StoreOp::create(frame.builder, frame.loc, frame.toI32(id), ids, j);
  return {loader.getPlace(rows, column, id), head,
          frame.less(frame.index(-1), id)};
}

Value TokenTile::loadPiece(Value cache, const Token &token, Value d,
                           int64_t lanes) const {
  auto load = [&] {
    return attention.loader.load(cache, token.place, token.head, d, lanes,
                                 attention.frame.builder.getF32Type());
  };
  if (!token.isGiven)
    return load();
  return attention.frame.selectIf(token.isGiven, load, [&] {
    return attention.f.constant(attention.f.vectorOf(lanes), 0);
  });
}

/// Runs `body` for each piece of `size` elements, with a carried value unless
/// it is null, and returns its last one.
static Value forPieces(const Frame &frame, int64_t size, int64_t lanes,
                       Value carried, function_ref<Value(Value, Value)> body) {
  auto loop = scf::ForOp::create(
      frame.builder, frame.loc, frame.index(0), frame.index(size),
      frame.index(lanes), carried ? ValueRange(carried) : ValueRange(),
      [&](OpBuilder &, Location, Value d, ValueRange all) {
        Value next = body(d, carried ? all.front() : Value());
        scf::YieldOp::create(frame.builder, frame.loc,
                             carried ? ValueRange(next) : ValueRange());
      });
  return carried ? loop.getResult(0) : Value();
}

Value TokenTile::storeKeys(Value cache, const Token &token, Value j,
                           int64_t first, int64_t size, Value worst) const {
  const Frame &frame = attention.frame;
  PairBuilder pairs(frame);
  auto storePiece = [&](Value d, Value largest) {
    Value piece = loadPiece(cache, token, d, keyLanes);
    Value stored = piece, column = frame.add(d, frame.index(first));
    if (attention.usesPairs()) {
      stored = pairs.joinElements(piece);
      column = frame.div(column, 2);
    }
    SmallVector<Value> indices = {j, column};
    if (attention.mma == HostMma::AMX)
      indices = getTiledIndices(frame, j, column);
    vector::StoreOp::create(frame.builder, frame.loc, stored, keys, indices);
    return largest ? getLargerMagnitude(piece, largest) : Value();
  };
  return forPieces(frame, size, keyLanes, worst, storePiece);
}

Value TokenTile::storeValues(ArrayRef<Token> loaded, Value j,
                             Value worst) const {
  const Frame &frame = attention.frame;
  auto storePiece = [&](Value d, Value largest) {
    SmallVector<Value> pieces;
    for (const Token &token : loaded)
      pieces.push_back(
          loadPiece(attention.op.getValues(), token, d, valueLanes));
    Value stored = pieces.size() == 1
                       ? pieces[0]
                       : PairBuilder(frame).join(pieces[0], pieces[1]);
    Value row = frame.div(j, static_cast<int64_t>(pieces.size()));
    vector::StoreOp::create(frame.builder, frame.loc, stored, values,
                            ValueRange{row, d});
    return getLargerMagnitude(stored, largest);
  };
  return forPieces(frame, attention.sizes.valueSize, valueLanes, worst,
                   storePiece);
}

void TokenTile::transposeValues(Value count) const {
  const Frame &frame = attention.frame;
  LaneBuilder lanes(frame);
  Value step = frame.index(kLanes);
  auto transposeSquare = [&](Value row, Value d) {
    SmallVector<Value> vectors;
    for (int64_t i = 0; i < kLanes; ++i)
      vectors.push_back(
          lanes.load(values, {frame.add(row, frame.index(i)), d}));
    for (auto [i, vector] : llvm::enumerate(transpose(frame, vectors)))
      lanes.store(vector, transposedValues,
                  getTiledIndices(frame, frame.add(d, frame.index(i)), row));
  };
  frame.loop(frame.index(0), frame.div(count, 2), step, [&](Value row) {
    frame.loop(frame.index(0), frame.index(attention.sizes.valueSize), step,
               [&](Value d) { transposeSquare(row, d); });
  });
}

void TokenTile::storeScale(Value cache, const Token &token, Value scales,
                           Value j) const {
  if (!scales)
    return;
  const Frame &frame = attention.frame;
  auto load = [&] {
    return loadTokenScale(frame, cache, token.place, token.head);
  };
  Value scale = token.isGiven
                    ? frame.selectIf(token.isGiven, load,
                                     [&] { return attention.f.constant(0); })
                    : load();
  memref::StoreOp::create(frame.builder, frame.loc, scale, scales, j);
}

Value TokenTile::getLargerMagnitude(Value values, Value worst) const {
  const Frame &frame = attention.frame;
  OpBuilder &builder = frame.builder;
  Type type = worst.getType();
  Value bits = arith::BitcastOp::create(builder, frame.loc, type, values);
  Attribute mask =
      builder.getI32IntegerAttr(nonFinite ? kMagnitudes : kMagnitude);
  bits = arith::AndIOp::create(
      builder, frame.loc, bits,
      arith::ConstantOp::create(
          builder, frame.loc,
          DenseElementsAttr::get(cast<ShapedType>(type), mask)));
  if (!nonFinite)
    return arith::MaxSIOp::create(builder, frame.loc, bits, worst);
  Value larger = arith::MaxSIOp::create(
      builder, frame.loc, splitPairs(frame, bits), splitPairs(frame, worst));
  return vector::BitCastOp::create(builder, frame.loc, type, larger);
}

void TokenTile::prefetch(const QueryRows &rows, Value head,
                         Value column) const {
  const Frame &frame = attention.frame;
  AttentionOp op = attention.op;
  Place place = attention.loader.getPlace(rows, column, Value());
  auto prefetchHead = [&](Value cache, int64_t size) {
    if (!cache)
      return;
    if (Value row = getStoredRow(frame, cache, place, head, size))
      prefetchRow(frame, row, frame.index(0), frame.index(0),
                  cast<MemRefType>(row.getType()).getDimSize(1));
  };
  prefetchHead(op.getKeyCache(), attention.sizes.contentSize);
  prefetchHead(op.getRopeCache(), op.getRopeSize());
  prefetchHead(op.getValueCache(), attention.sizes.valueSize);
}
