//===- RuntimeCalls.cpp - Calls of the runtime from host code -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RuntimeCalls.h"

using namespace mlir;
using namespace mlir::kvcache;

FileLineColLoc kvcache::findFileLoc(Location loc) {
  FileLineColLoc found;
  loc->walk([&](Location nested) {
    found = dyn_cast<FileLineColLoc>(nested);
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
}

std::string kvcache::addPosition(Location loc, const Twine &what) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (FileLineColLoc position = findFileLoc(loc))
    os << position.getFilename().getValue() << ":" << position.getLine() << ":"
       << position.getColumn() << ": ";
  os << what;
  return text;
}

Value RuntimeCalls::call(OpBuilder &builder, Location loc, StringRef function,
                         Type resultType, ValueRange operands) {
  auto callee = symbols.lookup<LLVM::LLVMFuncOp>(function);
  if (!callee) {
    if (!resultType)
      resultType = LLVM::LLVMVoidType::get(module.getContext());
    auto type = LLVM::LLVMFunctionType::get(
        resultType, llvm::to_vector(operands.getTypes()));
    OpBuilder atStart = OpBuilder::atBlockBegin(module.getBody());
    callee = LLVM::LLVMFuncOp::create(atStart, module.getLoc(), function, type);
    symbols.insert(callee);
    // The caller extends what is narrower than an int of C.
    for (auto [index, operand] : llvm::enumerate(operands))
      if (auto integer = dyn_cast<IntegerType>(operand.getType());
          integer && integer.getWidth() < 32)
        callee.setArgAttr(index, LLVM::LLVMDialect::getZExtAttrName(),
                          builder.getUnitAttr());
  }
  auto call = LLVM::CallOp::create(builder, loc, callee, operands);
  return call->getNumResults() ? call.getResult() : Value();
}

Value RuntimeCalls::getString(OpBuilder &builder, Location loc,
                              StringRef text) {
  LLVM::GlobalOp &global = strings[text];
  if (!global) {
    std::string bytes = (text + Twine('\0')).str();
    global = createConstant(
        module.getLoc(), "kvcache_message",
        LLVM::LLVMArrayType::get(builder.getI8Type(), bytes.size()),
        builder.getStringAttr(bytes));
  }
  return LLVM::AddressOfOp::create(builder, loc, global);
}

LLVM::GlobalOp RuntimeCalls::createConstant(Location loc, StringRef name,
                                            Type type, Attribute value) {
  OpBuilder atStart = OpBuilder::atBlockBegin(module.getBody());
  auto global = LLVM::GlobalOp::create(atStart, loc, type, /*isConstant=*/true,
                                       LLVM::Linkage::Internal, name, value);
  symbols.insert(global);
  return global;
}
