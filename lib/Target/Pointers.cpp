//===- Pointers.cpp - Addresses as the NVVM ops take them
//--------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Target/Pointers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kvcache;

static Value toPointer(OpBuilder &builder, Location loc, Value address,
                       NVVM::NVVMMemorySpace space) {
  if (isa<IndexType>(address.getType()))
    address = builder.createOrFold<arith::IndexCastOp>(
        loc, builder.getI64Type(), address);
  auto type = LLVM::LLVMPointerType::get(builder.getContext(),
                                         static_cast<unsigned>(space));
  return LLVM::IntToPtrOp::create(builder, loc, type, address);
}

Value kvcache::getBarrierPointer(OpBuilder &builder, Location loc,
                                 TypedValue<nvgpu::MBarrierGroupType> barriers,
                                 Value index) {
  Value address = nvgpu::MBarrierGetOp::create(
      builder, loc, builder.getI64Type(), barriers, index);
  return toPointer(builder, loc, address, NVVM::NVVMMemorySpace::Shared);
}

Value kvcache::getSharedPointer(OpBuilder &builder, Location loc, Value memref,
                                Value offset) {
  Value address =
      memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, memref);
  address = builder.createOrFold<arith::AddIOp>(loc, address, offset);
  return toPointer(builder, loc, address, NVVM::NVVMMemorySpace::Shared);
}

Value kvcache::getGlobalPointer(OpBuilder &builder, Location loc,
                                Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  auto metadata =
      memref::ExtractStridedMetadataOp::create(builder, loc, memref);
  Value address =
      memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, memref);
  Value bytes = arith::ConstantIndexOp::create(
      builder, loc, type.getElementTypeBitWidth() / 8);
  Value offset =
      builder.createOrFold<arith::MulIOp>(loc, metadata.getOffset(), bytes);
  address = builder.createOrFold<arith::AddIOp>(loc, address, offset);
  return toPointer(builder, loc, address, NVVM::NVVMMemorySpace::Global);
}
