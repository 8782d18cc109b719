//===- Program.h - The statements of inline PTX -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_IMPORT_PTX_PROGRAM_H
#define KVCACHE_LIB_IMPORT_PTX_PROGRAM_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mlir::kvcache::ptx {

/// A register: an operand of the inline assembly, or one that it declares.
struct Register {
  std::string name;
  unsigned bits = 32;
};

/// An operand of an instruction.
struct Operand {
  enum class Kind {
    Register,
    /// `%tid.x`, under its name without the percent sign.
    Special,
    Integer,
    /// Bits of a float: `0f3F800000`, or of f64 for `1.0`.
    Float,
    /// `{a, b}`.
    Vector,
    /// `[a + 16, {x, y}]`: the base, then what follows it.
    Address,
    /// `d|p`.
    Pair,
    /// `_`.
    Sink,
    /// Where a branch goes to.
    Label
  };
  Kind kind = Kind::Sink;
  /// The number of a register or of a label.
  unsigned number = 0;
  std::string name;
  /// The value of an integer, the bits of a float, the offset of an address.
  int64_t value = 0;
  /// `!p`, `-a`.
  bool isNegated = false;
  std::vector<Operand> parts;
};

/// An instruction or a label.
struct Statement {
  /// The number of a label; then there is no instruction.
  std::optional<unsigned> label;
  /// The register of `@p` or `@!p`.
  std::optional<unsigned> guard;
  bool isGuardNegated = false;
  /// `ld`, `global`, `v4`, `b32`.
  llvm::SmallVector<std::string, 6> name;
  std::vector<Operand> operands;

  /// The name with its dots.
  std::string getName() const;
};

/// The text of one inline assembly, in the syntax of LLVM's templates: `$0` is
/// the first operand, `$$` a dollar sign.
struct Program {
  std::vector<Register> registers;
  std::vector<Statement> statements;
  unsigned numLabels = 0;
};

/// An operand of inline assembly: its width, and the operand whose register it
/// has, which may be itself.
struct TemplateOperand {
  unsigned bits, number;
};

/// Parses a text with these operands; registers of the program begin with them.
/// Sets `error` on failure.
std::optional<Program> parse(llvm::StringRef text,
                             llvm::ArrayRef<TemplateOperand> operands,
                             std::string &error);

} // namespace mlir::kvcache::ptx

#endif // KVCACHE_LIB_IMPORT_PTX_PROGRAM_H
