//===- Fiber.cpp - Stacks to switch between -------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fiber.h"

#include <boost/context/detail/fcontext.hpp>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir::kvcache::emulator;
namespace context = boost::context::detail;

static size_t roundUp(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

Fiber::Fiber(size_t stackBytes) {
  bytes = roundUp(stackBytes, sysconf(_SC_PAGESIZE)) + kGuardBytes;
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw std::bad_alloc();
  // A stack that overflows must not reach another one.
  if (mprotect(memory, kGuardBytes, PROT_NONE)) {
    munmap(memory, bytes);
    throw std::bad_alloc();
  }
  lowest = static_cast<char *>(memory);
}

Fiber::~Fiber() { munmap(lowest, bytes); }

void Fiber::start(Function newFunction, void *newArgument) {
  function = newFunction;
  argument = newArgument;
  context = context::make_fcontext(
      lowest + bytes, bytes, [](context::transfer_t transfer) {
        Fiber &fiber = *static_cast<Fiber *>(transfer.data);
        fiber.caller = transfer.fctx;
        fiber.function(fiber.argument);
      });
}

void Fiber::resume() {
  // Another fiber may be the one that suspends.
  context::transfer_t transfer = context::jump_fcontext(context, this);
  static_cast<Fiber *>(transfer.data)->context = transfer.fctx;
}

void Fiber::suspend() { comeBack(context::jump_fcontext(caller, this)); }

void Fiber::switchTo(Fiber &other) {
  other.caller = caller;
  comeBack(context::jump_fcontext(other.context, this));
}

template <typename Transfer> void Fiber::comeBack(Transfer transfer) {
  Fiber *from = static_cast<Fiber *>(transfer.data);
  (from == this ? caller : from->context) = transfer.fctx;
}
