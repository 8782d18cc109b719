//===- FloatBuilder.cpp - Arithmetic of f32 -------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Support/FloatBuilder.h"
#include "kvcache/IR/KVCacheDialect.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

VectorType FloatBuilder::vectorOf(int64_t lanes) const {
  return VectorType::get(lanes, f32);
}

Value FloatBuilder::constant(Type type, const llvm::APFloat &number) const {
  return createScalarOrSplatConstant(builder, loc, withLane(type, f32), number);
}
Value FloatBuilder::constant(Type type, float number) const {
  return constant(type, llvm::APFloat(number));
}
Value FloatBuilder::constant(Value like, float number) const {
  return constant(like.getType(), number);
}
Value FloatBuilder::constant(float number) const {
  return constant(f32, number);
}

Value FloatBuilder::add(Value lhs, Value rhs) const {
  return arith::AddFOp::create(builder, loc, lhs, rhs);
}
Value FloatBuilder::add(Value lhs, float rhs) const {
  return add(lhs, constant(lhs, rhs));
}
Value FloatBuilder::sub(Value lhs, Value rhs) const {
  return arith::SubFOp::create(builder, loc, lhs, rhs);
}
Value FloatBuilder::mul(Value lhs, Value rhs) const {
  return arith::MulFOp::create(builder, loc, lhs, rhs);
}
Value FloatBuilder::div(Value lhs, Value rhs) const {
  return arith::DivFOp::create(builder, loc, lhs, rhs);
}
Value FloatBuilder::div(Value lhs, float rhs) const {
  return div(lhs, constant(lhs, rhs));
}
Value FloatBuilder::fma(Value lhs, Value rhs, Value sum) const {
  return math::FmaOp::create(builder, loc, lhs, rhs, sum);
}
Value FloatBuilder::max(Value lhs, Value rhs) const {
  return arith::MaxNumFOp::create(builder, loc, lhs, rhs);
}
Value FloatBuilder::max(Value lhs, float rhs) const {
  return max(lhs, constant(lhs, rhs));
}
Value FloatBuilder::min(Value lhs, float rhs) const {
  return arith::MinNumFOp::create(builder, loc, lhs, constant(lhs, rhs));
}
Value FloatBuilder::larger(Value lhs, Value rhs) const {
  Value isLarger =
      arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGT, lhs, rhs);
  return select(isLarger, lhs, rhs);
}
Value FloatBuilder::abs(Value value) const {
  return math::AbsFOp::create(builder, loc, value);
}
Value FloatBuilder::negate(Value value) const {
  return arith::NegFOp::create(builder, loc, value);
}

Value FloatBuilder::select(Value condition, Value then, Value otherwise) const {
  return arith::SelectOp::create(builder, loc, condition, then, otherwise);
}
Value FloatBuilder::select(arith::CmpFPredicate predicate, Value lhs, float rhs,
                           Value then, Value otherwise) const {
  Value condition =
      arith::CmpFOp::create(builder, loc, predicate, lhs, constant(lhs, rhs));
  return select(condition, then, otherwise);
}
Value FloatBuilder::isZero(Value value) const {
  return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, value,
                               constant(0));
}

Value FloatBuilder::splat(Value value, int64_t lanes) const {
  return vector::BroadcastOp::create(builder, loc, vectorOf(lanes), value);
}
Value FloatBuilder::broadcast(Value scalar, Value like) const {
  auto vector = dyn_cast<VectorType>(like.getType());
  if (!vector)
    return scalar;
  return vector::BroadcastOp::create(builder, loc,
                                     vector.clone(scalar.getType()), scalar);
}
Value FloatBuilder::spread(Value scales, Value like,
                           int64_t granularity) const {
  if (!isa<VectorType>(scales.getType()))
    return broadcast(scales, like);
  auto vector = dyn_cast<VectorType>(like.getType());
  if (!vector)
    return vector::ExtractOp::create(builder, loc, scales, 0);
  SmallVector<int64_t> groups;
  for (int64_t lane = 0; lane < vector.getNumElements(); ++lane)
    groups.push_back(lane / granularity);
  return vector::ShuffleOp::create(builder, loc, scales, scales, groups);
}

Value FloatBuilder::join(ArrayRef<Value> vectors) const {
  if (vectors.size() == 1)
    return vectors.front();
  size_t half = llvm::bit_ceil(vectors.size()) / 2;
  Value first = join(vectors.take_front(half));
  Value second = join(vectors.drop_front(half));
  int64_t lanes = cast<VectorType>(first.getType()).getNumElements() +
                  cast<VectorType>(second.getType()).getNumElements();
  return vector::ShuffleOp::create(builder, loc, first, second,
                                   llvm::to_vector(llvm::seq<int64_t>(lanes)));
}

Value FloatBuilder::sumOf(Value vector) const {
  return vector::ReductionOp::create(builder, loc, vector::CombiningKind::ADD,
                                     vector, arith::FastMathFlags::reassoc);
}
Value FloatBuilder::maxOf(Value vector) const {
  return vector::ReductionOp::create(builder, loc,
                                     vector::CombiningKind::MAXNUMF, vector);
}
Value FloatBuilder::sumsOf(ArrayRef<Value> vectors) const {
  auto type = cast<VectorType>(vectors.front().getType());
  int64_t lanes = type.getNumElements(), count = vectors.size();
  if (!llvm::isPowerOf2_64(lanes) || !llvm::isPowerOf2_64(count) ||
      lanes < count) {
    SmallVector<Value> sums;
    for (Value vector : vectors)
      sums.push_back(sumOf(vector));
    return vector::FromElementsOp::create(builder, loc, vectorOf(count), sums);
  }
  return combineLanes(vectors, [&](Value a, Value b) { return add(a, b); });
}
Value FloatBuilder::maximaOf(ArrayRef<Value> vectors) const {
  // LLVM's reductions that heed NaNs compare one lane after the other.
  return combineLanes(vectors, [&](Value a, Value b) { return larger(a, b); });
}
Value FloatBuilder::combineLanes(ArrayRef<Value> vectors,
                                 function_ref<Value(Value, Value)> combine,
                                 int64_t groups) const {
  int64_t lanes = cast<VectorType>(vectors.front().getType()).getNumElements();
  int64_t count = vectors.size() * groups;
  // Halves of all lanes that belong to one result are combined, and two vectors
  // become one while there are several, until a lane is a result.
  auto combineHalves = [&](Value a, Value b, int64_t width, int64_t inputs) {
    SmallVector<int64_t> low, high;
    for (int64_t begin = 0; begin < inputs; begin += width)
      for (int64_t i = 0; i < width / 2; ++i) {
        low.push_back(begin + i);
        high.push_back(begin + width / 2 + i);
      }
    return combine(vector::ShuffleOp::create(builder, loc, a, b, low),
                   vector::ShuffleOp::create(builder, loc, a, b, high));
  };
  SmallVector<Value> left(vectors);
  int64_t width = lanes / groups;
  for (; left.size() > 1; width /= 2) {
    SmallVector<Value> next;
    for (size_t i = 0; i < left.size(); i += 2)
      next.push_back(combineHalves(left[i], left[i + 1], width, 2 * lanes));
    left = std::move(next);
  }
  Value result = left.front();
  for (; width > 1; width /= 2)
    result = combineHalves(result, result, width, count * width);
  return result;
}
