//===- DiagnosticHints.h - Clearer errors of MLIR ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_SUPPORT_DIAGNOSTICHINTS_H
#define KVCACHE_SUPPORT_DIAGNOSTICHINTS_H

#include "mlir/IR/Diagnostics.h"

namespace mlir::kvcache {

/// Rewrites an error of upstream's dialect conversion in place, and adds the
/// nearest name to an error of an unknown op or pass.
void clarifyDiagnostic(MLIRContext *context, Diagnostic &diagnostic);

/// Clarifies diagnostics until the end of its life. Other handlers print them.
class DiagnosticHints : public ScopedDiagnosticHandler {
public:
  explicit DiagnosticHints(MLIRContext *context);
};

} // namespace mlir::kvcache

#endif // KVCACHE_SUPPORT_DIAGNOSTICHINTS_H
