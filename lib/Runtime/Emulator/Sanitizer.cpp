//===- Sanitizer.cpp - Checked accesses of shared memory ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sanitizer.h"
#include "Block.h"

using namespace mlir::kvcache::emulator;

void Sanitizer::begin(bool on, uint32_t, uint32_t) { isOn = on; }
void Sanitizer::access(Thread &, const KVCacheSite *, SharedRange, uint32_t) {}
void Sanitizer::release(Thread &, Knowledge &) {}
void Sanitizer::acquire(Thread &, const Knowledge &) {}
void Sanitizer::synchronize(const std::vector<Thread *> &) {}
void Sanitizer::fenceProxy(Thread &) {}
Sanitizer::Copy Sanitizer::issueWrite(Thread &, const KVCacheSite *,
                                      SharedRange, Proxy) {
  return 0;
}
Sanitizer::Copy Sanitizer::issueRead(Thread &, const KVCacheSite *, SharedRange,
                                     Proxy) {
  return 0;
}
void Sanitizer::complete(Copy, Knowledge &) {}
void Sanitizer::complete(Copy, Thread &) {}
void Sanitizer::placeBarrier(Thread &, const KVCacheSite *, uint32_t) {}
void Sanitizer::removeBarrier(Thread &, const KVCacheSite *, uint32_t) {}
void Sanitizer::end() {}
