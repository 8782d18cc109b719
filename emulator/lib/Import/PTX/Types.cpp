//===- Types.cpp - Types of PTX -------------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Types.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir::kvcache::ptx;

/// PTX ISA, "Fundamental Types" and "Packed Floating Point Data Types".
static constexpr std::pair<llvm::StringLiteral, unsigned> kFloats[] = {
    {"f16", 16},    {"f32", 32},    {"f64", 64},    {"bf16", 16},
    {"f16x2", 32},  {"bf16x2", 32}, {"tf32", 32},   {"e4m3x2", 16},
    {"e5m2x2", 16}, {"e2m3x2", 16}, {"e3m2x2", 16}, {"ue8m0x2", 16}};

std::optional<PTXType> PTXType::parse(llvm::StringRef name) {
  if (name == "pred")
    return PTXType{Kind::Predicate, 1, name};
  const auto *found = llvm::find_if(
      kFloats, [&](const auto &entry) { return entry.first == name; });
  if (found != std::end(kFloats))
    return PTXType{Kind::Float, found->second, name};
  constexpr unsigned widths[] = {8, 16, 32, 64, 128};
  constexpr llvm::StringLiteral letters("bus");
  constexpr Kind kinds[] = {Kind::Bits, Kind::Unsigned, Kind::Signed};
  unsigned bits = 0;
  size_t letter = name.empty() ? letters.npos : letters.find(name.front());
  if (letter == letters.npos || name.drop_front().getAsInteger(10, bits) ||
      !llvm::is_contained(widths, bits))
    return std::nullopt;
  return PTXType{kinds[letter], bits, name};
}
