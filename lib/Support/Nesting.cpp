//===- Nesting.cpp - Text that is nested too deep to parse ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Support/Nesting.h"
#include "kvcache/Support/Verification.h"

#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/thread.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

constexpr unsigned kMaxNesting = 1000;

/// Reads the tokens of one source for what MLIR can't.
class SourceScanner {
public:
  explicit SourceScanner(StringRef text) : text(text) {}

  std::optional<Unreadable> scan() {
    while (position < text.size()) {
      const char *start = text.data() + position;
      scanToken();
      if (reached > kMaxNesting)
        return Unreadable{
            start, llvm::formatv("the source is nested more than {0} deep",
                                 kMaxNesting)};
      if (!reason.empty())
        return Unreadable{start, reason.str()};
      definition.depth = std::max(definition.depth, reached);
    }
    return std::nullopt;
  }

private:
  /// An open bracket, and the operators so far in the expression in it.
  struct Bracket {
    char open;
    unsigned operators = 0;
  };

  void scanToken() {
    StringRef rest = text.substr(position);
    char c = rest.front();
    reached = 0;
    if (rest.starts_with("//"))
      return skip(rest.find('\n'));
    if (c == '"')
      return scanString();
    if ((c == '#' || c == '!') && rest.size() > 1 && isInName(rest[1]))
      return scanAlias();
    if (isInName(c))
      return scanName();
    if (c == ':')
      isBeforeType = false;
    if (c == '\n')
      endDefinition();
    else if (!isSpace(c))
      last = c;
    if (rest.starts_with("->") || rest.starts_with(">="))
      return skip(2);
    scanBracket(c);
    skip(1);
  }

  void scanBracket(char c) {
    if (StringRef("([{<").contains(c)) {
      open.push_back({c});
      reached = ++depth;
    } else if (StringRef(")]}>").contains(c) && !open.empty()) {
      depth -= 1 + open.pop_back_val().operators;
    } else if (StringRef("+-*").contains(c)) {
      addOperator();
    } else if (c == ',' && !open.empty()) {
      depth -= std::exchange(open.back().operators, 0);
    }
  }

  /// Ops of a region have operators too, but in braces nothing nests.
  void addOperator() {
    if (open.empty() || open.back().open == '{')
      return;
    ++open.back().operators;
    reached = ++depth;
  }

  void scanString() {
    last = '"';
    do
      skip(text[position] == '\\' ? 2 : 1);
    while (position < text.size() && text[position] != '"' &&
           text[position] != '\n');
    skip(1);
  }

  void scanName() {
    StringRef name = takeName();
    last = name.back();
    if (name == "floordiv" || name == "ceildiv" || name == "mod")
      addOperator();
    StringRef rest = text.substr(position).ltrim();
    if (name == "array" && rest.consume_front("<") &&
        rest.ltrim().take_while(isInName) == "index")
      reason = "an array attribute has no elements of type 'index': write it "
               "with 'i64'";
    if (isBeforeType && !open.empty() && open.back().open == '[')
      checkPosition(name);
    if (name == "llvm.extractvalue" || name == "llvm.insertvalue")
      isBeforeType = true;
  }

  /// A number in the brackets of an op that finds the type of an element by its
  /// position.
  void checkPosition(StringRef number) {
    int64_t index;
    if (!number.getAsInteger(0, index) && !isElementIndex(index))
      reason = "a position in a struct or an array is from 0 to 2^31 - 1";
  }

  /// The definition of an alias, or its use, which nests as its definition.
  void scanAlias() {
    char sigil = text[position];
    skip(1);
    std::string name = sigil + takeName().str();
    last = name.back();
    StringRef rest = text.substr(position).ltrim();
    if (open.empty() && rest.starts_with("=") && !rest.starts_with("==")) {
      endDefinition();
      definition.name = name;
      last = '=';
    } else if (auto found = aliases.find(name); found != aliases.end()) {
      reached = depth + found->second;
    }
  }

  /// At the end of a line, unless the definition goes on.
  void endDefinition() {
    if (definition.name.empty() || !open.empty() ||
        StringRef("=:-").contains(last))
      return;
    aliases[definition.name] = definition.depth;
    definition = {};
  }

  static bool isInName(char c) {
    return llvm::isAlnum(c) || c == '_' || c == '$' || c == '.';
  }
  static bool isSpace(char c) { return llvm::isSpace(c); }

  StringRef takeName() {
    StringRef name = text.substr(position).take_while(isInName);
    skip(name.size());
    return name;
  }

  void skip(size_t count) {
    position = count > text.size() - position ? text.size() : position + count;
  }

  StringRef text;
  size_t position = 0;
  SmallVector<Bracket> open;
  /// Open brackets and the operators in them, and with aliases, the depth that
  /// the last token reached.
  unsigned depth = 0, reached = 0;
  /// Whether the last op has a position, and its type is yet to come.
  bool isBeforeType = false;
  /// Why MLIR can't read the last token.
  StringRef reason;
  /// The last character of the last token.
  char last = '\n';
  llvm::StringMap<unsigned> aliases;
  /// The alias whose definition the scanner is in, and the depth so far.
  struct {
    std::string name;
    unsigned depth = 0;
  } definition;
};

} // namespace

std::optional<Unreadable> kvcache::findUnreadable(StringRef text,
                                                  StringRef splitMarker) {
  SmallVector<StringRef> sources = {text};
  if (!splitMarker.empty()) {
    sources.clear();
    text.split(sources, splitMarker);
  }
  for (StringRef source : sources)
    if (std::optional<Unreadable> found = SourceScanner(source).scan())
      return found;
  return std::nullopt;
}

LogicalResult kvcache::checkReadable(const llvm::MemoryBuffer &source,
                                     StringRef splitMarker) {
  if (isBytecode(source))
    return success();
  std::optional<Unreadable> found =
      findUnreadable(source.getBuffer(), splitMarker);
  if (!found)
    return success();
  llvm::SourceMgr sourceMgr;
  sourceMgr.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBuffer(source.getMemBufferRef(),
                                       /*RequiresNullTerminator=*/false),
      SMLoc());
  sourceMgr.PrintMessage(SMLoc::getFromPointer(found->place),
                         llvm::SourceMgr::DK_Error, found->reason);
  return failure();
}

LogicalResult kvcache::checkNestedModules(ModuleOp module) {
  WalkResult result = module.walk([&](Operation *op) {
    if (op == module || !isa<ModuleOp, gpu::GPUModuleOp>(op) ||
        (isa<gpu::GPUModuleOp>(op) && op->getParentOp() == module))
      return WalkResult::advance();
    op->emitOpError("inside '")
        << op->getParentOp()->getName()
        << "' has no lowering: expects one 'builtin.module', with the "
           "'gpu.module's in it";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

LogicalResult kvcache::checkInFunction(Operation *op) {
  if (op->getParentOfType<FunctionOpInterface>())
    return success();
  return op->emitOpError("is in no function of its module");
}

int kvcache::runOnDeepStack(function_ref<int()> main) {
  // The system reserves addresses for it, and memory as it is used.
  std::optional<unsigned> stackBytes = 1u << 30;
  int status = 0;
  llvm::thread thread(stackBytes, [&] { status = main(); });
  thread.join();
  return status;
}
