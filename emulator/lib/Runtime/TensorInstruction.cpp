//===- TensorInstruction.cpp - Instruction descriptors --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorInstruction.h"
#include "Elements.h"
#include "kvcache/Emulator/TensorMemory.h"

using namespace mlir::kvcache;
using namespace mlir::kvcache::emulator;

/// Kinds that have the same elements, as descriptors encode them.
static bool isPacked(uint32_t kind) {
  return kind == KVCacheTmemMXF4 || kind == KVCacheTmemMXF4NVF4;
}
static bool isScaled(uint32_t kind) { return kind >= KVCacheTmemMXF8F6F4; }

template <auto decode> static double toNumber(uint32_t bits) {
  return decode(bits);
}

/// Elements by their codes, of which some stand for none.
static TensorElement getElement(uint32_t kind, uint32_t code) {
  static const TensorElement none;
  static const TensorElement elements[5][6] = {
      {{"f16", 16, fromF16}, {"bf16", 16, fromBF16}},
      {{}, {}, {"tf32", 32, fromTF32}},
      {{"e4m3", 8, fromE4M3},
       {"e5m2", 8, fromE5M2},
       {},
       {"e2m3", 6, fromNarrow<kE2M3>},
       {"e3m2", 6, fromNarrow<kE3M2>},
       {"e2m1", 4, fromNarrow<kE2M1>}},
      {{"u8", 8, toNumber<fromUnsigned>}, {"s8", 8, toNumber<fromS8>}},
      {{}, {"e2m1", 4, fromNarrow<kE2M1>, /*isPacked=*/true}}};
  uint32_t row = isPacked(kind)                ? 4
                 : kind == KVCacheTmemMXF8F6F4 ? uint32_t{KVCacheTmemF8F6F4}
                                               : kind;
  return code < 6 ? elements[row][code] : none;
}

static const char *getName(uint32_t kind) {
  static const char *const names[] = {"f16",      "tf32", "f8f6f4",  "i8",
                                      "mxf8f6f4", "mxf4", "mxf4nvf4"};
  return names[kind];
}

namespace {
/// The fields of a descriptor.
struct Fields {
  uint32_t bits;

  uint32_t get(unsigned first, unsigned count) const {
    return bits >> first & ((1u << count) - 1);
  }
};
/// A field that has one value.
struct Reserved {
  unsigned first, count;
  const char *what;
};
} // namespace

template <size_t count>
static std::string check(const Fields &fields,
                         const Reserved (&reserved)[count]) {
  for (const Reserved &one : reserved)
    if (uint32_t value = fields.get(one.first, one.count))
      return std::string("to have 0 for ") + one.what + ", got " +
             std::to_string(value);
  return "";
}

/// Fields that have one value for a product of a dense matrix.
static std::string checkReserved(const Fields &fields, uint32_t kind) {
  static const Reserved reserved[] = {{0, 2, "the sparsity selector"},
                                      {2, 1, "sparsity"},
                                      {6, 1, "bit 6, which is reserved"}};
  static const Reserved reservedPlain[] = {{23, 1, "bit 23, which is reserved"},
                                           {29, 1, "bit 29, which is reserved"},
                                           {30, 2, "the maximum shift"}};
  static const Reserved reservedScaled[] = {
      {3, 1, "bit 3, which is reserved"},
      {31, 1, "the size of K, because the emulator does not support 96"}};
  if (std::string wrong = check(fields, reserved); !wrong.empty())
    return wrong;
  if (isScaled(kind))
    return check(fields, reservedScaled);
  if (std::string wrong = check(fields, reservedPlain); !wrong.empty())
    return wrong;
  bool isInteger = kind == KVCacheTmemI8;
  if (!isInteger && fields.get(3, 1))
    return "not to saturate, which only kind i8 does";
  if (isInteger && fields.get(13, 2))
    return "not to negate a matrix of integers";
  return "";
}

/// "Data types": kinds with floats have f32, or f16 where A has 16 bits or
/// less. Those with block scales have f32.
static std::string checkResult(uint32_t kind, uint32_t code) {
  bool isRight = kind == KVCacheTmemI8     ? code == 2
                 : kind == KVCacheTmemTF32 ? code == 1
                                           : code <= 1;
  if (isRight || isScaled(kind))
    return "";
  return std::string("to have a type of D that kind ") + getName(kind) +
         " has, got code " + std::to_string(code);
}

