//===- KernelMessages.h - Assertions and output of kernels ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_TOLLVM_KERNELMESSAGES_H
#define KVCACHE_LIB_CONVERSION_TOLLVM_KERNELMESSAGES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace mlir::kvcache {

/// Makes `cf.assert` and `gpu.printf` in a module calls of CUDA's
/// `__assertfail` and `vprintf`, as the patterns of `convert-gpu-to-nvvm` do.
/// These look for a free name of each string among all strings, which takes a
/// time cubic in their number, and reserve memory for the arguments of each
/// call. Fails where an assertion is in structured control flow.
LogicalResult lowerKernelMessages(gpu::GPUModuleOp module);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CONVERSION_TOLLVM_KERNELMESSAGES_H
