//===- TensorInstruction.h - Instruction descriptors ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_TENSORINSTRUCTION_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_TENSORINSTRUCTION_H

#include <cstdint>
#include <string>

namespace mlir::kvcache::emulator {

/// The bytes of K that one instruction multiplies, of each row, and the most
/// elements in those.
inline constexpr uint32_t kTensorRowBytes = 32, kMostTensorK = 64;

/// The elements of a matrix. Of formats with less than 8 bits, 16 elements take
/// 16 bytes, at the beginning of those, unless they are packed.
struct TensorElement {
  /// "e4m3".
  const char *name = nullptr;
  uint32_t bits = 0;
  /// The number of a code.
  double (*decode)(uint32_t) = nullptr;
  bool isPacked = false;

  uint32_t countPerUnit() const {
    return isPacked || bits >= 8 ? 128 / bits : 16;
  }
  /// The elements of K.
  uint32_t countK() const { return kTensorRowBytes / 16 * countPerUnit(); }
};

/// The fields of an instruction descriptor. PTX ISA, "Instruction descriptor".
struct TensorInstruction {
  uint32_t m = 0, n = 0;
  TensorElement a, b;
  /// D has integers if A has, else floats of 32 or 16 bits.
  bool isHalf = false;
  bool isNegatedA = false, isNegatedB = false;
  /// Whether M or N is contiguous, not K.
  bool isTransposedA = false, isTransposedB = false;
  bool saturates = false, isInteger = false;
  /// The bytes of the words that have block scales, and their format.
  uint32_t scaleA = 0, scaleB = 0;
  bool isScaleE8M0 = false;

  /// The blocks that multiply, each of which has its part of the rows of A.
  uint32_t numBlocks = 1;
  uint32_t getRowsOfBlock() const { return m / numBlocks; }
  /// Whether the upper half of the lanes has the second half of N ("Data Path
  /// Layout Organization", Layout B).
  bool isFolded() const { return numBlocks == 2 && m == 128; }
};

/// Decodes a descriptor for a kind of product (KVCacheTmemF16, ...), of a pair
/// of blocks, and with block scales for so many elements each, if those are not
/// 0. Returns what is wrong with it, or an empty text.
std::string decode(uint32_t bits, uint32_t kind, bool isOfPair,
                   uint32_t blockSize, TensorInstruction &result);

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_TENSORINSTRUCTION_H
