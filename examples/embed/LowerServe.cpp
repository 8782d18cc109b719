//===- LowerServe.cpp - From the serve to the kvcache dialect -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Serve.h"

#include "kvcache/IR/AccessOps.h"
#include "kvcache/IR/AttentionOps.h"
#include "kvcache/IR/ViewOps.h"
#include "kvcache/IR/WholeCacheOps.h"

#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace serve {
#define GEN_PASS_DEF_LOWERSERVE
#include "ServePasses.h.inc"

} // namespace serve

using namespace mlir;

namespace {

constexpr int64_t kBytesPerThread = 16;

/// A block of threads for each token, each of which copies 16 bytes: the outer
/// loop is the grid, the inner one the block.
struct CopyKeysPattern : OpRewritePattern<serve::CopyKeysOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(serve::CopyKeysOp op,
                                PatternRewriter &rewriter) const override {
    auto type = cast<MemRefType>(op.getOut().getType());
    int64_t width = kBytesPerThread * 8 / type.getElementTypeBitWidth();
    int64_t heads = type.getDimSize(2), headSize = type.getDimSize(3);

    Location loc = op.getLoc();
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(rewriter, loc, value);
    };
    Value zero = constant(0), one = constant(1), step = constant(width);
    Value batch = memref::DimOp::create(rewriter, loc, op.getOut(), 0);
    Value tokens = memref::DimOp::create(rewriter, loc, op.getOut(), 1);
    Value keys = kvcache::PagedViewOp::create(
        rewriter, loc, kvcache::Role::Key, op.getCollection(), op.getLayer());
    SmallVector<Value> grid = {batch, tokens};
    SmallVector<Value> block = {constant(heads), constant(headSize / width)};
    SmallVector<Value> zeros(2, zero), ones(2, one);

    auto copy = [&](OpBuilder &b, Location loc, ValueRange token,
                    ValueRange lane) {
      Value d = arith::MulIOp::create(b, loc, lane[1], step);
      auto vector = VectorType::get(width, type.getElementType());
      Value key = kvcache::LoadOp::create(
          b, loc, vector, keys, token[0], lane[0], token[1], d,
          /*page=*/Value(), /*scale_page=*/Value(), /*tensor_scale=*/Value());
      vector::StoreOp::create(b, loc, key, op.getOut(),
                              ValueRange{token[0], token[1], lane[0], d});
    };
    scf::ParallelOp::create(
        rewriter, loc, zeros, grid, ones,
        [&](OpBuilder &b, Location loc, ValueRange token) {
          scf::ParallelOp::create(
              b, loc, zeros, block, ones,
              [&](OpBuilder &b, Location loc, ValueRange lane) {
                copy(b, loc, token, lane);
              });
        });
    rewriter.eraseOp(op);
    return success();
  }
};

/// Two ops on a whole cache: the pipelines make the loops for each chip.
struct DecodePattern : OpRewritePattern<serve::DecodeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(serve::DecodeOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto view = [&](kvcache::Role role) -> Value {
      return kvcache::PagedViewOp::create(rewriter, loc, role,
                                          op.getCollection(), op.getLayer());
    };
    Value keys = view(kvcache::Role::Key), values = view(kvcache::Role::Value);
    auto append = kvcache::AppendOp::create(
        rewriter, loc, op.getKeys(), op.getValues(), keys, values,
        op.getRowOffsets(), /*queries=*/op.getQ());
    append.getRopeMutable().assign(op.getRope());
    auto attention = kvcache::AttentionOp::create(
        rewriter, loc, op.getQ(), keys, values, op.getRowOffsets(),
        op.getScale(), op.getOut());
    attention.setCausal(true);
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerServe : serve::impl::LowerServeBase<LowerServe> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<CopyKeysPattern, DecodePattern>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace
