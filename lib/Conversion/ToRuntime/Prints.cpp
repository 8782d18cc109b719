//===- Prints.cpp - Prints of host code -----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Conversion/Passes.h"
#include "kvcache/Support/RuntimeCalls.h"
#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include "llvm/Support/Regex.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_LOWERPRINTS
#include "kvcache/Conversion/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The format of a print and its operands, as C's printf takes them: integers
/// of 64 bits, and f64.
class PrintArguments {
public:
  explicit PrintArguments(gpu::PrintfOp op)
      : op(op), builder(op), loc(op.getLoc()) {}

  LogicalResult parse() {
    StringRef text = op.getFormat();
    while (!text.empty()) {
      size_t begin = std::min(text.find('%'), text.size());
      format += text.take_front(begin);
      text = text.drop_front(begin);
      if (text.consume_front("%%"))
        format += "%%";
      else if (!text.empty() && failed(parseConversion(text)))
        return failure();
    }
    if (operands.size() == op.getArgs().size())
      return success();
    return op.emitOpError("expects a conversion for each operand (")
           << op.getArgs().size() << "), got " << operands.size();
  }

  std::string format;
  SmallVector<Value> operands;

private:
  LogicalResult parseConversion(StringRef &text) {
    SmallVector<StringRef> parts;
    if (!conversions.match(text, &parts)) {
      size_t end = text.find_first_not_of("-+ #0123456789.hlLjzt", 1);
      size_t length = end == StringRef::npos ? end : end + 1;
      return op.emitOpError("expects conversions of integers and floats, "
                            "got '")
             << text.take_front(length) << "'";
    }
    char kind = parts.back().front();
    bool isFloat = StringRef("aAeEfFgG").contains(kind);
    if (operands.size() == op.getArgs().size())
      return op.emitOpError("expects a conversion for each operand (")
             << op.getArgs().size() << "), got more";
    Value operand = op.getArgs()[operands.size()];
    Type type = operand.getType();
    if (isFloat != isa<FloatType>(type) ||
        !type.isSignlessIntOrIndexOrFloat() ||
        (!type.isIndex() && type.getIntOrFloatBitWidth() > 64))
      return op.emitOpError("has no conversion '%") << kind << "' of " << type;
    text = text.drop_front(parts.front().size());
    format += parts[1];
    format += isFloat || kind == 'c' ? "" : "ll";
    format += kind;
    operands.push_back(isFloat ? extendFloat(operand)
                               : extendInteger(operand, kind));
    return success();
  }

  /// Narrow floats are extended through f32, as elsewhere.
  Value extendFloat(Value value) {
    for (Type type : {Type(builder.getF32Type()), Type(builder.getF64Type())})
      if (value.getType().getIntOrFloatBitWidth() <
          type.getIntOrFloatBitWidth())
        value = arith::ExtFOp::create(builder, loc, type, value);
    return value;
  }

  Value extendInteger(Value value, char kind) {
    Type i64 = builder.getI64Type();
    bool isSigned = kind == 'd' || kind == 'i';
    if (value.getType().isIndex())
      value = arith::IndexCastOp::create(builder, loc, i64, value);
    else if (value.getType() != i64 && isSigned)
      value = arith::ExtSIOp::create(builder, loc, i64, value);
    else if (value.getType() != i64)
      value = arith::ExtUIOp::create(builder, loc, i64, value);
    if (kind != 'c')
      return value;
    return arith::TruncIOp::create(builder, loc, builder.getI32Type(), value);
  }

  gpu::PrintfOp op;
  OpBuilder builder;
  Location loc;
  /// Flags, width and precision, then a length, then the kind.
  llvm::Regex conversions{"^(%[-+ #0]*[0-9]*(\\.[0-9]*)?)"
                          "(hh|h|ll|l|L|j|z|t)?([aAcdeEfFgGiouxX])"};
};

/// The calls of `kvcachePrint` in one module.
class PrintCalls {
public:
  explicit PrintCalls(ModuleOp module) : runtime(module) {}

  LogicalResult lower(gpu::PrintfOp op) {
    PrintArguments arguments(op);
    if (failed(arguments.parse()))
      return failure();
    OpBuilder builder(op);
    SmallVector<Value> operands = {
        runtime.getString(builder, op.getLoc(), arguments.format)};
    llvm::append_range(operands, arguments.operands);
    LLVM::CallOp::create(builder, op.getLoc(),
                         getFunction(operands.front().getType()), operands);
    op.erase();
    return success();
  }

private:
  LLVM::LLVMFuncOp getFunction(Type pointer) {
    auto function =
        runtime.getSymbols().lookup<LLVM::LLVMFuncOp>("kvcachePrint");
    if (function)
      return function;
    ModuleOp module = runtime.getModule();
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    auto type = LLVM::LLVMFunctionType::get(
        LLVM::LLVMVoidType::get(module.getContext()), pointer,
        /*isVarArg=*/true);
    function = LLVM::LLVMFuncOp::create(builder, module.getLoc(),
                                        "kvcachePrint", type);
    runtime.getSymbols().insert(function);
    return function;
  }

  RuntimeCalls runtime;
};

struct LowerPrints : kvcache::impl::LowerPrintsBase<LowerPrints> {
  void runOnOperation() override {
    // Modules may nest, and each needs strings and a declaration of its own.
    llvm::MapVector<ModuleOp, SmallVector<gpu::PrintfOp>> prints;
    getOperation().walk([&](gpu::PrintfOp op) {
      if (!isInGPUCode(op))
        prints[op->getParentOfType<ModuleOp>()].push_back(op);
    });
    for (auto &[module, ops] : prints) {
      PrintCalls calls(module);
      for (gpu::PrintfOp op : ops)
        if (failed(calls.lower(op)))
          return signalPassFailure();
    }
  }
};

} // namespace
