//===- Mma.cpp - Products of matrices by a warp ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Formats.h"
#include "Grid.h"
#include "WarpMeeting.h"
#include "kvcache/Emulator/Matrices.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

using namespace mlir::kvcache::emulator;

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
  if (block.isSanitized())
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
