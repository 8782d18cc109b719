//===- AttentionGPU.cpp - Expand kvcache.attention for GPUs ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

namespace {

constexpr int64_t kWarp = 32;
/// Elements of a row that a lane keeps at most, where that is possible.
constexpr int64_t kMostElements = 32;
/// Floats of queries and sums of a lane.
constexpr int64_t kMostFloats = 96;

/// How a warp divides its work.
struct WarpPlan {
  /// Lanes that share a token, and elements that a lane loads at once.
  int64_t lanes = 0, width = 0;
  /// Query heads of a warp, and tokens of a lane whose loads are in flight.
  int64_t rows = 1, tokens = 4;
};

/// A warp computes a row for some query heads of a group. Lanes share the
/// elements of a token, and the warp computes several tokens at once, without
/// shared memory. Softmax is online, and in base 2. A result does not depend on
/// other rows.
class GPUAttention : AttentionBase {
public:
  GPUAttention(AttentionOp op, const Frame &frame)
      : AttentionBase(op, frame), plan(makePlan()),
        keyPieces(keySize / (plan.lanes * plan.width)),
        valuePieces(valueSize / (plan.lanes * plan.width)) {}

  void expand() {
    int64_t shares = group / plan.rows;
    frame.forBlocks(
        {frame.dim(op.getQ(), 0), frame.index(heads * shares)}, {1, 1},
        [&](ValueRange block) {
          frame.forThreads({kWarp}, [&](ValueRange thread) {
            row = block[0];
            frame.runIf(frame.below(row, frame.countRows(op.getRowOffsets())),
                        [&] { attend(block[1], shares, thread[0]); });
          });
        });
  }

private:
  /// Sums of the lane: for each query head the maximum, the total, and pieces.
  using Sums = SmallVector<Value>;

  WarpPlan makePlan() {
    int64_t bits = 8;
    for (Value cache : {Value(op.getKeyCache()), op.getValues()}) {
      Type element = cast<CacheTypeInterface>(cache.getType()).getElementType();
      bits = std::max<int64_t>(bits, element.getIntOrFloatBitWidth());
    }
    int64_t most = std::min<int64_t>(8, 128 / bits);
    int64_t common = std::gcd(getLanes(op.getKeyCache(), keySize, most),
                              getLanes(op.getValues(), valueSize, most));
    WarpPlan plan{1, 1};
    for (int64_t lanes = 1; lanes <= kWarp; lanes *= 2) {
      if (keySize % lanes || valueSize % lanes)
        break;
      int64_t width = std::gcd(std::gcd(keySize, valueSize) / lanes, common);
      bool fits = keySize / lanes <= kMostElements;
      bool fitted = keySize / plan.lanes <= kMostElements;
      if (!fitted || (fits && width >= plan.width))
        plan = {lanes, width};
    }
    int64_t perRow = (keySize + valueSize) / plan.lanes;
    plan.rows =
        getDivisorUpTo(group, std::max<int64_t>(kMostFloats / perRow, 1));
    plan.tokens = keySize / plan.lanes > 16 ? 2 : 4;
    return plan;
  }

  void attend(Value share, int64_t shares, Value thread) {
    head = frame.div(share, shares);
    firstHead = frame.add(frame.mul(head, group),
                          frame.mul(frame.rem(share, shares), plan.rows));
    lane = frame.rem(thread, plan.lanes);
    Value ofWarp = frame.div(thread, plan.lanes);
    Value i = frame.index(0);
    if (op.getRows()) {
      rows = getSparseRow(row);
    } else {
      rows = getRowsOfSequence(frame.findSequence(op.getRowOffsets(), row));
      i = frame.sub(row, rows.first);
    }
    loadQueries();
    int64_t step = plan.tokens * (kWarp / plan.lanes);
    TokenRange seen = getSeen(rows, i);
    auto loop = scf::ForOp::create(
        builder, loc, seen.from, seen.to, frame.index(step), getNoSums(),
        [&](OpBuilder &, Location, Value first, ValueRange sums) {
          Sums next = addTokens(frame.add(first, ofWarp), i, seen.to, sums);
          scf::YieldOp::create(builder, loc, next);
        });
    endRows(loop.getResults(), ofWarp);
  }

  Value getElement(int64_t piece) {
    Value first = frame.mul(lane, plan.width);
    return frame.add(first, frame.index(piece * plan.lanes * plan.width));
  }

  void loadQueries() {
    Value factors = f.splat(getFactor(), plan.width);
    queries.clear();
    for (int64_t g = 0; g < plan.rows; ++g)
      for (int64_t p = 0; p < keyPieces; ++p) {
        Value q = loadDense(frame, op.getQ(),
                            {row, frame.add(firstHead, frame.index(g))},
                            getElement(p), plan.width);
        queries.push_back(
            f.mul(convertLanes(frame, q, builder.getF32Type()), factors));
      }
  }

  Sums getNoSums() {
    Sums sums(plan.rows, f.constant(kLowest));
    sums.append(plan.rows, f.constant(0));
    sums.append(plan.rows * valuePieces, f.constant(f.vectorOf(plan.width), 0));
    return sums;
  }

  //===--------------------------------------------------------------------===//
  // Tokens
  //===--------------------------------------------------------------------===//

  /// A token of the lane, its pieces, and whether the row sees it.
  struct Token {
    Value isSeen;
    SmallVector<Value> key, value;
  };

