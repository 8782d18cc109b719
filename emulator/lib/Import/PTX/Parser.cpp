//===- Parser.cpp - Inline PTX as statements ------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lexer.h"
#include "Program.h"
#include "Types.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/Twine.h"

using namespace mlir::kvcache::ptx;
using llvm::StringRef;

std::string Statement::getName() const {
  std::string text;
  for (const std::string &part : name)
    text += (text.empty() ? "" : ".") + part;
  return text;
}

namespace {

/// Reads statements. The first error is kept, and ends the parse.
class Parser {
public:
  Parser(StringRef text, llvm::ArrayRef<TemplateOperand> operands,
         std::string &error)
      : lexer(text), operands(operands), error(error) {
    scopes.emplace_back();
  }

  std::optional<Program> parse() {
    for (const TemplateOperand &operand : operands)
      program.registers.push_back(
          {"$" + std::to_string(program.registers.size()), operand.bits});
    next();
    while (token.kind != Token::End && error.empty())
      parseStatement();
    if (error.empty() && scopes.size() > 1)
      fail("expects a '}'");
    resolveLabels();
    return error.empty() ? std::optional(std::move(program)) : std::nullopt;
  }

private:
  struct Scope {
    llvm::StringMap<unsigned> registers, labels;
  };

  void fail(const llvm::Twine &message) {
    if (error.empty())
      error = message.str();
  }
  void next() {
    token = lexer.next();
    if (token.kind == Token::Invalid)
      fail("has an unexpected '" + token.text + "'");
  }
  bool isNext(StringRef text) const {
    return token.kind != Token::End && token.text == text;
  }
  bool consume(StringRef text) {
    bool is = isNext(text);
    if (is)
      next();
    return is;
  }
  void expect(StringRef text) {
    if (!consume(text))
      fail("expects a '" + text + "' before '" + token.text + "'");
  }

  //===--- Statements ---===//

  void parseStatement() {
    if (consume(";"))
      return;
    if (consume("{")) {
      scopes.emplace_back();
      return;
    }
    if (isNext("}")) {
      if (scopes.size() == 1)
        return fail("has an unexpected '}'");
      resolveLabels();
      scopes.pop_back();
      return next();
    }
    if (token.kind == Token::Name && token.text.starts_with("."))
      return parseDirective();
    if (token.kind == Token::Name && lexer.isBeforeColon())
      return parseLabel();
    parseInstruction();
  }

  void parseLabel() {
    Statement statement;
    statement.label = program.numLabels++;
    auto [entry, isNew] =
        scopes.back().labels.try_emplace(token.text, *statement.label);
    if (!isNew)
      fail("defines the label '" + token.text + "' twice");
    program.statements.push_back(std::move(statement));
    next();
    expect(":");
  }

  /// `.reg .b32 a, b<4>;`, also without the space.
  void parseDirective() {
    StringRef name = token.text;
    if (!name.consume_front(".reg") || (!name.empty() && name[0] != '.'))
      return fail("has the unknown directive '" + token.text + "'");
    if (name.empty()) {
      next();
      name = token.text;
    }
    std::optional<PTXType> type;
    if (name.consume_front("."))
      type = PTXType::parse(name);
    if (!type)
      return fail("declares registers of the unknown type '" + name + "'");
    next();
    do {
      parseDeclaration(*type);
    } while (consume(",") && error.empty());
    expect(";");
  }

  void parseDeclaration(const PTXType &type) {
    if (token.kind != Token::Name)
      return fail("expects the name of a register before '" + token.text + "'");
    std::string name = token.text.str();
    next();
    if (!consume("<"))
      return declare(name, type.bits);
    constexpr unsigned most = 1024;
    unsigned count = 0;
    if (token.text.getAsInteger(10, count) || count > most)
      return fail("expects a number of registers, got '" + token.text + "'");
    next();
    expect(">");
    for (unsigned i = 0; i < count; ++i)
      declare(name + std::to_string(i), type.bits);
  }

  void declare(const std::string &name, unsigned bits) {
    unsigned number = program.registers.size();
    if (!scopes.back().registers.try_emplace(name, number).second)
      return fail("declares the register '" + name + "' twice");
    program.registers.push_back({name, bits});
  }

  void parseInstruction() {
    Statement statement;
    if (consume("@")) {
      statement.isGuardNegated = consume("!");
      Operand guard = parseOperand();
      if (guard.kind != Operand::Kind::Register)
        return fail("expects a register after '@'");
      statement.guard = guard.number;
    }
    if (token.kind != Token::Name)
      return fail("expects an instruction before '" + token.text + "'");
    llvm::SmallVector<StringRef> parts;
    token.text.split(parts, '.', -1, /*KeepEmpty=*/false);
    for (StringRef part : parts)
      statement.name.push_back(part.str());
    if (parts.empty())
      return fail("expects an instruction before '" + token.text + "'");
    next();
    if (parts.front() == "bra")
      statement.operands.push_back(parseTarget());
    else if (!isNext(";"))
      do {
        statement.operands.push_back(parseOperand());
      } while (consume(",") && error.empty());
    if (token.kind != Token::End)
      expect(";");
    program.statements.push_back(std::move(statement));
  }

