//===- Append.cpp - Expand kvcache.append ---------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExpandOps.h"
#include "Heads.h"
#include "RowMath.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The expansion of one op: a block of threads for each row.
class Appender {
public:
  Appender(AppendOp op, const Frame &frame)
      : op(op), frame(frame), builder(frame.builder), loc(frame.loc),
        type(cast<CacheTypeInterface>(op.getKeyCache().getType())) {
    planSplits();
  }

  void expand() {
    Value rows = frame.dim(op.getKeys(), 0);
    frame.forBlocks({rows}, {1}, [&](ValueRange block) {
      SmallVector<int64_t> threads;
      if (frame.isGPU)
        threads = {headThreads, lanes};
      frame.forThreads(threads,
                       [&](ValueRange thread) { appendRow(block[0], thread); });
    });
  }

private:
  //===--------------------------------------------------------------------===//
  // Plan
  //===--------------------------------------------------------------------===//

  static int64_t getSize(Value memref, int64_t position) {
    return memref ? cast<MemRefType>(memref.getType()).getDimSize(position) : 0;
  }

  /// The split of a head: no piece crosses a border of norm, rope or inputs.
  Split split(int64_t size, int64_t border, Value weights,
              int64_t granularity) {
    int64_t boundary = std::gcd(border, getSize(weights, 0));
    if (op.getRope()) {
      int64_t columns = getSize(op.getRope(), 1);
      boundary =
          std::gcd(boundary, op.getInterleaved() ? columns : columns / 2);
      boundary = std::gcd(boundary, static_cast<int64_t>(op.getRopeBegin()));
    }
    return splitHead(size, boundary, frame.isGPU ? 8 : 64, granularity,
                     frame.isGPU);
  }

  void planSplits() {
    int64_t size = type.getHeadSize();
    int64_t border = op.getLatentRope() ? getSize(op.getLatentRope(), 2) : 0;
    keySplit = split(size, border, op.getNorm(),
                     type.isQuantized() ? type.getGranularity() : 0);
    lanes = keySplit.lanes;
    int64_t heads = type.getNumHeads();
    if (op.getValues()) {
      auto values = cast<CacheTypeInterface>(op.getValueCache().getType());
      valueSplit = splitHead(
          values.getHeadSize(), values.getHeadSize(), frame.isGPU ? 8 : 64,
          values.isQuantized() ? values.getGranularity() : 0, frame.isGPU);
      lanes = std::max(lanes, valueSplit.lanes);
      heads = std::gcd(heads, values.getNumHeads());
    }
    if (op.getQueries()) {
      querySplit = split(getSize(op.getQueries(), 2), 0, op.getQueryNorm(), 0);
      lanes = std::max(lanes, querySplit.lanes);
      heads = std::gcd(heads, getSize(op.getQueries(), 1));
    }
    // Threads that share a head agree on the number of heads that they take.
    headThreads = getDivisorUpTo(heads, std::max<int64_t>(kThreads / lanes, 1));
  }

  //===--------------------------------------------------------------------===//
  // Rows
  //===--------------------------------------------------------------------===//

  void appendRow(Value row, ValueRange thread) {
    Value rows = frame.countRows(op.getRowOffsets());
    frame.runIf(frame.below(row, rows), [&] {
      Place place;
      Value position;
      if (op.getSlots()) {
        position = op.getPositions() ? frame.loadNumber(op.getPositions(), row)
                                     : Value();
        appendHeads(op.getQueries(), row, position, thread);
        Value slot = frame.loadSigned(op.getSlots(), row);
        frame.runIf(frame.less(frame.index(-1), slot), [&] {
          appendToCaches(row, getPlaceOfSlot(slot), position, thread);
        });
        return;
      }
      Value b = frame.findSequence(op.getRowOffsets(), row);
      Value i = frame.sub(row, frame.loadNumber(op.getRowOffsets(), b));
      Value length = CacheLengthOp::create(builder, loc, op.getKeyCache(), b);
      Value token = frame.add(length, i);
      position =
          op.getPositions() ? frame.loadNumber(op.getPositions(), row) : token;
      appendHeads(op.getQueries(), row, position, thread);
      appendToCaches(row, {b, token, Value()}, position, thread);
    });
  }

  Place getPlaceOfSlot(Value slot) {
    Value pageSize =
        type.hasStaticPageSize()
            ? frame.index(type.getPageSize())
            : ExtentOp::create(builder, loc, builder.getIndexType(),
                               Extent::PageSize, op.getKeyCache());
    return {frame.index(0), frame.rem(slot, pageSize),
            frame.div(slot, pageSize)};
  }

  Rope getRope(Value position) {
    if (!op.getRope())
      return {};
    return {op.getRope(), position, static_cast<int64_t>(op.getRopeBegin()),
            getSize(op.getRope(), 1), op.getInterleaved()};
  }

  Norm getNorm(Value weights) {
    return {weights, getSize(weights, 0), op.getEpsilon().convertToFloat()};
  }

  /// Runs `body` with the heads and lanes of a thread, or with all of them.
  void forHeads(int64_t heads, ValueRange thread,
                function_ref<void(Value, Value)> body) {
    if (!frame.isGPU) {
      frame.forEach(frame.index(0), heads, 1,
                    [&](Value head) { body(head, Value()); });
      return;
    }
    frame.forEach(thread[0], heads, headThreads,
                  [&](Value head) { body(head, thread[1]); });
  }

