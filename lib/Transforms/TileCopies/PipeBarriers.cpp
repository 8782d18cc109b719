//===- PipeBarriers.cpp - Barriers of the slots of a pipe -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PipeBarriers.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::kvcache;

void PipeBarriers::create(KernelSetup &setup, bool isCluster, Count arrivals,
                          Count releases) {
  isOfCluster = isCluster;
  barriers = setup.createBarriers(2 * stages);
  if (isOfCluster)
    setup.meetInCluster();
  for (int64_t stage = 0; stage < stages; ++stage)
    setup.initialize(barriers, stage, arrivals);
  for (int64_t stage = 0; stage < stages; ++stage)
    setup.initialize(barriers, stages + stage, releases);
}

Value PipeBarriers::getSlot(const IndexBuilder &b, Value index) const {
  return b.rem(index, b.index(stages));
}

Barrier PipeBarriers::getFull(const IndexBuilder &b, Value index) const {
  return {barriers, getSlot(b, index)};
}

Barrier PipeBarriers::getEmpty(const IndexBuilder &b, Value index) const {
  return {barriers, b.add(getSlot(b, index), b.index(stages))};
}

Value PipeBarriers::getParity(const IndexBuilder &b, Value index,
                              int64_t ahead) const {
  Value round = b.div(index, b.index(stages));
  return b.toI32(b.rem(b.add(round, b.index(ahead)), b.index(2)));
}

void PipeBarriers::waitUntilFull(const IndexBuilder &b, Value index) const {
  emitWait(b, getFull(b, index), getParity(b, index, 0), *chip);
}

// The first round finds barriers in their first phase: the one before it, of
// the other parity, counts as complete.
void PipeBarriers::waitUntilEmpty(const IndexBuilder &b, Value index) const {
  std::optional<int64_t> known = getConstantIntValue(index);
  if (known && *known >= 0 && *known < stages)
    return;
  emitWait(b, getEmpty(b, index), getParity(b, index, 1), *chip, isOfCluster);
}
