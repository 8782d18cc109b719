//===- RuntimeCalls.h - Calls of the runtime from host code -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_SUPPORT_RUNTIMECALLS_H
#define KVCACHE_SUPPORT_RUNTIMECALLS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::kvcache {

/// Returns the source position inside a location, or null.
FileLineColLoc findFileLoc(Location loc);

/// Returns `file:line:col: what`, or only `what` without a position.
std::string addPosition(Location loc, const Twine &what);

/// Builds a structure of the C ABI, with its fields in declaration order.
class FieldBuilder {
public:
  FieldBuilder(OpBuilder &builder, Location loc, ArrayRef<Type> fields);

  /// Sets a field. Unset fields are undefined.
  void set(Value value, ArrayRef<int64_t> position);
  void set(int64_t value, Type type, ArrayRef<int64_t> position);

  Value get() const { return value; }

private:
  OpBuilder &builder;
  Location loc;
  Value value;
};

/// The name of the constant `KVCacheKernels` that lists the kernels that the
/// functions of a module launch.
inline constexpr llvm::StringLiteral
    kLaunchedKernels("kvcache_launched_kernels");

/// Builds calls of the functions in `kvcache/Runtime`, with the declarations
/// and strings that they need in the module.
class RuntimeCalls {
public:
  explicit RuntimeCalls(ModuleOp module) : module(module), symbols(module) {}

  /// Returns the function of this name, and declares it if there is none. A
  /// null result type is `void`. Extends narrow operands as unsigned.
  LLVM::LLVMFuncOp declare(StringRef function, Type resultType,
                           ArrayRef<Type> types, bool isVarArg = false);

  /// Calls a function and returns its result, or null for `void`.
  Value call(OpBuilder &builder, Location loc, StringRef function,
             Type resultType, ValueRange operands);

  /// Returns the address of a constant string that ends with a zero byte.
  Value getString(OpBuilder &builder, Location loc, StringRef text);

  /// Creates a private constant with a unique name derived from `name`. Without
  /// a value, the caller adds an initializer.
  LLVM::GlobalOp createConstant(Location loc, StringRef name, Type type,
                                Attribute value);

  /// Creates a constant with the value that `build` returns.
  LLVM::GlobalOp createConstant(Location loc, StringRef name, Type type,
                                function_ref<Value(OpBuilder &)> build);

  /// Creates a constant structure, whose fields `build` sets.
  LLVM::GlobalOp
  createStruct(Location loc, StringRef name, ArrayRef<Type> fields,
               function_ref<void(FieldBuilder &, OpBuilder &)> build);

  /// Creates a constant array of structures, whose fields `build` sets.
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

#endif // KVCACHE_SUPPORT_RUNTIMECALLS_H
