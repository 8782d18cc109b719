//===- Types.h - Types of caches --------------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PYTHON_TYPES_H
#define KVCACHE_PYTHON_TYPES_H

#include "kvcache/Compile/Diagnostics.h"
#include <optional>

namespace mlir::kvcache::python {

/// What the type of a cache says.
struct CacheType {
  std::string elementType;
  int64_t numHeads = 0;
  int64_t headSize = 0;
  bool isMLA = false;
  /// Nothing for a continuous cache.
  std::optional<int64_t> pageSize;
  /// Nothing without quantization.
  std::optional<std::string> scale;
  std::optional<int64_t> granularity;
};

/// A type that was parsed, or why it could not be.
struct ParsedType {
  /// Nothing for a type that is neither a collection nor a view of a cache, and
  /// on errors.
  std::optional<CacheType> cache;
  std::vector<DiagnosticRecord> diagnostics;
};

/// Parses the text of a type, without aliases.
ParsedType parseCacheType(StringRef text);

} // namespace mlir::kvcache::python

#endif // KVCACHE_PYTHON_TYPES_H
