//===- BlockArray.cpp - Numbers in the memory of a block ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockArray.h"

#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::kvcache;

BlockArray::BlockArray(const Frame &frame, int64_t size)
    : frame(frame), size(llvm::alignTo(size, 4)) {
  auto type = TileType::get(frame.builder.getContext(), /*rows=*/1, this->size,
                            frame.builder.getI32Type(), Swizzle::None);
  tile = AllocTileOp::create(frame.builder, frame.loc, type, IntegerAttr());
}

Value BlockArray::load(Value place) const {
  return TileLoadOp::create(frame.builder, frame.loc,
                            frame.builder.getI32Type(), tile, frame.index(0),
                            place);
}

void BlockArray::store(Value number, Value place) const {
  TileStoreOp::create(frame.builder, frame.loc, number, tile, frame.index(0),
                      place);
}

void BlockArray::increment(Value place) const {
  OpBuilder &builder = frame.builder;
  Location loc = frame.loc;
  if (!frame.isGPU)
    return store(frame.add(load(place), frame.i32(1)), place);
  auto space = gpu::AddressSpaceAttr::get(builder.getContext(),
                                          gpu::AddressSpace::Workgroup);
  auto getType = [&](int64_t count, Type element) {
    return MemRefType::get({count}, element, MemRefLayoutAttrInterface(),
                           space);
  };
  Value bytes = TileMemoryOp::create(
      builder, loc, getType(4 * size, builder.getI8Type()), tile);
  Value numbers =
      memref::ViewOp::create(builder, loc, getType(size, builder.getI32Type()),
                             bytes, frame.index(0), ValueRange());
  memref::AtomicRMWOp::create(builder, loc, arith::AtomicRMWKind::addi,
                              frame.i32(1), numbers, place);
}
