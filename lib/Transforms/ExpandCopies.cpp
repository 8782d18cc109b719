//===- ExpandCopies.cpp - Copies into tiles by target ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/IR/KVCache.h"
#include "kvcache/Target/Chip.h"
#include "kvcache/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_EXPANDCOPIES
#include "kvcache/Transforms/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Copies a tile in units of 16 bytes, each by one thread.
class PlainCopy {
public:
  PlainCopy(Operation *op, TileType tile)
      : builder(op), loc(op->getLoc()), inGPUCode(isInGPUCode(op)),
        layout(tile.getLayout()),
        unit(VectorType::get(16 / layout.elementBytes, tile.getElementType())) {
  }

  /// Copies all units: `read` gives that of a row from a column on.
  void copy(Value tile, function_ref<Value(Value row, Value column)> read) {
    OpBuilder::InsertionGuard guard(builder);
    int64_t lanes = unit.getNumElements();
    int64_t unitsPerRow = layout.columns / lanes;
    auto loop =
        scf::ForOp::create(builder, loc, getThread(),
                           index(layout.rows * unitsPerRow), getNumThreads());
    builder.setInsertionPointToStart(loop.getBody());
    Value i = loop.getInductionVar();
    Value row = op<arith::DivUIOp>(i, index(unitsPerRow));
    Value column = op<arith::MulIOp>(op<arith::RemUIOp>(i, index(unitsPerRow)),
                                     index(lanes));
    TileStoreOp::create(builder, loc, read(row, column), tile, row, column);
  }

  /// The unit that `read` gives where the condition holds, else zeros.
  Value readIf(Value condition, function_ref<Value()> read) {
    auto branch = scf::IfOp::create(builder, loc, unit, condition,
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(builder, loc, read());
    builder.setInsertionPointToStart(branch.elseBlock());
    Value zeros =
        arith::ConstantOp::create(builder, loc, builder.getZeroAttr(unit));
    scf::YieldOp::create(builder, loc, zeros);
    return branch.getResult(0);
  }

  /// The unit at (b, h, t, d) as it is stored; the page may be null.
  Value load(TypedValue<CacheTypeInterface> cache, Value batch, Value head,
             Value token, Value element, Value page) {
    if (cache.getType().isQuantized())
      return LoadQuantizedOp::create(builder, loc, unit, cache, batch, head,
                                     token, element, page);
    return LoadOp::create(builder, loc, unit, cache, batch, head, token,
                          element, page, /*scale_page=*/Value(),
                          /*tensor_scale=*/Value());
  }

  template <typename OpTy> Value op(Value lhs, Value rhs) {
    return OpTy::create(builder, loc, lhs, rhs);
  }
  Value below(Value lhs, Value rhs) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, lhs,
                                 rhs);
  }
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }

  OpBuilder builder;
  Location loc;

private:
  /// The number of the thread in its block, x fastest.
  Value getThread() {
    if (!inGPUCode)
      return index(0);
    Value number = index(0);
    for (gpu::Dimension dim :
         {gpu::Dimension::z, gpu::Dimension::y, gpu::Dimension::x})
      number = op<arith::AddIOp>(
          op<arith::MulIOp>(number, gpu::BlockDimOp::create(builder, loc, dim)),
          gpu::ThreadIdOp::create(builder, loc, dim));
    return number;
  }
  Value getNumThreads() {
    Value number = index(1);
    if (!inGPUCode)
      return number;
    for (gpu::Dimension dim :
         {gpu::Dimension::x, gpu::Dimension::y, gpu::Dimension::z})
      number =
          op<arith::MulIOp>(number, gpu::BlockDimOp::create(builder, loc, dim));
    return number;
  }

  bool inGPUCode;
  tma::TileLayout layout;
  VectorType unit;
};

struct ExpandCopies : kvcache::impl::ExpandCopiesBase<ExpandCopies> {
  void runOnOperation() override {
    // Waits first: then most tokens have no use.
    SmallVector<Operation *> copies;
    getOperation()->walk([&](Operation *op) {
      if (auto wait = dyn_cast<WaitOp>(op))
        expandWait(wait);
      else if (isa<AsyncLoadTileOp, AsyncGatherTileOp>(op))
        copies.push_back(op);
    });
    for (Operation *op : copies) {
      if (auto load = dyn_cast<AsyncLoadTileOp>(op))
        expandLoad(load);
      else
        expandGather(cast<AsyncGatherTileOp>(op));
    }
  }

private:
  /// The copy is complete for the thread itself; others see it at the barrier.
  template <typename OpTy> static void finish(OpTy op, PlainCopy &copy) {
    // What a token holds is of no consequence.
    if (!op.use_empty())
      op.replaceAllUsesWith(
          ub::PoisonOp::create(copy.builder, op.getLoc(), op.getType())
              .getResult());
    op.erase();
  }

  static void expandLoad(AsyncLoadTileOp op) {
    PlainCopy copy(op, op.getTile().getType());
    copy.copy(op.getTile(), [&](Value row, Value column) {
      auto read = [&] {
        return copy.load(op.getCache(), op.getBatch(), op.getHead(),
                         copy.op<arith::AddIOp>(op.getToken(), row),
                         copy.op<arith::AddIOp>(op.getElement(), column),
                         /*page=*/Value());
      };
      if (!op.getValid())
        return read();
      return copy.readIf(copy.below(row, op.getValid()), read);
    });
    finish(op, copy);
  }

  static void expandGather(AsyncGatherTileOp op) {
    PlainCopy copy(op, op.getTile().getType());
    TypedValue<CacheTypeInterface> cache = op.getCache();
    copy.copy(op.getTile(), [&](Value row, Value column) {
      Value id =
          memref::LoadOp::create(copy.builder, copy.loc, op.getRows(), row);
      id = arith::IndexCastOp::create(copy.builder, copy.loc,
                                      copy.builder.getIndexType(), id);
      // In a continuous cache the rows of all blocks are one page.
      Value page = copy.index(0), token = id, limit;
      if (cache.getType().isPaged()) {
        Value pageSize = copy.index(cache.getType().getPageSize());
        page = copy.op<arith::DivUIOp>(id, pageSize);
        token = copy.op<arith::RemUIOp>(id, pageSize);
        limit = copy.op<arith::MulIOp>(
            ExtentOp::create(copy.builder, copy.loc,
                             copy.builder.getIndexType(), Extent::Pages, cache),
            pageSize);
      } else {
        limit = NumKVRowsOp::create(copy.builder, copy.loc,
                                    copy.builder.getIndexType(), cache);
      }
      return copy.readIf(copy.below(id, limit), [&] {
        return copy.load(cache, /*batch=*/copy.index(0), op.getHead(), token,
                         copy.op<arith::AddIOp>(op.getElement(), column), page);
      });
    });
    finish(op, copy);
  }

  static void expandWait(WaitOp op) {
    OpBuilder builder(op);
    if (isInGPUCode(op))
      gpu::BarrierOp::create(builder, op.getLoc());
    op.erase();
  }
};

} // namespace
