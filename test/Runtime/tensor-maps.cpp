//===- tensor-maps.cpp - Limits and encoding of tensor maps ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/TMA/Encoding.h"

#include <cstdio>
#include <cstring>
#include <iterator>
#include <vector>

using namespace mlir::kvcache::tma;

static int failures = 0;

static void expect(bool holds, const char *what) {
  if (holds)
    return;
  std::printf("failed: %s\n", what);
  ++failures;
}

static constexpr uint64_t kBase = 0x7f00'1234'0000;
static constexpr CacheShape kCache = {/*elementBytes=*/2, /*numHeads=*/8,
                                      /*headSize=*/128, /*pageSize=*/64};
static constexpr Extents kExtents = {/*rows=*/4096, /*pages=*/32,
                                     /*pageStride=*/131072};

//===----------------------------------------------------------------------===//
// Encoding
//===----------------------------------------------------------------------===//

static bool operator==(const TensorMap &a, const TensorMap &b) {
  return a.rank == b.rank && a.elementBytes == b.elementBytes &&
         a.dims == b.dims && a.strides == b.strides && a.box == b.box &&
         a.swizzle == b.swizzle && a.offset == b.offset;
}

static void testRoundTrips() {
  TensorMap largest;
  largest.elementBytes = 1;
  largest.swizzle = Swizzle::None;
  largest.offset = -(int64_t(1) << 40);
  largest.add(int64_t(1) << 31, 1, 256);
  for (int dim = 1; dim < TensorMap::kMaxRank; ++dim)
    largest.add(int64_t(1) << 31, (int64_t(1) << 40) - 16, 256);

  const OpenTensorMap views[] = {
      getTile(kCache, 64, 0, Swizzle::Span128),
      getMatrixTile(kCache, 64, 128, Major::MN, Swizzle::Span128),
      getPagedTile(kCache, 64, 64, Swizzle::Span64),
      getRaggedTile(kCache, 64, 0, Swizzle::Span32),
      getRopeTile(kCache, 64, 64, 512, Swizzle::Span128),
      getGather4Tile(kCache, 8, 72, 72, Swizzle::None),
      getRopeGather4Tile(kCache, 64, 512, Swizzle::None),
      getScaleTile({/*elementBytes=*/4, 1, 1, /*pageSize=*/64}, 32)};
  std::vector<TensorMap> maps = {largest};
  for (const OpenTensorMap &view : views)
    maps.push_back(resolve(view, kExtents));
  for (const TensorMap &map : maps)
    for (int64_t promotion : {0, 64, 128, 256}) {
      expect(!findBrokenLimit(map, kBase), "the map keeps all limits");
      alignas(kDescriptorAlignment) char bytes[kDescriptorBytes];
      encode({map, kBase, promotion}, bytes);
      std::optional<Descriptor> decoded = decode(bytes);
      expect(decoded && decoded->map == map && decoded->base == kBase &&
                 decoded->l2Promotion == promotion,
             "decoding gives what was encoded");
    }
}

static void testGarbage() {
  char bytes[kDescriptorBytes] = {};
  expect(!decode(bytes), "zeros are no tensor map");
  std::memset(bytes, 0x5a, sizeof(bytes));
  expect(!decode(bytes), "noise is no tensor map");

  encode(
      {resolve(getTile(kCache, 64, 0, Swizzle::Span128), kExtents), kBase, 0},
      bytes);
  // Magic number, a limit, the rank, the swizzle, and the zeros at the end.
  for (int at : {0, 7, 24, 96, 98, 99, 127}) {
    char changed[kDescriptorBytes];
    std::memcpy(changed, bytes, sizeof(bytes));
    changed[at] ^= 0x47;
    expect(!decode(changed), "a byte that was changed shows");
  }
}

//===----------------------------------------------------------------------===//
// Limits
//===----------------------------------------------------------------------===//

/// Prints the limit that a map breaks after `change`.
template <typename Change>
static void printLimit(Change change, uint64_t base = kBase) {
  TensorMap map = resolve(getTile(kCache, 64, 0, Swizzle::Span128), kExtents);
  change(map);
  std::printf("%s\n", findBrokenLimit(map, base).value_or("none").c_str());
}

static void printLimits() {
  printLimit([](TensorMap &map) {});
  printLimit([](TensorMap &map) { map.rank = 0; });
  printLimit([](TensorMap &map) { map.rank = 6; });
  printLimit([](TensorMap &map) { map.elementBytes = 3; });
  printLimit([](TensorMap &map) { map.dims[2] = 0; });
  printLimit([](TensorMap &map) { map.dims[2] = int64_t(1) << 31; });
  printLimit([](TensorMap &map) { map.dims[2] = (int64_t(1) << 31) + 1; });
  printLimit([](TensorMap &map) { map.box[1] = 257; });
  printLimit([](TensorMap &map) { map.strides[0] = 2; });
  printLimit([](TensorMap &map) { map.strides[1] = 0; });
  printLimit([](TensorMap &map) { map.strides[1] = 132; });
  printLimit([](TensorMap &map) { map.strides[2] = int64_t(1) << 39; });
  printLimit([](TensorMap &map) { map.strides[2] = int64_t(1) << 62; });
  printLimit([](TensorMap &map) { map.box[0] = 4; });
  printLimit([](TensorMap &map) { map.box[0] = 32; });
  printLimit([](TensorMap &map) { map.offset = 8; });
  printLimit([](TensorMap &map) { map.offset = 8; }, kBase + 8);
  printLimit([](TensorMap &map) { map.offset = -24; }, kBase + 4);
  printLimit([](TensorMap &map) {}, 0);
}

int main() {
  testRoundTrips();
  testGarbage();
  printLimits();
  return failures != 0;
}
