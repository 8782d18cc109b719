//===- VectorRows.cpp - Loads and stores row by row -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VectorRows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Whether an access has several rows; a memref may hold vectors.
template <typename OpTy> bool hasRows(OpTy op) {
  VectorType type = op.getVectorType();
  return type.getRank() > 1 && !type.isScalable() &&
         !isa<VectorType>(op.getMemRefType().getElementType());
}

VectorType getRowType(VectorType type) {
  return VectorType::get(type.getShape().back(), type.getElementType());
}

/// Where in a vector its rows are.
StaticTileOffsetRange getPositions(VectorType type) {
  ArrayRef<int64_t> shape = type.getShape().drop_back();
  return StaticTileOffsetRange(shape, SmallVector<int64_t>(shape.size(), 1));
}

/// Where in memory a row starts, and what is known of its alignment.
struct Row {
  SmallVector<Value> indices;
  llvm::MaybeAlign alignment;
};

/// The alignment of the row at `position`: what the op says of its address is
/// true of others as far as the distance between rows is known.
template <typename OpTy>
llvm::MaybeAlign getAlignment(OpTy op, ArrayRef<int64_t> position) {
  std::optional<uint64_t> alignment = op.getAlignment();
  Type element = op.getMemRefType().getElementType();
  SmallVector<int64_t> strides;
  int64_t start;
  if (!alignment || !element.isIntOrFloat() ||
      failed(op.getMemRefType().getStridesAndOffset(strides, start)))
    return llvm::MaybeAlign();
  int64_t distance = 0;
  for (auto [index, stride] : llvm::zip_equal(
           position,
           ArrayRef(strides).drop_back().take_back(position.size()))) {
    if (index == 0)
      continue;
    if (ShapedType::isDynamic(stride))
      return llvm::MaybeAlign();
    distance += index * stride;
  }
  uint64_t bits = distance * element.getIntOrFloatBitWidth();
  return bits % 8 == 0 ? llvm::MaybeAlign(llvm::MinAlign(*alignment, bits / 8))
                       : llvm::MaybeAlign();
}

template <typename OpTy>
Row getRow(OpTy op, ArrayRef<int64_t> position, PatternRewriter &rewriter) {
  SmallVector<Value> indices(op.getIndices());
  for (auto [index, offset] : llvm::zip_equal(
           MutableArrayRef(indices).drop_back().take_back(position.size()),
           position)) {
    Value distance =
        arith::ConstantIndexOp::create(rewriter, op.getLoc(), offset);
    index = rewriter.createOrFold<arith::AddIOp>(op.getLoc(), index, distance);
  }
  return {indices, getAlignment(op, position)};
}

struct LoadRows : OpRewritePattern<vector::LoadOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(vector::LoadOp op,
                                PatternRewriter &rewriter) const override {
    if (!hasRows(op))
      return rewriter.notifyMatchFailure(op, "one row");
    Location loc = op.getLoc();
    VectorType type = op.getVectorType();
    Value all = ub::PoisonOp::create(rewriter, loc, type);
    for (SmallVector<int64_t> position : getPositions(type)) {
      Row row = getRow(op, position, rewriter);
      Value loaded = vector::LoadOp::create(rewriter, loc, getRowType(type),
                                            op.getBase(), row.indices,
                                            op.getNontemporal(), row.alignment);
      all = vector::InsertOp::create(rewriter, loc, loaded, all, position);
    }
    rewriter.replaceOp(op, all);
    return success();
  }
};

struct StoreRows : OpRewritePattern<vector::StoreOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(vector::StoreOp op,
                                PatternRewriter &rewriter) const override {
    if (!hasRows(op))
      return rewriter.notifyMatchFailure(op, "one row");
    for (SmallVector<int64_t> position : getPositions(op.getVectorType())) {
      Row row = getRow(op, position, rewriter);
      Value stored = vector::ExtractOp::create(rewriter, op.getLoc(),
                                               op.getValueToStore(), position);
      vector::StoreOp::create(rewriter, op.getLoc(), stored, op.getBase(),
                              row.indices, op.getNontemporal(), row.alignment);
    }
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void kvcache::populateVectorRowPatterns(RewritePatternSet &patterns) {
  patterns.add<LoadRows, StoreRows>(patterns.getContext());
}
