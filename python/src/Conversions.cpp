//===- Conversions.cpp - Values that cross to Python ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Conversions.h"

namespace nb = nanobind;
using namespace mlir::kvcache;

nb::list python::toPython(const std::vector<DiagnosticRecord> &diagnostics) {
  nb::list list;
  for (const DiagnosticRecord &diagnostic : diagnostics)
    list.append(nb::make_tuple(toStr(stringifySeverity(diagnostic.severity)),
                               toStr(diagnostic.message),
                               toStr(diagnostic.filename), diagnostic.line,
                               diagnostic.column, toPython(diagnostic.notes)));
  return list;
}
