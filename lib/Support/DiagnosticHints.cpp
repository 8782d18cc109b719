//===- DiagnosticHints.cpp - Clearer errors of MLIR -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Support/DiagnosticHints.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Returns the text between the last pair of single quotes before `end`.
static StringRef findQuoted(StringRef text, StringRef end) {
  StringRef before = text.take_front(text.find(end));
  return before.rsplit('\'').first.rsplit('\'').second;
}

namespace {

/// Finds the known name that is nearest to an unknown one.
class NearestName {
public:
  explicit NearestName(StringRef name)
      : name(name), distance(2 + name.size() / 8) {}

  void add(StringRef candidate) {
    unsigned changes =
        name.edit_distance(candidate, /*AllowReplacements=*/true, distance);
    if (changes >= distance)
      return;
    distance = changes;
    nearest = candidate.str();
  }

  /// Adds a question to a diagnostic, unless no name is near.
  void askIn(Diagnostic &diagnostic) const {
    if (!nearest.empty())
      diagnostic << (StringRef(diagnostic.str()).ends_with("\n") ? "" : "; ")
                 << "did you mean '" << nearest << "'?";
  }

private:
  StringRef name;
  unsigned distance;
  std::string nearest;
};

} // namespace

/// "failed to legalize operation 'x' that was explicitly marked illegal" says
/// nothing of the program. Returns whether this was such an error.
static bool rewriteLegalization(Diagnostic &diagnostic) {
  MutableArrayRef<DiagnosticArgument> parts = diagnostic.getArguments();
  auto isText = [](const DiagnosticArgument &part) {
    return part.getKind() == DiagnosticArgument::DiagnosticArgumentKind::String;
  };
  if (parts.size() != 3 || !llvm::all_of(parts, isText) ||
      parts[0].getAsString() != "failed to legalize operation '")
    return false;
  parts[0] = DiagnosticArgument(StringRef("'"));
  parts[2] = DiagnosticArgument(
      StringRef("' op has no lowering here for its types and attributes"));
  return true;
}

static void suggestOp(MLIRContext *context, StringRef name,
                      Diagnostic &diagnostic) {
  auto [dialect, op] = name.split('.');
  NearestName nearest(name);
  for (RegisteredOperationName known : context->getRegisteredOperations())
    if (known.getDialectNamespace() == dialect)
      nearest.add(known.getStringRef());
  nearest.askIn(diagnostic);
}

static void suggestPass(StringRef name, Diagnostic &diagnostic) {
  NearestName nearest(name);
  for (auto &[option, value] : llvm::cl::getRegisteredOptions())
    if (PassInfo::lookup(option) || PassPipelineInfo::lookup(option))
      nearest.add(option);
  nearest.askIn(diagnostic);
}

void kvcache::clarifyDiagnostic(MLIRContext *context, Diagnostic &diagnostic) {
  if (diagnostic.getSeverity() != DiagnosticSeverity::Error ||
      rewriteLegalization(diagnostic))
    return;
  std::string text = diagnostic.str();
  StringRef message = text;
  if (message.contains("did you mean"))
    return;
  for (StringRef end : {" is unknown", " found in dialect"})
    if ((message.starts_with("custom op '") ||
         message.starts_with("unregistered operation '")) &&
        message.contains(end))
      return suggestOp(context, findQuoted(message, end), diagnostic);
  constexpr StringLiteral unknownPass(" does not refer to a registered pass");
  if (message.contains(unknownPass))
    suggestPass(findQuoted(message, unknownPass), diagnostic);
}

DiagnosticHints::DiagnosticHints(MLIRContext *context)
    : ScopedDiagnosticHandler(context, [context](Diagnostic &diagnostic) {
        clarifyDiagnostic(context, diagnostic);
        return failure();
      }) {}
