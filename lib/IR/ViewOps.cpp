//===- ViewOps.cpp - Collections and views --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layouts.h"

#include "kvcache/IR/ViewOps.h"

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

/// Checks that the static strides between pages, roles and layers, and an open
/// stride of heads, keep the alignment of pages on which accesses depend.
static LogicalResult verifyDistances(Operation *op, StringRef name,
                                     MemRefType type, CacheTypeInterface view,
                                     ArrayRef<int64_t> strides) {
  int64_t unit = getDistanceUnit(view);
  unsigned tokens = getTokensDim(type);
  auto dims = llvm::to_vector(llvm::seq<unsigned>(0, tokens));
  if (view.hasOpenHeadStride())
    dims.push_back(tokens + 1);
  for (unsigned dim : dims)
    if (type.getDimSize(dim) != 1 && !ShapedType::isDynamic(strides[dim]) &&
        strides[dim] % unit != 0)
      return op->emitOpError("expects stride ")
             << dim << " of '" << name << "' to be a multiple of " << unit
             << ", so that pages are as aligned as rows, got " << strides[dim];
  return success();
}

/// Checks that no two elements share memory, as far as sizes and strides are
/// static: a stride is at least what all smaller ones span. A dynamic number of
/// pages, roles or layers is taken as two, that of tokens as one.
static LogicalResult verifyDisjoint(Operation *op, StringRef name,
                                    MemRefType type,
                                    ArrayRef<int64_t> strides) {
  unsigned tokens = getTokensDim(type);
  auto getOthers = [&](unsigned dim) -> int64_t {
    int64_t size = type.getDimSize(dim);
    if (ShapedType::isDynamic(strides[dim]) || size == 0)
      return 0;
    if (ShapedType::isDynamic(size))
      return dim < tokens ? 1 : 0;
    return size - 1;
  };
  for (unsigned dim = 0; dim <= tokens + 1; ++dim) {
    if (getOthers(dim) == 0)
      continue;
    uint64_t span = type.getShape().back();
    for (unsigned inner = 0; inner <= tokens + 1; ++inner)
      if (inner != dim && getOthers(inner) != 0 &&
          strides[inner] <= strides[dim])
        span = llvm::SaturatingMultiplyAdd<uint64_t>(
            getOthers(inner), std::max<int64_t>(strides[inner], 0), span);
    if (strides[dim] < 0 || static_cast<uint64_t>(strides[dim]) < span)
      return op->emitOpError("expects stride ")
             << dim << " of '" << name << "' to be at least " << span
             << ", so that elements do not overlap, got " << strides[dim];
  }
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
  unsigned tokens = getTokensDim(type);
  ArrayRef<int64_t> sizes = type.getShape().drop_front(tokens);
  bool agrees = succeeded(type.getStridesAndOffset(strides, offset));
  for (unsigned i = 0; agrees && i < expected.size(); ++i)
    agrees = strides[tokens + i] == expected[i] ||
             ShapedType::isDynamic(expected[i]) || sizes[i] == 1;
  if (!agrees) {
    InFlightDiagnostic diag =
        op->emitOpError("expects strides ")
        << tokens << " to " << tokens + 2 << " of '" << name
        << "' to be those of "
        << (view.getLayout() ? "the layout, " : "packed rows, ");
    printShape(diag, expected);
    return diag << ", got " << type;
  }
  int64_t role = view.getLayout() ? view.getLayout().getRoleStride() : 0;
  if (role && tokens == 3 && !ShapedType::isDynamic(strides[1]) &&
      strides[1] != role)
    return op->emitOpError("expects stride 1 of '")
           << name << "' to be the 'role' of the layout (" << role << "), got "
           << strides[1];
  int64_t head = strides[tokens + 1];
  if (view.hasOpenHeadStride() && !ShapedType::isDynamic(head) &&
      failed(verifyPitches([&] { return op->emitOpError(); },
                           ("'" + name + "'").str(), view.getTokenStride(),
                           head,
                           {view.getRowsPerPage(), view.getNumHeads(),
                            view.getStoredHeadSize()})))
    return failure();
  if (failed(verifyDistances(op, name, type, view, strides)))
    return failure();
  return verifyDisjoint(op, name, type, strides);
}

