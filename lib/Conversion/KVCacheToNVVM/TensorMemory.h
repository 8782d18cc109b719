//===- TensorMemory.h - Addresses and order of tensor memory ----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_KVCACHETONVVM_TENSORMEMORY_H
#define KVCACHE_LIB_CONVERSION_KVCACHETONVVM_TENSORMEMORY_H

#include "kvcache/Support/IndexBuilder.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace mlir::kvcache {

/// An address of tensor memory has the lane in the high half of a word, and the
/// column in the low one. This is the distance of two lanes.
constexpr int64_t kTensorLane = 1 << 16;
/// The lanes of a warp, and those that a fragment has of them.
constexpr int64_t kWarpLanes = 32, kFragmentLanes = 16;

/// The blocks that tensor memory and products are of.
inline NVVM::CTAGroupKind getGroup(bool isPair) {
  return isPair ? NVVM::CTAGroupKind::CTA_2 : NVVM::CTAGroupKind::CTA_1;
}

/// The address of a tile, before or after the lowering of its type.
Value getTensorAddress(const IndexBuilder &b, Value tile);
/// The address as a pointer to tensor memory.
Value toTensorPointer(const IndexBuilder &b, Value address);
/// The address `distance` words after another one.
Value offsetAddress(const IndexBuilder &b, Value address, int64_t distance);

/// Orders the work of other threads before what comes next. PTX ISA, "Memory
/// Consistency Model for 5th generation of TensorCore operations".
void emitFenceAfterOthers(const IndexBuilder &b);
/// Orders the work of this thread before that of others.
void emitFenceBeforeOthers(const IndexBuilder &b);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CONVERSION_KVCACHETONVVM_TENSORMEMORY_H
