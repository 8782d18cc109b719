//===- Findings.h - What ends a child ---------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TEST_FUZZ_MUTATE_FINDINGS_H
#define KVCACHE_TEST_FUZZ_MUTATE_FINDINGS_H

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

#include <atomic>
#include <string>
#include <vector>

namespace mlir::kvcache::fuzz {

/// The state that parent and child share: the current mutant, and the way it
/// ended.
struct Progress {
  static constexpr size_t kTextBytes = 1 << 20, kNoteBytes = 4096;

  static Progress &share();

  void begin() {
    text[0] = passes[0] = note[0] = '\0';
    stage = "mutation";
  }
  static void copy(char *to, size_t size, llvm::StringRef from);

  std::atomic<uint64_t> number, parsed, passed;
  /// A constant string.
  const char *stage = "start";
  char passes[kNoteBytes], note[kNoteBytes], text[kTextBytes];
};

/// The stage in which a text is parsed and not verified.
inline constexpr llvm::StringLiteral kSyntax = "syntax";

/// Codes that a child exits with.
enum ExitCode { FatalError = 77, Silent = 78, Invalid = 79 };

std::string describeExit(int code, const Progress &progress);

/// Makes signals and LLVM's fatal errors leave a note.
void installHandlers(Progress &progress);
/// Leaves signals and fatal errors of this process to the system.
void dropHandlers();

/// A file for each kind of finding, in a folder.
class Findings {
public:
  /// `known` are parts of what findings say that are not to be reported.
  Findings(std::string folder, uint64_t seed, std::vector<std::string> known)
      : folder(std::move(folder)), seed(seed), known(std::move(known)) {}

  void add(llvm::StringRef reason, const Progress &progress);
  size_t size() const { return kinds.size(); }
  size_t getNumKnown() const { return numKnown; }

private:
  std::string folder;
  uint64_t seed;
  std::vector<std::string> known;
  size_t numKnown = 0;
  llvm::StringMap<unsigned> kinds;
};

} // namespace mlir::kvcache::fuzz

#endif // KVCACHE_TEST_FUZZ_MUTATE_FINDINGS_H
