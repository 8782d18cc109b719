//===- EntrySearch.h - Search of the entry of a work item -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_ENTRYSEARCH_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_ENTRYSEARCH_H

#include "../Builders/Frame.h"

namespace mlir::kvcache {

/// Entries from `base` on, which the lanes of a warp count; the items before
/// them, and of all of them; those of the lane and the lanes before it, and of
/// the lane alone. Numbers are i32.
struct EntryGroup {
  Value base, before, total, inclusive, own;
};

/// Returns a number of another lane of the warp.
Value shuffle(const Frame &frame, Value value, Value lane);

/// Finds the entry of an item: each lane of a warp counts the items of another
/// entry.
class EntrySearch {
public:
  /// `countItems` gives the items of an entry below `entries`.
  EntrySearch(const Frame &frame, Value lane, Value entries,
              function_ref<Value(Value entry)> countItems)
      : frame(frame), lane(lane), entries(entries), countItems(countItems) {}

  /// The group that has an item, or the last one. The search begins at entry
  /// `base`, which has so many items before it.
  EntryGroup find(Value item, Value base, Value before) const;

private:
  EntryGroup count(Value base, Value before) const;

  const Frame &frame;
  Value lane, entries;
  function_ref<Value(Value)> countItems;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_ENTRYSEARCH_H
