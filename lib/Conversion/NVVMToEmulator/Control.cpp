//===- Control.cpp - Printing, assertions and traps as calls --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Families.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::kvcache;

FailureOr<bool> kvcache::lowerControlOp(Operation *op, EmulatorCalls &calls) {
  return false;
}
