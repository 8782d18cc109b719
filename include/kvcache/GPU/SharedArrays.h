//===- SharedArrays.h - Arrays in dynamic shared memory ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_GPU_SHAREDARRAYS_H
#define KVCACHE_GPU_SHAREDARRAYS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace mlir::kvcache {

/// An array that a kernel has in dynamic shared memory. Its address is that of
/// dynamic shared memory plus `offset`, in one `getelementptr`.
struct SharedArray {
  StringAttr name;
  int64_t offset, bytes;
};

/// Notes the arrays of a kernel, for diagnostics.
void setSharedArrays(Operation *kernel, ArrayRef<SharedArray> arrays);

/// Returns the arrays of a kernel in the order of their offsets, the first at
/// offset 0. Returns none unless they are known to be all of its dynamic shared
/// memory.
SmallVector<SharedArray> getSharedArrays(Operation *kernel);

} // namespace mlir::kvcache

#endif // KVCACHE_GPU_SHAREDARRAYS_H
