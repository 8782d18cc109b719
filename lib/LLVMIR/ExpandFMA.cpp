//===- ExpandFMA.cpp - Fused multiply-adds without the instruction --------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/LLVMIR/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_EXPANDFMA
#include "kvcache/LLVMIR/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;

namespace {

/// Builds arithmetic on f64, and on its bits, of the shape of a type of f32.
class WideBuilder {
public:
  WideBuilder(OpBuilder &builder, Location loc, Type type)
      : builder(builder), loc(loc),
        floats(getTypeLike(type, builder.getF64Type())),
        bits(getTypeLike(type, builder.getI64Type())) {}

  Value extend(Value value) {
    return LLVM::FPExtOp::create(builder, loc, floats, value);
  }
  Value add(Value lhs, Value rhs) {
    return LLVM::FAddOp::create(builder, loc, lhs, rhs);
  }
  Value sub(Value lhs, Value rhs) {
    return LLVM::FSubOp::create(builder, loc, lhs, rhs);
  }
  Value mul(Value lhs, Value rhs) {
    return LLVM::FMulOp::create(builder, loc, lhs, rhs);
  }
  Value truncate(Value value, Type type) {
    return LLVM::FPTruncOp::create(builder, loc, type, value);
  }

  /// The error of a rounded sum, which is exact: Knuth's TwoSum.
  Value computeError(Value lhs, Value rhs, Value sum) {
    Value added = sub(sum, lhs);
    return add(sub(lhs, sub(sum, added)), sub(rhs, added));
  }

  /// Rounds an inexact sum to odd: of the two neighbours of the exact sum, the
  /// one whose last bit is set.
  Value roundToOdd(Value sum, Value error) {
    Value sumBits = castToBits(sum);
    Value signs = LLVM::XOrOp::create(builder, loc, sumBits, castToBits(error));
    // 1 is away from zero, and -1 towards zero.
    Value step = LLVM::OrOp::create(
        builder, loc, LLVM::AShrOp::create(builder, loc, signs, integer(63)),
        integer(1));
    Value isOdd = LLVM::AndOp::create(builder, loc, sumBits, integer(1));
    Value ifEven = LLVM::SubOp::create(builder, loc, isOdd, integer(1));
    // An infinite sum has an error that is not a number.
    Value isInexact =
        LLVM::FCmpOp::create(builder, loc, LLVM::FCmpPredicate::one, error,
                             constant(floats, builder.getF64FloatAttr(0)));
    Value ifInexact = LLVM::SExtOp::create(builder, loc, bits, isInexact);
    Value mask = LLVM::AndOp::create(builder, loc, ifEven, ifInexact);
    step = LLVM::AndOp::create(builder, loc, step, mask);
    return LLVM::BitcastOp::create(
        builder, loc, floats, LLVM::AddOp::create(builder, loc, sumBits, step));
  }

private:
  static Type getTypeLike(Type type, Type element) {
    auto vector = dyn_cast<VectorType>(type);
    return vector ? Type(vector.clone(element)) : element;
  }
  Value castToBits(Value value) {
    return LLVM::BitcastOp::create(builder, loc, bits, value);
  }
  Value integer(int64_t value) {
    return constant(bits, builder.getI64IntegerAttr(value));
  }
  Value constant(Type type, TypedAttr value) {
    if (auto vector = dyn_cast<VectorType>(type))
      value = DenseElementsAttr::get(vector, Attribute(value));
    return LLVM::ConstantOp::create(builder, loc, type, value);
  }

  OpBuilder &builder;
  Location loc;
  Type floats, bits;
};

struct ExpandFMA : kvcache::impl::ExpandFMABase<ExpandFMA> {
  void runOnOperation() override {
    SmallVector<LLVM::FMAOp> ops;
    getOperation()->walk([&](LLVM::FMAOp op) {
      if (getElementTypeOrSelf(op.getType()).isF32())
        ops.push_back(op);
    });
    SymbolTable symbols(getOperation());
    llvm::DenseMap<Type, LLVM::LLVMFuncOp> functions;
    for (LLVM::FMAOp op : ops) {
      LLVM::LLVMFuncOp &function = functions[op.getType()];
      if (!function)
        function = createFunction(op.getType(), symbols);
      OpBuilder builder(op);
      auto call = LLVM::CallOp::create(builder, op.getLoc(), function,
                                       op->getOperands());
      op.replaceAllUsesWith(call.getResult());
      op.erase();
    }
  }

private:
  /// Makes a function of the multiply-adds of a type. Loops with the arithmetic
  /// of each would be ten times as long.
  LLVM::LLVMFuncOp createFunction(Type type, SymbolTable &symbols) {
    Location loc = getOperation().getLoc();
    OpBuilder builder(&getContext());
    auto function = LLVM::LLVMFuncOp::create(
        builder, loc, "kvcache_fma",
        LLVM::LLVMFunctionType::get(type, {type, type, type}),
        LLVM::Linkage::Internal);
    function.setNoInline(true);
    symbols.insert(function);
    builder.setInsertionPointToStart(function.addEntryBlock(builder));
    Value result =
        expand(WideBuilder(builder, loc, type), function.getArguments(), type);
    LLVM::ReturnOp::create(builder, loc, result);
    return function;
  }

  /// The product of two f32 is exact in f64. Its sum, rounded to odd, has
  /// enough bits that rounding it again gives the rounded exact sum (Boldo and
  /// Melquiond, Emulation of FMA and Correctly Rounded Sums).
  static Value expand(WideBuilder wide, ValueRange operands, Type type) {
    Value lhs = wide.extend(operands[0]), rhs = wide.extend(operands[1]);
    Value product = wide.mul(lhs, rhs);
    Value addend = wide.extend(operands[2]);
    Value sum = wide.add(product, addend);
    Value error = wide.computeError(product, addend, sum);
    return wide.truncate(wide.roundToOdd(sum, error), type);
  }
};

} // namespace
