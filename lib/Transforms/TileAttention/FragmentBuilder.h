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
#include "kvcache/IR/PipeOps.h"

#include "mlir/IR/Builders.h"

namespace mlir::kvcache {

/// The numbers of row 0 and column 0 of a fragment, for regions that use them,
/// and whether a region gets columns as the first one of a lane and a distance.
struct FragmentOrigin {
  Value row, column;
  bool hasLaneColumns = false;
};

/// Builds ops on fragments, with regions that functions emit.
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
  Value splat(FragmentType type, Value value) const;
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

  /// From here on, computes the places of elements again: those that were kept
  /// would leave an accumulator too few registers.
  void recomputePlaces() const;

  /// Returns the type of a fragment while a product computes it.
  static InFlightType getInFlight(FragmentType type);
  /// Starts the product of a fragment and columns of a tile from `column` on,
  /// added to an accumulator if there is one.
  Value startProduct(FragmentType type, Value left, Value tile, Value column,
                     Value acc, Major major) const;
  /// Waits for a product, and returns its fragment.
  Value wait(Value product) const;

private:
  OpBuilder &builder;
  Location loc;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_FRAGMENTBUILDER_H
