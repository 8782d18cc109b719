//===- EmulateTiles.cpp - Products of AMX tiles by vectors ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Conversion/Passes.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_EMULATETILES
#include "kvcache/Conversion/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;

/// Rows of a tile, and its columns of 32 bits.
constexpr int64_t kRows = 16, kColumns = 16;

/// A tile of 16 rows of 64 bytes as rows of f32, or of pairs of bf16 as i32.
/// Null for others.
static VectorType getRows(amx::TileType type) {
  Type element = type.getElementType();
  int64_t columns = element.isF32() ? kColumns : 2 * kColumns;
  if (type.getShape() != ArrayRef({kRows, columns}) ||
      !(element.isF32() || element.isBF16()))
    return {};
  Type word =
      element.isF32() ? element : IntegerType::get(type.getContext(), 32);
  return VectorType::get({kRows, kColumns}, word);
}

namespace {

/// Indices of the rows of a tile in memory.
class TileMemory {
public:
  TileMemory(OpBuilder &builder, Location loc, ValueRange indices)
      : builder(builder), loc(loc), indices(indices) {}

  SmallVector<Value> getRow(int64_t row) const {
    SmallVector<Value> own(indices);
    Value &index = own[own.size() - 2];
    Value step = arith::ConstantIndexOp::create(builder, loc, row);
    index = arith::AddIOp::create(builder, loc, index, step);
    return own;
  }

private:
  OpBuilder &builder;
  Location loc;
  ValueRange indices;
};

struct EmulateZero : OpConversionPattern<amx::TileZeroOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(amx::TileZeroOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type type = getTypeConverter()->convertType(op.getType());
    if (!type)
      return rewriter.notifyMatchFailure(op, "expects 16 rows of 64 bytes");
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(op,
                                                   rewriter.getZeroAttr(type));
    return success();
  }
};

struct EmulateLoad : OpConversionPattern<amx::TileLoadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(amx::TileLoadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = dyn_cast_or_null<VectorType>(
        getTypeConverter()->convertType(op.getType()));
    Type element = op.getMemRefType().getElementType();
    if (!type || op.getStride() || element.getIntOrFloatBitWidth() != 32)
      return rewriter.notifyMatchFailure(
          op, "expects 16 rows of a matrix of 32-bit elements");
    Location loc = op.getLoc();
    TileMemory memory(rewriter, loc, adaptor.getIndices());
    Value tile =
        arith::ConstantOp::create(rewriter, loc, rewriter.getZeroAttr(type));
    for (int64_t row = 0; row < kRows; ++row) {
      Value vector = vector::LoadOp::create(
          rewriter, loc, VectorType::get(kColumns, element), adaptor.getBase(),
          memory.getRow(row));
      if (element != type.getElementType())
        vector = vector::BitCastOp::create(
            rewriter, loc, VectorType::get(kColumns, type.getElementType()),
            vector);
      tile = vector::InsertOp::create(rewriter, loc, vector, tile, row);
    }
    rewriter.replaceOp(op, tile);
    return success();
  }
};

struct EmulateStore : OpConversionPattern<amx::TileStoreOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(amx::TileStoreOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = dyn_cast<VectorType>(adaptor.getVal().getType());
    if (!type || op.getStride() ||
        op.getMemRefType().getElementType() != type.getElementType())
      return rewriter.notifyMatchFailure(op, "expects a matrix of f32");
    Location loc = op.getLoc();
    TileMemory memory(rewriter, loc, adaptor.getIndices());
    for (int64_t row = 0; row < kRows; ++row) {
      Value vector =
          vector::ExtractOp::create(rewriter, loc, adaptor.getVal(), row);
      vector::StoreOp::create(rewriter, loc, vector, adaptor.getBase(),
                              memory.getRow(row));
    }
    rewriter.eraseOp(op);
    return success();
  }
};

/// Adds products of pairs to a row of an accumulator, the low halves first.
static Value addPairs(OpBuilder &builder, Location loc, Value pair, Value pairs,
                      Value acc) {
  auto words = cast<VectorType>(pairs.getType());
  pair = vector::BroadcastOp::create(builder, loc, words, pair);
  auto constant = [&](int32_t bits) -> Value {
    return arith::ConstantOp::create(builder, loc,
                                     DenseElementsAttr::get(words, bits));
  };
  auto getLow = [&](Value all) -> Value {
    Value bits = arith::ShLIOp::create(builder, loc, all, constant(16));
    return arith::BitcastOp::create(builder, loc, acc.getType(), bits);
  };
  auto getHigh = [&](Value all) -> Value {
    Value bits = arith::AndIOp::create(builder, loc, all, constant(-(1 << 16)));
    return arith::BitcastOp::create(builder, loc, acc.getType(), bits);
  };
  acc = vector::FMAOp::create(builder, loc, getLow(pair), getLow(pairs), acc);
  return vector::FMAOp::create(builder, loc, getHigh(pair), getHigh(pairs),
                               acc);
}

