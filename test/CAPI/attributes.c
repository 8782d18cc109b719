//===- attributes.c - Attributes of the dialect in C ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: %capi_tests/kvcache-capi-attributes | FileCheck %s --match-full-lines

#include "common.h"

#include "kvcache-c/Attributes.h"
#include "kvcache-c/Dialect.h"

#include "mlir-c/BuiltinAttributes.h"

static void testHandle(MlirContext context) {
  MlirDialectHandle handle = mlirGetDialectHandle__kvcache__();
  // CHECK: dialect: kvcache
  show("dialect", mlirDialectHandleGetNamespace(handle));
  MlirDialect dialect = mlirDialectHandleLoadDialect(handle, context);
  // CHECK-NEXT: name: kvcache
  show("name", mlirDialectGetNamespace(dialect));
}

static void testParams(MlirLocation loc) {
  MlirAttribute params =
      mlirKVCacheParamsAttrGetChecked(loc, /*numHeads=*/1, /*headSize=*/576,
                                      /*isMLA=*/true);
  // CHECK: #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
  mlirAttributePrint(params, print, NULL);
  // CHECK-EMPTY:
  // CHECK-NEXT: params 1, heads 1, head size 576, mla 1
  printf("\n\nparams %d, heads %d, head size %d, mla %d\n",
         mlirAttributeIsAKVCacheParamsAttr(params),
         (int)mlirKVCacheParamsAttrGetNumHeads(params),
         (int)mlirKVCacheParamsAttrGetHeadSize(params),
         mlirKVCacheParamsAttrIsMLA(params));
  // CHECK-NEXT: type id 1, parsed 1, unit is params 0
  MlirContext context = mlirLocationGetContext(loc);
  MlirAttribute parsed = mlirAttributeParseGet(
      context,
      str("#kvcache.params<num_heads = 1, head_size = 576, is_mla = true>"));
  printf("type id %d, parsed %d, unit is params %d\n",
         mlirTypeIDEqual(mlirAttributeGetTypeID(params),
                         mlirKVCacheParamsAttrGetTypeID()),
         mlirAttributeEqual(params, parsed),
         mlirAttributeIsAKVCacheParamsAttr(mlirUnitAttrGet(context)));
}

static void testLayout(MlirLocation loc) {
  MlirAttribute interleaved = mlirKVCacheLayoutAttrGetInterleavedChecked(
      loc, /*tokenStride=*/8, /*headStride=*/512, /*interleave=*/4);
  // CHECK-NEXT: #kvcache.layout<token = 8, head = 512, interleave = 4> 4
  mlirAttributePrint(interleaved, print, NULL);
  printf(" %d\n", (int)mlirKVCacheLayoutAttrGetInterleave(interleaved));
  MlirAttribute apart = mlirKVCacheLayoutAttrGetWithRoleChecked(
      loc, /*tokenStride=*/264, /*headStride=*/16896, /*interleave=*/1,
      /*roleStride=*/132);
  // CHECK-NEXT: #kvcache.layout<token = 264, head = 16896, role = 132> 132 0
  mlirAttributePrint(apart, print, NULL);
  printf(" %d %d\n", (int)mlirKVCacheLayoutAttrGetRoleStride(apart),
         (int)mlirKVCacheLayoutAttrGetRoleStride(interleaved));
  MlirAttribute layout = mlirKVCacheLayoutAttrGetChecked(
      loc, /*tokenStride=*/256, /*headStride=*/16384);
  // CHECK-NEXT: #kvcache.layout<token = 256, head = 16384>
  mlirAttributePrint(layout, print, NULL);
  // CHECK-NEXT: layout 1, token 256, head 16384, type id 1
  printf("\nlayout %d, token %d, head %d, type id %d\n",
         mlirAttributeIsAKVCacheLayoutAttr(layout),
         (int)mlirKVCacheLayoutAttrGetTokenStride(layout),
         (int)mlirKVCacheLayoutAttrGetHeadStride(layout),
         mlirTypeIDEqual(mlirAttributeGetTypeID(layout),
                         mlirKVCacheLayoutAttrGetTypeID()));
}

