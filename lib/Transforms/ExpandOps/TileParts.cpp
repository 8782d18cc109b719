//===- TileParts.cpp - Parts of rows that tiles compute -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileParts.h"

#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

void kvcache::forRuns(
    const Frame &frame, const TileLane &lane, int64_t r,
    function_ref<void(Value d, ArrayRef<int64_t> sums)> body) {
  const LaneLayout &layout = lane.layout;
  for (int64_t run = 0; run < layout.countRuns(lane.size); ++run) {
    SmallVector<int64_t, 2> sums;
    for (int64_t e = 0; e < layout.getRunSize(); ++e)
      sums.push_back(2 * layout.countRows() + layout.getElement(r, run, e));
    body(frame.add(lane.first, frame.index(layout.getColumn(run))), sums);
  }
}

Value kvcache::joinRun(const Frame &frame, const TileState &state,
                       ArrayRef<int64_t> sums) {
  auto values = llvm::map_to_vector(sums, [&](int64_t i) { return state[i]; });
  auto type = VectorType::get(static_cast<int64_t>(values.size()),
                              frame.builder.getF32Type());
  return vector::FromElementsOp::create(frame.builder, frame.loc, type, values);
}

TileParts::TileParts(const Frame &frame, const Workspace &workspace,
                     const TileLane &lane, Value thread, Value firstSlot,
                     Value first, Value firstHead, Value counted)
    : frame(frame), builder(frame.builder), loc(frame.loc), f(frame),
      workspace(workspace), lane(lane), thread(thread), firstSlot(firstSlot),
      first(first), firstHead(firstHead), counted(counted) {}

Value TileParts::allocate(const Frame &frame) {
  OpBuilder &builder = frame.builder;
  auto type = TileType::get(builder.getContext(), 1, 4, builder.getI32Type(),
                            Swizzle::None);
  return AllocTileOp::create(builder, frame.loc, type, IntegerAttr());
}

std::pair<Value, TileState> TileParts::publish(Value part, Value parts,
                                               const TileState &state) const {
  store(part, state);
  Value isDone = isLast(parts);
  auto merged = scf::IfOp::create(
      builder, loc, isDone,
      [&](OpBuilder &, Location) {
        TileState sums = merge(parts, findMaxima(parts));
        gpu::BarrierOp::create(builder, loc);
        clear(parts);
        clearCounter();
        scf::YieldOp::create(builder, loc, sums);
      },
      [&](OpBuilder &, Location) {
        scf::YieldOp::create(builder, loc, state);
      });
  return {isDone, TileState(merged.getResults())};
}

Value TileParts::isLast(Value parts) const {
  gpu::BarrierOp::create(builder, loc);
  Value zero = frame.index(0);
  frame.runIf(frame.equal(thread, zero), [&] {
    Value slot = frame.add(firstSlot, first);
    TileStoreOp::create(builder, loc, workspace.count(slot, firstHead), counted,
                        zero, zero);
  });
  gpu::BarrierOp::create(builder, loc);
  Value before = TileLoadOp::create(builder, loc, builder.getI32Type(), counted,
                                    zero, zero);
  return frame.equal(frame.add(frame.fromI32(before), frame.index(1)), parts);
}

Value TileParts::getPart(const TileRow &row, Value part) const {
  return frame.add(
      workspace.getPart(frame.add(firstSlot, row.i), frame.index(0)), part);
}

/// Whether the lane has the first element of its rows.
static Value hasFirst(const Frame &frame, const TileLane &lane) {
  return frame.equal(lane.first, frame.index(0));
}

void TileParts::store(Value part, const TileState &state) const {
  for (auto [r, row] : llvm::enumerate(lane.rows))
    frame.runIf(row.isReal, [&, r = r, &row = row] {
      Value number = getPart(row, part);
      forRuns(frame, lane, r, [&](Value d, ArrayRef<int64_t> sums) {
        workspace.storeSums(joinRun(frame, state, sums), number, row.queryHead,
                            d);
      });
      frame.runIf(hasFirst(frame, lane), [&] {
        workspace.storeState(state[r], state[lane.rows.size() + r], number,
                             row.queryHead);
      });
    });
}

TileState TileParts::findMaxima(Value parts) const {
  Value zero = frame.index(0), one = frame.index(1);
  TileState none(lane.rows.size(), f.constant(kLowest));
  auto maxima = scf::ForOp::create(
      builder, loc, zero, parts, one, none,
      [&](OpBuilder &, Location, Value part, ValueRange carried) {
        TileState next;
        for (auto [row, most] : llvm::zip_equal(lane.rows, carried)) {
          auto [max, total] =
              workspace.loadState(getPart(row, part), row.queryHead);
          next.push_back(f.max(most, max));
        }
        scf::YieldOp::create(builder, loc, next);
      });
  return TileState(maxima.getResults());
}

TileState TileParts::merge(Value parts, const TileState &maxima) const {
  Value zero = frame.index(0), one = frame.index(1);
  size_t rows = lane.rows.size();
  TileState zeros(rows + lane.layout.countElements(lane.size), f.constant(0));
  auto loop = scf::ForOp::create(
      builder, loc, zero, parts, one, zeros,
      [&](OpBuilder &, Location, Value part, ValueRange carried) {
        TileState next(maxima);
        next.append(carried.begin(), carried.end());
        for (size_t r = 0; r < rows; ++r)
          addPart(r, part, next);
        scf::YieldOp::create(builder, loc, ArrayRef(next).drop_front(rows));
      });
  TileState sums(maxima);
  sums.append(loop.getResults().begin(), loop.getResults().end());
  return sums;
}

void TileParts::addPart(int64_t r, Value part, TileState &sums) const {
  const TileRow &row = lane.rows[r];
  Value number = getPart(row, part);
  auto [max, total] = workspace.loadState(number, row.queryHead);
  Value weight = f.exp2(f.sub(max, sums[r]));
  Value &ofRow = sums[lane.rows.size() + r];
  ofRow = f.fma(weight, total, ofRow);
  forRuns(frame, lane, r, [&](Value d, ArrayRef<int64_t> run) {
    Value loaded = workspace.loadSums(number, row.queryHead, d,
                                      static_cast<int64_t>(run.size()));
    for (auto [e, i] : llvm::enumerate(run)) {
      Value sum = vector::ExtractOp::create(builder, loc, loaded,
                                            static_cast<int64_t>(e));
      sums[i] = f.fma(weight, sum, sums[i]);
    }
  });
}

// Rows that are not real repeat others.
void TileParts::clear(Value parts) const {
  Value none = f.constant(0),
        noRun = f.constant(f.vectorOf(lane.layout.getRunSize()), 0);
  for (auto [r, row] : llvm::enumerate(lane.rows))
    frame.runIf(row.isReal, [&, r = r, &row = row] {
      frame.loop(frame.index(0), parts, frame.index(1), [&](Value part) {
        Value number = getPart(row, part);
        forRuns(frame, lane, r, [&](Value d, ArrayRef<int64_t>) {
          workspace.storeSums(noRun, number, row.queryHead, d);
        });
        frame.runIf(hasFirst(frame, lane), [&] {
          workspace.storeState(none, none, number, row.queryHead);
        });
      });
    });
}

void TileParts::clearCounter() const {
  frame.runIf(frame.equal(thread, frame.index(0)), [&] {
    workspace.clearCounter(frame.add(firstSlot, first), firstHead);
  });
}
