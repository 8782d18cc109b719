//===- BodySelection.h - Functions that choose their body -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PYTHON_BODYSELECTION_H
#define KVCACHE_PYTHON_BODYSELECTION_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace llvm {
class Module;
} // namespace llvm

namespace mlir::kvcache::python {

/// Makes each TVM-FFI wrapper of a module its function's body for a level: the
/// name gets the level, and no other definition is visible outside of the
/// module. Returns the names of the wrappers from before.
std::vector<std::string> makeBodies(llvm::Module &module, StringRef level);

/// Compiles the wrappers of a library whose bodies are in other object files.
/// A wrapper calls the body that kvcacheSelectBody returns at its first call.
/// `levels` are from the lowest on.
llvm::Expected<std::string> compileSelectors(ArrayRef<std::string> wrappers,
                                             ArrayRef<std::string> levels);

} // namespace mlir::kvcache::python

#endif // KVCACHE_PYTHON_BODYSELECTION_H
