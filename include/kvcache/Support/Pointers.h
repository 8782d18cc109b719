//===- Pointers.h - Pointers and memrefs ------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_SUPPORT_POINTERS_H
#define KVCACHE_SUPPORT_POINTERS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/IR/Builders.h"

namespace mlir::kvcache {

/// Returns the address of barrier `index` of a group, as `!llvm.ptr<3>`.
Value getBarrierPointer(OpBuilder &builder, Location loc,
                        TypedValue<nvgpu::MBarrierGroupType> barriers,
                        Value index);

/// Returns the address of byte `offset`, an index, of shared memory, as
/// `!llvm.ptr<3>`.
Value getSharedPointer(OpBuilder &builder, Location loc, Value memref,
                       Value offset);

/// Returns the address of the first element of a memref in global memory,
/// including its offset, as `!llvm.ptr<1>`.
Value getGlobalPointer(OpBuilder &builder, Location loc, Value memref);

/// Returns this address in host code, as `!llvm.ptr`.
Value getHostPointer(OpBuilder &builder, Location loc, Value memref);

/// Builds a strided memref at `pointer` from its dynamic sizes and, unless the
/// layout is the identity, its dynamic strides. A dynamic offset is 0.
Value buildMemRef(OpBuilder &builder, Location loc, MemRefType type,
                  Value pointer, ValueRange openSizes,
                  ValueRange openStrides = {});

/// Returns the size of an element of a memref in bytes.
int64_t getElementBytes(Value memref);

/// Returns the base of a `!llvm.ptr` without offsets and casts.
Value getBasePointer(Value pointer);

/// Whether NVPTX loads through the read-only path: the load is marked
/// invariant, or reads a parameter that the kernel does not write through.
bool isInvariant(LLVM::LoadOp load);

} // namespace mlir::kvcache

#endif // KVCACHE_SUPPORT_POINTERS_H
