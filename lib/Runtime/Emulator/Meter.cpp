//===- Meter.cpp - What kernels ask of memory -----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Meter.h"
#include "kvcache/Runtime/Emulator.h"

using namespace mlir::kvcache::emulator;

void Meter::begin(bool on, const Block &) { isOn = on; }
void Meter::end() {}
void Meter::accessGlobal(const Thread &, const KVCacheSite *, uint64_t, int64_t,
                         uint32_t) {}
void Meter::accessShared(const Thread &, const KVCacheSite *, uint32_t, int64_t,
                         uint32_t) {}
void Meter::accessMatrixRow(const Thread &, const KVCacheSite *, uint32_t,
                            uint32_t, uint32_t) {}
void Meter::copy(CopyKind, int64_t, int64_t) {}
void Meter::copyGlobal(uint64_t, int64_t, bool) {}
void Meter::completePhase(uint32_t, int64_t) {}

const char *kvcacheEmulatorTakeMeter() { return "[]"; }
