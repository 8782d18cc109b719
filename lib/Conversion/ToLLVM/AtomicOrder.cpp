//===- AtomicOrder.cpp - The order of atomic updates ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AtomicOrder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::kvcache;

using LLVM::AtomicOrdering;

void kvcache::orderAtomicUpdates(gpu::GPUModuleOp module) {
  module.walk([](LLVM::AtomicRMWOp op) {
    AtomicOrdering order = op.getOrdering();
    bool isSequential = order == AtomicOrdering::seq_cst;
    bool releases = isSequential || order == AtomicOrdering::acq_rel ||
                    order == AtomicOrdering::release;
    bool acquires = isSequential || order == AtomicOrdering::acq_rel ||
                    order == AtomicOrdering::acquire;
    OpBuilder builder(op);
    StringRef scope = op.getSyncscope().value_or("");
    if (releases)
      LLVM::FenceOp::create(builder, op.getLoc(),
                            isSequential ? AtomicOrdering::seq_cst
                                         : AtomicOrdering::release,
                            scope);
    builder.setInsertionPointAfter(op);
    if (acquires)
      LLVM::FenceOp::create(builder, op.getLoc(), AtomicOrdering::acquire,
                            scope);
  });
  relaxAtomicUpdates(module);
}

void kvcache::relaxAtomicUpdates(gpu::GPUModuleOp module) {
  module.walk(
      [](LLVM::AtomicRMWOp op) { op.setOrdering(AtomicOrdering::monotonic); });
}
