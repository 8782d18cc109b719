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
#include <optional>
#include <thread>
#include <vector>

using namespace mlir;

void kvcache::runInThreads(size_t count, llvm::function_ref<void(size_t)> job) {
  std::atomic<size_t> next = 0;
  auto runJobs = [&] {
    for (size_t number = next++; number < count; number = next++)
      job(number);
  };
  size_t cores = llvm::hardware_concurrency().compute_thread_count();
  const FatalErrorHandler *handler = getFatalErrorHandler();
  std::vector<std::thread> threads;
  for (size_t number = 1; number < std::min(count, cores); ++number)
    threads.emplace_back([&] {
      std::optional<FatalErrorScope> scope;
      if (handler)
        scope.emplace(*handler);
      runJobs();
    });
  runJobs();
  for (std::thread &thread : threads)
    thread.join();
}
