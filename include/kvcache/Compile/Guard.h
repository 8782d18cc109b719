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

/// Runs `body` in a new thread and waits for it. LLVM's back ends end the
/// process on a fatal error, such as "Cannot select". Here, the thread, and one
/// of its back end, stop forever instead and keep their resources, and the
/// function returns LLVM's message. `body` should own the objects that it uses.
std::optional<std::string> runGuarded(std::function<void()> body);

/// Runs a compilation in this way. LLVM's message becomes a diagnostic of the
/// result.
template <typename Result> Result runGuarded(std::function<Result()> compile) {
  auto result = std::make_shared<Result>();
  std::optional<std::string> fatalError = runGuarded(
      [result, compile = std::move(compile)] { *result = compile(); });
  if (!fatalError)
    return std::move(*result);
  Result failed;
  failed.diagnostics.push_back(DiagnosticRecord::makeError(*fatalError));
  return failed;
}

} // namespace mlir::kvcache

#endif // KVCACHE_COMPILE_GUARD_H
