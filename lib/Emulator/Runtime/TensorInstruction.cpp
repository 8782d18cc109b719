//===- TensorInstruction.cpp - Instruction descriptors --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorInstruction.h"
#include "kvcache/Emulator/TensorMemory.h"

using namespace mlir::kvcache;
using namespace mlir::kvcache::emulator;

/// Elements by their codes, of which some stand for none.
static TensorElement getElement(uint32_t kind, uint32_t code) {
  static const TensorElement none;
  static const FloatFormat f32{8, 23, FloatFormat::Top::InfinityAndNaN};
  static const TensorElement elements[4][6] = {
      {{"f16", 16, &kF16}, {"bf16", 16, &kBF16}},
      {{}, {}, {"tf32", 32, &f32}},
      {{"e4m3", 8, &kE4M3},
       {"e5m2", 8, &kE5M2},
       {},
       {"e2m3", 6, &kE2M3},
       {"e3m2", 6, &kE3M2},
       {"e2m1", 4, &kE2M1}},
      {{"u8", 8, nullptr, false}, {"s8", 8, nullptr, true}}};
  return code < 6 ? elements[kind][code] : none;
}

static const char *getName(uint32_t kind) {
  static const char *const names[] = {"f16", "tf32", "f8f6f4", "i8"};
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
} // namespace

/// Fields that have one value for a product of a dense matrix.
static std::string checkReserved(const Fields &fields, uint32_t kind) {
  struct Rule {
    unsigned first, count;
    const char *what;
  };
  static const Rule rules[] = {{0, 2, "the sparsity selector"},
                               {2, 1, "sparsity"},
                               {6, 1, "bit 6, which is reserved"},
                               {23, 1, "bit 23, which is reserved"},
                               {29, 1, "bit 29, which is reserved"},
                               {30, 2, "the maximum shift"}};
  for (const Rule &rule : rules)
    if (uint32_t value = fields.get(rule.first, rule.count))
      return std::string("to have 0 for ") + rule.what + ", got " +
             std::to_string(value);
  bool isInteger = kind == KVCacheTmemI8;
  if (!isInteger && fields.get(3, 1))
    return "not to saturate, which only kind i8 does";
  if (isInteger && fields.get(13, 2))
    return "not to negate a matrix of integers";
  return "";
}

/// "Data types": kinds with floats have f32, or f16 where A has 16 bits or
/// less.
static std::string checkResult(uint32_t kind, uint32_t code) {
  bool isRight = kind == KVCacheTmemI8     ? code == 2
                 : kind == KVCacheTmemTF32 ? code == 1
                                           : code <= 1;
  if (isRight)
    return "";
  return std::string("to have a type of D that kind ") + getName(kind) +
         " has, got code " + std::to_string(code);
}

/// "Matrix shape".
static std::string checkShape(const TensorInstruction &result) {
  if (result.m != 64 && result.m != 128)
    return "to have an M of 64 or 128, got " + std::to_string(result.m);
  uint32_t n = result.n;
  uint32_t step = result.isInteger() && n > 32 ? 16 : 8;
  if (n < 8 || n > 256 || n % step != 0)
    return "to have an N from 8 to 256 in steps of " + std::to_string(step) +
           ", got " + std::to_string(n);
  return "";
}

std::string emulator::decode(uint32_t bits, uint32_t kind,
                             TensorInstruction &result) {
  Fields fields{bits};
  if (std::string wrong = checkReserved(fields, kind); !wrong.empty())
    return wrong;
  if (std::string wrong = checkResult(kind, fields.get(4, 2)); !wrong.empty())
    return wrong;
  result.isHalf = fields.get(4, 2) == 0;
  result.a = getElement(kind, fields.get(7, 3));
  result.b = getElement(kind, fields.get(10, 3));
  for (auto [element, first] :
       {std::pair(&result.a, 7), std::pair(&result.b, 10)})
    if (!element->name)
      return std::string("to have types of A and B that kind ") +
             getName(kind) + " has, got code " +
             std::to_string(fields.get(first, 3));
  if (kind == KVCacheTmemF16 && result.a.format != result.b.format)
    return "to have the same type of A and B for kind f16";
  result.saturates = fields.get(3, 1);
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
  result.n = fields.get(17, 6) << 3;
  result.m = fields.get(24, 5) << 4;
  return checkShape(result);
}
