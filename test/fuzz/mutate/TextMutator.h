//===- TextMutator.h - Other texts of MLIR ----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TEST_FUZZ_MUTATE_TEXTMUTATOR_H
#define KVCACHE_TEST_FUZZ_MUTATE_TEXTMUTATOR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <random>
#include <string>
#include <vector>

namespace mlir::kvcache::fuzz {

using Random = std::mt19937_64;

/// A number below `bound`, which is positive.
inline size_t below(Random &random, size_t bound) { return random() % bound; }
template <typename Range> auto &pick(Random &random, Range &&range) {
  return range[below(random, range.size())];
}

/// Numbers at the edges of what integers hold, as text.
llvm::StringRef pickNumber(Random &random);

/// Changes words and lines of a text, with those of all others at hand.
class TextMutator {
public:
  explicit TextMutator(llvm::ArrayRef<std::string> corpus);
  std::string mutate(llvm::StringRef text, Random &random) const;

private:
  void changeWord(std::vector<llvm::StringRef> &words, Random &random) const;
  void changeLine(std::vector<llvm::StringRef> &words, Random &random) const;

  llvm::ArrayRef<std::string> corpus;
  /// Words of all texts by what they begin with.
  std::vector<std::vector<llvm::StringRef>> words;
};

} // namespace mlir::kvcache::fuzz

#endif // KVCACHE_TEST_FUZZ_MUTATE_TEXTMUTATOR_H