/// Prints an attribute, whether it is of its kind, and what its getter returns.
#define SHOW_ENUM(KIND, VALUE)                                                 \
  do {                                                                         \
    MlirAttribute attr = mlirKVCache##KIND##AttrGetChecked(loc, VALUE);        \
    mlirAttributePrint(attr, print, NULL);                                     \
    printf(" %d %d\n", mlirAttributeIsAKVCache##KIND##Attr(attr),              \
           mlirKVCache##KIND##AttrGetValue(attr) == (VALUE));                  \
  } while (0)

static void testEnums(MlirLocation loc) {
  // CHECK: 0 : i32 1 1
  SHOW_ENUM(Role, MlirKVCacheRoleKey);
  // CHECK-NEXT: 1 : i32 1 1
  SHOW_ENUM(Role, MlirKVCacheRoleValue);
  // CHECK-NEXT: 0 : i32 1 1
  SHOW_ENUM(Extent, MlirKVCacheExtentBatch);
  // CHECK-NEXT: 1 : i32 1 1
  SHOW_ENUM(Extent, MlirKVCacheExtentLayers);
  // CHECK-NEXT: 2 : i32 1 1
  SHOW_ENUM(Extent, MlirKVCacheExtentPages);
  // CHECK-NEXT: 3 : i32 1 1
  SHOW_ENUM(Extent, MlirKVCacheExtentTokens);
  // CHECK-NEXT: 4 : i32 1 1
  SHOW_ENUM(Extent, MlirKVCacheExtentPageSize);
  // CHECK-NEXT: 5 : i32 1 1
  SHOW_ENUM(Extent, MlirKVCacheExtentPageStride);
  // CHECK-NEXT: #kvcache.swizzle<none> 1 1
  SHOW_ENUM(Swizzle, MlirKVCacheSwizzleNone);
  // CHECK-NEXT: #kvcache.swizzle<swizzle_32b> 1 1
  SHOW_ENUM(Swizzle, MlirKVCacheSwizzle32B);
  // CHECK-NEXT: #kvcache.swizzle<swizzle_64b> 1 1
  SHOW_ENUM(Swizzle, MlirKVCacheSwizzle64B);
  // CHECK-NEXT: #kvcache.swizzle<swizzle_128b> 1 1
  SHOW_ENUM(Swizzle, MlirKVCacheSwizzle128B);
  // CHECK-NEXT: #kvcache.major<k_major> 1 1
  SHOW_ENUM(Major, MlirKVCacheMajorK);
  // CHECK-NEXT: #kvcache.major<mn_major> 1 1
  SHOW_ENUM(Major, MlirKVCacheMajorMN);
  // CHECK-NEXT: #kvcache.eviction<evict_normal> 1 1
  SHOW_ENUM(Eviction, MlirKVCacheEvictionNormal);
  // CHECK-NEXT: #kvcache.eviction<evict_first> 1 1
  SHOW_ENUM(Eviction, MlirKVCacheEvictionFirst);
  // CHECK-NEXT: #kvcache.eviction<evict_last> 1 1
  SHOW_ENUM(Eviction, MlirKVCacheEvictionLast);
  // CHECK-NEXT: #kvcache.copy<plain> 1 1
  SHOW_ENUM(CopyKind, MlirKVCacheCopyKindPlain);
  // CHECK-NEXT: #kvcache.copy<cp_async> 1 1
  SHOW_ENUM(CopyKind, MlirKVCacheCopyKindCpAsync);
  // CHECK-NEXT: #kvcache.copy<tensor_boxes> 1 1
  SHOW_ENUM(CopyKind, MlirKVCacheCopyKindTensorBoxes);
  // CHECK-NEXT: #kvcache.copy<tensor_rows> 1 1
  SHOW_ENUM(CopyKind, MlirKVCacheCopyKindTensorRows);
  // CHECK-NEXT: #kvcache.copy<bulk_rows> 1 1
  SHOW_ENUM(CopyKind, MlirKVCacheCopyKindBulkRows);
  // CHECK-NEXT: #kvcache.schedule<pipelined> 1 1
  SHOW_ENUM(Schedule, MlirKVCacheSchedulePipelined);
  // CHECK-NEXT: #kvcache.schedule<ping_pong> 1 1
  SHOW_ENUM(Schedule, MlirKVCacheSchedulePingPong);
  // CHECK-NEXT: #kvcache.schedule<prefetch> 1 1
  SHOW_ENUM(Schedule, MlirKVCacheSchedulePrefetch);
  // CHECK-NEXT: #kvcache.schedule<seesaw> 1 1
  SHOW_ENUM(Schedule, MlirKVCacheScheduleSeesaw);
  // CHECK-NEXT: #kvcache.schedule<roles> 1 1
  SHOW_ENUM(Schedule, MlirKVCacheScheduleRoles);
  // CHECK-NEXT: #kvcache.schedule<pair> 1 1
  SHOW_ENUM(Schedule, MlirKVCacheSchedulePair);
  // CHECK-NEXT: type ids 1 1 1 1
  printf(
      "type ids %d %d %d %d\n",
      mlirTypeIDEqual(mlirAttributeGetTypeID(mlirKVCacheSwizzleAttrGetChecked(
                          loc, MlirKVCacheSwizzleNone)),
                      mlirKVCacheSwizzleAttrGetTypeID()),
      mlirTypeIDEqual(mlirAttributeGetTypeID(mlirKVCacheMajorAttrGetChecked(
                          loc, MlirKVCacheMajorK)),
                      mlirKVCacheMajorAttrGetTypeID()),
      mlirTypeIDEqual(mlirAttributeGetTypeID(mlirKVCacheEvictionAttrGetChecked(
                          loc, MlirKVCacheEvictionNormal)),
                      mlirKVCacheEvictionAttrGetTypeID()),
      mlirTypeIDEqual(mlirAttributeGetTypeID(mlirKVCacheCopyKindAttrGetChecked(
                          loc, MlirKVCacheCopyKindPlain)),
                      mlirKVCacheCopyKindAttrGetTypeID()));
}

static void expectNull(MlirAttribute attr) {
  printf(mlirAttributeIsNull(attr) ? "null\n" : "not null\n");
}

static void testInvalid(MlirLocation loc) {
  // CHECK: model.c:7:3: expects num_heads to be positive, got 0
  // CHECK-NEXT: null
  expectNull(mlirKVCacheParamsAttrGetChecked(loc, 0, 128, false));
  // CHECK-NEXT: model.c:7:3: expects head_size to be positive, got -1
  // CHECK-NEXT: null
  expectNull(mlirKVCacheParamsAttrGetChecked(loc, 8, -1, false));
  // CHECK-NEXT: model.c:7:3: unknown role 2
  // CHECK-NEXT: null
  expectNull(mlirKVCacheRoleAttrGetChecked(loc, (MlirKVCacheRole)2));
  // CHECK-NEXT: model.c:7:3: unknown extent 6
  // CHECK-NEXT: null
  expectNull(mlirKVCacheExtentAttrGetChecked(loc, (MlirKVCacheExtent)6));
  // CHECK-NEXT: model.c:7:3: unknown swizzle 4
  // CHECK-NEXT: null
  expectNull(mlirKVCacheSwizzleAttrGetChecked(loc, (MlirKVCacheSwizzle)4));
  // CHECK-NEXT: model.c:7:3: unknown major 2
  // CHECK-NEXT: null
  expectNull(mlirKVCacheMajorAttrGetChecked(loc, (MlirKVCacheMajor)2));
  // CHECK-NEXT: model.c:7:3: unknown eviction 3
  // CHECK-NEXT: null
  expectNull(mlirKVCacheEvictionAttrGetChecked(loc, (MlirKVCacheEviction)3));
  // CHECK-NEXT: model.c:7:3: unknown copy kind 5
  // CHECK-NEXT: null
  expectNull(mlirKVCacheCopyKindAttrGetChecked(loc, (MlirKVCacheCopyKind)5));
  // CHECK-NEXT: model.c:7:3: unknown schedule 6
  // CHECK-NEXT: null
  expectNull(mlirKVCacheScheduleAttrGetChecked(loc, (MlirKVCacheSchedule)6));
}

/// In a context that has not loaded the dialect.
static void testNotLoaded(void) {
  MlirContext context = mlirContextCreate();
  mlirContextAttachDiagnosticHandler(context, report, NULL, NULL);
  MlirLocation loc = mlirLocationUnknownGet(context);
  // CHECK: unknown: expects the dialect 'kvcache' to be loaded {{.*}}
  // CHECK-NEXT: null
  expectNull(mlirKVCacheParamsAttrGetChecked(loc, 8, 128, false));
  // CHECK-NEXT: unknown: expects the dialect 'kvcache' to be loaded {{.*}}
  // CHECK-NEXT: null
  expectNull(mlirKVCacheSwizzleAttrGetChecked(loc, MlirKVCacheSwizzleNone));
  mlirContextDestroy(context);
}

int main(void) {
  MlirContext context = mlirContextCreate();
  mlirContextAttachDiagnosticHandler(context, report, NULL, NULL);
  testHandle(context);
  MlirLocation loc = mlirLocationFileLineColGet(context, str("model.c"),
                                                /*line=*/7, /*col=*/3);
  testParams(loc);
  testLayout(loc);
  testEnums(loc);
  testInvalid(loc);
  mlirContextDestroy(context);
  testNotLoaded();
  return 0;
}
