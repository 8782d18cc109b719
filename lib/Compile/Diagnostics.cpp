//===- Diagnostics.cpp - Diagnostics as values ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Compile/Diagnostics.h"

#include "kvcache/Support/DiagnosticHints.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::kvcache;

StringRef kvcache::stringifySeverity(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Note:
    return "note";
  case DiagnosticSeverity::Warning:
    return "warning";
  case DiagnosticSeverity::Error:
    return "error";
  case DiagnosticSeverity::Remark:
    return "remark";
  }
  llvm_unreachable("unknown severity");
}

static DiagnosticRecord convert(Diagnostic &diagnostic) {
  DiagnosticRecord result;
  result.severity = diagnostic.getSeverity();
  result.message = diagnostic.str();
  if (auto file = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>()) {
    result.filename = file.getFilename().str();
    result.line = file.getLine();
    result.column = file.getColumn();
  }
  for (Diagnostic &note : diagnostic.getNotes())
    result.notes.push_back(convert(note));
  return result;
}

DiagnosticRecord DiagnosticRecord::makeError(const llvm::Twine &message) {
  DiagnosticRecord result;
  result.message = message.str();
  return result;
}

DiagnosticCollector::DiagnosticCollector(MLIRContext *context)
    : handler(context, [this, context](Diagnostic &diagnostic) {
        clarifyDiagnostic(context, diagnostic);
        diagnostics.push_back(convert(diagnostic));
        return success();
      }) {}

bool DiagnosticCollector::hasError() const {
  return llvm::any_of(diagnostics, [](const DiagnosticRecord &diagnostic) {
    return diagnostic.severity == DiagnosticSeverity::Error;
  });
}
