//===- Compile.h - Modules to GPU objects -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PYTHON_COMPILE_H
#define KVCACHE_PYTHON_COMPILE_H

#include "Diagnostics.h"

namespace mlir::kvcache::python {

/// One GPU module, compiled for one chip.
struct Object {
  std::string module;
  std::string chip;
  /// PTX, or what else the pipeline was asked for.
  std::string data;
  /// The object's properties as JSON.
  std::string properties;
};

struct CompileResult {
  bool succeeded = false;
  std::vector<Object> objects;
  std::vector<DiagnosticRecord> diagnostics;
};

/// Runs passes on a module and collects the objects of the `gpu.binary` ops
/// that this leaves.
CompileResult compile(std::string source, std::string filename,
                      std::string passes);

} // namespace mlir::kvcache::python

#endif // KVCACHE_PYTHON_COMPILE_H
