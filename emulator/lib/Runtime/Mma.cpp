//===- Mma.cpp - Products of matrices by a warp ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AddressSanitizer.h"
#include "Elements.h"
#include "MatrixRegisters.h"

#include <algorithm>
#include <cstring>

using namespace mlir::kvcache;
using namespace mlir::kvcache::emulator;

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// The largest matrices, m by k and k by n; n is always the same.
static constexpr uint32_t kMaxM = 16, kN = 8, kMaxK = 64;

// Compiled for several processors, one of which is chosen when the library is
// loaded.
#if defined(__x86_64__) && defined(__ELF__) &&                                 \
    !defined(KVCACHE_ADDRESS_SANITIZER)
#define KVCACHE_FOR_EACH_PROCESSOR                                             \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define KVCACHE_FOR_EACH_PROCESSOR
#endif

/// Adds the products of `m` rows to sums, in the order of k. Products are
/// exact, so that an fma is the same.
template <typename Number>
[[gnu::always_inline]] static inline void
addProducts(const Number (*a)[kMaxK], const Number (*b)[kN], Number (*sums)[kN],
            uint32_t m, uint32_t k) {
  // As many as processors have registers for.
  constexpr uint32_t step = 4;
  using Row [[gnu::vector_size(kN * sizeof(Number))]] = Number;
  for (uint32_t first = 0; first < m; first += step) {
    Row rows[step], factors;
    std::memcpy(rows, sums[first], sizeof(rows));
    for (uint32_t i = 0; i < k; ++i) {
      std::memcpy(&factors, b[i], sizeof(Row));
      for (uint32_t row = 0; row < step; ++row)
        rows[row] += a[first + row][i] * factors;
    }
    std::memcpy(sums[first], rows, sizeof(rows));
  }
}

KVCACHE_FOR_EACH_PROCESSOR
static void addFloats(const double (*a)[kMaxK], const double (*b)[kN],
                      double (*sums)[kN], uint32_t m, uint32_t k) {
  addProducts(a, b, sums, m, k);
}

KVCACHE_FOR_EACH_PROCESSOR
static void addIntegers(const int32_t (*a)[kMaxK], const int32_t (*b)[kN],
                        int32_t (*sums)[kN], uint32_t m, uint32_t k) {
  addProducts(a, b, sums, m, k);
}

namespace {
/// An mma of a warp, in numbers whose products are exact, and whose sums are
/// rounded much less than results, or not at all.
///
/// PTX ISA, "Matrix Fragments for mma" of all shapes but m8n8k4: four lanes
/// share a row of A, and each has one register of it; registers go down by 8
/// rows, then on by what four registers hold. So a register of the warp is 8
/// rows that follow one another.
template <typename Number> class Multiplication {
public:
  Multiplication(const MatrixRegisters &registers,
                 const KVCacheMatrixInstruction &what)
      : registers(registers), what(what), m(what.mma->m), k(what.mma->k) {}

  template <typename Unpack> void loadA(Unpack unpack) {
    constexpr uint32_t width = 4 * Unpack::size;
    const uint32_t *next = what.a;
    for (uint32_t column = 0; column < k; column += width)
      for (uint32_t row = 0; row < m; row += kRows) {
        Number part[kRows][width];
        unpack(registers.get(*next++), &part[0][0]);
        for (uint32_t i = 0; i < kRows; ++i)
          std::copy_n(part[i], width, &a[row + i][column]);
      }
  }

  /// As of A, transposed.
  template <typename Unpack> void loadB(Unpack unpack) {
    constexpr uint32_t width = 4 * Unpack::size;
    const uint32_t *next = what.b;
    for (uint32_t row = 0; row < k; row += width) {
      Number part[kN][width];
      unpack(registers.get(*next++), &part[0][0]);
      for (uint32_t i = 0; i < width; ++i)
        for (uint32_t column = 0; column < kN; ++column)
          b[row + i][column] = part[column][i];
    }
  }

  /// Calls `visit` with the elements of each register of C or D, which is every
  /// second column of 8 rows if they have 32 bits.
  template <uint32_t size, typename Visitor>
  void forEachSum(const uint32_t *numbers, Visitor visit) {
    for (uint32_t row = 0; row < m; row += kRows)
      for (uint32_t column = 0; column < 2; column += size)
        visit(registers.get(*numbers++), &sums[row][column]);
  }

  template <typename Unpack> void loadC(Unpack unpack) {
    constexpr uint32_t size = Unpack::size, step = 2 / size;
    forEachSum<size>(what.c, [&](const uint32_t *words, Number *place) {
      Number part[kWarpSize * size];
      unpack(words, part);
      for (uint32_t i = 0; i < kWarpSize * size; ++i)
        place[i * step] = part[i];
    });
  }

  template <typename Pack> void storeD(Pack pack) {
    constexpr uint32_t size = Pack::size, step = 2 / size;
    forEachSum<size>(what.d, [&](uint32_t *words, const Number *place) {
      Number part[kWarpSize * size];
      for (uint32_t i = 0; i < kWarpSize * size; ++i)
        part[i] = place[i * step];
      pack(part, words);
    });
  }

  static constexpr uint32_t kRows = 8;

  const MatrixRegisters &registers;
  const KVCacheMatrixInstruction &what;
  const uint32_t m, k;
  alignas(64) Number a[kMaxM][kMaxK];
  alignas(64) Number b[kMaxK][kN];
  alignas(64) Number sums[kMaxM][kN];
};
} // namespace