  /// Runs `body` with the first element of each unit of a thread.
  void forUnits(const Split &split, Value lane,
                function_ref<void(Value)> body) {
    Value unit = frame.index(split.unit);
    if (!lane) {
      frame.forEach(frame.index(0), split.lanes, 1,
                    [&](Value id) { body(frame.mul(id, unit)); });
      return;
    }
    if (split.lanes == lanes) {
      body(frame.mul(lane, unit));
      return;
    }
    frame.runIf(frame.below(lane, frame.index(split.lanes)),
                [&] { body(frame.mul(lane, unit)); });
  }

  /// The values of a unit, put together of its pieces.
  Value computeUnit(const HeadMath &math, Value d, const Split &split) {
    Value first = math.compute(d);
    if (split.unit == split.piece)
      return first;
    auto whole = VectorType::get(split.unit, getLaneType(first.getType()));
    Value unit =
        arith::ConstantOp::create(builder, loc, builder.getZeroAttr(whole));
    for (int64_t offset = 0; offset < split.unit; offset += split.piece) {
      Value piece =
          offset ? math.compute(frame.add(d, frame.index(offset))) : first;
      unit = vector::InsertStridedSliceOp::create(builder, loc, piece, unit,
                                                  offset, /*strides=*/1);
    }
    return unit;
  }

  //===--------------------------------------------------------------------===//
  // Inputs
  //===--------------------------------------------------------------------===//

  /// Loads elements of a latent row, of which the last are an input of their
  /// own.
  Value loadKey(Value row, Value head, Value d, int64_t count) {
    if (!op.getLatentRope())
      return loadDense(frame, op.getKeys(), {row, head}, d, count);
    Value border = frame.index(getSize(op.getKeys(), 2));
    Type f32 = builder.getF32Type();
    return frame.selectIf(
        frame.below(d, border),
        [&] {
          return convertLanes(
              frame, loadDense(frame, op.getKeys(), {row, head}, d, count),
              f32);
        },
        [&] {
          return convertLanes(frame,
                              loadDense(frame, op.getLatentRope(), {row, head},
                                        frame.sub(d, border), count),
                              f32);
        });
  }

  /// Norms and ropes the queries of a row in place.
  void appendHeads(Value queries, Value row, Value position,
                   ValueRange thread) {
    if (!queries || (!op.getQueryNorm() && !op.getRope()))
      return;
    Norm norm = getNorm(op.getQueryNorm());
    Rope rope = getRope(position);
    forHeads(getSize(queries, 1), thread, [&](Value head, Value lane) {
      auto load = [&](Value d, int64_t count) {
        return loadDense(frame, queries, {row, head}, d, count);
      };
      HeadMath math(frame, load, norm, rope, getSize(queries, 2), querySplit,
                    lane);
      storeInPlace(math, queries, row, head, lane);
    });
  }

  /// All threads of a head read it before any writes it.
  void storeInPlace(const HeadMath &math, Value queries, Value row, Value head,
                    Value lane) {
    if (lane) {
      SmallVector<Value> computed;
      Value d = frame.mul(lane, frame.index(querySplit.unit));
      Value inside =
          frame.min(d, frame.index((querySplit.lanes - 1) * querySplit.unit));
      Value values = math.compute(inside);
      gpu::BarrierOp::create(builder, loc);
      forUnits(querySplit, lane, [&](Value first) {
        storeDense(frame, values, queries, {row, head}, first);
      });
      gpu::BarrierOp::create(builder, loc);
      return;
    }
    SmallVector<std::pair<Value, Value>> units;
    for (int64_t unit = 0; unit < querySplit.lanes; ++unit) {
      Value d = frame.index(unit * querySplit.unit);
      units.push_back({d, math.compute(d)});
    }
    for (auto [d, values] : units)
      storeDense(frame, values, queries, {row, head}, d);
  }

  void appendToCaches(Value row, const Place &place, Value position,
                      ValueRange thread) {
    Norm norm = getNorm(op.getNorm());
    Rope rope = getRope(position);
    forHeads(type.getNumHeads(), thread, [&](Value head, Value lane) {
      auto load = [&](Value d, int64_t count) {
        return loadKey(row, head, d, count);
      };
      HeadMath math(frame, load, norm, rope, type.getHeadSize(), keySplit,
                    lane);
      forUnits(keySplit, lane, [&](Value d) {
        storeElements(frame, computeUnit(math, d, keySplit), op.getKeyCache(),
                      place, head, d, keySplit);
      });
    });
    if (!op.getValues())
      return;
    forHeads(getSize(op.getValues(), 1), thread, [&](Value head, Value lane) {
      forUnits(valueSplit, lane, [&](Value d) {
        auto load = [&](Value first, int64_t count) {
          return loadDense(frame, op.getValues(), {row, head}, first, count);
        };
        HeadMath math(frame, load, Norm{}, Rope{}, getSize(op.getValues(), 2),
                      valueSplit, lane);
        storeElements(frame, computeUnit(math, d, valueSplit),
                      op.getValueCache(), place, head, d, valueSplit);
      });
    });
  }

  AppendOp op;
  const Frame &frame;
  OpBuilder &builder;
  Location loc;
  CacheTypeInterface type;
  Split keySplit, valueSplit, querySplit;
  /// Threads of a block: along heads, and of a head.
  int64_t headThreads = 1, lanes = 1;
};

} // namespace

void kvcache::expand(AppendOp op, const Frame &frame) {
  Appender(op, frame).expand();
}
