//===- TensorProducts.cpp - Products in tensor memory ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Block.h"
#include "Elements.h"
#include "Grid.h"
#include "TensorOperands.h"
#include "TensorScales.h"

#include <array>
#include <cmath>
#include <memory>
#include <optional>

using namespace mlir::kvcache;
using namespace mlir::kvcache::emulator;

namespace {
/// The operands of one block of a product: rows of A and their part of D, some
/// columns of B, and scales of its rows and of all columns.
struct Part {
  Block *block = nullptr;
  SharedMatrix a, b;
  TensorScales scalesA, scalesB;
};

/// A product that a thread has issued.
struct Product {
  Thread *thread;
  const KVCacheSite *site;
  KVCacheTmemMma operands;
  TensorInstruction instruction;
  uint32_t d;
  std::optional<uint32_t> tensorA;
  std::vector<Part> parts;

  [[noreturn]] void fail(const std::string &message) const {
    thread->block->fail(*thread, site, message);
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// The parts of D side by side, one below the other: 2 where the upper lanes
/// have the second half of N.
static uint32_t countHalves(const TensorInstruction &instruction) {
  return instruction.isFolded() ? 2 : 1;
}

/// The lane of a row of D, or of A, from the first one on. PTX ISA, "Data Path
/// Layout Organization".
static uint32_t getLane(const TensorInstruction &instruction, uint32_t row,
                        uint32_t half) {
  constexpr uint32_t half64 = 64, quarterRows = 16;
  if (instruction.isFolded())
    return row + half * half64;
  return instruction.m == half64
             ? row % quarterRows +
                   row / quarterRows * TensorMemory::kLanesOfQuarter
             : row;
}

/// The regions of a block with its rows at an address.
static std::vector<TensorRegion>
getRegions(const TensorInstruction &instruction, uint32_t address,
           uint32_t columns) {
  uint32_t lane = address >> 16, column = address & 0xffff;
  constexpr uint32_t step = 16;
  std::vector<TensorRegion> regions;
  for (uint32_t half = 0; half < countHalves(instruction); ++half)
    for (uint32_t row = 0; row < instruction.getRowsOfBlock(); row += step)
      regions.push_back(
          {lane + getLane(instruction, row, half), column, step, columns});
  return regions;
}

static uint32_t countColumnsOfD(const TensorInstruction &instruction) {
  return instruction.n / countHalves(instruction);
}

static void checkPlace(const Product &product, const char *operand,
                       uint32_t address, uint32_t columns) {
  uint32_t m = product.instruction.m, lane = address >> 16;
  constexpr uint32_t least = 64, step = 16;
  if (lane != 0 && !(m == least && lane == step))
    product.fail(std::string("expects ") + operand + " of " +
                 std::to_string(m) + " rows to begin at lane 0" +
                 (m == least ? " or 16" : "") + ", got " +
                 TensorMemory::describe(address));
  for (const Part &part : product.parts)
    for (const TensorRegion &region :
         getRegions(product.instruction, address, columns))
      part.block->tensorMemory.check(*product.thread, product.site, region);
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// A in tensor memory: elements are packed from the low bits of words. Where D
/// is folded, each half of the lanes multiplies with its own copy.
static TensorFactor readTensorA(const Product &product, const Part &part,
                                uint32_t half) {
  const TensorInstruction &instruction = product.instruction;
  const TensorElement &element = part.a.element;
  uint32_t address = *product.tensorA, perWord = 32 / element.bits;
  TensorFactor factor(part.a.rows);
  for (uint32_t row = 0; row < part.a.rows; ++row)
    for (uint32_t word = 0; word < kTensorRowBytes / 4; ++word) {
      const TensorWord &read = part.block->tensorMemory.read(
          product.site, (address >> 16) + getLane(instruction, row, half),
          (address & 0xffff) + word);
      if (read.poison && !factor.origins[row])
        factor.origins[row] = read.origin;
      for (uint32_t i = 0; i < perWord; ++i) {
        uint32_t code =
            read.value >> i * element.bits & (~0ull >> (64 - element.bits));
        double number = element.decode(code);
        factor.numbers[row][word * perWord + i] =
            part.a.isNegated ? -number : number;
      }
    }
  return factor;
}

static TensorFactor readA(const Product &product, const Part &part,
                          uint32_t half) {
  if (product.tensorA)
    return readTensorA(product, part, half);
  TensorFactor factor(part.a.rows);
  factor.read(part.a);
  return factor;
}

static uint32_t encodeResult(const TensorInstruction &instruction,
                             double value) {
  if (instruction.isInteger)
    return encodeS32(static_cast<int64_t>(value), instruction.saturates);
  return instruction.isHalf ? encodeF16(value) : encodeF32(value);
}

static double decodeResult(const TensorInstruction &instruction,
                           uint32_t word) {
  if (instruction.isInteger)
    return static_cast<int32_t>(word);
  return instruction.isHalf ? decodeF16(word) : floatFromBits(word);
}

//===----------------------------------------------------------------------===//
// Execution
//===----------------------------------------------------------------------===//

namespace {
/// A row of D in one block, of which half of N may be in another lane.
struct Row {
  uint32_t lane, half;
  const std::array<double, kMostTensorK> &a;
  uint32_t origin;
  TensorScales::Row scales;
};
} // namespace

/// The sum of products of exact numbers, each block of K with its scales.
static double addProducts(const Product &product, const Row &row,
                          const std::array<double, kMostTensorK> &b,
                          const TensorScales::Row &scales) {
  uint32_t k = product.instruction.a.countK();
  uint32_t blockSize = product.operands.blockSize;
  if (blockSize == 0)
    blockSize = k;
  double sum = 0;
  for (uint32_t block = 0; block < k / blockSize; ++block) {
    double blockSum = 0;
    for (uint32_t i = block * blockSize; i < (block + 1) * blockSize; ++i)
      blockSum += row.a[i] * b[i];
    sum += blockSum * row.scales.values[block] * scales.values[block];
  }
  return sum;
}

/// Rounds each element once.
static void multiplyRow(const Product &product, const Part &part,
                        const Row &row, const TensorFactor &b,
                        const std::vector<TensorScales::Row> &scalesB) {
  TensorMemory &memory = part.block->tensorMemory;
  const TensorInstruction &instruction = product.instruction;
  uint32_t columns = countColumnsOfD(instruction);
  double scale = std::ldexp(1.0, -static_cast<int>(product.operands.scale));
  for (uint32_t i = 0; i < columns; ++i) {
    uint32_t n = row.half * columns + i, column = (product.d & 0xffff) + i;
    uint32_t origin = row.origin;
    for (uint32_t other : {row.scales.origin, b.origins[n], scalesB[i].origin})
      if (!origin)
        origin = other;
    double sum = addProducts(product, row, b.numbers[n], scalesB[i]);
    if (product.operands.accumulates) {
      const TensorWord &word = memory.read(product.site, row.lane, column);
      sum += decodeResult(instruction, word.value) * scale;
      if (word.poison && !origin)
        origin = word.origin;
    }
    memory.write(row.lane, column, encodeResult(instruction, sum), ~0u, origin);
  }
}

/// The scales of the columns of B that a quarter of the lanes multiplies.
static std::vector<TensorScales::Row>
readScalesB(const Product &product, const Part &part, uint32_t quarter) {
  std::vector<TensorScales::Row> scales;
  for (uint32_t i = 0; i < countColumnsOfD(product.instruction); ++i)
    scales.push_back(part.scalesB.read(product.site, quarter, i));
  return scales;
}

static void multiplyPart(const Product &product, const Part &part,
                         const TensorFactor &b) {
  const TensorInstruction &instruction = product.instruction;
  uint32_t first = product.d >> 16;
  for (uint32_t half = 0; half < countHalves(instruction); ++half) {
    TensorFactor a = readA(product, part, half);
    std::vector<TensorScales::Row> scalesB;
    uint32_t quarterOfB = ~0u;
    for (uint32_t row = 0; row < part.a.rows; ++row) {
      uint32_t lane = first + getLane(instruction, row, half);
      uint32_t quarter = lane / TensorMemory::kLanesOfQuarter;
      if (product.operands.disabledLanes[quarter] >>
              lane % TensorMemory::kLanesOfQuarter &
          1)
        continue;
      if (quarter != quarterOfB)
        scalesB = readScalesB(product, part, quarterOfB = quarter);
      multiplyRow(product, part,
                  {lane, half, a.numbers[row], a.origins[row],
                   part.scalesA.read(product.site, quarter, row)},
                  b, scalesB);
    }
  }
}

static void multiply(const Product &product) {
  TensorFactor b(product.instruction.n);
  uint32_t first = 0;
  for (const Part &part : product.parts) {
    b.read(part.b, first);
    first += part.b.rows;
  }
  for (const Part &part : product.parts)
    multiplyPart(product, part, b);
}

//===----------------------------------------------------------------------===//
// Issue
//===----------------------------------------------------------------------===//

/// Touches the accumulators, which orders the product with others.
static uint32_t touch(const Product &product) {
  const TensorInstruction &instruction = product.instruction;
  TensorOrder &order = product.thread->block->cluster.tensorOrder;
  uint32_t number = order.issue(*product.thread, TensorOp::Multiply);
  uint64_t accumulator = uint64_t{product.d} << 32 |
                         product.operands.kind << 20 | instruction.m << 10 |
                         instruction.n;
  order.begin({product.site, TensorOp::Multiply, product.thread->index, number,
               accumulator});
  for (const Part &part : product.parts) {
    TensorMemory &memory = part.block->tensorMemory;
    if (product.tensorA)
      for (const TensorRegion &region :
           getRegions(instruction, *product.tensorA, kTensorRowBytes / 4))
        memory.touch(region, /*isWrite=*/false);
    if (product.operands.blockSize) {
      part.scalesA.touch();
      part.scalesB.touch();
    }
    for (const TensorRegion &region :
         getRegions(instruction, product.d, countColumnsOfD(instruction))) {
      if (product.operands.accumulates)
        memory.touch(region, /*isWrite=*/false);
      memory.touch(region, /*isWrite=*/true);
    }
  }
  return number;
}

static void checkTensorA(const Product &product) {
  const TensorElement &element = product.instruction.a;
  constexpr uint32_t byte = 8;
  if (product.instruction.isTransposedA)
    product.fail("has A in tensor memory, which cannot be transposed");
  if (element.bits < byte && !element.isPacked)
    product.fail(std::string("has A in tensor memory with elements of ") +
                 element.name + ", which the emulator does not support");
  checkPlace(product, "A", *product.tensorA, kTensorRowBytes / 4);
}

static void locateScales(const Product &product, Part &part) {
  const TensorInstruction &instruction = product.instruction;
  const KVCacheTmemMma &operands = product.operands;
  if (!operands.blockSize)
    return;
  uint32_t count = instruction.a.countK() / operands.blockSize;
  part.scalesA = {
      part.block,         operands.scaleA, instruction.getRowsOfBlock(),
      instruction.scaleA, count,           instruction.isScaleE8M0};
  part.scalesB = {
      part.block,         operands.scaleB, countColumnsOfD(instruction),
      instruction.scaleB, count,           instruction.isScaleE8M0};
  part.scalesA.check(*product.thread, product.site, "A");
  part.scalesB.check(*product.thread, product.site, "B");
}

static void locateMatrices(const Product &product, Part &part) {
  const TensorInstruction &instruction = product.instruction;
  part.a.block = part.b.block = part.block;
  part.a.element = instruction.a;
  part.b.element = instruction.b;
  part.a.isTransposed = instruction.isTransposedA;
  part.b.isTransposed = instruction.isTransposedB;
  part.a.isNegated = instruction.isNegatedA;
  part.b.isNegated = instruction.isNegatedB;
  part.a.rows = instruction.getRowsOfBlock();
  part.b.rows = instruction.n / instruction.numBlocks;
  if (!product.tensorA)
    part.a.locate(*product.thread, product.site, "A", product.operands.a);
  part.b.locate(*product.thread, product.site, "B", product.operands.b);
}

static void checkOperands(Product &product) {
  const KVCacheTmemMma &operands = product.operands;
  std::string wrong =
      decode(operands.instruction, operands.kind, operands.isOfPair,
             operands.blockSize, product.instruction);
  if (!wrong.empty())
    product.fail("expects the instruction descriptor " + wrong);
  for (Block *block : product.thread->block->getGroup(
           *product.thread, product.site, operands.isOfPair))
    product.parts.emplace_back().block = block;
  checkPlace(product, "D", product.d, countColumnsOfD(product.instruction));
  if (product.tensorA)
    checkTensorA(product);
  for (Part &part : product.parts) {
    locateScales(product, part);
    locateMatrices(product, part);
  }
}

void kvcacheEmulatorTmemMma(KVCacheThread *self, const KVCacheSite *site,
                            const void *d, const void *a,
                            const KVCacheTmemMma *operands) {
  auto product = std::make_shared<Product>();
  product->thread = &Thread::get(self);
  product->site = site;
  product->operands = *operands;
  product->d = TensorMemory::toAddress(d);
  if (operands->isTensorA)
    product->tensorA = TensorMemory::toAddress(a);
  checkOperands(*product);
  Thread &thread = *product->thread;
  TensorWork work{&thread, site};
  int64_t sharedBytes = 0;
  for (Part &part : product->parts) {
    if (!product->tensorA)
      sharedBytes += part.a.countBytes();
    sharedBytes += part.b.countBytes();
    work.blocks.push_back(part.block);
    if (!product->tensorA)
      work.reads.push_back(part.a.issueRead(thread, site));
    work.reads.push_back(part.b.issueRead(thread, site));
  }
  const TensorInstruction &form = product->instruction;
  thread.block->meter.multiply(ProductKind::TensorMemory, form.m, form.n,
                               form.a.countK(), sharedBytes);
  work.number = thread.block->isSanitized() ? touch(*product) : 0;
  work.run = [product] { multiply(*product); };
  thread.block->cluster.tensorQueue.issue(std::move(work));
}
