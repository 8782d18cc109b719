//===- Matrices.cpp - Matrices between memory and registers ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Emulator/Matrices.h"
#include "Grid.h"
#include "WarpMeeting.h"

#include <algorithm>
#include <cstring>

using namespace mlir::kvcache::emulator;

namespace {
/// Bytes of a row, whatever its elements are.
constexpr uint32_t kRowBytes = 16;

struct MatrixLane : WarpLane {
  char *row = nullptr;
  uint32_t count = 0, layout = 0;
  /// Where the matrices go, or come from, and what of them is poisoned.
  uint32_t *registers = nullptr, *poison = nullptr, *origin = nullptr;
};

/// Where in a matrix a byte of a register is.
struct BytePlace {
  uint32_t row, column;
};

/// How matrices that one instruction moves lie in registers.
struct MatrixShape {
  uint32_t rows, registers;
  BytePlace (*getPlace)(uint32_t lane, uint32_t reg, uint32_t byte);
};
} // namespace

// PTX ISA, "ldmatrix": lanes 0 to 3 have the first row, lanes 4 to 7 the next.
static BytePlace placeRows(uint32_t lane, uint32_t, uint32_t byte) {
  return {lane / 4, lane % 4 * 4 + byte};
}

static BytePlace placeB16Transposed(uint32_t lane, uint32_t, uint32_t byte) {
  return {lane % 4 * 2 + byte / 2, lane / 4 * 2 + byte % 2};
}

/// PTX ISA, "ldmatrix" of m16n16: two registers, each of two columns.
static BytePlace placeB8Loaded(uint32_t lane, uint32_t reg, uint32_t byte) {
  return {lane % 4 * 4 + reg * 2 + byte % 2, lane / 4 + byte / 2 * 8};
}

/// PTX ISA, "stmatrix" of m16n8, whose columns are the rows in memory.
static BytePlace placeB8Stored(uint32_t lane, uint32_t, uint32_t byte) {
  return {lane % 4 * 2 + byte % 2, lane / 4 + byte / 2 * 8};
}

static MatrixShape getShape(uint32_t layout, bool isStore) {
  switch (layout) {
  case KVCacheMatrixB16Transposed:
    return {8, 1, placeB16Transposed};
  case KVCacheMatrixB8Transposed:
    return isStore ? MatrixShape{8, 1, placeB8Stored}
                   : MatrixShape{16, 2, placeB8Loaded};
  default:
    return {8, 1, placeRows};
  }
}

/// Of what becomes a byte of a register.
static uint32_t getElementBits(uint32_t layout) {
  return layout == KVCacheMatrixB6 ? 6 : layout == KVCacheMatrixB4 ? 4 : 8;
}

/// One byte of a row, with 6-bit and 4-bit elements unpacked.
static uint8_t loadByte(const char *row, uint32_t column, uint32_t layout) {
  uint32_t bits = getElementBits(layout);
  uint32_t first = column * bits, byte = first / 8;
  uint32_t word = static_cast<uint8_t>(row[byte]);
  if (byte + 1 < kRowBytes)
    word |= uint32_t{static_cast<uint8_t>(row[byte + 1])} << 8;
  return word >> first % 8 & ((1u << bits) - 1);
}

/// Checks and counts the rows, of which each lane gives the address of one.
static void checkRows(Block &block, WarpMeeting &meeting, uint32_t numRows,
                      uint32_t flags) {
  constexpr uint32_t rowsAtOnce = 8;
  uint32_t offsets[kWarpSize];
  for (uint32_t number = 0; number < numRows; ++number) {
    MatrixLane &lane = meeting.get<MatrixLane>(number);
    block.checkAlignment(*lane.thread, meeting.site, lane.row, kRowBytes);
    offsets[number] =
        block.getSharedOffset(*lane.thread, meeting.site, lane.row, kRowBytes);
  }
  for (uint32_t number = 0; number < numRows; ++number)
    block.meter.accessMatrixRow(*meeting.get<MatrixLane>(number).thread,
                                meeting.site, number / rowsAtOnce,
                                offsets[number], flags);
}

