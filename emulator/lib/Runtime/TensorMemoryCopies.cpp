//===- TensorMemoryCopies.cpp - Copies, shifts and commits of tcgen05 -----===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Block.h"
#include "MBarrier.h"
#include "TensorOperands.h"

#include <cstring>
#include <memory>

using namespace mlir::kvcache::emulator;

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

namespace {
/// PTX ISA, "tcgen05.cp": the rows of the matrix and their bytes, and where
/// they go. Row r goes to lane `laneStep * (r % groupRows) + groupStep *
/// (r / groupRows)`, and to as many more as there are copies, `copyStep` from
/// one to the next.
struct CopyShape {
  uint32_t rows, bytes;
  uint32_t laneStep, groupRows, groupStep, copies, copyStep;
  TensorOp op = TensorOp::Copy;

  uint32_t getLane(uint32_t row, uint32_t copy) const {
    return laneStep * (row % groupRows) + groupStep * (row / groupRows) +
           copyStep * copy;
  }
};

/// A copy that a thread has issued, in one of its blocks.
struct MatrixCopy {
  const CopyShape &shape;
  const KVCacheSite *site;
  uint32_t address;
  SharedMatrix matrix;

  TensorMemory &getMemory() const { return matrix.block->tensorMemory; }
  TensorRegion getRegion(uint32_t row, uint32_t copy) const {
    return {(address >> 16) + shape.getLane(row, copy), address & 0xffff, 1,
            shape.bytes / 4};
  }
  /// Calls `visit` with each row and its place.
  template <typename Visitor> void forEachRow(Visitor visit) const {
    for (uint32_t row = 0; row < shape.rows; ++row)
      for (uint32_t copy = 0; copy < shape.copies; ++copy)
        visit(row, getRegion(row, copy));
  }
  void run() const;
};
} // namespace

/// Row r of 4 goes to the same lane of each quarter: CUTLASS, Copy_Traits of
/// SM100_UTCCP_4dp256bit_1cta. Its other traits have the other shapes.
static const CopyShape &getShape(uint32_t shape) {
  static const CopyShape shapes[] = {
      {128, 32, 1, 128, 0, 1, 0}, {4, 32, 32, 4, 0, 1, 0, TensorOp::CopyOfFour},
      {128, 16, 1, 128, 0, 1, 0}, {64, 16, 1, 64, 0, 2, 64},
      {64, 16, 1, 32, 64, 2, 32}, {32, 16, 1, 32, 0, 4, 32}};
  return shapes[shape];
}

void MatrixCopy::run() const {
  TensorMemory &memory = getMemory();
  constexpr uint32_t wordBytes = 4, perUnit = SharedMatrix::kUnitBytes / 4;
  forEachRow([&](uint32_t row, const TensorRegion &to) {
    for (uint32_t i = 0; i < to.columns; ++i) {
      size_t unit = row * matrix.countUnitsOfLine() + i / perUnit;
      uint32_t byte = i % perUnit * wordBytes, value, poison = 0;
      std::memcpy(&value, matrix.getUnit(unit) + byte, wordBytes);
      uint32_t unwritten =
          matrix.unwritten.empty() ? 0 : matrix.unwritten[unit] >> byte;
      for (uint32_t j = 0; j < wordBytes; ++j)
        if (unwritten >> j & 1)
          poison |= 0xffu << 8 * j;
      memory.write(to.lane, to.column + i, value, poison,
                   poison ? matrix.origin : 0);
    }
  });
}

