//===- RegionAxes.cpp - What the values of a region depend on -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Support/RegionAxes.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::kvcache;

SetVector<Value> kvcache::getUsedValues(Operation *op) {
  SetVector<Value> used(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), used);
  return used;
}

RegionAxes::RegionAxes(Region &region, ArrayRef<Axes> arguments)
    : body(region.front()) {
  for (auto [argument, own] : llvm::zip_equal(region.getArguments(), arguments))
    axes[argument] = own;
  for (Operation &op : body.without_terminator()) {
    Axes all;
    for (Value value : getUsedValues(&op))
      all = all | get(value);
    for (Value result : op.getResults())
      axes[result] = all;
  }
}

bool RegionAxes::isBound(bool Axes::*axis) const {
  return llvm::any_of(body.without_terminator(), [&](Operation &op) {
    return op.getNumResults() && get(op.getResult(0)).*axis && !isPure(&op);
  });
}
