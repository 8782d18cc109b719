//===- RowLanes.cpp - Rows of attention in lanes of vectors ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowLanes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::kvcache;

Value LaneBuilder::load(Value memory, ValueRange indices) const {
  Type element = cast<MemRefType>(memory.getType()).getElementType();
  return vector::LoadOp::create(frame.builder, frame.loc,
                                VectorType::get(kLanes, element), memory,
                                indices);
}

void LaneBuilder::store(Value vector, Value memory, ValueRange indices) const {
  vector::StoreOp::create(frame.builder, frame.loc, vector, memory, indices);
}

Value LaneBuilder::broadcast(Value memory, ValueRange indices) const {
  return splat(
      memref::LoadOp::create(frame.builder, frame.loc, memory, indices));
}

Value LaneBuilder::splat(Value scalar) const {
  return vector::BroadcastOp::create(frame.builder, frame.loc,
                                     VectorType::get(kLanes, scalar.getType()),
                                     scalar);
}

Value kvcache::isUnseen(const Frame &frame, Value probs) {
  auto type = VectorType::get(kLanes, frame.builder.getI32Type());
  Value bits = arith::BitcastOp::create(frame.builder, frame.loc, type, probs);
  Value unseen = LaneBuilder(frame).splat(frame.i32(kUnseenProb));
  return arith::CmpIOp::create(frame.builder, frame.loc,
                               arith::CmpIPredicate::eq, bits, unseen);
}

/// A perfect shuffle, which interleaves the vectors of halves.
static SmallVector<Value> shuffleHalves(const Frame &frame,
                                        ValueRange vectors) {
  SmallVector<int64_t> low, high;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    int64_t source = lane / 2 + lane % 2 * kLanes;
    low.push_back(source);
    high.push_back(source + kLanes / 2);
  }
  SmallVector<Value> shuffled;
  for (int64_t i = 0; i < kLanes / 2; ++i)
    for (ArrayRef<int64_t> half : {low, high})
      shuffled.push_back(vector::ShuffleOp::create(
          frame.builder, frame.loc, vectors[i], vectors[i + kLanes / 2], half));
  return shuffled;
}

/// Four rounds of a perfect shuffle. They are a loop where registers hold all
/// vectors: LLVM's search for shuffles that can be combined takes a time
/// exponential in their depth.
static SmallVector<Value> transposeSquare(const Frame &frame,
                                          ArrayRef<Value> vectors) {
  constexpr int64_t rounds = llvm::ConstantLog2<kLanes>();
  if (frame.target.vectorBits == 512) {
    auto loop = scf::ForOp::create(
        frame.builder, frame.loc, frame.index(0), frame.index(rounds),
        frame.index(1), vectors,
        [&](OpBuilder &, Location, Value, ValueRange vectors) {
          scf::YieldOp::create(frame.builder, frame.loc,
                               shuffleHalves(frame, vectors));
        });
    return llvm::to_vector_of<Value>(loop.getResults());
  }
  SmallVector<Value> all(vectors);
  for (int64_t round = 0; round < rounds; ++round)
    all = shuffleHalves(frame, all);
  return all;
}

SmallVector<Value> kvcache::transpose(const Frame &frame,
                                      ArrayRef<Value> vectors) {
  int64_t count = vectors.size();
  int64_t size = cast<VectorType>(vectors.front().getType()).getNumElements();
  if (count == kLanes && size == kLanes)
    return transposeSquare(frame, vectors);
  FloatBuilder f(frame.builder, frame.loc);
  SmallVector<Value> results;
  for (int64_t lane = 0; lane < size; ++lane) {
    SmallVector<Value> elements;
    for (Value vector : vectors)
      elements.push_back(
          vector::ExtractOp::create(frame.builder, frame.loc, vector, lane));
    results.push_back(vector::FromElementsOp::create(
        frame.builder, frame.loc, f.vectorOf(count), elements));
  }
  return results;
}

SmallVector<Value> kvcache::getTiledIndices(const Frame &frame, Value row,
                                            Value column) {
  Value lanes = frame.index(kLanes);
  return {frame.div(row, kLanes), frame.div(column, kLanes),
          frame.rem(row, lanes), frame.rem(column, lanes)};
}
