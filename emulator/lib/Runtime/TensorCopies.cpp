//===- TensorCopies.cpp - Copies by tensor maps ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AsyncCopies.h"
#include "Grid.h"
#include "Memory.h"
#include "kvcache/Emulator/AsyncCopies.h"
#include "kvcache/TMA/Encoding.h"

#include <algorithm>
#include <numeric>

using namespace mlir::kvcache;
using namespace mlir::kvcache::emulator;

//===----------------------------------------------------------------------===//
// What an instruction asks for
//===----------------------------------------------------------------------===//

namespace {

constexpr int kMaxRank = tma::TensorMap::kMaxRank;
/// Rows that a copy in mode tile::gather4 or tile::scatter4 moves.
constexpr int kNumRows = 4;

/// A tensor and what a copy moves of it.
struct TensorBox {
  tma::Descriptor descriptor;
  bool isRows;
  /// The coordinates of the box, or the column and the rows.
  std::array<int64_t, kMaxRank> coordinates;

  const tma::TensorMap &getMap() const { return descriptor.map; }
  int64_t getRowBytes() const {
    return getMap().box[0] * getMap().elementBytes;
  }
  /// Rows of the box, over all dimensions but the innermost.
  int64_t countRows() const {
    int64_t rows = isRows ? kNumRows : 1;
    for (int dim = 1; dim < getMap().rank; ++dim)
      rows *= getMap().box[dim];
    return rows;
  }
  uint32_t getBytes() const { return countRows() * getRowBytes(); }

  /// The address of element 0 of a row of the box, unless it is out of bounds.
  std::optional<uint64_t> getRow(int64_t row) const;
  /// The pieces of the box that are in bounds.
  std::vector<GlobalPiece> getPieces() const;
};

} // namespace

std::optional<uint64_t> TensorBox::getRow(int64_t row) const {
  const tma::TensorMap &map = getMap();
  uint64_t address = descriptor.base + map.offset;
  for (int dim = 1; dim < map.rank; ++dim) {
    int64_t index =
        isRows ? coordinates[1 + row] : coordinates[dim] + row % map.box[dim];
    row = isRows ? row : row / map.box[dim];
    if (index < 0 || index >= map.dims[dim])
      return std::nullopt;
    address += index * map.strides[dim] * map.elementBytes;
  }
  return address;
}

