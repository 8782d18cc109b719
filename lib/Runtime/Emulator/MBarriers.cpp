//===- MBarriers.cpp - mbarriers of a block -------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MBarriers.h"
#include "Block.h"

using namespace mlir::kvcache::emulator;

void MBarriers::begin() {}
void MBarriers::end() {}
