//===- TensorOperands.cpp - Matrices of tcgen05 ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorOperands.h"
#include "Block.h"

#include <algorithm>
#include <cstring>

using namespace mlir::kvcache;
using namespace mlir::kvcache::emulator;

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

static tma::MatrixDescriptor
decodeDescriptor(const Thread &thread, const KVCacheSite *site,
                 const char *operand, uint64_t bits, bool needsWideUnits) {
  auto fail = [&](const std::string &what) {
    thread.block->fail(thread, site,
                       std::string("has a descriptor of ") + operand + what);
  };
  auto descriptor = tma::decodeMatrix(bits, tma::MatrixFormat::TCGen05);
  if (!descriptor)
    fail(" with reserved bits or a swizzle that tcgen05 doesn't have, or with "
         "an absolute leading offset");
  if (descriptor->baseOffset != 0)
    fail(" with a base offset, which the emulator does not support");
  // PTX ISA, "Canonical Layouts".
  if (descriptor->hasWideUnits != needsWideUnits)
    fail(needsWideUnits
             ? " that is transposed, of 32-bit elements, and has another "
               "swizzle than that of 128 bytes with units of 32"
             : " with the swizzle of units of 32 bytes, which is for "
               "transposed matrices of 32-bit elements");
  return *descriptor;
}

void SharedMatrix::locate(const Thread &thread, const KVCacheSite *site,
                          const char *operand, uint64_t bits) {
  tma::MatrixDescriptor descriptor =
      decodeDescriptor(thread, site, operand, bits,
                       /*needsWideUnits=*/isTransposed && element.bits == 32);
  uint32_t bytes = std::max(element.bits / 8, 1u);
  for (uint32_t line = 0; line < countLines(); ++line)
    for (uint32_t byte = 0; byte < getLineBytes(); byte += kUnitBytes) {
      uint32_t across = byte / bytes;
      uint32_t address =
          isTransposed
              ? descriptor.getAddress(tma::Major::MN, bytes, across, line)
              : descriptor.getAddress(tma::Major::K, bytes, line, across);
      units.push_back(block->getSharedOffset(
          thread, site, block->shared + address, kUnitBytes));
    }
}

const char *SharedMatrix::getUnit(size_t unit) const {
  return block->cluster.shared + units[unit];
}

Sanitizer::Copy SharedMatrix::issueRead(Thread &thread,
                                        const KVCacheSite *site) {
  return block->sanitizer.issueUnitReads({&thread}, site, units, unwritten,
                                         origin);
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// The code of an element of the 16 bytes that it is in: 16 elements of less
/// than 8 bits take the beginning of those, unless they are packed.
static uint32_t getCode(const TensorElement &element, const char *unit,
                        uint32_t index) {
  uint32_t first = index * element.bits;
  uint64_t word = 0;
  uint32_t byte = first / 8;
  std::memcpy(&word, unit + byte,
              std::min(SharedMatrix::kUnitBytes - byte, 4u));
  return word >> first % 8 & (~0ull >> (64 - element.bits));
}

void TensorFactor::read(const SharedMatrix &matrix, uint32_t first) {
  const TensorElement &element = matrix.element;
  uint32_t perUnit = element.countPerUnit();
  uint32_t unitsOfLine = matrix.countUnitsOfLine();
  for (size_t unit = 0; unit < matrix.units.size(); ++unit)
    for (uint32_t i = 0; i < perUnit; ++i) {
      uint32_t line = unit / unitsOfLine;
      uint32_t place = unit % unitsOfLine * perUnit + i;
      uint32_t row = matrix.isTransposed ? place : line;
      uint32_t k = matrix.isTransposed ? line : place;
      // Of 8 rows of bytes, a unit has as many more.
      if (row >= matrix.rows)
        continue;
      double number = element.decode(getCode(element, matrix.getUnit(unit), i));
      numbers[first + row][k] = matrix.isNegated ? -number : number;
      uint32_t byte = i * SharedMatrix::kUnitBytes / perUnit;
      if (!matrix.unwritten.empty() && matrix.unwritten[unit] >> byte & 1)
        origins[first + row] = matrix.origin;
    }
}
