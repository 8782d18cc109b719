//===- Types.cpp - Types of the dialect for Python ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache-c/Types.h"
#include "Conversions.h"
#include "IR.h"

namespace nb = nanobind;
using namespace mlir;
using namespace mlir::kvcache;
using namespace mlir::kvcache::python;

/// Sets a number that is 0 where a type doesn't say it.
static void setOptional(nb::dict &fields, const char *name, int64_t value) {
  if (value)
    fields[name] = value;
}

static nb::object toKeyword(MlirKVCacheSwizzle swizzle) {
  return toStr(stringifySwizzle(static_cast<Swizzle>(swizzle)));
}

static MlirKVCacheSwizzle getSwizzle(const Fields &fields) {
  return static_cast<MlirKVCacheSwizzle>(fields.getCase<Swizzle>("swizzle"));
}

//===----------------------------------------------------------------------===//
// Caches
//===----------------------------------------------------------------------===//

template <auto getChecked>
static MlirType makePaged(MlirLocation loc, const Fields &fields) {
  MlirType packed =
      getChecked(loc, fields.getType("dtype"), fields.getAttribute("params"),
                 fields.getInteger("page_size"), fields.getType("scale"),
                 fields.getInteger("granularity"), fields.getType("zero_point"),
                 fields.getInteger("token_granularity"));
  if (mlirTypeIsNull(packed))
    return packed;
  return mlirKVCacheCacheTypeGetWithLayoutChecked(
      loc, packed, fields.getOptionalAttribute("layout"),
      fields.getOptionalAttribute("scale_layout"),
      static_cast<MlirKVCacheTableKind>(fields.getCase<TableKind>("table")));
}

template <auto getChecked>
static MlirType makeContinuous(MlirLocation loc, const Fields &fields) {
  return getChecked(loc, fields.getType("dtype"),
                    fields.getAttribute("params"));
}

static nb::dict getCacheFields(MlirType type) {
  nb::dict fields;
  fields["dtype"] = toText(mlirKVCacheCacheTypeGetElementType(type));
  fields["params"] = describe(mlirKVCacheCacheTypeGetParams(type));
  setOptional(fields, "page_size", mlirKVCacheCacheTypeGetPageSize(type));
  MlirType scale = mlirKVCacheCacheTypeGetScale(type);
  if (!mlirTypeIsNull(scale))
    fields["scale"] = toText(scale);
  setOptional(fields, "granularity", mlirKVCacheCacheTypeGetGranularity(type));
  return fields;
}

static void setLayout(nb::dict &fields, const char *name,
                      MlirAttribute layout) {
  if (!mlirAttributeIsNull(layout))
    fields[name] = describe(layout);
}

static nb::dict getPagedFields(MlirType type) {
  nb::dict fields = getCacheFields(type);
  MlirType zeroPoint = mlirKVCacheCacheTypeGetZeroPoint(type);
  if (!mlirTypeIsNull(zeroPoint))
    fields["zero_point"] = toText(zeroPoint);
  fields["token_granularity"] = mlirKVCacheCacheTypeGetTokenGranularity(type);
  setLayout(fields, "layout", mlirKVCacheCacheTypeGetLayout(type));
  setLayout(fields, "scale_layout", mlirKVCacheCacheTypeGetScaleLayout(type));
  fields["table"] = toStr(stringifyTableKind(
      static_cast<TableKind>(mlirKVCacheCacheTypeGetTable(type))));
  return fields;
}

static MlirType makeScales(MlirLocation loc, const Fields &fields) {
  return mlirKVCacheScalesTypeGetChecked(loc, fields.getType("cache"));
}

static nb::dict getScalesFields(MlirType type) {
  nb::dict fields;
  fields["cache"] = describe(mlirKVCacheScalesTypeGetCache(type));
  return fields;
}

static MlirType makeRowIndices(MlirLocation loc, const Fields &fields) {
  return mlirKVCacheRowIndicesTypeGetChecked(loc, fields.getInteger("rows"),
                                             fields.getInteger("page_size"));
}

