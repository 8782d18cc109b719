//===- ScoreRegions.h - Regions of attention in kernels ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTION_SCOREREGIONS_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTION_SCOREREGIONS_H

#include "../Builders/DeviceMath.h"
#include "QueryRows.h"
#include "kvcache/Support/RegionAxes.h"

#include "mlir/IR/IRMapping.h"

#include <map>

namespace mlir::kvcache {

/// Clones a region for pairs of rows and columns. An op that depends on neither
/// is cloned once, one that depends on the row or the column once for each.
///
/// A column may be a vector of columns, each in a lane. Elementwise ops then
/// compute on vectors, and others once for each lane.
class RegionCloner {
public:
  /// `arguments` has the axes of each argument of the region.
  RegionCloner(OpBuilder &builder, Region &region, ArrayRef<Axes> arguments)
      : builder(builder), region(region), axes(region, arguments) {}

  /// Gives an argument its value for a row and a column. The type of a value
  /// that depends on the column may be a vector.
  void set(BlockArgument argument, int64_t row, int64_t column, Value value);

  const RegionAxes &getAxes() const { return axes; }

  /// Clones the ops that depend on no row here, so that no later clone of a row
  /// has to.
  void cloneForColumn(int64_t column);

  /// Returns the value that the region yields for a row and a column. It is a
  /// vector only if it depends on the column, and the column is one.
  Value clone(int64_t row, int64_t column);

private:
  /// The clones of values: as a whole, and each lane of vectors.
  struct Clones {
    IRMapping whole;
    std::map<int64_t, IRMapping> lanes;
  };

  /// The clones of a value for the row and column in use.
  Clones &getClones(Value value);
  Value getWhole(Value value);
  Value getLane(Value value, int64_t lane);

  bool isVector(Operation *op);
  void cloneOps(function_ref<bool(Operation *)> isWanted);
  bool isCloned(Operation *op);
  void cloneOp(Operation *op);
  void cloneOnVectors(Operation *op);
  Operation *cloneWith(Operation *op, function_ref<Value(Value)> getClone);

  OpBuilder &builder;
  Region &region;
  RegionAxes axes;
  std::map<std::pair<int64_t, int64_t>, Clones> clones;
  int64_t row = 0, column = 0, lanes = 1;
};

/// The axes of the arguments of a region `score` or `mask`: rows of scores are
/// queries of a head, and columns are tokens.
SmallVector<Axes> getScoreAxes(Region &region);

/// The axis of scores that is the lanes of vectors.
enum class ScoreLanes { Tokens, Rows };

/// The regions `score` and `mask` of attention, for the scores of some rows of
/// a sequence and some tokens. Without regions, scores stay the same.
///
/// The columns of the regions' clones are those of `lanes`: vectors of tokens
/// for single rows, or a vector of rows for single tokens.
class ScoreRegions {
public:
  ScoreRegions(const Frame &frame, AttentionOp op, const QueryRows &rows,
               ScoreLanes lanes = ScoreLanes::Tokens);

  /// Appends row `first + i` of the sequence, for a query head.
  void addRow(Value queryHead, Value i);
  /// Appends a token, or a vector of them. It may be past the end.
  void addColumn(Value token);
  /// Sets vectors of query heads and of positions of rows in the sequence, and
  /// computes here what depends on these alone.
  void setRowLanes(Value queryHeads, Value positions);
  /// Appends a token for the rows of the lanes. It may be past the end.
  void addToken(Value token);

  /// Returns the score of a row and a column in base 2: -inf if a region
  /// excludes the token. With a region `score`, the operand is in natural
  /// units.
  Value apply(Value score, int64_t row, int64_t column);
  /// Apply one of the regions, if the op has it.
  Value applyScore(Value score, int64_t row, int64_t column);
  Value applyMask(Value score, int64_t row, int64_t column);

private:
  RegionCloner makeCloner(Region &region);
  void set(unsigned fromLast, int64_t row, int64_t column, Value value);
  /// The smaller of a token, or a vector of tokens, and the last one.
  Value clampToken(Value token);

  const Frame &frame;
  AttentionOp op;
  const QueryRows &rows;
  ScoreLanes lanes;
  DeviceMath f;
  std::optional<RegionCloner> score, mask;
  /// The last token as an i32 if a region is bound to tokens, else null.
  Value last;
  int64_t rowCount = 0, columnCount = 0;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTION_SCOREREGIONS_H