/// Checks blocks or scales: the element type of `view`, the sizes `[?, D, ?, P,
/// H, E]` of a collection or `[?, P, H, E]` of a view, and the strides of the
/// layout.
static LogicalResult verifyTensor(Operation *op, StringRef name,
                                  MemRefType type, CacheTypeInterface view) {
  if (failed(verifyMemorySpace(op, name, type)))
    return failure();
  if (type.getElementType() != view.getStorageType())
    return op->emitOpError("expects '")
           << name << "' to have element type " << view.getStorageType()
           << ", got " << type.getElementType();
  int64_t dynamic = ShapedType::kDynamic;
  SmallVector<int64_t> expected = {dynamic};
  if (getTokensDim(type) == 3)
    expected.append({view.getNumKV(), dynamic});
  expected.append(
      {view.getRowsPerPage(), view.getNumHeads(), view.getStoredHeadSize()});
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

/// Checks the table of a paged cache and its index (C8).
static LogicalResult verifyTable(BundleOpInterface op, TableKind kind) {
  MemRefType table = op.getLookupTable().getType();
  bool isCSR = kind == TableKind::CSR;
  if (table.getRank() != (isCSR ? 1 : 2))
    return op->emitOpError("expects 'lookup_table' of a ")
           << stringifyTableKind(kind) << " table to have "
           << (isCSR ? "one dimension" : "two dimensions") << ", got " << table;
  if (failed(verifyContiguous(op, "lookup_table", table)))
    return failure();
  bool hasIndex = bool(op.getTableIndex());
  if (hasIndex != (kind != TableKind::Dense))
    return op->emitOpError("expects 'table_index' if and only if the table is "
                           "csr or rows, got a ")
           << stringifyTableKind(kind) << " table";
  if (hasIndex &&
      failed(verifyContiguous(op, "table_index", op.getTableIndex().getType())))
    return failure();
  constexpr int64_t unit = 8;
  int64_t stride = table.getStridesAndOffset().first[0];
  if (kind == TableKind::Rows && !ShapedType::isDynamic(stride) &&
      stride % unit != 0)
    return op->emitOpError("expects the row stride of 'lookup_table' to be a "
                           "multiple of ")
           << unit << " entries in a rows table, got " << stride;
  return success();
}

/// Checks the ops that bundle a paged cache.
static LogicalResult verifyPagedBundle(BundleOpInterface op) {
  CacheTypeInterface type = op.getBundle().getType();
  // (C1), (C2)
  if (failed(verifyTensor(op, "blocks", op.getBlocks().getType(),
                          getViewType(type, /*isScales=*/false))))
    return failure();
  // (C3), (C8)
  if (failed(verifyContiguous(op, "cache_lengths",
                              op.getCacheLengths().getType())) ||
      failed(verifyTable(op, type.getTable())))
    return failure();
  // (C4)
  if (type.isQuantized() && !op.getScales())
    return op->emitOpError("expects 'scales' for a quantized cache");
  if (!type.isQuantized() && op.getScales())
    return op->emitOpError("expects 'scales' only for a quantized cache");
  if (op.getScalesLookupTable() && !op.getScales())
    return op->emitOpError("expects 'scales_lookup_table' only with 'scales'");
  if (!op.getScales())
    return success();
  // (C9)
  if (op.getScalesLookupTable() && type.getTable() != TableKind::Dense)
    return op->emitOpError("expects 'scales_lookup_table' only with a dense "
                           "table, got a ")
           << stringifyTableKind(type.getTable()) << " table";
  if (op.getScalesLookupTable() &&
      failed(verifyContiguous(op, "scales_lookup_table",
                              op.getScalesLookupTable().getType())))
    return failure();
  // (C5)
  return verifyTensor(op, "scales", op.getScales().getType(),
                      getViewType(type, /*isScales=*/true));
}

/// Checks the ops that bundle a continuous cache.
static LogicalResult verifyContinuousBundle(BundleOpInterface op) {
  CacheTypeInterface type = op.getBundle().getType();
  // (C1), (C2)
  if (failed(verifyTensor(op, "blocks", op.getBlocks().getType(),
                          getViewType(type, /*isScales=*/false))))
    return failure();
  // (C3)
  if (failed(verifyContiguous(op, "cache_lengths",
                              op.getCacheLengths().getType())))
    return failure();
  return verifyContiguous(op, "lookup_table", op.getLookupTable().getType());
}

LogicalResult PagedCollectionOp::verify() { return verifyPagedBundle(*this); }
LogicalResult PagedCacheOp::verify() { return verifyPagedBundle(*this); }
LogicalResult ContinuousCollectionOp::verify() {
  return verifyContinuousBundle(*this);
}
LogicalResult ContinuousCacheOp::verify() {
  return verifyContinuousBundle(*this);
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
  types.push_back(getViewType(type, /*isScales=*/false));
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
  types.push_back(getViewType(type, /*isScales=*/false));
  return success();
}
