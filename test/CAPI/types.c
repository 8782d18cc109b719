//===- types.c - Types of the dialect in C --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: %capi_tests/kvcache-capi-types | FileCheck %s --match-full-lines
// RUN: %capi_tests/kvcache-capi-types-static | FileCheck %s --match-full-lines

#include "common.h"

#include "kvcache-c/Dialect.h"
#include "kvcache-c/Types.h"

#include "mlir-c/BuiltinTypes.h"

static MlirType parse(MlirLocation loc, const char *text) {
  return mlirTypeParseGet(mlirLocationGetContext(loc), str(text));
}

/// Prints a type, whether it is of its kind and of no other's, and whether the
/// printed type reads as the same.
#define SHOW(KIND, TYPE, TEXT)                                                 \
  do {                                                                         \
    mlirTypePrint(TYPE, print, NULL);                                          \
    MlirType integer = parse(loc, "i32");                                      \
    printf(" | %d %d %d %d\n", mlirTypeIsAKVCache##KIND##Type(TYPE),           \
           mlirTypeIsAKVCache##KIND##Type(integer),                            \
           mlirTypeIDEqual(mlirTypeGetTypeID(TYPE),                            \
                           mlirKVCache##KIND##TypeGetTypeID()),                \
           mlirTypeEqual(TYPE, parse(loc, TEXT)));                             \
  } while (0)

#define PARAMS "#kvcache.params<num_heads = 8, head_size = 128>"
#define QUANTIZED                                                              \
  "<f8E4M3FN, " PARAMS ", page_size = 64, scale = f32, granularity = 128>"

static void showCache(MlirType type) {
  MlirAttribute params = mlirKVCacheCacheTypeGetParams(type);
  MlirType scale = mlirKVCacheCacheTypeGetScale(type);
  printf("cache %d: ", mlirTypeIsAKVCacheCacheType(type));
  mlirTypePrint(mlirKVCacheCacheTypeGetElementType(type), print, NULL);
  printf(", page %d, scale ", (int)mlirKVCacheCacheTypeGetPageSize(type));
  if (mlirTypeIsNull(scale))
    printf("none");
  else
    mlirTypePrint(scale, print, NULL);
  printf(" per %d, heads %d, all %d\n",
         (int)mlirKVCacheCacheTypeGetGranularity(type),
         (int)mlirKVCacheParamsAttrGetNumHeads(params),
         mlirKVCacheCacheTypeIsCollection(type));
}

static void testCaches(MlirLocation loc, MlirAttribute params) {
  MlirType bf16 = parse(loc, "bf16"), fp8 = parse(loc, "f8E4M3FN");
  MlirType f32 = parse(loc, "f32"), none = {NULL};

  MlirType type = mlirKVCachePagedCollectionTypeGetChecked(loc, fp8, params, 64,
                                                           f32, 128, none, 1);
  // CHECK: !kvcache.paged_collection<{{.*}}granularity = 128> | 1 0 1 1
  SHOW(PagedCollection, type, "!kvcache.paged_collection" QUANTIZED);
  // CHECK-NEXT: cache 1: f8E4M3FN, page 64, scale f32 per 128, heads 8, all 1
  showCache(type);

  type = mlirKVCachePagedCacheTypeGetChecked(loc, bf16, params, 48, none, 0,
                                             none, 1);
  // CHECK-NEXT: !kvcache.paged<bf16, {{.*}}, page_size = 48> | 1 0 1 1
  SHOW(PagedCache, type, "!kvcache.paged<bf16, " PARAMS ", page_size = 48>");
  // CHECK-NEXT: cache 1: bf16, page 48, scale none per 0, heads 8, all 0
  showCache(type);

  const int64_t open = mlirShapedTypeGetDynamicSize();
  type = mlirKVCachePagedCacheTypeGetChecked(loc, bf16, params, open, none, 0,
                                             none, 1);
  // CHECK-NEXT: !kvcache.paged<bf16, {{.*}}, page_size = ?> | 1 0 1 1
  SHOW(PagedCache, type, "!kvcache.paged<bf16, " PARAMS ", page_size = ?>");
  // CHECK-NEXT: open 1
  printf("open %d\n", mlirKVCacheCacheTypeGetPageSize(type) == open);

  MlirAttribute layout = mlirKVCacheLayoutAttrGetChecked(
      loc, /*tokenStride=*/256, mlirShapedTypeGetDynamicStrideOrOffset());
  MlirAttribute packed = {NULL};
  type = mlirKVCachePagedCacheTypeGetChecked(loc, bf16, params, 48, none, 0,
                                             none, 1);
  type = mlirKVCacheCacheTypeGetWithLayoutChecked(loc, type, layout, packed,
                                                  MlirKVCacheTableKindCSR);
  // clang-format off
  // CHECK-NEXT: !kvcache.paged<bf16, {{.*}}, page_size = 48, layout = [token = 256, head = ?], table = csr> | 1 0 1 1
  // clang-format on
  SHOW(PagedCache, type,
       "!kvcache.paged<bf16, " PARAMS
       ", page_size = 48, layout = [token = 256, head = ?], table = csr>");
  // CHECK-NEXT: layout 1, scale layout 0, table 1
  printf("layout %d, scale layout %d, table %d\n",
         mlirAttributeEqual(mlirKVCacheCacheTypeGetLayout(type), layout),
         !mlirAttributeIsNull(mlirKVCacheCacheTypeGetScaleLayout(type)),
         mlirKVCacheCacheTypeGetTable(type));

  MlirType i4 = parse(loc, "i4");
  type = mlirKVCachePagedCacheTypeGetChecked(loc, i4, params, 64, f32, 1, f32,
                                             /*tokenGranularity=*/32);
  // clang-format off
  // CHECK-NEXT: !kvcache.paged<i4, {{.*}}, granularity = 1, zero_point = f32, token_granularity = 32> | 1 0 1 1
  // clang-format on
  SHOW(PagedCache, type,
       "!kvcache.paged<i4, " PARAMS ", page_size = 64, scale = f32, "
       "granularity = 1, zero_point = f32, token_granularity = 32>");
  // CHECK-NEXT: zero points of f32 1, 32 tokens
  printf("zero points of f32 %d, %d tokens\n",
         mlirTypeEqual(mlirKVCacheCacheTypeGetZeroPoint(type), f32),
         (int)mlirKVCacheCacheTypeGetTokenGranularity(type));

  type = mlirKVCacheContinuousCollectionTypeGetChecked(loc, f32, params);
  // CHECK-NEXT: !kvcache.continuous_collection<f32, {{.*}}> | 1 0 1 1
  SHOW(ContinuousCollection, type,
       "!kvcache.continuous_collection<f32, " PARAMS ">");
  // CHECK-NEXT: cache 1: f32, page 0, scale none per 0, heads 8, all 1
  showCache(type);

  type = mlirKVCacheContinuousCacheTypeGetChecked(loc, bf16, params);
  // CHECK-NEXT: !kvcache.continuous<bf16, {{.*}}> | 1 0 1 1
  SHOW(ContinuousCache, type, "!kvcache.continuous<bf16, " PARAMS ">");

  MlirType cache = parse(loc, "!kvcache.paged" QUANTIZED);
  type = mlirKVCacheScalesTypeGetChecked(loc, cache);
  // CHECK-NEXT: !kvcache.scales<{{.*}}> | 1 0 1 1
  SHOW(Scales, type, "!kvcache.scales<!kvcache.paged" QUANTIZED ">");
  // CHECK-NEXT: cache 1: f32, page 64, scale none per 0, heads 8, all 0
  showCache(type);
  // CHECK-NEXT: scales of the cache 1, cache of i32 0
  printf("scales of the cache %d, cache of i32 %d\n",
         mlirTypeEqual(mlirKVCacheScalesTypeGetCache(type), cache),
         mlirTypeIsAKVCacheCacheType(parse(loc, "i32")));
}

static void testTiles(MlirLocation loc) {
  MlirType bf16 = parse(loc, "bf16");
  MlirType tile =
      mlirKVCacheTileTypeGetChecked(loc, 64, 128, bf16, MlirKVCacheSwizzle128B);
  // CHECK: !kvcache.tile<64x128xbf16, swizzle_128b> | 1 0 1 1
  SHOW(Tile, tile, "!kvcache.tile<64x128xbf16, swizzle_128b>");
  // CHECK-NEXT: rows 64, columns 128, bf16 1, swizzle 3
  printf("rows %d, columns %d, bf16 %d, swizzle %d\n",
         (int)mlirKVCacheTileTypeGetRows(tile),
         (int)mlirKVCacheTileTypeGetColumns(tile),
         mlirTypeEqual(mlirKVCacheTileTypeGetElementType(tile), bf16),
         (int)mlirKVCacheTileTypeGetSwizzle(tile));

  MlirType f32 = parse(loc, "f32");
  MlirType sums = mlirKVCacheTmemTileTypeGetChecked(loc, 64, 512, f32);
  // CHECK-NEXT: !kvcache.tmem_tile<64x512xf32> | 1 0 1 1
  SHOW(TmemTile, sums, "!kvcache.tmem_tile<64x512xf32>");
  // CHECK-NEXT: rows 64, columns 512, f32 1
  printf("rows %d, columns %d, f32 %d\n",
         (int)mlirKVCacheTmemTileTypeGetRows(sums),
         (int)mlirKVCacheTmemTileTypeGetColumns(sums),
         mlirTypeEqual(mlirKVCacheTmemTileTypeGetElementType(sums), f32));

  const int64_t shape[] = {64, 128};
  MlirType fragment = mlirKVCacheFragmentTypeGetChecked(
      loc, 2, shape, f32, MlirKVCacheFragmentLayoutWgmmaAcc, false);
  // CHECK-NEXT: !kvcache.fragment<64x128xf32, wgmma_acc> | 1 0 1 1
  SHOW(Fragment, fragment, "!kvcache.fragment<64x128xf32, wgmma_acc>");
  // CHECK-NEXT: rank 2, rows 64, columns 128, f32 1, layout 2, partial 0
  printf("rank %d, rows %d, columns %d, f32 %d, layout %d, partial %d\n",
         (int)mlirKVCacheFragmentTypeGetRank(fragment),
         (int)mlirKVCacheFragmentTypeGetDimSize(fragment, 0),
         (int)mlirKVCacheFragmentTypeGetDimSize(fragment, 1),
         mlirTypeEqual(mlirKVCacheFragmentTypeGetElementType(fragment), f32),
         (int)mlirKVCacheFragmentTypeGetLayout(fragment),
         mlirKVCacheFragmentTypeGetPartial(fragment));

  MlirType product = mlirKVCacheInFlightTypeGetChecked(
      loc, 64, 128, f32, MlirKVCacheFragmentLayoutWgmmaAcc);
  // CHECK-NEXT: !kvcache.in_flight<64x128xf32, wgmma_acc> | 1 0 1 1
  SHOW(InFlight, product, "!kvcache.in_flight<64x128xf32, wgmma_acc>");
  // CHECK-NEXT: complete 1
  printf("complete %d\n",
         mlirTypeEqual(mlirKVCacheInFlightTypeGetComplete(product), fragment));

  MlirType token = mlirKVCacheTokenTypeGetChecked(loc);
  // CHECK-NEXT: !kvcache.token | 1 0 1 1
  SHOW(Token, token, "!kvcache.token");

  MlirType tiles[] = {tile, parse(loc, "!kvcache.tile<16x32xf32>")};
  MlirType pipe =
      mlirKVCachePipeTypeGetChecked(loc, 3, 2, tiles, /*producers=*/1);
  // CHECK-NEXT: !kvcache.pipe<3, {{.*}}, producers = 1> | 1 0 1 1
  SHOW(Pipe, pipe,
       "!kvcache.pipe<3, !kvcache.tile<64x128xbf16, swizzle_128b>, "
       "!kvcache.tile<16x32xf32>, producers = 1>");
  // CHECK-NEXT: stages 3, tiles 2, second 1, producers 1
  printf("stages %d, tiles %d, second %d, producers %d\n",
         (int)mlirKVCachePipeTypeGetStages(pipe),
         (int)mlirKVCachePipeTypeGetNumTiles(pipe),
         mlirTypeEqual(mlirKVCachePipeTypeGetTile(pipe, 1), tiles[1]),
         (int)mlirKVCachePipeTypeGetProducers(pipe));
}

static void testRowsAndDescriptors(MlirLocation loc) {
  MlirType rows = mlirKVCacheRowIndicesTypeGetChecked(loc, 128, 64);
  // CHECK: !kvcache.row_indices<rows = 128, page_size = 64> | 1 0 1 1
  SHOW(RowIndices, rows, "!kvcache.row_indices<rows = 128, page_size = 64>");
  // CHECK-NEXT: rows 128, page 64
  printf("rows %d, page %d\n", (int)mlirKVCacheRowIndicesTypeGetRows(rows),
         (int)mlirKVCacheRowIndicesTypeGetPageSize(rows));
  // CHECK-NEXT: !kvcache.row_indices<rows = 128> | 1 0 1 1
  rows = mlirKVCacheRowIndicesTypeGetChecked(loc, 128, 0);
  SHOW(RowIndices, rows, "!kvcache.row_indices<rows = 128>");

  // CHECK-NEXT: !kvcache.row_indices<rows = 16, page_size = ?> | 1 0 1 1
  rows = mlirKVCacheRowIndicesTypeGetChecked(loc, 16,
                                             mlirShapedTypeGetDynamicSize());
  SHOW(RowIndices, rows, "!kvcache.row_indices<rows = 16, page_size = ?>");

  const int64_t box[] = {64, 1, 32};
  MlirType bf16 = parse(loc, "bf16");
  MlirType desc = mlirKVCacheTMATileTypeGetChecked(
      loc, 3, box, bf16, MlirKVCacheSwizzle128B, /*l2Promotion=*/256);
  // CHECK-NEXT: !kvcache.tma_tile<64x1x32xbf16, {{.*}} = 256> | 1 0 1 1
  SHOW(TMATile, desc,
       "!kvcache.tma_tile<64x1x32xbf16, swizzle_128b, l2_promotion = 256>");
  // CHECK-NEXT: rank 3, outer side 32, bf16 1, swizzle 3, promotion 256
  printf("rank %d, outer side %d, bf16 %d, swizzle %d, promotion %d\n",
         (int)mlirKVCacheTMATileTypeGetRank(desc),
         (int)mlirKVCacheTMATileTypeGetBoxSide(desc, 2),
         mlirTypeEqual(mlirKVCacheTMATileTypeGetElementType(desc), bf16),
         (int)mlirKVCacheTMATileTypeGetSwizzle(desc),
         (int)mlirKVCacheTMATileTypeGetL2Promotion(desc));
}

static void expectNull(MlirType type) {
  printf(mlirTypeIsNull(type) ? "null\n" : "not null\n");
}

static void testInvalidCaches(MlirLocation loc, MlirAttribute params) {
  MlirType bf16 = parse(loc, "bf16"), fp8 = parse(loc, "f8E4M3FN");
  MlirType i32 = parse(loc, "i32"), none = {NULL};
  MlirAttribute noParams = {NULL};
  // CHECK: model.c:7:3: expects page_size to be positive, got 0
  // CHECK-NEXT: null
  expectNull(mlirKVCachePagedCacheTypeGetChecked(loc, bf16, params, 0, none, 0,
                                                 none, 1));
  MlirAttribute packed = {NULL};
  MlirAttribute narrow = mlirKVCacheLayoutAttrGetChecked(loc, 64, 8192);
  MlirType paged = mlirKVCachePagedCacheTypeGetChecked(loc, bf16, params, 64,
                                                       none, 0, none, 1);
  // clang-format off
  // CHECK-NEXT: model.c:7:3: expects the token stride of layout to be at least a head (128), got 64
  // clang-format on
  // CHECK-NEXT: null
  expectNull(mlirKVCacheCacheTypeGetWithLayoutChecked(
      loc, paged, narrow, packed, MlirKVCacheTableKindDense));
  // CHECK-NEXT: model.c:7:3: expects a layout, got #kvcache.params{{.*}}
  // CHECK-NEXT: null
  expectNull(mlirKVCacheCacheTypeGetWithLayoutChecked(
      loc, paged, params, packed, MlirKVCacheTableKindDense));
  // CHECK-NEXT: model.c:7:3: expects a paged cache, got 'bf16'
  // CHECK-NEXT: null
  expectNull(mlirKVCacheCacheTypeGetWithLayoutChecked(
      loc, bf16, packed, packed, MlirKVCacheTableKindDense));
  // CHECK-NEXT: model.c:7:3: unknown table 3
  // CHECK-NEXT: null
  expectNull(mlirKVCacheCacheTypeGetWithLayoutChecked(
      loc, paged, packed, packed, (MlirKVCacheTableKind)3));
  // CHECK-NEXT: model.c:7:3: expects a scale type of {{.*}}, got 'i32'
  // CHECK-NEXT: null
  expectNull(mlirKVCachePagedCollectionTypeGetChecked(loc, fp8, params, 64, i32,
                                                      128, none, 1));
  // CHECK-NEXT: model.c:7:3: expects an element type of {{.*}}, got 'i128'
  // CHECK-NEXT: null
  expectNull(mlirKVCacheContinuousCacheTypeGetChecked(loc, parse(loc, "i128"),
                                                      params));
  // CHECK-NEXT: model.c:7:3: expects an element type
  // CHECK-NEXT: null
  expectNull(mlirKVCacheContinuousCollectionTypeGetChecked(loc, none, params));
  // CHECK-NEXT: model.c:7:3: expects params to be #kvcache.params, got <<{{.*}}
  // CHECK-NEXT: null
  expectNull(mlirKVCacheContinuousCacheTypeGetChecked(loc, bf16, noParams));
  // CHECK-NEXT: model.c:7:3: expects {{.*}} continuous cache, got 'bf16'
  // CHECK-NEXT: null
  expectNull(mlirKVCacheScalesTypeGetChecked(loc, bf16));
  // CHECK-NEXT: model.c:7:3: expects a cache
  // CHECK-NEXT: null
  expectNull(mlirKVCacheScalesTypeGetChecked(loc, none));
}

static void testInvalid(MlirLocation loc) {
  MlirType bf16 = parse(loc, "bf16"), none = {NULL};
  const int64_t box[] = {65};
  // CHECK: model.c:7:3: expects rows to be {{.*}} of it (48), got 64
  // CHECK-NEXT: null
  expectNull(mlirKVCacheRowIndicesTypeGetChecked(loc, 64, 48));
  // CHECK-NEXT: model.c:7:3: expects rows and columns to be positive, got 0x64
  // CHECK-NEXT: null
  expectNull(
      mlirKVCacheTileTypeGetChecked(loc, 0, 64, bf16, MlirKVCacheSwizzleNone));
  // CHECK-NEXT: model.c:7:3: unknown swizzle 9
  // CHECK-NEXT: null
  expectNull(
      mlirKVCacheTileTypeGetChecked(loc, 64, 64, bf16, (MlirKVCacheSwizzle)9));
  // CHECK-NEXT: model.c:7:3: expects an element type
  // CHECK-NEXT: null
  expectNull(
      mlirKVCacheTileTypeGetChecked(loc, 64, 64, none, MlirKVCacheSwizzleNone));
  // CHECK-NEXT: model.c:7:3: expects an element type
  // CHECK-NEXT: null
  expectNull(mlirKVCacheTmemTileTypeGetChecked(loc, 64, 64, none));
  // CHECK-NEXT: model.c:7:3: unknown layout 12
  // CHECK-NEXT: null
  expectNull(mlirKVCacheFragmentTypeGetChecked(
      loc, 1, box, bf16, (MlirKVCacheFragmentLayout)12, false));
  // CHECK-NEXT: model.c:7:3: expects mma_acc to have 16 rows, got 65
  // CHECK-NEXT: null
  expectNull(mlirKVCacheFragmentTypeGetChecked(
      loc, 1, box, bf16, MlirKVCacheFragmentLayoutMmaAcc, false));
  // CHECK-NEXT: model.c:7:3: expects an element type
  // CHECK-NEXT: null
  expectNull(mlirKVCacheInFlightTypeGetChecked(
      loc, 16, 8, none, MlirKVCacheFragmentLayoutMmaAcc));
  // CHECK-NEXT: model.c:7:3: expects at least one tile
  // CHECK-NEXT: null
  expectNull(mlirKVCachePipeTypeGetChecked(loc, 3, 0, NULL, 0));
  // CHECK-NEXT: model.c:7:3: expects tiles
  // CHECK-NEXT: null
  expectNull(mlirKVCachePipeTypeGetChecked(loc, 3, 1, &none, 0));
  // CHECK-NEXT: model.c:7:3: expects a box of 1 to 5 sides, got 0
  // CHECK-NEXT: null
  expectNull(mlirKVCacheTMATileTypeGetChecked(loc, 0, NULL, bf16,
                                              MlirKVCacheSwizzleNone, 0));
  // CHECK-NEXT: model.c:7:3: {{.*}}16 bytes{{.*}}
  // CHECK-NEXT: null
  expectNull(mlirKVCacheTMATileTypeGetChecked(loc, 1, box, bf16,
                                              MlirKVCacheSwizzleNone, 0));
  // CHECK-NEXT: model.c:7:3: unknown swizzle -1
  // CHECK-NEXT: null
  expectNull(mlirKVCacheTMATileTypeGetChecked(loc, 1, box, bf16,
                                              (MlirKVCacheSwizzle)-1, 0));
  // CHECK-NEXT: model.c:7:3: expects an element type
  // CHECK-NEXT: null
  expectNull(mlirKVCacheTMATileTypeGetChecked(loc, 1, box, none,
                                              MlirKVCacheSwizzleNone, 0));
}

int main(void) {
  MlirContext context = mlirContextCreate();
  mlirContextAttachDiagnosticHandler(context, report, NULL, NULL);
  mlirDialectHandleLoadDialect(mlirGetDialectHandle__kvcache__(), context);
  MlirLocation loc = mlirLocationFileLineColGet(context, str("model.c"),
                                                /*line=*/7, /*col=*/3);
  MlirAttribute params = mlirKVCacheParamsAttrGetChecked(loc, 8, 128, false);
  testCaches(loc, params);
  testTiles(loc);
  testRowsAndDescriptors(loc);
  testInvalidCaches(loc, params);
  testInvalid(loc);
  mlirContextDestroy(context);
  return 0;
}
