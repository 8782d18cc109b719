//===- RowTransfer.cpp - From rows of arrays to lanes and back ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowTransfer.h"

#include "PairBuilder.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

void RowTransfer::forRows(function_ref<void(Value, ValueRange)> body) const {
  Value zero = frame.index(0);
  frame.loop(zero, frame.index(kLanes), frame.index(1),
             [&](Value row) { body(row, {zero, row, zero}); });
}

void RowTransfer::prefetchQueries(Value lane, GetRow getRow) const {
  JoinedRows queries = getQueries(attention.op);
  forRows([&](Value number, ValueRange) {
    HostAttention::Row row = getRow(frame.add(lane, number));
    for (Value memref : {queries.first, queries.second})
      if (memref)
        prefetchRow(frame, memref, {row.row, row.queryHead}, frame.index(0),
                    cast<MemRefType>(memref.getType()).getDimSize(2));
  });
}

void RowTransfer::loadQueries(Value lane, int64_t width, GetRow getRow) const {
  prefetchQueries(frame.add(lane, frame.index(kLanes)), getRow);
  frame.loop(frame.index(0), frame.index(attention.sizes.keySize),
             frame.index(width),
             [&](Value d) { loadPiece(lane, d, width, getRow); });
}

void RowTransfer::loadPiece(Value lane, Value d, int64_t width,
                            GetRow getRow) const {
  const DeviceMath &f = attention.f;
  forRows([&](Value number, ValueRange indices) {
    HostAttention::Row row = getRow(frame.add(lane, number));
    Value q = loadJoined(frame, getQueries(attention.op),
                         {row.row, row.queryHead}, d, width);
    q = convertLanes(frame, q, frame.builder.getF32Type());
    if (!attention.usesPairs())
      q = f.mul(q, f.splat(attention.getFactor(row, head), width));
    vector::StoreOp::create(frame.builder, frame.loc, q, memory.scores,
                            indices);
  });
  SmallVector<Value> rows;
  for (int64_t row = 0; row < kLanes; ++row)
    rows.push_back(vector::LoadOp::create(frame.builder, frame.loc,
                                          f.vectorOf(width), memory.scores,
                                          getIndices(row)));
  SmallVector<Value> elements = transpose(frame, rows);
  int64_t step = attention.usesPairs() ? 2 : 1;
  Value first = frame.div(d, step);
  for (int64_t j = 0; j < width; j += step) {
    Value stored = step == 1
                       ? elements[j]
                       : PairBuilder(frame).join(elements[j], elements[j + 1]);
    lanes.store(stored, memory.queries,
                lanes.at(lane, frame.add(first, frame.index(j / step))));
  }
}

void RowTransfer::storeOutputs(Value lane, GetRow getRow) const {
  int64_t size = attention.sizes.valueSize, width = std::gcd(size, kLanes);
  frame.loop(frame.index(0), frame.index(size), frame.index(width),
             [&](Value d) { storePiece(lane, d, width, getRow); });
}

void RowTransfer::storePiece(Value lane, Value d, int64_t width,
                             GetRow getRow) const {
  const DeviceMath &f = attention.f;
  Value factors = lanes.load(memory.rowSum, lane);
  SmallVector<Value> elements;
  for (int64_t j = 0; j < width; ++j) {
    Value acc =
        lanes.load(memory.acc, lanes.at(lane, frame.add(d, frame.index(j))));
    // A flushed sum may be -0, depending on unseen tokens.
    if (attention.usesPairs())
      acc = f.add(acc, 0.0f);
    elements.push_back(f.mul(acc, factors));
  }
  for (auto [number, row] : llvm::enumerate(transpose(frame, elements)))
    vector::StoreOp::create(frame.builder, frame.loc, row, memory.scores,
                            getIndices(number));
  forRows([&](Value number, ValueRange indices) {
    HostAttention::Row row = getRow(frame.add(lane, number));
    Value output = vector::LoadOp::create(
        frame.builder, frame.loc, f.vectorOf(width), memory.scores, indices);
    storeDense(frame, output, attention.op.getOut(), {row.row, row.queryHead},
               d);
  });
}
