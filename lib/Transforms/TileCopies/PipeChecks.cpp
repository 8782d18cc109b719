//===- PipeChecks.cpp - Checks of pipes before they are lowered -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PipeChecks.h"

#include "kvcache/Support/Threads.h"

using namespace mlir;
using namespace mlir::kvcache;

LogicalResult kvcache::checkPipe(PipeOp pipe, const CopySite &site) {
  for (Operation *user : pipe.getPipe().getUsers()) // (C2)
    if (!isa<ProduceOp, ConsumeOp>(user)) {
      InFlightDiagnostic error =
          user->emitOpError("expects no pipe as an operand: only "
                            "'kvcache.produce' and 'kvcache.consume' take one");
      error.attachNote(pipe.getLoc()) << "the pipe is from here";
      return error;
    }
  if (!isInGPUCode(pipe) || site.kernel)
    return success();
  return pipe.emitOpError("expects a kernel in a gpu.module with one target, "
                          "or host code");
}

LogicalResult kvcache::checkCopies(PipeOp pipe, const CopySite &site,
                                   unsigned &numCopies) {
  for (Operation *user : pipe.getPipe().getUsers()) {
    auto produce = dyn_cast<ProduceOp>(user);
    if (!produce)
      continue;
    for (auto copy : produce.getBody().getOps<TileCopyOpInterface>()) {
      if (failed(checkLowerable(copy, site)))
        return failure();
      ++numCopies;
    }
  }
  return success();
}
