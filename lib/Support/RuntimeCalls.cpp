//===- RuntimeCalls.cpp - Calls of the runtime from host code -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Support/RuntimeCalls.h"

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

LLVM::LLVMFuncOp RuntimeCalls::declare(StringRef function, Type resultType,
                                       ArrayRef<Type> types, bool isVarArg) {
  if (auto known = symbols.lookup<LLVM::LLVMFuncOp>(function))
    return known;
  if (!resultType)
    resultType = LLVM::LLVMVoidType::get(module.getContext());
  auto type = LLVM::LLVMFunctionType::get(resultType, types, isVarArg);
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  auto declared =
      LLVM::LLVMFuncOp::create(builder, module.getLoc(), function, type);
  symbols.insert(declared);
  // The caller extends operands narrower than a C int.
  for (auto [index, parameter] : llvm::enumerate(types))
    if (auto integer = dyn_cast<IntegerType>(parameter);
        integer && integer.getWidth() < 32)
      declared.setArgAttr(index, LLVM::LLVMDialect::getZExtAttrName(),
                          builder.getUnitAttr());
  return declared;
}

Value RuntimeCalls::call(OpBuilder &builder, Location loc, StringRef function,
                         Type resultType, ValueRange operands) {
  LLVM::LLVMFuncOp callee =
      declare(function, resultType, llvm::to_vector(operands.getTypes()));
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

LLVM::GlobalOp
RuntimeCalls::createConstant(Location loc, StringRef name, Type type,
                             function_ref<Value(OpBuilder &)> build) {
  LLVM::GlobalOp global = createConstant(loc, name, type, Attribute());
  OpBuilder builder(global.getContext());
  builder.createBlock(&global.getInitializerRegion());
  LLVM::ReturnOp::create(builder, loc, build(builder));
  return global;
}

LLVM::GlobalOp RuntimeCalls::createStruct(
    Location loc, StringRef name, ArrayRef<Type> fields,
    function_ref<void(FieldBuilder &, OpBuilder &)> build) {
  auto type = LLVM::LLVMStructType::getLiteral(module.getContext(), fields);
  return createConstant(loc, name, type, [&](OpBuilder &builder) {
    FieldBuilder values(builder, loc, fields);
    build(values, builder);
    return values.get();
  });
}

LLVM::GlobalOp RuntimeCalls::createStructs(
    Location loc, StringRef name, ArrayRef<Type> fields, size_t count,
    function_ref<void(size_t, FieldBuilder &, OpBuilder &)> build) {
  auto type = LLVM::LLVMStructType::getLiteral(module.getContext(), fields);
  auto arrayType = LLVM::LLVMArrayType::get(type, count);
  return createConstant(loc, name, arrayType, [&](OpBuilder &builder) {
    Value array = LLVM::PoisonOp::create(builder, loc, arrayType);
    for (size_t index = 0; index < count; ++index) {
      FieldBuilder values(builder, loc, fields);
      build(index, values, builder);
      array =
          LLVM::InsertValueOp::create(builder, loc, array, values.get(), index);
    }
    return array;
  });
}

FieldBuilder::FieldBuilder(OpBuilder &builder, Location loc,
                           ArrayRef<Type> fields)
    : builder(builder), loc(loc) {
  auto type = LLVM::LLVMStructType::getLiteral(builder.getContext(), fields);
  value = LLVM::PoisonOp::create(builder, loc, type);
}

void FieldBuilder::set(Value field, ArrayRef<int64_t> position) {
  value = LLVM::InsertValueOp::create(builder, loc, value, field, position);
}

void FieldBuilder::set(int64_t field, Type type, ArrayRef<int64_t> position) {
  set(LLVM::ConstantOp::create(builder, loc, type, field), position);
}
