//===- EmitPTX.h - The PTX of a module as text ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TARGET_EMITPTX_H
#define KVCACHE_TARGET_EMITPTX_H

#include "mlir/IR/Operation.h"

namespace mlir::kvcache {

/// Which object `emitPTX` writes. `kvcache-opt` has an option for each:
/// `--emit-ptx-module` and `--emit-ptx-chip`.
struct EmitPTXOptions {
  /// The name of a `gpu.binary`, or `*` for all. If empty, there must be one.
  std::string module;
  /// A chip, or `*` for all. If empty, there must be one.
  std::string chip;
};

/// Writes the PTX of a `gpu.binary` in `op` for a chip as text: the main
/// function of a tool calls it after a pipeline with `kvcache-to-ptx`. ptxas
/// takes the text of one object: one after another, as `*` gives, they are for
/// reading. Fails with a diagnostic if there is no object, an object that is
/// not PTX, or more than the options choose; it lists the objects.
LogicalResult emitPTX(Operation *op, raw_ostream &os,
                      const EmitPTXOptions &options = {});

} // namespace mlir::kvcache

#endif // KVCACHE_TARGET_EMITPTX_H
