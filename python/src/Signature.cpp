//===- Signature.cpp - How to call a function -----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Signature.h"
#include "kvcache/IR/KVCache.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::kvcache;
using namespace mlir::kvcache::python;

static constexpr unsigned kWordBytes = 8;
/// Blocks and scales of a cache start at a multiple of 16 bytes, which wide
/// accesses count on.
static constexpr unsigned kCacheAlignment = 16;

/// Bytes that a number takes in memory, 0 for other types and for numbers that
/// don't fit into a word.
static unsigned getScalarSize(Type type) {
  if (type.isIndex())
    return kWordBytes;
  if (!type.isIntOrFloat() || type.getIntOrFloatBitWidth() == 0 ||
      type.getIntOrFloatBitWidth() > 64)
    return 0;
  return llvm::PowerOf2Ceil(llvm::divideCeil(type.getIntOrFloatBitWidth(), 8));
}

/// A memref that a descriptor of base, sizes and strides can describe.
static bool isStridedMemRef(Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  return memref && memref.isStrided() &&
         getScalarSize(memref.getElementType()) != 0;
}

unsigned CallLayout::getNumWords() const {
  unsigned numWords = 0;
  for (const Argument &argument : arguments)
    numWords += argument.numWords;
  return numWords;
}

std::optional<CallLayout>
kvcache::python::getCallLayout(func::FuncOp function) {
  CallLayout layout;
  for (Type type : function.getArgumentTypes()) {
    if (isStridedMemRef(type)) {
      unsigned rank = cast<MemRefType>(type).getRank();
      layout.arguments.push_back({/*isMemRef=*/true, 3 + 2 * rank});
    } else if (getScalarSize(type)) {
      layout.arguments.push_back({/*isMemRef=*/false, 1});
    } else {
      return std::nullopt;
    }
  }
  // Several results come back in a structure with C's layout.
  unsigned offset = 0;
  for (Type type : function.getResultTypes()) {
    unsigned size = getScalarSize(type);
    if (!size)
      return std::nullopt;
    offset = llvm::alignTo(offset, size);
    layout.results.push_back({offset, size});
    offset += size;
  }
  return layout;
}

static std::string toString(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return llvm::json::fixUTF8(text);
}

static llvm::json::Array describe(ArrayRef<int64_t> sizes) {
  llvm::json::Array array;
  for (int64_t size : sizes)
    array.push_back(ShapedType::isDynamic(size) ? llvm::json::Value(nullptr)
                                                : llvm::json::Value(size));
  return array;
}

static llvm::json::Object describe(Type type) {
  llvm::json::Object object{{"text", toString(type)}};
  if (getScalarSize(type)) {
    object["kind"] = "scalar";
  } else if (isStridedMemRef(type)) {
    auto memref = cast<MemRefType>(type);
    auto [strides, offset] = memref.getStridesAndOffset();
    object["kind"] = "memref";
    object["element"] = toString(memref.getElementType());
    object["shape"] = describe(memref.getShape());
    object["strides"] = describe(strides);
    object["offset"] = ShapedType::isDynamic(offset) ? 0 : offset;
    object["contiguous"] = memref.getLayout().isIdentity();
  } else {
    object["kind"] = "other";
  }
  return object;
}

/// Whether an op makes a collection.
static bool makesCollection(Operation *op) {
  return llvm::any_of(op->getResultTypes(), [](Type type) {
    auto cache = dyn_cast<kvcache::CacheTypeInterface>(type);
    return cache && cache.isCollection();
  });
}

/// Blocks and scales are the operands of a collection that have its six
/// dimensions, also where a call or a cast comes between. `seen` holds the
/// values that were looked at.
static bool holdsCache(Value value, llvm::DenseSet<Value> &seen) {
  auto memref = dyn_cast<MemRefType>(value.getType());
  if (!memref || memref.getRank() != 6 || !seen.insert(value).second)
    return false;
  return llvm::any_of(value.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (makesCollection(user))
      return true;
    if (auto cast = dyn_cast<memref::CastOp>(user))
      return holdsCache(cast, seen);
    auto call = dyn_cast<func::CallOp>(user);
    auto callee = call ? SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
                             call, call.getCalleeAttr())
                       : func::FuncOp();
    return callee && !callee.isExternal() &&
           holdsCache(callee.getArgument(use.getOperandNumber()), seen);
  });
}

llvm::json::Object kvcache::python::describe(func::FuncOp function) {
  llvm::json::Array arguments;
  for (BlockArgument argument : function.getArguments()) {
    llvm::json::Object object = ::describe(argument.getType());
    unsigned index = argument.getArgNumber();
    if (auto name = function.getArgAttrOfType<StringAttr>(
            index, KVCacheDialect::kArgNameAttr))
      object["name"] = llvm::json::fixUTF8(name.getValue());
    object["readonly"] =
        function.getArgAttr(index, LLVM::LLVMDialect::getReadonlyAttrName()) !=
        nullptr;
    llvm::DenseSet<Value> seen;
    object["alignment"] = holdsCache(argument, seen) ? kCacheAlignment : 1;
    arguments.push_back(std::move(object));
  }
  llvm::json::Array results;
  for (Type type : function.getResultTypes())
    results.push_back(::describe(type));
  return llvm::json::Object{{"name", llvm::json::fixUTF8(function.getName())},
                            {"text", toString(function.getFunctionType())},
                            {"arguments", std::move(arguments)},
                            {"results", std::move(results)}};
}
