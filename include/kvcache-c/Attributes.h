//===- Attributes.h - Attributes of the kvcache dialect -----------*- C -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A function whose name ends in GetChecked returns null and reports an error at
// `loc` if its arguments violate a constraint of the attribute, or if the
// context has not loaded the dialect. Getters expect an attribute of their
// kind. Roles and extents are integer attributes of type i32 in the IR, and
// have no type id.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_C_ATTRIBUTES_H
#define KVCACHE_C_ATTRIBUTES_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

//===----------------------------------------------------------------------===//
// ParamsAttr: #kvcache.params<num_heads = 8, head_size = 128>
//===----------------------------------------------------------------------===//

MLIR_CAPI_EXPORTED bool mlirAttributeIsAKVCacheParamsAttr(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirTypeID mlirKVCacheParamsAttrGetTypeID(void);
MLIR_CAPI_EXPORTED MlirAttribute mlirKVCacheParamsAttrGetChecked(
    MlirLocation loc, int64_t numHeads, int64_t headSize, bool isMLA);
MLIR_CAPI_EXPORTED int64_t mlirKVCacheParamsAttrGetNumHeads(MlirAttribute attr);
MLIR_CAPI_EXPORTED int64_t mlirKVCacheParamsAttrGetHeadSize(MlirAttribute attr);
MLIR_CAPI_EXPORTED bool mlirKVCacheParamsAttrIsMLA(MlirAttribute attr);

//===----------------------------------------------------------------------===//
// LayoutAttr: #kvcache.layout<token = 256, head = 16384>
//===----------------------------------------------------------------------===//

MLIR_CAPI_EXPORTED bool mlirAttributeIsAKVCacheLayoutAttr(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirTypeID mlirKVCacheLayoutAttrGetTypeID(void);
/// `headStride` is `mlirShapedTypeGetDynamicStrideOrOffset` for `?`, and 0 for
/// one head.
MLIR_CAPI_EXPORTED MlirAttribute mlirKVCacheLayoutAttrGetChecked(
    MlirLocation loc, int64_t tokenStride, int64_t headStride);
/// The layout of scales of which `interleave` tokens share their rows.
MLIR_CAPI_EXPORTED MlirAttribute mlirKVCacheLayoutAttrGetInterleavedChecked(
    MlirLocation loc, int64_t tokenStride, int64_t headStride,
    int64_t interleave);
/// The layout whose distance of keys and values counts in the alignment.
MLIR_CAPI_EXPORTED MlirAttribute mlirKVCacheLayoutAttrGetWithRoleChecked(
    MlirLocation loc, int64_t tokenStride, int64_t headStride,
    int64_t interleave, int64_t roleStride);
MLIR_CAPI_EXPORTED int64_t
mlirKVCacheLayoutAttrGetTokenStride(MlirAttribute attr);
MLIR_CAPI_EXPORTED int64_t
mlirKVCacheLayoutAttrGetHeadStride(MlirAttribute attr);
/// 1 for a layout that is not interleaved.
MLIR_CAPI_EXPORTED int64_t
mlirKVCacheLayoutAttrGetInterleave(MlirAttribute attr);
/// 0 for a layout without a distance of keys and values.
MLIR_CAPI_EXPORTED int64_t
mlirKVCacheLayoutAttrGetRoleStride(MlirAttribute attr);

//===----------------------------------------------------------------------===//
// RoleAttr
//===----------------------------------------------------------------------===//

/// Keys or values.
typedef enum MlirKVCacheRole {
  MlirKVCacheRoleKey = 0,
  MlirKVCacheRoleValue = 1,
} MlirKVCacheRole;

MLIR_CAPI_EXPORTED bool mlirAttributeIsAKVCacheRoleAttr(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirAttribute
mlirKVCacheRoleAttrGetChecked(MlirLocation loc, MlirKVCacheRole value);
MLIR_CAPI_EXPORTED MlirKVCacheRole
mlirKVCacheRoleAttrGetValue(MlirAttribute attr);

//===----------------------------------------------------------------------===//
// ExtentAttr
//===----------------------------------------------------------------------===//

/// A size of a cache, known at run time.
typedef enum MlirKVCacheExtent {
  MlirKVCacheExtentBatch = 0,
  MlirKVCacheExtentLayers = 1,
  MlirKVCacheExtentPages = 2,
  MlirKVCacheExtentTokens = 3,
  MlirKVCacheExtentPageSize = 4,
  MlirKVCacheExtentPageStride = 5,
} MlirKVCacheExtent;

MLIR_CAPI_EXPORTED bool mlirAttributeIsAKVCacheExtentAttr(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirAttribute
mlirKVCacheExtentAttrGetChecked(MlirLocation loc, MlirKVCacheExtent value);
MLIR_CAPI_EXPORTED MlirKVCacheExtent
mlirKVCacheExtentAttrGetValue(MlirAttribute attr);

//===----------------------------------------------------------------------===//
// SwizzleAttr
//===----------------------------------------------------------------------===//

/// The layout of a tile in shared memory: the span of its swizzle in bytes.
typedef enum MlirKVCacheSwizzle {
  MlirKVCacheSwizzleNone = 0,
  MlirKVCacheSwizzle32B = 1,
  MlirKVCacheSwizzle64B = 2,
  MlirKVCacheSwizzle128B = 3,
} MlirKVCacheSwizzle;

MLIR_CAPI_EXPORTED bool mlirAttributeIsAKVCacheSwizzleAttr(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirTypeID mlirKVCacheSwizzleAttrGetTypeID(void);
MLIR_CAPI_EXPORTED MlirAttribute
mlirKVCacheSwizzleAttrGetChecked(MlirLocation loc, MlirKVCacheSwizzle value);
MLIR_CAPI_EXPORTED MlirKVCacheSwizzle
mlirKVCacheSwizzleAttrGetValue(MlirAttribute attr);

//===----------------------------------------------------------------------===//
// MajorAttr
//===----------------------------------------------------------------------===//

/// The index of a matrix product that runs along the rows of a tile.
typedef enum MlirKVCacheMajor {
  MlirKVCacheMajorK = 0,
  MlirKVCacheMajorMN = 1,
} MlirKVCacheMajor;

MLIR_CAPI_EXPORTED bool mlirAttributeIsAKVCacheMajorAttr(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirTypeID mlirKVCacheMajorAttrGetTypeID(void);
MLIR_CAPI_EXPORTED MlirAttribute
mlirKVCacheMajorAttrGetChecked(MlirLocation loc, MlirKVCacheMajor value);
MLIR_CAPI_EXPORTED MlirKVCacheMajor
mlirKVCacheMajorAttrGetValue(MlirAttribute attr);

//===----------------------------------------------------------------------===//
// SplitAttr: #kvcache.split<keys = 256, max = 32, rows = 1>
//===----------------------------------------------------------------------===//

MLIR_CAPI_EXPORTED bool mlirAttributeIsAKVCacheSplitAttr(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirTypeID mlirKVCacheSplitAttrGetTypeID(void);
MLIR_CAPI_EXPORTED MlirAttribute mlirKVCacheSplitAttrGetChecked(
    MlirLocation loc, int64_t keys, int64_t max, int64_t rows);
MLIR_CAPI_EXPORTED int64_t mlirKVCacheSplitAttrGetKeys(MlirAttribute attr);
MLIR_CAPI_EXPORTED int64_t mlirKVCacheSplitAttrGetMax(MlirAttribute attr);
MLIR_CAPI_EXPORTED int64_t mlirKVCacheSplitAttrGetRows(MlirAttribute attr);

//===----------------------------------------------------------------------===//
// AttentionConfigAttr: #kvcache.attention_config<mma = wgmma, rows = 128>
//===----------------------------------------------------------------------===//

MLIR_CAPI_EXPORTED bool
mlirAttributeIsAKVCacheAttentionConfigAttr(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirTypeID mlirKVCacheAttentionConfigAttrGetTypeID(void);
/// The fields are numbers in the order of the text: those of enum cases, 0 and
/// 1 for bools, and -1 for a field that is not set. The last ones may be left
/// out.
MLIR_CAPI_EXPORTED MlirAttribute mlirKVCacheAttentionConfigAttrGetChecked(
    MlirLocation loc, intptr_t numFields, const int64_t *fields);
MLIR_CAPI_EXPORTED intptr_t
mlirKVCacheAttentionConfigAttrGetNumFields(MlirAttribute attr);
MLIR_CAPI_EXPORTED int64_t
mlirKVCacheAttentionConfigAttrGetField(MlirAttribute attr, intptr_t position);

//===----------------------------------------------------------------------===//
// EvictionAttr
//===----------------------------------------------------------------------===//

/// The eviction priority in the L2 cache.
typedef enum MlirKVCacheEviction {
  MlirKVCacheEvictionNormal = 0,
  MlirKVCacheEvictionFirst = 1,
  MlirKVCacheEvictionLast = 2,
} MlirKVCacheEviction;

MLIR_CAPI_EXPORTED bool mlirAttributeIsAKVCacheEvictionAttr(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirTypeID mlirKVCacheEvictionAttrGetTypeID(void);
MLIR_CAPI_EXPORTED MlirAttribute
mlirKVCacheEvictionAttrGetChecked(MlirLocation loc, MlirKVCacheEviction value);
MLIR_CAPI_EXPORTED MlirKVCacheEviction
mlirKVCacheEvictionAttrGetValue(MlirAttribute attr);

//===----------------------------------------------------------------------===//
// CopyKindAttr
//===----------------------------------------------------------------------===//

/// The kind of instructions that copy into a tile.
typedef enum MlirKVCacheCopyKind {
  MlirKVCacheCopyKindPlain = 0,
  MlirKVCacheCopyKindCpAsync = 1,
  MlirKVCacheCopyKindTensorBoxes = 2,
  MlirKVCacheCopyKindTensorRows = 3,
  MlirKVCacheCopyKindBulkRows = 4,
} MlirKVCacheCopyKind;

MLIR_CAPI_EXPORTED bool mlirAttributeIsAKVCacheCopyKindAttr(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirTypeID mlirKVCacheCopyKindAttrGetTypeID(void);
MLIR_CAPI_EXPORTED MlirAttribute
mlirKVCacheCopyKindAttrGetChecked(MlirLocation loc, MlirKVCacheCopyKind value);
MLIR_CAPI_EXPORTED MlirKVCacheCopyKind
mlirKVCacheCopyKindAttrGetValue(MlirAttribute attr);

//===----------------------------------------------------------------------===//
// ScheduleAttr
//===----------------------------------------------------------------------===//

/// The overlap of the products of a loop over tiles.
typedef enum MlirKVCacheSchedule {
  MlirKVCacheSchedulePipelined = 0,
  MlirKVCacheSchedulePingPong = 1,
  MlirKVCacheSchedulePrefetch = 2,
  MlirKVCacheScheduleSeesaw = 3,
  MlirKVCacheScheduleRoles = 4,
  MlirKVCacheSchedulePair = 5,
} MlirKVCacheSchedule;

MLIR_CAPI_EXPORTED bool mlirAttributeIsAKVCacheScheduleAttr(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirTypeID mlirKVCacheScheduleAttrGetTypeID(void);
MLIR_CAPI_EXPORTED MlirAttribute
mlirKVCacheScheduleAttrGetChecked(MlirLocation loc, MlirKVCacheSchedule value);
MLIR_CAPI_EXPORTED MlirKVCacheSchedule
mlirKVCacheScheduleAttrGetValue(MlirAttribute attr);

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_C_ATTRIBUTES_H
