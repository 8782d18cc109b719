//===- RowTeam.cpp - The threads of a row ---------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowTeam.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace mlir::kvcache;

void RowTeam::sync() const {
  if (frame.isGPU)
    gpu::BarrierOp::create(frame.builder, frame.loc);
}

void RowTeam::forEach(Value end, function_ref<void(Value)> body) const {
  frame.loop(thread, end, frame.index(threads), body);
}
