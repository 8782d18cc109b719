//===- TensorInstruction.h - Instruction descriptors ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_TENSORINSTRUCTION_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_TENSORINSTRUCTION_H

#include "Formats.h"

#include <cstdint>
#include <string>

namespace mlir::kvcache::emulator {

/// The elements of a matrix. Of formats with less than 8 bits, 16 elements take
/// 16 bytes, at the beginning of those, unless they are packed.
struct TensorElement {
  /// "e4m3".
  const char *name = nullptr;
  uint32_t bits = 0;
  /// Null for an integer, which may have a sign.
  const FloatFormat *format = nullptr;
  bool isSigned = false;
};

/// What an instruction descriptor says of a product. PTX ISA, "Instruction
/// descriptor".
struct TensorInstruction {
  uint32_t m = 0, n = 0;
  TensorElement a, b;
  /// D has integers if A has, else floats of 32 or 16 bits.
  bool isHalf = false;
  bool isNegatedA = false, isNegatedB = false;
  /// Whether M or N is contiguous, not K.
  bool isTransposedA = false, isTransposedB = false;
  bool saturates = false;

  bool isInteger() const { return !a.format; }
};

/// Decodes a descriptor for a kind of product (KVCacheTmemF16, ...) of one
/// block. Returns what is wrong with it, or an empty text.
std::string decode(uint32_t bits, uint32_t kind, TensorInstruction &result);

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_TENSORINSTRUCTION_H
