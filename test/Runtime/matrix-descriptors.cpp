//===- matrix-descriptors.cpp - Matrices of wgmma and tcgen05 -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/TMA/InstructionDescriptor.h"
#include "kvcache/TMA/MatrixDescriptor.h"

#include <cinttypes>
#include <cstdio>
#include <vector>

using namespace mlir::kvcache::tma;

static int failures = 0;

static void expect(bool holds, const char *what) {
  if (holds)
    return;
  if (++failures < 10)
    std::printf("failed: %s\n", what);
}

static constexpr Swizzle kSwizzles[] = {Swizzle::None, Swizzle::Span32,
                                        Swizzle::Span64, Swizzle::Span128};

//===----------------------------------------------------------------------===//
// Layouts by the document
//===----------------------------------------------------------------------===//

namespace {
/// A dimension of a layout: the index goes through it with a stride.
struct Mode {
  int64_t size, stride;
};
} // namespace

/// The sum of strides of an index, innermost mode first; the last is open.
static int64_t walk(int64_t index, std::vector<Mode> modes) {
  int64_t sum = 0;
  for (size_t i = 0; i < modes.size(); ++i) {
    bool isLast = i + 1 == modes.size();
    sum += (isLast ? index : index % modes[i].size) * modes[i].stride;
    index /= modes[i].size;
  }
  return sum;
}

/// Swizzle<B, 4, 3> on the bytes of an address.
static int64_t permute(int64_t bits, int64_t address) {
  for (int64_t bit = 0; bit < bits; ++bit)
    if (address & (int64_t(128) << bit))
      address ^= int64_t(16) << bit;
  return address;
}

/// PTX ISA, "Canonical Layouts": a table in units of T elements, where T
/// elements are 16 bytes; here in bytes. `bits` is log2 of the span by 16.
static int64_t getCanonical(Major major, int64_t bits, int64_t elementBytes,
                            int64_t start, int64_t leading, int64_t stride,
                            int64_t mn, int64_t k) {
  int64_t t = 16 / elementBytes, width = int64_t(1) << bits;
  int64_t offset;
  if (major == Major::K && bits == 0)
    // ((8,m),(T,2k)) : ((1T,SBO),(1,LBO))
    offset = walk(mn, {{8, 16}, {0x7fffffff, stride}}) +
             walk(k, {{t, elementBytes}, {0x7fffffff, leading}});
  else if (major == Major::K)
    // ((8,m),(T,2k)) : ((WT,SBO),(1,T))
    offset = walk(mn, {{8, 16 * width}, {0x7fffffff, stride}}) +
             walk(k, {{t, elementBytes}, {0x7fffffff, 16}});
  else if (bits == 0)
    // ((T,1,m),(8,k)) : ((1,T,SBO),(1T,LBO))
    offset = walk(mn, {{t, elementBytes}, {0x7fffffff, stride}}) +
             walk(k, {{8, 16}, {0x7fffffff, leading}});
  else
    // ((T,W,m),(8,k)) : ((1,T,LBO),(WT,SBO))
    offset = walk(mn, {{t, elementBytes}, {width, 16}, {0x7fffffff, leading}}) +
             walk(k, {{8, 16 * width}, {0x7fffffff, stride}});
  return permute(bits, start + offset);
}

