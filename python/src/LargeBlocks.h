//===- LargeBlocks.h - Blocks that take LLVM long ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PYTHON_LARGEBLOCKS_H
#define KVCACHE_PYTHON_LARGEBLOCKS_H

namespace llvm {
class Module;
} // namespace llvm

namespace mlir::kvcache::python {

/// Splits large basic blocks that have calls, as those of emulated kernels do,
/// into blocks of at most 50 instructions. The time of LLVM's
/// instruction selection is at least quadratic in the size of a block. Nothing
/// that simplifies the control flow may run before the selection.
void splitLargeBlocks(llvm::Module &module);

} // namespace mlir::kvcache::python

#endif // KVCACHE_PYTHON_LARGEBLOCKS_H
