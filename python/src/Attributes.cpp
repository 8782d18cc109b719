//===- Attributes.cpp - Attributes of the dialect for Python --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache-c/Attributes.h"
#include "Conversions.h"
#include "IR.h"

namespace nb = nanobind;
using namespace mlir;
using namespace mlir::kvcache;
using namespace mlir::kvcache::python;

static MlirAttribute makeParams(MlirLocation loc, const Fields &fields) {
  return mlirKVCacheParamsAttrGetChecked(loc, fields.getInteger("num_heads"),
                                         fields.getInteger("head_size"),
                                         fields.getFlag("is_mla"));
}

static nb::dict getParamsFields(MlirAttribute attribute) {
  nb::dict fields;
  fields["num_heads"] = mlirKVCacheParamsAttrGetNumHeads(attribute);
  fields["head_size"] = mlirKVCacheParamsAttrGetHeadSize(attribute);
  fields["is_mla"] = mlirKVCacheParamsAttrIsMLA(attribute);
  return fields;
}

static MlirAttribute makeLayout(MlirLocation loc, const Fields &fields) {
  return mlirKVCacheLayoutAttrGetWithRoleChecked(
      loc, fields.getInteger("token_stride"), fields.getInteger("head_stride"),
      fields.getInteger("interleave"), fields.getInteger("role_stride"));
}

static nb::dict getLayoutFields(MlirAttribute attribute) {
  nb::dict fields;
  fields["token_stride"] = mlirKVCacheLayoutAttrGetTokenStride(attribute);
  if (int64_t head = mlirKVCacheLayoutAttrGetHeadStride(attribute))
    fields["head_stride"] = head;
  fields["interleave"] = mlirKVCacheLayoutAttrGetInterleave(attribute);
  if (int64_t role = mlirKVCacheLayoutAttrGetRoleStride(attribute))
    fields["role_stride"] = role;
  return fields;
}

static MlirAttribute makeSplit(MlirLocation loc, const Fields &fields) {
  return mlirKVCacheSplitAttrGetChecked(loc, fields.getInteger("keys"),
                                        fields.getInteger("max"),
                                        fields.getInteger("rows"));
}

static nb::dict getSplitFields(MlirAttribute attribute) {
  nb::dict fields;
  fields["keys"] = mlirKVCacheSplitAttrGetKeys(attribute);
  fields["max"] = mlirKVCacheSplitAttrGetMax(attribute);
  fields["rows"] = mlirKVCacheSplitAttrGetRows(attribute);
  return fields;
}

static MlirAttribute makeConfig(MlirLocation loc, const Fields &fields) {
  std::vector<int64_t> numbers = fields.getIntegers("numbers");
  return mlirKVCacheAttentionConfigAttrGetChecked(loc, numbers.size(),
                                                  numbers.data());
}

static nb::dict getConfigFields(MlirAttribute attribute) {
  nb::list numbers;
  intptr_t count = mlirKVCacheAttentionConfigAttrGetNumFields(attribute);
  for (intptr_t i = 0; i < count; ++i)
    numbers.append(mlirKVCacheAttentionConfigAttrGetField(attribute, i));
  nb::dict fields;
  fields["numbers"] = numbers;
  return fields;
}

/// Attributes that hold the case of an enum.
template <typename Enum, auto getChecked, auto getValue> struct CaseAttr {
  using Case = decltype(getValue(MlirAttribute()));

  static MlirAttribute make(MlirLocation loc, const Fields &fields) {
    return getChecked(loc, static_cast<Case>(fields.getCase<Enum>("value")));
  }

  static nb::dict getFields(MlirAttribute attribute) {
    nb::dict fields;
    fields["value"] =
        toStr(stringifyEnum(static_cast<Enum>(getValue(attribute))));
    return fields;
  }
};

using SwizzleCase = CaseAttr<Swizzle, mlirKVCacheSwizzleAttrGetChecked,
                             mlirKVCacheSwizzleAttrGetValue>;
using MajorCase = CaseAttr<Major, mlirKVCacheMajorAttrGetChecked,
                           mlirKVCacheMajorAttrGetValue>;
using EvictionCase = CaseAttr<Eviction, mlirKVCacheEvictionAttrGetChecked,
                              mlirKVCacheEvictionAttrGetValue>;
using CopyKindCase = CaseAttr<CopyKind, mlirKVCacheCopyKindAttrGetChecked,
                              mlirKVCacheCopyKindAttrGetValue>;
using ScheduleCase = CaseAttr<Schedule, mlirKVCacheScheduleAttrGetChecked,
                              mlirKVCacheScheduleAttrGetValue>;

static const Kind<MlirAttribute> kKinds[] = {
    {"ParamsAttr", mlirAttributeIsAKVCacheParamsAttr, makeParams,
     getParamsFields},
    {"SwizzleAttr", mlirAttributeIsAKVCacheSwizzleAttr, SwizzleCase::make,
     SwizzleCase::getFields},
    {"MajorAttr", mlirAttributeIsAKVCacheMajorAttr, MajorCase::make,
     MajorCase::getFields},
    {"EvictionAttr", mlirAttributeIsAKVCacheEvictionAttr, EvictionCase::make,
     EvictionCase::getFields},
    {"CopyKindAttr", mlirAttributeIsAKVCacheCopyKindAttr, CopyKindCase::make,
     CopyKindCase::getFields},
    {"ScheduleAttr", mlirAttributeIsAKVCacheScheduleAttr, ScheduleCase::make,
     ScheduleCase::getFields},
    {"LayoutAttr", mlirAttributeIsAKVCacheLayoutAttr, makeLayout,
     getLayoutFields},
    {"SplitAttr", mlirAttributeIsAKVCacheSplitAttr, makeSplit, getSplitFields},
    {"AttentionConfigAttr", mlirAttributeIsAKVCacheAttentionConfigAttr,
     makeConfig, getConfigFields},
};

ArrayRef<Kind<MlirAttribute>> python::getAttributeKinds() { return kKinds; }
