//===- Signature.h - How to call a function ---------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A call passes its arguments as one array of 64-bit words, the frame. A memref
// takes the words of its descriptor (two pointers, the offset, sizes, strides),
// a scalar one word. Results come back with a word each.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PYTHON_SIGNATURE_H
#define KVCACHE_PYTHON_SIGNATURE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/JSON.h"

namespace mlir::kvcache::python {

/// How the words of a frame become the operands of a compiled function.
struct CallLayout {
  struct Argument {
    bool isMemRef;
    unsigned numWords;
  };
  /// Bytes from the start of the result structure, and size in bytes.
  struct Result {
    unsigned offset;
    unsigned size;
  };
  std::vector<Argument> arguments;
  std::vector<Result> results;

  unsigned getNumWords() const;
};

/// The layout of a function; nothing for one that Python cannot call, because
/// it takes or returns something other than memrefs and numbers.
std::optional<CallLayout> getCallLayout(func::FuncOp function);

/// What Python needs to know to check and convert arguments and results.
llvm::json::Object describe(func::FuncOp function);

} // namespace mlir::kvcache::python

#endif // KVCACHE_PYTHON_SIGNATURE_H
