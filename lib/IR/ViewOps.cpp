//===- ViewOps.cpp - Collections and views --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layouts.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

/// The dimensions of blocks and scales that count tokens and heads.
static constexpr unsigned kTokens = 3, kHeads = 4;

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

/// Checks that the static strides between pages, roles and layers, and an open
/// stride of heads, keep the alignment of pages on which accesses depend.
static LogicalResult verifyDistances(Operation *op, StringRef name,
                                     MemRefType type, CacheTypeInterface view,
                                     ArrayRef<int64_t> strides) {
  int64_t unit = getDistanceUnit(view);
  SmallVector<unsigned, 4> dims = {0, 1, 2};
  if (view.hasOpenHeadStride())
    dims.push_back(kHeads);
  for (unsigned dim : dims)
    if (type.getDimSize(dim) != 1 && !ShapedType::isDynamic(strides[dim]) &&
        strides[dim] % unit != 0)
      return op->emitOpError("expects stride ")
             << dim << " of '" << name << "' to be a multiple of " << unit
             << ", so that pages are as aligned as rows, got " << strides[dim];
  return success();
}

/// Checks that the strides of tokens, heads and elements are those of the type.
/// A dimension of one element has no stride.
static LogicalResult verifyStrides(Operation *op, StringRef name,
                                   MemRefType type, CacheTypeInterface view) {
  SmallVector<int64_t> strides;
  int64_t offset;
  SmallVector<int64_t, 3> expected = {view.getTokenStride(),
                                      view.getHeadStride(), 1};
  ArrayRef<int64_t> sizes = type.getShape().drop_front(kTokens);
  bool agrees = succeeded(type.getStridesAndOffset(strides, offset));
  for (unsigned i = 0; agrees && i < expected.size(); ++i)
    agrees = strides[kTokens + i] == expected[i] ||
             ShapedType::isDynamic(expected[i]) || sizes[i] == 1;
  if (!agrees) {
    InFlightDiagnostic diag =
        op->emitOpError("expects strides 3 to 5 of '")
        << name << "' to be those of "
        << (view.getLayout() ? "the layout, " : "packed rows, ");
    printShape(diag, expected);
    return diag << ", got " << type;
  }
  int64_t head = strides[kHeads];
  if (view.hasOpenHeadStride() && !ShapedType::isDynamic(head) &&
      failed(verifyPitches(
          [&] { return op->emitOpError(); }, ("'" + name + "'").str(),
          view.getTokenStride(), head,
          {view.getPageSize(), view.getNumHeads(), view.getStoredHeadSize()})))
    return failure();
  return verifyDistances(op, name, type, view, strides);
}

/// Checks the blocks or scales of a collection: the element type of `view`, the
/// sizes `[?, D, ?, P, H, E]`, and the strides of its layout.
static LogicalResult verifyTensor(Operation *op, StringRef name,
                                  MemRefType type, CacheTypeInterface view) {
  if (failed(verifyMemorySpace(op, name, type)))
    return failure();
  if (type.getElementType() != view.getStorageType())
    return op->emitOpError("expects '")
           << name << "' to have element type " << view.getStorageType()
           << ", got " << type.getElementType();
  int64_t dynamic = ShapedType::kDynamic;
  SmallVector<int64_t> expected = {dynamic,
                                   view.getNumKV(),
                                   dynamic,
                                   view.getPageSize(),
                                   view.getNumHeads(),
                                   view.getStoredHeadSize()};
  bool agrees = llvm::all_of_zip(
      type.getShape(), expected, [](int64_t size, int64_t wanted) {
        return ShapedType::isDynamic(wanted) || size == wanted;
      });
  if (agrees)
    return verifyStrides(op, name, type, view);
  InFlightDiagnostic diag = op->emitOpError("expects '")
                            << name << "' to have shape ";
  printShape(diag, expected);
  diag << ", got ";
  printShape(diag, type.getShape());
  return diag;
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
  // (C1), (C2)
  if (failed(verifyTensor(*this, "blocks", getBlocks().getType(),
                          getViewType(type, /*ofScales=*/false))))
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
  return verifyTensor(*this, "scales", getScales().getType(),
                      getViewType(type, /*ofScales=*/true));
}

LogicalResult ContinuousCollectionOp::verify() {
  CacheTypeInterface type = getCollection().getType();
  // (C1), (C2)
  if (failed(verifyTensor(*this, "blocks", getBlocks().getType(),
                          getViewType(type, /*ofScales=*/false))))
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

LogicalResult PagedViewOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location> loc,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  Type given = adaptor.getCollection().getType();
  auto type = dyn_cast<PagedCollectionType>(given);
  if (!type)
    return emitOptionalError(
        loc, "expects 'collection' to be a paged collection, got ", given);
  types.push_back(getViewType(type, /*ofScales=*/false));
  return success();
}

LogicalResult ContinuousViewOp::inferReturnTypes(MLIRContext *,
                                                 std::optional<Location> loc,
                                                 Adaptor adaptor,
                                                 SmallVectorImpl<Type> &types) {
  Type given = adaptor.getCollection().getType();
  auto type = dyn_cast<ContinuousCollectionType>(given);
  if (!type)
    return emitOptionalError(
        loc, "expects 'collection' to be a continuous collection, got ", given);
  types.push_back(getViewType(type, /*ofScales=*/false));
  return success();
}
