//===- Gathers.cpp - Tensor copies of any rows ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Gathers.h"
#include "Source.h"

#include "kvcache/IR/QueryOps.h"
#include "kvcache/IR/TMAOps.h"
#include "kvcache/Support/Loops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::kvcache;

/// The first column of a gather, in elements of the descriptor.
static Value getGatherColumn(const IndexBuilder &b, TileCopyOpInterface op) {
  CacheTypeInterface cache = op.getViewType();
  int64_t stored = cache.getStorageType().getIntOrFloatBitWidth() / 8;
  Value column =
      b.add(b.mul(op.getAccessedHead(), b.index(cache.getHeadStride())),
            b.div(op.getAccessedElement(), b.index(cache.getLanesPerStored())));
  return b.div(b.mul(column, b.index(stored)),
               b.index(op.getDescriptor().getType().getElementBytes()));
}

namespace {

/// The rows of the cache for a gather, as coordinates of its descriptor. Each
/// lane computes some of them, neighbouring ones, so that what they read is
/// under way together, and a few reads get it: as many as one can read, which
/// may leave lanes without.
class GatheredRows {
public:
  /// Rows `first` to `first + count - 1` of the tile, at most `kMost`.
  GatheredRows(const IndexBuilder &b, TileCopyOpInterface op,
               const Issuer &issuer, int64_t first, int64_t count)
      : b(b), op(op), issuer(issuer), first(first) {
    if (issuer.numLanes == 1)
      return;
    int64_t perLane =
        llvm::PowerOf2Ceil(llvm::divideCeil(count, issuer.numLanes));
    perLane = std::max(perLane, Source(b, op).getIdsPerAccess());
    Value lane = b.min(issuer.lane, b.index(count / perLane - 1));
    Value laneRow = b.add(b.index(first), b.mul(lane, b.index(perLane)));
    for (Value row : compute(laneRow, perLane))
      own.push_back(b.toI32(row));
  }

  int64_t getFirst() const { return first; }

  /// The most ids that the lanes of a warp hold together: four each.
  static constexpr int64_t kMost = 4 * BlockBuilder::kWarp;

  /// Gives the ids of the four rows from `first + offset` on, in every lane.
  SmallVector<Value> getFour(Value offset) {
    if (own.empty())
      return compute(b.add(b.index(first), offset), 4);
    int64_t perLane = own.size();
    SmallVector<Value> rows;
    for (int64_t i = 0; i < 4; ++i) {
      Value lane = b.div(b.add(offset, b.index(i)), b.index(perLane));
      rows.push_back(getFromLane(b, own[i % perLane], lane));
    }
    return rows;
  }

private:
  SmallVector<Value> compute(Value tileRow, int64_t count) {
    SmallVector<Value> rows;
    Source source(b, op);
    for (Value id : source.getIds(tileRow, count)) {
      Value row = TMARowOp::create(b.builder, b.loc, b.builder.getIndexType(),
                                   op.getAccessedCache(), b.fromI32(id));
      // Out of bounds there are zeros.
      rows.push_back(arith::SelectOp::create(b.builder, b.loc, source.isRow(id),
                                             row, b.index(-1)));
    }
    return rows;
  }

  IndexBuilder b;
  TileCopyOpInterface op;
  const Issuer &issuer;
  int64_t first;
  /// This lane's, as i32; empty if there is but one.
  SmallVector<Value> own;
};

} // namespace

/// The gathers of the four rows from each of `offsets` on, of those in `rows`.
static void emitFours(const IndexBuilder &b, TileCopyOpInterface op,
                      Barrier barrier, const Issuer &issuer, GatheredRows &rows,
                      ArrayRef<Value> offsets) {
  TypedValue<TMATileType> descriptor = op.getDescriptor();
  SmallVector<SmallVector<Value>> fours;
  for (Value offset : offsets)
    fours.push_back(rows.getFour(offset));
  b.runIf(issuer.isElected, [&] {
    Value column = getGatherColumn(b, op);
    for (auto [offset, four] : llvm::zip(offsets, fours))
      TMAGather4Op::create(
          b.builder, b.loc, descriptor, column, four[0], four[1], four[2],
          four[3], barrier.group, barrier.index, op.getTile(),
          b.add(b.index(rows.getFirst()), offset), op.getL2HintAttr());
  });
}

/// Runs `body` with each of `0, 4, …` below `end`, in a loop that stays one and
/// counts in 32 bits.
static void loopOverFours(const IndexBuilder &b, int64_t end,
                          function_ref<void(Value)> body) {
  auto loop =
      scf::ForOp::create(b.builder, b.loc, b.i32(0), b.i32(end), b.i32(4));
  disableUnrolling(loop);
  OpBuilder::InsertionGuard guard(b.builder);
  b.builder.setInsertionPointToStart(loop.getBody());
  body(b.fromI32(loop.getInductionVar()));
}

void kvcache::emitGather(const IndexBuilder &b, TileCopyOpInterface op,
                         Barrier barrier, const Issuer &issuer) {
  // More copies are a loop.
  constexpr int64_t maxUnrolled = 32;
  tma::TileLayout layout = op.getTileLayout();
  for (int64_t first = 0; first < layout.rows; first += GatheredRows::kMost) {
    int64_t count = std::min(GatheredRows::kMost, layout.rows - first);
    GatheredRows rows(b, op, issuer, first, count);
    auto emit = [&](ArrayRef<Value> offsets) {
      emitFours(b, op, barrier, issuer, rows, offsets);
    };
    if (count / 4 * layout.getNumChunks() > maxUnrolled) {
      loopOverFours(b, count, [&](Value offset) { emit(offset); });
      continue;
    }
    // Rows wait in registers for the lane that issues: not too many at once.
    constexpr int64_t together = 32;
    for (int64_t begin = 0; begin < count; begin += together) {
      SmallVector<Value> offsets;
      for (int64_t offset = begin; offset < std::min(begin + together, count);
           offset += 4)
        offsets.push_back(b.index(offset));
      emit(offsets);
    }
  }
}
