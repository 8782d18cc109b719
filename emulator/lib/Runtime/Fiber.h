//===- Fiber.h - Stacks to switch between -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_FIBER_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_FIBER_H

#include <cstddef>
#include <memory>
#include <vector>

namespace mlir::kvcache::emulator {

/// A stack that runs a function until that switches back.
class Fiber {
public:
  using Function = void (*)(void *argument);

  /// Fibers that switch to one another have different numbers.
  explicit Fiber(size_t bytes, size_t number = 0);
  ~Fiber();
  Fiber(const Fiber &) = delete;
  Fiber &operator=(const Fiber &) = delete;

  /// Whatever ran here is forgotten, without unwinding: compiled kernels own
  /// nothing. The function must not return.
  void start(Function function, void *argument);

  /// Runs until the fiber switches back, or one that it has switched to.
  void resume();

  /// On the fiber: goes on after `resume`.
  void suspend();

  /// On the fiber: goes on where `other` was suspended, which switches back to
  /// where this one would.
  void switchTo(Fiber &other);

  bool contains(const void *pointer) const {
    return pointer >= lowest && pointer < lowest + bytes;
  }

  /// The bytes of the stack below an address in it.
  size_t getRoom(const void *address) const {
    return static_cast<const char *>(address) - (lowest + kGuardBytes);
  }

private:
  /// Where to go on, and the stack that this is in.
  struct Place {
    void *context = nullptr;
    const void *lowest = nullptr;
    size_t bytes = 0;
  };

  /// Goes on at `place` until something goes on here. Returns the fiber that
  /// did so or was asked to, and leaves in `place` where that one goes on.
  Fiber *jump(Place &place);
  void comeBackFrom(Place place);

  /// More than a frame that doesn't touch all of its pages in order.
  static constexpr size_t kGuardBytes = 256 << 10;
  /// A cache has few lines for addresses that are equal modulo this: stacks
  /// that all began there would drive one another out.
  static constexpr size_t kMaxShift = 4096;

  char *lowest = nullptr;
  size_t bytes = 0;
  /// The bytes between the first frame and the end of the stack.
  size_t shift = 0;
  void *context = nullptr;
  Place caller;
  Function function = nullptr;
  void *argument = nullptr;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_FIBER_H
