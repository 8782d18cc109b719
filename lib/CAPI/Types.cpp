//===- Types.cpp - Types of the kvcache dialect ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache-c/Types.h"

#include "Checks.h"

#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Checks that a type is not null, as verifiers assume.
static LogicalResult checkPresent(Location loc, StringRef what, Type type) {
  return type ? success() : emitError(loc) << "expects " << what;
}

//===----------------------------------------------------------------------===//
// Caches
//===----------------------------------------------------------------------===//

template <typename T, typename... Args>
static MlirType getCache(MlirLocation loc, MlirType elementType,
                         MlirAttribute params, Args... args) {
  Location where = unwrap(loc);
  if (failed(checkPresent(where, "an element type", unwrap(elementType))))
    return {};
  auto shape = dyn_cast_if_present<ParamsAttr>(unwrap(params));
  if (!shape) {
    emitError(where) << "expects params to be #kvcache.params, got "
                     << unwrap(params);
    return {};
  }
  return wrap(getChecked<T>(where, unwrap(elementType), shape, args...));
}

static CacheTypeInterface unwrapCache(MlirType type) {
  return cast<CacheTypeInterface>(unwrap(type));
}

bool mlirTypeIsAKVCacheCacheType(MlirType type) {
  return isa_and_present<CacheTypeInterface>(unwrap(type));
}

MlirType mlirKVCacheCacheTypeGetElementType(MlirType type) {
  return wrap(unwrapCache(type).getElementType());
}

MlirAttribute mlirKVCacheCacheTypeGetParams(MlirType type) {
  return wrap(unwrapCache(type).getParams());
}

int64_t mlirKVCacheCacheTypeGetPageSize(MlirType type) {
  CacheTypeInterface cache = unwrapCache(type);
  return cache.isPaged() ? cache.getPageSize() : 0;
}

MlirType mlirKVCacheCacheTypeGetScale(MlirType type) {
  return wrap(unwrapCache(type).getScale());
}

int64_t mlirKVCacheCacheTypeGetGranularity(MlirType type) {
  return unwrapCache(type).getGranularity();
}

MlirType mlirKVCacheCacheTypeGetZeroPoint(MlirType type) {
  return wrap(unwrapCache(type).getZeroPoint());
}

int64_t mlirKVCacheCacheTypeGetTokenGranularity(MlirType type) {
  return unwrapCache(type).getTokenGranularity();
}

MlirAttribute mlirKVCacheCacheTypeGetLayout(MlirType type) {
  return wrap(Attribute(unwrapCache(type).getLayout()));
}

MlirAttribute mlirKVCacheCacheTypeGetScaleLayout(MlirType type) {
  return wrap(Attribute(unwrapCache(type).getScaleLayout()));
}

MlirKVCacheTableKind mlirKVCacheCacheTypeGetTable(MlirType type) {
  return static_cast<MlirKVCacheTableKind>(unwrapCache(type).getTable());
}

/// Casts an attribute to a layout. Null stays null.
static FailureOr<LayoutAttrInterface> getLayout(Location loc,
                                                MlirAttribute attribute) {
  Attribute given = unwrap(attribute);
  auto layout = dyn_cast_if_present<LayoutAttrInterface>(given);
  if (given && !layout)
    return emitError(loc) << "expects a layout, got " << given;
  return layout;
}

template <typename T>
static MlirType getWithLayout(Location loc, T type, MlirAttribute layout,
                              MlirAttribute scaleLayout, TableKind table) {
  auto elementLayout = getLayout(loc, layout);
  auto scalesLayout = getLayout(loc, scaleLayout);
  if (failed(elementLayout) || failed(scalesLayout))
    return {};
  return wrap(Type(getChecked<T>(
      loc, type.getElementType(), type.getParams(), type.getPageSize(),
      type.getScale(), type.getGranularity(), *elementLayout, *scalesLayout,
      table, type.getZeroPoint(), type.getTokenGranularity())));
}