/// Sums of products fit in 32 bits; that of C may not.
static void multiplyIntegers(const MatrixRegisters &registers,
                             const KVCacheMatrixInstruction &what) {
  const KVCacheMma &mma = *what.mma;
  Multiplication<int32_t> all(registers, what);
  withIntegers(mma.a, [&](auto unpack) { all.loadA(unpack); });
  withIntegers(mma.b, [&](auto unpack) { all.loadB(unpack); });
  std::fill_n(&all.sums[0][0], mma.m * kN, 0);
  addIntegers(all.a, all.b, all.sums, mma.m, mma.k);
  const uint32_t *c = what.c;
  all.forEachSum<1>(what.d, [&](uint32_t *words, const int32_t *place) {
    const uint32_t *terms = registers.get(*c++);
    for (uint32_t lane = 0; lane < kWarpSize; ++lane)
      words[lane] = encodeS32(int64_t{place[lane * 2]} +
                                  static_cast<int32_t>(terms[lane]),
                              mma.isSaturated);
  });
}

static void multiplyFloats(const MatrixRegisters &registers,
                           const KVCacheMatrixInstruction &what) {
  const KVCacheMma &mma = *what.mma;
  Multiplication<double> all(registers, what);
  withFloats(mma.a, [&](auto unpack) { all.loadA(unpack); });
  withFloats(mma.b, [&](auto unpack) { all.loadB(unpack); });
  if (mma.c == KVCacheElementF16)
    all.loadC(Unpack<16, fromF16>());
  else
    all.loadC(Unpack<32, fromF32>());
  addFloats(all.a, all.b, all.sums, mma.m, mma.k);
  if (mma.d == KVCacheElementF16)
    all.storeD(Pack<16, encodeF16>());
  else
    all.storeD(Pack<32, encodeF32>());
}

//===----------------------------------------------------------------------===//
// Poison
//===----------------------------------------------------------------------===//

/// The bits of a register that an element of C or D has, of two at most.
static uint32_t getHalf(uint32_t element, uint32_t index) {
  constexpr uint32_t half = 0xffff;
  return element == KVCacheElementF16 ? half << index % 2 * 16 : ~0u;
}

namespace {
/// The poison of an mma. An element of D is poisoned with the one of C, and
/// with any of its row of A or of its column of B: a factor of 0 doesn't help
/// where the other may be a NaN.
class PoisonedProducts {
public:
  PoisonedProducts(MatrixRegisters &registers,
                   const KVCacheMatrixInstruction &what)
      : registers(registers), what(what), mma(*what.mma),
        numA(mma.m / 8 * countRegisters(mma.a)), numB(countRegisters(mma.a)),
        numC(countSums(mma.c)), numD(countSums(mma.d)) {}

