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

/// Writes the objects of all `gpu.binary` ops in `op` as text. Fails with a
/// diagnostic if there is no object, or an object that is not PTX.
LogicalResult emitPTX(Operation *op, raw_ostream &os);

} // namespace mlir::kvcache

#endif // KVCACHE_TARGET_EMITPTX_H
