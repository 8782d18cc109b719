//===- RuntimeCalls.h - Calls of the runtime from host code -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_RUNTIMECALLS_RUNTIMECALLS_H
#define KVCACHE_LIB_CONVERSION_RUNTIMECALLS_RUNTIMECALLS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::kvcache {

/// The source position behind a location, however it is wrapped; null if there
/// is none.
FileLineColLoc findFileLoc(Location loc);

/// `file:line:col: what`, or `what` alone where there is no position.
std::string addPosition(Location loc, const Twine &what);

/// The fields of a structure of the C ABI, in the order of its declaration.
class FieldBuilder {
public:
  FieldBuilder(OpBuilder &builder, Location loc, ArrayRef<Type> fields);

  /// Fields that are not set have no value.
  void set(Value value, ArrayRef<int64_t> position);
  void set(int64_t value, Type type, ArrayRef<int64_t> position);

  Value get() const { return value; }

private:
  OpBuilder &builder;
  Location loc;
  Value value;
};

/// The declarations and strings that a module's calls of the functions in
/// `kvcache/Runtime` need.
class RuntimeCalls {
public:
  explicit RuntimeCalls(ModuleOp module) : module(module), symbols(module) {}

  /// Calls a function and returns its result, null for `void`. Operands that C
  /// would extend are unsigned.
  Value call(OpBuilder &builder, Location loc, StringRef function,
             Type resultType, ValueRange operands);

  /// The address of a constant string that ends in a zero byte.
  Value getString(OpBuilder &builder, Location loc, StringRef text);

  /// Makes a constant that only this module sees, under `name` or one like it.
  /// Without a value, the caller gives it an initializer.
  LLVM::GlobalOp createConstant(Location loc, StringRef name, Type type,
                                Attribute value);

  /// The same, with the value that `build` gives.
  LLVM::GlobalOp createConstant(Location loc, StringRef name, Type type,
                                function_ref<Value(OpBuilder &)> build);

  /// A constant structure, whose fields `build` sets.
  LLVM::GlobalOp
  createStruct(Location loc, StringRef name, ArrayRef<Type> fields,
               function_ref<void(FieldBuilder &, OpBuilder &)> build);

  /// A constant array of structures, whose fields `build` sets.
  LLVM::GlobalOp
  createStructs(Location loc, StringRef name, ArrayRef<Type> fields,
                size_t count,
                function_ref<void(size_t, FieldBuilder &, OpBuilder &)> build);

  ModuleOp getModule() const { return module; }
  SymbolTable &getSymbols() { return symbols; }

private:
  ModuleOp module;
  SymbolTable symbols;
  llvm::StringMap<LLVM::GlobalOp> strings;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CONVERSION_RUNTIMECALLS_RUNTIMECALLS_H
