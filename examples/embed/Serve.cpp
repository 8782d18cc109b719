//===- Serve.cpp - The dialect of a serving engine ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Serve.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

#include "ServeDialect.cpp.inc"

#define GET_OP_CLASSES
#include "ServeOps.cpp.inc"

void serve::ServeDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "ServeOps.cpp.inc"
      >();
}

LogicalResult serve::CopyKeysOp::verify() {
  kvcache::ParamsAttr params = getCollection().getType().getParams();
  ArrayRef<int64_t> row = getOut().getType().getShape().take_back(2);
  if (row[0] != params.getNumHeads() || row[1] != params.getHeadSize())
    return emitOpError() << "expects rows of " << params.getNumHeads() << " x "
                         << params.getHeadSize() << " in 'out', got "
                         << getOut().getType();
  if (row[1] * getOut().getType().getElementTypeBitWidth() % 128 != 0)
    return emitOpError() << "expects heads of whole 16-byte units in 'out', "
                            "got "
                         << getOut().getType();
  return success();
}
