//===- DowngradeLLVMText.cpp - Text of newer versions of LLVM -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DowngradeLLVMText.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Error.h"

using namespace mlir::kvcache;
using llvm::APFloat;
using llvm::StringRef;

/// The format that the name of a type stands for; null for other words.
static const llvm::fltSemantics *getSemantics(StringRef word) {
  using Semantics = const llvm::fltSemantics *;
  return llvm::StringSwitch<Semantics>(word)
      .Case("half", &APFloat::IEEEhalf())
      .Case("bfloat", &APFloat::BFloat())
      .Case("float", &APFloat::IEEEsingle())
      .Case("double", &APFloat::IEEEdouble())
      .Default(nullptr);
}

static bool isPartOfWord(char c) {
  return llvm::isAlnum(c) || StringRef("._-+$%@!#").contains(c);
}

/// `1.5`, `-1.000000e+30`.
static bool isDecimal(StringRef word) {
  word.consume_front("-");
  return !word.empty() && llvm::isDigit(word.front()) && word.contains('.');
}

/// `+inf`, `-qnan`.
static bool isSpecial(StringRef word) {
  bool isSigned = word.consume_front("+") || word.consume_front("-");
  return isSigned && (word == "inf" || word == "qnan");
}

/// A constant as LLVM 22 reads it: the bits of the double with the same value,
/// or those of a half or bfloat. Empty for what is not a number.
static std::string rewriteConstant(StringRef word,
                                   const llvm::fltSemantics &semantics) {
  APFloat number(semantics);
  if (isSpecial(word)) {
    bool isNegative = word.starts_with("-");
    number = word.ends_with("inf") ? APFloat::getInf(semantics, isNegative)
                                   : APFloat::getQNaN(semantics, isNegative);
  } else if (word.consume_front("f0x")) {
    llvm::APInt bits;
    unsigned width = APFloat::getSizeInBits(semantics);
    if (word.getAsInteger(16, bits) || bits.getActiveBits() > width)
      return "";
    number = APFloat(semantics, bits.zextOrTrunc(width));
  } else {
    auto status = number.convertFromString(word, APFloat::rmNearestTiesToEven);
    if (!status) {
      llvm::consumeError(status.takeError());
      return "";
    }
  }
  StringRef prefix = "0x";
  if (&semantics == &APFloat::IEEEhalf())
    prefix = "0xH";
  else if (&semantics == &APFloat::BFloat())
    prefix = "0xR";
  bool isInexact = false;
  if (prefix == "0x")
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                   &isInexact);
  llvm::APInt bits = number.bitcastToAPInt();
  return prefix.str() + llvm::toString(bits, 16, /*Signed=*/false);
}

namespace {
/// Reads a text word by word.
class Rewriter {
public:
  explicit Rewriter(StringRef text) : rest(text) {}

  std::string rewrite() {
    while (!rest.empty()) {
      char first = rest.front();
      if (first == '"')
        copyString();
      else if (first == ';')
        copy(rest.take_until([](char c) { return c == '\n'; }).size());
      else if (isPartOfWord(first))
        copyWord();
      else
        copyOther(first);
    }
    return std::move(result);
  }

private:
  void copy(size_t length) {
    result += rest.take_front(length);
    rest = rest.drop_front(length);
  }

  void copyString() {
    size_t end = rest.find('"', 1);
    copy(end == StringRef::npos ? rest.size() : end + 1);
  }

  void copyOther(char first) {
    // A type holds for the constants of its line.
    if (first == '\n')
      semantics = nullptr;
    copy(1);
  }

  void copyWord() {
    StringRef word = rest.take_while(isPartOfWord);
    if (const llvm::fltSemantics *found = getSemantics(word))
      semantics = found;
    std::string rewritten;
    if (semantics &&
        (word.starts_with("f0x") || isDecimal(word) || isSpecial(word)))
      rewritten = rewriteConstant(word, *semantics);
    result += rewritten.empty() ? word.str() : rewritten;
    rest = rest.drop_front(word.size());
  }

  StringRef rest;
  std::string result;
  const llvm::fltSemantics *semantics = nullptr;
};
} // namespace

std::string mlir::kvcache::downgradeLLVMText(StringRef text) {
  return Rewriter(text).rewrite();
}
