//===- Interrupt.cpp - Launches that Ctrl-C ends --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interrupt.h"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <mutex>

using namespace mlir::kvcache::emulator;

static std::atomic<bool> hasArrived{false};
static std::mutex scopesMutex;
static uint64_t numScopes = 0;
static bool isInstalled = false;
/// The handler of SIGINT before the launch.
static struct sigaction previous;

static void handle(int signal, siginfo_t *info, void *context) {
  hasArrived.store(true, std::memory_order_relaxed);
  if (previous.sa_flags & SA_SIGINFO)
    previous.sa_sigaction(signal, info, context);
  else
    previous.sa_handler(signal);
}

static bool isOwn(const struct sigaction &action) {
  return (action.sa_flags & SA_SIGINFO) && action.sa_sigaction == handle;
}

InterruptScope::InterruptScope() {
  std::lock_guard<std::mutex> lock(scopesMutex);
  if (numScopes++ > 0)
    return;
  hasArrived.store(false, std::memory_order_relaxed);
  if (sigaction(SIGINT, nullptr, &previous))
    return;
  bool hasHandler =
      (previous.sa_flags & SA_SIGINFO) ||
      (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN);
  if (!hasHandler)
    return;
  struct sigaction own = previous;
  own.sa_flags |= SA_SIGINFO;
  own.sa_sigaction = handle;
  isInstalled = sigaction(SIGINT, &own, nullptr) == 0;
}

InterruptScope::~InterruptScope() {
  std::lock_guard<std::mutex> lock(scopesMutex);
  if (--numScopes > 0 || !isInstalled)
    return;
  isInstalled = false;
  struct sigaction current;
  // Another one may have been set since.
  if (sigaction(SIGINT, nullptr, &current) == 0 && isOwn(current))
    sigaction(SIGINT, &previous, nullptr);
}

bool mlir::kvcache::emulator::isInterrupted() {
  return hasArrived.load(std::memory_order_relaxed);
}
