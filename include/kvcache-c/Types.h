//===- Types.h - Types of the kvcache dialect ---------------------*- C -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A function whose name ends in GetChecked returns null and reports an error at
// `loc` if its arguments violate a constraint of the type, or if the context
// has not loaded the dialect. Getters expect a type of their kind.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_C_TYPES_H
#define KVCACHE_C_TYPES_H

#include "kvcache-c/Attributes.h"

#ifdef __cplusplus
extern "C" {
#endif

//===----------------------------------------------------------------------===//
// Caches: collections of all layers, views of one layer, and views of its
// scales
//===----------------------------------------------------------------------===//

/// How a lookup table gives the pages of a sequence.
typedef enum MlirKVCacheTableKind {
  MlirKVCacheTableKindDense = 0,
  MlirKVCacheTableKindCSR = 1,
  MlirKVCacheTableKindRows = 2,
} MlirKVCacheTableKind;

/// Whether a type is one of the types below, which have the following getters.
MLIR_CAPI_EXPORTED bool mlirTypeIsAKVCacheCacheType(MlirType type);
/// The type of the elements, or of the scales.
MLIR_CAPI_EXPORTED MlirType mlirKVCacheCacheTypeGetElementType(MlirType type);
MLIR_CAPI_EXPORTED MlirAttribute mlirKVCacheCacheTypeGetParams(MlirType type);
/// Tokens in a page, `mlirShapedTypeGetDynamicSize` for `?`; 0 for a continuous
/// cache.
MLIR_CAPI_EXPORTED int64_t mlirKVCacheCacheTypeGetPageSize(MlirType type);
/// The type of the scales; null if not quantized.
MLIR_CAPI_EXPORTED MlirType mlirKVCacheCacheTypeGetScale(MlirType type);
/// Elements that share a scale; 0 if not quantized.
MLIR_CAPI_EXPORTED int64_t mlirKVCacheCacheTypeGetGranularity(MlirType type);
/// The type of the zero points; null if there are none.
MLIR_CAPI_EXPORTED MlirType mlirKVCacheCacheTypeGetZeroPoint(MlirType type);
/// Consecutive tokens that share a scale; 1 if each has scales of its own.
MLIR_CAPI_EXPORTED int64_t
mlirKVCacheCacheTypeGetTokenGranularity(MlirType type);
/// The layout of pages, or of their scales; null for packed rows.
MLIR_CAPI_EXPORTED MlirAttribute mlirKVCacheCacheTypeGetLayout(MlirType type);
MLIR_CAPI_EXPORTED MlirAttribute
mlirKVCacheCacheTypeGetScaleLayout(MlirType type);
/// How the lookup table gives the pages of a sequence.
MLIR_CAPI_EXPORTED MlirKVCacheTableKind
mlirKVCacheCacheTypeGetTable(MlirType type);
/// The paged collection or view `type` with another layout of its pages and
/// scales, each null for packed rows, and another form of table.
MLIR_CAPI_EXPORTED MlirType mlirKVCacheCacheTypeGetWithLayoutChecked(
    MlirLocation loc, MlirType type, MlirAttribute layout,
    MlirAttribute scaleLayout, MlirKVCacheTableKind table);
/// Whether this is a collection of all layers.
MLIR_CAPI_EXPORTED bool mlirKVCacheCacheTypeIsCollection(MlirType type);

/// !kvcache.paged_collection<bf16, #kv, page_size = 64>
MLIR_CAPI_EXPORTED bool mlirTypeIsAKVCachePagedCollectionType(MlirType type);
MLIR_CAPI_EXPORTED MlirTypeID mlirKVCachePagedCollectionTypeGetTypeID(void);
/// `pageSize` is `mlirShapedTypeGetDynamicSize` for `?`. Without scales `scale`
/// is null and `granularity` 0; without zero points `zeroPoint` is null.
/// `tokenGranularity` is 1 unless tokens share scales.
MLIR_CAPI_EXPORTED MlirType mlirKVCachePagedCollectionTypeGetChecked(
    MlirLocation loc, MlirType elementType, MlirAttribute params,
    int64_t pageSize, MlirType scale, int64_t granularity, MlirType zeroPoint,
    int64_t tokenGranularity);

/// !kvcache.paged<bf16, #kv, page_size = 64>
MLIR_CAPI_EXPORTED bool mlirTypeIsAKVCachePagedCacheType(MlirType type);
MLIR_CAPI_EXPORTED MlirTypeID mlirKVCachePagedCacheTypeGetTypeID(void);
/// `pageSize` is `mlirShapedTypeGetDynamicSize` for `?`. Without scales `scale`
/// is null and `granularity` 0; without zero points `zeroPoint` is null.
/// `tokenGranularity` is 1 unless tokens share scales.
MLIR_CAPI_EXPORTED MlirType mlirKVCachePagedCacheTypeGetChecked(
    MlirLocation loc, MlirType elementType, MlirAttribute params,
    int64_t pageSize, MlirType scale, int64_t granularity, MlirType zeroPoint,
    int64_t tokenGranularity);

/// !kvcache.continuous_collection<bf16, #kv>
MLIR_CAPI_EXPORTED bool
mlirTypeIsAKVCacheContinuousCollectionType(MlirType type);
MLIR_CAPI_EXPORTED MlirTypeID
mlirKVCacheContinuousCollectionTypeGetTypeID(void);
MLIR_CAPI_EXPORTED MlirType mlirKVCacheContinuousCollectionTypeGetChecked(
    MlirLocation loc, MlirType elementType, MlirAttribute params);

/// !kvcache.continuous<bf16, #kv>
MLIR_CAPI_EXPORTED bool mlirTypeIsAKVCacheContinuousCacheType(MlirType type);
MLIR_CAPI_EXPORTED MlirTypeID mlirKVCacheContinuousCacheTypeGetTypeID(void);
MLIR_CAPI_EXPORTED MlirType mlirKVCacheContinuousCacheTypeGetChecked(
    MlirLocation loc, MlirType elementType, MlirAttribute params);

/// !kvcache.scales<!cache>
MLIR_CAPI_EXPORTED bool mlirTypeIsAKVCacheScalesType(MlirType type);
MLIR_CAPI_EXPORTED MlirTypeID mlirKVCacheScalesTypeGetTypeID(void);
MLIR_CAPI_EXPORTED MlirType mlirKVCacheScalesTypeGetChecked(MlirLocation loc,
                                                            MlirType cache);
/// The cache of the scales.
MLIR_CAPI_EXPORTED MlirType mlirKVCacheScalesTypeGetCache(MlirType type);

//===----------------------------------------------------------------------===//
// RowIndicesType: !kvcache.row_indices<rows = 128, page_size = 64>
//===----------------------------------------------------------------------===//

MLIR_CAPI_EXPORTED bool mlirTypeIsAKVCacheRowIndicesType(MlirType type);
MLIR_CAPI_EXPORTED MlirTypeID mlirKVCacheRowIndicesTypeGetTypeID(void);
/// `pageSize` is 0 for a continuous cache, `mlirShapedTypeGetDynamicSize` for
/// `?`.
MLIR_CAPI_EXPORTED MlirType mlirKVCacheRowIndicesTypeGetChecked(
    MlirLocation loc, int64_t rows, int64_t pageSize);
MLIR_CAPI_EXPORTED int64_t mlirKVCacheRowIndicesTypeGetRows(MlirType type);
MLIR_CAPI_EXPORTED int64_t mlirKVCacheRowIndicesTypeGetPageSize(MlirType type);

//===----------------------------------------------------------------------===//
// TileType: !kvcache.tile<64x128xbf16, swizzle_128b>
//===----------------------------------------------------------------------===//

MLIR_CAPI_EXPORTED bool mlirTypeIsAKVCacheTileType(MlirType type);
MLIR_CAPI_EXPORTED MlirTypeID mlirKVCacheTileTypeGetTypeID(void);
MLIR_CAPI_EXPORTED MlirType
mlirKVCacheTileTypeGetChecked(MlirLocation loc, int64_t rows, int64_t columns,
                              MlirType elementType, MlirKVCacheSwizzle swizzle);
MLIR_CAPI_EXPORTED int64_t mlirKVCacheTileTypeGetRows(MlirType type);
MLIR_CAPI_EXPORTED int64_t mlirKVCacheTileTypeGetColumns(MlirType type);
MLIR_CAPI_EXPORTED MlirType mlirKVCacheTileTypeGetElementType(MlirType type);
MLIR_CAPI_EXPORTED MlirKVCacheSwizzle
mlirKVCacheTileTypeGetSwizzle(MlirType type);

//===----------------------------------------------------------------------===//
// TmemTileType: !kvcache.tmem_tile<64x512xf32>
//===----------------------------------------------------------------------===//

MLIR_CAPI_EXPORTED bool mlirTypeIsAKVCacheTmemTileType(MlirType type);
MLIR_CAPI_EXPORTED MlirTypeID mlirKVCacheTmemTileTypeGetTypeID(void);
MLIR_CAPI_EXPORTED MlirType mlirKVCacheTmemTileTypeGetChecked(
    MlirLocation loc, int64_t rows, int64_t columns, MlirType elementType);
MLIR_CAPI_EXPORTED int64_t mlirKVCacheTmemTileTypeGetRows(MlirType type);
MLIR_CAPI_EXPORTED int64_t mlirKVCacheTmemTileTypeGetColumns(MlirType type);
MLIR_CAPI_EXPORTED MlirType
mlirKVCacheTmemTileTypeGetElementType(MlirType type);

//===----------------------------------------------------------------------===//
// TokenType: !kvcache.token
//===----------------------------------------------------------------------===//

MLIR_CAPI_EXPORTED bool mlirTypeIsAKVCacheTokenType(MlirType type);
MLIR_CAPI_EXPORTED MlirTypeID mlirKVCacheTokenTypeGetTypeID(void);
MLIR_CAPI_EXPORTED MlirType mlirKVCacheTokenTypeGetChecked(MlirLocation loc);

//===----------------------------------------------------------------------===//
// PipeType: !kvcache.pipe<3, !kt, !kt>
//===----------------------------------------------------------------------===//

MLIR_CAPI_EXPORTED bool mlirTypeIsAKVCachePipeType(MlirType type);
MLIR_CAPI_EXPORTED MlirTypeID mlirKVCachePipeTypeGetTypeID(void);
/// `producers` is the number of warps that fill the slots, 0 if all threads do.
MLIR_CAPI_EXPORTED MlirType mlirKVCachePipeTypeGetChecked(MlirLocation loc,
                                                          int64_t stages,
                                                          intptr_t numTiles,
                                                          const MlirType *tiles,
                                                          int64_t producers);
MLIR_CAPI_EXPORTED int64_t mlirKVCachePipeTypeGetStages(MlirType type);
MLIR_CAPI_EXPORTED intptr_t mlirKVCachePipeTypeGetNumTiles(MlirType type);
/// Expects `index` to be below the number of tiles.
MLIR_CAPI_EXPORTED MlirType mlirKVCachePipeTypeGetTile(MlirType type,
                                                       intptr_t index);
MLIR_CAPI_EXPORTED int64_t mlirKVCachePipeTypeGetProducers(MlirType type);

//===----------------------------------------------------------------------===//
// TMATileType: !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
//===----------------------------------------------------------------------===//

MLIR_CAPI_EXPORTED bool mlirTypeIsAKVCacheTMATileType(MlirType type);
MLIR_CAPI_EXPORTED MlirTypeID mlirKVCacheTMATileTypeGetTypeID(void);
/// The sides of the box are innermost first. `l2Promotion` is in bytes, 0 for
/// none.
MLIR_CAPI_EXPORTED MlirType mlirKVCacheTMATileTypeGetChecked(
    MlirLocation loc, intptr_t rank, const int64_t *box, MlirType elementType,
    MlirKVCacheSwizzle swizzle, int64_t l2Promotion);
MLIR_CAPI_EXPORTED intptr_t mlirKVCacheTMATileTypeGetRank(MlirType type);
/// Expects `index` to be below the rank.
MLIR_CAPI_EXPORTED int64_t mlirKVCacheTMATileTypeGetBoxSide(MlirType type,
                                                            intptr_t index);
MLIR_CAPI_EXPORTED MlirType mlirKVCacheTMATileTypeGetElementType(MlirType type);
MLIR_CAPI_EXPORTED MlirKVCacheSwizzle
mlirKVCacheTMATileTypeGetSwizzle(MlirType type);
MLIR_CAPI_EXPORTED int64_t mlirKVCacheTMATileTypeGetL2Promotion(MlirType type);

//===----------------------------------------------------------------------===//
// FragmentType: !kvcache.fragment<64x128xf32, wgmma_acc>
//===----------------------------------------------------------------------===//

/// The elements of a matrix that a thread has.
typedef enum MlirKVCacheFragmentLayout {
  MlirKVCacheFragmentLayoutMmaAcc = 0,
  MlirKVCacheFragmentLayoutMmaA16 = 1,
  MlirKVCacheFragmentLayoutWgmmaAcc = 2,
  MlirKVCacheFragmentLayoutWgmmaA16 = 3,
  MlirKVCacheFragmentLayoutWgmmaA8 = 4,
  MlirKVCacheFragmentLayoutTmemAcc = 5,
  MlirKVCacheFragmentLayoutWgmmaAccT = 6,
  MlirKVCacheFragmentLayoutMmaA16Pairs = 7,
  MlirKVCacheFragmentLayoutMmaAccPairs = 8,
  MlirKVCacheFragmentLayoutTmemRow = 9,
  MlirKVCacheFragmentLayoutMmaA16Quads = 10,
  MlirKVCacheFragmentLayoutMmaAccQuads = 11,
} MlirKVCacheFragmentLayout;

MLIR_CAPI_EXPORTED bool mlirTypeIsAKVCacheFragmentType(MlirType type);
MLIR_CAPI_EXPORTED MlirTypeID mlirKVCacheFragmentTypeGetTypeID(void);
/// `shape` has `rank` sizes: rows, and columns of a matrix.
MLIR_CAPI_EXPORTED MlirType mlirKVCacheFragmentTypeGetChecked(
    MlirLocation loc, intptr_t rank, const int64_t *shape, MlirType elementType,
    MlirKVCacheFragmentLayout layout, bool partial);
MLIR_CAPI_EXPORTED intptr_t mlirKVCacheFragmentTypeGetRank(MlirType type);
/// Expects `index` to be below the rank.
MLIR_CAPI_EXPORTED int64_t mlirKVCacheFragmentTypeGetDimSize(MlirType type,
                                                             intptr_t index);
MLIR_CAPI_EXPORTED MlirType
mlirKVCacheFragmentTypeGetElementType(MlirType type);
MLIR_CAPI_EXPORTED MlirKVCacheFragmentLayout
mlirKVCacheFragmentTypeGetLayout(MlirType type);
MLIR_CAPI_EXPORTED bool mlirKVCacheFragmentTypeGetPartial(MlirType type);

//===----------------------------------------------------------------------===//
// InFlightType: !kvcache.in_flight<64x128xf32, wgmma_acc>
//===----------------------------------------------------------------------===//

MLIR_CAPI_EXPORTED bool mlirTypeIsAKVCacheInFlightType(MlirType type);
MLIR_CAPI_EXPORTED MlirTypeID mlirKVCacheInFlightTypeGetTypeID(void);
MLIR_CAPI_EXPORTED MlirType mlirKVCacheInFlightTypeGetChecked(
    MlirLocation loc, int64_t rows, int64_t columns, MlirType elementType,
    MlirKVCacheFragmentLayout layout);
/// The product when it is complete, a fragment.
MLIR_CAPI_EXPORTED MlirType mlirKVCacheInFlightTypeGetComplete(MlirType type);

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_C_TYPES_H
