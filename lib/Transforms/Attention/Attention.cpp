//===- Attention.cpp - What expansions of attention share -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SeenRanges.h"

#include "../TileAttention/TileAttention.h"

#include "kvcache/IR/CheckOps.h"
#include "kvcache/IR/QueryOps.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace mlir::kvcache;

/// Layers of a grid that have parts, of 65,535.
constexpr int64_t kMostLayers = 1 << 15;

static int64_t getSize(Value memref, int64_t position) {
  return cast<MemRefType>(memref.getType()).getDimSize(position);
}

AttentionBase::AttentionBase(AttentionOp op, const Frame &frame)
    : op(op), frame(frame), builder(frame.builder), loc(frame.loc), f(frame),
      heads(cast<CacheTypeInterface>(op.getKeyCache().getType()).getNumHeads()),
      group(getSize(op.getQ(), 1) / heads), keySize(op.getKeySize()),
      valueSize(getSize(op.getOut(), 2)),
      contentSize(keySize - op.getRopeSize()),
      shape{heads * group, valueSize,
            static_cast<int64_t>(op.getSplitOrDefault().getMax()),
            static_cast<int64_t>(op.getSplitOrDefault().getRows())} {}

void AttentionBase::checkRow(Value row) {
  frame.checkFirst(row, "row",
                   {{"q", op.getQ()},
                    {"q_rope", op.getQRope()},
                    {"out", op.getOut()},
                    {"mask", op.getMask()},
                    {"rows", op.getRows()},
                    {"ranges", op.getRanges()}});
  SeenRanges(frame, op).check(row);
}

QueryRows AttentionBase::getRows(Value batch) {
  Value first = frame.loadNumber(op.getRowOffsets(), batch);
  Value next =
      frame.loadNumber(op.getRowOffsets(), frame.add(batch, frame.index(1)));
  return {batch, first, frame.sub(next, first), Value(), Value()};
}

QueryRows AttentionBase::getRowsOfSequence(Value batch) {
  QueryRows rows = getRows(batch);
  if (op.getLengths()) {
    frame.checkFirst(batch, "sequence", {{"lengths", op.getLengths()}});
    rows.tokens = frame.loadNumber(op.getLengths(), batch);
    rows.own = frame.sub(rows.tokens, rows.count);
  } else {
    rows.own = CacheLengthOp::create(builder, loc, op.getKeyCache(), batch);
    rows.tokens = frame.add(rows.own, rows.count);
  }
  return rows;
}

QueryRows AttentionBase::getSparseRow(Value row) {
  return {Value(), row, frame.index(1),
          columns ? columns : frame.dim(op.getRows(), 1), frame.index(0)};
}

TokenRange AttentionBase::getSeen(const QueryRows &rows, Value i) {
  TokenRange seen = getSeenByPosition(rows, i);
  if (!op.getRanges())
    return seen;
  TokenRange hull = SeenRanges(frame, op).getHull(frame.add(rows.first, i));
  return {frame.max(seen.from, hull.from), frame.min(seen.to, hull.to)};
}

TokenRange AttentionBase::getSeenByPosition(const QueryRows &rows, Value i) {
  Value own = frame.add(rows.own, i);
  Value end = frame.add(own, frame.index(1));
  TokenRange seen{frame.index(0), op.getCausal() ? end : rows.tokens};
  if (std::optional<uint64_t> chunk = op.getChunk()) {
    // As if it were unsigned: a row before all tokens sees none.
    Value begin = frame.sub(own, frame.rem(own, frame.index(*chunk)));
    seen.from = frame.max(begin, seen.from);
    if (!op.getCausal()) {
      seen.to = frame.min(frame.add(begin, frame.index(*chunk)), seen.to);
      if (op.getLengths())
        seen.to = arith::SelectOp::create(builder, loc,
                                          frame.less(own, frame.index(0)),
                                          frame.index(0), seen.to);
    }
  }
  if (std::optional<uint64_t> window = op.getWindow()) {
    // Numbers of tokens have 31 bits: a larger window is as large.
    int64_t size = std::min(*window, uint64_t(1) << 32);
    seen.from = frame.max(frame.sub(end, frame.index(size)), seen.from);
  }
  return seen;
}

Value AttentionBase::isUnmasked(const QueryRows &rows, Value i, Value token) {
  // The word of a cached token is past the end, like that of a token without
  // a bit, unless all tokens have bits.
  Value bit = op.getWholeMask() ? token : frame.sub(token, rows.own);
  Value word = frame.div(bit, 32);
  return frame.selectIf(
      frame.below(word, frame.dim(op.getMask(), 1)),
      [&]() -> Value {
        Value bits =
            memref::LoadOp::create(builder, loc, op.getMask(),
                                   ValueRange{frame.add(rows.first, i), word});
        Value shift = frame.toI32(frame.rem(bit, 32));
        bits = arith::ShRUIOp::create(builder, loc, bits, shift);
        return arith::TruncIOp::create(builder, loc, builder.getI1Type(), bits);
      },
      [&]() -> Value {
        if (op.getWholeMask())
          return arith::ConstantOp::create(builder, loc,
                                           builder.getBoolAttr(false));
        return frame.less(bit, frame.index(0));
      });
}

