//===- ChipRules.cpp - What a chip must have ------------------------------===//
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

LogicalResult kvcache::checkInstructions(gpu::GPUModuleOp module,
                                         const Chip &chip) {
  return success();
}
