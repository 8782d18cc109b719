//===- TensorMaps.cpp - Tensor maps of the C ABI --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Runtime/Support.h"

#include <algorithm>

using namespace mlir::kvcache;
using namespace mlir::kvcache::runtime;

/// Returns the swizzle of a span in bytes, where 0 is no swizzle.
static std::optional<tma::Swizzle> getSwizzle(int32_t span) {
  if (span == 0)
    return tma::Swizzle::None;
  for (tma::Swizzle swizzle :
       {tma::Swizzle::Span32, tma::Swizzle::Span64, tma::Swizzle::Span128})
    if (tma::getSpan(swizzle) == span)
      return swizzle;
  return std::nullopt;
}

static tma::Descriptor toDescriptor(const KVCacheTensorMap &map) {
  tma::Descriptor descriptor;
  tma::TensorMap &result = descriptor.map;
  // The check of the limits reports a rank that is out of range.
  for (int dim = 0, e = std::min(map.rank, tma::TensorMap::kMaxRank); dim < e;
       ++dim)
    result.add(map.dims[dim], map.strides[dim], map.box[dim]);
  result.rank = map.rank;
  result.elementBytes = map.elementBytes;
  result.swizzle = getSwizzle(map.swizzle).value_or(tma::Swizzle::None);
  result.offset = map.offset;
  descriptor.base = reinterpret_cast<uintptr_t>(map.base);
  descriptor.l2Promotion = map.l2Promotion;
  return descriptor;
}

/// Returns a message for a wrong field that the hardware limits do not cover.
static std::optional<std::string> findWrongField(const KVCacheTensorMap &map,
                                                 const void *address) {
  if (!getSwizzle(map.swizzle))
    return "expects a swizzle of 0, 32, 64 or 128 bytes, got " +
           std::to_string(map.swizzle);
  int32_t promotion = map.l2Promotion;
  if (promotion != 0 && promotion != 64 && promotion != 128 && promotion != 256)
    return "expects an L2 promotion of 0, 64, 128 or 256 bytes, got " +
           std::to_string(promotion);
  if (reinterpret_cast<uintptr_t>(address) % tma::kDescriptorAlignment != 0)
    return "expects the descriptor at a multiple of 64 bytes";
  return std::nullopt;
}

std::optional<tma::Descriptor>
runtime::getDescriptor(const KVCacheTensorMap &map, const void *address) {
  tma::Descriptor descriptor = toDescriptor(map);
  std::optional<std::string> broken = findWrongField(map, address);
  if (!broken)
    broken = tma::findBrokenLimit(descriptor.map, descriptor.base);
  if (!broken)
    return descriptor;
  fail("tensor map: " + *broken);
  return std::nullopt;
}
