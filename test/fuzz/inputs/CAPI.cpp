//===- CAPI.cpp - Any arguments to functions of the C API -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache-c/Attributes.h"
#include "kvcache-c/Types.h"
#include "kvcache/IR/KVCacheDialect.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"
#include "mlir-c/Diagnostics.h"
#include "mlir-c/IR.h"
#include "mlir/CAPI/IR.h"

#include <fuzzer/FuzzedDataProvider.h>
#include <vector>

namespace {

/// Makes types and attributes of earlier ones, and asks all that have an
/// answer.
class Calls {
public:
  Calls(FuzzedDataProvider &input, MlirContext context)
      : input(input), loc(mlirLocationUnknownGet(context)) {
    types = {mlirBF16TypeGet(context),          mlirF32TypeGet(context),
             mlirIntegerTypeGet(context, 8),    mlirIndexTypeGet(context),
             mlirFloat8E8M0FNUTypeGet(context), mlirTokenType()};
    attributes = {mlirUnitAttrGet(context),
                  mlirKVCacheParamsAttrGetChecked(loc, 8, 64, false)};
  }

  void run() {
    while (input.remaining_bytes() > 0) {
      if (input.ConsumeBool())
        add(attributes, makeAttribute());
      else if (MlirType type = makeType(); !mlirTypeIsNull(type)) {
        ask(type);
        add(types, type);
      }
    }
  }

private:
  MlirType mlirTokenType() { return mlirKVCacheTokenTypeGetChecked(loc); }

  int64_t number() {
    return input.ConsumeBool() ? input.ConsumeIntegralInRange<int64_t>(0, 256)
                               : input.ConsumeIntegral<int64_t>();
  }
  MlirType type() {
    return types[input.ConsumeIntegralInRange<size_t>(0, types.size() - 1)];
  }
  MlirType typeOrNull() { return input.ConsumeBool() ? MlirType{} : type(); }
  MlirAttribute attribute() {
    return attributes[input.ConsumeIntegralInRange<size_t>(
        0, attributes.size() - 1)];
  }
  MlirAttribute attributeOrNull() {
    return input.ConsumeBool() ? MlirAttribute{} : attribute();
  }
  MlirKVCacheSwizzle swizzle() {
    return static_cast<MlirKVCacheSwizzle>(
        input.ConsumeIntegralInRange<int>(0, 3));
  }

  template <typename T> static void add(std::vector<T> &values, T value) {
    if (value.ptr && values.size() < 64)
      values.push_back(value);
  }

  MlirAttribute makeAttribute() {
    int64_t a = number(), b = number(), c = number();
    switch (input.ConsumeIntegralInRange<int>(0, 2)) {
    case 0:
      return mlirKVCacheParamsAttrGetChecked(loc, a, b, c & 1);
    case 1:
      return mlirKVCacheLayoutAttrGetChecked(loc, a, b);
    default:
      return mlirKVCacheLayoutAttrGetWithRoleChecked(loc, a, b, c, number());
    }
  }

  MlirType makeType() {
    MlirType element = type(), scale = typeOrNull(), zero = typeOrNull();
    MlirAttribute params = attribute();
    int64_t a = number(), b = number(), c = number();
    switch (input.ConsumeIntegralInRange<int>(0, 12)) {
    case 0:
      return mlirKVCachePagedCollectionTypeGetChecked(loc, element, params, a,
                                                      scale, b, zero, c);
    case 1:
      return mlirKVCachePagedCacheTypeGetChecked(loc, element, params, a, scale,
                                                 b, zero, c);
    case 2:
      return mlirKVCacheContinuousCollectionTypeGetChecked(loc, element,
                                                           params);
    case 3:
      return mlirKVCacheContinuousCacheTypeGetChecked(loc, element, params);
    case 4:
      return mlirKVCacheScalesTypeGetChecked(loc, element);
    case 5:
      return mlirKVCacheRowIndicesTypeGetChecked(loc, a, b);
    case 6:
      return mlirKVCacheTileTypeGetChecked(loc, a, b, element, swizzle());
    case 7: {
      MlirType tiles[] = {element, type(), type()};
      return mlirKVCachePipeTypeGetChecked(
          loc, a, input.ConsumeIntegralInRange<intptr_t>(0, 3), tiles, b);
    }
    case 8:
      return mlirKVCacheTmemTileTypeGetChecked(loc, a, b, element);
    case 9: {
      int64_t box[] = {a, b, c, number(), number(), number()};
      return mlirKVCacheTMATileTypeGetChecked(
          loc, input.ConsumeIntegralInRange<intptr_t>(0, 6), box, element,
          swizzle(), number());
    }
    case 10: {
      int64_t shape[] = {a, b, c};
      return mlirKVCacheFragmentTypeGetChecked(
          loc, input.ConsumeIntegralInRange<intptr_t>(0, 3), shape, element,
          static_cast<MlirKVCacheFragmentLayout>(
              input.ConsumeIntegralInRange<int>(0, 6)),
          input.ConsumeBool());
    }
    case 11:
      return mlirKVCacheInFlightTypeGetChecked(
          loc, a, b, element,
          static_cast<MlirKVCacheFragmentLayout>(
              input.ConsumeIntegralInRange<int>(0, 6)));
    default:
      if (!mlirTypeIsAKVCacheCacheType(element))
        return {};
      return mlirKVCacheCacheTypeGetWithLayoutChecked(
          loc, element, attributeOrNull(), attributeOrNull(),
          static_cast<MlirKVCacheTableKind>(
              input.ConsumeIntegralInRange<int>(0, 2)));
    }
  }

  static void ask(MlirType type) {
    mlirTypePrint(type, [](MlirStringRef, void *) {}, nullptr);
    if (mlirTypeIsAKVCacheCacheType(type)) {
      mlirKVCacheCacheTypeGetElementType(type);
      mlirKVCacheCacheTypeGetParams(type);
      mlirKVCacheCacheTypeGetPageSize(type);
      mlirKVCacheCacheTypeGetScale(type);
      mlirKVCacheCacheTypeGetGranularity(type);
      mlirKVCacheCacheTypeGetZeroPoint(type);
      mlirKVCacheCacheTypeGetTokenGranularity(type);
      mlirKVCacheCacheTypeGetLayout(type);
      mlirKVCacheCacheTypeGetScaleLayout(type);
      mlirKVCacheCacheTypeGetTable(type);
      mlirKVCacheCacheTypeIsCollection(type);
    } else if (mlirTypeIsAKVCachePipeType(type)) {
      for (intptr_t i = 0; i < mlirKVCachePipeTypeGetNumTiles(type); ++i)
        mlirKVCachePipeTypeGetTile(type, i);
    } else if (mlirTypeIsAKVCacheTMATileType(type)) {
      for (intptr_t i = 0; i < mlirKVCacheTMATileTypeGetRank(type); ++i)
        mlirKVCacheTMATileTypeGetBoxSide(type, i);
    }
  }

  FuzzedDataProvider &input;
  MlirLocation loc;
  std::vector<MlirType> types;
  std::vector<MlirAttribute> attributes;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  MlirContext context = mlirContextCreateWithThreading(false);
  unwrap(context)->loadDialect<mlir::kvcache::KVCacheDialect>();
  mlirContextAttachDiagnosticHandler(
      context,
      [](MlirDiagnostic, void *) { return mlirLogicalResultSuccess(); },
      nullptr, nullptr);
  FuzzedDataProvider input(data, size);
  Calls(input, context).run();
  mlirContextDestroy(context);
  return 0;
}
