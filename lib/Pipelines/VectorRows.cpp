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

/// The rows of a vector of several dimensions.
class Rows {
public:
  explicit Rows(VectorType type)
      : tile(type.getRank(), 1),
        row(VectorType::get(type.getShape().back(), type.getElementType())) {
    tile.back() = type.getShape().back();
  }

  /// Calls `visit` with the position of each row in the vector, and the indices
  /// in memory at which it starts.
  void forEach(RewriterBase &rewriter, Location loc, VectorType type,
               ValueRange indices,
               function_ref<void(ArrayRef<int64_t>, ValueRange)> visit) const {
    for (SmallVector<int64_t> offsets :
         StaticTileOffsetRange(type.getShape(), tile)) {
      offsets.pop_back();
      SmallVector<Value> at(indices);
      for (auto [index, offset] : llvm::zip_equal(
               MutableArrayRef(at).take_back(type.getRank()).drop_back(),
               offsets)) {
        Value distance = arith::ConstantIndexOp::create(rewriter, loc, offset);
        index = rewriter.createOrFold<arith::AddIOp>(loc, index, distance);
      }
      visit(offsets, at);
    }
  }

  VectorType getRowType() const { return row; }

private:
  SmallVector<int64_t> tile;
  VectorType row;
};

/// Whether an access of `vector` has several rows; a memref may hold vectors.
template <typename OpTy> bool hasRows(OpTy op, VectorType vector) {
  return vector.getRank() > 1 && !vector.isScalable() &&
         !isa<VectorType>(op.getMemRefType().getElementType());
}

/// The alignment of the row at `position`: what the op says of its address is
/// true of others as far as the distance between rows is known.
template <typename OpTy>
llvm::MaybeAlign getRowAlignment(OpTy op, ArrayRef<int64_t> position) {
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
    if (index != 0 && ShapedType::isDynamic(stride))
      return llvm::MaybeAlign();
    distance += index == 0 ? 0 : index * stride;
  }
  uint64_t bits = distance * element.getIntOrFloatBitWidth();
  return bits % 8 == 0 ? llvm::MaybeAlign(llvm::MinAlign(*alignment, bits / 8))
                       : llvm::MaybeAlign();
}

struct LoadRows : OpRewritePattern<vector::LoadOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(vector::LoadOp op,
                                PatternRewriter &rewriter) const override {
    VectorType type = op.getVectorType();
    if (!hasRows(op, type))
      return rewriter.notifyMatchFailure(op, "one row");
    Location loc = op.getLoc();
    Rows rows(type);
    Value all = ub::PoisonOp::create(rewriter, loc, type);
    rows.forEach(rewriter, loc, type, op.getIndices(),
                 [&](ArrayRef<int64_t> position, ValueRange indices) {
                   Value row = vector::LoadOp::create(
                       rewriter, loc, rows.getRowType(), op.getBase(), indices,
                       op.getNontemporal(), getRowAlignment(op, position));
                   all = vector::InsertOp::create(rewriter, loc, row, all,
                                                  position);
                 });
    rewriter.replaceOp(op, all);
    return success();
  }
};

struct StoreRows : OpRewritePattern<vector::StoreOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(vector::StoreOp op,
                                PatternRewriter &rewriter) const override {
    VectorType type = op.getVectorType();
    if (!hasRows(op, type))
      return rewriter.notifyMatchFailure(op, "one row");
    Location loc = op.getLoc();
    Rows(type).forEach(rewriter, loc, type, op.getIndices(),
                       [&](ArrayRef<int64_t> position, ValueRange indices) {
                         Value row = vector::ExtractOp::create(
                             rewriter, loc, op.getValueToStore(), position);
                         vector::StoreOp::create(rewriter, loc, row,
                                                 op.getBase(), indices,
                                                 op.getNontemporal(),
                                                 getRowAlignment(op, position));
                       });
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void kvcache::populateVectorRowPatterns(RewritePatternSet &patterns) {
  patterns.add<LoadRows, StoreRows>(patterns.getContext());
}