Value AttentionBase::loadId(const QueryRows &rows, Value column) {
  return frame.loadSigned(op.getRows(), {rows.first, column});
}

Place AttentionBase::getPlace(const QueryRows &rows, Value token, Value id) {
  if (!id)
    return {rows.batch, token, Value()};
  return getPlaceOfRow(frame, op.getKeyCache(), id);
}

// A scale of tokens is not one of the elements of their rope.
bool AttentionBase::scalesScores(Value cache) {
  return !op.getRopeCache() &&
         hasTokenScales(cast<CacheTypeInterface>(cache.getType()));
}

Value AttentionBase::loadRow(Value cache, const Place &place, Value d,
                             int64_t count, Type lane, bool nontemporal) {
  return scalesScores(cache)
             ? loadUnscaled(frame, cache, place, head, d, count, lane,
                            nontemporal)
             : loadElements(frame, cache, place, head, d, count, lane,
                            /*factor=*/Value(), nontemporal);
}

Value AttentionBase::getFactor() {
  if (op.getSoftCap())
    return f.div(op.getScale(), f.constant(op.getSoftCap()->convertToDouble()));
  return op.getScoreRegion()
             ? op.getScale()
             : f.mul(op.getScale(), f.constant(llvm::numbers::log2e));
}

Value AttentionBase::getFactor(Value factor, Value queryHead) {
  if (Value scale = loadStaticScale(frame, op.getQueryScale(), queryHead))
    factor = f.mul(factor, scale);
  Value scale = loadStaticScale(frame, op.getKeyScale(), head);
  return scale ? f.mul(factor, scale) : factor;
}

/// The largest cap of scores within 2^-16, of hyperbolic tangents within 2^-23.
static constexpr double kMostRoundedCap = 128;

Value AttentionBase::applySoftCap(Value products) {
  if (!op.getSoftCap())
    return products;
  double cap = op.getSoftCap()->convertToDouble();
  Value tanh = f.tanh(products, /*isSmallExact=*/cap > kMostRoundedCap);
  if (!op.getScoreRegion())
    cap *= llvm::numbers::log2e;
  return f.mul(tanh, f.constant(products.getType(), cap));
}

Value AttentionBase::isAdmitted(Value isSeen, Value scores) {
  if (op.getModifiers().empty())
    return isSeen;
  Value none = f.constant(scores, -std::numeric_limits<float>::infinity());
  Value isScore = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNE,
                                        scores, none);
  return arith::AndIOp::create(builder, loc, isSeen, isScore);
}

RowSum AttentionBase::addSink(const RowSum &sum, Value queryHead) {
  if (!op.getSinks())
    return sum;
  Value sink = memref::LoadOp::create(builder, loc, op.getSinks(), queryHead);
  if (!sink.getType().isF32())
    sink = arith::ExtFOp::create(builder, loc, builder.getF32Type(), sink);
  sink = f.mul(sink, f.constant(llvm::numbers::log2e));
  // Without tokens, the sink is all of the sum, also if it is -inf.
  Value isNone = f.isZero(sum.total);
  Value max = f.select(isNone, sink, f.max(sum.max, sink));
  Value shrink = f.select(isNone, f.constant(0), f.exp2(f.sub(sum.max, max)));
  Value weight = f.select(isNone, f.constant(1), f.exp2(f.sub(sink, max)));
  return {max, f.fma(sum.total, shrink, weight), f.mul(sum.factor, shrink)};
}

Value AttentionBase::getQuotient(const RowSum &sum, Value queryHead) {
  Value total = sum.total;
  if (Value scale = loadStaticScale(frame, op.getOutScale(), queryHead))
    total = f.mul(total, scale);
  Value factor = sum.factor;
  Value valueScale = op.getValueCache() ? op.getValueScale() : op.getKeyScale();
  if (Value scale = loadStaticScale(frame, valueScale, head))
    factor = f.mul(factor, scale);
  return f.select(f.isZero(sum.total), f.constant(0), f.div(factor, total));
}

Value AttentionBase::getLogarithm(const RowSum &sum) {
  Value log =
      f.mul(f.add(sum.max, f.log2(sum.total)), f.constant(llvm::numbers::ln2));
  Value none = f.constant(-std::numeric_limits<float>::infinity());
  return f.select(f.isZero(sum.total), none, log);
}

Value AttentionBase::getLargestScore(const RowSum &scores, float bias) {
  Value max = bias == 0 ? scores.max : f.add(scores.max, f.constant(bias));
  Value none = f.constant(-std::numeric_limits<float>::infinity());
  return f.select(f.isZero(scores.total), none,
                  f.mul(max, f.constant(llvm::numbers::ln2)));
}

