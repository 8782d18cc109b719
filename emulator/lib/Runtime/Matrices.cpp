//===- Matrices.cpp - Matrices between memory and registers ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Grid.h"
#include "MatrixRegisters.h"

#include <algorithm>
#include <cstring>

using namespace mlir::kvcache;
using namespace mlir::kvcache::emulator;

namespace {
/// Bytes of a row, whatever its elements are.
constexpr uint32_t kRowBytes = 16;

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

/// The bits of an element that becomes a byte of a register.
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

namespace {

/// Bytes of a register.
struct RegisterBytes {
  uint32_t begin, end;
};

/// One ldmatrix or stmatrix of a warp.
class MatrixAccess {
public:
  MatrixAccess(MatrixWarp &warp, const KVCacheMatrixInstruction &what)
      : block(warp.block), threads(warp.threads), registers(warp.registers),
        what(what), isLoad(what.kind == KVCacheMatrixLoad),
        shape(getShape(what.layout, !isLoad)),
        numbers(isLoad ? what.d : what.a) {
    for (uint32_t lane = 0; lane < what.count * shape.rows; ++lane)
      rows[lane] = registers.getAddress(what.row, lane);
  }

  void load();
  void store();

private:
  uint32_t numRegisters() const { return what.count * shape.registers; }
  BytePlace getPlace(uint32_t lane, uint32_t reg, uint32_t byte) const {
    BytePlace place = shape.getPlace(lane, reg % shape.registers, byte);
    place.row += reg / shape.registers * shape.rows;
    return place;
  }

  void check(uint32_t flags);
  bool readsRows(const uint32_t (&offsets)[kWarpSize]);
  void checkRegister(uint32_t lane, uint32_t reg, uint32_t flags);
  void notePoison(uint32_t lane, uint32_t reg, RegisterBytes bytes,
                  uint32_t numRead, const Poison &read);
  uint32_t getStoredOrigin(uint32_t lane) const;
  const char *getRewritten(uint32_t lane, uint32_t reg, uint32_t byte,
                           SharedRange range) const;
  void definePoison();
  void loadRows();
  void loadColumns();
  void loadBytes();

