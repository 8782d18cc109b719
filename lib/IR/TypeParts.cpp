//===- TypeParts.cpp - The values that a value of a type becomes ----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/IR/CacheShape.h"
#include "kvcache/IR/FragmentLayout.h"
#include "kvcache/IR/MatrixOps.h"

using namespace mlir;
using namespace mlir::kvcache;

Type kvcache::getStorageType(Type elementType) {
  return elementType.getIntOrFloatBitWidth() < 8
             ? IntegerType::get(elementType.getContext(), 8)
             : elementType;
}

StringRef kvcache::stringifyPartKind(PartKind kind) {
  switch (kind) {
  case PartKind::Blocks:
    return "blocks";
  case PartKind::NumPages:
    return "num_pages";
  case PartKind::NumLayers:
    return "num_layers";
  case PartKind::RoleStride:
    return "role_stride";
  case PartKind::LayerStride:
    return "layer_stride";
  case PartKind::PageStride:
    return "page_stride";
  case PartKind::HeadStride:
    return "head_stride";
  case PartKind::PageSize:
    return "page_size";
  case PartKind::BlockTokens:
    return "block_tokens";
  case PartKind::Lengths:
    return "cache_lengths";
  case PartKind::Batch:
    return "batch";
  case PartKind::Table:
    return "lookup_table";
  case PartKind::Columns:
    return "table_columns";
  case PartKind::TableStride:
    return "table_stride";
  case PartKind::TableStarts:
    return "table_starts";
  case PartKind::TableRows:
    return "table_rows";
  case PartKind::NumTableRows:
    return "num_table_rows";
  case PartKind::MaxSeqLength:
    return "max_seq_length";
  case PartKind::MaxCacheLength:
    return "max_cache_length";
  case PartKind::Scales:
    return "scales";
  case PartKind::ScalePages:
    return "scale_pages";
  case PartKind::ScaleRoleStride:
    return "scale_role_stride";
  case PartKind::ScaleLayerStride:
    return "scale_layer_stride";
  case PartKind::ScalePageStride:
    return "scale_page_stride";
  case PartKind::ScaleHeadStride:
    return "scale_head_stride";
  case PartKind::ScaleTable:
    return "scale_table";
  case PartKind::ScaleColumns:
    return "scale_columns";
  case PartKind::ScaleTableStride:
    return "scale_table_stride";
  case PartKind::TableEntry:
    return "table_entry";
  case PartKind::RowsPerPage:
    return "rows_per_page";
  case PartKind::Row:
    return "row";
  case PartKind::TileMemory:
    return "tile_memory";
  case PartKind::Register:
    return "register";
  case PartKind::TmemAddress:
    return "tmem_address";
  }
  llvm_unreachable("covered switch");
}

/// A pointer to elements: a rank-0 memref with a run-time offset.
static MemRefType getPointerType(Type elementType) {
  MLIRContext *context = elementType.getContext();
  return MemRefType::get(
      {}, elementType,
      StridedLayoutAttr::get(context, ShapedType::kDynamic, {}));
}

