//===- BlockTokens.h - Tokens that rows of a block see ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTION_BLOCKTOKENS_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTION_BLOCKTOKENS_H

#include "KeySplits.h"
#include "VisibleTokens.h"

namespace mlir::kvcache {

/// The tokens that rows of a block see: those that any of them sees, from where
/// tiles may begin on, and those that all see by position. The first tokens of
/// tiles are multiples of a number.
struct SeenTokens {
  TokenRange all, byAll;
  int64_t alignment = 1;
  /// The first token that any row sees, if tiles may begin before it;
  /// otherwise null.
  Value begin;
  /// Tokens that the region `mask` admits for all rows; null without it.
  TokenRange admitted;
};

Value countTokens(const IndexBuilder &builder, const TokenRange &tokens);

/// Finds the tokens that rows of a block see.
class BlockTokens {
public:
  /// For blocks of `blockRows` rows of a sequence, and tiles of so many tokens.
  BlockTokens(const Frame &frame, AttentionOp op, int64_t tileTokens,
              int64_t blockRows)
      : frame(frame), op(op), visible(frame, op), tileTokens(tileTokens),
        blockRows(blockRows) {}

  /// The tokens that rows [first, first + count) of a sequence see. With
  /// `lane`, the lanes of a warp share the work.
  SeenTokens find(const QueryRows &rows, Value first, Value count,
                  Value lane = {}) const;
  /// The splits of a block's rows, from `first` on of those of a sequence.
  Value countSplits(const KeySplits &splits, const QueryRows &rows,
                    Value first) const;

private:
  /// The tokens that the region `mask` admits for rows of a sequence. A block
  /// of one row may be after the last one, which has no position that loads by
  /// the query may be at.
  std::optional<AdmittedTokens> findAdmitted(const QueryRows &rows, Value first,
                                             Value last) const;

  const Frame &frame;
  /// Mutable because accessors of ops are not const.
  mutable AttentionOp op;
  VisibleTokens visible;
  int64_t tileTokens, blockRows;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTION_BLOCKTOKENS_H