static nb::dict getRowIndicesFields(MlirType type) {
  nb::dict fields;
  fields["rows"] = mlirKVCacheRowIndicesTypeGetRows(type);
  setOptional(fields, "page_size", mlirKVCacheRowIndicesTypeGetPageSize(type));
  return fields;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

static MlirType makeTile(MlirLocation loc, const Fields &fields) {
  return mlirKVCacheTileTypeGetChecked(
      loc, fields.getInteger("rows"), fields.getInteger("columns"),
      fields.getType("dtype"), getSwizzle(fields));
}

static nb::dict getTileFields(MlirType type) {
  nb::dict fields;
  fields["rows"] = mlirKVCacheTileTypeGetRows(type);
  fields["columns"] = mlirKVCacheTileTypeGetColumns(type);
  fields["dtype"] = toText(mlirKVCacheTileTypeGetElementType(type));
  fields["swizzle"] = toKeyword(mlirKVCacheTileTypeGetSwizzle(type));
  return fields;
}

static MlirType makeTmemTile(MlirLocation loc, const Fields &fields) {
  return mlirKVCacheTmemTileTypeGetChecked(loc, fields.getInteger("rows"),
                                           fields.getInteger("columns"),
                                           fields.getType("dtype"));
}

static nb::dict getTmemTileFields(MlirType type) {
  nb::dict fields;
  fields["rows"] = mlirKVCacheTmemTileTypeGetRows(type);
  fields["columns"] = mlirKVCacheTmemTileTypeGetColumns(type);
  fields["dtype"] = toText(mlirKVCacheTmemTileTypeGetElementType(type));
  return fields;
}

static MlirType makeToken(MlirLocation loc, const Fields &) {
  return mlirKVCacheTokenTypeGetChecked(loc);
}

static nb::dict getTokenFields(MlirType) { return nb::dict(); }

static MlirType makePipe(MlirLocation loc, const Fields &fields) {
  std::vector<MlirType> tiles = fields.getTypes("tiles");
  return mlirKVCachePipeTypeGetChecked(loc, fields.getInteger("stages"),
                                       tiles.size(), tiles.data(),
                                       fields.getInteger("producers"));
}

static nb::dict getPipeFields(MlirType type) {
  nb::list tiles;
  for (intptr_t i = 0; i < mlirKVCachePipeTypeGetNumTiles(type); ++i)
    tiles.append(describe(mlirKVCachePipeTypeGetTile(type, i)));
  nb::dict fields;
  fields["stages"] = mlirKVCachePipeTypeGetStages(type);
  fields["tiles"] = tiles;
  setOptional(fields, "producers", mlirKVCachePipeTypeGetProducers(type));
  return fields;
}

static MlirType makeTMATile(MlirLocation loc, const Fields &fields) {
  std::vector<int64_t> box = fields.getIntegers("box");
  return mlirKVCacheTMATileTypeGetChecked(
      loc, box.size(), box.data(), fields.getType("dtype"), getSwizzle(fields),
      fields.getInteger("l2_promotion"));
}

static nb::dict getTMATileFields(MlirType type) {
  nb::list box;
  for (intptr_t i = 0; i < mlirKVCacheTMATileTypeGetRank(type); ++i)
    box.append(mlirKVCacheTMATileTypeGetBoxSide(type, i));
  nb::dict fields;
  fields["box"] = box;
  fields["dtype"] = toText(mlirKVCacheTMATileTypeGetElementType(type));
  fields["swizzle"] = toKeyword(mlirKVCacheTMATileTypeGetSwizzle(type));
  setOptional(fields, "l2_promotion",
              mlirKVCacheTMATileTypeGetL2Promotion(type));
  return fields;
}

static MlirKVCacheFragmentLayout getFragmentLayout(const Fields &fields) {
  return static_cast<MlirKVCacheFragmentLayout>(
      fields.getCase<FragmentLayout>("layout"));
}

static MlirType makeFragment(MlirLocation loc, const Fields &fields) {
  std::vector<int64_t> shape = fields.getIntegers("shape");
  return mlirKVCacheFragmentTypeGetChecked(
      loc, shape.size(), shape.data(), fields.getType("dtype"),
      getFragmentLayout(fields), fields.getFlag("partial"));
}

static nb::dict getFragmentFields(MlirType type) {
  nb::list shape;
  for (intptr_t i = 0; i < mlirKVCacheFragmentTypeGetRank(type); ++i)
    shape.append(mlirKVCacheFragmentTypeGetDimSize(type, i));
  nb::dict fields;
  fields["shape"] = shape;
  fields["dtype"] = toText(mlirKVCacheFragmentTypeGetElementType(type));
  fields["layout"] = toStr(stringifyFragmentLayout(
      static_cast<FragmentLayout>(mlirKVCacheFragmentTypeGetLayout(type))));
  fields["partial"] = mlirKVCacheFragmentTypeGetPartial(type);
  return fields;
}

static MlirType makeInFlight(MlirLocation loc, const Fields &fields) {
  std::vector<int64_t> shape = fields.getIntegers("shape");
  return mlirKVCacheInFlightTypeGetChecked(loc, shape.at(0), shape.at(1),
                                           fields.getType("dtype"),
                                           getFragmentLayout(fields));
}

static nb::dict getInFlightFields(MlirType type) {
  nb::dict fields = getFragmentFields(mlirKVCacheInFlightTypeGetComplete(type));
  nb::del(fields["partial"]);
  return fields;
}

static const Kind<MlirType> kKinds[] = {
    {"PagedCollectionType", mlirTypeIsAKVCachePagedCollectionType,
     makePaged<mlirKVCachePagedCollectionTypeGetChecked>, getPagedFields},
    {"PagedCacheType", mlirTypeIsAKVCachePagedCacheType,
     makePaged<mlirKVCachePagedCacheTypeGetChecked>, getPagedFields},
    {"ContinuousCollectionType", mlirTypeIsAKVCacheContinuousCollectionType,
     makeContinuous<mlirKVCacheContinuousCollectionTypeGetChecked>,
     getCacheFields},
    {"ContinuousCacheType", mlirTypeIsAKVCacheContinuousCacheType,
     makeContinuous<mlirKVCacheContinuousCacheTypeGetChecked>, getCacheFields},
    {"ScalesType", mlirTypeIsAKVCacheScalesType, makeScales, getScalesFields},
    {"RowIndicesType", mlirTypeIsAKVCacheRowIndicesType, makeRowIndices,
     getRowIndicesFields},
    {"TileType", mlirTypeIsAKVCacheTileType, makeTile, getTileFields},
    {"TmemTileType", mlirTypeIsAKVCacheTmemTileType, makeTmemTile,
     getTmemTileFields},
    {"TokenType", mlirTypeIsAKVCacheTokenType, makeToken, getTokenFields},
    {"PipeType", mlirTypeIsAKVCachePipeType, makePipe, getPipeFields},
    {"TMATileType", mlirTypeIsAKVCacheTMATileType, makeTMATile,
     getTMATileFields},
    {"FragmentType", mlirTypeIsAKVCacheFragmentType, makeFragment,
     getFragmentFields},
    {"InFlightType", mlirTypeIsAKVCacheInFlightType, makeInFlight,
     getInFlightFields},
};

ArrayRef<Kind<MlirType>> python::getTypeKinds() { return kKinds; }
