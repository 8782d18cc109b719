//===- ElementPatterns.cpp - Lower ops on the elements of fragments -------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Registers.h"

#include "kvcache/IR/TileOps.h"
#include "kvcache/Support/Threads.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// A shuffle in which each lane gets its own number. Unlike `gpu.shuffle`,
/// which is pure, the op stays where it is, and equal ones are not folded.
struct LowerOpaqueThread : OpConversionPattern<OpaqueThreadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(OpaqueThreadOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    IndexBuilder b(rewriter, op.getLoc());
    constexpr int64_t allLanes = -1;
    Value thread = NVVM::ShflOp::create(
        rewriter, op.getLoc(), rewriter.getI32Type(), b.i32(allLanes),
        b.toI32(getThread(b)), b.i32(0), b.i32(LayoutDigits::kLanes - 1),
        NVVM::ShflKind::bfly, /*return_value_and_is_valid=*/UnitAttr());
    rewriter.replaceOp(op, b.fromI32(thread));
    return success();
  }
};

struct LowerSplat : OpConversionPattern<SplatOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(SplatOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    FragmentType type = op.getType();
    size_t elements = type.getParts().size();
    if (type.hasColumns())
      elements *= LayoutDigits::get(type).countPacked();
    SmallVector<Value> values(elements, adaptor.getValue());
    rewriter.replaceOpWithMultiple(op,
                                   {pack(rewriter, op.getLoc(), type, values)});
    return success();
  }
};

//===----------------------------------------------------------------------===//
// reduce
//===----------------------------------------------------------------------===//

class RowReducer {
public:
  RowReducer(OpBuilder &builder, ReduceOp op)
      : builder(builder), op(op), loc(op.getLoc()) {}

  /// A number for each row of a thread.
  SmallVector<Value> emit(ValueRange registers, ValueRange init) {
    FragmentType source = op.getSource().getType();
    SmallVector<Value> elements = unpack(builder, loc, source, registers);
    const auto &digits = LayoutDigits::get(source);
    SmallVector<Value> results;
    for (auto [number, row] : llvm::enumerate(LayoutDigits::getRows(source))) {
      SmallVector<Value> inRow;
      if (!source.hasColumns())
        inRow.push_back(elements[number]);
      else
        for (auto [place, element] :
             llvm::zip_equal(LayoutDigits::getPlaces(source), elements))
          if (place.row == row)
            inRow.push_back(element);
      Value result = combineAll(init.empty() ? Value() : init[number], inRow);
      results.push_back(op.getType().getPartial()
                            ? result
                            : exchange(result, digits.getSharerStrides()));
    }
    return op.getScratch() ? combineWarps(results) : results;
  }

private:
  /// Chains are half as long where the order is of no consequence, and where
  /// two sums are one instruction.
  Value combineAll(Value result, ArrayRef<Value> elements) {
    if (op.getKind() == Reduction::AddF && elements.size() % 2 == 0 &&
        elements.front().getType().isF32() &&
        addsPairs(op, op.getSource().getType()))
      return addPairs(result, elements);
    if (op.isIdempotent() && op.getSource().getType().hasColumns() &&
        op.getSource().getType().getLayout() == FragmentLayout::TmemRow)
      return combineInChains(result, elements);
    size_t step = op.isIdempotent() && elements.size() % 2 == 0 ? 2 : 1;
    for (size_t i = 0; i < elements.size(); i += step) {
      Value next =
          step == 1 ? elements[i] : combine(elements[i], elements[i + 1]);
      result = result ? combine(result, next) : next;
    }
    return result;
  }

  /// Combines elements in four chains, and then these. Chips with tensor memory
  /// have an instruction for the next two elements of a chain.
  Value combineInChains(Value result, ArrayRef<Value> elements) {
    constexpr size_t chains = 4;
    SmallVector<Value> combined(elements.take_front(chains));
    for (auto [i, element] : llvm::enumerate(elements.drop_front(chains))) {
      Value &chain = combined[i / 2 % chains];
      chain = combine(chain, element);
    }
    for (Value chain : combined)
      result = result ? combine(result, chain) : chain;
    return result;
  }

  /// Adds elements with even and with odd numbers, and then both sums.
  Value addPairs(Value result, ArrayRef<Value> elements) {
    auto type = VectorType::get(2, elements.front().getType());
    auto join = [&](Value even, Value odd) -> Value {
      return vector::FromElementsOp::create(builder, loc, type,
                                            ValueRange{even, odd});
    };
    Value sums;
    if (result) {
      Value none = arith::ConstantOp::create(
          builder, loc, builder.getFloatAttr(type.getElementType(), -0.0));
      sums = join(result, none);
    }
    for (size_t i = 0; i < elements.size(); i += 2) {
      Value next = join(elements[i], elements[i + 1]);
      sums = sums ? combine(sums, next) : next;
    }
    SmallVector<Value> both = split(builder, loc, sums);
    return combine(both[0], both[1]);
  }