void AttentionBase::storeStatistics(const RowSum &scores, const RowSum &all,
                                    float bias, Value row, Value queryHead) {
  auto store = [&](Value memref, function_ref<Value()> compute) {
    if (!memref)
      return;
    frame.runIf(frame.below(row, frame.dim(memref, 0)), [&] {
      memref::StoreOp::create(builder, loc, compute(), memref,
                              ValueRange{row, queryHead});
    });
  };
  store(op.getLse(), [&] { return getLogarithm(getLseSum(scores, all)); });
  store(op.getMaxLogits(), [&] { return getLargestScore(scores, bias); });
}

void AttentionBase::findWorkspace() {
  Value batch = frame.sub(frame.dim(op.getRowOffsets(), 0), frame.index(1));
  slots = frame.mul(batch, shape.rows);
  workspace.emplace(frame, op.getWorkspace(), slots, shape);
}

void AttentionBase::makeWorkspace() {
  findWorkspace();
  if (frame.hasChecks)
    CheckOp::create(
        builder, loc,
        frame.add(frame.mul(slots, shape.getSlotBytes()),
                  frame.index(WorkspaceShape::kScheduleBytes)),
        frame.add(frame.dim(op.getWorkspace(), 0), frame.index(1)),
        builder.getStringAttr("number of bytes that attention needs of "
                              "'workspace'"));
}

int64_t AttentionBase::countPartsOfLayer() {
  return llvm::divideCeil(op.getSplitOrDefault().getMax(), kMostLayers);
}

int64_t AttentionBase::countLayersOfParts() {
  return llvm::divideCeil(op.getSplitOrDefault().getMax(), countPartsOfLayer());
}

Value AttentionBase::hasRows(Value isWhole, Value count) {
  auto select = [&](int64_t whole, int64_t split) -> Value {
    return arith::SelectOp::create(builder, loc, isWhole, frame.index(whole),
                                   frame.index(split));
  };
  int64_t end = op.getSplitOrDefault().getRows() + 1;
  return frame.below(frame.sub(count, select(end, 0)),
                     select(int64_t(1) << 32, end));
}

Value AttentionBase::getPartSize(Value isWhole, Value count, int64_t multiple) {
  Value size = frame.div(
      frame.add(count, frame.index(op.getSplitOrDefault().getMax() - 1)),
      op.getSplitOrDefault().getMax());
  size = frame.max(size, frame.index(op.getSplitOrDefault().getKeys()));
  size = arith::SelectOp::create(builder, loc, isWhole,
                                 frame.max(count, frame.index(1)), size);
  Value last = frame.index(multiple - 1);
  return frame.mul(frame.div(frame.add(size, last), multiple), multiple);
}

Value AttentionBase::getPartCount(Value count, Value size) {
  Value one = frame.index(1);
  Value last = frame.sub(frame.max(count, one), one);
  return frame.add(
      frame.fromI32(frame.div(frame.toI32(last), frame.toI32(size))), one);
}

AttentionBase::Pair AttentionBase::selectPair(Value condition,
                                              function_ref<Pair()> then,
                                              function_ref<Pair()> otherwise) {
  auto yield = [&](const Pair &pair) {
    scf::YieldOp::create(builder, loc, ValueRange{pair.first, pair.second});
  };
  auto branch = scf::IfOp::create(
      builder, loc, condition, [&](OpBuilder &, Location) { yield(then()); },
      [&](OpBuilder &, Location) { yield(otherwise()); });
  return {branch.getResult(0), branch.getResult(1)};
}

Value AttentionBase::reduce(Value value, bool isMax, int64_t size,
                            int64_t stride) {
  for (int64_t offset = stride; offset < size * stride; offset *= 2) {
    auto shuffle = gpu::ShuffleOp::create(
        builder, loc, value, static_cast<int32_t>(offset),
        static_cast<int32_t>(kWarp), gpu::ShuffleMode::XOR);
    Value other = shuffle.getShuffleResult();
    value = isMax ? f.max(value, other) : f.add(value, other);
  }
  return value;
}

static remark::RemarkOpts getRemarkOptions() {
  return remark::RemarkOpts::name("attention").category("kvcache-expand-ops");
}

/// Emits a remark that has the config of a kernel.
static void remarkConfig(AttentionOp op, const AttentionConfig &config) {
  std::string text;
  llvm::raw_string_ostream(text)
      << AttentionConfigAttr::get(op.getContext(), config);
  remark::passed(op.getLoc(), getRemarkOptions()) << text;
}

void kvcache::expand(AttentionOp op, const Frame &frame) {
  if (!frame.isGPU)
    return expandForCPU(op, frame);
  // The pass has planned it before.
  std::optional<TilePlan> tiles = *planTiles(op, frame.target);
  if (tiles) {
    remarkConfig(op, getConfig(*tiles));
    return tileAttention(op, frame, *tiles);
  }
  if (std::string obstacle = op.getTileObstacle(); !obstacle.empty())
    remark::missed(op.getLoc(), getRemarkOptions())
        << "no tensor cores" << remark::reason("{0}", obstacle);
  WarpPlan warps = chooseWarps(op);
  remarkConfig(op, getConfig(warps));
  expandForGPU(op, frame, warps);
}
