//===- Wgmma.cpp - Products of matrices by a warpgroup --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AlignedSums.h"
#include "Block.h"
#include "Elements.h"
#include "kvcache/TMA/MatrixDescriptor.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <tuple>

using namespace mlir::kvcache;
using namespace mlir::kvcache::emulator;

namespace {

constexpr uint32_t kM = AlignedSums::kMaxM, kStepBytes = 32;
constexpr int kMantissaBitsOfF32 = 23;
constexpr uint32_t kUnitBytes = tma::MatrixDescriptor::kUnitBytes;

/// A or B of an instruction.
struct Operand {
  const char *name;
  uint32_t element;
  tma::Major major;
  bool isNegated;
  /// Rows of A, columns of B.
  uint32_t size;
  tma::MatrixDescriptor matrix = {};

  uint32_t elementBytes() const {
    switch (element) {
    case KVCacheElementTF32:
      return 4;
    case KVCacheElementF16:
    case KVCacheElementBF16:
      return 2;
    default:
      return 1;
    }
  }
  uint32_t sizeK() const { return kStepBytes / elementBytes(); }
};

/// 16 bytes of a matrix, whose elements go on along its major dimension.
struct Unit {
  uint32_t address, mn, k;
};

/// An instruction that all threads of a warpgroup execute.
class Multiplication {
public:
  Multiplication(Block &block, const KVCacheSite *site,
                 const KVCacheWgmma &form,
                 const std::vector<WgmmaThread *> &threads);

  void checkDescriptors();
  /// Reads the matrices as the sanitizer sees it, and poisons accumulators.
  void check(Sanitizer::Copy (&reads)[Warpgroups::kNumWarps]);
  void meter() const;
  void run();

private:
  [[noreturn]] void fail(const std::string &message) const {
    block.fail(*threads.front()->thread, site, message);
  }
  bool hasRegisters(const Operand &operand) const {
    return form.hasRegistersA && &operand == &a;
  }
  void checkDescriptor(Operand &operand, uint64_t bits) const;
  std::vector<Unit> getUnits(const Operand &operand, uint32_t begin,
                             uint32_t end) const;
  void checkUnits(const Operand &operand, const std::vector<Unit> &units) const;
  void notePoison(const Operand &operand, const std::vector<Unit> &units,
                  const std::vector<uint16_t> &unwritten,
                  std::vector<char> &isPoisoned) const;
  void poisonAccumulators(uint32_t origin, const std::vector<char> &rows,
                          const std::vector<char> &columns);
  void load(const Operand &operand, float *numbers, uint32_t strideMN,
            uint32_t strideK) const;
  /// Calls `visit` with the registers of each thread, the number of one of A,
  /// its row, and the first of its elements along K.
  template <typename Visitor> void forEachRegisterA(Visitor visit) const;
  void loadRegistersA();
  /// Calls `visit` with each register of a thread's accumulators, the place of
  /// its first element, and how many elements it has.
  template <typename Visitor> void forEachRegister(Visitor visit);

  Block &block;
  const KVCacheSite *site;
  const KVCacheWgmma &form;
  const std::vector<WgmmaThread *> &threads;
  Operand a, b;
  AlignedSums product;
};

} // namespace

static tma::Major getMajor(uint32_t isMNMajor) {
  return isMNMajor ? tma::Major::MN : tma::Major::K;
}

Multiplication::Multiplication(Block &block, const KVCacheSite *site,
                               const KVCacheWgmma &form,
                               const std::vector<WgmmaThread *> &threads)
    : block(block), site(site), form(form), threads(threads),
      a{"A", form.a, getMajor(form.isMNMajorA), form.negatesA != 0, kM},
      b{"B", form.b, getMajor(form.isMNMajorB), form.negatesB != 0, form.n} {}

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

static std::string toHex(uint64_t bits) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%016llx",
                static_cast<unsigned long long>(bits));
  return text;
}