namespace {
/// Bytes of a register.
struct RegisterBytes {
  uint32_t begin, end;
};
} // namespace

/// Some bytes of a register are from `numRead` bytes of memory, of which nobody
/// has written all. Elements of less than a byte share theirs.
static void notePoison(MatrixLane &lane, uint32_t reg, RegisterBytes bytes,
                       uint32_t numRead, const Poison &read) {
  bool isByByte = numRead == bytes.end - bytes.begin;
  for (uint32_t byte = bytes.begin; byte < bytes.end; ++byte)
    if (!isByByte || read.mask >> (byte - bytes.begin) & 1)
      lane.poison[reg] |= 0xffu << byte * 8;
  *lane.origin = read.origin;
}

/// Notes the bytes of rows that a lane's register is made of, in pieces that
/// are in one row. It's that lane which others must be ordered with, whoever
/// gave the address.
static void accessRegister(Block &block, WarpMeeting &meeting, uint32_t number,
                           uint32_t reg, const MatrixShape &shape,
                           uint32_t flags) {
  MatrixLane &lane = meeting.get<MatrixLane>(number);
  uint32_t bits = getElementBits(lane.layout);
  auto getPlace = [&](uint32_t byte) {
    BytePlace place = shape.getPlace(number, reg % shape.registers, byte);
    place.row += reg / shape.registers * shape.rows;
    return place;
  };
  for (uint32_t byte = 0; byte < 4;) {
    BytePlace first = getPlace(byte);
    uint32_t end = byte + 1;
    for (; end < 4; ++end) {
      BytePlace next = getPlace(end);
      if (next.row != first.row || next.column != first.column + end - byte)
        break;
    }
    const char *row = meeting.get<MatrixLane>(first.row).row;
    uint32_t begin = first.column * bits / 8;
    uint32_t last = ((first.column + end - byte) * bits - 1) / 8;
    auto offset = static_cast<uint32_t>(row + begin - block.cluster.shared);
    SharedRange range{offset, last - begin + 1};
    Poison read =
        block.sanitizer.access(*lane.thread, meeting.site, range, flags);
    if (read.origin)
      notePoison(lane, reg, {byte, end}, range.bytes, read);
    if ((flags & KVCacheAccessWrite) && *lane.origin)
      block.sanitizer.poisonShared(
          range, reinterpret_cast<const char *>(&lane.poison[reg]) + byte,
          *lane.origin);
    byte = end;
  }
}

static void accessRows(Block &block, WarpMeeting &meeting, uint32_t count,
                       const MatrixShape &shape, uint32_t flags) {
  checkRows(block, meeting, count * shape.rows, flags);
  if (!block.isSanitized())
    return;
  if (flags & KVCacheAccessRead)
    meeting.forEach<MatrixLane>([&](uint32_t, MatrixLane &lane) {
      std::fill_n(lane.poison, count * shape.registers, 0);
      *lane.origin = 0;
    });
  for (uint32_t number = 0; number < kWarpSize; ++number)
    for (uint32_t reg = 0; reg < count * shape.registers; ++reg)
      accessRegister(block, meeting, number, reg, shape, flags);
}

/// Calls `function` with a lane, a register of it, a byte in that, the row that
/// the byte is in and its place there.
template <typename Function>
static void forEachByte(WarpMeeting &meeting, uint32_t count,
                        const MatrixShape &shape, Function function) {
  meeting.forEach<MatrixLane>([&](uint32_t number, MatrixLane &lane) {
    for (uint32_t reg = 0; reg < count * shape.registers; ++reg)
      for (uint32_t byte = 0; byte < 4; ++byte) {
        BytePlace place = shape.getPlace(number, reg % shape.registers, byte);
        uint32_t row = reg / shape.registers * shape.rows + place.row;
        function(lane.registers[reg], byte, meeting.get<MatrixLane>(row).row,
                 place.column);
      }
  });
}

