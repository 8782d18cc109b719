//===- IndexScores.cpp - Expand kvcache.index_scores ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IndexScores.h"

#include "../Builders/Heads.h"
#include "IndexQueries.h"
#include "RowPosition.h"
#include "TiledScores.h"

#include "kvcache/Support/FloatBuilder.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Heads whose products a thread adds at once, so that it loads a key once for
/// all of them.
constexpr int64_t kHeadsAtOnce = 8;
/// Elements of a key that a thread loads at once, and lanes of a sum, on a GPU.
constexpr int64_t kElementsOfLoad = 16, kLanesOfSum = 4;
/// Elements of both on a CPU.
constexpr int64_t kElementsOnCPU = 32;

/// A row of scores, and how many entries it has scores of.
struct ScoreRow {
  Value row, sequence, entries;
};

/// Computes the scores of a row, an entry of the cache at a time.
class EntryScorer {
public:
  EntryScorer(IndexScoresOp op, const Frame &frame, const ScoreRow &row)
      : op(op), frame(frame), builder(frame.builder), loc(frame.loc),
        f(builder, loc), row(row), queries(op, frame),
        type(cast<CacheTypeInterface>(op.getCache().getType())),
        heads(cast<MemRefType>(op.getQ().getType()).getDimSize(1)),
        headsAtOnce(getDivisorUpTo(heads, kHeadsAtOnce)) {}

  /// Stores the scores of a column: one, or one for each head.
  void storeColumn(Value column) {
    if (op.getSumHeads()) {
      Value score = reduceEntries(column, f.constant(kNone), [&](Value entry) {
                      return SmallVector<Value>{addHeads(entry)};
                    }).front();
      return store(score, {row.row, column});
    }
    frame.loop(frame.index(0), frame.index(heads), frame.index(headsAtOnce),
               [&](Value head) {
                 SmallVector<Value> none(headsAtOnce, f.constant(kNone));
                 SmallVector<Value> scores =
                     reduceEntries(column, none, [&](Value entry) {
                       return scoreHeads(entry, head);
                     });
                 for (auto [offset, score] : llvm::enumerate(scores))
                   store(score, {row.row, frame.add(head, frame.index(offset)),
                                 column});
               });
  }

private:
  /// No score: the larger one of it and another is the other.
  static constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

  /// The largest scores of the entries of a column.
  SmallVector<Value>
  reduceEntries(Value column, ValueRange none,
                function_ref<SmallVector<Value>(Value entry)> score) {
    int64_t size = op.getBlockSize();
    if (size == 1)
      return score(column);
    Value first = frame.mul(column, size);
    Value end = frame.min(frame.add(first, frame.index(size)), row.entries);
    auto loop = scf::ForOp::create(
        builder, loc, first, end, frame.index(1), none,
        [&](OpBuilder &, Location, Value entry, ValueRange carried) {
          SmallVector<Value> most;
          for (auto [own, other] : llvm::zip_equal(score(entry), carried))
            most.push_back(f.max(own, other));
          scf::YieldOp::create(builder, loc, most);
        });
    return llvm::to_vector_of<Value>(loop.getResults());
  }

  /// The sum over all heads of an entry.
  Value addHeads(Value entry) {
    auto loop = scf::ForOp::create(
        builder, loc, frame.index(0), frame.index(heads),
        frame.index(headsAtOnce), ValueRange{f.constant(0)},
        [&](OpBuilder &, Location, Value head, ValueRange carried) {
          Value sum = carried[0];
          for (Value score : weightHeads(entry, head))
            sum = f.add(sum, score);
          scf::YieldOp::create(builder, loc, sum);
        });
    return scale(entry, loop.getResult(0));
  }

  /// The scores of an entry for the heads from one on.
  SmallVector<Value> scoreHeads(Value entry, Value head) {
    return llvm::map_to_vector(weightHeads(entry, head), [&](Value score) {
      return scale(entry, score);
    });
  }

  /// Scores without the scale of the token.
  SmallVector<Value> weightHeads(Value entry, Value head) {
    SmallVector<Value> scores = multiply(entry, head);
    for (auto [offset, score] : llvm::enumerate(scores)) {
      if (op.getRelu())
        score =
            f.select(arith::CmpFPredicate::OLT, score, 0, f.constant(0), score);
      if (!op.getWeights())
        continue;
      Value own = frame.add(head, frame.index(offset));
      Value weight = memref::LoadOp::create(builder, loc, op.getWeights(),
                                            ValueRange{row.row, own});
      score = f.mul(weight, score);
    }
    return scores;
  }

