//===- CheckInstructions.cpp - Reject what a chip lacks -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Target/Chip.h"
#include "kvcache/Target/Instructions.h"
#include "kvcache/Target/Passes.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_CHECKINSTRUCTIONS
#include "kvcache/Target/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

struct CheckInstructions
    : kvcache::impl::CheckInstructionsBase<CheckInstructions> {
  void runOnOperation() override {
    const Chip *chip = getTargetChip(getOperation());
    if (chip && failed(checkInstructions(getOperation(), *chip)))
      signalPassFailure();
  }
};

} // namespace
