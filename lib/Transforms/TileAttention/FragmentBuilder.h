//===- FragmentBuilder.h - Build ops on fragments ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_FRAGMENTBUILDER_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_FRAGMENTBUILDER_H

#include "kvcache/IR/FragmentOps.h"
#include "kvcache/IR/FragmentProductOps.h"
#include "kvcache/IR/FragmentTileOps.h"
#include "kvcache/IR/PipeOps.h"

#include "mlir/IR/Builders.h"

namespace mlir::kvcache {

/// The numbers of row 0 and column 0 of a fragment, for regions that use them,
/// and whether a region gets columns as the first one of a lane and a distance.
struct FragmentOrigin {
  Value row, column;
  bool hasLaneColumns = false;
};

/// How a part of a tile becomes a fragment: as it is, one row for all rows, or
/// columns in the order of `paired`.
enum class LoadForm { Plain, Repeated, Paired };

/// The type of elements of 4 bits, and the tile of their scales and the row of
/// the first one; null for other elements, and without scales of elements.
struct PackedElements {
  Type type;
  Value scales, row;
};

/// Builds ops on fragments, with regions that functions emit. Its users share
/// it: places of elements are computed from the thread that it has.
class FragmentBuilder {
public:
  FragmentBuilder(OpBuilder &builder, Location loc)
      : builder(builder), loc(loc) {}

  /// Computes each element of a fragment like the first one, or of another
  /// element type. The function gets the elements, and with an origin the row
  /// and the column, in one or two numbers.
  using Element = function_ref<Value(ValueRange arguments)>;
  Value map(ValueRange fragments, Element element, FragmentOrigin origin = {},
            Type type = {}) const;
  /// A fragment times a number of each row.
  Value multiply(Value fragment, Value rows) const;
  /// The elements of a fragment, rounded to a narrower type.
  Value truncate(Value fragment, FloatType type) const;
  /// The left operand of a product, which has the elements of a fragment.
  Value toOperand(FragmentType type, Value fragment) const;
  Value splat(FragmentType type, Value value) const;
  /// Loads a part of a tile, which begins at a row and a column.
  Value load(FragmentType type, Value tile, Value row, Value column,
             LoadForm form = LoadForm::Plain) const;
  /// `scratch` is a tile if warps share rows and the result is not partial.
  Value reduce(Reduction kind, Value source, Value init, FragmentType type,
               Value scratch = {}) const;

  /// Runs the function with the tile of a consumption. Returns the fragment
  /// that the function gives.
  Value consume(Value pipe, Value use, Type type,
                function_ref<Value(Value tile)> body) const;
  /// Likewise for any number of values.
  SmallVector<Value>
  consumeAll(Value pipe, Value use, TypeRange types,
             function_ref<SmallVector<Value>(Value tile)> body) const;

  /// Gives the next ops an opaque copy of the thread's number, to compute
  /// places of elements again: those that registers kept would leave an
  /// accumulator too few.
  void recomputePlaces();
  /// Gives the next ops a copy that is there already.
  void placeBy(Value copy) { thread = copy; }
  /// Runs `body`, after which ops have the thread from before it.
  void keepThread(function_ref<void()> body);

  /// Returns the type of a fragment while a product computes it.
  static InFlightType getInFlight(FragmentType type);
  /// Starts the product of a fragment and columns of a tile from `column` on,
  /// added to an accumulator if there is one.
  Value startProduct(FragmentType type, Value left, Value tile, Value column,
                     Value acc, Major major, bool isRowsFirst = false,
                     const PackedElements &packed = {}) const;
  /// Starts the product by wgmma of `k` columns of two tiles in shared memory,
  /// of the left one from a row and a column on, added to an accumulator if
  /// there is one.
  Value startTiles(FragmentType type, Value left, Value row, Value column,
                   Value right, int64_t k, Value acc = Value(),
                   Major leftMajor = Major::K,
                   Major rightMajor = Major::K) const;
  /// Waits for a product, and returns its fragment.
  Value wait(Value product) const;

  /// The thread's number for ops that place elements, or null.
  Value getThread() const { return thread; }

private:
  OpBuilder &builder;
  Location loc;
  Value thread;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_FRAGMENTBUILDER_H
