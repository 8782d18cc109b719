//===- EmitPTX.cpp - PTX as text ------------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Target/EmitPTX.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;

LogicalResult kvcache::emitPTX(Operation *op, raw_ostream &os) {
  bool found = false;
  WalkResult result = op->walk([&](gpu::BinaryOp binary) {
    for (auto object : binary.getObjectsAttr().getAsRange<gpu::ObjectAttr>()) {
      if (object.getFormat() != gpu::CompilationTarget::Assembly) {
        binary.emitOpError("expects PTX, which format=ptx gives");
        return WalkResult::interrupt();
      }
      // LLVM ends the text with a zero byte for the driver.
      os << object.getObject().getValue().rtrim('\0');
      found = true;
    }
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  if (!found)
    return op->emitError("expects kernels, found none: nested 'scf.parallel' "
                         "loops or a 'gpu.func' with 'kernel' become one");
  return success();
}
