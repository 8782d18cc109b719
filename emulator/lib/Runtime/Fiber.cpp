//===- Fiber.cpp - Stacks to switch between -------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fiber.h"
#include "AddressSanitizer.h"

#include <boost/context/detail/fcontext.hpp>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

#ifdef KVCACHE_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#else
// AddressSanitizer's hooks, for builds without it.
static void __asan_unpoison_memory_region(const void *, size_t) {}
static void __sanitizer_start_switch_fiber(void **, const void *, size_t) {}
static void __sanitizer_finish_switch_fiber(void *, const void **, size_t *) {}
#endif

using namespace mlir::kvcache::emulator;
namespace context = boost::context::detail;

static size_t roundUp(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

Fiber::Fiber(size_t stackBytes, size_t number) {
  constexpr size_t step = 5 * 64;
  bytes = roundUp(stackBytes + kMaxShift, sysconf(_SC_PAGESIZE)) + kGuardBytes;
  shift = number * step % kMaxShift;
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
  // Frames that were left without unwinding are no frames any more.
  __asan_unpoison_memory_region(lowest + kGuardBytes, bytes - kGuardBytes);
  context = context::make_fcontext(
      lowest + bytes - shift, bytes - shift, [](context::transfer_t transfer) {
        Fiber &fiber = *static_cast<Fiber *>(transfer.data);
        Place &caller = fiber.caller;
        __sanitizer_finish_switch_fiber(nullptr, &caller.lowest, &caller.bytes);
        caller.context = transfer.fctx;
        fiber.function(fiber.argument);
      });
}

void Fiber::resume() {
  Place place{context, lowest, bytes};
  // Another fiber may be the one that suspends.
  Fiber *from = jump(place);
  from->context = place.context;
}

void Fiber::suspend() { comeBackFrom(caller); }

void Fiber::switchTo(Fiber &other) {
  other.caller = caller;
  comeBackFrom({other.context, other.lowest, other.bytes});
}

Fiber *Fiber::jump(Place &place) {
  __sanitizer_start_switch_fiber(nullptr, place.lowest, place.bytes);
  context::transfer_t transfer = context::jump_fcontext(place.context, this);
  __sanitizer_finish_switch_fiber(nullptr, &place.lowest, &place.bytes);
  place.context = transfer.fctx;
  return static_cast<Fiber *>(transfer.data);
}

void Fiber::comeBackFrom(Place place) {
  Fiber *from = jump(place);
  if (from == this)
    caller = place;
  else
    from->context = place.context;
}
