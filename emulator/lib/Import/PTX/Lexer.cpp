//===- Lexer.cpp - Tokens of inline PTX -----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lexer.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"

using namespace mlir::kvcache::ptx;
using llvm::StringRef;

static bool isPartOfName(char c) {
  return llvm::isAlnum(c) || c == '_' || c == '$' || c == '%' || c == '.';
}

void Lexer::skipBlanks() {
  while (true) {
    rest = rest.ltrim();
    if (rest.starts_with("//"))
      rest = rest.drop_until([](char c) { return c == '\n'; });
    else if (rest.starts_with("/*"))
      rest = rest.drop_front(2).split("*/").second;
    else
      return;
  }
}

bool Lexer::isBeforeColon() const {
  StringRef next = rest.ltrim();
  return next.starts_with(":") && !next.starts_with("::");
}

Token Lexer::take(Token::Kind kind, size_t length) {
  Token token;
  token.kind = kind;
  token.text = rest.take_front(length);
  rest = rest.drop_front(token.text.size());
  return token;
}

/// Names have dots and double colons: `ld.global.L1::evict_first.b32`.
Token Lexer::lexName() {
  size_t length = 0;
  while (length < rest.size()) {
    if (isPartOfName(rest[length]))
      ++length;
    else if (rest.substr(length).starts_with("::"))
      length += 2;
    else
      break;
  }
  return take(Token::Name, length);
}

/// PTX ISA, "Constants": `12`, `0x1fU`, `0f3F800000`, `1.5`.
Token Lexer::lexNumber() {
  size_t length = 0;
  while (length < rest.size() &&
         (llvm::isAlnum(rest[length]) || rest[length] == '.' ||
          ((rest[length] == '-' || rest[length] == '+') &&
           llvm::toLower(rest[length - 1]) == 'e' &&
           !rest.starts_with_insensitive("0x"))))
    ++length;
  Token token = take(Token::Number, length);
  StringRef digits = token.text;
  uint64_t value = 0;
  bool isBits = digits.starts_with_insensitive("0f") ||
                digits.starts_with_insensitive("0d");
  if (isBits) {
    token.isFloat = true;
    token.bits = llvm::toLower(digits[1]) == 'f' ? 32 : 64;
    if (digits.drop_front(2).getAsInteger(16, value))
      token.kind = Token::Invalid;
  } else if (digits.contains('.')) {
    token.isFloat = true;
    llvm::APFloat number(llvm::APFloat::IEEEdouble());
    auto status =
        number.convertFromString(digits, llvm::APFloat::rmNearestTiesToEven);
    if (!status) {
      llvm::consumeError(status.takeError());
      token.kind = Token::Invalid;
    }
    value = number.bitcastToAPInt().getZExtValue();
  } else {
    digits = digits.rtrim("uU");
    if (digits.getAsInteger(0, value))
      token.kind = Token::Invalid;
  }
  token.value = static_cast<int64_t>(value);
  return token;
}

Token Lexer::next() {
  skipBlanks();
  if (rest.empty())
    return Token();
  char first = rest.front();
  if (llvm::isDigit(first))
    return lexNumber();
  if (isPartOfName(first))
    return lexName();
  return take(StringRef("{}[],;:@!|+-<>").contains(first) ? Token::Punctuation
                                                          : Token::Invalid,
              1);
}

bool mlir::kvcache::ptx::expandTemplate(StringRef text, std::string &expanded,
                                        std::string &error) {
  while (!text.empty()) {
    size_t dollar = text.find('$');
    expanded += text.take_front(dollar);
    text = text.substr(dollar);
    if (text.empty() || !text.consume_front("$"))
      break;
    if (text.consume_front("$")) {
      expanded += '$';
    } else if (text.consume_front("{:uid}")) {
      // Labels are of one text only.
    } else if (text.consume_front("{")) {
      auto [number, remaining] = text.split('}');
      if (number.empty() || !llvm::all_of(number, llvm::isDigit)) {
        error = ("has an operand with a modifier, '${" + number + "}'").str();
        return false;
      }
      expanded += ("$" + number).str();
      text = remaining;
    } else if (!text.empty() && llvm::isDigit(text.front())) {
      expanded += '$';
    } else {
      error = "has a '$' that is not before an operand";
      return false;
    }
  }
  return true;
}
