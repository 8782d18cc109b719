//===- RolesKernel.cpp - Prompts by warps with roles ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RolesKernel.h"

#include "../PlanAttention/ThreadRegisters.h"
#include "QueryStage.h"
#include "RoleSoftmax.h"
#include "TilePipe.h"
#include "TiledCache.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// A block computes 256 query rows: some tokens of a sequence, for some heads
/// of a group each. They are two query tiles. One warp copies tiles of keys and
/// values, and one starts the products of both query tiles. A warpgroup for
/// each query tile computes the softmax of a row in each thread.
class RolesKernel {
public:
  RolesKernel(AttentionOp op, const Frame &frame, const AttentionConfig &config)
      : frame(frame), kernel(op, frame, config), block(kernel),
        b(frame.builder, frame.loc),
        keys(frame, op, op.getKeyCache(), block.getSizes().keySize, config),
        values(frame, op, op.getValues(), block.getSizes().valueSize, config),
        tensors(this->frame, *config.keys, block.getSizes().valueSize,
                values.getLane()),
        queries(block, keys.getLane(), countAllThreads()) {}

  void emit() {
    forGridTiles(kernel, countAllThreads(),
                 [&](const TileWork &work) { emitBlock(work); });
  }

private:
  /// The warps of each role. Those that copy and multiply share a warpgroup
  /// with idle ones.
  SmallVector<int64_t> getWarps() const {
    constexpr int64_t one = 1, group = kWarpgroup / kWarp;
    return {one, one, group - 2 * one, countThreads(kernel.config) / kWarp};
  }
  int64_t countAllThreads() const {
    return kWarpgroup + countThreads(kernel.config);
  }

  // ptxas grants registers to roles only outside of branches: a block after
  // the last row has no tiles in place of a branch.
  void emitBlock(const TileWork &work) {
    BlockRows rows =
        BlockRows::load(kernel, work, RowsPlace::find(kernel, work));
    rows.count = frame.max(rows.count, frame.index(0));
    queries.allocate();
    keys.allocate();
    values.allocate();
    tensors.allocate(work.thread);
    block.place(rows, rows.findTokens(kernel));
    Value hasRows = frame.below(frame.index(0), rows.count);
    tiles = arith::SelectOp::create(frame.builder, frame.loc, hasRows,
                                    block.findTiles(countAllThreads()),
                                    frame.index(0));
    lane = frame.rem(work.thread, kWarp);
    queries.store(frame.mul(rows.count, kernel.shape.packed));
    emitAsyncFence(frame);
    gpu::BarrierOp::create(frame.builder, frame.loc);
    emitRoles();
  }

  void emitRoles() {
    ThreadRegisters registers =
        chooseRegisters(block.getOp(), block.getConfig(), frame.target);
    int64_t few = registers.producer;
    int64_t counts[] = {few, few, few, registers.consumer};
    std::function<void()> bodies[] = {[&] { copyTiles(); },
                                      [&] { multiplyTiles(); }, [] {},
                                      [&] { computeSoftmax(); }};
    auto roles = WarpRolesOp::create(
        frame.builder, frame.loc,
        frame.builder.getDenseI64ArrayAttr(getWarps()),
        frame.builder.getDenseI64ArrayAttr(counts), std::size(bodies));
    for (auto [region, body] : llvm::zip_equal(roles.getRoles(), bodies)) {
      OpBuilder::InsertionGuard guard(frame.builder);
      frame.builder.createBlock(&region);
      body();
      YieldOp::create(frame.builder, frame.loc);
    }
  }

  void copyTiles() {
    forTiles(/*first=*/0, [&](Value tile) {
      for (const TiledCache *side : {&keys, &values})
        side->copy(tile, block.getTokens(tile));
    });
  }

  void computeSoftmax() {
    Value number = frame.div(
        frame.sub(block.rows.work.thread, frame.index(kWarpgroup)), kWarpgroup);
    RoleSoftmax(block, b, tensors, tiles, number, lane).emit();
  }

  //===--------------------------------------------------------------------===//
  // Products
  //===--------------------------------------------------------------------===//

