//===- Signature.cpp - What Python knows of a function --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Signature.h"
#include "kvcache/IR/KVCacheDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::kvcache;
using namespace mlir::kvcache::python;

static std::string printType(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return llvm::json::fixUTF8(text);
}

/// What a tensor of PyTorch with such elements may be: 0 for its value only, 1
/// for one that requires a gradient, 2 for a negated part of complex numbers.
static int getPrecision(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (!isa<MemRefType>(type) || !isa<FloatType>(element))
    return 0;
  return element.isF16() || element.isF32() || element.isF64() ? 2 : 1;
}

static StringRef getKind(Type type) {
  if (isa<MemRefType>(type))
    return "memref";
  if (isa<FloatType>(type))
    return "float";
  return type.isIntOrIndex() ? "integer" : "other";
}

llvm::json::Object kvcache::python::describe(func::FuncOp function) {
  llvm::json::Array arguments;
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    auto name = function.getArgAttrOfType<StringAttr>(
        index, KVCacheDialect::kArgNameAttr);
    bool isReadOnly =
        function.getArgAttr(index, LLVM::LLVMDialect::getReadonlyAttrName()) !=
        nullptr;
    arguments.push_back(llvm::json::Object{
        {"name", name ? llvm::json::fixUTF8(name.getValue()) : ""},
        {"text", printType(argument.getType())},
        {"kind", getKind(argument.getType())},
        {"precision", getPrecision(argument.getType())},
        {"readonly", isReadOnly}});
  }
  return llvm::json::Object{{"name", llvm::json::fixUTF8(function.getName())},
                            {"text", printType(function.getFunctionType())},
                            {"arguments", std::move(arguments)},
                            {"num_results", function.getNumResults()}};
}
