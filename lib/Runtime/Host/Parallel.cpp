//===- Parallel.cpp - Loops of compiled code on several threads -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Call.h"
#include "kvcache/Runtime/Host.h"

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <cstring>
#include <dlfcn.h>
#include <mutex>
#include <pthread.h>

using namespace mlir::kvcache::runtime;

namespace {

using Body = void (*)(void *context, int64_t begin, int64_t end);
/// GCC's entry to a team of threads, which the OpenMP libraries of LLVM and
/// Intel have as well. Calls `function` in each thread, and waits.
using StartTeam = void (*)(void (*function)(void *), void *data,
                           unsigned threads, unsigned flags);

/// Parts of a loop for each of its threads: some may be slower.
constexpr int64_t kPartsPerThread = 8;

/// The message of a failed check.
using Message = char[sizeof(CheckFrame::message)];

/// The state that the threads of a loop share.
struct Loop {
  Body body;
  void *context;
  /// All of them, and those of a part.
  int64_t iterations, step;
  /// The beginning of the first part that no thread has taken.
  std::atomic<int64_t> next{0};
  /// Where the first part with a failed check begins, or `iterations`.
  std::atomic<int64_t> failed{iterations};
  std::mutex mutex;
  Message &message;
  /// The caller's, so that all threads round alike.
  std::fenv_t environment = {};
};

/// The entry to OpenMP; null if there is no library of it.
class OpenMP {
public:
  static const OpenMP &get() {
    static const OpenMP library;
    return library;
  }

  bool isFound() const { return entry; }
  /// Null if there is no library, and in a process that was forked from one
  /// whose threads it does not have.
  StartTeam startTeam() const { return isForked ? nullptr : entry; }

private:
  OpenMP();

  StartTeam entry;
  static std::atomic<bool> isForked;
};

} // namespace

std::atomic<bool> OpenMP::isForked{false};

OpenMP::OpenMP() {
  constexpr const char *name = "GOMP_parallel";
  void *found = dlsym(RTLD_DEFAULT, name);
  for (const char *library :
       {"libgomp.so.1", "libomp.so", "libomp.so.5", "libiomp5.so"}) {
    if (found)
      break;
    if (void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL))
      found = dlsym(handle, name);
  }
  entry = reinterpret_cast<StartTeam>(found);
  pthread_atfork(nullptr, nullptr, [] { isForked = true; });
}

/// False if a check failed. Apart from its caller, so that no object lives
/// across `setjmp`.
static bool runPart(CheckFrame &frame, const Loop &loop, int64_t begin) {
  if (setjmp(frame.environment))
    return false;
  loop.body(loop.context, begin, std::min(begin + loop.step, loop.iterations));
  return true;
}

/// Takes parts until there are none before a failed check: what fails first in
/// the loop's order is the same with any number of threads.
static void runParts(void *data) {
  auto &loop = *static_cast<Loop *>(data);
  std::fenv_t own;
  std::fegetenv(&own);
  std::fesetenv(&loop.environment);
  int64_t begin;
  while ((begin = loop.next.fetch_add(loop.step)) < loop.failed) {
    CheckFrame frame;
    enter(frame);
    bool ended = runPart(frame, loop, begin);
    leave(frame);
    if (ended)
      continue;
    frame.freeMemory();
    std::lock_guard<std::mutex> lock(loop.mutex);
    if (begin < loop.failed) {
      loop.failed = begin;
      std::memcpy(loop.message, frame.message, sizeof(Message));
    }
  }
  std::fesetenv(&own);
}

/// False if a check failed.
static bool runOnTeam(StartTeam startTeam, int64_t iterations, unsigned threads,
                      Body body, void *context, Message &message) {
  int64_t parts = threads * kPartsPerThread;
  Loop loop{.body = body,
            .context = context,
            .iterations = iterations,
            .step = iterations / parts + (iterations % parts != 0),
            .message = message};
  std::fegetenv(&loop.environment);
  startTeam(runParts, &loop, threads, /*flags=*/0);
  return loop.failed == iterations;
}

extern "C" int32_t kvcacheHasThreads() { return OpenMP::get().isFound(); }

extern "C" void kvcacheParallelFor(int64_t iterations, int32_t threads,
                                   Body body, void *context) {
  auto team = static_cast<unsigned>(
      std::clamp<int64_t>(iterations, 0, std::max(threads, 1)));
  StartTeam startTeam = team > 1 ? OpenMP::get().startTeam() : nullptr;
  if (!startTeam)
    return body(context, 0, iterations);
  Message message;
  if (!runOnTeam(startTeam, iterations, team, body, context, message))
    stop("%s", message);
}
