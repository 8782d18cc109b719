//===- Signature.h - Signatures of functions for Python ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PYTHON_SIGNATURE_H
#define KVCACHE_PYTHON_SIGNATURE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/JSON.h"

namespace mlir::kvcache::python {

/// Name and type of a function and of its arguments, as far as Python needs
/// them to pass values on. The function's wrapper checks the values.
llvm::json::Object describe(func::FuncOp function);

/// Name and parameters of a kernel of the LLVM dialect: type, size, and for a
/// structure its fields. Those that it gets by value are in memory.
llvm::json::Object describeKernel(LLVM::LLVMFuncOp kernel);

} // namespace mlir::kvcache::python

#endif // KVCACHE_PYTHON_SIGNATURE_H
