//===- BackEndThreads.cpp - Threads of LLVM's back end --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BackEndThreads.h"

#include "kvcache/Target/BackEndErrors.h"

#include "llvm/Support/Threading.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

using namespace mlir;

void kvcache::runInThreads(size_t count, llvm::function_ref<void(size_t)> job) {
  std::atomic<size_t> next = 0, running = 0;
  const FatalErrorHandler *outer = getFatalErrorHandler();
  // A thread with a fatal error never returns. Its message may end the
  // process, so others end first.
  FatalErrorHandler handler = [&](std::string message) {
    next = count;
    --running;
    while (running)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    (*outer)(std::move(message));
  };
  auto runJobs = [&] {
    std::optional<FatalErrorScope> scope;
    if (outer)
      scope.emplace(handler);
    ++running;
    for (size_t number = next++; number < count; number = next++)
      job(number);
    --running;
  };
  size_t cores = llvm::hardware_concurrency().compute_thread_count();
  std::vector<std::thread> threads;
  for (size_t number = 1; number < std::min(count, cores); ++number)
    threads.emplace_back(runJobs);
  runJobs();
  for (std::thread &thread : threads)
    thread.join();
}
