//===- SourceFormats.h - Formats besides MLIR -------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_COMPILE_SOURCEFORMATS_H
#define KVCACHE_COMPILE_SOURCEFORMATS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::kvcache {

/// A format of sources of kernels besides MLIR's text and bytecode.
struct SourceFormat {
  /// Whether a source has this format.
  bool (*matches)(StringRef contents);
  /// Reads a source; null after an error, which goes to the context.
  OwningOpRef<ModuleOp> (*import)(StringRef contents, StringRef filename,
                                  MLIRContext *context);
};

/// Adds a format, for the whole process.
void registerSourceFormat(SourceFormat format);

/// The registered format of a source; null for MLIR's own.
const SourceFormat *findSourceFormat(StringRef contents);

} // namespace mlir::kvcache

#endif // KVCACHE_COMPILE_SOURCEFORMATS_H
