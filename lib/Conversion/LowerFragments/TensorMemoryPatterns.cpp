//===- TensorMemoryPatterns.cpp - Lower accesses to tensor memory ---------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Registers.h"

#include "kvcache/IR/TensorMemoryOps.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Whether each thread has a row.
static bool hasWholeRows(FragmentType type) {
  return type.getLayout() == FragmentLayout::TmemRow;
}

/// Returns the half of the rows of a quarter of tensor memory that the warp of
/// a thread accesses; null if the quarters have no halves.
static Value getHalf(const IndexBuilder &b, FragmentType type) {
  if (type.getRows() < TmemTileType::kMemoryLanes || hasWholeRows(type))
    return {};
  constexpr int64_t quarters = 4;
  return b.div(TeamThread::get(b, type).warp, quarters);
}

namespace {

struct LowerTmemLoad : OpConversionPattern<TmemLoadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(TmemLoadOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = dyn_cast<FragmentType>(op.getResult().getType());
    if (!type)
      return rewriter.notifyMatchFailure(op, "loads a vector");
    IndexBuilder b(rewriter, op.getLoc());
    auto vector = VectorType::get(static_cast<int64_t>(type.getParts().size()),
                                  type.getElementType());
    Value loaded = TmemLoadOp::create(rewriter, op.getLoc(), vector,
                                      op.getTile(), op.getColumn(),
                                      getHalf(b, type), hasWholeRows(type));
    rewriter.replaceOpWithMultiple(op, {split(rewriter, op.getLoc(), loaded)});
    return success();
  }
};

struct LowerTmemStore : OpConversionPattern<TmemStoreOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(TmemStoreOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = dyn_cast<FragmentType>(op.getValue().getType());
    if (!type)
      return rewriter.notifyMatchFailure(op, "stores a vector");
    IndexBuilder b(rewriter, op.getLoc());
    rewriter.replaceOpWithNewOp<TmemStoreOp>(
        op, join(rewriter, op.getLoc(), type, adaptor.getValue()), op.getTile(),
        op.getColumn(), getHalf(b, type), hasWholeRows(type));
    return success();
  }
};

} // namespace

void kvcache::populateTensorMemoryPatterns(const TypeConverter &converter,
                                           RewritePatternSet &patterns) {
  patterns.add<LowerTmemLoad, LowerTmemStore>(converter, patterns.getContext());
}
