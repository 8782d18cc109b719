//===- Import.h - LLVM IR of other compilers --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IMPORT_IMPORT_H
#define KVCACHE_IMPORT_IMPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::kvcache {

/// Whether a source is LLVM IR, as text or bitcode, and not MLIR.
bool isLLVMIR(StringRef source);

/// Imports LLVM IR as a module of the LLVM dialect. `filename` is its name in
/// diagnostics. Ops have the locations of the debug information, or else their
/// lines in the text. Null after an error, which the context has reported.
OwningOpRef<ModuleOp> importLLVMIR(StringRef source, StringRef filename,
                                   MLIRContext *context);

/// Registers `--import-kernels` of kvcache-translate: LLVM IR to a module with
/// a gpu.module.
void registerImportKernels();

} // namespace mlir::kvcache

#endif // KVCACHE_IMPORT_IMPORT_H