void kvcacheEmulatorTmemCopy(KVCacheThread *self, const KVCacheSite *site,
                             const void *pointer, uint64_t descriptor,
                             uint32_t shapeNumber, uint32_t isOfPair) {
  Thread &thread = Thread::get(self);
  const CopyShape &shape = getShape(shapeNumber);
  auto copies = std::make_shared<std::vector<MatrixCopy>>();
  TensorWork work{&thread, site};
  work.blocks = thread.block->getGroup(thread, site, isOfPair);
  int64_t sharedBytes = 0;
  for (Block *block : work.blocks) {
    MatrixCopy &copy = copies->emplace_back(
        MatrixCopy{shape, site, TensorMemory::toAddress(pointer), {}});
    copy.matrix.block = block;
    copy.matrix.element.bits = 8;
    copy.matrix.rows = shape.rows;
    copy.matrix.rowBytes = shape.bytes;
    copy.forEachRow([&](uint32_t, const TensorRegion &region) {
      copy.getMemory().check(thread, site, region);
    });
    copy.matrix.locate(thread, site, "the source", descriptor);
    sharedBytes += copy.matrix.countBytes();
    work.reads.push_back(copy.matrix.issueRead(thread, site));
  }
  thread.block->meter.copy(CopyKind::TensorMemoryCopy, 0, sharedBytes);
  if (thread.block->isSanitized()) {
    TensorOrder &order = thread.block->cluster.tensorOrder;
    work.number = order.issue(thread, shape.op);
    order.begin({site, shape.op, thread.index, work.number});
    for (const MatrixCopy &copy : *copies)
      copy.forEachRow([&](uint32_t, const TensorRegion &region) {
        copy.getMemory().touch(region, /*isWrite=*/true);
      });
  }
  work.run = [copies] {
    for (const MatrixCopy &copy : *copies)
      copy.run();
  };
  thread.block->cluster.tensorQueue.issue(std::move(work));
}

//===----------------------------------------------------------------------===//
// Shifts
//===----------------------------------------------------------------------===//

static void shift(TensorMemory &memory, const KVCacheSite *site,
                  const TensorRegion &region) {
  for (uint32_t row = region.lanes - 1; row > 0; --row)
    for (uint32_t i = 0; i < region.columns; ++i) {
      TensorWord word =
          memory.read(site, region.lane + row - 1, region.column + i);
      memory.write(region.lane + row, region.column + i, word.value,
                   word.poison, word.origin);
    }
}

/// PTX ISA, "tcgen05.shift": of 32 rows all but the last move down by one.
void kvcacheEmulatorTmemShift(KVCacheThread *self, const KVCacheSite *site,
                              const void *pointer, uint32_t isOfPair) {
  constexpr uint32_t rows = 32, columns = 8;
  Thread &thread = Thread::get(self);
  uint32_t address = TensorMemory::toAddress(pointer);
  uint32_t lane = address >> 16, column = address & 0xffff;
  if (lane % rows != 0)
    thread.block->fail(thread, site,
                       "expects a lane that is a multiple of 32, got " +
                           TensorMemory::describe(address));
  TensorRegion region{lane, column, rows, columns};
  TensorWork work{&thread, site};
  work.blocks = thread.block->getGroup(thread, site, isOfPair);
  for (const Block *block : work.blocks)
    block->tensorMemory.check(thread, site, region);
  if (thread.block->isSanitized()) {
    TensorOrder &order = thread.block->cluster.tensorOrder;
    work.number = order.issue(thread, TensorOp::Shift);
    order.begin({site, TensorOp::Shift, thread.index, work.number});
    for (Block *block : work.blocks) {
      TensorMemory &memory = block->tensorMemory;
      memory.touch({lane, column, rows - 1, columns}, /*isWrite=*/false);
      memory.touch({lane + 1, column, rows - 1, columns}, /*isWrite=*/true);
    }
  }
  work.run = [blocks = work.blocks, site, region] {
    for (Block *block : blocks)
      shift(block->tensorMemory, site, region);
  };
  thread.block->cluster.tensorQueue.issue(std::move(work));
}

//===----------------------------------------------------------------------===//
// Commits
//===----------------------------------------------------------------------===//

void kvcacheEmulatorTmemCommit(KVCacheThread *self, const KVCacheSite *site,
                               const void *pointer, int32_t mask) {
  Thread &thread = Thread::get(self);
  Block &owner = thread.block->getOwner(thread, site, pointer);
  std::vector<Block *> blocks{&owner};
  if (mask >= 0)
    blocks = owner.getMasked(thread, site, mask, "commits");
  for (Block *to : blocks) {
    MBarrier &barrier =
        to->mbarriers.get(thread, site, owner.translate(pointer, *to));
    owner.cluster.tensorQueue.commit(thread, site, barrier);
  }
}
