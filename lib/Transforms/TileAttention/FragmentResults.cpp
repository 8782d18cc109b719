//===- FragmentResults.cpp - Results of rows in fragments -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FragmentResults.h"

#include "kvcache/IR/FragmentRowOps.h"
#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kvcache;

FragmentResults::RowPlace FragmentResults::getPlace(Value blockRow) const {
  auto [i, queryHead] = block.getRow(blockRow);
  Value count = frame.mul(block.rows.count, block.kernel.shape.packed);
  return {blockRow, i, queryHead,
          frame.below(frame.toI32(blockRow), frame.toI32(count))};
}

Value FragmentResults::mapRows(const RowStates &states, Compute compute) const {
  return b.map({states.reference, states.rowSum},
               [&](ValueRange row) {
                 Value queryHead = block.getRow(row[2]).second;
                 return compute({row[0], row[1], DeviceMath(frame).constant(1)},
                                queryHead);
               },
               {firstRow, Value()});
}

IntegerAttr FragmentResults::getAlignment(Value acc, Value memref) const {
  int64_t run = LayoutDigits::get(cast<FragmentType>(acc.getType())).countRun();
  return frame.builder.getI64IntegerAttr(
      getDenseAlignment(frame, cast<MemRefType>(memref.getType()), run));
}

Value FragmentResults::isFirst(Value isThere) const {
  return arith::AndIOp::create(frame.builder, frame.loc, isThere,
                               frame.equal(firstColumn, frame.index(0)));
}

void FragmentResults::store(Value fragment, Value memref, IntegerAttr alignment,
                            Place place) const {
  bool hasColumns = cast<FragmentType>(fragment.getType()).hasColumns();
  auto store = StoreRowsOp::create(frame.builder, frame.loc, fragment, firstRow,
                                   hasColumns ? firstColumn : Value(), memref,
                                   b.getThread(), alignment);
  emitPlaces(store.getBody(), place);
}

void FragmentResults::emitPlaces(Region &region, Place place) const {
  OpBuilder::InsertionGuard guard(frame.builder);
  Block *body = frame.builder.createBlock(
      &region, {}, frame.builder.getIndexType(), {frame.loc});
  YieldOp::create(frame.builder, frame.loc,
                  place(getPlace(body->getArgument(0))));
}

void FragmentResults::storeStatistic(Value fragment, Value memref) const {
  store(fragment, memref, /*alignment=*/{},
        [&](const RowPlace &place) -> SmallVector<Value> {
          Value row = frame.add(block.rows.sequence.first, place.i);
          Value hasPlace = frame.below(row, frame.dim(memref, 0));
          return {row, place.queryHead,
                  arith::AndIOp::create(frame.builder, frame.loc,
                                        isFirst(place.isThere), hasPlace)};
        });
}

void FragmentResults::storeOutputs(const RowStates &states) const {
  AttentionOp op = block.getOp();
  Value quotient =
      mapRows(states, [&](const RowState &scores, Value queryHead) {
        return normalizer.getQuotient(normalizer.addSink(scores, queryHead),
                                      block.rows.work.head, queryHead);
      });
  store(b.multiply(states.accs.front(), quotient), op.getOut(),
        getAlignment(states.accs.front(), op.getOut()),
        [&](const RowPlace &place) -> SmallVector<Value> {
          return {frame.add(block.rows.sequence.first, place.i),
                  place.queryHead, place.isThere};
        });
  if (op.getLse())
    storeStatistic(mapRows(states,
                           [&](const RowState &scores, Value queryHead) {
                             RowState all =
                                 normalizer.addSink(scores, queryHead);
                             return normalizer.getLogarithm(
                                 normalizer.getLseState(scores, all));
                           }),
                   op.getLse());
  if (op.getMaxLogits())
    storeStatistic(mapRows(states,
                           [&](const RowState &scores, Value) {
                             return normalizer.getLargestScore(scores,
                                                               states.bias);
                           }),
                   op.getMaxLogits());
}

void FragmentResults::storeSplit(const RowStates &states, Value split) const {
  const Workspace &workspace = *block.rows.work.workspace;
  auto store = StoreSplitOp::create(
      frame.builder, frame.loc, states.accs.front(), states.reference,
      states.rowSum, firstRow, firstColumn, workspace.getAccs(),
      workspace.getStates(), b.getThread(),
      getAlignment(states.accs.front(), workspace.getAccs()));
  emitPlaces(store.getBody(), [&](const RowPlace &place) -> SmallVector<Value> {
    return {workspace.getSplit(frame.add(block.rows.work.slot, place.i), split),
            place.queryHead, place.isThere};
  });
}

/// The elements of a tile of f32 as a memref, from a column on.
static Value viewColumns(const Frame &frame, Value tile, int64_t first,
                         int64_t columns) {
  OpBuilder &builder = frame.builder;
  auto type = cast<TileType>(tile.getType());
  MemRefType bytes = type.getMemoryType();
  Value memory = TileMemoryOp::create(builder, frame.loc, bytes, tile);
  auto all = MemRefType::get({type.getRows(), type.getColumns()},
                             type.getElementType(), MemRefLayoutAttrInterface(),
                             bytes.getMemorySpace());
  Value view = memref::ViewOp::create(builder, frame.loc, all, memory,
                                      frame.index(0), ValueRange());
  int64_t sizes[] = {type.getRows(), columns},
          strides[] = {type.getColumns(), 1};
  auto part = MemRefType::get(
      sizes, type.getElementType(),
      StridedLayoutAttr::get(builder.getContext(), first, strides),
      bytes.getMemorySpace());
  return memref::ReinterpretCastOp::create(builder, frame.loc, part, view,
                                           first, sizes, strides);
}

void FragmentResults::storeSplitTile(const RowStates &states,
                                     Value tile) const {
  int64_t elements = block.getSizes().valueSize;
  Value accs = viewColumns(frame, tile, /*first=*/0, elements);
  auto store = StoreSplitOp::create(
      frame.builder, frame.loc, states.accs.front(), states.reference,
      states.rowSum, firstRow, firstColumn, accs,
      viewColumns(frame, tile, elements, /*columns=*/2), b.getThread(),
      getAlignment(states.accs.front(), accs));
  emitPlaces(store.getBody(), [](const RowPlace &place) -> SmallVector<Value> {
    return {place.blockRow, place.isThere};
  });
}
