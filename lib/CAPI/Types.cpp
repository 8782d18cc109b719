//===- Types.cpp - Types of the kvcache dialect ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache-c/Types.h"

#include "Accessors.h"

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

KVCACHE_CLASS(Type, PagedCollectionType)

MlirType mlirKVCachePagedCollectionTypeGetChecked(
    MlirLocation loc, MlirType elementType, MlirAttribute params,
    int64_t pageSize, MlirType scale, int64_t granularity, MlirType zeroPoint,
    int64_t tokenGranularity) {
  return getCache<PagedCollectionType>(
      loc, elementType, params, pageSize, unwrap(scale), granularity,
      LayoutAttrInterface(), LayoutAttrInterface(), TableKind::Dense,
      unwrap(zeroPoint), tokenGranularity);
}

KVCACHE_CLASS(Type, PagedCacheType)

MlirType mlirKVCachePagedCacheTypeGetChecked(
    MlirLocation loc, MlirType elementType, MlirAttribute params,
    int64_t pageSize, MlirType scale, int64_t granularity, MlirType zeroPoint,
    int64_t tokenGranularity) {
  return getCache<PagedCacheType>(
      loc, elementType, params, pageSize, unwrap(scale), granularity,
      LayoutAttrInterface(), LayoutAttrInterface(), TableKind::Dense,
      unwrap(zeroPoint), tokenGranularity);
}

KVCACHE_CLASS(Type, ContinuousCollectionType)

MlirType mlirKVCacheContinuousCollectionTypeGetChecked(MlirLocation loc,
                                                       MlirType elementType,
                                                       MlirAttribute params) {
  return getCache<ContinuousCollectionType>(loc, elementType, params);
}

KVCACHE_CLASS(Type, ContinuousCacheType)

MlirType mlirKVCacheContinuousCacheTypeGetChecked(MlirLocation loc,
                                                  MlirType elementType,
                                                  MlirAttribute params) {
  return getCache<ContinuousCacheType>(loc, elementType, params);
}

KVCACHE_CLASS(Type, ScalesType)

MlirType mlirKVCacheScalesTypeGetChecked(MlirLocation loc, MlirType cache) {
  if (failed(checkPresent(unwrap(loc), "a cache", unwrap(cache))))
    return {};
  return wrap(getChecked<ScalesType>(unwrap(loc), unwrap(cache)));
}

KVCACHE_GETTER(Type, ScalesType, MlirType, Cache)

//===----------------------------------------------------------------------===//
// Row indices
//===----------------------------------------------------------------------===//

KVCACHE_CLASS(Type, RowIndicesType)

MlirType mlirKVCacheRowIndicesTypeGetChecked(MlirLocation loc, int64_t rows,
                                             int64_t pageSize) {
  return wrap(getChecked<RowIndicesType>(unwrap(loc), rows, pageSize));
}

KVCACHE_GETTER(Type, RowIndicesType, int64_t, Rows)
KVCACHE_GETTER(Type, RowIndicesType, int64_t, PageSize)

//===----------------------------------------------------------------------===//
// Tiles, tokens and pipes
//===----------------------------------------------------------------------===//

KVCACHE_CLASS(Type, TileType)

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

KVCACHE_GETTER(Type, TileType, int64_t, Rows)
KVCACHE_GETTER(Type, TileType, int64_t, Columns)
KVCACHE_GETTER(Type, TileType, MlirType, ElementType)
KVCACHE_GETTER(Type, TileType, MlirKVCacheSwizzle, Swizzle)
KVCACHE_CLASS(Type, TmemTileType)

MlirType mlirKVCacheTmemTileTypeGetChecked(MlirLocation loc, int64_t rows,
                                           int64_t columns,
                                           MlirType elementType) {
  Location where = unwrap(loc);
  if (failed(checkPresent(where, "an element type", unwrap(elementType))))
    return {};
  return wrap(
      getChecked<TmemTileType>(where, rows, columns, unwrap(elementType)));
}

KVCACHE_GETTER(Type, TmemTileType, int64_t, Rows)
KVCACHE_GETTER(Type, TmemTileType, int64_t, Columns)
KVCACHE_GETTER(Type, TmemTileType, MlirType, ElementType)
KVCACHE_CLASS(Type, TokenType)

MlirType mlirKVCacheTokenTypeGetChecked(MlirLocation loc) {
  return wrap(getChecked<TokenType>(unwrap(loc)));
}

KVCACHE_CLASS(Type, PipeType)

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

KVCACHE_GETTER(Type, PipeType, int64_t, Stages)

intptr_t mlirKVCachePipeTypeGetNumTiles(MlirType type) {
  return cast<PipeType>(unwrap(type)).getTiles().size();
}

MlirType mlirKVCachePipeTypeGetTile(MlirType type, intptr_t index) {
  return wrap(cast<PipeType>(unwrap(type)).getTiles()[index]);
}

KVCACHE_GETTER(Type, PipeType, int64_t, Producers)

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

KVCACHE_CLASS(Type, TMATileType)

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

KVCACHE_GETTER(Type, TMATileType, MlirType, ElementType)
KVCACHE_GETTER(Type, TMATileType, MlirKVCacheSwizzle, Swizzle)
KVCACHE_GETTER(Type, TMATileType, int64_t, L2Promotion)

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

static std::optional<FragmentLayout>
getFragmentLayout(Location loc, const MlirKVCacheFragmentLayout &layout) {
  return getCase<FragmentLayout>(loc, "layout", symbolizeFragmentLayout,
                                 layout);
}

KVCACHE_CLASS(Type, FragmentType)

MlirType mlirKVCacheFragmentTypeGetChecked(MlirLocation loc, intptr_t rank,
                                           const int64_t *shape,
                                           MlirType elementType,
                                           MlirKVCacheFragmentLayout layout,
                                           bool partial) {
  Location where = unwrap(loc);
  std::optional<FragmentLayout> known = getFragmentLayout(where, layout);
  if (!known ||
      failed(checkPresent(where, "an element type", unwrap(elementType))))
    return {};
  return wrap(getChecked<FragmentType>(where, ArrayRef(shape, rank),
                                       unwrap(elementType), *known, partial));
}

intptr_t mlirKVCacheFragmentTypeGetRank(MlirType type) {
  return cast<FragmentType>(unwrap(type)).getShape().size();
}

int64_t mlirKVCacheFragmentTypeGetDimSize(MlirType type, intptr_t index) {
  return cast<FragmentType>(unwrap(type)).getShape()[index];
}

KVCACHE_GETTER(Type, FragmentType, MlirType, ElementType)
KVCACHE_GETTER(Type, FragmentType, MlirKVCacheFragmentLayout, Layout)
KVCACHE_GETTER(Type, FragmentType, bool, Partial)
KVCACHE_CLASS(Type, InFlightType)

MlirType mlirKVCacheInFlightTypeGetChecked(MlirLocation loc, int64_t rows,
                                           int64_t columns,
                                           MlirType elementType,
                                           MlirKVCacheFragmentLayout layout) {
  Location where = unwrap(loc);
  std::optional<FragmentLayout> known = getFragmentLayout(where, layout);
  if (!known ||
      failed(checkPresent(where, "an element type", unwrap(elementType))))
    return {};
  return wrap(getChecked<InFlightType>(where, ArrayRef({rows, columns}),
                                       unwrap(elementType), *known));
}

KVCACHE_GETTER(Type, InFlightType, MlirType, Complete)