  //===--- Operands ---===//

  Operand parseTarget() {
    if (token.kind != Token::Name)
      fail("expects a label before '" + token.text + "'");
    Operand target;
    target.kind = Operand::Kind::Label;
    target.name = token.text.str();
    openBranches.push_back({program.statements.size(), scopes.size()});
    next();
    return target;
  }

  Operand parseOperand() {
    Operand operand = parseSimple();
    if (!consume("|"))
      return operand;
    Operand pair;
    pair.kind = Operand::Kind::Pair;
    pair.parts = {std::move(operand), parseSimple()};
    return pair;
  }

  Operand parseSimple() {
    if (consume("!")) {
      Operand operand = parseSimple();
      operand.isNegated = true;
      return operand;
    }
    if (consume("{"))
      return parseVector();
    if (consume("["))
      return parseAddress();
    if (consume("-")) {
      Operand operand = parseSimple();
      if (operand.kind == Operand::Kind::Integer)
        operand.value = -static_cast<uint64_t>(operand.value);
      else
        operand.isNegated = !operand.isNegated;
      return operand;
    }
    return token.kind == Token::Number ? parseNumber() : parseName();
  }

  Operand parseVector() {
    Operand vector;
    vector.kind = Operand::Kind::Vector;
    do {
      vector.parts.push_back(parseSimple());
    } while (consume(",") && error.empty());
    expect("}");
    return vector;
  }

  Operand parseAddress() {
    Operand address;
    address.kind = Operand::Kind::Address;
    address.parts.push_back(parseSimple());
    bool isMinus = isNext("-");
    if (consume("+") || isMinus) {
      Operand offset = parseSimple();
      if (offset.kind != Operand::Kind::Integer)
        fail("expects a number as the offset of an address");
      address.value = offset.value;
    }
    while (consume(",") && error.empty())
      address.parts.push_back(parseSimple());
    expect("]");
    return address;
  }

  Operand parseNumber() {
    Operand number;
    number.kind = token.isFloat ? Operand::Kind::Float : Operand::Kind::Integer;
    number.value = token.value;
    number.number = token.bits;
    next();
    return number;
  }

  Operand parseName() {
    Operand operand;
    if (token.kind != Token::Name) {
      fail("expects an operand before '" + token.text + "'");
      return operand;
    }
    StringRef name = token.text;
    if (name == "_") {
      operand.kind = Operand::Kind::Sink;
    } else if (std::optional<unsigned> number = lookup(name)) {
      operand.kind = Operand::Kind::Register;
      operand.number = *number;
    } else if (name.consume_front("%")) {
      operand.kind = Operand::Kind::Special;
    } else {
      fail("uses '" + name + "', which is not declared");
    }
    operand.name = name.str();
    next();
    return operand;
  }

  std::optional<unsigned> lookup(StringRef name) {
    unsigned number = 0;
    if (name.starts_with("$") && !name.drop_front().getAsInteger(10, number)) {
      if (number < operands.size())
        return operands[number].number;
      fail("uses the operand '" + name + "', and there are " +
           std::to_string(operands.size()));
      return 0;
    }
    for (const Scope &scope : llvm::reverse(scopes))
      if (auto found = scope.registers.find(name);
          found != scope.registers.end())
        return found->second;
    return std::nullopt;
  }

  //===--- Labels ---===//

  /// Resolves the branches of the innermost scope, at its end. Those to a label
  /// of an outer scope stay open until the end of that.
  void resolveLabels() {
    std::vector<Branch> open;
    for (Branch branch : openBranches) {
      if (branch.depth < scopes.size()) {
        open.push_back(branch);
        continue;
      }
      Operand &target = program.statements[branch.statement].operands.front();
      auto found = scopes.back().labels.find(target.name);
      if (found != scopes.back().labels.end())
        target.number = found->second;
      else if (scopes.size() > 1)
        open.push_back({branch.statement, scopes.size() - 1});
      else
        fail("branches to '" + target.name + "', which is not a label of it");
    }
    openBranches = std::move(open);
  }

  struct Branch {
    size_t statement, depth;
  };

  Lexer lexer;
  Token token;
  llvm::ArrayRef<TemplateOperand> operands;
  std::string &error;
  Program program;
  std::vector<Scope> scopes;
  std::vector<Branch> openBranches;
};

} // namespace

std::optional<Program>
mlir::kvcache::ptx::parse(StringRef text,
                          llvm::ArrayRef<TemplateOperand> operands,
                          std::string &error) {
  std::string expanded;
  if (!expandTemplate(text, expanded, error))
    return std::nullopt;
  return Parser(expanded, operands, error).parse();
}
