//===- Types.h - Types of PTX -----------------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_IMPORT_PTX_TYPES_H
#define KVCACHE_LIB_IMPORT_PTX_TYPES_H

#include "llvm/ADT/StringRef.h"

#include <optional>

namespace mlir::kvcache::ptx {

/// A type of PTX by its name, such as `b32` or `bf16x2`.
struct PTXType {
  enum class Kind { Bits, Unsigned, Signed, Float, Predicate };

  Kind kind = Kind::Bits;
  /// The bits of all its elements.
  unsigned bits = 32;
  llvm::StringRef name;

  bool isFloat() const { return kind == Kind::Float; }
  bool isSigned() const { return kind == Kind::Signed; }
  bool isUnsigned() const { return kind == Kind::Unsigned; }
  /// Whether the type has two elements, such as f16x2.
  bool isPair() const { return name.ends_with("x2"); }

  /// None for what is not a type. `name` must live as long as the result.
  static std::optional<PTXType> parse(llvm::StringRef name);
};

} // namespace mlir::kvcache::ptx

#endif // KVCACHE_LIB_IMPORT_PTX_TYPES_H
