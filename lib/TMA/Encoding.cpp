//===- Encoding.cpp - TMA descriptors without a driver --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/TMA/Encoding.h"

#include <cstring>

using namespace mlir::kvcache::tma;

namespace {
struct Encoding {
  uint64_t magic;
  uint64_t base;
  int64_t offset;
  int64_t strides[TensorMap::kMaxRank];
  uint32_t dims[TensorMap::kMaxRank];
  uint16_t box[TensorMap::kMaxRank];
  uint16_t l2Promotion;
  uint8_t rank;
  uint8_t elementBytes;
  uint8_t swizzle;
  uint8_t zeros[29];
};
} // namespace

static_assert(sizeof(Encoding) == kDescriptorBytes, "no padding");

/// The characters "kvtmap" and a version.
static constexpr uint64_t kMagic = 0x0001'7061'6d74'766b;

void mlir::kvcache::tma::encode(const Descriptor &descriptor, void *bytes) {
  const TensorMap &map = descriptor.map;
  Encoding encoding = {};
  encoding.magic = kMagic;
  encoding.base = descriptor.base;
  encoding.offset = map.offset;
  for (int dim = 0; dim < map.rank; ++dim) {
    encoding.strides[dim] = map.strides[dim];
    encoding.dims[dim] = static_cast<uint32_t>(map.dims[dim]);
    encoding.box[dim] = static_cast<uint16_t>(map.box[dim]);
  }
  encoding.l2Promotion = static_cast<uint16_t>(descriptor.l2Promotion);
  encoding.rank = static_cast<uint8_t>(map.rank);
  encoding.elementBytes = static_cast<uint8_t>(map.elementBytes);
  encoding.swizzle = static_cast<uint8_t>(map.swizzle);
  std::memcpy(bytes, &encoding, sizeof(encoding));
}

std::optional<Descriptor> mlir::kvcache::tma::decode(const void *bytes) {
  Encoding encoding;
  std::memcpy(&encoding, bytes, sizeof(encoding));
  if (encoding.magic != kMagic || encoding.rank > TensorMap::kMaxRank ||
      encoding.swizzle > static_cast<uint8_t>(Swizzle::Span128))
    return std::nullopt;

  Descriptor descriptor;
  TensorMap &map = descriptor.map;
  for (int dim = 0; dim < encoding.rank; ++dim)
    map.add(encoding.dims[dim], encoding.strides[dim], encoding.box[dim]);
  map.elementBytes = encoding.elementBytes;
  map.swizzle = static_cast<Swizzle>(encoding.swizzle);
  map.offset = encoding.offset;
  descriptor.base = encoding.base;
  descriptor.l2Promotion = encoding.l2Promotion;
  if (findBrokenLimit(map, descriptor.base))
    return std::nullopt;

  // The encoding is injective, so this detects any changed byte.
  char again[kDescriptorBytes];
  encode(descriptor, again);
  if (std::memcmp(again, bytes, kDescriptorBytes) != 0)
    return std::nullopt;
  return descriptor;
}
