//===- WideBytes.h - Stored elements that become f16 ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_LOWERFRAGMENTS_WIDEBYTES_H
#define KVCACHE_LIB_CONVERSION_LOWERFRAGMENTS_WIDEBYTES_H

#include "kvcache/Support/IndexBuilder.h"

#include <array>

namespace mlir::kvcache {

/// Widens four elements of 8 bits in a word to two words of f16: in their
/// order, or even and odd ones.
std::array<Value, 2> widenBytes(const IndexBuilder &b, Type element, Value word,
                                bool byParity);

/// Widens eight elements of f4E2M1FN in a word to four words of f16, times
/// 2^-14: word i has elements i and i + 4, multiplied by a vector of two
/// factors unless it is null.
std::array<Value, 4> widenFloats(const IndexBuilder &b, Value word,
                                 Value factors);
/// Widens eight elements of i4 likewise, times 2^-24.
std::array<Value, 4> widenNibbles(const IndexBuilder &b, Value word);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CONVERSION_LOWERFRAGMENTS_WIDEBYTES_H