  void define() {
    bool any =
        collect(what.a, numA) | collect(what.b, numB) | collect(what.c, numC);
    for (uint32_t i = 0; i < numD; ++i)
      registers.define(what.d[i], any);
    if (any)
      spread();
  }

private:
  /// The registers of a row of A, and of a column of B.
  uint32_t countRegisters(uint32_t element) const {
    return mma.k * getBits(element) / 128;
  }
  uint32_t countSums(uint32_t element) const {
    return mma.m / 4 / (element == KVCacheElementF16 ? 2 : 1);
  }
  static uint32_t getBits(uint32_t element) {
    switch (element) {
    case KVCacheElementF16:
    case KVCacheElementBF16:
      return 16;
    case KVCacheElementTF32:
      return 32;
    case KVCacheElementS4:
    case KVCacheElementU4:
      return 4;
    default:
      return 8;
    }
  }

  /// Whether any of the registers is poisoned. Of several of a lane, the origin
  /// is that of the last.
  bool collect(const uint32_t *numbers, uint32_t count) {
    bool any = false;
    for (uint32_t i = 0; i < count; ++i) {
      if (!registers.isPoisoned(numbers[i]))
        continue;
      any = true;
      const uint32_t *poison = registers.getPoison(numbers[i]);
      for (uint32_t lane = 0; lane < kWarpSize; ++lane)
        if (poison[lane])
          origins[lane] = registers.getOrigins(numbers[i])[lane];
    }
    return any;
  }

  bool isPoisoned(uint32_t number, uint32_t lane) const {
    return registers.isPoisoned(number) && registers.getPoison(number)[lane];
  }

  void spread() {
    uint32_t rows = 0, columns = 0, origin = 0;
    for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
      origin = origins[lane] ? origins[lane] : origin;
      for (uint32_t i = 0; i < numA; ++i)
        if (isPoisoned(what.a[i], lane))
          rows |= 1u << (lane / 4 + i % (mma.m / 8) * 8);
      for (uint32_t i = 0; i < numB; ++i)
        if (isPoisoned(what.b[i], lane))
          columns |= 1u << lane / 4;
    }
    for (uint32_t lane = 0; lane < kWarpSize; ++lane)
      definePoison(lane, rows, columns, origin);
  }

  /// Sets the poison of a lane's elements of D. Its own origin comes before
  /// that of others.
  void definePoison(uint32_t lane, uint32_t rows, uint32_t columns,
                    uint32_t origin) {
    for (uint32_t i = 0; i < numD; ++i) {
      registers.getPoison(what.d[i])[lane] = 0;
      registers.getOrigins(what.d[i])[lane] =
          origins[lane] ? origins[lane] : origin;
    }
    uint32_t elements = mma.m / 4, perC = elements / numC,
             perD = elements / numD;
    for (uint32_t i = 0; i < elements; ++i) {
      uint32_t c = what.c[i / perC];
      if (rows >> (lane / 4 + i / 2 * 8) & 1 ||
          columns >> (lane % 4 * 2 + i % 2) & 1 ||
          (isPoisoned(c, lane) &&
           registers.getPoison(c)[lane] & getHalf(mma.c, i)))
        registers.getPoison(what.d[i / perD])[lane] |= getHalf(mma.d, i);
    }
  }

  MatrixRegisters &registers;
  const KVCacheMatrixInstruction &what;
  const KVCacheMma &mma;
  const uint32_t numA, numB, numC, numD;
  uint32_t origins[kWarpSize] = {};
};
} // namespace

void emulator::multiplyMatrices(MatrixWarp &warp,
                                const KVCacheMatrixInstruction &what) {
  if (warp.block.isSanitized())
    PoisonedProducts(warp.registers, what).define();
  if (what.mma->d == KVCacheElementS32)
    multiplyIntegers(warp.registers, what);
  else
    multiplyFloats(warp.registers, what);
}
