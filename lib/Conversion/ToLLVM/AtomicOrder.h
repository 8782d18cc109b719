//===- AtomicOrder.h - The order of atomic updates --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_TOLLVM_ATOMICORDER_H
#define KVCACHE_LIB_CONVERSION_TOLLVM_ATOMICORDER_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace mlir::kvcache {

/// Gives the `llvm.atomicrmw` of a module their order by fences. LLVM 22 writes
/// them to PTX without it (NVPTXIntrinsics.td, "atom").
void orderAtomicUpdates(gpu::GPUModuleOp module);

/// Takes the order from the `llvm.atomicrmw` of a module, which those that
/// `memref.atomic_rmw` becomes have, although it promises none.
void relaxAtomicUpdates(gpu::GPUModuleOp module);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CONVERSION_TOLLVM_ATOMICORDER_H
