//===- Signature.cpp - Signatures of functions for Python -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Signature.h"
#include "kvcache/IR/KVCacheDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"

using namespace mlir;
using namespace mlir::kvcache;
using namespace mlir::kvcache::python;

static std::string printType(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return llvm::json::fixUTF8(text);
}

/// Finds which tensors of PyTorch are accepted for elements: 0 for the value
/// only, 1 for one that requires a gradient, 2 for a negated part of complex
/// numbers.
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

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

namespace {
/// Lists the numbers and pointers in a type, with their places.
class FieldList {
public:
  explicit FieldList(const DataLayout &layout) : layout(layout) {}

  void add(Type type, int64_t offset) {
    if (auto structure = dyn_cast<LLVM::LLVMStructType>(type)) {
      for (Type part : structure.getBody()) {
        if (!structure.isPacked())
          offset = llvm::alignTo(offset, layout.getTypeABIAlignment(part));
        add(part, offset);
        offset += layout.getTypeSize(part);
      }
      return;
    }
    if (auto array = dyn_cast<LLVM::LLVMArrayType>(type)) {
      // Longer ones are bytes to Python.
      constexpr int64_t most = 64;
      int64_t count = std::min<int64_t>(array.getNumElements(), most);
      for (int64_t i = 0; i < count; ++i)
        add(array.getElementType(),
            offset + i * layout.getTypeSize(array.getElementType()));
      return;
    }
    StringRef kind =
        isa<LLVM::LLVMPointerType>(type) ? "pointer" : getKind(type);
    fields.push_back(llvm::json::Object{
        {"type", printType(type)},
        {"kind", kind},
        {"offset", offset},
        {"bytes", static_cast<int64_t>(layout.getTypeSize(type))}});
  }

  llvm::json::Array take() { return std::move(fields); }

private:
  const DataLayout &layout;
  llvm::json::Array fields;
};
} // namespace

llvm::json::Object kvcache::python::describeKernel(LLVM::LLVMFuncOp kernel) {
  DataLayout layout = DataLayout::closest(kernel);
  llvm::json::Array parameters;
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    auto byValue = kernel.getArgAttrOfType<TypeAttr>(
        index, LLVM::LLVMDialect::getByValAttrName());
    Type passed = byValue ? byValue.getValue() : type;
    FieldList fields(layout);
    fields.add(passed, 0);
    parameters.push_back(llvm::json::Object{
        {"type", printType(passed)},
        {"bytes", static_cast<int64_t>(layout.getTypeSize(passed))},
        {"is_structure",
         byValue != nullptr ||
             !(passed.isIntOrFloat() || isa<LLVM::LLVMPointerType>(passed))},
        {"fields", fields.take()}});
  }
  llvm::json::Array block;
  if (auto sides = kernel->getAttrOfType<DenseI32ArrayAttr>(
          NVVM::NVVMDialect::getReqntidAttrName()))
    for (int32_t side : sides.asArrayRef())
      block.push_back(side);
  return llvm::json::Object{{"name", llvm::json::fixUTF8(kernel.getName())},
                            {"parameters", std::move(parameters)},
                            {"block", std::move(block)}};
}