MlirType mlirKVCacheCacheTypeGetWithLayoutChecked(MlirLocation loc,
                                                  MlirType type,
                                                  MlirAttribute layout,
                                                  MlirAttribute scaleLayout,
                                                  MlirKVCacheTableKind table) {
  Location where = unwrap(loc);
  std::optional<TableKind> kind =
      getCase(where, "table", symbolizeTableKind, table);
  if (!kind)
    return {};
  Type given = unwrap(type);
  if (auto paged = dyn_cast_if_present<PagedCacheType>(given))
    return getWithLayout(where, paged, layout, scaleLayout, *kind);
  if (auto paged = dyn_cast_if_present<PagedCollectionType>(given))
    return getWithLayout(where, paged, layout, scaleLayout, *kind);
  emitError(where) << "expects a paged cache, got " << given;
  return {};
}

bool mlirKVCacheCacheTypeIsCollection(MlirType type) {
  return unwrapCache(type).isCollection();
}

bool mlirTypeIsAKVCachePagedCollectionType(MlirType type) {
  return isa_and_present<PagedCollectionType>(unwrap(type));
}

MlirTypeID mlirKVCachePagedCollectionTypeGetTypeID() {
  return wrap(PagedCollectionType::getTypeID());
}

MlirType mlirKVCachePagedCollectionTypeGetChecked(
    MlirLocation loc, MlirType elementType, MlirAttribute params,
    int64_t pageSize, MlirType scale, int64_t granularity, MlirType zeroPoint,
    int64_t tokenGranularity) {
  return getCache<PagedCollectionType>(
      loc, elementType, params, pageSize, unwrap(scale), granularity,
      LayoutAttrInterface(), LayoutAttrInterface(), TableKind::Dense,
      unwrap(zeroPoint), tokenGranularity);
}

bool mlirTypeIsAKVCachePagedCacheType(MlirType type) {
  return isa_and_present<PagedCacheType>(unwrap(type));
}

MlirTypeID mlirKVCachePagedCacheTypeGetTypeID() {
  return wrap(PagedCacheType::getTypeID());
}

MlirType mlirKVCachePagedCacheTypeGetChecked(
    MlirLocation loc, MlirType elementType, MlirAttribute params,
    int64_t pageSize, MlirType scale, int64_t granularity, MlirType zeroPoint,
    int64_t tokenGranularity) {
  return getCache<PagedCacheType>(
      loc, elementType, params, pageSize, unwrap(scale), granularity,
      LayoutAttrInterface(), LayoutAttrInterface(), TableKind::Dense,
      unwrap(zeroPoint), tokenGranularity);
}

bool mlirTypeIsAKVCacheContinuousCollectionType(MlirType type) {
  return isa_and_present<ContinuousCollectionType>(unwrap(type));
}

MlirTypeID mlirKVCacheContinuousCollectionTypeGetTypeID() {
  return wrap(ContinuousCollectionType::getTypeID());
}

MlirType mlirKVCacheContinuousCollectionTypeGetChecked(MlirLocation loc,
                                                       MlirType elementType,
                                                       MlirAttribute params) {
  return getCache<ContinuousCollectionType>(loc, elementType, params);
}

bool mlirTypeIsAKVCacheContinuousCacheType(MlirType type) {
  return isa_and_present<ContinuousCacheType>(unwrap(type));
}

MlirTypeID mlirKVCacheContinuousCacheTypeGetTypeID() {
  return wrap(ContinuousCacheType::getTypeID());
}

MlirType mlirKVCacheContinuousCacheTypeGetChecked(MlirLocation loc,
                                                  MlirType elementType,
                                                  MlirAttribute params) {
  return getCache<ContinuousCacheType>(loc, elementType, params);
}

bool mlirTypeIsAKVCacheScalesType(MlirType type) {
  return isa_and_present<ScalesType>(unwrap(type));
}

MlirTypeID mlirKVCacheScalesTypeGetTypeID() {
  return wrap(ScalesType::getTypeID());
}

