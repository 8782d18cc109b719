//===- SeenBits.h - Bits of the tokens that rows see ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_SEENBITS_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_SEENBITS_H

#include "HostAttention.h"

namespace mlir::kvcache {

/// Tokens of a word of bits.
constexpr int64_t kWordTokens = 32;

/// Whether rows may not see some of the tokens that they see by position.
bool haveSeenBits(AttentionOp op);

/// The tokens that rows see by the mask, between their ranges, and by the ids
/// of sparse rows: words with a bit for each token, of i32.
class SeenBits {
public:
  SeenBits(const HostAttention &attention, const QueryRows &rows)
      : attention(attention), rows(rows) {}

  /// Returns the bits of columns whose ids are in memory from `firstId` on and
  /// not negative: the same for all rows. All bits without ids.
  Value getGivenWord(Value ids, Value firstId) const;
  /// Returns those of the `given` bits whose tokens, from `token` on, row
  /// `first + i` sees.
  Value computeWord(Value given, Value i, Value token) const;

private:
  Value getMaskWord(Value i, Value token) const;
  Value loadMask(Value i, Value word) const;
  Value clearGaps(Value i, Value token, Value word) const;

  const HostAttention &attention;
  const QueryRows &rows;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_SEENBITS_H