/// PTX ISA, "Matrix Descriptor Format". With a base offset of 0, the pattern of
/// a swizzle starts at a multiple of its size, and the matrix in its first row.
void Multiplication::checkDescriptor(Operand &operand, uint64_t bits) const {
  std::string name =
      std::string("has the descriptor ") + toHex(bits) + " of " + operand.name;
  std::optional<tma::MatrixDescriptor> matrix =
      tma::decodeMatrix(bits, tma::MatrixFormat::WGMMA);
  if (!matrix)
    fail(name + ", in which reserved bits are set");
  if (matrix->baseOffset != 0)
    fail(name + ", which has the base offset " +
         std::to_string(matrix->baseOffset) +
         ": the emulator supports only patterns at multiples of their size, "
         "whose base offset is 0");
  int64_t span = tma::getSpan(matrix->swizzle);
  bool isSwizzled = matrix->swizzle != tma::Swizzle::None;
  if (isSwizzled && (matrix->start >> 7) & (span / kUnitBytes - 1))
    fail(name + ", which begins at " +
         block.getGrid().sharedVariables.describe(matrix->start) +
         ": with a swizzle of " + std::to_string(span) +
         " bytes and the base offset 0, the pattern starts at a multiple of " +
         std::to_string(8 * span) + " bytes");
  operand.matrix = *matrix;
}

