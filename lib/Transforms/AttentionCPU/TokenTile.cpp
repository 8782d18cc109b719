//===- TokenTile.cpp - Tokens of a cache as f32 in memory -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenTile.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

/// The bits of the largest float, and those of a float without its sign.
constexpr int64_t kLargestFinite = 0x7f7fffff, kMagnitude = 0x7fffffff;

/// The elements of a key, or a query, that are loaded at once: those of one
/// array.
static int64_t getKeyLanes(const HostAttention &attention) {
  const AttentionSizes &sizes = attention.sizes;
  int64_t own = cast<MemRefType>(attention.op.getQ().getType()).getDimSize(2);
  int64_t border = std::gcd(std::gcd(own, sizes.keySize), sizes.contentSize);
  return getLanes(attention.op.getKeyCache(), border, kLanes);
}

TokenTile::TokenTile(const HostAttention &attention, int64_t tokens)
    : tokens(tokens), keyLanes(getKeyLanes(attention)),
      valueLanes(getLanes(attention.op.getValues(), attention.sizes.valueSize,
                          kLanes)),
      attention(attention) {
  AttentionOp op = attention.op;
  Type f32 = attention.frame.builder.getF32Type();
  auto allocateScales = [&](Value cache) {
    return attention.loader.isUnscaled(cache)
               ? attention.allocate({tokens}, f32)
               : Value();
  };
  keys = attention.allocate({tokens, attention.sizes.keySize}, f32);
  keyScales = allocateScales(op.getKeyCache());
  bool hasValues = static_cast<bool>(op.getValueCache());
  values = hasValues
               ? attention.allocate({tokens, attention.sizes.valueSize}, f32)
               : keys;
  valueScales = hasValues ? allocateScales(op.getValueCache()) : keyScales;
  if (op.getRows())
    ids = attention.allocate({tokens}, attention.frame.builder.getI32Type());
}

Value TokenTile::load(const QueryRows &rows, Value head, Value first,
                      Value count, Value last) const {
  const Frame &frame = attention.frame;
  OpBuilder &builder = frame.builder;
  auto lanes = VectorType::get(values == keys ? keyLanes : valueLanes,
                               builder.getI32Type());
  Value none =
      arith::ConstantOp::create(builder, frame.loc, builder.getZeroAttr(lanes));
  auto loadAny = [&](Value j, Value worst) {
    const TokenLoader &loader = attention.loader;
    Value token = frame.min(frame.add(first, j), last);
    if (!ids)
      return loadToken({loader.getPlace(rows, token, Value()), head}, j, worst);
    Value id = loader.loadId(rows, token);
    memref::StoreOp::create(builder, frame.loc, frame.toI32(id), ids, j);
    return frame.selectIf(
        frame.less(id, frame.index(0)),
        [&] { return loadToken({std::nullopt, head}, j, worst); },
        [&] {
          return loadToken({loader.getPlace(rows, token, id), head}, j, worst);
        });
  };
  auto loop = scf::ForOp::create(
      builder, frame.loc, frame.index(0), count, frame.index(1), none,
      [&](OpBuilder &, Location, Value j, ValueRange worst) {
        scf::YieldOp::create(builder, frame.loc, loadAny(j, worst.front()));
      });
  Value worst = vector::ReductionOp::create(
      builder, frame.loc, vector::CombiningKind::MAXSI, loop.getResult(0));
  return frame.less(frame.i32(kLargestFinite), worst);
}

Value TokenTile::loadToken(const Token &token, Value j, Value worst) const {
  AttentionOp op = attention.op;
  const AttentionSizes &sizes = attention.sizes;
  Value magnitudes =
      loadPieces(op.getKeyCache(), token, keys, j, 0, sizes.contentSize,
                 op.getValueCache() ? Value() : worst);
  if (op.getRopeCache())
    loadPieces(op.getRopeCache(), token, keys, j, sizes.contentSize,
               op.getRopeSize(), Value());
  loadScale(op.getKeyCache(), token, keyScales, j);
  if (!op.getValueCache())
    return magnitudes;
  loadScale(op.getValueCache(), token, valueScales, j);
  return loadPieces(op.getValueCache(), token, values, j, 0, sizes.valueSize,
                    worst);
}

Value TokenTile::loadPieces(Value cache, const Token &token, Value tile,
                            Value j, int64_t first, int64_t size,
                            Value worst) const {
  const Frame &frame = attention.frame;
  OpBuilder &builder = frame.builder;
  int64_t lanes = tile == keys ? keyLanes : valueLanes;
  auto loadPiece = [&](Value d) {
    if (!token.place)
      return attention.f.constant(attention.f.vectorOf(lanes), 0);
    return attention.loader.load(cache, *token.place, token.head, d, lanes,
                                 builder.getF32Type());
  };
  auto loop = scf::ForOp::create(
      builder, frame.loc, frame.index(0), frame.index(size), frame.index(lanes),
      worst ? ValueRange(worst) : ValueRange(),
      [&](OpBuilder &, Location, Value d, ValueRange carried) {
        Value piece = loadPiece(d);
        vector::StoreOp::create(
            builder, frame.loc, piece, tile,
            ValueRange{j, frame.add(d, frame.index(first))});
        SmallVector<Value> next;
        if (worst)
          next.push_back(getLargerMagnitude(piece, carried.front()));
        scf::YieldOp::create(builder, frame.loc, next);
      });
  return worst ? loop.getResult(0) : Value();
}

void TokenTile::loadScale(Value cache, const Token &token, Value scales,
                          Value j) const {
  if (!scales)
    return;
  const Frame &frame = attention.frame;
  Value scale = token.place
                    ? loadTokenScale(frame, cache, *token.place, token.head)
                    : attention.f.constant(0);
  memref::StoreOp::create(frame.builder, frame.loc, scale, scales, j);
}

Value TokenTile::getLargerMagnitude(Value values, Value worst) const {
  const Frame &frame = attention.frame;
  auto type = cast<VectorType>(worst.getType());
  Value bits = arith::BitcastOp::create(frame.builder, frame.loc, type, values);
  Attribute mask = frame.builder.getI32IntegerAttr(kMagnitude);
  bits = arith::AndIOp::create(
      frame.builder, frame.loc, bits,
      arith::ConstantOp::create(frame.builder, frame.loc,
                                DenseElementsAttr::get(type, mask)));
  return arith::MaxSIOp::create(frame.builder, frame.loc, bits, worst);
}
