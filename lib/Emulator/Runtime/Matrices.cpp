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

static bool isSanitized(const Block &block) {
  return block.getGrid().module->isSanitized;
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
    auto offset = static_cast<uint32_t>(row + begin - block.shared);
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
  if (!isSanitized(block))
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

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

static double fromF16(uint32_t bits) { return decodeF16(bits); }
static double fromBF16(uint32_t bits) { return decodeBF16(bits); }
static double fromE4M3(uint32_t bits) { return decodeE4M3(bits); }
static double fromE5M2(uint32_t bits) { return decodeE5M2(bits); }
static double fromF32(uint32_t bits) { return floatFromBits(bits); }

/// PTX ISA, "Alternate Floating-Point Data Formats": the low bits of a tf32 are
/// not looked at.
static double fromTF32(uint32_t bits) { return floatFromBits(bits & ~0x1fffu); }

static int64_t fromS8(uint32_t bits) { return static_cast<int8_t>(bits); }
static int64_t fromUnsigned(uint32_t bits) { return bits; }
static int64_t fromS32(uint32_t bits) { return static_cast<int32_t>(bits); }
static int64_t fromS4(uint32_t bits) {
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

namespace {
/// The elements of a register, of so many bits, as numbers.
template <uint32_t bits, auto decode> struct Unpack {
  static constexpr uint32_t size = 32 / bits;

  template <typename Number>
  void operator()(uint32_t reg, Number *numbers) const {
    for (uint32_t i = 0; i < size; ++i)
      numbers[i] = decode(reg >> i * bits & (~0u >> (32 - bits)));
  }
};

/// The way back.
template <uint32_t bits, auto encode> struct Pack {
  static constexpr uint32_t size = 32 / bits;

  template <typename Number> uint32_t operator()(const Number *numbers) const {
    uint32_t reg = 0;
    for (uint32_t i = 0; i < size; ++i)
      reg |= encode(numbers[i]) << i * bits;
    return reg;
  }
};
} // namespace

/// Calls `visit` with the Unpack of a kind of elements.
template <typename Visitor>
static void withFloats(uint32_t element, Visitor visit) {
  switch (element) {
  case KVCacheElementF16:
    return visit(Unpack<16, fromF16>());
  case KVCacheElementBF16:
    return visit(Unpack<16, fromBF16>());
  case KVCacheElementTF32:
    return visit(Unpack<32, fromTF32>());
  case KVCacheElementE4M3:
    return visit(Unpack<8, fromE4M3>());
  case KVCacheElementE5M2:
    return visit(Unpack<8, fromE5M2>());
  default:
    return visit(Unpack<32, fromF32>());
  }
}

template <typename Visitor>
static void withIntegers(uint32_t element, Visitor visit) {
  switch (element) {
  case KVCacheElementS8:
    return visit(Unpack<8, fromS8>());
  case KVCacheElementU8:
    return visit(Unpack<8, fromUnsigned>());
  case KVCacheElementS4:
    return visit(Unpack<4, fromS4>());
  case KVCacheElementU4:
    return visit(Unpack<4, fromUnsigned>());
  default:
    return visit(Unpack<32, fromS32>());
  }
}

//===----------------------------------------------------------------------===//
// mma.sync
//===----------------------------------------------------------------------===//

namespace {
struct MmaLane : WarpLane {
  const KVCacheMma *form = nullptr;
  KVCacheMatrixRegisters *registers = nullptr;
};

/// The largest matrices, m by k and k by n; n is always the same.
constexpr uint32_t kMaxM = 16, kN = 8, kMaxK = 64;

/// An mma of a warp, in numbers whose products are exact, and whose sums are
/// rounded much less than results.
///
/// PTX ISA, "Matrix Fragments for mma" of all shapes but m8n8k4: four lanes
/// share a row of A, and each has one register of it; registers go down by 8
/// rows, then on by what four registers hold.
template <typename Number> class Multiplication {
public:
  Multiplication(WarpMeeting &meeting, const KVCacheMma &form)
      : meeting(meeting), form(form) {}

  template <typename Unpack> void loadA(Unpack unpack) {
    constexpr uint32_t size = Unpack::size;
    meeting.forEach<MmaLane>([&](uint32_t number, MmaLane &lane) {
      const uint32_t *next = lane.registers->a;
      for (uint32_t k = number % 4 * size; k < form.k; k += 4 * size)
        for (uint32_t row = number / 4; row < form.m; row += 8)
          unpack(*next++, &a[row][k]);
    });
  }

  /// As of A, transposed.
  template <typename Unpack> void loadB(Unpack unpack) {
    constexpr uint32_t size = Unpack::size;
    meeting.forEach<MmaLane>([&](uint32_t number, MmaLane &lane) {
      const uint32_t *next = lane.registers->b;
      for (uint32_t k = number % 4 * size; k < form.k; k += 4 * size) {
        Number numbers[size];
        unpack(*next++, numbers);
        for (uint32_t i = 0; i < size; ++i)
          b[k + i][number / 4] = numbers[i];
      }
    });
  }

  template <typename Unpack> void loadC(Unpack unpack) {
    meeting.forEach<MmaLane>([&](uint32_t number, MmaLane &lane) {
      const uint32_t *next = lane.registers->c;
      forEachSum<Unpack::size>(number,
                               [&](Number *sums) { unpack(*next++, sums); });
    });
  }

  /// Products are added in the order of k.
  void multiply() {
    // One row of the sums.
    using Row [[gnu::vector_size(kN * sizeof(Number))]] = Number;
    for (uint32_t m = 0; m < form.m; ++m) {
      Row sum, factors;
      std::memcpy(&sum, sums[m], sizeof(Row));
      for (uint32_t k = 0; k < form.k; ++k) {
        std::memcpy(&factors, b[k], sizeof(Row));
        sum += a[m][k] * factors;
      }
      std::memcpy(sums[m], &sum, sizeof(Row));
    }
  }

  template <typename Pack> void storeD(Pack pack) {
    meeting.forEach<MmaLane>([&](uint32_t number, MmaLane &lane) {
      uint32_t *next = lane.registers->d;
      forEachSum<Pack::size>(number,
                             [&](const Number *sums) { *next++ = pack(sums); });
    });
  }

private:
  /// Calls `visit` with the elements in each register of C or D: a lane has two
  /// that are next to one another, of every eighth row.
  template <uint32_t size, typename Visitor>
  void forEachSum(uint32_t lane, Visitor visit) {
    for (uint32_t row = lane / 4; row < form.m; row += 8)
      for (uint32_t i = 0; i < 2; i += size)
        visit(&sums[row][lane % 4 * 2 + i]);
  }

  WarpMeeting &meeting;
  const KVCacheMma &form;
  Number a[kMaxM][kMaxK], b[kMaxK][kN], sums[kMaxM][kN];
};
} // namespace

static void multiplyIntegers(WarpMeeting &meeting, const KVCacheMma &form) {
  Multiplication<int64_t> all(meeting, form);
  withIntegers(form.a, [&](auto unpack) { all.loadA(unpack); });
  withIntegers(form.b, [&](auto unpack) { all.loadB(unpack); });
  all.loadC(Unpack<32, fromS32>());
  all.multiply();
  if (form.isSaturated)
    all.storeD(Pack<32, encodeSaturated>());
  else
    all.storeD(Pack<32, encodeWrapped>());
}

static void multiplyFloats(WarpMeeting &meeting, const KVCacheMma &form) {
  Multiplication<double> all(meeting, form);
  withFloats(form.a, [&](auto unpack) { all.loadA(unpack); });
  withFloats(form.b, [&](auto unpack) { all.loadB(unpack); });
  if (form.c == KVCacheElementF16)
    all.loadC(Unpack<16, fromF16>());
  else
    all.loadC(Unpack<32, fromF32>());
  all.multiply();
  if (form.d == KVCacheElementF16)
    all.storeD(Pack<16, encodeF16>());
  else
    all.storeD(Pack<32, encodeF32>());
}

/// The bits of a register that an element of C or D has, of two at most.
static uint32_t getHalf(uint32_t element, uint32_t index) {
  constexpr uint32_t half = 0xffff;
  return element == KVCacheElementF16 ? half << index % 2 * 16 : ~0u;
}

/// An element of D is poisoned with the one of C, and with any of its row of A
/// or of its column of B: a factor of 0 doesn't help where the other may be a
/// NaN.
static void poisonProducts(WarpMeeting &meeting, const KVCacheMma &form) {
  uint32_t rows = 0, columns = 0, origin = 0;
  meeting.forEach<MmaLane>([&](uint32_t number, MmaLane &lane) {
    const KVCacheMatrixRegisters &registers = *lane.registers;
    if (!registers.origin)
      return;
    origin = registers.origin;
    uint32_t step = form.m / 8;
    for (uint32_t reg = 0; reg < 4; ++reg)
      if (registers.poisonA[reg])
        rows |= 1u << (number / 4 + reg % step * 8);
    if (registers.poisonB[0] || registers.poisonB[1])
      columns |= 1u << number / 4;
  });
  meeting.forEach<MmaLane>([&](uint32_t number, MmaLane &lane) {
    KVCacheMatrixRegisters &registers = *lane.registers;
    bool hasOwn = registers.origin != 0, isAny = false;
    std::fill(std::begin(registers.poisonD), std::end(registers.poisonD), 0);
    for (uint32_t i = 0; i < form.m / 4; ++i) {
      uint32_t perC = form.c == KVCacheElementF16 ? 2 : 1;
      uint32_t perD = form.d == KVCacheElementF16 ? 2 : 1;
      bool isPoisoned =
          rows >> (number / 4 + i / 2 * 8) & 1 ||
          columns >> (number % 4 * 2 + i % 2) & 1 ||
          (hasOwn && registers.poisonC[i / perC] & getHalf(form.c, i));
      if (isPoisoned)
        registers.poisonD[i / perD] |= getHalf(form.d, i);
      isAny |= isPoisoned;
    }
    if (!hasOwn)
      registers.origin = isAny ? origin : 0;
  });
}

static void multiplyAll(Block &block, WarpMeeting &meeting) {
  const KVCacheMma &form = *meeting.get<MmaLane>(0).form;
  if (isSanitized(block))
    poisonProducts(meeting, form);
  if (form.d == KVCacheElementS32)
    multiplyIntegers(meeting, form);
  else
    multiplyFloats(meeting, form);
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
