//===- CPUTile.cpp - Keys and values of some tokens -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CPUTile.h"

#include "../../ExpandOps/DeviceMath.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

void CPUTile::allocate() {
  keyTile = allocateFloats(frame, {kTileTokens, shape.sizes.keySize});
  valueTile = op.getValueCache()
                  ? allocateFloats(frame, {kTileTokens, shape.sizes.valueSize})
                  : keyTile;
  auto allocateScales = [&](Value cache) {
    return loader.isUnscaled(cache) ? allocateFloats(frame, kTileTokens)
                                    : Value();
  };
  keyScales = allocateScales(op.getKeyCache());
  valueScales =
      op.getValueCache() ? allocateScales(op.getValueCache()) : keyScales;
  if (op.getRows())
    ids = memref::AllocaOp::create(
        frame.builder, frame.loc,
        MemRefType::get(kTileTokens, frame.builder.getI32Type()));
}

//===----------------------------------------------------------------------===//
// Conversion
//===----------------------------------------------------------------------===//

Value CPUTile::countRows(Value tile, Value lastToken) const {
  if (op.getRows() || keyScales || valueScales)
    return frame.index(kTileTokens);
  int64_t columns = shape.columns;
  Value count = frame.add(frame.sub(lastToken, tile), frame.index(columns));
  Value groups = frame.div(count, frame.index(columns));
  return frame.min(frame.mul(groups, frame.index(columns)),
                   frame.index(kTileTokens));
}

void CPUTile::load(const QueryRows &rows, Value head, Value tile,
                   Value lastToken) {
  OpBuilder &builder = frame.builder;
  frame.loop(frame.index(0), countRows(tile, lastToken), frame.index(1),
             [&](Value j) {
               Value token = frame.min(frame.add(tile, j), lastToken);
               if (op.getRows())
                 return loadId(rows, head, token, j);
               loadToken(head, j, loader.getPlace(rows, token, Value()));
             });
  if (!op.getRows())
    return;
  Value given = vector::LoadOp::create(
      builder, frame.loc, VectorType::get(kTileTokens, builder.getI32Type()),
      ids, frame.index(0));
  isGiven = arith::CmpIOp::create(
      builder, frame.loc, arith::CmpIPredicate::sge, given,
      arith::ConstantOp::create(builder, frame.loc,
                                builder.getZeroAttr(given.getType())));
}

void CPUTile::loadId(const QueryRows &rows, Value head, Value column,
                     Value j) const {
  Value id = loader.loadId(rows, column);
  memref::StoreOp::create(frame.builder, frame.loc, frame.toI32(id), ids, j);
  frame.runIf(
      frame.less(id, frame.index(0)), [&] { loadToken(head, j, std::nullopt); },
      [&] { loadToken(head, j, loader.getPlace(rows, column, id)); });
}

void CPUTile::loadElements(Value cache, Value tile, Value head, Value j,
                           const std::optional<Place> &place, int64_t first,
                           int64_t size, int64_t lanes) const {
  DeviceMath f(frame);
  frame.loop(
      frame.index(0), frame.index(size), frame.index(lanes), [&](Value d) {
        Value elements = place ? loader.load(cache, *place, head, d, lanes,
                                             frame.builder.getF32Type())
                               : f.constant(f.vectorOf(lanes), 0);
        Value column = first ? frame.add(d, frame.index(first)) : d;
        vector::StoreOp::create(frame.builder, frame.loc, elements, tile,
                                ValueRange{j, column});
      });
}

void CPUTile::loadToken(Value head, Value j,
                        const std::optional<Place> &place) const {
  auto load = [&](Value cache, Value tile, Value scales, int64_t size,
                  int64_t lanes) {
    loadElements(cache, tile, head, j, place, /*first=*/0, size, lanes);
    if (!scales)
      return;
    Value scale = place ? loadTokenScale(frame, cache, *place, head)
                        : DeviceMath(frame).constant(0);
    memref::StoreOp::create(frame.builder, frame.loc, scale, scales, j);
  };
  const AttentionSizes &sizes = shape.sizes;
  load(op.getKeyCache(), keyTile, keyScales, sizes.contentSize, shape.keyLanes);
  if (op.getRopeCache())
    loadElements(op.getRopeCache(), keyTile, head, j, place, sizes.contentSize,
                 op.getRopeSize(), shape.keyLanes);
  if (op.getValueCache())
    load(op.getValueCache(), valueTile, valueScales, sizes.valueSize,
         shape.valueLanes);
}

void CPUTile::prefetch(const QueryRows &rows, Value head, Value tile, Value j,
                       Value lastToken) const {
  Value token = frame.add(tile, frame.add(j, frame.index(kTileTokens)));
  token = frame.min(token, lastToken);
  Value id, isToken;
  if (op.getRows()) {
    id = loader.loadId(rows, token);
    isToken = frame.less(frame.index(-1), id);
  }
  runIfGiven(frame, isToken, [&] {
    Place place = loader.getPlace(rows, token, id);
    prefetchElements(frame, op.getKeyCache(), place, head,
                     shape.sizes.contentSize);
    if (op.getRopeCache())
      prefetchElements(frame, op.getRopeCache(), place, head, op.getRopeSize());
    if (op.getValueCache())
      prefetchElements(frame, op.getValueCache(), place, head,
                       shape.sizes.valueSize);
  });
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

static Value loadVector(const Frame &frame, Value memref, int64_t lanes,
                        ValueRange indices) {
  auto type = VectorType::get(lanes, frame.builder.getF32Type());
  return vector::LoadOp::create(frame.builder, frame.loc, type, memref,
                                indices);
}

Value CPUTile::loadKey(int64_t j, Value d) const {
  return loadVector(frame, keyTile, shape.keyLanes, {frame.index(j), d});
}

Value CPUTile::loadValue(int64_t j, Value d) const {
  return loadVector(frame, valueTile, shape.valueLanes, {frame.index(j), d});
}

Value CPUTile::loadScales(Value scales) const {
  return loadVector(frame, scales, kTileTokens, frame.index(0));
}
