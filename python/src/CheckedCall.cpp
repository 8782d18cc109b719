//===- CheckedCall.cpp - Calls that a run-time check may stop -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CheckedCall.h"
#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

using namespace mlir::kvcache;

namespace {
/// Where a failed check of this thread returns to. The frames between hold no
/// C++ objects: they are compiled code.
struct CheckFrame {
  std::jmp_buf environment;
  /// Long enough for a deadlock's: a line for each group of threads.
  char message[8192];
};
} // namespace

static thread_local CheckFrame *currentFrame = nullptr;

/// Apart from its caller, so that no object lives across `setjmp`.
static bool runToEnd(CheckFrame &frame, void (*entry)(void **),
                     void **operands) {
  if (setjmp(frame.environment))
    return false;
  entry(operands);
  return true;
}

std::optional<std::string> python::callChecked(void (*entry)(void **),
                                               void **operands) {
  CheckFrame frame;
  CheckFrame *outer = currentFrame;
  currentFrame = &frame;
  bool ended = runToEnd(frame, entry, operands);
  currentFrame = outer;
  if (ended)
    return std::nullopt;
  return std::string(frame.message);
}

/// Formats the message and returns to `callChecked`.
[[noreturn]] __attribute__((format(printf, 1, 2))) static void
stop(const char *format, ...) {
  va_list values;
  va_start(values, format);
  // A thread that compiled code started by itself has nowhere to return to.
  if (!currentFrame) {
    std::vfprintf(stderr, format, values);
    std::abort();
  }
  std::vsnprintf(currentFrame->message, sizeof(currentFrame->message), format,
                 values);
  va_end(values);
  std::longjmp(currentFrame->environment, 1);
}

void python::checkFailed(const char *format, int64_t value, int64_t bound) {
  stop(format, static_cast<long long>(value), static_cast<long long>(bound));
}

void python::deviceFailed(const char *where, const char *message) {
  stop("%s: %s", where, message);
}