/// Registers that are four bytes of a row, which is what most kernels want.
static void loadRows(WarpMeeting &meeting, uint32_t count) {
  meeting.forEach<MatrixLane>([&](uint32_t number, MatrixLane &lane) {
    for (uint32_t reg = 0; reg < count; ++reg) {
      auto [row, column] = placeRows(number, 0, 0);
      std::memcpy(&lane.registers[reg],
                  meeting.get<MatrixLane>(reg * 8 + row).row + column,
                  sizeof(uint32_t));
    }
  });
}

/// The same of transposed matrices: the halves of a register are in two rows.
static void loadColumns(WarpMeeting &meeting, uint32_t count) {
  meeting.forEach<MatrixLane>([&](uint32_t number, MatrixLane &lane) {
    for (uint32_t reg = 0; reg < count; ++reg) {
      uint16_t halves[2];
      for (uint32_t half = 0; half < 2; ++half) {
        auto [row, column] = placeB16Transposed(number, 0, 2 * half);
        std::memcpy(&halves[half],
                    meeting.get<MatrixLane>(reg * 8 + row).row + column,
                    sizeof(uint16_t));
      }
      lane.registers[reg] = halves[0] | uint32_t{halves[1]} << 16;
    }
  });
}

static void loadMatrices(Block &block, WarpMeeting &meeting) {
  const MatrixLane &first = meeting.get<MatrixLane>(0);
  MatrixShape shape = getShape(first.layout, /*isStore=*/false);
  uint32_t layout = first.layout;
  accessRows(block, meeting, first.count, shape,
             KVCacheAccessRead | KVCacheAccessPoisons);
  if (layout == KVCacheMatrixB16)
    return loadRows(meeting, first.count);
  if (layout == KVCacheMatrixB16Transposed)
    return loadColumns(meeting, first.count);
  forEachByte(
      meeting, first.count, shape,
      [layout](uint32_t &reg, uint32_t byte, const char *row, uint32_t column) {
        reg = (byte ? reg : 0) | uint32_t{loadByte(row, column, layout)}
                                     << byte * 8;
      });
}

static void storeMatrices(Block &block, WarpMeeting &meeting) {
  const MatrixLane &first = meeting.get<MatrixLane>(0);
  MatrixShape shape = getShape(first.layout, /*isStore=*/true);
  accessRows(block, meeting, first.count, shape, KVCacheAccessWrite);
  forEachByte(meeting, first.count, shape,
              [](uint32_t &reg, uint32_t byte, char *row, uint32_t column) {
                row[column] = reg >> byte * 8;
              });
}

void kvcacheEmulatorLoadMatrix(KVCacheThread *self, const KVCacheSite *site,
                               const void *row, uint32_t count, uint32_t layout,
                               KVCacheMatrixRegisters *registers) {
  Thread &thread = Thread::get(self);
  MatrixLane lane;
  lane.row = static_cast<char *>(const_cast<void *>(row));
  lane.count = count;
  lane.layout = layout;
  lane.registers = registers->d;
  lane.poison = registers->poisonD;
  lane.origin = &registers->origin;
  thread.block->warps.meet(thread, site, kAllLanes, loadMatrices, lane,
                           WarpRule::AllLanes);
}

void kvcacheEmulatorStoreMatrix(KVCacheThread *self, const KVCacheSite *site,
                                void *row, uint32_t count, uint32_t layout,
                                KVCacheMatrixRegisters *registers) {
  Thread &thread = Thread::get(self);
  MatrixLane lane;
  lane.row = static_cast<char *>(row);
  lane.count = count;
  lane.layout = layout;
  lane.registers = registers->a;
  lane.poison = registers->poisonA;
  lane.origin = &registers->origin;
  thread.block->warps.meet(thread, site, kAllLanes, storeMatrices, lane,
                           WarpRule::AllLanes);
}
