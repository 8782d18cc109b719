//===- Formats.h - The formats of elements and scales -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Verifiers and lowerings ask the table in kvcache/Runtime/Formats.def what a
// type is used for, and name no types.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_FORMATS_H
#define KVCACHE_IR_FORMATS_H

#include "mlir/IR/Types.h"
#include "llvm/ADT/BitmaskEnum.h"

namespace mlir::kvcache {

/// The uses of formats.
namespace FormatUse {

LLVM_ENABLE_BITMASK_ENUMS_IN_NAMESPACE();

/// A set of uses; sets are bitwise ors.
enum Set : uint32_t {
  None = 0,
  /// Elements of caches without scales.
  Element = 1 << 0,
  /// Elements of caches with scales.
  Scaled = 1 << 1,
  /// Elements that need zero points beside their scales.
  ZeroPoint = 1 << 2,
  /// Scales.
  Scale = 1 << 3,
  /// Scales that may be powers of two: they hold every power of f32.
  Power = 1 << 4,
  /// Values that elements are converted to, and computed with.
  Wide = 1 << 5,
  /// Values that kvcache-narrow-floats extends from and truncates to.
  Narrow = 1 << 6,
  /// The formats e4m3 and e5m2 of PTX: operands of matrix instructions, `cvt`
  /// of sm_89, and values of loads, queries and outputs.
  FP8 = 1 << 7,
  /// The formats of the `cvt` of sm_100a, without those of FP8.
  NarrowCvt = 1 << 8,
  LLVM_MARK_AS_BITMASK_ENUM(/*LargestValue=*/NarrowCvt)
};

} // namespace FormatUse

/// A row of the table.
struct ElementFormat {
  /// MLIR's name of the type.
  StringLiteral name;
  /// The width of the type in bits.
  unsigned bits;
  /// The class of the type; of integers, this format is signless.
  TypeID typeID;
  /// DLPack's type code.
  int32_t code;
  FormatUse::Set uses;
};

/// Returns the row of a type; null for null and for a type without a row.
const ElementFormat *lookupFormat(Type type);

/// Whether a type has one of the uses. False for null.
bool hasUse(Type type, FormatUse::Set uses);

/// Lists the names of the formats with one of the uses: "f32, f16 or bf16".
std::string listFormats(FormatUse::Set uses);

} // namespace mlir::kvcache

#endif // KVCACHE_IR_FORMATS_H