  Block &block;
  Thread *const (&threads)[kWarpSize];
  MatrixRegisters &registers;
  const KVCacheMatrixInstruction &what;
  bool isLoad;
  MatrixShape shape;
  const uint32_t *numbers;
  char *rows[kWarpSize];
  /// The origins of what lanes load, if anything of it is poisoned.
  uint32_t origins[kWarpSize];
  bool isPoisoned = false;
};

} // namespace

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// Checks and counts the rows, of which each lane gives the address of one.
void MatrixAccess::check(uint32_t flags) {
  constexpr uint32_t rowsAtOnce = 8;
  uint32_t offsets[kWarpSize], numRows = what.count * shape.rows;
  for (uint32_t lane = 0; lane < numRows; ++lane) {
    block.checkAlignment(*threads[lane], what.site, rows[lane], kRowBytes);
    offsets[lane] =
        block.getSharedOffset(*threads[lane], what.site, rows[lane], kRowBytes);
  }
  for (uint32_t lane = 0; lane < numRows; ++lane)
    block.meter.accessMatrixRow(*threads[lane], what.site, lane / rowsAtOnce,
                                offsets[lane], flags);
  if (!block.isSanitized())
    return;
  if (isLoad)
    definePoison();
  if (readsRows(offsets))
    return;
  for (uint32_t lane = 0; lane < kWarpSize; ++lane)
    for (uint32_t reg = 0; reg < numRegisters(); ++reg)
      checkRegister(lane, reg, flags);
  if (!isPoisoned)
    return;
  for (uint32_t reg = 0; reg < numRegisters(); ++reg) {
    registers.define(numbers[reg], /*mayBePoisoned=*/true);
    std::copy_n(origins, kWarpSize, registers.getOrigins(numbers[reg]));
  }
}

/// Checks and notes the reads of whole rows. False if that has to be done lane
/// by lane.
bool MatrixAccess::readsRows(const uint32_t (&offsets)[kWarpSize]) {
  bool isTransposed = what.layout == KVCacheMatrixB16Transposed;
  if (!isLoad || (what.layout != KVCacheMatrixB16 && !isTransposed))
    return false;
  Sanitizer &sanitizer = block.sanitizer;
  uint32_t reads = sanitizer.beginRows(*threads[0]);
  for (uint32_t row = 0; row < what.count * shape.rows; ++row)
    if (!sanitizer.readRow(*threads[0], reads, what.site, offsets[row],
                           RowReads::encode(row, isTransposed)))
      return false;
  return true;
}

/// Nothing is poisoned that is going to be loaded, as far as is known.
void MatrixAccess::definePoison() {
  for (uint32_t reg = 0; reg < numRegisters(); ++reg)
    registers.define(numbers[reg], /*mayBePoisoned=*/false);
}

/// Some bytes of a register are from `numRead` bytes of memory, not all of
/// which are initialized. Elements of less than a byte share theirs.
void MatrixAccess::notePoison(uint32_t lane, uint32_t reg, RegisterBytes bytes,
                              uint32_t numRead, const Poison &read) {
  bool isByByte = numRead == bytes.end - bytes.begin;
  for (uint32_t byte = bytes.begin; byte < bytes.end; ++byte)
    if (!isByByte || read.mask >> (byte - bytes.begin) & 1)
      registers.getPoison(numbers[reg])[lane] |= 0xffu << byte * 8;
  if (!isPoisoned)
    std::fill_n(origins, kWarpSize, 0);
  isPoisoned = true;
  origins[lane] = read.origin;
}

/// Notes the bytes of rows that a lane's register is made of, in pieces that
/// are in one row. Others must be ordered with that lane, not with the one that
/// gave the address.
void MatrixAccess::checkRegister(uint32_t lane, uint32_t reg, uint32_t flags) {
  uint32_t bits = getElementBits(what.layout);
  for (uint32_t byte = 0; byte < 4;) {
    BytePlace first = getPlace(lane, reg, byte);
    uint32_t end = byte + 1;
    for (; end < 4; ++end) {
      BytePlace next = getPlace(lane, reg, end);
      if (next.row != first.row || next.column != first.column + end - byte)
        break;
    }
    uint32_t begin = first.column * bits / 8;
    uint32_t last = ((first.column + end - byte) * bits - 1) / 8;
    auto offset =
        static_cast<uint32_t>(rows[first.row] + begin - block.cluster.shared);
    SharedRange range{offset, last - begin + 1};
    Poison read =
        block.sanitizer.access(*threads[lane], what.site, range, flags,
                               getRewritten(lane, reg, byte, range));
    if (read.origin)
      notePoison(lane, reg, {byte, end}, range.bytes, read);
    if (!isLoad && registers.isPoisoned(numbers[reg]))
      block.sanitizer.poisonShared(
          range,
          reinterpret_cast<const char *>(
              &registers.getPoison(numbers[reg])[lane]) +
              byte,
          getStoredOrigin(lane));
    byte = end;
  }
}

/// The bytes of a range that a store leaves as they are, if it may; else null.
const char *MatrixAccess::getRewritten(uint32_t lane, uint32_t reg,
                                       uint32_t byte, SharedRange range) const {
  if (isLoad || !block.cluster.mayRewrite())
    return nullptr;
  const char *there = block.cluster.shared + range.offset;
  const auto *stored =
      reinterpret_cast<const char *>(&registers.get(numbers[reg])[lane]) + byte;
  return std::memcmp(there, stored, range.bytes) == 0 ? there : nullptr;
}

/// The origin of the last poisoned register.
uint32_t MatrixAccess::getStoredOrigin(uint32_t lane) const {
  uint32_t origin = 0;
  for (uint32_t reg = 0; reg < numRegisters(); ++reg)
    if (registers.isPoisoned(numbers[reg]) &&
        registers.getPoison(numbers[reg])[lane])
      origin = registers.getOrigins(numbers[reg])[lane];
  return origin;
}

//===----------------------------------------------------------------------===//
// Data
//===----------------------------------------------------------------------===//

/// Registers that are four bytes of a row, as in most kernels.
void MatrixAccess::loadRows() {
  for (uint32_t reg = 0; reg < what.count; ++reg) {
    auto *to = reinterpret_cast<char *>(registers.get(numbers[reg]));
    for (uint32_t row = 0; row < 8; ++row)
      std::memcpy(to + row * kRowBytes, rows[reg * 8 + row], kRowBytes);
  }
}

/// Loads transposed matrices: the halves of a register are in two rows.
void MatrixAccess::loadColumns() {
  for (uint32_t reg = 0; reg < what.count; ++reg) {
    uint16_t from[8][8], to[8][8];
    for (uint32_t row = 0; row < 8; ++row)
      std::memcpy(from[row], rows[reg * 8 + row], kRowBytes);
    for (uint32_t row = 0; row < 8; ++row)
      for (uint32_t column = 0; column < 8; ++column)
        to[column][row] = from[row][column];
    std::memcpy(registers.get(numbers[reg]), to, sizeof(to));
  }
}

void MatrixAccess::loadBytes() {
  for (uint32_t reg = 0; reg < numRegisters(); ++reg) {
    MatrixRegisters::Words words = registers.get(numbers[reg]);
    for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
      words[lane] = 0;
      for (uint32_t byte = 0; byte < 4; ++byte) {
        auto [row, column] = getPlace(lane, reg, byte);
        uint32_t value = loadByte(rows[row], column, what.layout);
        words[lane] |= value << byte * 8;
      }
    }
  }
}

void MatrixAccess::load() {
  check(KVCacheAccessRead | KVCacheAccessPoisons);
  if (what.layout == KVCacheMatrixB16)
    loadRows();
  else if (what.layout == KVCacheMatrixB16Transposed)
    loadColumns();
  else
    loadBytes();
}

void MatrixAccess::store() {
  check(KVCacheAccessWrite);
  for (uint32_t reg = 0; reg < numRegisters(); ++reg)
    for (uint32_t lane = 0; lane < kWarpSize; ++lane)
      for (uint32_t byte = 0; byte < 4; ++byte) {
        auto [row, column] = getPlace(lane, reg, byte);
        rows[row][column] = registers.get(numbers[reg])[lane] >> byte * 8;
      }
}

void emulator::loadMatrices(MatrixWarp &warp,
                            const KVCacheMatrixInstruction &load) {
  MatrixAccess(warp, load).load();
}

void emulator::storeMatrices(MatrixWarp &warp,
                             const KVCacheMatrixInstruction &store) {
  MatrixAccess(warp, store).store();
}
