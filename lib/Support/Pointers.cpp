//===- Pointers.cpp - Pointers and memrefs --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Support/Pointers.h"

#include "mlir/Conversion/NVGPUToNVVM/NVGPUToNVVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"

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

int64_t kvcache::getElementBytes(Value memref) {
  Operation *around = memref.getParentRegion()->getParentOp();
  Type type = cast<MemRefType>(memref.getType()).getElementType();
  return DataLayout::closest(around).getTypeSize(type);
}

/// Returns the address of the first element, including the offset of the
/// memref.
static Value getAddress(OpBuilder &builder, Location loc, Value memref) {
  auto metadata =
      memref::ExtractStridedMetadataOp::create(builder, loc, memref);
  Value address =
      memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, memref);
  Value bytes =
      arith::ConstantIndexOp::create(builder, loc, getElementBytes(memref));
  Value offset =
      builder.createOrFold<arith::MulIOp>(loc, metadata.getOffset(), bytes);
  return builder.createOrFold<arith::AddIOp>(loc, address, offset);
}

Value kvcache::getBarrierPointer(OpBuilder &builder, Location loc,
                                 TypedValue<nvgpu::MBarrierGroupType> barriers,
                                 Value index) {
  // After the lowering of nvgpu, the group is a memref.
  if (auto cast = barriers.getDefiningOp<UnrealizedConversionCastOp>()) {
    MemRefType type =
        nvgpu::getMBarrierMemrefType(builder.getContext(), barriers.getType());
    Value memory =
        UnrealizedConversionCastOp::create(builder, loc, type, cast.getInputs())
            .getResult(0);
    Value bytes =
        arith::ConstantIndexOp::create(builder, loc, getElementBytes(memory));
    return getSharedPointer(
        builder, loc, memory,
        builder.createOrFold<arith::MulIOp>(loc, index, bytes));
  }
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
  return toPointer(builder, loc, getAddress(builder, loc, memref),
                   NVVM::NVVMMemorySpace::Global);
}

Value kvcache::getHostPointer(OpBuilder &builder, Location loc, Value memref) {
  return toPointer(builder, loc, getAddress(builder, loc, memref),
                   NVVM::NVVMMemorySpace::Generic);
}

/// Builds a memref of rank 0 at `pointer`.
static Value buildPointee(OpBuilder &builder, Location loc, Value pointer,
                          Type elementType) {
  MLIRContext *context = builder.getContext();
  Type ptr = pointer.getType();
  auto type = LLVM::LLVMStructType::getLiteral(
      context, {ptr, ptr, builder.getI64Type()});
  Value zero = LLVM::ConstantOp::create(builder, loc, builder.getI64Type(), 0);
  Value descriptor = LLVM::PoisonOp::create(builder, loc, type);
  for (auto [position, value] :
       llvm::enumerate(SmallVector<Value>{pointer, pointer, zero}))
    descriptor =
        LLVM::InsertValueOp::create(builder, loc, descriptor, value, position);
  return UnrealizedConversionCastOp::create(
             builder, loc, MemRefType::get({}, elementType), descriptor)
      .getResult(0);
}

/// Computes the strides of a packed layout from the sizes.
static SmallVector<OpFoldResult>
getPackedStrides(OpBuilder &builder, Location loc,
                 ArrayRef<OpFoldResult> sizes) {
  SmallVector<OpFoldResult> strides(sizes.size(), builder.getIndexAttr(1));
  for (size_t dim = sizes.size(); dim-- > 1;) {
    std::optional<int64_t> size = getConstantIntValue(sizes[dim]);
    std::optional<int64_t> stride = getConstantIntValue(strides[dim]);
    if (size && stride)
      strides[dim - 1] = builder.getIndexAttr(*size * *stride);
    else
      strides[dim - 1] =
          arith::MulIOp::create(
              builder, loc,
              getValueOrCreateConstantIndexOp(builder, loc, sizes[dim]),
              getValueOrCreateConstantIndexOp(builder, loc, strides[dim]))
              .getResult();
  }
  return strides;
}

Value kvcache::buildMemRef(OpBuilder &builder, Location loc, MemRefType type,
                           Value pointer, ValueRange openSizes,
                           ValueRange openStrides) {
  Value base = buildPointee(builder, loc, pointer, type.getElementType());
  auto [typeStrides, typeOffset] = type.getStridesAndOffset();
  SmallVector<OpFoldResult> sizes =
      getMixedValues(type.getShape(), openSizes, builder);
  SmallVector<OpFoldResult> strides =
      type.getLayout().isIdentity()
          ? getPackedStrides(builder, loc, sizes)
          : getMixedValues(typeStrides, openStrides, builder);
  SmallVector<int64_t> staticStrides;
  SmallVector<Value> dynamicStrides;
  dispatchIndexOpFoldResults(strides, dynamicStrides, staticStrides);
  int64_t offset = ShapedType::isDynamic(typeOffset) ? 0 : typeOffset;
  auto strided = MemRefType::get(
      type.getShape(), type.getElementType(),
      StridedLayoutAttr::get(builder.getContext(), offset, staticStrides));
  Value memref = memref::ReinterpretCastOp::create(
      builder, loc, strided, base, OpFoldResult(builder.getIndexAttr(offset)),
      sizes, strides);
  MemRefType inDefaultSpace = MemRefType::Builder(type).setMemorySpace({});
  memref = builder.createOrFold<memref::CastOp>(loc, inDefaultSpace, memref);
  return builder.createOrFold<memref::MemorySpaceCastOp>(loc, type, memref);
}

Value kvcache::getBasePointer(Value pointer) {
  while (Operation *op = pointer.getDefiningOp()) {
    if (!isa<LLVM::GEPOp, LLVM::AddrSpaceCastOp>(op))
      break;
    pointer = op->getOperand(0);
  }
  return pointer;
}

bool kvcache::isInvariant(LLVM::LoadOp load) {
  if (load.getInvariant())
    return true;
  auto argument = dyn_cast<BlockArgument>(getBasePointer(load.getAddr()));
  auto function =
      argument ? dyn_cast<LLVM::LLVMFuncOp>(argument.getOwner()->getParentOp())
               : LLVM::LLVMFuncOp();
  if (!function || !argument.getOwner()->isEntryBlock())
    return false;
  unsigned number = argument.getArgNumber();
  return function.getArgAttr(number, LLVM::LLVMDialect::getNoAliasAttrName()) &&
         function.getArgAttr(number, LLVM::LLVMDialect::getReadonlyAttrName());
}
