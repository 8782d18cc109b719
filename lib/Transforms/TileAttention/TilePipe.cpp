//===- TilePipe.cpp - Tiles that copies bring -----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TilePipe.h"

#include "kvcache/IR/CopyOps.h"
#include "kvcache/IR/PipeOps.h"
#include "kvcache/IR/TileOps.h"
#include "kvcache/Support/Loops.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

void kvcache::emitAsyncFence(const Frame &frame) {
  NVVM::FenceProxyOp::create(
      frame.builder, frame.loc, NVVM::ProxyKind::async_shared,
      NVVM::SharedSpaceAttr::get(frame.builder.getContext(),
                                 NVVM::SharedSpace::shared_cta));
}

void TilePipe::allocate(ArrayRef<Type> types) {
  pipe = PipeOp::create(
      frame.builder, frame.loc,
      PipeType::get(frame.builder.getContext(), stages, types, producers));
}

/// Creates the block of a region that has the tiles of a pipe.
static Block *createPipeBody(const Frame &frame, Region &region, Value pipe) {
  ArrayRef<Type> types = cast<PipeType>(pipe.getType()).getTiles();
  SmallVector<Location> locs(types.size(), frame.loc);
  return frame.builder.createBlock(&region, {}, types, locs);
}

void TilePipe::copyField(Value from, Value target,
                         const TileTokens &source) const {
  OpBuilder &builder = frame.builder;
  const TiledTokens &tokens = source.tokens;
  if (tokens.ids)
    AsyncGatherTileOp::create(
        builder, frame.loc, from, tokens.head, frame.index(0),
        tokens.ids->getMemory(source.tile), target,
        /*descriptor=*/Value(), CopyKindAttr(), shape.hint);
  else
    AsyncLoadTileOp::create(
        builder, frame.loc, from, tokens.batch, tokens.head, source.first,
        frame.index(0), frame.sub(tokens.all.to, source.first), target,
        /*descriptor=*/Value(), /*zeros=*/Value(),
        builder.getI64IntegerAttr(tokens.alignment), CopyKindAttr(),
        /*multicast=*/false, shape.hint);
}

void TilePipe::copy(Value use, const TileTokens &tokens) const {
  if (!pipe)
    return;
  auto produce = ProduceOp::create(frame.builder, frame.loc, pipe, use);
  OpBuilder::InsertionGuard guard(frame.builder);
  Block *body = createPipeBody(frame, produce.getBody(), pipe);
  for (auto [field, target] :
       llvm::zip_equal(shape.getFields(), body->getArguments()))
    copyField(field.cache, target, tokens);
  YieldOp::create(frame.builder, frame.loc);
}

SmallVector<Value>
TilePipe::use(Value number, TypeRange types,
              function_ref<SmallVector<Value>(ValueRange)> body) const {
  auto consume =
      ConsumeOp::create(frame.builder, frame.loc, types, pipe, number);
  OpBuilder::InsertionGuard guard(frame.builder);
  Block *block = createPipeBody(frame, consume.getBody(), pipe);
  YieldOp::create(frame.builder, frame.loc, body(block->getArguments()));
  return SmallVector<Value>(consume.getResults());
}

//===----------------------------------------------------------------------===//
// Tokens that are not seen
//===----------------------------------------------------------------------===//

// One tile of a thread block needs it: few instructions matter.
void TilePipe::clearRows(Value thread, int64_t threads, Value copiedTile,
                         Value rows) const {
  constexpr int64_t unitBits = 128;
  OpBuilder &builder = frame.builder;
  auto type = cast<TileType>(copiedTile.getType());
  Type element = type.getElementType();
  int64_t width = unitBits / element.getIntOrFloatBitWidth();
  int64_t units = type.getColumns() / width;
  auto vector = VectorType::get(width, element);
  Value zeros = arith::ConstantOp::create(builder, frame.loc,
                                          builder.getZeroAttr(vector));
  auto loop = scf::ForOp::create(builder, frame.loc, thread,
                                 frame.mul(rows, units), frame.index(threads));
  disableUnrolling(loop);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value number = loop.getInductionVar();
  TileStoreOp::create(builder, frame.loc, zeros, copiedTile,
                      frame.div(number, units),
                      frame.mul(frame.rem(number, units), width));
}

void TilePipe::clearUnseen(Value thread, int64_t threads,
                           ValueRange copiedTiles, Value firstToken,
                           const TiledTokens &tokens,
                           function_ref<void()> sync) const {
  Value rows = frame.sub(tokens.begin, firstToken);
  frame.runIf(frame.less(frame.index(0), rows), [&] {
    for (Value copiedTile : copiedTiles)
      clearRows(thread, threads, copiedTile, rows);
    // Products of whole tiles, and the next copy, are of another proxy.
    if (frame.target.has(Feature::TMA))
      emitAsyncFence(frame);
    sync();
  });
}
