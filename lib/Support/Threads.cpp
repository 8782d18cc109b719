//===- Threads.cpp - The threads of a block -------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Support/Threads.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::kvcache;

static constexpr gpu::Dimension kOutermostFirst[] = {
    gpu::Dimension::z, gpu::Dimension::y, gpu::Dimension::x};

Value kvcache::getThread(const IndexBuilder &b) {
  Value thread = b.index(0);
  for (gpu::Dimension dim : kOutermostFirst) {
    Value size = gpu::BlockDimOp::create(b.builder, b.loc, dim);
    Value id = gpu::ThreadIdOp::create(b.builder, b.loc, dim);
    thread = b.add(b.mul(thread, size), id);
  }
  return thread;
}

Value kvcache::countThreads(const IndexBuilder &b) {
  Value count = b.index(1);
  for (gpu::Dimension dim : kOutermostFirst)
    count = b.mul(count, gpu::BlockDimOp::create(b.builder, b.loc, dim));
  return count;
}

/// Returns the kernel that an op is or is in.
static gpu::GPUFuncOp getKernel(Operation *op) {
  auto kernel = dyn_cast<gpu::GPUFuncOp>(op);
  return kernel ? kernel : op->getParentOfType<gpu::GPUFuncOp>();
}

std::optional<int64_t> kvcache::getKnownThreads(Operation *op) {
  gpu::GPUFuncOp kernel = getKernel(op);
  if (!kernel || !kernel.getKnownBlockSize())
    return std::nullopt;
  return llvm::product_of(*kernel.getKnownBlockSize(), int64_t(1));
}

int64_t kvcache::countBlocksOfCluster(Operation *op) {
  gpu::GPUFuncOp kernel = getKernel(op);
  if (!kernel || !kernel.getKnownClusterSize())
    return 1;
  return llvm::product_of(*kernel.getKnownClusterSize(), int64_t(1));
}
