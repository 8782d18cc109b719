//===- TokenLoader.h - Elements of keys and values --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTION_TOKENLOADER_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTION_TOKENLOADER_H

#include "QueryRows.h"

namespace mlir::kvcache {

/// Loads keys and values of tokens where no tiles have them.
class TokenLoader {
public:
  TokenLoader(const Frame &frame, AttentionOp op) : frame(frame), op(op) {}

  /// The encoded row of a column of a sparse row for a head of the cache,
  /// signed.
  Value loadId(const QueryRows &rows, Value head, Value column) const;
  /// The place of a token of the rows. With sparse rows, `id` is the token's.
  Place getPlace(const QueryRows &rows, Value token, Value id) const;

  /// Whether scores and probs are multiplied by the scales of the tokens of a
  /// cache, and elements are loaded without them.
  bool isUnscaled(Value cache) const;
  /// Loads such elements of a head of a token.
  Value load(Value cache, const Place &place, Value head, Value d,
             int64_t count, Type lane, bool nontemporal = false) const;

private:
  const Frame &frame;
  /// Mutable because accessors of ops are not const.
  mutable AttentionOp op;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTION_TOKENLOADER_H
