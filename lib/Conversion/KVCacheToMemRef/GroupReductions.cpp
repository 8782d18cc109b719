//===- GroupReductions.cpp - One number for each group of lanes -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Quantization.h"
#include "kvcache/Support/FloatBuilder.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

static gpu::AllReduceOperation getReduction(vector::CombiningKind kind) {
  return kind == vector::CombiningKind::MAXIMUMF
             ? gpu::AllReduceOperation::MAXIMUMF
             : gpu::AllReduceOperation::MINIMUMF;
}

/// Whether the groups of a vector are integers on a CPU, and so many that it is
/// worth to reduce halves of several together.
static bool canCombineGroups(Value values, int64_t granularity) {
  int64_t lanes = getNumLanes(values.getType());
  return isa<IntegerType>(getLaneType(values.getType())) &&
         llvm::isPowerOf2_64(lanes) && llvm::isPowerOf2_64(granularity) &&
         lanes / granularity > 2 && lanes <= granularity * granularity;
}

/// The numbers of groups, by halves of several at once.
static Value combineGroups(const FloatBuilder &b, Value values,
                           int64_t granularity, vector::CombiningKind kind) {
  SmallVector<Value> groups;
  for (int64_t first = 0; first < getNumLanes(values.getType());
       first += granularity)
    groups.push_back(vector::ExtractStridedSliceOp::create(
        b.builder, b.loc, values, first, granularity, /*strides=*/1));
  return b.combineLanes(groups, [&](Value lhs, Value rhs) {
    return vector::makeArithReduction(b.builder, b.loc, kind, lhs, rhs);
  });
}

Value kvcache::reduceGroups(OpBuilder &builder, Location loc, ValueRange rows,
                            int64_t granularity, vector::CombiningKind kind,
                            int64_t spread) {
  FloatBuilder b(builder, loc);
  Value values = rows.front();
  for (Value row : rows.drop_front())
    values = vector::makeArithReduction(builder, loc, kind, values, row);
  auto vector = dyn_cast<VectorType>(values.getType());
  int64_t lanes = getNumLanes(values.getType());
  Type lane = getLaneType(values.getType());
  if (isa<FloatType>(lane))
    lane = b.f32;
  auto widen = [&](Value value) {
    return lane == b.f32 ? convertFloat(builder, loc, value, b.f32) : value;
  };
  if (rows.size() > 1 && granularity == 1)
    return widen(values);
  if (canCombineGroups(values, granularity))
    return combineGroups(b, values, granularity, kind);
  SmallVector<Value> reduced;
  for (int64_t first = 0; first < lanes; first += granularity) {
    Value group = values;
    if (vector && granularity < lanes)
      group = vector::ExtractStridedSliceOp::create(
          builder, loc, values, first, std::min(granularity, lanes - first),
          /*strides=*/1);
    if (vector)
      group = vector::ReductionOp::create(builder, loc, kind, group);
    group = widen(group);
    if (spread > 1)
      group = gpu::SubgroupReduceOp::create(
          builder, loc, group, getReduction(kind),
          /*uniform=*/false, spread, /*cluster_stride=*/1);
    reduced.push_back(group);
  }
  if (reduced.size() == 1)
    return reduced.front();
  return vector::FromElementsOp::create(
      builder, loc, VectorType::get(reduced.size(), lane), reduced);
}

Value kvcache::invertBits(OpBuilder &builder, Location loc, Value values) {
  Type type = values.getType();
  unsigned width = getLaneType(type).getIntOrFloatBitWidth();
  return arith::XOrIOp::create(
      builder, loc, values,
      createScalarOrSplatConstant(builder, loc, type,
                                  llvm::APInt::getAllOnes(width)));
}

/// The smallest integers of all groups of a vector, then the largest ones with
/// all bits inverted.
static Value combineRange(const FloatBuilder &b, Value values,
                          int64_t granularity) {
  OpBuilder &builder = b.builder;
  auto reduce = [&](vector::CombiningKind kind, Value lhs, Value rhs) {
    return vector::makeArithReduction(builder, b.loc, kind, lhs, rhs);
  };
  SmallVector<Value> smallest, largest;
  for (int64_t first = 0; first < getNumLanes(values.getType());
       first += 2 * granularity) {
    auto take = [&](int64_t begin) -> Value {
      SmallVector<int64_t> numbers;
      for (int64_t group : {first, first + granularity})
        for (int64_t lane = 0; lane < granularity / 2; ++lane)
          numbers.push_back(group + begin + lane);
      return vector::ShuffleOp::create(builder, b.loc, values, values, numbers);
    };
    Value low = take(0), high = take(granularity / 2);
    smallest.push_back(reduce(vector::CombiningKind::MINUI, low, high));
    largest.push_back(invertBits(
        builder, b.loc, reduce(vector::CombiningKind::MAXUI, low, high)));
  }
  llvm::append_range(smallest, largest);
  return b.combineLanes(
      smallest,
      [&](Value lhs, Value rhs) {
        return reduce(vector::CombiningKind::MINUI, lhs, rhs);
      },
      /*groups=*/2);
}

std::pair<Value, Value>
kvcache::reduceToRange(OpBuilder &builder, Location loc, ValueRange rows,
                       int64_t granularity,
                       function_ref<Value(Value)> convert) {
  FloatBuilder b(builder, loc);
  Value values = rows.front();
  int64_t groups = getNumLanes(values.getType()) / granularity;
  if (rows.size() > 1 || !canCombineGroups(values, granularity) ||
      2 * groups > granularity) {
    auto reduce = [&](vector::CombiningKind kind) {
      return convert(reduceGroups(builder, loc, rows, granularity, kind));
    };
    Value smallest = reduce(vector::CombiningKind::MINUI);
    return {smallest, reduce(vector::CombiningKind::MAXUI)};
  }
  Value numbers = combineRange(b, values, granularity);
  auto slice = [&](Value from, int64_t first) -> Value {
    return vector::ExtractStridedSliceOp::create(builder, loc, from, first,
                                                 groups, /*strides=*/1);
  };
  Value floats = convert(numbers);
  return {slice(floats, 0), b.negate(slice(floats, groups))};
}