static void testLayouts() {
  for (Major major : {Major::K, Major::MN})
    for (int64_t bits = 0; bits < 4; ++bits)
      for (int64_t elementBytes : {1, 2, 4}) {
        if (major == Major::MN && elementBytes != 2)
          continue;
        MatrixDescriptor matrix;
        matrix.swizzle = kSwizzles[bits];
        matrix.start = 8192 + (major == Major::K && bits == 3 ? 96 : 0);
        matrix.leadingBytes = 6144;
        matrix.strideBytes = 3072;
        bool holds = true;
        for (int64_t mn = 0; mn < 256; ++mn)
          for (int64_t k = 0; k < 32 / elementBytes; ++k)
            holds &=
                matrix.getAddress(major, elementBytes, mn, k) ==
                getCanonical(major, bits, elementBytes, matrix.start,
                             matrix.leadingBytes, matrix.strideBytes, mn, k);
        expect(holds, "a layout is a canonical one");
      }
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// Writes the number of each element where a tensor copy puts it: a box after
/// the other, each with all rows and the columns of one span. PTX ISA, "Tensor
/// Swizzling Modes": in line i of 128 bytes, units of 16 bytes are exchanged by
/// i modulo the units of a span.
static std::vector<int32_t> copyTile(const TileLayout &tile, int64_t address,
                                     size_t size) {
  std::vector<int32_t> memory(size, -1);
  int64_t units = int64_t(1) << static_cast<int64_t>(tile.swizzle);
  int64_t boxColumns = tile.swizzle == Swizzle::None
                           ? tile.columns
                           : units * 16 / tile.elementBytes;
  int64_t next = address;
  for (int64_t box = 0; box < tile.columns; box += boxColumns)
    for (int64_t row = 0; row < tile.rows; ++row)
      for (int64_t c = box; c < box + boxColumns; ++c) {
        int64_t line = next / 128, unit = next % 128 / 16;
        int64_t group = unit / units * units;
        int64_t place =
            line * 128 + (group + ((unit - group) ^ line % units)) * 16;
        memory[place + next % 16] =
            static_cast<int32_t>(row * tile.columns + c);
        next += tile.elementBytes;
      }
  return memory;
}

static void testTile(const TileLayout &tile, Major major) {
  constexpr int64_t address = 3072, atoms = 8;
  std::vector<int32_t> memory =
      copyTile(tile, address, address + tile.rows * tile.columns * 4 + 4096);
  bool isKMajor = major == Major::K;
  int64_t stepK = 32 / tile.elementBytes;
  int64_t sizeMN = isKMajor ? tile.rows : tile.columns;
  int64_t sizeK = isKMajor ? tile.columns : tile.rows;
  int64_t stepMN = isKMajor ? atoms : getSpan(tile.swizzle) / tile.elementBytes;
  bool holds = true;
  for (int64_t mn = 0; mn < sizeMN; mn += stepMN)
    for (int64_t k = 0; k < sizeK; k += stepK) {
      std::optional<MatrixDescriptor> matrix =
          getMatrix(tile, address, major, isKMajor ? mn : k, isKMajor ? k : mn);
      if (!matrix) {
        holds = false;
        continue;
      }
      std::optional<MatrixDescriptor> decoded = decodeMatrix(
          encode(*matrix, MatrixFormat::WGMMA), MatrixFormat::WGMMA);
      for (int64_t i = mn; i < sizeMN; ++i)
        for (int64_t j = k; j < k + stepK; ++j)
          holds &= decoded &&
                   memory[decoded->getAddress(major, tile.elementBytes, i - mn,
                                              j - k)] ==
                       (isKMajor ? i * tile.columns + j : j * tile.columns + i);
    }
  expect(holds, "every element of a tile is found by its descriptor");
}

static void testTiles() {
  for (Swizzle swizzle : {Swizzle::Span32, Swizzle::Span64, Swizzle::Span128})
    for (int64_t rows : {16, 64, 256}) {
      for (int64_t elementBytes : {1, 2, 4})
        for (int64_t spans : {1, 2, 3}) {
          int64_t columns = spans * getSpan(swizzle) / elementBytes;
          testTile({rows, columns, elementBytes, swizzle}, Major::K);
        }
      testTile({rows, 2 * getSpan(swizzle) / 2, 2, swizzle}, Major::MN);
    }
  // A tile of eight columns is a column of core matrices.
  testTile({64, 8, 2, Swizzle::None}, Major::MN);

  TileLayout tile{64, 128, 2, Swizzle::Span128};
  expect(!getMatrix({64, 128, 2, Swizzle::None}, 0, Major::K, 0, 0),
         "wide rows without a swizzle have no descriptor");
  expect(!getMatrix(tile, 512, Major::K, 0, 0),
         "a tile beside its pattern has no descriptor");
  expect(!getMatrix(tile, 0, Major::K, 4, 0),
         "a matrix begins at every eighth row");
  expect(!getMatrix(tile, 0, Major::K, 0, 8),
         "a K-major matrix begins at every 32 bytes");
  expect(!getMatrix(tile, 0, Major::MN, 0, 16),
         "an MN-major matrix begins at a span");
  expect(!getMatrix(tile, 1 << 18, Major::K, 0, 0), "addresses are below 2^18");
}

//===----------------------------------------------------------------------===//
// Bits
//===----------------------------------------------------------------------===//

/// The offsets that CUTLASS computes for 128x64 bf16 in its own layouts, and
/// the descriptors of both kinds of chips.
static void printGolden() {
  struct Golden {
    const char *name;
    Swizzle swizzle;
    uint32_t leading, stride;
  };
  static constexpr Golden all[] = {{"K none", Swizzle::None, 2048, 128},
                                   {"K 32B", Swizzle::Span32, 16, 256},
                                   {"K 64B", Swizzle::Span64, 16, 512},
                                   {"K 128B", Swizzle::Span128, 16, 1024},
                                   {"MN none", Swizzle::None, 2048, 128},
                                   {"MN 32B", Swizzle::Span32, 256, 2048},
                                   {"MN 64B", Swizzle::Span64, 512, 2048},
                                   {"MN 128B", Swizzle::Span128, 1024, 2048}};
  for (const Golden &golden : all) {
    MatrixDescriptor matrix;
    matrix.leadingBytes = golden.leading;
    matrix.strideBytes = golden.stride;
    matrix.swizzle = golden.swizzle;
    std::printf("%s: 0x%016" PRIx64 " 0x%016" PRIx64 "\n", golden.name,
                encode(matrix, MatrixFormat::WGMMA),
                encode(matrix, MatrixFormat::TCGen05));
  }
  MatrixDescriptor largest{(1 << 18) - 16, (1 << 18) - 16, (1 << 18) - 16, 7,
                           Swizzle::Span32};
  std::printf("all bits: 0x%016" PRIx64 "\n",
              encode(largest, MatrixFormat::WGMMA));
}

static void printTile(const char *name, const TileLayout &tile, Major major,
                      int64_t row, int64_t column) {
  std::optional<MatrixDescriptor> matrix =
      getMatrix(tile, 1024, major, row, column);
  std::printf("%s: start %u LBO %u SBO %u\n", name, matrix->start,
              matrix->leadingBytes, matrix->strideBytes);
}

static void testBits() {
  for (MatrixFormat format : {MatrixFormat::WGMMA, MatrixFormat::TCGen05}) {
    uint64_t plain = encode({}, format);
    for (unsigned bit : {14, 15, 30, 31, 46, 47, 48, 52, 53, 60})
      expect(!decodeMatrix(plain ^ uint64_t(1) << bit, format),
             "reserved bits are rejected");
    for (uint64_t code : {1, 3, 5, 7}) {
      uint64_t bits = plain | code << 61;
      auto decoded = decodeMatrix(bits, format);
      expect(decoded.has_value() ==
                 (code == 1 && format == MatrixFormat::TCGen05),
             "of wide units only those of tcgen05 are known");
      expect(!decoded || (decoded->hasWideUnits &&
                          decoded->swizzle == Swizzle::Span128 &&
                          encode(*decoded, format) == bits),
             "wide units are decoded");
    }
    for (Swizzle swizzle : kSwizzles) {
      MatrixDescriptor matrix{1040, 32, 262128, 5, swizzle};
      auto decoded = decodeMatrix(encode(matrix, format), format);
      expect(decoded && decoded->start == 1040 && decoded->leadingBytes == 32 &&
                 decoded->strideBytes == 262128 && decoded->baseOffset == 5 &&
                 decoded->swizzle == swizzle,
             "what is decoded is what was encoded");
    }
  }
}

/// Prints descriptors of bf16 128x128 with both B and of e4m3 128x256, as
/// CUTLASS's headers compute them. Descriptors of i8 64x16, with both MN-major,
/// follow the table of the PTX ISA.
static void printInstructions() {
  using Descriptor = InstructionDescriptor;
  Descriptor all[] = {{128, 128, Descriptor::ResultF32, Descriptor::BF16,
                       Descriptor::BF16, Major::K, Major::K},
                      {128, 128, Descriptor::ResultF32, Descriptor::BF16,
                       Descriptor::BF16, Major::K, Major::MN},
                      {128, 256, Descriptor::ResultF32, Descriptor::E4M3,
                       Descriptor::E4M3, Major::K, Major::K},
                      {64, 16, Descriptor::ResultS32, Descriptor::S8,
                       Descriptor::S8, Major::MN, Major::MN}};
  for (const Descriptor &each : all)
    std::printf("instruction: 0x%08" PRIx32 "\n", each.encode());
}

int main() {
  printGolden();
  printInstructions();
  TileLayout tile{64, 128, 2, Swizzle::Span128};
  printTile("the second step of K", tile, Major::K, 0, 16);
  printTile("the second chunk of K", tile, Major::K, 8, 64);
  printTile("the second chunk of MN", tile, Major::MN, 16, 64);
  testLayouts();
  testTiles();
  testBits();
  std::printf("failures: %d\n", failures);
  return failures != 0;
}