std::vector<GlobalPiece> TensorBox::getPieces() const {
  const tma::TensorMap &map = getMap();
  int64_t first = coordinates[0];
  int64_t begin = std::max<int64_t>(first, 0);
  int64_t end = std::min(first + map.box[0], map.dims[0]);
  std::vector<GlobalPiece> pieces;
  if (begin >= end)
    return pieces;
  for (int64_t row = 0, rows = countRows(); row < rows; ++row)
    if (std::optional<uint64_t> address = getRow(row))
      pieces.push_back(
          {reinterpret_cast<char *>(*address + begin * map.elementBytes),
           static_cast<uint32_t>((end - begin) * map.elementBytes),
           static_cast<uint32_t>(row * getRowBytes() +
                                 (begin - first) * map.elementBytes)});
  return pieces;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

static tma::Descriptor decode(const Thread &thread, const KVCacheSite *site,
                              const void *pointer) {
  std::optional<tma::Descriptor> descriptor;
  if (pointer)
    descriptor = tma::decode(pointer);
  if (!descriptor)
    thread.block->fail(thread, site,
                       "expects a tensor map, got 128 other bytes");
  return *descriptor;
}

static TensorBox getBox(const Thread &thread, const KVCacheSite *site,
                        const void *pointer, uint32_t mode,
                        int32_t numCoordinates,
                        const std::array<int64_t, kMaxRank> &coordinates) {
  const Block &block = *thread.block;
  TensorBox box{decode(thread, site, pointer), mode == KVCacheTensorRows,
                coordinates};
  const tma::TensorMap &map = box.getMap();
  int rank = box.isRows ? 2 : numCoordinates;
  if (map.rank != rank)
    block.fail(thread, site,
               "expects a tensor map of " + std::to_string(rank) +
                   " dimensions, got one of " + std::to_string(map.rank));
  // PTX ISA, "tiled::gather4 and tiled::scatter4 modes".
  if (box.isRows && map.box[1] != 1)
    block.fail(thread, site,
               "expects a tensor map with boxes of 1 row, got " +
                   std::to_string(map.box[1]) + " rows");
  return box;
}

/// Whether a box is empty on purpose: none of its rows is valid in the tensor
/// of a ragged tile, whose origin lies before the view.
static bool isRaggedAndEmpty(const TensorBox &box) {
  const tma::TensorMap &map = box.getMap();
  return map.offset < 0 && map.rank > 1 && box.coordinates[1] == map.dims[1];
}

/// Fails for a box at a page or a head that is none, where it has nothing of
/// the tensor. Those that lack a part of a tile on purpose pass: rows before
/// the first (-1), rows and columns at the end of a dimension that a box has
/// several of, and rows that a gather names, which are a tensor's of two
/// dimensions.
static void checkPlace(const Thread &thread, const KVCacheSite *site,
                       const TensorBox &box) {
  const Block &block = *thread.block;
  const tma::TensorMap &map = box.getMap();
  if (!block.isSanitized() || map.rank < 3 || isRaggedAndEmpty(box))
    return;
  // Before the first page or row, nothing else matters.
  if (box.coordinates[map.rank - 1] + map.box[map.rank - 1] <= 0)
    return;
  for (int dim = 1; dim < map.rank; ++dim) {
    bool isLast = dim + 1 == map.rank;
    int64_t first = box.coordinates[dim];
    bool isBefore = first + map.box[dim] <= 0;
    bool isAfter = first >= map.dims[dim] && (isLast || map.box[dim] == 1);
    if (isBefore || isAfter)
      block.fail(thread, site,
                 "copies a box at coordinate " + std::to_string(first) +
                     " of dimension " + std::to_string(dim) +
                     ", which is outside of the tensor: the size is " +
                     std::to_string(map.dims[dim]));
  }
}

/// Fails for a tile that a swizzle would store elsewhere than reads of the tile
/// look: the pattern goes by addresses, and repeats after 8 rows of its span. A
/// box of fewer rows may be any part of a tile that is where it should be.
static void checkSwizzle(const Thread &thread, const KVCacheSite *site,
                         const TensorBox &box, uint32_t offset) {
  const Block &block = *thread.block;
  tma::Swizzle swizzle = box.getMap().swizzle;
  if (!block.isSanitized() || swizzle == tma::Swizzle::None)
    return;
  constexpr int64_t patternRows = 8;
  int64_t repeat = std::gcd(patternRows * tma::getSpan(swizzle),
                            static_cast<int64_t>(box.getBytes()));
  if (offset % repeat != 0)
    block.fail(thread, site,
               "copies a box with a swizzle of " +
                   std::to_string(tma::getSpan(swizzle)) +
                   " bytes, which requires a multiple of " +
                   std::to_string(repeat) + " bytes in shared memory, got " +
                   block.describeShared(offset));
}

/// The copy between a box and shared memory at `shared`, where it has no place
/// yet.
static BoxCopy makeCopy(Thread &thread, const KVCacheSite *site,
                        const TensorBox &box, const void *shared) {
  // PTX ISA, "cp.async.bulk.tensor".
  constexpr uint64_t alignment = 128;
  thread.block->checkAlignment(thread, site, shared, alignment);
  BoxCopy copy{&thread, site, {0, box.getBytes()}, box.getPieces()};
  copy.swizzleMask = tma::getSpan(box.getMap().swizzle) / 16 - 1;
  return copy;
}

/// Fails for a box that has nothing of a tensor whose first address is in no
/// memory: GPUs touch that address for such a box, wherever the box is. Seen on
/// an H200, where it is CUDA_ERROR_ILLEGAL_ADDRESS; the PTX ISA does not say
/// so.
static void checkOrigin(const BoxCopy &copy,
                        const tma::Descriptor &descriptor) {
  const Block &block = copy.getBlock();
  uint64_t origin = descriptor.base + descriptor.map.offset;
  if (!block.isSanitized() || !copy.pieces.empty() ||
      Memory::get().findRange(origin))
    return;
  block.fail(*copy.thread, copy.site,
             "copies a box outside of the tensor, for which GPUs "
             "access the first address of the tensor, and it " +
                 Memory::get().describeWrong(
                     reinterpret_cast<const void *>(origin), 1, /*flags=*/0));
}

//===----------------------------------------------------------------------===//
// What compiled code calls
//===----------------------------------------------------------------------===//

void kvcacheEmulatorTensorLoad(KVCacheThread *self, const KVCacheSite *site,
                               void *to, const void *descriptor,
                               const void *barrier, int32_t mask,
                               uint32_t isOfPair, uint32_t mode,
                               int32_t numCoordinates, int32_t c0, int32_t c1,
                               int32_t c2, int32_t c3, int32_t c4) {
  Thread &thread = Thread::get(self);
  TensorBox box = getBox(thread, site, descriptor, mode, numCoordinates,
                         {c0, c1, c2, c3, c4});
  BoxCopy copy = makeCopy(thread, site, box, to);
  std::vector<Destination> destinations = getDestinations(
      thread, site, to, barrier, copy.range.bytes, mask, isOfPair);
  checkPlace(thread, site, box);
  checkOrigin(copy, box.descriptor);
  for (const Destination &destination : destinations)
    checkSwizzle(thread, site, box, destination.offset);
  copy.meter(box.isRows ? CopyKind::TensorGather4 : CopyKind::TensorLoad,
             /*isWrite=*/false);
  issueLoads(copy, destinations);
}

void kvcacheEmulatorTensorStore(KVCacheThread *self, const KVCacheSite *site,
                                const void *descriptor, const void *from,
                                uint32_t mode, int32_t numCoordinates,
                                int32_t c0, int32_t c1, int32_t c2, int32_t c3,
                                int32_t c4) {
  Thread &thread = Thread::get(self);
  TensorBox box = getBox(thread, site, descriptor, mode, numCoordinates,
                         {c0, c1, c2, c3, c4});
  // CUDA C++ Programming Guide, "Tensor Memory Accelerator": a tile that is
  // written may leave the tensor at its end, not at its beginning.
  for (int dim = 0; dim < (box.isRows ? 1 : numCoordinates); ++dim)
    if (box.coordinates[dim] < 0)
      thread.block->fail(thread, site,
                         "stores a box at coordinate " +
                             std::to_string(box.coordinates[dim]) +
                             " of dimension " + std::to_string(dim) +
                             ", which must not be negative");
  BoxCopy copy = makeCopy(thread, site, box, from);
  copy.range.offset =
      thread.block->getSharedOffset(thread, site, from, copy.range.bytes);
  checkPlace(thread, site, box);
  checkOrigin(copy, box.descriptor);
  checkSwizzle(thread, site, box, copy.range.offset);
  copy.meter(box.isRows ? CopyKind::TensorScatter4 : CopyKind::TensorStore,
             /*isWrite=*/true);
  issueStore(std::move(copy));
}

void kvcacheEmulatorTensorPrefetch(KVCacheThread *self, const KVCacheSite *site,
                                   const void *descriptor, uint32_t mode,
                                   int32_t numCoordinates, int32_t c0,
                                   int32_t c1, int32_t c2, int32_t c3,
                                   int32_t c4) {
  Thread &thread = Thread::get(self);
  TensorBox box = getBox(thread, site, descriptor, mode, numCoordinates,
                         {c0, c1, c2, c3, c4});
  BoxCopy copy{&thread, site, {}, box.getPieces()};
  copy.meter(CopyKind::Prefetch, /*isWrite=*/false);
}

void kvcacheEmulatorPrefetchTensorMap(KVCacheThread *self,
                                      const KVCacheSite *site,
                                      const void *descriptor) {
  decode(Thread::get(self), site, descriptor);
}