  Token loadToken(Value number, Value i, Value end) {
    Token token;
    token.isSeen = frame.less(number, end);
    // Behind the last token, the last is read again.
    number = frame.min(number, frame.sub(end, frame.index(1)));
    Value id;
    auto restrict = [&](Value condition) {
      token.isSeen =
          arith::AndIOp::create(builder, loc, token.isSeen, condition);
    };
    if (op.getRows()) {
      Value given = loadId(rows, number);
      id = frame.max(given, frame.index(0));
      restrict(frame.equal(given, id));
    }
    if (op.getMask())
      restrict(isUnmasked(rows, i, number));
    Place place = getPlace(rows, number, id);
    Type f32 = builder.getF32Type();
    auto load = [&](Value cache, int64_t pieces) {
      SmallVector<Value> values;
      for (int64_t p = 0; p < pieces; ++p)
        values.push_back(loadElements(frame, cache, place, head, getElement(p),
                                      plan.width, f32));
      return values;
    };
    token.key = load(op.getKeyCache(), keyPieces);
    token.value =
        op.getValueCache()
            ? load(op.getValueCache(), valuePieces)
            : SmallVector<Value>(ArrayRef(token.key).take_front(valuePieces));
    return token;
  }

  /// Sums, or maxima, over `size` lanes that are `stride` apart.
  Value reduce(Value value, bool isMax, int64_t size, int64_t stride) {
    for (int64_t offset = stride; offset < size * stride; offset *= 2) {
      auto shuffle = gpu::ShuffleOp::create(
          builder, loc, value, static_cast<int32_t>(offset),
          static_cast<int32_t>(kWarp), gpu::ShuffleMode::XOR);
      Value other = shuffle.getShuffleResult();
      value = isMax ? f.max(value, other) : f.add(value, other);
    }
    return value;
  }

  Value reduceElements(Value vector, int64_t size, int64_t stride) {
    SmallVector<Value> elements;
    for (int64_t i = 0; i < plan.width; ++i)
      elements.push_back(
          reduce(vector::ExtractOp::create(builder, loc, vector, i),
                 /*isMax=*/false, size, stride));
    return vector::FromElementsOp::create(builder, loc, f.vectorOf(plan.width),
                                          elements);
  }

  Value computeScore(const Token &token, int64_t g) {
    Value products;
    for (int64_t p = 0; p < keyPieces; ++p) {
      Value q = queries[g * keyPieces + p];
      products =
          products ? f.fma(q, token.key[p], products) : f.mul(q, token.key[p]);
    }
    Value sum = reduce(f.sumOf(products), /*isMax=*/false, plan.lanes, 1);
    return f.select(token.isSeen, bend(sum), f.constant(kLowest));
  }

  /// Adds the tokens of a step to sums; all lanes have the same maxima.
  Sums addTokens(Value first, Value i, Value end, ValueRange sums) {
    SmallVector<Token> tokens;
    for (int64_t t = 0; t < plan.tokens; ++t) {
      Value offset = frame.index(t * (kWarp / plan.lanes));
      tokens.push_back(loadToken(frame.add(first, offset), i, end));
    }
    Sums next(sums);
    for (int64_t g = 0; g < plan.rows; ++g) {
      SmallVector<Value> scores;
      Value most = sums[g];
      for (const Token &token : tokens) {
        scores.push_back(computeScore(token, g));
        most = f.max(most, scores.back());
      }
      next[g] = reduce(most, /*isMax=*/true, kWarp / plan.lanes, plan.lanes);
      addRow(g, tokens, scores, f.exp2(f.sub(sums[g], next[g])), next);
    }
    return next;
  }

  void addRow(int64_t g, ArrayRef<Token> tokens, ArrayRef<Value> scores,
              Value shrink, Sums &next) {
    Value &total = next[plan.rows + g];
    total = f.mul(total, shrink);
    auto pieces = MutableArrayRef(next).slice(2 * plan.rows + g * valuePieces,
                                              valuePieces);
    for (Value &piece : pieces)
      piece = f.mul(piece, f.splat(shrink, plan.width));
    for (auto [token, score] : llvm::zip_equal(tokens, scores)) {
      Value weight =
          f.select(token.isSeen, f.exp2(f.sub(score, next[g])), f.constant(0));
      total = f.add(total, weight);
      // What an id of -1 stands for may be no number.
      Value none = f.constant(f.vectorOf(plan.width), 0);
      for (auto [piece, value] : llvm::zip_equal(pieces, token.value))
        piece = f.fma(f.splat(weight, plan.width),
                      f.select(token.isSeen, value, none), piece);
    }
  }

  void endRows(ValueRange sums, Value ofWarp) {
    int64_t count = kWarp / plan.lanes;
    Value isFirst = frame.equal(ofWarp, frame.index(0));
    for (int64_t g = 0; g < plan.rows; ++g) {
      Value queryHead = frame.add(firstHead, frame.index(g));
      RowSum sum = addSink(
          {sums[g],
           reduce(sums[plan.rows + g], /*isMax=*/false, count, plan.lanes),
           f.constant(1)},
          queryHead);
      Value factors = f.splat(getQuotient(sum), plan.width);
      SmallVector<Value> values;
      for (int64_t p = 0; p < valuePieces; ++p)
        values.push_back(reduceElements(
            sums[2 * plan.rows + g * valuePieces + p], count, plan.lanes));
      frame.runIf(isFirst, [&] {
        for (auto [p, value] : llvm::enumerate(values))
          storeDense(frame, f.mul(value, factors), op.getOut(),
                     {row, queryHead}, getElement(p));
        frame.runIf(frame.equal(lane, frame.index(0)),
                    [&] { storeLogarithm(sum, row, queryHead); });
      });
    }
  }

  WarpPlan plan;
  int64_t keyPieces, valuePieces;
  Value row, head, firstHead, lane;
  QueryRows rows;
  /// Pieces of the query of each head of the warp.
  SmallVector<Value> queries;
};

} // namespace

void kvcache::expandForGPU(AttentionOp op, const Frame &frame) {
  GPUAttention(op, frame).expand();
}
