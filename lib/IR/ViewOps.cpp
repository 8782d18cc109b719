//===- ViewOps.cpp - Collections and views --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/IR/CacheShape.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

static void printShape(InFlightDiagnostic &diag, ArrayRef<int64_t> shape) {
  diag << "[";
  llvm::interleaveComma(shape, diag, [&](int64_t size) {
    if (ShapedType::isDynamic(size))
      diag << "?";
    else
      diag << size;
  });
  diag << "]";
}

/// Checks the default memory space, which the lowering assumes.
static LogicalResult verifyMemorySpace(Operation *op, StringRef name,
                                       MemRefType type) {
  if (type.getMemorySpace())
    return op->emitOpError("expects '")
           << name << "' to be in the default memory space, got " << type;
  return success();
}

/// Checks that the static strides 0 to 2 keep the alignment of pages on which
/// accesses depend. Rows are packed.
static LogicalResult verifyDistances(Operation *op, StringRef name,
                                     MemRefType type,
                                     ArrayRef<int64_t> strides) {
  int64_t unit = getDistanceUnit(type);
  for (unsigned dim : {0, 1, 2})
    if (type.getDimSize(dim) != 1 && !ShapedType::isDynamic(strides[dim]) &&
        strides[dim] % unit != 0)
      return op->emitOpError("expects stride ")
             << dim << " of '" << name << "' to be a multiple of " << unit
             << ", so that pages are as aligned as rows, got " << strides[dim];
  return success();
}

/// Checks that the blocks or scales of a collection have this element type and
/// the sizes `expected`, and that their rows are packed. A dynamic expected
/// size allows any size.
static LogicalResult verifyTensor(Operation *op, StringRef name,
                                  MemRefType type, Type elementType,
                                  ArrayRef<int64_t> expected) {
  if (failed(verifyMemorySpace(op, name, type)))
    return failure();
  if (type.getElementType() != elementType)
    return op->emitOpError("expects '")
           << name << "' to have element type " << elementType << ", got "
           << type.getElementType();
  bool agrees = llvm::all_of_zip(
      type.getShape(), expected, [](int64_t size, int64_t wanted) {
        return ShapedType::isDynamic(wanted) || size == wanted;
      });
  if (!agrees) {
    InFlightDiagnostic diag = op->emitOpError("expects '")
                              << name << "' to have shape ";
    printShape(diag, expected);
    diag << ", got ";
    printShape(diag, type.getShape());
    return diag;
  }

  SmallVector<int64_t> strides;
  int64_t offset;
  int64_t columns = expected[5], row = expected[4] * expected[5];
  if (failed(type.getStridesAndOffset(strides, offset)) ||
      ArrayRef<int64_t>(strides).drop_front(3) !=
          ArrayRef<int64_t>({row, columns, 1}))
    return op->emitOpError("expects strides 3 to 5 of '")
           << name << "' to be those of packed rows, [" << row << ", "
           << columns << ", 1], got " << type;
  return verifyDistances(op, name, type, strides);
}

/// Checks that the innermost dimension of a table is contiguous.
static LogicalResult verifyContiguous(Operation *op, StringRef name,
                                      MemRefType type) {
  if (failed(verifyMemorySpace(op, name, type)))
    return failure();
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)) || strides.back() != 1)
    return op->emitOpError("expects '")
           << name << "' to be contiguous in its last dimension, got " << type;
  return success();
}

//===----------------------------------------------------------------------===//
// Collections
//===----------------------------------------------------------------------===//

LogicalResult PagedCollectionOp::verify() {
  CacheTypeInterface type = getCollection().getType();
  int64_t dynamic = ShapedType::kDynamic;
  // (C1), (C2)
  if (failed(verifyTensor(
          *this, "blocks", getBlocks().getType(), type.getStorageType(),
          {dynamic, type.getNumKV(), dynamic, type.getPageSize(),
           type.getNumHeads(), type.getStoredHeadSize()})))
    return failure();
  // (C3)
  if (failed(verifyContiguous(*this, "cache_lengths",
                              getCacheLengths().getType())) ||
      failed(
          verifyContiguous(*this, "lookup_table", getLookupTable().getType())))
    return failure();
  // (C4)
  if (type.isQuantized() && !getScales())
    return emitOpError("expects 'scales' for a quantized collection");
  if (!type.isQuantized() && getScales())
    return emitOpError("expects 'scales' only for a quantized collection");
  if (getScalesLookupTable() && !getScales())
    return emitOpError("expects 'scales_lookup_table' only with 'scales'");
  if (!getScales())
    return success();
  if (getScalesLookupTable() &&
      failed(verifyContiguous(*this, "scales_lookup_table",
                              getScalesLookupTable().getType())))
    return failure();
  // (C5)
  return verifyTensor(*this, "scales", getScales().getType(), type.getScale(),
                      {dynamic, type.getNumKV(), dynamic, type.getPageSize(),
                       type.getNumHeads(), type.getNumGroups()});
}

LogicalResult ContinuousCollectionOp::verify() {
  CacheTypeInterface type = getCollection().getType();
  int64_t dynamic = ShapedType::kDynamic;
  // (C1), (C2)
  if (failed(verifyTensor(*this, "blocks", getBlocks().getType(),
                          type.getStorageType(),
                          {dynamic, type.getNumKV(), dynamic, dynamic,
                           type.getNumHeads(), type.getStoredHeadSize()})))
    return failure();
  // (C3)
  if (failed(verifyContiguous(*this, "cache_lengths",
                              getCacheLengths().getType())))
    return failure();
  return verifyContiguous(*this, "lookup_table", getLookupTable().getType());
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

/// (C1) of the view ops.
template <typename OpTy> static LogicalResult verifyRole(OpTy op) {
  if (op.getRole() == Role::Value &&
      op.getCollection().getType().getParams().getIsMla())
    return op.emitOpError("expects 'role' to be key for an MLA collection, "
                          "which has one latent cache and no values");
  return success();
}

LogicalResult PagedViewOp::verify() { return verifyRole(*this); }
LogicalResult ContinuousViewOp::verify() { return verifyRole(*this); }

LogicalResult PagedViewOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> loc,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  Type given = adaptor.getCollection().getType();
  auto type = dyn_cast<PagedCollectionType>(given);
  if (!type)
    return emitOptionalError(
        loc, "expects 'collection' to be a paged collection, got ", given);
  types.push_back(PagedCacheType::get(context, type.getElementType(),
                                      type.getParams(), type.getPageSize(),
                                      type.getScale(), type.getGranularity()));
  return success();
}

LogicalResult ContinuousViewOp::inferReturnTypes(MLIRContext *context,
                                                 std::optional<Location> loc,
                                                 Adaptor adaptor,
                                                 SmallVectorImpl<Type> &types) {
  Type given = adaptor.getCollection().getType();
  auto type = dyn_cast<ContinuousCollectionType>(given);
  if (!type)
    return emitOptionalError(
        loc, "expects 'collection' to be a continuous collection, got ", given);
  types.push_back(ContinuousCacheType::get(context, type.getElementType(),
                                           type.getParams()));
  return success();
}
