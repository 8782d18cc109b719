//===- Guard.h - Surviving LLVM's fatal errors ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_COMPILE_GUARD_H
#define KVCACHE_COMPILE_GUARD_H

#include "kvcache/Compile/Diagnostics.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace mlir::kvcache {

/// Runs `body` in a thread of its own and waits for it. LLVM's back ends end
/// the process on what they can't compile, "Cannot select" for example; here,
/// the thread stops for good instead, with all that it holds, and LLVM's
/// message is returned. `body` should own what it uses.
std::optional<std::string> runGuarded(std::function<void()> body);

/// The same for a compilation, whose result has diagnostics: LLVM's message
/// becomes one.
template <typename Result> Result runGuarded(std::function<Result()> compile) {
  auto result = std::make_shared<Result>();
  std::optional<std::string> fatalError = runGuarded(
      [result, compile = std::move(compile)] { *result = compile(); });
  if (!fatalError)
    return std::move(*result);
  Result failed;
  failed.diagnostics.push_back(
      DiagnosticRecord::makeError("LLVM can't compile this: " + *fatalError));
  return failed;
}

} // namespace mlir::kvcache

#endif // KVCACHE_COMPILE_GUARD_H
