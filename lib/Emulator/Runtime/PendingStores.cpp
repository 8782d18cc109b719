//===- PendingStores.cpp - Global memory that copies will write -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PendingStores.h"
#include "AsyncCopies.h"

#include <algorithm>

using namespace mlir::kvcache::emulator;

void PendingStores::add(const BoxCopy &copy) {
  for (const GlobalPiece &piece : copy.pieces) {
    auto begin = reinterpret_cast<uintptr_t>(piece.address);
    pieces.insert({begin, {begin + piece.bytes, &copy}});
    longest = std::max<uint64_t>(longest, piece.bytes);
  }
}

void PendingStores::remove(const BoxCopy &copy) {
  for (const GlobalPiece &piece : copy.pieces) {
    auto [begin, end] =
        pieces.equal_range(reinterpret_cast<uintptr_t>(piece.address));
    auto found = std::find_if(begin, end, [&](const auto &entry) {
      return entry.second.copy == &copy;
    });
    if (found != end)
      pieces.erase(found);
  }
}

const BoxCopy *PendingStores::findOverlap(const void *pointer,
                                          uint64_t bytes) const {
  auto begin = reinterpret_cast<uintptr_t>(pointer);
  auto next = pieces.lower_bound(begin + bytes);
  while (next != pieces.begin()) {
    --next;
    if (next->second.end > begin)
      return next->second.copy;
    if (begin - next->first >= longest)
      return nullptr;
  }
  return nullptr;
}
