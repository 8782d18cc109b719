//===- BFloat16.cpp - bf16 as bits ----------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Families.h"

using namespace mlir;
using namespace mlir::kvcache;

LogicalResult kvcache::lowerBFloat16(gpu::GPUModuleOp module) {
  return success();
}