/// The parts of any collection or view, from its interface.
static SmallVector<Part> getCacheParts(CacheTypeInterface cache) {
  MLIRContext *context = cache.getContext();
  Type i32 = IntegerType::get(context, 32);
  Type index = IndexType::get(context);
  MemRefType table = getPointerType(i32);
  bool collection = cache.isCollection();

  SmallVector<Part> parts;
  parts.push_back({PartKind::Blocks, getPointerType(cache.getStorageType())});
  parts.push_back({PartKind::NumPages, i32});
  if (collection) {
    parts.push_back({PartKind::NumLayers, i32});
    if (!cache.isMLA())
      parts.push_back({PartKind::RoleStride, index});
    parts.push_back({PartKind::LayerStride, index});
  }
  parts.push_back({PartKind::PageStride, index});
  if (cache.hasOpenHeadStride())
    parts.push_back({PartKind::HeadStride, index});
  if (!cache.isPaged())
    parts.push_back({PartKind::BlockTokens, i32});
  else if (!cache.hasStaticPageSize())
    parts.push_back({PartKind::PageSize, i32});
  parts.push_back({PartKind::Lengths, table});
  parts.push_back({PartKind::Batch, i32});
  parts.push_back({PartKind::Table, table});
  if (cache.isPaged())
    parts.push_back({PartKind::Columns, i32});
  if (cache.getTable() == TableKind::CSR)
    parts.push_back({PartKind::TableStarts, table});
  else if (cache.isPaged())
    parts.push_back({PartKind::TableStride, i32});
  if (cache.getTable() == TableKind::Rows) {
    parts.push_back({PartKind::TableRows, table});
    parts.push_back({PartKind::NumTableRows, i32});
  }
  parts.push_back({PartKind::MaxSeqLength, i32});
  parts.push_back({PartKind::MaxCacheLength, i32});
  if (!cache.isQuantized())
    return parts;

  parts.push_back({PartKind::Scales, getPointerType(cache.getScale())});
  parts.push_back({PartKind::ScalePages, i32});
  if (collection) {
    if (!cache.isMLA())
      parts.push_back({PartKind::ScaleRoleStride, index});
    parts.push_back({PartKind::ScaleLayerStride, index});
  }
  parts.push_back({PartKind::ScalePageStride, index});
  if (isOpen(cache.getScaleLayout()))
    parts.push_back({PartKind::ScaleHeadStride, index});
  // Only dense tables differ for elements and scales.
  if (cache.getTable() != TableKind::Dense)
    return parts;
  parts.push_back({PartKind::ScaleTable, table});
  parts.push_back({PartKind::ScaleColumns, i32});
  parts.push_back({PartKind::ScaleTableStride, i32});
  return parts;
}

SmallVector<Part> PagedCollectionType::getParts() const {
  return getCacheParts(*this);
}
SmallVector<Part> PagedCacheType::getParts() const {
  return getCacheParts(*this);
}
SmallVector<Part> ContinuousCollectionType::getParts() const {
  return getCacheParts(*this);
}
SmallVector<Part> ContinuousCacheType::getParts() const {
  return getCacheParts(*this);
}

//===----------------------------------------------------------------------===//
// Scales as a cache
//===----------------------------------------------------------------------===//

// A cache without scales answers as if its elements were the scales, so that
// the shape of a view without memory is a shape as well.
Type ScalesType::getElementType() const {
  return hasMemory() ? getViewed().getScale() : getViewed().getElementType();
}
ParamsAttr ScalesType::getParams() const { return getViewed().getParams(); }
bool ScalesType::isPaged() const { return getViewed().isPaged(); }
int64_t ScalesType::getPageSize() const { return getViewed().getPageSize(); }
Type ScalesType::getScale() const { return {}; }
int64_t ScalesType::getGranularity() const { return 0; }
LayoutAttrInterface ScalesType::getLayout() const {
  return getViewed().getScaleLayout();
}
TableKind ScalesType::getTable() const { return getViewed().getTable(); }
bool ScalesType::isCollection() const { return false; }
int64_t ScalesType::getElementsPerLane() const {
  return hasMemory() ? getViewed().getGranularity() : 1;
}
bool ScalesType::hasMemory() const { return getViewed().isQuantized(); }
int64_t ScalesType::getTokensPerRow() const {
  return getViewed().getTokenGranularity();
}
int64_t ScalesType::getNumbersPerLane() const {
  return getViewed().getZeroPoint() ? 2 : 1;
}

