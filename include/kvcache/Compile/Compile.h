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

/// Options for the compilation of kernels.
struct CompileOptions {
  /// The chips, such as sm_90a, of every gpu.module without targets.
  std::vector<std::string> chips;
  /// ptx, cubin or fatbin; the latter two run ptxas.
  std::string format = "ptx";
  /// The optimization level of LLVM and ptxas, 0 to 3.
  int optLevel = 3;
  /// Whether kernels trap with a message on an invalid page id, token or head,
  /// or on a misaligned index.
  bool boundsChecks = false;
  /// The folder of the CUDA toolkit, with bin/ptxas and
  /// nvvm/libdevice; empty to search for one.
  std::string toolkit;
  /// A tuning file with configs of attention for the only chip; empty for none.
  std::string tuning;
};

/// The properties of a kernel that a launch needs.
struct CompiledKernel {
  struct Parameter {
    std::string name;
    /// The type in MLIR syntax, such as `!llvm.ptr`.
    std::string type;
    /// Bytes, and those before it in the buffer of all parameters.
    int64_t size = 0, offset = 0;
  };
  std::string name;
  std::vector<Parameter> parameters;
  /// Threads along x, y and z; empty if not known.
  std::vector<int32_t> blockSize;
  /// The bytes of dynamic shared memory that a launch must pass.
  int64_t dynamicSharedMemory = 0;
};

/// One GPU module, compiled for one chip.
struct CompiledObject {
  std::string module;
  std::string chip;
  /// PTX as text, or the bytes of a cubin or a fat binary.
  std::string data;
  /// The properties of the object as JSON.
  std::string properties;
  std::vector<CompiledKernel> kernels;
};

struct CompileResult {
  bool succeeded = false;
  std::vector<CompiledObject> objects;
  std::vector<DiagnosticRecord> diagnostics;
};

/// Compiles the kernels of MLIR text or bytecode. `filename` is the name of the
/// source in locations. The function is thread-safe.
CompileResult compile(std::string source, std::string filename,
                      CompileOptions options);

} // namespace mlir::kvcache

#endif // KVCACHE_COMPILE_COMPILE_H