  /// The products of a key with the queries of the heads from one on.
  SmallVector<Value> multiply(Value entry, Value head) {
    int64_t size = type.getHeadSize();
    int64_t lanes = getLanes(op.getCache(), size,
                             frame.isGPU ? kElementsOfLoad : kElementsOnCPU);
    if (queries.hasScales())
      lanes = std::gcd(lanes, IndexScoresOp::kElements);
    int64_t sumLanes = frame.isGPU ? std::gcd(lanes, kLanesOfSum) : lanes;
    SmallVector<Value> zeros(headsAtOnce, f.constant(f.vectorOf(sumLanes), 0));
    auto loop = scf::ForOp::create(
        builder, loc, frame.index(0), frame.index(size), frame.index(lanes),
        zeros, [&](OpBuilder &, Location, Value d, ValueRange carried) {
          Value key =
              loadUnscaled(frame, op.getCache(), {row.sequence, entry, Value()},
                           frame.index(0), d, lanes, f.f32);
          SmallVector<Value> sums(queries.hasScales() ? ValueRange(zeros)
                                                      : carried);
          for (int64_t first = 0; first < lanes; first += sumLanes)
            addProducts(sums, slice(key, first, sumLanes), head,
                        frame.add(d, frame.index(first)));
          if (queries.hasScales())
            scaleQueries(sums, carried, head, d);
          scf::YieldOp::create(builder, loc, sums);
        });
    return llvm::map_to_vector(loop.getResults(),
                               [&](Value sum) { return f.sumOf(sum); });
  }

  /// Adds products of elements of a key and of each query from `d` on.
  void addProducts(MutableArrayRef<Value> sums, Value key, Value head,
                   Value d) {
    int64_t lanes = cast<VectorType>(key.getType()).getNumElements();
    for (auto [offset, sum] : llvm::enumerate(sums)) {
      Value own = frame.add(head, frame.index(offset));
      Value q = queries.load(row.row, own, d, lanes, f.f32);
      sum = f.fma(q, key, sum);
    }
  }

  /// Multiplies products of elements of queries from `d` on by the scale of
  /// their group, and adds them to `sums`.
  void scaleQueries(MutableArrayRef<Value> products, ValueRange sums,
                    Value head, Value d) {
    Value group = frame.div(d, IndexScoresOp::kElements);
    for (int64_t offset = 0; offset < headsAtOnce; ++offset) {
      Value own = frame.add(head, frame.index(offset));
      Value &product = products[offset];
      Value scale =
          f.broadcast(queries.loadScale(row.row, own, group), product);
      product = f.fma(product, scale, sums[offset]);
    }
  }

  Value slice(Value vector, int64_t first, int64_t lanes) {
    if (lanes == cast<VectorType>(vector.getType()).getNumElements())
      return vector;
    return vector::ExtractStridedSliceOp::create(builder, loc, vector, first,
                                                 lanes, 1);
  }

  /// Multiplies a score by the only scale of a token.
  Value scale(Value entry, Value score) {
    if (!hasTokenScales(type))
      return score;
    return f.mul(score, loadTokenScale(frame, op.getCache(),
                                       {row.sequence, entry, Value()},
                                       frame.index(0)));
  }

  void store(Value score, ValueRange place) {
    memref::StoreOp::create(builder, loc, score, op.getScores(), place);
  }

  IndexScoresOp op;
  const Frame &frame;
  OpBuilder &builder;
  Location loc;
  FloatBuilder f;
  ScoreRow row;
  IndexQueries queries;
  CacheTypeInterface type;
  int64_t heads, headsAtOnce;
};

} // namespace

/// Computes the score of a column of a row, if it has one.
static void scoreColumn(IndexScoresOp op, const Frame &frame, Value row,
                        Value column) {
  IndexQueries(op, frame).checkRow(row);
  RowPosition position = RowPosition::find(
      frame, {op.getCache(), op.getRowOffsets(), op.getLengths()}, row);
  Value entries = frame.div(position.visible, op.getWidth());
  int64_t size = op.getBlockSize();
  Value used = frame.div(frame.add(entries, frame.index(size - 1)), size);
  int64_t last = cast<MemRefType>(op.getScores().getType()).getRank() - 1;
  Value columns = frame.dim(op.getScores(), last);
  checkColumns(frame, op.getScores(), used);
  frame.runIf(frame.below(column, frame.min(used, columns)), [&] {
    EntryScorer(op, frame, {row, position.sequence, entries})
        .storeColumn(column);
  });
}

void kvcache::expand(IndexScoresOp op, const Frame &frame) {
  if (frame.isGPU)
    if (std::optional<KeyTiles> tiles = KeyTiles::choose(op))
      return tileIndexScores(op, frame, *tiles);
  auto scores = cast<MemRefType>(op.getScores().getType());
  Value rows = frame.dim(op.getScores(), 0);
  Value columns = frame.dim(op.getScores(), scores.getRank() - 1);
  frame.forBlocks(
      {rows, columns}, {1, frame.blockThreads},
      [&](ValueRange block) {
        frame.forThreads({frame.blockThreads}, [&](ValueRange thread) {
          Value column = frame.add(block[1], thread[0]);
          Value isUsed =
              frame.below(block[0], frame.countRows(op.getRowOffsets()));
          frame.runIf(isUsed,
                      [&] { scoreColumn(op, frame, block[0], column); });
        });
      },
      /*alongX=*/0);
}