SmallVector<Part> ScalesType::getParts() const {
  bool sharesTable = hasMemory() && getTable() != TableKind::Dense;
  auto isOfScales = [&](const Part &part) {
    switch (part.kind) {
    case PartKind::Table:
    case PartKind::Columns:
    case PartKind::TableStride:
    case PartKind::TableStarts:
    case PartKind::TableRows:
    case PartKind::NumTableRows:
      return sharesTable;
    case PartKind::PageSize:
    case PartKind::Lengths:
    case PartKind::Batch:
    case PartKind::MaxCacheLength:
    case PartKind::Scales:
    case PartKind::ScalePages:
    case PartKind::ScalePageStride:
    case PartKind::ScaleHeadStride:
    case PartKind::ScaleTable:
    case PartKind::ScaleColumns:
    case PartKind::ScaleTableStride:
      return true;
    default:
      return false;
    }
  };
  return llvm::filter_to_vector(getViewed().getParts(), isOfScales);
}

//===----------------------------------------------------------------------===//
// Row indices
//===----------------------------------------------------------------------===//

SmallVector<Part> RowIndicesType::getParts() const {
  Type index = IndexType::get(getContext());
  SmallVector<Part> parts;
  for (int64_t page = 0; page < getNumPages(); ++page)
    parts.push_back({PartKind::Row, index});
  if (getNumPages() == 1)
    return parts;
  parts.push_back({PartKind::TableEntry,
                   getPointerType(IntegerType::get(getContext(), 32))});
  parts.push_back({PartKind::RowsPerPage, index});
  return parts;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

tma::TileLayout TileType::getLayout() const {
  return {getRows(), getColumns(),
          static_cast<int64_t>(getElementType().getIntOrFloatBitWidth()) / 8,
          toTMA(getSwizzle())};
}

MemRefType TileType::getMemoryType() const {
  auto shared =
      gpu::AddressSpaceAttr::get(getContext(), gpu::AddressSpace::Workgroup);
  return MemRefType::get({getLayout().getBytes()},
                         IntegerType::get(getContext(), 8),
                         MemRefLayoutAttrInterface(), shared);
}

SmallVector<Part> TokenType::getParts() const { return {}; }

SmallVector<Part> TileType::getParts() const {
  return {{PartKind::TileMemory, getMemoryType()}};
}

bool TmemTileType::isPacked() const {
  return getElementType().getIntOrFloatBitWidth() < 32;
}

int64_t TmemTileType::getNumProducts() const {
  return !isPacked() && getColumns() > WgmmaProduct::kMostColumns ? 2 : 1;
}

bool TmemTileType::isSplitByLanes() const {
  return getNumProducts() == 2 && getRows() < kMemoryLanes;
}

int64_t TmemTileType::getWidth() const {
  int64_t bits = getColumns() * getElementType().getIntOrFloatBitWidth();
  return bits / 32 / (isSplitByLanes() ? 2 : 1);
}

int64_t TmemTileType::getFragmentUnit() const {
  return getElementType().getIntOrFloatBitWidth() == 8 ? 16 : 8;
}

SmallVector<Part> TmemTileType::getParts() const {
  return {{PartKind::TmemAddress, IntegerType::get(getContext(), 32)}};
}

SmallVector<Part> FragmentType::getParts() const {
  const auto &digits = LayoutDigits::get(*this);
  if (!hasColumns())
    return SmallVector<Part>(digits.getRows(getRows()).size(),
                             {PartKind::Register, getElementType()});
  Type type = digits.isAccumulator() ? getElementType()
                                     : IntegerType::get(getContext(), 32);
  size_t elements = LayoutDigits::getPlaces(*this).size();
  return SmallVector<Part>(elements / digits.countPacked(),
                           {PartKind::Register, type});
}

SmallVector<Part> InFlightType::getParts() const {
  const auto &digits = LayoutDigits::get(getLayout(), getRows());
  int64_t elements = getRows() * getColumns() / digits.countThreads();
  // Each 64 columns of a transposed product are one of `wgmma`.
  int64_t products =
      digits.repeatsRows ? getColumns() / digits.countColumns() : 1;
  return SmallVector<Part>(
      products, {PartKind::Register,
                 VectorType::get(elements / products, getElementType())});
}