MlirType mlirKVCacheScalesTypeGetChecked(MlirLocation loc, MlirType cache) {
  if (failed(checkPresent(unwrap(loc), "a cache", unwrap(cache))))
    return {};
  return wrap(getChecked<ScalesType>(unwrap(loc), unwrap(cache)));
}

MlirType mlirKVCacheScalesTypeGetCache(MlirType type) {
  return wrap(cast<ScalesType>(unwrap(type)).getCache());
}

//===----------------------------------------------------------------------===//
// Row indices
//===----------------------------------------------------------------------===//

bool mlirTypeIsAKVCacheRowIndicesType(MlirType type) {
  return isa_and_present<RowIndicesType>(unwrap(type));
}

MlirTypeID mlirKVCacheRowIndicesTypeGetTypeID() {
  return wrap(RowIndicesType::getTypeID());
}

MlirType mlirKVCacheRowIndicesTypeGetChecked(MlirLocation loc, int64_t rows,
                                             int64_t pageSize) {
  return wrap(getChecked<RowIndicesType>(unwrap(loc), rows, pageSize));
}

int64_t mlirKVCacheRowIndicesTypeGetRows(MlirType type) {
  return cast<RowIndicesType>(unwrap(type)).getRows();
}

int64_t mlirKVCacheRowIndicesTypeGetPageSize(MlirType type) {
  return cast<RowIndicesType>(unwrap(type)).getPageSize();
}

//===----------------------------------------------------------------------===//
// Tiles, tokens and pipes
//===----------------------------------------------------------------------===//

bool mlirTypeIsAKVCacheTileType(MlirType type) {
  return isa_and_present<TileType>(unwrap(type));
}

MlirTypeID mlirKVCacheTileTypeGetTypeID() {
  return wrap(TileType::getTypeID());
}

MlirType mlirKVCacheTileTypeGetChecked(MlirLocation loc, int64_t rows,
                                       int64_t columns, MlirType elementType,
                                       MlirKVCacheSwizzle swizzle) {
  Location where = unwrap(loc);
  std::optional<Swizzle> known = getSwizzle(where, swizzle);
  if (!known ||
      failed(checkPresent(where, "an element type", unwrap(elementType))))
    return {};
  return wrap(
      getChecked<TileType>(where, rows, columns, unwrap(elementType), *known));
}

int64_t mlirKVCacheTileTypeGetRows(MlirType type) {
  return cast<TileType>(unwrap(type)).getRows();
}

int64_t mlirKVCacheTileTypeGetColumns(MlirType type) {
  return cast<TileType>(unwrap(type)).getColumns();
}

MlirType mlirKVCacheTileTypeGetElementType(MlirType type) {
  return wrap(cast<TileType>(unwrap(type)).getElementType());
}

MlirKVCacheSwizzle mlirKVCacheTileTypeGetSwizzle(MlirType type) {
  return static_cast<MlirKVCacheSwizzle>(
      cast<TileType>(unwrap(type)).getSwizzle());
}

bool mlirTypeIsAKVCacheTmemTileType(MlirType type) {
  return isa_and_present<TmemTileType>(unwrap(type));
}

MlirTypeID mlirKVCacheTmemTileTypeGetTypeID() {
  return wrap(TmemTileType::getTypeID());
}

MlirType mlirKVCacheTmemTileTypeGetChecked(MlirLocation loc, int64_t rows,
                                           int64_t columns,
                                           MlirType elementType) {
  Location where = unwrap(loc);
  if (failed(checkPresent(where, "an element type", unwrap(elementType))))
    return {};
  return wrap(
      getChecked<TmemTileType>(where, rows, columns, unwrap(elementType)));
}

int64_t mlirKVCacheTmemTileTypeGetRows(MlirType type) {
  return cast<TmemTileType>(unwrap(type)).getRows();
}

