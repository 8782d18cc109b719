//===- TensorScales.cpp - Block scales in tensor memory -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorScales.h"
#include "Block.h"
#include "Formats.h"

#include <algorithm>

using namespace mlir::kvcache::emulator;

static constexpr uint32_t kQuarterLanes = TensorMemory::kLanesOfQuarter;

/// Calls `visit` with the words that are read.
template <typename Visitor>
void TensorScales::forEachRegion(Visitor visit) const {
  for (uint32_t quarter = 0; quarter * kQuarterLanes < TensorMemory::kLanes;
       ++quarter)
    for (uint32_t first = 0; first < rows; first += kQuarterLanes)
      visit(TensorRegion{quarter * kQuarterLanes,
                         address + first / kQuarterLanes,
                         std::min(rows - first, kQuarterLanes), 1});
}

void TensorScales::check(const Thread &thread, const KVCacheSite *site,
                         const char *operand) const {
  const TensorMemory &memory = block->tensorMemory;
  if (address >> 16)
    thread.block->fail(thread, site,
                       std::string("expects the scales of ") + operand +
                           " to begin at lane 0, got " +
                           memory.describe(address, thread));
  forEachRegion(
      [&](const TensorRegion &region) { memory.check(thread, site, region); });
}

void TensorScales::touch() const {
  forEachRegion([&](const TensorRegion &region) {
    block->tensorMemory.touch(region, /*isWrite=*/false);
  });
}

TensorScales::Row TensorScales::read(const KVCacheSite *site, uint32_t quarter,
                                     uint32_t row) const {
  Row result;
  if (count == 0)
    return result;
  const TensorWord &word = block->tensorMemory.read(
      site, quarter * kQuarterLanes + row % kQuarterLanes,
      address + row / kQuarterLanes);
  constexpr uint32_t byte = 8, mask = 0xff, e4m3Mask = 0x7f;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t shift = byte * (id + i), code = word.value >> shift & mask;
    // Without a sign.
    result.values[i] = isE8M0 ? decodeE8M0(code) : decodeE4M3(code & e4m3Mask);
    if (!result.origin && (word.poison >> shift & mask))
      result.origin = word.origin;
  }
  return result;
}
