//===- MapPatterns.cpp - Lower map on the elements of fragments -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Registers.h"

#include "kvcache/Support/RegionAxes.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The row and the column of an element among those of a thread, or -1 for a
/// value that does not depend on it.
using Element = std::pair<int64_t, int64_t>;
constexpr int64_t kAny = -1;

/// Emits the region of a map for the elements of a thread. A value is emitted
/// once for all elements that it is equal for.
class MapEmitter {
public:
  MapEmitter(OpBuilder &builder, MapOp op, ArrayRef<ValueRange> registers)
      : builder(builder), op(op), b(builder, op.getLoc()),
        rows(LayoutDigits::getRows(op.getType())),
        isPaired(addsPairs(op, op.getType())),
        axes(op.getBody(), getArgumentAxes(op)) {
    for (auto [fragment, parts] : llvm::zip_equal(op.getFragments(), registers))
      elements.push_back(unpack(builder, op.getLoc(),
                                cast<FragmentType>(fragment.getType()), parts));
    if (op.getType().hasColumns())
      places = LayoutDigits::getPlaces(op.getType());
    else
      for (int64_t row : rows)
        places.push_back({row, 0});
    if (!op.getRow())
      return;
    first = FirstPlace::get(b, op.getType(), op.getThread());
    first.row = b.add(op.getRow(), first.row);
    if (op.getColumn())
      first.column = b.add(op.getColumn(), first.column);
  }

  /// The elements of the result, in the order of the registers.
  SmallVector<Value> emit() {
    SmallVector<Value> results;
    while (results.size() < places.size()) {
      size_t next = results.size();
      llvm::append_range(results, emitElements(next, countElements(next)));
    }
    return results;
  }

private:
  static SmallVector<Axes> getArgumentAxes(MapOp op) {
    SmallVector<Axes> axes;
    for (Value fragment : op.getFragments())
      axes.push_back(
          {true, cast<FragmentType>(fragment.getType()).hasColumns()});
    size_t indices = op.getBody().getNumArguments() - axes.size();
    if (indices > 0)
      axes.push_back({/*row=*/true, /*column=*/false});
    // The lane's first column, and then a distance from it.
    if (indices > 2)
      axes.push_back({});
    if (indices > 1)
      axes.push_back({/*row=*/false, /*column=*/true});
    return axes;
  }

  Element getKey(Value value, Element element) const {
    Axes own = axes.get(value);
    return {own.row ? element.first : kAny, own.column ? element.second : kAny};
  }

  /// The number of elements to emit at a time, from one on.
  size_t countElements(size_t i) {
    bool isPair = isPaired && op.getType().hasColumns() &&
                  i + 1 < places.size() && places[i].row == places[i + 1].row;
    return isPair ? 2 : 1;
  }

  Element getElement(size_t i) const {
    return {llvm::find(rows, places[i].row) - rows.begin(), places[i].column};
  }

  SmallVector<Value> emitElements(size_t start, size_t count) {
    Block &body = op.getBody().front();
    for (auto [number, argument] : llvm::enumerate(body.getArguments()))
      if (!argument.use_empty())
        for (size_t i = start; i < start + count; ++i)
          emitArgument(number, argument, getElement(i), i);
    for (Operation &each : body.without_terminator())
      if (count == 2 && canPair(each))
        emitPair(each, getElement(start), getElement(start + 1));
      else
        for (size_t i = start; i < start + count; ++i)
          emitOp(each, getElement(i));
    return llvm::map_to_vector(llvm::seq(start, start + count), [&](size_t i) {
      return find(body.getTerminator()->getOperand(0), getElement(i));
    });
  }

  void emitArgument(size_t number, Value argument, Element element, size_t i) {
    Value &emitted = values[{argument, getKey(argument, element)}];
    if (emitted)
      return;
    if (number == elements.size())
      emitted = b.add(first.row, b.index(places[i].row));
    else if (number > elements.size())
      emitted = emitColumn(argument, places[i].column);
    else if (axes.get(argument).column)
      emitted = elements[number][i];
    else
      emitted = elements[number][element.first];
  }

  /// The column of an element, or a part of it.
  Value emitColumn(Value argument, int64_t distance) {
    if (!axes.get(argument).column)
      return first.column;
    return op.getLaneColumns() ? b.index(distance)
                               : b.add(first.column, b.index(distance));
  }

  void emitOp(Operation &each, Element element) {
    if (each.getNumResults() == 0 ||
        values.contains(
            {each.getResult(0), getKey(each.getResult(0), element)}))
      return;
    IRMapping mapping;
    for (Value used : getUsedValues(&each))
      mapping.map(used, find(used, element));
    Operation *clone = builder.clone(each, mapping);
    for (auto [result, emitted] :
         llvm::zip_equal(each.getResults(), clone->getResults()))
      values[{result, getKey(result, element)}] = emitted;
  }

  /// Whether one instruction computes the op for two elements.
  bool canPair(Operation &each) const {
    return isa<arith::AddFOp, arith::SubFOp, math::FmaOp>(each) &&
           each.getResult(0).getType().isF32() &&
           axes.get(each.getResult(0)).column;
  }

  void emitPair(Operation &each, Element even, Element odd) {
    auto type = VectorType::get(2, each.getResult(0).getType());
    IRMapping mapping;
    for (Value used : each.getOperands()) {
      Value &pair = pairs[{used, even}];
      if (!pair)
        pair = joinPair(type, find(used, even), find(used, odd));
      mapping.map(used, pair);
    }
    Operation *clone = builder.clone(each, mapping);
    clone->getResult(0).setType(type);
    pairs[{each.getResult(0), even}] = clone->getResult(0);
    for (auto [number, element] : llvm::enumerate(ArrayRef{even, odd}))
      values[{each.getResult(0), getKey(each.getResult(0), element)}] =
          vector::ExtractOp::create(builder, op.getLoc(), clone->getResult(0),
                                    number);
  }

  Value joinPair(VectorType type, Value even, Value odd) {
    if (even == odd)
      return vector::BroadcastOp::create(builder, op.getLoc(), type, even);
    return vector::FromElementsOp::create(builder, op.getLoc(), type,
                                          ValueRange{even, odd});
  }

  /// The emitted value; those of outside are what they are.
  Value find(Value value, Element element) const {
    auto it = values.find({value, getKey(value, element)});
    return it == values.end() ? value : it->second;
  }

  OpBuilder &builder;
  MapOp op;
  IndexBuilder b;
  SmallVector<int64_t> rows;
  SmallVector<ElementPlace> places;
  SmallVector<SmallVector<Value>> elements;
  /// The numbers of the first row and column, with `at`.
  FirstPlace first;
  /// Whether sums of two elements of a row are computed together.
  bool isPaired;
  RegionAxes axes;
  DenseMap<std::pair<Value, Element>, Value> values;
  /// The values of an element and the next one, as vectors.
  DenseMap<std::pair<Value, Element>, Value> pairs;
};

struct LowerMap : OpConversionPattern<MapOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(MapOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> results =
        MapEmitter(rewriter, op, adaptor.getFragments()).emit();
    rewriter.replaceOpWithMultiple(
        op, {pack(rewriter, op.getLoc(), op.getType(), results)});
    return success();
  }
};

} // namespace

void kvcache::populateMapPatterns(const TypeConverter &converter,
                                  RewritePatternSet &patterns) {
  patterns.add<LowerMap>(converter, patterns.getContext());
}
