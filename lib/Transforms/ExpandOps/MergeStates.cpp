//===- MergeStates.cpp - Expand kvcache.merge_states ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Builders/DeviceMath.h"
#include "../Builders/Heads.h"
#include "ExpandOps.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

using namespace mlir;
using namespace mlir::kvcache;

namespace {

class Merger {
public:
  Merger(MergeStatesOp op, const Frame &frame)
      : op(op), frame(frame), builder(frame.builder), loc(frame.loc), f(frame),
        splits(frame.dim(op.getSplits(), 0)),
        minusInfinity(f.constant(-std::numeric_limits<float>::infinity())) {}

  /// Merges a thread's share of a head.
  void merge(Value row, Value head, Value lane, const Split &split) {
    Value most = findMost(row, head);
    Value isEmpty = arith::CmpFOp::create(
        builder, loc, arith::CmpFPredicate::OEQ, most, minusInfinity);
    // Differences of -inf would be NaN.
    Value base = f.select(isEmpty, f.constant(0), most);
    Value d = frame.mul(lane, frame.index(split.unit));
    auto [total, sums] = addSplits(row, head, d, base, split.unit);
    Value divisor = f.select(isEmpty, f.constant(1), total);
    Value scaled = divisor;
    if (Value scale = loadStaticScale(frame, op.getOutScale(), head))
      scaled = f.select(isEmpty, f.constant(1), f.mul(total, scale));
    Value factors = f.splat(f.div(f.constant(1), scaled), split.unit);
    Value merged = f.mul(sums, factors);
    storeDense(frame, merged, op.getOut(), {row, head}, d);
    frame.runIf(frame.equal(lane, frame.index(0)), [&] {
      Value sum = f.add(base, f.log(divisor));
      Value lse = f.select(isEmpty, minusInfinity, sum);
      memref::StoreOp::create(builder, loc, lse, op.getLse(),
                              ValueRange{row, head});
    });
  }

private:
  /// Loads the logarithm of a split: -inf without keys, for which +inf may
  /// stand as well.
  Value loadLSE(Value split, Value row, Value head) {
    Value lse = memref::LoadOp::create(builder, loc, op.getLses(),
                                       ValueRange{split, row, head});
    Value isInfinite = arith::CmpFOp::create(
        builder, loc, arith::CmpFPredicate::OEQ, lse,
        f.constant(std::numeric_limits<float>::infinity()));
    return f.select(isInfinite, minusInfinity, lse);
  }

  /// The largest of the logarithms; -inf without splits.
  Value findMost(Value row, Value head) {
    auto loop = scf::ForOp::create(
        builder, loc, frame.index(0), splits, frame.index(1),
        ValueRange{minusInfinity},
        [&](OpBuilder &, Location, Value split, ValueRange carried) {
          Value most = arith::MaximumFOp::create(builder, loc, carried[0],
                                                 loadLSE(split, row, head));
          scf::YieldOp::create(builder, loc, most);
        });
    return loop.getResult(0);
  }

  /// The sum of exponentials, and that of the splits times theirs.
  std::pair<Value, Value> addSplits(Value row, Value head, Value d, Value base,
                                    int64_t count) {
    Value zeros = f.constant(f.vectorOf(count), 0);
    auto loop = scf::ForOp::create(
        builder, loc, frame.index(0), splits, frame.index(1),
        ValueRange{f.constant(0), zeros},
        [&](OpBuilder &, Location, Value split, ValueRange carried) {
          Value lse = loadLSE(split, row, head);
          Value hasKeys = arith::CmpFOp::create(
              builder, loc, arith::CmpFPredicate::UNE, lse, minusInfinity);
          auto branch = scf::IfOp::create(
              builder, loc, hasKeys,
              [&](OpBuilder &, Location) {
                Value factor =
                    math::ExpOp::create(builder, loc, f.sub(lse, base));
                Value values =
                    convertLanes(frame,
                                 loadDense(frame, op.getSplits(),
                                           {split, row, head}, d, count),
                                 builder.getF32Type());
                Value total = f.add(carried[0], factor);
                Value sums = f.fma(f.splat(factor, count), values, carried[1]);
                scf::YieldOp::create(builder, loc, ValueRange{total, sums});
              },
              [&](OpBuilder &, Location) {
                scf::YieldOp::create(builder, loc, carried);
              });
          scf::YieldOp::create(builder, loc, branch.getResults());
        });
    return {loop.getResult(0), loop.getResult(1)};
  }

  MergeStatesOp op;
  Frame frame;
  OpBuilder &builder;
  Location loc;
  DeviceMath f;
  Value splits, minusInfinity;
};

} // namespace

void kvcache::expand(MergeStatesOp op, const Frame &frame) {
  auto out = cast<MemRefType>(op.getOut().getType());
  int64_t heads = out.getDimSize(1), size = out.getDimSize(2);
  Type element = cast<MemRefType>(op.getSplits().getType()).getElementType();
  Split split = splitHead(
      size, size, frame.getFloatsAtOnce(size, {element, out.getElementType()}));
  int64_t headThreads = split.getHeadThreads(heads, frame.blockThreads);
  Value rows = frame.dim(op.getOut(), 0);
  frame.checkSize("splits", {"splits", op.getSplits()}, {"lses", op.getLses()});
  frame.checkSize("rows", {"out", op.getOut()}, {"splits", op.getSplits(), 1});
  frame.checkSize("rows", {"out", op.getOut()}, {"lses", op.getLses(), 1});
  frame.checkSize("rows", {"out", op.getOut()}, {"lse", op.getLse()});
  Value headEnd = frame.index(heads);
  frame.forBlocks(
      {rows, headEnd}, {1, headThreads},
      [&](ValueRange block) {
        frame.forThreads({headThreads, split.lanes}, [&](ValueRange thread) {
          Merger(op, frame).merge(block[0], frame.add(block[1], thread[0]),
                                  thread[1], split);
        });
      },
      /*alongX=*/0);
}
