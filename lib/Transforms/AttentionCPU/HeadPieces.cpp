//===- HeadPieces.cpp - Elements of heads in registers --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HeadPieces.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

/// Elements of a piece of pairs.
constexpr int64_t kPairedWidth = 2 * kLanes;
/// The bits of the odd element of a pair, and those of the even one's place.
constexpr int64_t kOddBits = -(1 << 16), kElementBits = 16;

HeadPieces::HeadPieces(const HostAttention &attention, Value cache,
                       int64_t boundary, int64_t most)
    : attention(&attention) {
  auto type = cast<CacheTypeInterface>(cache.getType());
  isPaired = type.getElementType().isBF16() && !type.isQuantized() &&
             boundary % kPairedWidth == 0 && most == kLanes;
  width = isPaired ? kPairedWidth : kvcache::getLanes(cache, boundary, most);
}

Value HeadPieces::loadPairs(Value cache, const Place &place, Value head,
                            Value d) const {
  const Frame &frame = attention->frame;
  OpBuilder &builder = frame.builder;
  Value elements =
      loadElements(frame, cache, place, head, d, width, builder.getBF16Type());
  auto words = VectorType::get(kLanes, builder.getI32Type());
  return vector::BitCastOp::create(builder, frame.loc, words, elements);
}

SmallVector<Value> HeadPieces::load(Value cache, const Place &place, Value head,
                                    Value d) const {
  const Frame &frame = attention->frame;
  OpBuilder &builder = frame.builder;
  Type f32 = builder.getF32Type();
  if (!isPaired)
    return {attention->loader.load(cache, place, head, d, width, f32)};
  Value pairs = loadPairs(cache, place, head, d);
  auto words = cast<VectorType>(pairs.getType());
  auto constant = [&](int64_t bits) -> Value {
    Attribute attr = builder.getI32IntegerAttr(bits);
    return arith::ConstantOp::create(builder, frame.loc,
                                     DenseElementsAttr::get(words, attr));
  };
  auto asFloats = [&](Value bits) -> Value {
    return arith::BitcastOp::create(builder, frame.loc,
                                    attention->f.vectorOf(kLanes), bits);
  };
  return {asFloats(arith::ShLIOp::create(builder, frame.loc, pairs,
                                         constant(kElementBits))),
          asFloats(arith::AndIOp::create(builder, frame.loc, pairs,
                                         constant(kOddBits)))};
}

SmallVector<Value> HeadPieces::load(Value memory, Value row, Value d) const {
  const Frame &frame = attention->frame;
  SmallVector<Value> vectors;
  for (int64_t v = 0; v < countVectors(); ++v)
    vectors.push_back(vector::LoadOp::create(
        frame.builder, frame.loc, attention->f.vectorOf(getLanes()), memory,
        ValueRange{row, frame.add(d, frame.index(v * getLanes()))}));
  return vectors;
}

void HeadPieces::store(ArrayRef<Value> vectors, Value memory, Value row,
                       Value d) const {
  const Frame &frame = attention->frame;
  for (auto [v, vector] : llvm::enumerate(vectors))
    vector::StoreOp::create(
        frame.builder, frame.loc, vector, memory,
        ValueRange{row, frame.add(d, frame.index(v * getLanes()))});
}

SmallVector<Value> HeadPieces::divide(Value elements) const {
  if (!isPaired)
    return {elements};
  auto halves = vector::DeinterleaveOp::create(attention->frame.builder,
                                               attention->frame.loc, elements);
  return {halves.getRes1(), halves.getRes2()};
}

Value HeadPieces::join(ArrayRef<Value> vectors) const {
  if (!isPaired)
    return vectors.front();
  return vector::InterleaveOp::create(
      attention->frame.builder, attention->frame.loc, vectors[0], vectors[1]);
}
