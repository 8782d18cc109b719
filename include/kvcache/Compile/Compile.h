//===- Compile.h - Modules to GPU objects -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_COMPILE_COMPILE_H
#define KVCACHE_COMPILE_COMPILE_H

#include "kvcache/Compile/Diagnostics.h"

namespace mlir::kvcache {

/// How kernels are compiled.
struct CompileOptions {
  /// For a gpu.module that names no targets itself, such as sm_90a.
  std::vector<std::string> chips;
  /// ptx, cubin or fatbin; the latter two run ptxas.
  std::string format = "ptx";
  /// 0 to 3, for LLVM and for ptxas.
  int optLevel = 3;
  /// Whether kernels trap with a message on a bad page id, token, head or
  /// misaligned index.
  bool boundsChecks = false;
  /// The folder of the CUDA toolkit, with bin/ptxas; empty to look for one.
  std::string toolkit;
};

/// What others need to know of a kernel in order to launch it.
struct CompiledKernel {
  struct Parameter {
    std::string name;
    /// In MLIR's syntax, such as `!llvm.ptr`.
    std::string type;
  };
  std::string name;
  std::vector<Parameter> parameters;
  /// Threads along x, y and z; empty where they are not known.
  std::vector<int32_t> blockSize;
  /// Bytes that a launch has to ask for.
  int64_t dynamicSharedMemory = 0;
};

/// One GPU module, compiled for one chip.
struct CompiledObject {
  std::string module;
  std::string chip;
  /// PTX as text, or the bytes of a cubin or a fat binary.
  std::string data;
  /// The object's properties as JSON.
  std::string properties;
  std::vector<CompiledKernel> kernels;
};

struct CompileResult {
  bool succeeded = false;
  std::vector<CompiledObject> objects;
  std::vector<DiagnosticRecord> diagnostics;
};

/// Compiles the kernels of MLIR text or bytecode. `filename` is its name in
/// locations. Any number of threads may compile at a time.
CompileResult compile(std::string source, std::string filename,
                      CompileOptions options);

} // namespace mlir::kvcache

#endif // KVCACHE_COMPILE_COMPILE_H
