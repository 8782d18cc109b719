//===- Conversions.h - Values that cross to Python --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PYTHON_CONVERSIONS_H
#define KVCACHE_PYTHON_CONVERSIONS_H

#include "kvcache/Compile/Diagnostics.h"
#include <nanobind/nanobind.h>

namespace mlir::kvcache::python {

/// Text from a source that need not be UTF-8.
inline nanobind::object toStr(StringRef text) {
  return nanobind::steal(
      PyUnicode_DecodeUTF8(text.data(), text.size(), "replace"));
}

inline nanobind::bytes toBytes(StringRef data) {
  return nanobind::bytes(data.data(), data.size());
}

inline std::string toString(const nanobind::bytes &data) {
  return std::string(data.c_str(), data.size());
}

/// As tuples (severity, message, filename, line, column, notes).
nanobind::list toPython(const std::vector<DiagnosticRecord> &diagnostics);

} // namespace mlir::kvcache::python

#endif // KVCACHE_PYTHON_CONVERSIONS_H
