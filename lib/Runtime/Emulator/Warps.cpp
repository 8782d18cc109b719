//===- Warps.cpp - Threads of a warp that meet ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Warps.h"
#include "Block.h"

using namespace mlir::kvcache::emulator;

void Warps::begin() {}
void Warps::noteExit(Thread &) {}
