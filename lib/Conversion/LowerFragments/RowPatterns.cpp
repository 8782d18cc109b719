//===- RowPatterns.cpp - Lower stores of rows of fragments ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Registers.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Stores the elements of a thread, one row after the other.
class RowStorer {
public:
  RowStorer(OpBuilder &builder, StoreRowsOp op, ArrayRef<Value> elements)
      : b(builder, op.getLoc()), op(op), type(op.getValue().getType()),
        elements(elements), first(FirstPlace::get(b, type.getLayout())) {}

  void emit() {
    const auto &digits = LayoutDigits::get(type.getLayout());
    for (auto [number, row] : llvm::enumerate(digits.getRows())) {
      SmallVector<Value> indices = emitPlace(row);
      Value isStored = indices.pop_back_val();
      // Of the lanes that share a number, the first stores it.
      if (!type.hasColumns())
        isStored = arith::AndIOp::create(b.builder, b.loc, isStored,
                                         b.equal(first.column, b.index(0)));
      b.runIf(isStored, [&, number = number, row = row] {
        type.hasColumns() ? storeRuns(row, indices)
                          : storeElement(elements[number], indices);
      });
    }
  }

private:
  /// Emits the region for a row, and returns what it yields.
  SmallVector<Value> emitPlace(int64_t row) {
    Block &body = op.getBody().front();
    IRMapping mapping;
    mapping.map(body.getArgument(0),
                b.add(b.add(op.getRow(), first.row), b.index(row)));
    for (Operation &each : body.without_terminator())
      b.builder.clone(each, mapping);
    return llvm::map_to_vector(
        body.getTerminator()->getOperands(),
        [&](Value value) { return mapping.lookupOrDefault(value); });
  }

  void storeElement(Value element, ValueRange indices) {
    memref::StoreOp::create(b.builder, b.loc, round(element), op.getMemref(),
                            indices);
  }

  void storeRuns(int64_t row, ArrayRef<Value> indices) {
    auto places =
        LayoutDigits::get(type.getLayout()).getPlaces(type.getColumns());
    int64_t size = getRunSize(type);
    Value column = b.add(op.getColumn(), first.column);
    for (size_t i = 0; i < places.size(); i += size) {
      if (places[i].row != row)
        continue;
      Value run = vector::FromElementsOp::create(
          b.builder, b.loc, VectorType::get(size, type.getElementType()),
          elements.slice(i, size));
      SmallVector<Value> all(indices);
      all.push_back(b.add(column, b.index(places[i].column)));
      vector::StoreOp::create(b.builder, b.loc, round(run), op.getMemref(), all,
                              /*nontemporal=*/false, getAlignment());
    }
  }

  llvm::MaybeAlign getAlignment() {
    int64_t bytes = getElement().getIntOrFloatBitWidth() / 8;
    return llvm::MaybeAlign(op.getAlignment().value_or(bytes));
  }

  Type getElement() {
    return cast<MemRefType>(op.getMemref().getType()).getElementType();
  }

  Value round(Value value) {
    if (getElementTypeOrSelf(value) == getElement())
      return value;
    Type to = getElement();
    if (auto vector = dyn_cast<VectorType>(value.getType()))
      to = vector.clone(to);
    return arith::TruncFOp::create(b.builder, b.loc, to, value);
  }

  IndexBuilder b;
  StoreRowsOp op;
  FragmentType type;
  ArrayRef<Value> elements;
  FirstPlace first;
};

struct LowerStoreRows : OpConversionPattern<StoreRowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(StoreRowsOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> elements = unpack(
        rewriter, op.getLoc(), op.getValue().getType(), adaptor.getValue());
    RowStorer(rewriter, op, elements).emit();
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void kvcache::populateRowPatterns(const TypeConverter &converter,
                                  RewritePatternSet &patterns) {
  patterns.add<LowerStoreRows>(converter, patterns.getContext());
}
