//===- TensorProducts.cpp - Products in tensor memory ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Block.h"
#include "Grid.h"
#include "TensorInstruction.h"
#include "kvcache/TMA/MatrixDescriptor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>

using namespace mlir::kvcache;
using namespace mlir::kvcache::emulator;

/// The bytes of K that one instruction multiplies, of each row.
static constexpr uint32_t kRowBytes = 32;
static constexpr uint32_t kUnitBytes = 16;
static constexpr uint32_t kMostRows = 256;

namespace {
/// A matrix in shared memory, of M or N rows.
struct SharedMatrix {
  tma::MatrixDescriptor descriptor;
  TensorElement element;
  bool isTransposed, isNegated;
  uint32_t rows;
  /// Where its units of 16 bytes are in the block's shared memory.
  std::vector<uint32_t> units;
  /// Of each row, the origin of poison, or 0.
  std::vector<uint32_t> origins;

  /// Elements of K.
  uint32_t countK() const { return kRowBytes * 8 / std::max(element.bits, 8u); }
  /// The bytes of a line: of K, or of all rows if they are contiguous.
  uint32_t getLineBytes() const {
    return isTransposed ? rows * element.bits / 8 : kRowBytes;
  }
  uint32_t countUnitsOfLine() const {
    return (getLineBytes() + kUnitBytes - 1) / kUnitBytes;
  }
  uint32_t countLines() const { return isTransposed ? countK() : rows; }
  uint32_t getAddress(uint32_t line, uint32_t byte) const {
    uint32_t bytes = std::max(element.bits / 8, 1u);
    return isTransposed ? descriptor.getAddress(tma::Major::MN, bytes,
                                                byte / bytes, line)
                        : descriptor.getAddress(tma::Major::K, bytes, line,
                                                byte / bytes);
  }
  /// Nobody has written a byte of a unit.
  void poisonRow(size_t unit, uint32_t byte, uint32_t origin);
};

/// A product that a thread has issued.
struct Product {
  Thread *thread;
  const KVCacheSite *site;
  KVCacheTmemMma operands;
  TensorInstruction instruction;
  uint32_t d;
  std::optional<uint32_t> tensorA;
  SharedMatrix a, b;

