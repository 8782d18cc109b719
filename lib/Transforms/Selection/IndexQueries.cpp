//===- IndexQueries.cpp - The elements of index queries -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IndexQueries.h"

#include "../Builders/Heads.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

void IndexQueries::checkRow(Value row) const {
  frame.checkFirst(
      row, "row", {{"q", queries}, {"q_scales", scales}, {"weights", weights}});
}

Value IndexQueries::load(Value row, Value head, Value d, int64_t count,
                         FloatType lane) const {
  if (!scales)
    return convertLanes(frame, loadDense(frame, queries, {row, head}, d, count),
                        lane);
  constexpr int64_t pair = 2;
  if (count >= pair)
    return convertLanes(frame, loadPairs({row, head}, d, count), lane);
  Value both = convertLanes(frame, loadPairs({row, head}, d, pair), lane);
  Value one = vector::ExtractOp::create(frame.builder, frame.loc, both,
                                        frame.rem(d, pair));
  return vector::BroadcastOp::create(frame.builder, frame.loc,
                                     VectorType::get(count, lane), one);
}

Value IndexQueries::loadPairs(ValueRange query, Value d, int64_t count) const {
  constexpr int64_t pair = 2;
  Value bytes =
      loadDense(frame, queries, query, frame.div(d, pair), count / pair);
  auto element = Float4E2M1FNType::get(frame.builder.getContext());
  return vector::BitCastOp::create(frame.builder, frame.loc,
                                   VectorType::get(count, element), bytes);
}

Value IndexQueries::loadScale(Value row, Value head, Value group) const {
  Value scale = memref::LoadOp::create(frame.builder, frame.loc, scales,
                                       ValueRange{row, head, group});
  return convertLanes(frame, scale, frame.builder.getF32Type());
}
