//===- Attributes.cpp - Attributes of the kvcache dialect -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache-c/Attributes.h"

#include "Checks.h"

#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Params
//===----------------------------------------------------------------------===//

bool mlirAttributeIsAKVCacheParamsAttr(MlirAttribute attr) {
  return isa_and_present<ParamsAttr>(unwrap(attr));
}

MlirTypeID mlirKVCacheParamsAttrGetTypeID() {
  return wrap(ParamsAttr::getTypeID());
}

MlirAttribute mlirKVCacheParamsAttrGetChecked(MlirLocation loc,
                                              int64_t numHeads,
                                              int64_t headSize, bool isMLA) {
  return wrap(getChecked<ParamsAttr>(unwrap(loc), numHeads, headSize, isMLA));
}

int64_t mlirKVCacheParamsAttrGetNumHeads(MlirAttribute attr) {
  return cast<ParamsAttr>(unwrap(attr)).getNumHeads();
}

int64_t mlirKVCacheParamsAttrGetHeadSize(MlirAttribute attr) {
  return cast<ParamsAttr>(unwrap(attr)).getHeadSize();
}

bool mlirKVCacheParamsAttrIsMLA(MlirAttribute attr) {
  return cast<ParamsAttr>(unwrap(attr)).getIsMla();
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

bool mlirAttributeIsAKVCacheLayoutAttr(MlirAttribute attr) {
  return isa_and_present<LayoutAttr>(unwrap(attr));
}

MlirTypeID mlirKVCacheLayoutAttrGetTypeID() {
  return wrap(LayoutAttr::getTypeID());
}

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

int64_t mlirKVCacheLayoutAttrGetTokenStride(MlirAttribute attr) {
  return cast<LayoutAttr>(unwrap(attr)).getTokenStride();
}

int64_t mlirKVCacheLayoutAttrGetHeadStride(MlirAttribute attr) {
  return cast<LayoutAttr>(unwrap(attr)).getHeadStride();
}

int64_t mlirKVCacheLayoutAttrGetInterleave(MlirAttribute attr) {
  return cast<LayoutAttr>(unwrap(attr)).getInterleave();
}

int64_t mlirKVCacheLayoutAttrGetRoleStride(MlirAttribute attr) {
  return cast<LayoutAttr>(unwrap(attr)).getRoleStride();
}

//===----------------------------------------------------------------------===//
// Enums
//===----------------------------------------------------------------------===//

template <typename AttrT, typename Enum, typename CEnum>
static MlirAttribute getCaseAttr(MlirLocation loc, StringRef what,
                                 std::optional<Enum> (*symbolize)(uint32_t),
                                 const CEnum &value) {
  Location where = unwrap(loc);
  std::optional<Enum> known = getCase(where, what, symbolize, value);
  if (!known || failed(checkLoaded(where)))
    return {};
  return wrap(AttrT::get(where.getContext(), *known));
}

bool mlirAttributeIsAKVCacheRoleAttr(MlirAttribute attr) {
  return isa_and_present<RoleAttr>(unwrap(attr));
}

MlirAttribute mlirKVCacheRoleAttrGetChecked(MlirLocation loc,
                                            MlirKVCacheRole value) {
  return getCaseAttr<RoleAttr, Role>(loc, "role", symbolizeRole, value);
}

MlirKVCacheRole mlirKVCacheRoleAttrGetValue(MlirAttribute attr) {
  return static_cast<MlirKVCacheRole>(cast<RoleAttr>(unwrap(attr)).getValue());
}

bool mlirAttributeIsAKVCacheExtentAttr(MlirAttribute attr) {
  return isa_and_present<ExtentAttr>(unwrap(attr));
}

MlirAttribute mlirKVCacheExtentAttrGetChecked(MlirLocation loc,
                                              MlirKVCacheExtent value) {
  return getCaseAttr<ExtentAttr, Extent>(loc, "extent", symbolizeExtent, value);
}

MlirKVCacheExtent mlirKVCacheExtentAttrGetValue(MlirAttribute attr) {
  return static_cast<MlirKVCacheExtent>(
      cast<ExtentAttr>(unwrap(attr)).getValue());
}

bool mlirAttributeIsAKVCacheSwizzleAttr(MlirAttribute attr) {
  return isa_and_present<SwizzleAttr>(unwrap(attr));
}

MlirTypeID mlirKVCacheSwizzleAttrGetTypeID() {
  return wrap(SwizzleAttr::getTypeID());
}

MlirAttribute mlirKVCacheSwizzleAttrGetChecked(MlirLocation loc,
                                               MlirKVCacheSwizzle value) {
  return getCaseAttr<SwizzleAttr, Swizzle>(loc, "swizzle", symbolizeSwizzle,
                                           value);
}

MlirKVCacheSwizzle mlirKVCacheSwizzleAttrGetValue(MlirAttribute attr) {
  return static_cast<MlirKVCacheSwizzle>(
      cast<SwizzleAttr>(unwrap(attr)).getValue());
}

bool mlirAttributeIsAKVCacheMajorAttr(MlirAttribute attr) {
  return isa_and_present<MajorAttr>(unwrap(attr));
}

MlirTypeID mlirKVCacheMajorAttrGetTypeID() {
  return wrap(MajorAttr::getTypeID());
}

MlirAttribute mlirKVCacheMajorAttrGetChecked(MlirLocation loc,
                                             MlirKVCacheMajor value) {
  return getCaseAttr<MajorAttr, Major>(loc, "major", symbolizeMajor, value);
}

MlirKVCacheMajor mlirKVCacheMajorAttrGetValue(MlirAttribute attr) {
  return static_cast<MlirKVCacheMajor>(
      cast<MajorAttr>(unwrap(attr)).getValue());
}

bool mlirAttributeIsAKVCacheEvictionAttr(MlirAttribute attr) {
  return isa_and_present<EvictionAttr>(unwrap(attr));
}

MlirTypeID mlirKVCacheEvictionAttrGetTypeID() {
  return wrap(EvictionAttr::getTypeID());
}

MlirAttribute mlirKVCacheEvictionAttrGetChecked(MlirLocation loc,
                                                MlirKVCacheEviction value) {
  return getCaseAttr<EvictionAttr, Eviction>(loc, "eviction", symbolizeEviction,
                                             value);
}

MlirKVCacheEviction mlirKVCacheEvictionAttrGetValue(MlirAttribute attr) {
  return static_cast<MlirKVCacheEviction>(
      cast<EvictionAttr>(unwrap(attr)).getValue());
}

bool mlirAttributeIsAKVCacheCopyKindAttr(MlirAttribute attr) {
  return isa_and_present<CopyKindAttr>(unwrap(attr));
}

MlirTypeID mlirKVCacheCopyKindAttrGetTypeID() {
  return wrap(CopyKindAttr::getTypeID());
}

MlirAttribute mlirKVCacheCopyKindAttrGetChecked(MlirLocation loc,
                                                MlirKVCacheCopyKind value) {
  return getCaseAttr<CopyKindAttr, CopyKind>(loc, "copy kind",
                                             symbolizeCopyKind, value);
}

MlirKVCacheCopyKind mlirKVCacheCopyKindAttrGetValue(MlirAttribute attr) {
  return static_cast<MlirKVCacheCopyKind>(
      cast<CopyKindAttr>(unwrap(attr)).getValue());
}