  Value exchange(Value value, ArrayRef<int64_t> strides) {
    for (int64_t stride : strides) {
      auto shuffle = gpu::ShuffleOp::create(
          builder, loc, value, static_cast<int32_t>(stride),
          static_cast<int32_t>(LayoutDigits::kLanes), gpu::ShuffleMode::XOR);
      value = combine(value, shuffle.getShuffleResult());
    }
    return value;
  }

  /// Combines numbers that the lanes of a warp which share a row have alike.
  SmallVector<Value> combineWarps(ArrayRef<Value> results) {
    IndexBuilder b(builder, loc);
    FragmentType source = op.getSource().getType();
    const auto &digits = LayoutDigits::get(source);
    TeamThread thread = TeamThread::get(b, source, op.getThread());
    FirstPlace first = FirstPlace::get(b, source, op.getThread());
    int64_t size = digits.countRun(/*alongRows=*/true);
    auto type = VectorType::get(size, source.getElementType());
    SmallVector<int64_t> rows = LayoutDigits::getRows(source);
    auto getRow = [&](size_t number) {
      return b.add(first.row, b.index(rows[number]));
    };
    b.runIf(b.equal(first.laneColumn, b.index(0)), [&] {
      for (size_t r = 0; r < rows.size(); r += size)
        TileStoreOp::create(builder, loc,
                            vector::FromElementsOp::create(
                                builder, loc, type, results.slice(r, size)),
                            op.getScratch(), thread.warp, getRow(r));
    });
    gpu::BarrierOp::create(builder, loc);
    SmallVector<Value> combined;
    for (size_t r = 0; r < rows.size(); r += size) {
      SmallVector<Value> run;
      for (int64_t warp = 0; warp < digits.countWarps(); ++warp) {
        Value loaded = TileLoadOp::create(builder, loc, type, op.getScratch(),
                                          b.index(warp), getRow(r));
        SmallVector<Value> elements = split(builder, loc, loaded);
        if (warp == 0)
          run = elements;
        else
          for (auto [number, other] : llvm::zip_equal(run, elements))
            number = combine(number, other);
      }
      llvm::append_range(combined, run);
    }
    return combined;
  }

  Value combine(Value a, Value b) {
    switch (op.getKind()) {
    case Reduction::AddF:
      return arith::AddFOp::create(builder, loc, a, b);
    case Reduction::MaxNumF:
      return arith::MaxNumFOp::create(builder, loc, a, b);
    case Reduction::MinNumF:
      return arith::MinNumFOp::create(builder, loc, a, b);
    case Reduction::MaximumF:
      return arith::MaximumFOp::create(builder, loc, a, b);
    case Reduction::MinimumF:
      return arith::MinimumFOp::create(builder, loc, a, b);
    case Reduction::AddI:
      return arith::AddIOp::create(builder, loc, a, b);
    case Reduction::MaxSI:
      return arith::MaxSIOp::create(builder, loc, a, b);
    case Reduction::MinSI:
      return arith::MinSIOp::create(builder, loc, a, b);
    }
    llvm_unreachable("not a reduction");
  }

  OpBuilder &builder;
  ReduceOp op;
  Location loc;
};

struct LowerReduce : OpConversionPattern<ReduceOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ReduceOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> results =
        RowReducer(rewriter, op).emit(adaptor.getSource(), adaptor.getInit());
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }
};

struct LowerWarpAny : OpConversionPattern<WarpAnyOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(WarpAnyOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ValueRange flags = adaptor.getFlags();
    Value any = flags.front();
    for (Value flag : flags.drop_front())
      any = arith::OrIOp::create(rewriter, op.getLoc(), any, flag);
    rewriter.replaceOp(op, voteAny(rewriter, op.getLoc(), any));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// to_operand
//===----------------------------------------------------------------------===//

/// Rounds as many elements at once as a register holds.
struct LowerToOperand : OpConversionPattern<ToOperandOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ToOperandOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type from = op.getSource().getType().getElementType(),
         to = op.getType().getElementType();
    SmallVector<Value> elements(adaptor.getSource());
    int64_t packed = LayoutDigits::get(op.getType()).countPacked();
    auto word = VectorType::get(1, rewriter.getI32Type());
    SmallVector<Value> registers;
    for (ArrayRef<Value> rest = elements; !rest.empty();
         rest = rest.drop_front(packed)) {
      Value all = vector::FromElementsOp::create(rewriter, loc,
                                                 VectorType::get(packed, from),
                                                 rest.take_front(packed));
      if (from != to)
        all = arith::TruncFOp::create(rewriter, loc,
                                      VectorType::get(packed, to), all);
      all = vector::BitCastOp::create(rewriter, loc, word, all);
      registers.push_back(vector::ExtractOp::create(rewriter, loc, all, 0));
    }
    rewriter.replaceOpWithMultiple(op, {registers});
    return success();
  }
};

} // namespace

void kvcache::populateElementPatterns(const TypeConverter &converter,
                                      RewritePatternSet &patterns) {
  patterns.add<LowerOpaqueThread, LowerReduce, LowerSplat, LowerToOperand,
               LowerWarpAny>(converter, patterns.getContext());
}