static std::string decodeElements(const Fields &fields, uint32_t kind,
                                  TensorInstruction &result) {
  result.a = getElement(kind, fields.get(7, 3));
  result.b = getElement(kind, fields.get(10, 3));
  for (auto [element, first] :
       {std::pair(&result.a, 7), std::pair(&result.b, 10)})
    if (!element->name)
      return std::string("to have types of A and B that kind ") +
             getName(kind) + " has, got code " +
             std::to_string(fields.get(first, 3));
  if (kind == KVCacheTmemF16 && result.a.decode != result.b.decode)
    return "to have the same type of A and B for kind f16";
  result.saturates = kind == KVCacheTmemI8 && fields.get(3, 1);
  result.isInteger = kind == KVCacheTmemI8;
  result.isNegatedA = fields.get(13, 1);
  result.isNegatedB = fields.get(14, 1);
  result.isTransposedA = fields.get(15, 1);
  result.isTransposedB = fields.get(16, 1);
  constexpr uint32_t byte = 8;
  for (auto [element, isTransposed] :
       {std::pair(&result.a, result.isTransposedA),
        std::pair(&result.b, result.isTransposedB)})
    if (isTransposed && element->bits < byte)
      return std::string("not to transpose a matrix of ") + element->name;
  return "";
}

/// "Scale Factor A ID": the bytes of a row lie at a multiple of their number.
/// "Valid combinations of scale_vectorsize with types and MMA-Kind".
static std::string decodeScales(const Fields &fields, uint32_t kind,
                                uint32_t blockSize, TensorInstruction &result) {
  result.scaleA = fields.get(29, 2);
  result.scaleB = fields.get(4, 2);
  result.isScaleE8M0 = fields.get(23, 1);
  uint32_t count = result.a.countK() / blockSize;
  for (auto [id, operand] :
       {std::pair(result.scaleA, 'A'), std::pair(result.scaleB, 'B')})
    if (id % count != 0)
      return std::string("to have a scale id of ") + operand +
             " that is a multiple of " + std::to_string(count) +
             ", the number of scales of a row, got " + std::to_string(id);
  if (!result.isScaleE8M0 && blockSize != 16)
    return std::string("to have scales of format ue8m0 for kind ") +
           getName(kind) + " with blocks of " + std::to_string(blockSize) +
           ", got ue4m3";
  return "";
}

/// "Matrix shape".
static std::string checkShape(const TensorInstruction &result, uint32_t kind) {
  bool isPair = result.numBlocks == 2;
  uint32_t least = isPair || isScaled(kind) ? 128 : 64;
  uint32_t most = isPair ? 256 : 128;
  if (result.m != least && result.m != most)
    return "to have an M of " + std::to_string(least) +
           (least == most ? "" : " or " + std::to_string(most)) + ", got " +
           std::to_string(result.m);
  uint32_t n = result.n, step = 8 * result.numBlocks;
  // "Various combinations of N shape with .cta_group qualifier for 8bit
  // transpose B".
  bool isTransposedByte = result.isTransposedB && result.b.bits == 8;
  if (isTransposedByte || (result.isInteger && (isPair || n > 32)))
    step = 16 * result.numBlocks;
  if (n < step || n > 256 || n % step != 0)
    return "to have an N from " + std::to_string(step) +
           " to 256 in steps of " + std::to_string(step) + ", got " +
           std::to_string(n);
  return "";
}

std::string emulator::decode(uint32_t bits, uint32_t kind, bool isOfPair,
                             uint32_t blockSize, TensorInstruction &result) {
  Fields fields{bits};
  if (std::string wrong = checkReserved(fields, kind); !wrong.empty())
    return wrong;
  if (std::string wrong = checkResult(kind, fields.get(4, 2)); !wrong.empty())
    return wrong;
  result.isHalf = !isScaled(kind) && fields.get(4, 2) == 0;
  result.numBlocks = isOfPair ? 2 : 1;
  if (std::string wrong = decodeElements(fields, kind, result); !wrong.empty())
    return wrong;
  if (isScaled(kind))
    if (std::string wrong = decodeScales(fields, kind, blockSize, result);
        !wrong.empty())
      return wrong;
  result.n = fields.get(17, 6) << 3;
  result.m = fields.get(24, 5) << 4;
  return checkShape(result, kind);
}
