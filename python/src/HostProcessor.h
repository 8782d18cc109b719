//===- HostProcessor.h - The processor that code is made for ----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PYTHON_HOSTPROCESSOR_H
#define KVCACHE_PYTHON_HOSTPROCESSOR_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <utility>
#include <vector>

namespace mlir::kvcache::python {

/// A level of processors: a row of CPULevels.def.
struct CPULevel {
  StringRef name;
  /// LLVM's name of the processor, and features besides, separated by commas.
  StringRef cpu, features;
  unsigned vectorBits;
  bool hasFMA;
  /// The matrix instructions of loops: "fma" if none.
  StringRef mma;

  llvm::SmallVector<StringRef> splitFeatures() const;
};

/// The levels of this architecture, from the lowest on.
ArrayRef<CPULevel> getCPULevels();

/// Returns the level of this name; null if there is none.
const CPULevel *findCPULevel(StringRef name);

/// The processor of this process.
struct HostProcessor {
  /// LLVM's name, which only chooses costs of instructions.
  std::string name;
  /// Every feature of LLVM, and whether code may use it: cpuid and XCR0 have
  /// it, and so does the level that KVCACHE_CPU names.
  std::vector<std::pair<std::string, bool>> features;

  /// Joins the features in use, each after a plus.
  std::string joinFeatures() const;
};

/// Fails if KVCACHE_CPU names no level.
llvm::Expected<HostProcessor> detectHostProcessor();

} // namespace mlir::kvcache::python

#endif // KVCACHE_PYTHON_HOSTPROCESSOR_H
