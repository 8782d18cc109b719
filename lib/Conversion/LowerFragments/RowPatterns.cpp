//===- RowPatterns.cpp - Lower stores of rows of fragments ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Registers.h"

#include "kvcache/IR/FragmentRowOps.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Stores the rows of a thread where a region says, one after the other.
class RowStorer {
public:
  RowStorer(OpBuilder &builder, Location loc, FragmentType type, Region &places,
            Value firstRow, Value thread)
      : b(builder, loc), type(type), places(places), firstRow(firstRow),
        first(FirstPlace::get(b, type, thread)) {}

  /// Runs `store` for each row that is stored, with its number among those of
  /// the thread and its indices.
  void forRows(function_ref<void(size_t number, ArrayRef<Value> indices)> store,
               Value condition = {}) const {
    for (size_t number = 0; number < getRows().size(); ++number) {
      SmallVector<Value> indices = emitPlace(getRows()[number]);
      Value isStored = indices.pop_back_val();
      if (condition)
        isStored = arith::AndIOp::create(b.builder, b.loc, isStored, condition);
      b.runIf(isStored, [&] { store(number, indices); });
    }
  }

  /// Whether the thread is the first of those that share a number of a row.
  Value isFirst() const { return b.equal(first.column, b.index(0)); }
  /// Whether it has index 0 of rows whose columns begin at an index.
  Value isFirst(Value column) const {
    return b.equal(b.add(column, first.column), b.index(0));
  }

  /// Stores the thread's elements of a row, whose columns begin at an index.
  void storeRuns(ArrayRef<Value> elements, size_t number, Value memref,
                 ArrayRef<Value> indices, Value column,
                 std::optional<uint64_t> alignment) const {
    const auto &digits = LayoutDigits::get(type);
    auto vector = VectorType::get(digits.countRun(), type.getElementType());
    Type stored = cast<MemRefType>(memref.getType()).getElementType();
    llvm::MaybeAlign bytes(
        alignment.value_or(stored.getIntOrFloatBitWidth() / 8));
    Value firstColumn = b.add(column, first.column);
    for (const ElementRun &run : LayoutDigits::getRuns(type)) {
      if (run.place.row != getRows()[number])
        continue;
      Value all = vector::FromElementsOp::create(
          b.builder, b.loc, vector, select(elements, run.elements));
      SmallVector<Value> runIndices(indices);
      runIndices.push_back(b.add(firstColumn, b.index(run.place.column)));
      vector::StoreOp::create(b.builder, b.loc, round(all, stored), memref,
                              runIndices, /*nontemporal=*/false, bytes);
    }
  }

  void store(Value element, Value memref, ArrayRef<Value> indices) const {
    Type stored = cast<MemRefType>(memref.getType()).getElementType();
    memref::StoreOp::create(b.builder, b.loc, round(element, stored), memref,
                            indices);
  }

  Value index(int64_t value) const { return b.index(value); }
  void runIf(Value condition, function_ref<void()> body) const {
    b.runIf(condition, body);
  }

private:
  SmallVector<int64_t> getRows() const { return LayoutDigits::getRows(type); }

  /// Emits the region for a row, and returns what it yields.
  SmallVector<Value> emitPlace(int64_t row) const {
    Block &body = places.front();
    IRMapping mapping;
    mapping.map(body.getArgument(0),
                b.add(b.add(firstRow, first.row), b.index(row)));
    for (Operation &each : body.without_terminator())
      b.builder.clone(each, mapping);
    return llvm::map_to_vector(
        body.getTerminator()->getOperands(),
        [&](Value value) { return mapping.lookupOrDefault(value); });
  }

  Value round(Value value, Type to) const {
    if (getElementTypeOrSelf(value) == to)
      return value;
    if (auto vector = dyn_cast<VectorType>(value.getType()))
      to = vector.clone(to);
    return arith::TruncFOp::create(b.builder, b.loc, to, value);
  }

  IndexBuilder b;
  FragmentType type;
  Region &places;
  Value firstRow;
  FirstPlace first;
};

struct LowerStoreRows : OpConversionPattern<StoreRowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(StoreRowsOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    FragmentType type = op.getValue().getType();
    SmallVector<Value> elements =
        unpack(rewriter, op.getLoc(), type, adaptor.getValue());
    RowStorer storer(rewriter, op.getLoc(), type, op.getBody(), op.getRow(),
                     op.getThread());
    Value memref = op.getMemref();
    if (type.hasColumns())
      storer.forRows([&](size_t number, ArrayRef<Value> indices) {
        storer.storeRuns(elements, number, memref, indices, op.getColumn(),
                         op.getAlignment());
      });
    else
      storer.forRows(
          [&](size_t number, ArrayRef<Value> indices) {
            storer.store(elements[number], memref, indices);
          },
          storer.isFirst());
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerStoreSplit : OpConversionPattern<StoreSplitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(StoreSplitOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RowStorer storer(rewriter, op.getLoc(), op.getAcc().getType(), op.getBody(),
                     op.getRow(), op.getThread());
    SmallVector<Value> elements(adaptor.getAcc());
    storer.forRows([&](size_t number, ArrayRef<Value> indices) {
      storer.storeRuns(elements, number, op.getAccs(), indices, op.getColumn(),
                       op.getAlignment());
      storer.runIf(storer.isFirst(op.getColumn()), [&] {
        auto store = [&](int64_t index, ValueRange numbers) {
          SmallVector<Value> stateIndices(indices);
          stateIndices.push_back(storer.index(index));
          storer.store(numbers[number], op.getStates(), stateIndices);
        };
        store(0, adaptor.getMax());
        store(1, adaptor.getSum());
      });
    });
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void kvcache::populateRowPatterns(const TypeConverter &converter,
                                  RewritePatternSet &patterns) {
  patterns.add<LowerStoreRows, LowerStoreSplit>(converter,
                                                patterns.getContext());
}
