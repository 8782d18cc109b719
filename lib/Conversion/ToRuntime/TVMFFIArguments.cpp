//===- TVMFFIArguments.cpp - What TVM-FFI can pass to functions -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TVMFFIArguments.h"
#include "kvcache/IR/CacheShape.h"
#include "kvcache/IR/DenseOperands.h"
#include "kvcache/IR/Formats.h"
#include "kvcache/IR/KVCacheDialect.h"
#include "kvcache/Runtime/TVMFFI.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

std::optional<NumberType> kvcache::getNumberType(Type type) {
  if (type.isIndex())
    return NumberType{/*code=*/0, 64, 64, /*isSignless=*/true};
  if (auto real = dyn_cast<FloatType>(type)) {
    const ElementFormat *format = lookupFormat(real);
    if (!format)
      return std::nullopt;
    int32_t bits = real.getWidth();
    return NumberType{format->code, bits, std::max(bits, 8),
                      /*isSignless=*/false};
  }
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer || integer.getWidth() == 0 || integer.getWidth() > 64)
    return std::nullopt;
  int32_t bits = integer.getWidth(), code = integer.isUnsigned();
  int32_t memoryBits = llvm::PowerOf2Ceil(std::max(bits, 8));
  return NumberType{code, bits, memoryBits, integer.isSignless()};
}

std::optional<NumberType> kvcache::getElementType(Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  std::optional<NumberType> element =
      memref && memref.isStrided() ? getNumberType(memref.getElementType())
                                   : std::nullopt;
  if (!element || isa<FloatType>(memref.getElementType()))
    return element;
  constexpr int32_t boolCode = 6;
  if (element->bits == 1 && element->isSignless)
    return NumberType{boolCode, 1, 8, /*isSignless=*/false};
  if (element->bits != element->memoryBits)
    return std::nullopt;
  return element;
}

std::string kvcache::toString(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

std::string kvcache::findObstacle(func::FuncOp function) {
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
    if (!getElementType(type) && !getNumberType(type))
      return llvm::formatv("argument {0} is {1}, and only memrefs and numbers "
                           "can be passed",
                           index, toString(type));
  for (Type type : function.getResultTypes())
    if (!getNumberType(type))
      return llvm::formatv("it returns {0}, and only numbers can be returned: "
                           "write other results to memref arguments",
                           toString(type));
  return "";
}

//===----------------------------------------------------------------------===//
// Uses
//===----------------------------------------------------------------------===//

/// The bytes of which the distances between pages are multiples, if `use` is
/// the use of the blocks or the scales of a cache.
static std::optional<int64_t> getUnitOfUse(OpOperand &use) {
  auto bundle = dyn_cast<BundleOpInterface>(use.getOwner());
  Value value = use.get();
  if (!bundle || (value != bundle.getBlocks() && value != bundle.getScales()))
    return std::nullopt;
  CacheTypeInterface view =
      getViewType(bundle.getBundle().getType(), value == bundle.getScales());
  return getDistanceUnit(view) * view.getStorageType().getIntOrFloatBitWidth() /
         8;
}

/// Finds the unit of all uses of a value, also through calls and casts; 0 if it
/// holds neither blocks nor scales. `seen` holds the visited values.
static int64_t getUnit(Value value, llvm::DenseSet<Value> &seen) {
  if (!isa<MemRefType>(value.getType()) || !seen.insert(value).second)
    return 0;
  int64_t unit = 0;
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    unit = std::max(unit, getUnitOfUse(use).value_or(0));
    if (auto cast = dyn_cast<memref::CastOp>(user))
      unit = std::max(unit, getUnit(cast, seen));
    auto call = dyn_cast<func::CallOp>(user);
    auto callee = call ? SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
                             call, call.getCalleeAttr())
                       : func::FuncOp();
    if (callee && !callee.isExternal())
      unit = std::max(
          unit, getUnit(callee.getArgument(use.getOperandNumber()), seen));
  }
  return unit;
}

/// The bytes that the address of a dense array, and open strides of its rows,
/// are multiples of: kernels use wide accesses. 0 if no op on whole caches
/// takes it.
static int64_t getUnitOfRows(BlockArgument argument, bool isOfGPU) {
  auto type = dyn_cast<MemRefType>(argument.getType());
  auto isDense = [&](Operation *user) {
    return llvm::any_of(getVectorOperands(user), [&](DenseOperand operand) {
      return operand.value == argument;
    });
  };
  if (!type || llvm::none_of(argument.getUsers(), isDense))
    return 0;
  return isOfGPU ? getRowAlignment(type) : type.getElementTypeBitWidth() / 8;
}

void kvcache::addUses(BlockArgument argument, func::FuncOp function,
                      bool isOfGPU, int32_t &flags, int32_t &alignment) {
  if (function.getArgAttr(argument.getArgNumber(),
                          LLVM::LLVMDialect::getReadonlyAttrName()))
    flags |= KVCACHE_READONLY;
  llvm::DenseSet<Value> seen;
  int64_t unit = getUnit(argument, seen);
  if (int64_t rows = unit ? 0 : getUnitOfRows(argument, isOfGPU)) {
    flags |= KVCACHE_ROWS | static_cast<int32_t>(rows << KVCACHE_UNIT_SHIFT);
    alignment = std::max<int32_t>(alignment, rows);
  }
  if (unit == 0)
    return;
  flags |= KVCACHE_CACHE | static_cast<int32_t>(unit << KVCACHE_UNIT_SHIFT);
  alignment = std::max<int32_t>(alignment, kPromisedAlignment);
}
