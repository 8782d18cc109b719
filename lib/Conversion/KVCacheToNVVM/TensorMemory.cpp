//===- TensorMemory.cpp - Addresses and order of tensor memory ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorMemory.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace mlir::kvcache;

Value kvcache::getTensorAddress(const IndexBuilder &b, Value tile) {
  Type i32 = b.builder.getI32Type();
  auto cast = tile.getDefiningOp<UnrealizedConversionCastOp>();
  if (cast && cast.getOperandTypes() == TypeRange(i32))
    return cast.getOperand(0);
  return UnrealizedConversionCastOp::create(b.builder, b.loc, i32, tile)
      .getResult(0);
}

Value kvcache::toTensorPointer(const IndexBuilder &b, Value address) {
  auto tensor = static_cast<unsigned>(NVVM::NVVMMemorySpace::Tensor);
  return LLVM::IntToPtrOp::create(
      b.builder, b.loc,
      LLVM::LLVMPointerType::get(b.builder.getContext(), tensor), address);
}

Value kvcache::offsetAddress(const IndexBuilder &b, Value address,
                             int64_t distance) {
  return distance == 0 ? address : b.add(address, b.i32(distance));
}

void kvcache::emitFenceAfterOthers(const IndexBuilder &b) {
  NVVM::Tcgen05FenceOp::create(b.builder, b.loc,
                               NVVM::Tcgen05FenceKind::AFTER_THREAD_SYNC);
}

void kvcache::emitFenceBeforeOthers(const IndexBuilder &b) {
  NVVM::Tcgen05FenceOp::create(b.builder, b.loc,
                               NVVM::Tcgen05FenceKind::BEFORE_THREAD_SYNC);
}
