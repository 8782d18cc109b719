//===- Memory.cpp - Memory of a device by the C ABI -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceCalls.h"
#include "kvcache/Support/Pointers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::kvcache;

static LogicalResult expectPacked(Operation *op, Value memref) {
  auto type = dyn_cast<MemRefType>(memref.getType());
  if (type && type.getLayout().isIdentity())
    return success();
  return op->emitOpError("expects memory without gaps, got ")
         << memref.getType();
}

/// Returns the product of sizes, as an index.
static Value multiply(OpBuilder &builder, Location loc, int64_t first,
                      ValueRange sizes) {
  Value product = arith::ConstantIndexOp::create(builder, loc, first);
  for (Value size : sizes)
    product = arith::MulIOp::create(builder, loc, product, size);
  return product;
}

/// Returns the product of the static sizes.
static int64_t multiplyStatic(MemRefType type) {
  int64_t product = 1;
  for (int64_t size : type.getShape())
    if (!ShapedType::isDynamic(size))
      product *= size;
  return product;
}

/// Returns the size of a packed memref in bytes.
static Value getBytes(OpBuilder &builder, Location loc, Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  SmallVector<Value> open;
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    if (ShapedType::isDynamic(size))
      open.push_back(memref::DimOp::create(builder, loc, memref, dim));
  Value bytes = multiply(builder, loc,
                         multiplyStatic(type) * getElementBytes(memref), open);
  return toI64(builder, loc, bytes);
}

LogicalResult kvcache::lowerAlloc(gpu::AllocOp op, DeviceCalls &device) {
  if (failed(expectPacked(op, op.getMemref())))
    return failure();
  OpBuilder builder(op);
  Location loc = op.getLoc();
  MemRefType type = op.getType();
  Value bytes = multiply(builder, loc,
                         multiplyStatic(type) * getElementBytes(op.getMemref()),
                         op.getDynamicSizes());
  Value slot = device.createSlot(builder, loc, device.pointerType);
  device.call(builder, loc,
              op.getHostShared() ? "kvcacheMemAllocManaged" : "kvcacheMemAlloc",
              {toI64(builder, loc, bytes), slot}, "allocation");
  Value pointer = LLVM::LoadOp::create(builder, loc, device.pointerType, slot);
  Value memref = buildMemRef(builder, loc, type, pointer, op.getDynamicSizes());
  op.getMemref().replaceAllUsesWith(memref);
  device.replaceToken(builder, cast<gpu::AsyncOpInterface>(*op));
  op.erase();
  return success();
}

void kvcache::lowerDealloc(gpu::DeallocOp op, DeviceCalls &device) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  // Free the allocated pointer, also for a memref that is a window.
  auto metadata =
      memref::ExtractStridedMetadataOp::create(builder, loc, op.getMemref());
  Value pointer = getHostPointer(builder, loc, metadata.getBaseBuffer());
  device.call(builder, loc, "kvcacheMemFree", pointer, "deallocation");
  device.replaceToken(builder, cast<gpu::AsyncOpInterface>(*op));
  op.erase();
}

LogicalResult kvcache::lowerMemcpy(gpu::MemcpyOp op, DeviceCalls &device) {
  if (failed(expectPacked(op, op.getDst())) ||
      failed(expectPacked(op, op.getSrc())))
    return failure();
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Value to = getHostPointer(builder, loc, op.getDst());
  Value from = getHostPointer(builder, loc, op.getSrc());
  Value bytes = getBytes(builder, loc, op.getSrc());
  device.call(builder, loc, "kvcacheMemCopy",
              {to, from, bytes, device.getStream(builder, loc)}, "copy");
  device.finish(builder, cast<gpu::AsyncOpInterface>(*op), "copy");
  op.erase();
  return success();
}

/// Returns the i8 of which all bytes of a value are copies, or null.
static Value getRepeatedByte(OpBuilder &builder, Location loc, Value value) {
  Type i8 = builder.getI8Type();
  if (value.getType() == i8)
    return value;
  if (isa<FloatType>(value.getType()) &&
      value.getType().getIntOrFloatBitWidth() == 8)
    return arith::BitcastOp::create(builder, loc, i8, value);
  Attribute constant;
  if (!matchPattern(value, m_Constant(&constant)))
    return {};
  APInt bits;
  if (auto number = dyn_cast<IntegerAttr>(constant))
    bits = number.getValue();
  else if (auto number = dyn_cast<FloatAttr>(constant))
    bits = number.getValue().bitcastToAPInt();
  if (bits.getBitWidth() % 8 != 0 || !bits.isSplat(8))
    return {};
  return arith::ConstantIntOp::create(builder, loc, i8,
                                      bits.extractBitsAsZExtValue(8, 0));
}

LogicalResult kvcache::lowerMemset(gpu::MemsetOp op, DeviceCalls &device) {
  if (failed(expectPacked(op, op.getDst())))
    return failure();
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Value byte = getRepeatedByte(builder, loc, op.getValue());
  if (!byte)
    return op.emitOpError("expects elements of one byte, or a constant whose "
                          "bytes are all the same");
  Value to = getHostPointer(builder, loc, op.getDst());
  Value bytes = getBytes(builder, loc, op.getDst());
  device.call(builder, loc, "kvcacheMemSet",
              {to, byte, bytes, device.getStream(builder, loc)}, "memset");
  device.finish(builder, cast<gpu::AsyncOpInterface>(*op), "memset");
  op.erase();
  return success();
}

void kvcache::lowerWait(gpu::WaitOp op, DeviceCalls &device) {
  OpBuilder builder(op);
  // Without dependencies, no wait is needed.
  if (op.getAsyncToken() || !op.getAsyncDependencies().empty())
    device.finish(builder, cast<gpu::AsyncOpInterface>(*op), "wait");
  op.erase();
}