  // While a warpgroup computes probs, the products of the other query tile are
  // in flight.
  void multiplyTiles() {
    Value last = frame.sub(tiles, frame.index(1));
    frame.runIf(frame.below(frame.index(0), tiles), [&] {
      consume(keys, frame.index(0), [&](Value keyTile) {
        forQueryTiles([&](Value number) { startScores(number, keyTile); });
      });
    });
    forTiles(/*first=*/1, [&](Value tile) {
      Value before = frame.sub(tile, frame.index(1));
      consumeValues(before, [&](Value valueTile) {
        consume(keys, tile, [&](Value keyTile) {
          forQueryTiles([&](Value number) {
            addValues(number, before, valueTile);
            startScores(number, keyTile);
          });
        });
      });
    });
    frame.runIf(frame.below(frame.index(0), tiles), [&] {
      consumeValues(last, [&](Value valueTile) {
        addValues(frame.index(0), last, valueTile);
        commitAcc(frame.index(0));
        addValues(frame.index(1), last, valueTile);
      });
      // After the commit that frees the slot, for which no copy waits.
      commitAcc(frame.index(1));
    });
  }

  void forTiles(int64_t first, function_ref<void(Value tile)> body) const {
    frame.loop(frame.index(first), tiles, frame.index(1), body);
  }
  void forQueryTiles(function_ref<void(Value number)> body) const {
    for (int64_t i = 0; i < RoleTensors::kQueryTiles; ++i)
      body(frame.index(i));
  }

  /// Runs `body` with a tile, which is free when the products in it are done.
  void consume(const TiledCache &cache, Value tile,
               function_ref<void(Value)> body) const {
    Type type = cast<PipeType>(cache.getPipe().getType()).getTiles()[0];
    auto consume = ConsumeOp::create(frame.builder, frame.loc, TypeRange(),
                                     cache.getPipe(), tile, /*commit=*/true);
    OpBuilder::InsertionGuard guard(frame.builder);
    Block *region =
        frame.builder.createBlock(&consume.getBody(), {}, type, {frame.loc});
    body(region->getArgument(0));
    YieldOp::create(frame.builder, frame.loc);
  }

  void consumeValues(Value tile, function_ref<void(Value)> body) const {
    consume(values, tile, [&](Value valueTile) {
      values.clearUnseenInWarp(lane, valueTile, block.getToken(tile),
                               block.tokens);
      body(valueTile);
    });
  }

  /// Starts products in one lane. Each election has the same result, and is
  /// proof for ptxas that it is one lane.
  void start(function_ref<void()> body) const {
    Value isElected = NVVM::ElectSyncOp::create(
        frame.builder, frame.loc, frame.builder.getI1Type(), /*mask=*/Value());
    frame.runIf(isElected, body);
  }

  void startScores(Value number, Value keyTile) const {
    Value zero = frame.index(0);
    Value row = frame.mul(number, RoleTensors::kRowsOfTile);
    Value scores = tensors.getScores(number);
    start([&] {
      TmemMmaOp::create(frame.builder, frame.loc, queries.getTile(), row, zero,
                        keyTile, zero, zero, scores, /*add=*/Value(),
                        /*k=*/IntegerAttr());
      tensors.commit(RoleEdge::Scores, number);
    });
  }

  void addValues(Value number, Value tile, Value valueTile) const {
    Value zero = frame.index(0);
    Value probs = tensors.getProbs(number), acc = tensors.getAcc(number);
    Value hasSums = frame.below(zero, tile);
    tensors.wait(RoleEdge::Probs, number, tile);
    start([&] {
      TmemMmaOp::create(frame.builder, frame.loc, probs, /*a_row=*/Value(),
                        /*a_column=*/Value(), valueTile, zero, zero, acc,
                        hasSums, /*k=*/IntegerAttr(), Major::K, Major::MN);
    });
  }

  void commitAcc(Value number) const {
    start([&] { tensors.commit(RoleEdge::Acc, number); });
  }

  Frame frame;
  KernelContext kernel;
  TileRows block;
  FragmentBuilder b;
  TiledCache keys, values;
  RoleTensors tensors;
  QueryStage queries;
  /// The number of tiles of keys, and the thread's lane.
  Value tiles, lane;
};

} // namespace

void kvcache::tileRoles(AttentionOp op, const Frame &frame,
                        const AttentionConfig &config) {
  RolesKernel(op, frame, config).emit();
}
