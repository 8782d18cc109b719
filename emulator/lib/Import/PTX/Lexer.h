//===- Lexer.h - Tokens of inline PTX ---------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_IMPORT_PTX_LEXER_H
#define KVCACHE_LIB_IMPORT_PTX_LEXER_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace mlir::kvcache::ptx {

struct Token {
  enum Kind { End, Name, Number, Punctuation, Invalid };
  Kind kind = End;
  llvm::StringRef text;
  /// The value of a number, or the bits of a float, and their count.
  int64_t value = 0;
  bool isFloat = false;
  unsigned bits = 64;
};

/// Splits PTX into tokens. PTX ISA, "Syntax".
class Lexer {
public:
  explicit Lexer(llvm::StringRef text) : rest(text) {}

  Token next();
  /// Whether a colon follows the last token, but not two.
  bool isBeforeColon() const;

private:
  void skipBlanks();
  Token lexName();
  Token lexNumber();
  Token take(Token::Kind kind, size_t length);

  llvm::StringRef rest;
};

/// Replaces what LLVM's templates have beside operands: `$$`, `${3}` and
/// `${:uid}`. Sets `error` for what has no meaning in PTX.
bool expandTemplate(llvm::StringRef text, std::string &expanded,
                    std::string &error);

} // namespace mlir::kvcache::ptx

#endif // KVCACHE_LIB_IMPORT_PTX_LEXER_H
