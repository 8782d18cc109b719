//===- Guard.cpp - Surviving LLVM's fatal errors --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Compile/Guard.h"

#include "kvcache/Target/BackEndErrors.h"

#include "llvm/Support/ErrorHandling.h"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

using namespace mlir;
using namespace mlir::kvcache;

namespace {
/// The state that a thread shares with the one that waits for it.
struct Job {
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;
  std::optional<std::string> fatalError;

  void end(std::optional<std::string> message) {
    std::lock_guard<std::mutex> lock(mutex);
    // Several threads of a compilation may have errors.
    if (ended)
      return;
    ended = true;
    fatalError = std::move(message);
    changed.notify_one();
  }

  void wait() {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [this] { return ended; });
  }
};
} // namespace

/// LLVM ends the process where this returns.
static void handleFatalError(void *, const char *reason, bool) {
  const FatalErrorHandler *handler = getFatalErrorHandler();
  if (!handler) {
    std::fprintf(stderr, "LLVM ERROR: %s\n", reason);
    return;
  }
  (*handler)(describeFatalError(reason));
  while (true)
    std::this_thread::sleep_for(std::chrono::hours(1));
}

std::optional<std::string> kvcache::runGuarded(std::function<void()> body) {
  static std::once_flag installed;
  std::call_once(installed,
                 [] { llvm::install_fatal_error_handler(handleFatalError); });

  auto job = std::make_shared<Job>();
  std::thread thread([job, body = std::move(body)] {
    FatalErrorHandler end = [&](std::string message) {
      job->end(std::move(message));
    };
    FatalErrorScope scope(end);
    body();
    job->end(std::nullopt);
  });
  job->wait();
  if (job->fatalError)
    thread.detach();
  else
    thread.join();
  return job->fatalError;
}
