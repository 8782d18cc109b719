//===- TensorMaps.cpp - Descriptors as calls of the C ABI -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceCalls.h"
#include "kvcache/Support/Pointers.h"
#include "kvcache/TMA/Swizzle.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Returns the span of a swizzle in the encoding of the C ABI.
static int64_t getSwizzleBytes(Swizzle swizzle) {
  return swizzle == Swizzle::None
             ? 0
             : tma::getSpan(static_cast<tma::Swizzle>(swizzle));
}

/// Creates the `KVCacheTensorMap`.
static Value createMap(OpBuilder &builder, EncodeTensorMapOp op,
                       DeviceCalls &device) {
  Location loc = op.getLoc();
  TMATileType type = op.getDescriptor().getType();
  Type i32 = device.i32, i64 = device.i64;
  Type sides = LLVM::LLVMArrayType::get(i64, 5);
  FieldBuilder fields(
      builder, loc,
      {device.pointerType, sides, sides, sides, i64, i32, i32, i32, i32});
  fields.set(getHostPointer(builder, loc, op.getBase()), 0);
  for (auto [index, size] : llvm::enumerate(op.getSizes()))
    fields.set(toI64(builder, loc, size), {1, static_cast<int64_t>(index)});
  fields.set(1, i64, {2, 0});
  for (auto [index, stride] : llvm::enumerate(op.getStrides()))
    fields.set(toI64(builder, loc, stride),
               {2, static_cast<int64_t>(index + 1)});
  for (auto [index, side] : llvm::enumerate(type.getBox()))
    fields.set(side, i64, {3, static_cast<int64_t>(index)});
  fields.set(op.getOffset(), i64, 4);
  fields.set(type.getBox().size(), i32, 5);
  fields.set(type.getElementBytes(), i32, 6);
  fields.set(getSwizzleBytes(type.getSwizzle()), i32, 7);
  fields.set(type.getL2Promotion(), i32, 8);
  return device.createSlot(builder, loc, fields.get());
}

std::pair<Value, Value> kvcache::encodeTensorMap(OpBuilder &builder,
                                                 EncodeTensorMapOp op,
                                                 DeviceCalls &device) {
  Location loc = op.getLoc();
  Value map = createMap(builder, op, device);
  Value slot =
      device.createSlot(builder, loc, getDescriptorBytesType(op.getContext()),
                        kDescriptorAlignment);
  Value status = device.runtime.call(builder, loc, "kvcacheTensorMapEncode",
                                     device.i32, {map, slot});
  return {status, slot};
}

void kvcache::lowerTensorMap(EncodeTensorMapOp op, DeviceCalls &device) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  auto [status, slot] = encodeTensorMap(builder, op, device);
  device.check(builder, loc, status, "descriptor");
  op.getDescriptor().replaceAllUsesWith(LLVM::LoadOp::create(
      builder, loc, getDescriptorBytesType(op.getContext()), slot,
      kDescriptorAlignment));
  op.erase();
}
