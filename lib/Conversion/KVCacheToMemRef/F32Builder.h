//===- F32Builder.h - f32 arithmetic on scalars or vectors ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_KVCACHETOMEMREF_F32BUILDER_H
#define KVCACHE_LIB_CONVERSION_KVCACHETOMEMREF_F32BUILDER_H

#include "ElementAccess.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::kvcache {

/// Builds f32 arithmetic on scalars or vectors.
class F32Builder {
public:
  F32Builder(OpBuilder &builder, Location loc)
      : builder(builder), loc(loc), f32(builder.getF32Type()) {}

  /// A constant like `like`.
  Value constant(Value like, const llvm::APFloat &number) const {
    TypedAttr attr = FloatAttr::get(f32, number);
    if (auto vector = dyn_cast<VectorType>(like.getType()))
      attr = DenseElementsAttr::get(vector.clone(f32), Attribute(attr));
    return arith::ConstantOp::create(builder, loc, attr);
  }
  Value constant(Value like, float number) const {
    return constant(like, llvm::APFloat(number));
  }

  template <typename OpTy> Value op(Value lhs, Value rhs) const {
    return OpTy::create(builder, loc, lhs, rhs);
  }
  template <typename OpTy> Value op(Value lhs, float rhs) const {
    return op<OpTy>(lhs, constant(lhs, rhs));
  }

  /// `yes` where the comparison of `lhs` with a constant holds, else `no`.
  Value select(arith::CmpFPredicate predicate, Value lhs, float rhs, Value yes,
               Value no) const {
    Value condition =
        arith::CmpFOp::create(builder, loc, predicate, lhs, constant(lhs, rhs));
    return arith::SelectOp::create(builder, loc, condition, yes, no);
  }

  /// A scalar in all lanes of a value like `like`.
  Value broadcast(Value scalar, Value like) const {
    auto vector = dyn_cast<VectorType>(like.getType());
    if (!vector)
      return scalar;
    return vector::BroadcastOp::create(builder, loc,
                                       vector.clone(scalar.getType()), scalar);
  }

  /// One of `scales` for every `granularity` lanes of a value like `like`.
  Value spread(Value scales, Value like, int64_t granularity) const {
    if (!isa<VectorType>(scales.getType()))
      return broadcast(scales, like);
    if (!isa<VectorType>(like.getType()))
      return vector::ExtractOp::create(builder, loc, scales, 0);
    SmallVector<int64_t> groups;
    for (int64_t lane = 0; lane < getNumLanes(like.getType()); ++lane)
      groups.push_back(lane / granularity);
    return vector::ShuffleOp::create(builder, loc, scales, scales, groups);
  }

  OpBuilder &builder;
  Location loc;
  FloatType f32;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CONVERSION_KVCACHETOMEMREF_F32BUILDER_H
