//===- Attributes.cpp - Attributes of the kvcache dialect -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache-c/Attributes.h"

#include "Accessors.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Params
//===----------------------------------------------------------------------===//

KVCACHE_CLASS(Attribute, ParamsAttr)

MlirAttribute mlirKVCacheParamsAttrGetChecked(MlirLocation loc,
                                              int64_t numHeads,
                                              int64_t headSize, bool isMLA) {
  return wrap(getChecked<ParamsAttr>(unwrap(loc), numHeads, headSize, isMLA));
}

KVCACHE_GETTER(Attribute, ParamsAttr, int64_t, NumHeads)
KVCACHE_GETTER(Attribute, ParamsAttr, int64_t, HeadSize)

bool mlirKVCacheParamsAttrIsMLA(MlirAttribute attr) {
  return cast<ParamsAttr>(unwrap(attr)).getIsMla();
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

KVCACHE_CLASS(Attribute, LayoutAttr)

MlirAttribute mlirKVCacheLayoutAttrGetChecked(MlirLocation loc,
                                              int64_t tokenStride,
                                              int64_t headStride) {
  return mlirKVCacheLayoutAttrGetInterleavedChecked(
      loc, tokenStride, headStride, /*interleave=*/1);
}

MlirAttribute mlirKVCacheLayoutAttrGetInterleavedChecked(MlirLocation loc,
                                                         int64_t tokenStride,
                                                         int64_t headStride,
                                                         int64_t interleave) {
  return mlirKVCacheLayoutAttrGetWithRoleChecked(loc, tokenStride, headStride,
                                                 interleave, /*roleStride=*/0);
}

MlirAttribute mlirKVCacheLayoutAttrGetWithRoleChecked(MlirLocation loc,
                                                      int64_t tokenStride,
                                                      int64_t headStride,
                                                      int64_t interleave,
                                                      int64_t roleStride) {
  Location where = unwrap(loc);
  if (failed(checkLoaded(where)))
    return {};
  return wrap(LayoutAttr::get(where.getContext(), tokenStride, headStride,
                              interleave, roleStride));
}

KVCACHE_GETTER(Attribute, LayoutAttr, int64_t, TokenStride)
KVCACHE_GETTER(Attribute, LayoutAttr, int64_t, HeadStride)
KVCACHE_GETTER(Attribute, LayoutAttr, int64_t, Interleave)
KVCACHE_GETTER(Attribute, LayoutAttr, int64_t, RoleStride)

//===----------------------------------------------------------------------===//
// Enums
//===----------------------------------------------------------------------===//

KVCACHE_IS_A(Attribute, RoleAttr)
KVCACHE_CASE(Role, "role")
KVCACHE_IS_A(Attribute, ExtentAttr)
KVCACHE_CASE(Extent, "extent")
KVCACHE_CLASS(Attribute, SwizzleAttr)
KVCACHE_CASE(Swizzle, "swizzle")
KVCACHE_CLASS(Attribute, MajorAttr)
KVCACHE_CASE(Major, "major")
KVCACHE_CLASS(Attribute, EvictionAttr)
KVCACHE_CASE(Eviction, "eviction")
KVCACHE_CLASS(Attribute, CopyKindAttr)
KVCACHE_CASE(CopyKind, "copy kind")
KVCACHE_CLASS(Attribute, ScheduleAttr)
KVCACHE_CASE(Schedule, "schedule")

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

KVCACHE_CLASS(Attribute, SplitAttr)

MlirAttribute mlirKVCacheSplitAttrGetChecked(MlirLocation loc, int64_t keys,
                                             int64_t max, int64_t rows) {
  return wrap(getChecked<SplitAttr>(unwrap(loc), keys, max, rows));
}

KVCACHE_GETTER(Attribute, SplitAttr, int64_t, Keys)
KVCACHE_GETTER(Attribute, SplitAttr, int64_t, Max)
KVCACHE_GETTER(Attribute, SplitAttr, int64_t, Rows)

KVCACHE_CLASS(Attribute, AttentionConfigAttr)

MlirAttribute mlirKVCacheAttentionConfigAttrGetChecked(MlirLocation loc,
                                                       intptr_t numFields,
                                                       const int64_t *fields) {
  return wrap(getChecked<AttentionConfigAttr>(
      unwrap(loc), ArrayRef<int64_t>(fields, numFields)));
}

intptr_t mlirKVCacheAttentionConfigAttrGetNumFields(MlirAttribute attr) {
  return cast<AttentionConfigAttr>(unwrap(attr)).getNumbers().size();
}

int64_t mlirKVCacheAttentionConfigAttrGetField(MlirAttribute attr,
                                               intptr_t position) {
  return cast<AttentionConfigAttr>(unwrap(attr)).getNumbers()[position];
}
