//===- Matrices.cpp - Matrix instructions of a warp -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Emulator/Matrices.h"
#include "Formats.h"
#include "Grid.h"
#include "WarpMeeting.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

using namespace mlir::kvcache::emulator;

//===----------------------------------------------------------------------===//
// ldmatrix, stmatrix
//===----------------------------------------------------------------------===//

namespace {
/// Bytes of a row, whatever its elements are.
constexpr uint32_t kRowBytes = 16;

struct MatrixLane : WarpLane {
  char *row = nullptr;
  uint32_t count = 0, layout = 0;
  /// Where the matrices go, or come from.
  uint32_t *registers = nullptr;
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
    auto offset = static_cast<uint32_t>(row + begin - block.shared);
    block.sanitizer.access(*lane.thread, meeting.site,
                           {offset, last - begin + 1}, flags);
    byte = end;
  }
}

static void accessRows(Block &block, WarpMeeting &meeting, uint32_t count,
                       const MatrixShape &shape, uint32_t flags) {
  checkRows(block, meeting, count * shape.rows, flags);
  if (!block.getGrid().module->isSanitized)
    return;
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

static void loadMatrices(Block &block, WarpMeeting &meeting) {
  const MatrixLane &first = meeting.get<MatrixLane>(0);
  MatrixShape shape = getShape(first.layout, /*isStore=*/false);
  uint32_t layout = first.layout;
  accessRows(block, meeting, first.count, shape, KVCacheAccessRead);
  if (layout == KVCacheMatrixB16)
    return loadRows(meeting, first.count);
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

static void moveMatrices(KVCacheThread *self, const KVCacheSite *site,
                         WarpWork work, const void *row, uint32_t count,
                         uint32_t layout, const uint32_t *registers) {
  Thread &thread = Thread::get(self);
  MatrixLane lane;
  lane.row = static_cast<char *>(const_cast<void *>(row));
  lane.count = count;
  lane.layout = layout;
  lane.registers = const_cast<uint32_t *>(registers);
  thread.block->warps.meet(thread, site, kAllLanes, work, lane,
                           WarpRule::AllLanes);
}

void kvcacheEmulatorLoadMatrix(KVCacheThread *thread, const KVCacheSite *site,
                               const void *row, uint32_t count, uint32_t layout,
                               KVCacheMatrixRegisters *registers) {
  moveMatrices(thread, site, loadMatrices, row, count, layout, registers->d);
}

void kvcacheEmulatorStoreMatrix(KVCacheThread *thread, const KVCacheSite *site,
                                void *row, uint32_t count, uint32_t layout,
                                const KVCacheMatrixRegisters *registers) {
  moveMatrices(thread, site, storeMatrices, row, count, layout, registers->a);
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

static float fromF16(uint32_t bits) { return decodeF16(bits); }
static float fromBF16(uint32_t bits) { return decodeBF16(bits); }
static float fromE4M3(uint32_t bits) { return decodeE4M3(bits); }
static float fromE5M2(uint32_t bits) { return decodeE5M2(bits); }
static float fromF32(uint32_t bits) { return floatFromBits(bits); }

/// PTX ISA, "Alternate Floating-Point Data Formats": the low bits of a tf32 are
/// not looked at.
static float fromTF32(uint32_t bits) { return floatFromBits(bits & ~0x1fffu); }

static int32_t decodeS8(uint32_t bits) { return static_cast<int8_t>(bits); }
static int32_t decodeUnsigned(uint32_t bits) { return bits; }
static int32_t decodeS4(uint32_t bits) {
  return static_cast<int32_t>(bits << 28) >> 28;
}

static uint32_t encodeF16(double value) { return encode(kF16, value); }

/// NaN is the one that instructions make (PTX ISA, "Floating-Point
/// Instructions").
static uint32_t encodeF32(double value) {
  return std::isnan(value) ? 0x7fffffff
                           : bitsOfFloat(static_cast<float>(value));
}

static uint32_t encodeWrapped(int64_t value) { return value; }

static uint32_t encodeSaturated(int64_t value) {
  using Limits = std::numeric_limits<int32_t>;
  return std::clamp<int64_t>(value, Limits::min(), Limits::max());
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

namespace {
struct MmaLane : WarpLane {
  const KVCacheMma *form = nullptr;
  KVCacheMatrixRegisters *registers = nullptr;
};

struct Place {
  uint32_t row, column;
};

/// The elements of a register, and how many of them there are in one.
struct Packing {
  uint32_t bits;
  uint32_t size() const { return 32 / bits; }
  uint32_t get(uint32_t reg, uint32_t element) const {
    return reg >> element * bits & (~0u >> (32 - bits));
  }
};

/// The largest matrices, m by k and k by n.
constexpr uint32_t kMaxM = 16, kMaxN = 8, kMaxK = 64;

template <typename Number> struct Matrices {
  Number a[kMaxM][kMaxK], b[kMaxN][kMaxK];
};
} // namespace

static Packing getPacking(uint32_t element) {
  switch (element) {
  case KVCacheElementF16:
  case KVCacheElementBF16:
    return {16};
  case KVCacheElementE4M3:
  case KVCacheElementE5M2:
  case KVCacheElementS8:
  case KVCacheElementU8:
    return {8};
  case KVCacheElementS4:
  case KVCacheElementU4:
    return {4};
  default:
    return {32};
  }
}

// PTX ISA, "Matrix Fragments for mma" of all shapes but m8n8k4: four lanes
// share a row of A, and each has one register of it; registers go down by 8
// rows, then on by what four registers hold.

static Place placeA(const KVCacheMma &form, uint32_t lane, uint32_t reg,
                    uint32_t element, uint32_t size) {
  uint32_t down = form.m / 8;
  return {lane / 4 + reg % down * 8,
          (lane % 4 + reg / down * 4) * size + element};
}

/// As of A, transposed.
static Place placeB(const KVCacheMma &, uint32_t lane, uint32_t reg,
                    uint32_t element, uint32_t size) {
  return {(lane % 4 + reg * 4) * size + element, lane / 4};
}

/// C and D: each lane has two elements that are next to one another, of every
/// eighth row.
static Place placeC(uint32_t lane, uint32_t index) {
  return {lane / 4 + index / 2 * 8, lane % 4 * 2 + index % 2};
}

/// Calls `function` with the place and the bits of each element of A or B.
template <typename GetPlace, typename Function>
static void forEachElement(const KVCacheMma &form, const uint32_t *registers,
                           uint32_t numRegisters, uint32_t lane,
                           uint32_t elementType, GetPlace getPlace,
                           Function function) {
  Packing packing = getPacking(elementType);
  uint32_t size = packing.size();
  for (uint32_t reg = 0; reg < numRegisters; ++reg)
    for (uint32_t i = 0; i < size; ++i)
      function(getPlace(form, lane, reg, i, size),
               packing.get(registers[reg], i));
}

static uint32_t numRegisters(uint32_t rows, uint32_t columns,
                             uint32_t element) {
  return rows * columns * getPacking(element).bits / (32 * kWarpSize);
}

//===----------------------------------------------------------------------===//
// mma.sync
//===----------------------------------------------------------------------===//

/// The functions that turn bits into numbers, and sums into bits.
template <typename Number> struct Arithmetic {
  using Decode = Number (*)(uint32_t bits);
  Decode a, b, c;
  using Sum = std::conditional_t<std::is_integral_v<Number>, int64_t, double>;
  uint32_t (*encode)(Sum sum);
};

template <typename Number>
static void gather(WarpMeeting &meeting, const KVCacheMma &form,
                   const Arithmetic<Number> &arithmetic,
                   Matrices<Number> &matrices) {
  uint32_t numA = numRegisters(form.m, form.k, form.a);
  uint32_t numB = numRegisters(form.k, form.n, form.b);
  meeting.forEach<MmaLane>([&](uint32_t number, MmaLane &lane) {
    forEachElement(form, lane.registers->a, numA, number, form.a, placeA,
                   [&](Place place, uint32_t bits) {
                     matrices.a[place.row][place.column] = arithmetic.a(bits);
                   });
    forEachElement(form, lane.registers->b, numB, number, form.b, placeB,
                   [&](Place place, uint32_t bits) {
                     matrices.b[place.column][place.row] = arithmetic.b(bits);
                   });
  });
}

template <typename Number>
static void multiply(WarpMeeting &meeting, const KVCacheMma &form,
                     const Arithmetic<Number> &arithmetic) {
  using Sum = typename Arithmetic<Number>::Sum;
  Matrices<Number> matrices;
  gather(meeting, form, arithmetic, matrices);
  Packing packingC = getPacking(form.c), packingD = getPacking(form.d);
  meeting.forEach<MmaLane>([&](uint32_t number, MmaLane &lane) {
    uint32_t results[4] = {};
    for (uint32_t i = 0; i < form.m / 4; ++i) {
      auto [row, column] = placeC(number, i);
      uint32_t reg = lane.registers->c[i / packingC.size()];
      Sum sum = arithmetic.c(packingC.get(reg, i % packingC.size()));
      for (uint32_t k = 0; k < form.k; ++k)
        sum += Sum{matrices.a[row][k]} * matrices.b[column][k];
      results[i / packingD.size()] |= arithmetic.encode(sum)
                                      << i % packingD.size() * packingD.bits;
    }
    std::copy_n(results, 4, lane.registers->d);
  });
}

static float (*getDecode(uint32_t element))(uint32_t) {
  switch (element) {
  case KVCacheElementF16:
    return fromF16;
  case KVCacheElementBF16:
    return fromBF16;
  case KVCacheElementTF32:
    return fromTF32;
  case KVCacheElementE4M3:
    return fromE4M3;
  case KVCacheElementE5M2:
    return fromE5M2;
  default:
    return fromF32;
  }
}

static int32_t (*getIntegerDecode(uint32_t element))(uint32_t) {
  switch (element) {
  case KVCacheElementS8:
    return decodeS8;
  case KVCacheElementS4:
    return decodeS4;
  default:
    return decodeUnsigned;
  }
}

static void multiplyAll(Block &, WarpMeeting &meeting) {
  const KVCacheMma &form = *meeting.get<MmaLane>(0).form;
  if (form.d == KVCacheElementS32)
    return multiply<int32_t>(
        meeting, form,
        {getIntegerDecode(form.a), getIntegerDecode(form.b), decodeUnsigned,
         form.isSaturated ? encodeSaturated : encodeWrapped});
  multiply<float>(meeting, form,
                  {getDecode(form.a), getDecode(form.b), getDecode(form.c),
                   form.d == KVCacheElementF16 ? encodeF16 : encodeF32});
}

void kvcacheEmulatorMma(KVCacheThread *self, const KVCacheSite *site,
                        const KVCacheMma *form,
                        KVCacheMatrixRegisters *registers) {
  Thread &thread = Thread::get(self);
  MmaLane lane;
  lane.form = form;
  lane.registers = registers;
  thread.block->warps.meet(thread, site, kAllLanes, multiplyAll, lane,
                           WarpRule::AllLanes);
}