int64_t mlirKVCacheTmemTileTypeGetColumns(MlirType type) {
  return cast<TmemTileType>(unwrap(type)).getColumns();
}

MlirType mlirKVCacheTmemTileTypeGetElementType(MlirType type) {
  return wrap(cast<TmemTileType>(unwrap(type)).getElementType());
}

bool mlirTypeIsAKVCacheTokenType(MlirType type) {
  return isa_and_present<TokenType>(unwrap(type));
}

MlirTypeID mlirKVCacheTokenTypeGetTypeID() {
  return wrap(TokenType::getTypeID());
}

MlirType mlirKVCacheTokenTypeGetChecked(MlirLocation loc) {
  return wrap(getChecked<TokenType>(unwrap(loc)));
}

bool mlirTypeIsAKVCachePipeType(MlirType type) {
  return isa_and_present<PipeType>(unwrap(type));
}

MlirTypeID mlirKVCachePipeTypeGetTypeID() {
  return wrap(PipeType::getTypeID());
}

MlirType mlirKVCachePipeTypeGetChecked(MlirLocation loc, int64_t stages,
                                       intptr_t numTiles, const MlirType *tiles,
                                       int64_t producers) {
  SmallVector<Type, 4> unwrapped;
  for (Type tile : unwrapList(numTiles, tiles, unwrapped))
    if (failed(checkPresent(unwrap(loc), "tiles", tile)))
      return {};
  return wrap(getChecked<PipeType>(unwrap(loc), stages,
                                   ArrayRef<Type>(unwrapped), producers));
}

int64_t mlirKVCachePipeTypeGetStages(MlirType type) {
  return cast<PipeType>(unwrap(type)).getStages();
}

intptr_t mlirKVCachePipeTypeGetNumTiles(MlirType type) {
  return cast<PipeType>(unwrap(type)).getTiles().size();
}

MlirType mlirKVCachePipeTypeGetTile(MlirType type, intptr_t index) {
  return wrap(cast<PipeType>(unwrap(type)).getTiles()[index]);
}

int64_t mlirKVCachePipeTypeGetProducers(MlirType type) {
  return cast<PipeType>(unwrap(type)).getProducers();
}

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

bool mlirTypeIsAKVCacheTMATileType(MlirType type) {
  return isa_and_present<TMATileType>(unwrap(type));
}

MlirTypeID mlirKVCacheTMATileTypeGetTypeID() {
  return wrap(TMATileType::getTypeID());
}

MlirType mlirKVCacheTMATileTypeGetChecked(MlirLocation loc, intptr_t rank,
                                          const int64_t *box,
                                          MlirType elementType,
                                          MlirKVCacheSwizzle swizzle,
                                          int64_t l2Promotion) {
  Location where = unwrap(loc);
  std::optional<Swizzle> known = getSwizzle(where, swizzle);
  if (!known ||
      failed(checkPresent(where, "an element type", unwrap(elementType))))
    return {};
  return wrap(getChecked<TMATileType>(
      where, ArrayRef(box, rank), unwrap(elementType), *known, l2Promotion));
}

intptr_t mlirKVCacheTMATileTypeGetRank(MlirType type) {
  return cast<TMATileType>(unwrap(type)).getBox().size();
}

int64_t mlirKVCacheTMATileTypeGetBoxSide(MlirType type, intptr_t index) {
  return cast<TMATileType>(unwrap(type)).getBox()[index];
}

MlirType mlirKVCacheTMATileTypeGetElementType(MlirType type) {
  return wrap(cast<TMATileType>(unwrap(type)).getElementType());
}

MlirKVCacheSwizzle mlirKVCacheTMATileTypeGetSwizzle(MlirType type) {
  return static_cast<MlirKVCacheSwizzle>(
      cast<TMATileType>(unwrap(type)).getSwizzle());
}

int64_t mlirKVCacheTMATileTypeGetL2Promotion(MlirType type) {
  return cast<TMATileType>(unwrap(type)).getL2Promotion();
}
