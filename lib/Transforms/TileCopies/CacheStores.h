//===- CacheStores.h - Stores to caches by threads --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILECOPIES_CACHESTORES_H
#define KVCACHE_LIB_TRANSFORMS_TILECOPIES_CACHESTORES_H

#include "kvcache/IR/KVCacheDialect.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::kvcache {

/// The stores of a function's threads to global memory. They take the generic
/// proxy, and units of the hardware copy by the async proxy: without a fence,
/// they may miss what has been stored.
class CacheStores {
public:
  /// Collects the stores of `function`, whose launches are in `root`.
  CacheStores(FunctionOpInterface function, Operation *root);

  /// Whether a thread, of any block, may store to the cache. A store that comes
  /// after the copy in the code may come before it in time: in a loop, or in
  /// another block.
  bool mayWrite(Value cache) const;

private:
  void collect(Operation *op);
  bool mayBeSame(Value one, Value other) const;

  FunctionOpInterface function;
  SmallVector<gpu::LaunchFuncOp> launches;
  /// Where the values come from that are written through; null if unknown.
  llvm::SmallSetVector<Value, 4> written;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILECOPIES_CACHESTORES_H
