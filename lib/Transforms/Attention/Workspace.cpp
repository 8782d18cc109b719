//===- Workspace.cpp - The splits of rows in memory -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Workspace.h"

#include "../Builders/Heads.h"
#include "kvcache/IR/CheckOps.h"
#include "kvcache/Support/Pointers.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kvcache;

Workspace::Workspace(const Frame &frame, Value memory, Value slots,
                     const WorkspaceShape &shape)
    : frame(frame), builder(frame.builder), loc(frame.loc), shape(shape) {
  // The counter comes first: ops of other shapes have it in the same place.
  // Vectors of accumulators are aligned after it.
  counter = memref::ViewOp::create(builder, loc,
                                   MemRefType::get({1}, builder.getI32Type()),
                                   memory, frame.index(0), ValueRange());
  Value begin = frame.index(WorkspaceShape::kSchedulerBytes);
  Value splits = frame.mul(slots, shape.splits);
  auto view = [&](Value count, ArrayRef<int64_t> sizes, Type element) -> Value {
    SmallVector<int64_t> all{ShapedType::kDynamic};
    all.append(sizes.begin(), sizes.end());
    Value array = memref::ViewOp::create(
        builder, loc, MemRefType::get(all, element), memory, begin, count);
    begin = frame.add(begin,
                      frame.mul(count, 4 * ShapedType::getNumElements(sizes)));
    return array;
  };
  Type f32 = builder.getF32Type();
  accs = view(splits, {shape.heads, shape.elements}, f32);
  states = view(splits, {shape.heads, 2}, f32);
}

void Workspace::check(const Frame &frame, Value memory, Value slots,
                      const WorkspaceShape &shape) {
  if (!frame.hasChecks)
    return;
  Value bytes = frame.add(frame.mul(slots, shape.getSlotBytes()),
                          frame.index(WorkspaceShape::kSchedulerBytes));
  CheckOp::create(frame.builder, frame.loc, bytes,
                  frame.add(frame.dim(memory, 0), frame.index(1)),
                  "number of bytes that attention needs of 'workspace'");
}

Value Workspace::getSplit(Value slot, Value split) const {
  return frame.add(frame.mul(slot, shape.splits), split);
}

Value Workspace::loadAcc(Value split, Value head, Value d,
                         int64_t count) const {
  return loadDense(frame, accs, {split, head}, d, count);
}

void Workspace::storeAcc(Value values, Value split, Value head, Value d) const {
  storeDense(frame, values, accs, {split, head}, d);
}

std::pair<Value, Value> Workspace::loadState(Value split, Value head) const {
  auto load = [&](int64_t i) -> Value {
    return memref::LoadOp::create(builder, loc, states,
                                  ValueRange{split, head, frame.index(i)});
  };
  return {load(0), load(1)};
}

void Workspace::storeState(Value rowMax, Value rowSum, Value split,
                           Value head) const {
  auto store = [&](Value value, int64_t i) {
    memref::StoreOp::create(builder, loc, value, states,
                            ValueRange{split, head, frame.index(i)});
  };
  store(rowMax, 0);
  store(rowSum, 1);
}

Value Workspace::takeItem() const {
  // Work items have no order, so nothing else needs one either.
  return LLVM::AtomicRMWOp::create(builder, loc, LLVM::AtomicBinOp::add,
                                   getGlobalPointer(builder, loc, counter),
                                   frame.i32(1),
                                   LLVM::AtomicOrdering::monotonic, "device");
}

void Workspace::clearItems() const {
  // Atomic, as the updates are.
  LLVM::StoreOp::create(builder, loc, frame.i32(0),
                        getGlobalPointer(builder, loc, counter),
                        /*alignment=*/4, /*isVolatile=*/false,
                        /*isNonTemporal=*/false, /*isInvariantGroup=*/false,
                        LLVM::AtomicOrdering::monotonic, "device");
}

void kvcache::expand(WorkspaceSizeOp op, const Frame &frame) {
  Value slots = frame.mul(op.getBatch(), op.getShape().getBytes());
  op.replaceAllUsesWith(
      frame.add(slots, frame.index(WorkspaceShape::kSchedulerBytes)));
}
