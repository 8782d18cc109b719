//===- CUDATools.h - ptxas and fatbinary ------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TARGET_CUDATOOLS_H
#define KVCACHE_LIB_TARGET_CUDATOOLS_H

#include "mlir/IR/Diagnostics.h"

#include <optional>
#include <string>

namespace mlir::kvcache {

/// The path of a tool: in `toolkit`/bin if a toolkit is given, else what the
/// environment variable of its name in capitals says, else in the bin of
/// CUDA_HOME, CUDA_ROOT or CUDA_PATH, or on PATH. Reports at `loc` if there is
/// none.
FailureOr<std::string> findCUDATool(Location loc, StringRef name,
                                    StringRef toolkit);

/// The path of CUDA's math library: in `toolkit` if one is given, else beside
/// the ptxas of the variable PTXAS, in CUDA_HOME, CUDA_ROOT or CUDA_PATH, or
/// beside the ptxas on PATH.
std::optional<std::string> findLibdevice(StringRef toolkit);

/// The machine code (a cubin) that ptxas makes of `ptx` for `chip`. What ptxas
/// says against it is reported at `loc`.
FailureOr<std::string> assemblePTX(Location loc, StringRef ptxas, StringRef ptx,
                                   StringRef chip, int optLevel);

/// A fat binary of a cubin and the PTX that it was made of.
FailureOr<std::string> makeFatBinary(Location loc, StringRef fatbinary,
                                     StringRef ptx, StringRef cubin,
                                     StringRef chip);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TARGET_CUDATOOLS_H
