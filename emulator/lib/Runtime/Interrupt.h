//===- Interrupt.h - Launches that Ctrl-C ends ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_INTERRUPT_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_INTERRUPT_H

namespace mlir::kvcache::emulator {

/// While any of these lives, a SIGINT ends launches before the handler of the
/// process can say so: that of Python, for one, runs when the launch has ended.
/// A process without a handler ends as always.
class InterruptScope {
public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope &) = delete;
  InterruptScope &operator=(const InterruptScope &) = delete;
};

/// Whether a SIGINT has arrived since the first scope of those that live.
bool isInterrupted();

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_INTERRUPT_H
