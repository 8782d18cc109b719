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

/// Returns an i32 with a bit for each of the tokens from `token` on that row
/// `first + i` sees by the mask, between its ranges, and by the ids of sparse
/// rows. `ids` is memory of these tokens' ids, from number `first` on.
class SeenBits {
public:
  SeenBits(const HostAttention &attention, const QueryRows &rows, Value ids)
      : attention(attention), rows(rows), ids(ids) {}

  Value computeWord(Value i, Value token, Value firstId) const;

private:
  Value getMaskWord(Value i, Value token) const;
  Value loadMask(Value i, Value word) const;
  Value getGivenWord(Value firstId) const;
  Value clearGaps(Value i, Value token, Value word) const;

  const HostAttention &attention;
  const QueryRows &rows;
  Value ids;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_SEENBITS_H
