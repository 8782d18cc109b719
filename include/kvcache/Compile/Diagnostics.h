//===- Diagnostics.h - Diagnostics as values --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_COMPILE_DIAGNOSTICS_H
#define KVCACHE_COMPILE_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"

#include <string>
#include <vector>

namespace mlir::kvcache {

/// `error`, `warning`, `remark` or `note`.
StringRef stringifySeverity(DiagnosticSeverity severity);

/// A diagnostic that outlives its context.
struct DiagnosticRecord {
  DiagnosticSeverity severity = DiagnosticSeverity::Error;
  std::string message;
  /// Empty, with line and column 0, if the location has no file.
  std::string filename;
  unsigned line = 0;
  unsigned column = 0;
  std::vector<DiagnosticRecord> notes;

  /// An error without a location.
  static DiagnosticRecord makeError(const llvm::Twine &message);
};

/// Collects the diagnostics of a context during its lifetime.
class DiagnosticCollector {
public:
  explicit DiagnosticCollector(MLIRContext *context);

  bool hasError() const;
  void addError(const llvm::Twine &message) {
    diagnostics.push_back(DiagnosticRecord::makeError(message));
  }
  std::vector<DiagnosticRecord> take() { return std::move(diagnostics); }

private:
  std::vector<DiagnosticRecord> diagnostics;
  ScopedDiagnosticHandler handler;
};

} // namespace mlir::kvcache

#endif // KVCACHE_COMPILE_DIAGNOSTICS_H