/// Multiplies in memory of the function, so that the product is a loop.
struct EmulateProduct : OpConversionPattern<amx::TileMulFOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(amx::TileMulFOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto function = op->getParentOfType<FunctionOpInterface>();
    if (!function || !op.getLhsTileType().getElementType().isBF16() ||
        !llvm::all_of(adaptor.getOperands(), [](Value operand) {
          return isa<VectorType>(operand.getType());
        }))
      return rewriter.notifyMatchFailure(op, "expects tiles of bf16");
    Location loc = op.getLoc();
    SmallVector<Value> memory;
    for (Value tile : adaptor.getOperands())
      memory.push_back(spill(tile, function, loc, rewriter));
    Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
    Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
    Value size = arith::ConstantIndexOp::create(rewriter, loc, kRows);
    auto rows = scf::ForOp::create(rewriter, loc, zero, size, one);
    {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(rows.getBody());
      multiplyRow(memory, rows.getInductionVar(), loc, rewriter);
    }
    rewriter.replaceOp(
        op, reload(memory.back(), adaptor.getAcc().getType(), loc, rewriter));
    return success();
  }

private:
  static Value spill(Value tile, FunctionOpInterface function, Location loc,
                     OpBuilder &builder) {
    auto type = cast<VectorType>(tile.getType());
    Value memory;
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(&function.getFunctionBody().front());
      memory = memref::AllocaOp::create(
          builder, loc,
          MemRefType::get(type.getShape(), type.getElementType()));
    }
    Value column = arith::ConstantIndexOp::create(builder, loc, 0);
    for (int64_t i = 0; i < kRows; ++i) {
      Value row = arith::ConstantIndexOp::create(builder, loc, i);
      vector::StoreOp::create(builder, loc,
                              vector::ExtractOp::create(builder, loc, tile, i),
                              memory, ValueRange{row, column});
    }
    return memory;
  }

  static Value reload(Value memory, Type type, Location loc,
                      OpBuilder &builder) {
    auto rows = cast<VectorType>(type);
    Value tile =
        arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
    Value column = arith::ConstantIndexOp::create(builder, loc, 0);
    for (int64_t i = 0; i < kRows; ++i) {
      Value row = arith::ConstantIndexOp::create(builder, loc, i);
      Value vector = vector::LoadOp::create(
          builder, loc, VectorType::get(kColumns, rows.getElementType()),
          memory, ValueRange{row, column});
      tile = vector::InsertOp::create(builder, loc, vector, tile, i);
    }
    return tile;
  }

  /// Adds the products of a row of `lhs` to that of the accumulator.
  static void multiplyRow(ArrayRef<Value> memory, Value row, Location loc,
                          OpBuilder &builder) {
    Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
    Value one = arith::ConstantIndexOp::create(builder, loc, 1);
    Value size = arith::ConstantIndexOp::create(builder, loc, kColumns);
    auto load = [&](Value source, Value from, OpBuilder &inner) -> Value {
      Type element = cast<MemRefType>(source.getType()).getElementType();
      return vector::LoadOp::create(inner, loc,
                                    VectorType::get(kColumns, element), source,
                                    ValueRange{from, zero});
    };
    auto pairs = scf::ForOp::create(
        builder, loc, zero, size, one, load(memory[2], row, builder),
        [&](OpBuilder &inner, Location, Value k, ValueRange carried) {
          Value pair =
              memref::LoadOp::create(inner, loc, memory[0], ValueRange{row, k});
          Value acc = addPairs(inner, loc, pair, load(memory[1], k, inner),
                               carried.front());
          scf::YieldOp::create(inner, loc, acc);
        });
    vector::StoreOp::create(builder, loc, pairs.getResult(0), memory[2],
                            ValueRange{row, zero});
  }
};

struct EmulateTiles : kvcache::impl::EmulateTilesBase<EmulateTiles> {
  void runOnOperation() override {
    TypeConverter converter;
    converter.addConversion([](Type type) { return type; });
    converter.addConversion([](amx::TileType type) -> std::optional<Type> {
      VectorType rows = getRows(type);
      return rows ? Type(rows) : Type();
    });
    ConversionTarget target(getContext());
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    target.addIllegalDialect<amx::AMXDialect>();
    RewritePatternSet patterns(&getContext());
    scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                         target);
    patterns.add<EmulateZero, EmulateLoad, EmulateStore, EmulateProduct>(
        converter, &getContext());
    if (failed(applyPartialConversion(getOperation(), target,
                                      std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
