//===- InstructionDescriptor.cpp - Products of tcgen05 --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/TMA/InstructionDescriptor.h"

using namespace mlir::kvcache::tma;

uint32_t InstructionDescriptor::encode() const {
  constexpr uint32_t kRowsUnit = 16, kColumnsUnit = 8;
  return uint32_t{d} << 4 | uint32_t{a} << 7 | uint32_t{b} << 10 |
         uint32_t{majorA == Major::MN} << 15 |
         uint32_t{majorB == Major::MN} << 16 | n / kColumnsUnit << 17 |
         m / kRowsUnit << 24;
}
