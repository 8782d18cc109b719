//===- FastSelection.h - Code that is selected fast -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PYTHON_FASTSELECTION_H
#define KVCACHE_PYTHON_FASTSELECTION_H

namespace llvm {
class Module;
} // namespace llvm

namespace mlir::kvcache::python {

/// Rewrites a module so that LLVM's fast instruction selector, which it has
/// where nothing is optimized, selects most of it.
void prepareForFastSelection(llvm::Module &module);

} // namespace mlir::kvcache::python

#endif // KVCACHE_PYTHON_FASTSELECTION_H
