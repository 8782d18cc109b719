//===- PrintArguments.cpp - Operands of printf ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Support/PrintArguments.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Reads a format, and converts an operand for each conversion in it.
class FormatParser {
public:
  explicit FormatParser(gpu::PrintfOp op)
      : op(op), builder(op), loc(op.getLoc()) {}

  LogicalResult parse() {
    StringRef text = op.getFormat();
    while (!text.empty()) {
      size_t begin = std::min(text.find('%'), text.size());
      result.format += text.take_front(begin);
      text = text.drop_front(begin);
      if (text.consume_front("%%"))
        result.format += "%%";
      else if (!text.empty() && failed(parseConversion(text)))
        return failure();
    }
    if (result.operands.size() == op.getArgs().size())
      return success();
    return op.emitOpError("expects a conversion for each operand (")
           << op.getArgs().size() << "), got " << result.operands.size();
  }

  PrintArguments result;

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
    if (result.operands.size() == op.getArgs().size())
      return op.emitOpError("expects a conversion for each operand (")
             << op.getArgs().size() << "), got more";
    Value operand = op.getArgs()[result.operands.size()];
    Type type = operand.getType();
    if (isFloat != isa<FloatType>(type) ||
        !type.isSignlessIntOrIndexOrFloat() ||
        (!type.isIndex() && type.getIntOrFloatBitWidth() > 64))
      return op.emitOpError("has no conversion '%") << kind << "' of " << type;
    text = text.drop_front(parts.front().size());
    result.format += parts[1];
    result.format += isFloat || kind == 'c' ? "" : "ll";
    result.format += kind;
    result.operands.push_back(isFloat ? extendFloat(operand)
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

} // namespace

FailureOr<PrintArguments> kvcache::getPrintArguments(gpu::PrintfOp op) {
  FormatParser parser(op);
  if (failed(parser.parse()))
    return failure();
  return std::move(parser.result);
}