void Multiplication::checkDescriptors() {
  const WgmmaThread &first = *threads.front();
  for (const WgmmaThread *other : threads)
    for (auto [name, own, theirs] :
         {std::tuple("A", first.a, other->a), {"B", first.b, other->b}})
      if (own != theirs)
        block.fail(*other->thread, site,
                   std::string("has the descriptor ") + toHex(theirs) + " of " +
                       name + ", and " + Block::describe(*first.thread) +
                       " of its warpgroup has " + toHex(own));
  if (!form.hasRegistersA)
    checkDescriptor(a, first.a);
  checkDescriptor(b, first.b);
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// The 16-byte units of rows of A, or columns of B.
std::vector<Unit> Multiplication::getUnits(const Operand &operand,
                                           uint32_t begin, uint32_t end) const {
  std::vector<Unit> units;
  if (hasRegisters(operand))
    return units;
  uint32_t bytes = operand.elementBytes(), perUnit = kUnitBytes / bytes;
  bool isKMajor = operand.major == tma::Major::K;
  uint32_t stepMN = isKMajor ? 1 : perUnit, stepK = isKMajor ? perUnit : 1;
  for (uint32_t mn = begin; mn < end; mn += stepMN)
    for (uint32_t k = 0; k < operand.sizeK(); k += stepK)
      units.push_back(
          {operand.matrix.getAddress(operand.major, bytes, mn, k), mn, k});
  return units;
}

void Multiplication::checkUnits(const Operand &operand,
                                const std::vector<Unit> &units) const {
  const SharedVariables &variables = block.getGrid().sharedVariables;
  for (const Unit &unit : units)
    if (!variables.contains(unit.address, kUnitBytes))
      fail(std::string("reads 16 bytes of ") + operand.name + " at " +
           variables.describe(unit.address) + ", " +
           variables.describeSize(unit.address) + ", for " +
           (operand.name[0] == 'A' ? "row " : "column ") +
           std::to_string(unit.mn) + " and k = " + std::to_string(unit.k));
}

/// Rows of A or columns of B any element of which depends on unwritten bytes.
void Multiplication::notePoison(const Operand &operand,
                                const std::vector<Unit> &units,
                                const std::vector<uint16_t> &unwritten,
                                std::vector<char> &isPoisoned) const {
  uint32_t bytes = operand.elementBytes();
  for (size_t i = 0; i < unwritten.size(); ++i)
    for (uint32_t byte = 0; byte < kUnitBytes; ++byte)
      if (unwritten[i] >> byte & 1)
        isPoisoned[units[i].mn +
                   (operand.major == tma::Major::K ? 0 : byte / bytes)] = 1;
}

void Multiplication::check(Sanitizer::Copy (&reads)[Warpgroups::kNumWarps]) {
  std::vector<char> rows(kM), columns(form.n);
  std::vector<Unit> unitsB = getUnits(b, 0, form.n);
  checkUnits(b, unitsB);
  uint32_t origin = 0;
  for (uint32_t warp = 0; warp < Warpgroups::kNumWarps; ++warp) {
    constexpr uint32_t rowsOfWarp = kM / Warpgroups::kNumWarps;
    std::vector<Unit> unitsA =
        getUnits(a, warp * rowsOfWarp, (warp + 1) * rowsOfWarp);
    checkUnits(a, unitsA);
    if (!block.isSanitized())
      continue;
    std::vector<Thread *> lanes;
    for (uint32_t lane = 0; lane < kWarpSize; ++lane)
      lanes.push_back(threads[warp * kWarpSize + lane]->thread);
    std::vector<uint32_t> places;
    for (const std::vector<Unit> *units : {&unitsA, &unitsB})
      for (const Unit &unit : *units)
        places.push_back(unit.address | block.rank << Cluster::kSpanBits);
    std::vector<uint16_t> unwritten;
    reads[warp] =
        block.sanitizer.issueUnitReads(lanes, site, places, unwritten, origin);
    if (unwritten.empty())
      continue;
    auto end = unwritten.begin() + unitsA.size();
    notePoison(a, unitsA, {unwritten.begin(), end}, rows);
    notePoison(b, unitsB, {end, unwritten.end()}, columns);
  }
  if (!block.isSanitized())
    return;
  if (form.hasRegistersA)
    forEachRegisterA([&](const KVCacheWgmmaRegisters &registers, uint32_t reg,
                         uint32_t row, uint32_t) {
      if (!registers.originA || !registers.poisonA[reg])
        return;
      rows[row] = 1;
      origin = registers.originA;
    });
  poisonAccumulators(origin, rows, columns);
}

//===----------------------------------------------------------------------===//
// Accumulators
//===----------------------------------------------------------------------===//

/// PTX ISA, "Matrix Fragments for wgmma", D: a warp has 16 rows, of which four
/// lanes share one, and each has two columns of every eight.
template <typename Visitor>
void Multiplication::forEachRegister(Visitor visit) {
  uint32_t perRegister = form.d == KVCacheElementF16 ? 2 : 1;
  for (uint32_t t = 0; t < threads.size(); ++t)
    for (uint32_t i = 0; i < form.n / 2; i += perRegister) {
      uint32_t row = t / kWarpSize * 16 + t % kWarpSize / 4 + i / 2 % 2 * 8;
      uint32_t column = i / 4 * 8 + t % 4 * 2 + i % 2;
      visit(*threads[t]->registers, i / perRegister, row, column);
    }
}

/// PTX ISA, "Matrix Fragments for wgmma", A: four lanes share two rows, 8
/// apart, and each has two words of both, 16 bytes apart along K.
template <typename Visitor>
void Multiplication::forEachRegisterA(Visitor visit) const {
  uint32_t perWord = sizeof(uint32_t) / a.elementBytes();
  for (uint32_t t = 0; t < threads.size(); ++t)
    for (uint32_t reg = 0; reg < std::size(threads[t]->registers->a); ++reg) {
      uint32_t row = t / kWarpSize * 16 + t % kWarpSize / 4 + reg % 2 * 8;
      visit(*threads[t]->registers, reg, row, (t % 4 + reg / 2 * 4) * perWord);
    }
}

/// As of mma.sync: an element with its row of A, its column of B and itself.
void Multiplication::poisonAccumulators(uint32_t origin,
                                        const std::vector<char> &rows,
                                        const std::vector<char> &columns) {
  uint32_t perRegister = form.d == KVCacheElementF16 ? 2 : 1;
  forEachRegister([&](KVCacheWgmmaRegisters &registers, uint32_t reg,
                      uint32_t row, uint32_t column) {
    uint32_t &bits = registers.poison[reg];
    if (!registers.origin || !form.accumulates)
      bits = 0;
    for (uint32_t i = 0; i < perRegister; ++i)
      if (rows[row] || columns[column + i])
        bits |= perRegister == 2 ? 0xffffu << 16 * i : ~0u;
  });
  for (WgmmaThread *one : threads) {
    KVCacheWgmmaRegisters &registers = *one->registers;
    uint32_t numRegisters = form.n / 2 / perRegister;
    bool isPoisoned =
        std::any_of(registers.poison, registers.poison + numRegisters,
                    [](uint32_t bits) { return bits != 0; });
    if (!isPoisoned)
      registers.origin = 0;
    else if (origin)
      registers.origin = origin;
  }
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

static bool isInteger(uint32_t element) {
  return element == KVCacheElementS8 || element == KVCacheElementU8;
}

void Multiplication::load(const Operand &operand, float *numbers,
                          uint32_t strideMN, uint32_t strideK) const {
  bool isKMajor = operand.major == tma::Major::K;
  float sign = operand.isNegated ? -1 : 1;
  auto loadUnits = [&](auto unpack) {
    constexpr uint32_t perWord = decltype(unpack)::size;
    for (const Unit &unit : getUnits(operand, 0, operand.size)) {
      uint32_t words[kUnitBytes / sizeof(uint32_t)];
      std::memcpy(words, block.shared + unit.address, kUnitBytes);
      float *to = numbers + unit.mn * strideMN + unit.k * strideK;
      uint32_t step = isKMajor ? strideK : strideMN;
      for (uint32_t word : words) {
        float values[perWord];
        unpack.unpackWord(word, values);
        for (float value : values) {
          *to = sign * value;
          to += step;
        }
      }
    }
  };
  if (isInteger(operand.element))
    withIntegers(operand.element, loadUnits);
  else
    withFloats(operand.element, loadUnits);
}

void Multiplication::loadRegistersA() {
  auto loadWords = [&](auto unpack) {
    forEachRegisterA([&](const KVCacheWgmmaRegisters &registers, uint32_t reg,
                         uint32_t row, uint32_t k) {
      float values[decltype(unpack)::size];
      unpack.unpackWord(registers.a[reg], values);
      std::copy(std::begin(values), std::end(values), &product.a[row][k]);
    });
  };
  if (isInteger(a.element))
    withIntegers(a.element, loadWords);
  else
    withFloats(a.element, loadWords);
}

/// The bits after the first of the largest addend, which an H200 adds.
static int getSumBits(const KVCacheWgmma &form) {
  bool isNarrow = form.a == KVCacheElementE4M3 || form.a == KVCacheElementE5M2;
  return isNarrow ? 13 : 25;
}

/// Integers of 32 bits and their products are exact in double. A sum of f32 is
/// truncated, where those of f16 are rounded.
static uint32_t encodeSum(const KVCacheWgmma &form, double sum) {
  switch (form.d) {
  case KVCacheElementF16:
    return encodeF16(sum);
  case KVCacheElementS32:
    return encodeS32(static_cast<int64_t>(sum), form.isSaturated);
  default:
    return encodeF32(
        truncateMantissa(sum, std::min(getSumBits(form), kMantissaBitsOfF32)));
  }
}

static double decodeSum(const KVCacheWgmma &form, uint32_t bits) {
  switch (form.d) {
  case KVCacheElementF16:
    return fromF16(bits);
  case KVCacheElementS32:
    return static_cast<int32_t>(bits);
  default:
    return fromF32(bits);
  }
}

void Multiplication::run() {
  if (form.hasRegistersA)
    loadRegistersA();
  else
    load(a, &product.a[0][0], AlignedSums::kMaxK, 1);
  load(b, &product.b[0][0], 1, AlignedSums::kMaxN);
  uint32_t perRegister = form.d == KVCacheElementF16 ? 2 : 1;
  constexpr uint32_t half = 0xffff, halfBits = 16;
  forEachRegister([&](KVCacheWgmmaRegisters &registers, uint32_t reg,
                      uint32_t row, uint32_t column) {
    for (uint32_t i = 0; i < perRegister; ++i) {
      uint32_t bits = registers.d[reg];
      if (perRegister == 2)
        bits = bits >> halfBits * i & half;
      product.sums[row][column + i] =
          form.accumulates ? decodeSum(form, bits) : 0;
    }
  });
  if (isInteger(a.element))
    product.addExactly(kM, form.n, a.sizeK());
  else
    product.addAligned(kM, form.n, a.sizeK(), getSumBits(form));
  forEachRegister([&](KVCacheWgmmaRegisters &registers, uint32_t reg,
                      uint32_t row, uint32_t column) {
    uint32_t bits = 0;
    for (uint32_t i = 0; i < perRegister; ++i)
      bits |= encodeSum(form, product.sums[row][column + i]) << halfBits * i;
    registers.d[reg] = bits;
  });
}

void Multiplication::meter() const {
  uint32_t rows = form.hasRegistersA ? form.n : form.n + kM;
  block.meter.multiply(ProductKind::Warpgroup, kM, form.n, a.sizeK(),
                       int64_t{kStepBytes} * rows);
}

void emulator::multiply(Block &block, const KVCacheSite *site,
                        const KVCacheWgmma &form,
                        const std::vector<WgmmaThread *> &threads,
                        Sanitizer::Copy (&reads)[Warpgroups::kNumWarps]) {
  // Too large for the stack of a thread.
  auto all = std::make_unique<Multiplication>(block, site, form, threads);
  all->checkDescriptors();
  all->check(reads);
  all->meter();
  all->run();
}
