//===- TextMutator.cpp - Other texts of MLIR ------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TextMutator.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir::kvcache::fuzz;
using llvm::StringRef;

StringRef mlir::kvcache::fuzz::pickNumber(Random &random) {
  static constexpr StringRef numbers[] = {"0",
                                          "1",
                                          "2",
                                          "3",
                                          "4",
                                          "7",
                                          "8",
                                          "15",
                                          "16",
                                          "17",
                                          "31",
                                          "32",
                                          "33",
                                          "48",
                                          "64",
                                          "127",
                                          "128",
                                          "255",
                                          "256",
                                          "257",
                                          "1023",
                                          "1024",
                                          "1025",
                                          "65536",
                                          "-1",
                                          "-2",
                                          "-8",
                                          "-128",
                                          "2147483647",
                                          "2147483648",
                                          "-2147483648",
                                          "4294967295",
                                          "4294967296",
                                          "1099511627776",
                                          "4611686018427387904",
                                          "9223372036854775807",
                                          "-9223372036854775808",
                                          "18446744073709551615",
                                          "18446744073709551616"};
  return numbers[below(random, std::size(numbers))];
}

static bool isWordCharacter(char c) {
  return llvm::isAlnum(c) || c == '_' || c == '.' || c == '$';
}

/// Spaces, numbers, names with what they begin with, and single characters: all
/// of the text, in order.
static std::vector<StringRef> split(StringRef text) {
  std::vector<StringRef> words;
  while (!text.empty()) {
    size_t length = 1;
    if (llvm::isSpace(text[0]))
      length = std::min(text.find_first_not_of(" \t\n\r"), text.size());
    else if (isWordCharacter(text[0]) || StringRef("%!#@^").contains(text[0]))
      length = 1 + text.drop_front().take_while(isWordCharacter).size();
    words.push_back(text.take_front(length));
    text = text.drop_front(length);
  }
  return words;
}

/// The class of words that may replace each other: the first character of a
/// name, else a class of characters.
static size_t getClass(StringRef word) {
  char first = word[0];
  if (llvm::isSpace(first))
    return 0;
  if (llvm::isDigit(first))
    return 1;
  if (llvm::isAlpha(first) || first == '_')
    return 2;
  size_t sigil = StringRef("%!#@^").find(first);
  return sigil == StringRef::npos ? 8 : 3 + sigil;
}

TextMutator::TextMutator(llvm::ArrayRef<std::string> corpus)
    : corpus(corpus), words(9) {
  llvm::StringSet<> seen;
  for (StringRef text : corpus)
    for (StringRef word : split(text))
      if (seen.insert(word).second)
        words[getClass(word)].push_back(word);
}

void TextMutator::changeWord(std::vector<StringRef> &all,
                             Random &random) const {
  size_t at = below(random, all.size());
  while (llvm::isSpace(all[at][0]) && at + 1 < all.size())
    ++at;
  StringRef word = all[at];
  switch (below(random, 12)) {
  case 0:
    all.erase(all.begin() + at);
    return;
  case 1:
    all.insert(all.begin() + at, word);
    return;
  case 2:
    std::swap(all[at], pick(random, all));
    return;
  case 3: // Another of this text, of the same class.
    for (int tries = 0; tries < 20; ++tries)
      if (StringRef other = pick(random, all);
          getClass(other) == getClass(word) && other != word) {
        all[at] = other;
        return;
      }
    return;
  default:
    if (llvm::isDigit(word[0]) && below(random, 4) != 0)
      all[at] = pickNumber(random);
    else
      all[at] = pick(random, words[getClass(word)]);
  }
}

/// Deletes, repeats, exchanges or brings in lines.
void TextMutator::changeLine(std::vector<StringRef> &all,
                             Random &random) const {
  std::vector<size_t> ends;
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].contains('\n'))
      ends.push_back(i + 1);
  if (ends.size() < 3)
    return;
  auto getLine = [&](size_t line) {
    return std::vector<StringRef>(all.begin() + ends[line],
                                  all.begin() + ends[line + 1]);
  };
  size_t line = below(random, ends.size() - 1);
  size_t other = below(random, ends.size() - 1);
  std::vector<StringRef> moved = getLine(line);
  switch (below(random, 4)) {
  case 0:
    all.erase(all.begin() + ends[line], all.begin() + ends[line + 1]);
    return;
  case 1:
    all.insert(all.begin() + ends[other], moved.begin(), moved.end());
    return;
  case 2:
    all.insert(all.begin() + ends[line], moved.begin(), moved.end());
    return;
  default: {
    std::vector<StringRef> from = split(pick(random, corpus));
    size_t begin = below(random, from.size());
    while (begin < from.size() && !from[begin].contains('\n'))
      ++begin;
    size_t end = begin;
    while (end < from.size() && (end == begin || !from[end].contains('\n')))
      ++end;
    all.insert(all.begin() + ends[line], from.begin() + begin,
               from.begin() + end);
  }
  }
}

std::string TextMutator::mutate(StringRef text, Random &random) const {
  std::vector<StringRef> all = split(text);
  for (size_t count = 1 + below(random, 4) / 2; count && !all.empty();
       --count) {
    if (below(random, 3) == 0)
      changeLine(all, random);
    else
      changeWord(all, random);
  }
  return llvm::join(all, "");
}