  Block &getBlock() const { return *thread->block; }
  [[noreturn]] void fail(const std::string &message) const {
    getBlock().fail(*thread, site, message);
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// The lane of a row of D, or of A, from the first one on. PTX ISA, "Data Path
/// Layout Organization".
static uint32_t getLane(uint32_t m, uint32_t row) {
  return m == 64 ? row % 16 + row / 16 * 32 : row;
}

/// The regions with M rows at an address.
static std::vector<TensorRegion> getRegions(uint32_t address, uint32_t m,
                                            uint32_t columns) {
  uint32_t lane = address >> 16, column = address & 0xffff;
  if (m != 64)
    return {{lane, column, m, columns}};
  std::vector<TensorRegion> regions;
  for (uint32_t row = 0; row < m; row += 16)
    regions.push_back({lane + getLane(m, row), column, 16, columns});
  return regions;
}

static void checkPlace(const Product &product, const char *operand,
                       uint32_t address, uint32_t columns) {
  uint32_t m = product.instruction.m, lane = address >> 16;
  if (lane != 0 && !(m == 64 && lane == 16))
    product.fail(std::string("expects ") + operand + " of " +
                 std::to_string(m) + " rows to begin at lane 0" +
                 (m == 64 ? " or 16" : "") + ", got " +
                 TensorMemory::describe(address));
  for (const TensorRegion &region : getRegions(address, m, columns))
    product.getBlock().tensorMemory.check(*product.thread, product.site,
                                          region);
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

void SharedMatrix::poisonRow(size_t unit, uint32_t byte, uint32_t origin) {
  uint32_t unitsOfLine = countUnitsOfLine();
  uint32_t place = unit % unitsOfLine * kUnitBytes + byte;
  uint32_t row = isTransposed ? place * 8 / element.bits : unit / unitsOfLine;
  if (row < rows)
    origins[row] = origin;
}

/// Reads a descriptor and finds the units of the matrix.
static void locate(const Product &product, const char *operand, uint64_t bits,
                   SharedMatrix &matrix) {
  auto descriptor = tma::decodeMatrix(bits, tma::MatrixFormat::TCGen05);
  if (!descriptor)
    product.fail(std::string("has a descriptor of ") + operand +
                 " with reserved bits or a swizzle that tcgen05 doesn't have, "
                 "or with an absolute leading offset");
  if (descriptor->baseOffset != 0)
    product.fail(std::string("has a descriptor of ") + operand +
                 " with a base offset, which the emulator doesn't know");
  matrix.descriptor = *descriptor;
  // PTX ISA, "Canonical Layouts".
  bool wantsWideUnits = matrix.isTransposed && matrix.element.bits == 32;
  if (descriptor->hasWideUnits != wantsWideUnits)
    product.fail(
        std::string("has a descriptor of ") + operand +
        (wantsWideUnits
             ? " that is transposed, of 32-bit elements, and has another "
               "swizzle than that of 128 bytes with units of 32"
             : " with the swizzle of units of 32 bytes, which is for "
               "transposed "
               "matrices of 32-bit elements"));
  // Places count through the cluster.
  uint32_t first = product.getBlock().rank << Cluster::kSpanBits;
  for (uint32_t line = 0; line < matrix.countLines(); ++line)
    for (uint32_t byte = 0; byte < matrix.getLineBytes(); byte += kUnitBytes)
      matrix.units.push_back(first + matrix.getAddress(line, byte));
}

/// The ranges of shared memory that units are in, which must be in arrays.
static std::vector<SharedRange> getRanges(const Product &product,
                                          const SharedMatrix &matrix) {
  std::vector<uint32_t> units = matrix.units;
  std::sort(units.begin(), units.end());
  std::vector<SharedRange> ranges;
  for (uint32_t unit : units) {
    if (!ranges.empty() && unit < ranges.back().offset + ranges.back().bytes)
      continue;
    if (!ranges.empty() && unit == ranges.back().offset + ranges.back().bytes)
      ranges.back().bytes += kUnitBytes;
    else
      ranges.push_back({unit, kUnitBytes});
  }
  const Block &block = product.getBlock();
  for (const SharedRange &range : ranges)
    block.getSharedOffset(*product.thread, product.site,
                          block.cluster.shared + range.offset, range.bytes);
  return ranges;
}

/// The product is going to read the matrix, by the asynchronous proxy.
static Sanitizer::Copy issueRead(Product &product, SharedMatrix &matrix) {
  std::vector<SharedRange> ranges = getRanges(product, matrix);
  Unwritten unwritten;
  Sanitizer::Copy copy = product.getBlock().sanitizer.issueReads(
      *product.thread, product.site, ranges, Proxy::Async, unwritten);
  for (const Unwritten::Byte &byte : unwritten.bytes) {
    uint32_t address = ranges[byte.range].offset + byte.offset;
    for (size_t unit = 0; unit < matrix.units.size(); ++unit)
      if (address - matrix.units[unit] < kUnitBytes)
        matrix.poisonRow(unit, address - matrix.units[unit], unwritten.origin);
  }
  return copy;
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// The number of an element's code.
static double decodeElement(const TensorElement &element, uint32_t code) {
  // PTX ISA, "Alternate Floating-Point Data Formats": the low bits of a tf32
  // are not looked at.
  if (element.bits == 32)
    return floatFromBits(code & ~0x1fffu);
  if (element.format == &kBF16)
    return decodeBF16(code);
  if (element.format)
    return decode(*element.format, code);
  if (element.isSigned)
    return static_cast<int8_t>(code);
  return code;
}

/// The code of an element of the 16 bytes that it is in: 16 elements of less
/// than 8 bits take the beginning of those.
static uint32_t getCode(const TensorElement &element, const char *unit,
                        uint32_t index) {
  uint32_t first = index * element.bits;
  uint64_t word = 0;
  uint32_t byte = first / 8;
  std::memcpy(&word, unit + byte, std::min(kUnitBytes - byte, 4u));
  return word >> first % 8 & (~0ull >> (64 - element.bits));
}

namespace {
/// The rows of a matrix, as numbers.
using Numbers = std::vector<std::array<double, kRowBytes>>;
} // namespace

static Numbers readShared(const Block &block, const SharedMatrix &matrix) {
  const TensorElement &element = matrix.element;
  uint32_t perUnit = kUnitBytes * 8 / std::max(element.bits, 8u);
  uint32_t unitsOfLine = matrix.countUnitsOfLine();
  Numbers numbers(matrix.rows);
  for (size_t unit = 0; unit < matrix.units.size(); ++unit)
    for (uint32_t i = 0; i < perUnit; ++i) {
      double number = decodeElement(
          element,
          getCode(element, block.cluster.shared + matrix.units[unit], i));
      uint32_t line = unit / unitsOfLine;
      uint32_t place = unit % unitsOfLine * perUnit + i;
      uint32_t row = matrix.isTransposed ? place : line;
      uint32_t k = matrix.isTransposed ? line : place;
      // Of 8 rows of bytes, a unit has as many more.
      if (row < matrix.rows)
        numbers[row][k] = matrix.isNegated ? -number : number;
    }
  return numbers;
}

/// A in tensor memory: elements are packed from the low bits of words.
static Numbers readTensor(const Product &product, SharedMatrix &matrix) {
  TensorMemory &memory = product.getBlock().tensorMemory;
  uint32_t address = *product.tensorA, m = product.instruction.m;
  uint32_t perWord = 32 / matrix.element.bits;
  Numbers numbers(matrix.rows);
  for (uint32_t row = 0; row < m; ++row)
    for (uint32_t word = 0; word < kRowBytes / 4; ++word) {
      const TensorWord &read =
          memory.read(product.site, (address >> 16) + getLane(m, row),
                      (address & 0xffff) + word);
      if (read.poison && !matrix.origins[row])
        matrix.origins[row] = read.origin;
      for (uint32_t i = 0; i < perWord; ++i) {
        uint32_t code = read.value >> i * matrix.element.bits &
                        (~0ull >> (64 - matrix.element.bits));
        double number = decodeElement(matrix.element, code);
        numbers[row][word * perWord + i] = matrix.isNegated ? -number : number;
      }
    }
  return numbers;
}

/// NaN is the one that instructions make (PTX ISA, "Floating-Point
/// Instructions").
static uint32_t encodeResult(const TensorInstruction &instruction,
                             double value) {
  if (instruction.isInteger()) {
    using Limits = std::numeric_limits<int32_t>;
    auto sum = static_cast<int64_t>(value);
    return instruction.saturates
               ? std::clamp<int64_t>(sum, Limits::min(), Limits::max())
               : sum;
  }
  if (instruction.isHalf)
    return encode(kF16, value);
  return std::isnan(value) ? 0x7fffffff
                           : bitsOfFloat(static_cast<float>(value));
}

static double decodeResult(const TensorInstruction &instruction,
                           uint32_t word) {
  if (instruction.isInteger())
    return static_cast<int32_t>(word);
  return instruction.isHalf ? decodeF16(word) : floatFromBits(word);
}

//===----------------------------------------------------------------------===//
// Execution
//===----------------------------------------------------------------------===//

/// The sums of a row of D, of exact products; rounded once.
static void addProducts(const std::array<double, kRowBytes> &a,
                        const Numbers &b, uint32_t k,
                        std::array<double, kMostRows> &sums) {
  for (size_t n = 0; n < b.size(); ++n)
    for (uint32_t i = 0; i < k; ++i)
      sums[n] += a[i] * b[n][i];
}

static void multiply(Product &product) {
  Block &block = product.getBlock();
  TensorMemory &memory = block.tensorMemory;
  const TensorInstruction &instruction = product.instruction;
  Numbers a = product.tensorA ? readTensor(product, product.a)
                              : readShared(block, product.a);
  Numbers b = readShared(block, product.b);
  double scale = std::ldexp(1.0, -static_cast<int>(product.operands.scale));
  for (uint32_t row = 0; row < instruction.m; ++row) {
    uint32_t lane = (product.d >> 16) + getLane(instruction.m, row);
    if (product.operands.disabledLanes[lane / 32] >> lane % 32 & 1)
      continue;
    std::array<double, kMostRows> sums{};
    std::array<uint32_t, kMostRows> origins{};
    for (uint32_t n = 0; n < instruction.n; ++n) {
      origins[n] = product.a.origins[row] ? product.a.origins[row]
                                          : product.b.origins[n];
      if (!product.operands.accumulates)
        continue;
      const TensorWord &word =
          memory.read(product.site, lane, (product.d & 0xffff) + n);
      sums[n] = decodeResult(instruction, word.value) * scale;
      if (word.poison && !origins[n])
        origins[n] = word.origin;
    }
    addProducts(a[row], b, product.b.countK(), sums);
    for (uint32_t n = 0; n < instruction.n; ++n)
      memory.write(lane, (product.d & 0xffff) + n,
                   encodeResult(instruction, sums[n]), ~0u, origins[n]);
  }
}

/// What orders the product behind others, and others behind it.
static uint32_t touch(const Product &product) {
  TensorMemory &memory = product.getBlock().tensorMemory;
  const TensorInstruction &instruction = product.instruction;
  uint32_t number = memory.order.issue(*product.thread, TensorOp::Multiply);
  uint64_t accumulator = uint64_t{product.d} << 32 |
                         product.operands.kind << 20 | instruction.m << 10 |
                         instruction.n;
  memory.order.begin({product.site, TensorOp::Multiply,
                      product.getBlock().getNumber(*product.thread), number,
                      accumulator});
  if (product.tensorA)
    for (const TensorRegion &region :
         getRegions(*product.tensorA, instruction.m, kRowBytes / 4))
      memory.touch(region, /*isWrite=*/false);
  for (const TensorRegion &region :
       getRegions(product.d, instruction.m, instruction.n)) {
    if (product.operands.accumulates)
      memory.touch(region, /*isWrite=*/false);
    memory.touch(region, /*isWrite=*/true);
  }
  return number;
}

static void checkOperands(Product &product) {
  TensorInstruction &instruction = product.instruction;
  std::string wrong =
      decode(product.operands.instruction, product.operands.kind, instruction);
  if (!wrong.empty())
    product.fail("expects the instruction descriptor " + wrong);
  checkPlace(product, "D", product.d, instruction.n);
  product.a = {{},
               instruction.a,
               instruction.isTransposedA,
               instruction.isNegatedA,
               instruction.m,
               {},
               std::vector<uint32_t>(instruction.m)};
  product.b = {{},
               instruction.b,
               instruction.isTransposedB,
               instruction.isNegatedB,
               instruction.n,
               {},
               std::vector<uint32_t>(instruction.n)};
  if (!product.tensorA) {
    locate(product, "A", product.operands.a, product.a);
  } else {
    if (instruction.isTransposedA)
      product.fail("has A in tensor memory, which can't be transposed");
    if (instruction.a.bits < 8)
      product.fail(std::string("has A in tensor memory with elements of ") +
                   instruction.a.name + ", which the emulator doesn't know");
    checkPlace(product, "A", *product.tensorA, kRowBytes / 4);
  }
  locate(product, "B", product.operands.b, product.b);
}

void kvcacheEmulatorTmemMma(KVCacheThread *self, const KVCacheSite *site,
                            const void *d, const void *a,
                            const KVCacheTmemMma *operands) {
  auto toAddress = [](const void *pointer) {
    return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pointer));
  };
  auto product = std::make_shared<Product>();
  product->thread = &Thread::get(self);
  product->site = site;
  product->operands = *operands;
  product->d = toAddress(d);
  if (operands->isTensorA)
    product->tensorA = toAddress(a);
  checkOperands(*product);
  Block &block = product->getBlock();
  std::vector<Sanitizer::Copy> reads;
  if (!product->tensorA)
    reads.push_back(issueRead(*product, product->a));
  reads.push_back(issueRead(*product, product->b));
  uint32_t number = block.isSanitized() ? touch(*product) : 0;
  block.tensorMemory.issue(*product->thread, site, number, std::move(reads),
                           [product] { multiply(*product); });
}
