//===- Pointers.h - Pointers and memrefs ------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TARGET_POINTERS_H
#define KVCACHE_TARGET_POINTERS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/IR/Builders.h"

namespace mlir::kvcache {

/// The address of barrier `index`, an index, of a group: `!llvm.ptr<3>`.
Value getBarrierPointer(OpBuilder &builder, Location loc,
                        TypedValue<nvgpu::MBarrierGroupType> barriers,
                        Value index);

/// The address of byte `offset`, an index, of memory that a block shares:
/// `!llvm.ptr<3>`.
Value getSharedPointer(OpBuilder &builder, Location loc, Value memref,
                       Value offset);

/// The address of the first element of a memref in global memory, with its
/// offset: `!llvm.ptr<1>`.
Value getGlobalPointer(OpBuilder &builder, Location loc, Value memref);

/// The same in host code: `!llvm.ptr`.
Value getHostPointer(OpBuilder &builder, Location loc, Value memref);

/// A strided memref at `pointer`, with the sizes that its type leaves open and,
/// unless the layout is the identity, the strides. An open offset is 0.
Value buildMemRef(OpBuilder &builder, Location loc, MemRefType type,
                  Value pointer, ValueRange openSizes,
                  ValueRange openStrides = {});

/// What an element of a memref takes in memory.
int64_t getElementBytes(Value memref);

/// What a `!llvm.ptr` has been computed from, by offsets and casts.
Value getBasePointer(Value pointer);

/// Whether NVPTX loads through the read-only path: marked so, or from a
/// parameter that nobody writes.
bool isInvariant(LLVM::LoadOp load);

} // namespace mlir::kvcache

#endif // KVCACHE_TARGET_POINTERS_H
