//===- PromptKernel.cpp - Attention as loops over fragments ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PromptKernel.h"

#include "../Builders/BlockArray.h"
#include "../PlanAttention/ExponentBias.h"
#include "../PlanAttention/ThreadRegisters.h"
#include "QueryStage.h"
#include "SoftmaxLoop.h"
#include "TileScores.h"
#include "TiledCache.h"

#include "kvcache/IR/PipeOps.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The named barrier of the threads that multiply.
constexpr int64_t kBarrier = 1;

/// Tiles that other threads copy into pipes.
class CopiedTiles : public TileSource {
public:
  /// `thread` is that of the thread among those that multiply.
  CopiedTiles(const TileRows &block, const TiledCache &keys,
              const TiledCache &values, Value thread)
      : block(block), keys(keys), values(values), thread(thread) {}

  void begin(Value) override {}
  void end() override {}
  bool areLatent() const override { return false; }
  SmallVector<Value> useKeys(Value tile, TypeRange types,
                             Body body) const override {
    return keys.use(tile, types, body);
  }
  SmallVector<Value> useValues(Value tile, TypeRange types,
                               Body body) const override {
    return values.use(tile, types, [&](Value valueTile) {
      values.clearUnseen(thread, valueTile, block.getToken(tile), block.tokens,
                         kBarrier);
      return body(valueTile);
    });
  }
  Value scaleScores(Value scores) const override { return scores; }

private:
  const TileRows &block;
  const TiledCache &keys, &values;
  Value thread;
};

/// A block computes as many query rows as its config has: some tokens of a
/// sequence, for some heads of a group each. Each warpgroup has 64 of the rows
/// as fragments. A warpgroup of its own copies tiles of keys and values into
/// pipes.
class PromptKernel {
public:
  PromptKernel(AttentionOp op, const Frame &frame,
               const AttentionConfig &config)
      : frame(frame), kernel(op, frame, config), block(kernel),
        b(frame.builder, frame.loc),
        keys(frame, op, op.getKeyCache(), block.getSizes().keySize, config),
        values(frame, op, op.getValues(), block.getSizes().valueSize, config),
        types{getFragment(*config.keys, getF32(), FragmentLayout::WgmmaAcc),
              getFragment(block.getSizes().valueSize, getF32(),
                          FragmentLayout::WgmmaAcc),
              getFragment(*config.keys, values.getLane(),
                          FragmentLayout::WgmmaA16)},
        queries(block, keys.getLane(), getProducers() + countThreads(config)) {}

  void emit() {
    forGridTiles(kernel, getProducers() + countThreads(block.getConfig()),
                 [&](const TileWork &work) { emitRoles(work); });
  }

private:
  float getBias() const {
    return getExponentBias(block.getOp(), block.getConfig());
  }
  FloatType getF32() const { return frame.builder.getF32Type(); }
  FragmentType getFragment(int64_t columns, Type element,
                           FragmentLayout layout) const {
    return FragmentType::get(frame.builder.getContext(),
                             {kRowsOfWarpgroup, columns}, element, layout,
                             /*partial=*/false);
  }

  /// Threads that do nothing but copy tiles.
  int64_t getProducers() const {
    return countProducerWarps(block.getConfig()) * kWarp;
  }

  //===--------------------------------------------------------------------===//
  // Roles
  //===--------------------------------------------------------------------===//

  // ptxas grants registers to roles only outside of branches: a block after
  // the last row has no tiles in place of a branch.
  void emitRoles(const TileWork &work) {
    BlockRows rows =
        BlockRows::load(kernel, work, RowsPlace::find(kernel, work));
    rows.count = frame.max(rows.count, frame.index(0));
    allocate();
    block.place(rows, rows.findTokens(kernel));
    tiles = block.findTiles(getProducers() + countThreads(block.getConfig()));
    Value hasRows = frame.below(frame.index(0), block.rows.count);
    tiles = arith::SelectOp::create(frame.builder, frame.loc, hasRows, tiles,
                                    frame.index(0));
    if (count)
      storeCount();
    stageQueries();
    if (count)
      tiles = frame.fromI32(count->load(frame.index(0)));
    Value produces =
        frame.below(block.rows.work.thread, frame.index(getProducers()));
    frame.runIf(
        produces, [&] { copyTiles(); },
        [&] {
          attend(
              frame.sub(block.rows.work.thread, frame.index(getProducers())));
        });
  }

  void allocate() {
    queries.allocate();
    keys.allocate();
    values.allocate();
    if (block.list)
      block.list->allocate();
    else if (block.getOp().getRanges())
      count.emplace(frame, /*size=*/1);
    setRegisters();
  }

  /// Stores the number of tiles, which lanes have found together: what all
  /// threads load is surely the same in both warpgroups.
  void storeCount() {
    frame.runIf(frame.equal(block.rows.work.thread, frame.index(0)),
                [&] { count->store(frame.toI32(tiles), frame.index(0)); });
  }

  /// Gives registers to the threads that multiply.
  void setRegisters() {
    ThreadRegisters registers =
        chooseRegisters(block.getOp(), block.getConfig(), frame.target);
    if (!registers.consumer)
      return;
    auto pipe = keys.getPipe().getDefiningOp<PipeOp>();
    pipe.setProducerRegisters(registers.producer);
    pipe.setConsumerRegisters(registers.consumer);
  }

  //===--------------------------------------------------------------------===//
  // Tiles
  //===--------------------------------------------------------------------===//

  void copyTiles() {
    frame.loop(frame.index(0), tiles, frame.index(1), [&](Value tile) {
      for (const TiledCache *side : {&keys, &values})
        side->copy(tile, block.getTokens(tile));
    });
  }

  void stageQueries() {
    queries.store(frame.mul(block.rows.count, kernel.shape.packed));
    emitAsyncFence(frame);
    gpu::BarrierOp::create(frame.builder, frame.loc);
  }

  //===--------------------------------------------------------------------===//
  // Products
  //===--------------------------------------------------------------------===//

  /// `number` is that of the thread among those that multiply.
  void attend(Value number) {
    thread = number;
    firstRow = frame.mul(frame.div(thread, kWarpgroup), kRowsOfWarpgroup);
    CopiedTiles source(block, keys, values, thread);
    TileScores scores(block, b, types.score, firstRow);
    SoftmaxLoop loop(b, block, source, scores, getBias());
    const OnlineSoftmax &softmax = loop.getSoftmax();
    RowStates states = loop.run(
        softmax.begin(types.acc), tiles,
        {[&](Value keyTile, Value) { return multiplyKeys(keyTile); },
         [&](Value tileScores, Value, SoftmaxState &state) {
           return softmax.addScores(tileScores, state, [&](Value probs) {
             return b.toOperand(types.probs, probs);
           });
         },
         [&](Value probs, Value valueTile, Value, SoftmaxState &state) {
           state.getAcc() = addValues(probs, valueTile, state.getAcc());
         }});
    FragmentResults(block, b, firstRow, /*firstColumn=*/frame.index(0))
        .storeOutputs(states);
  }

  Value multiplyKeys(Value keyTile) const {
    return b.wait(b.startTiles(types.score, queries.getTile(), firstRow,
                               /*column=*/frame.index(0), keyTile,
                               block.getSizes().keySize));
  }

  Value addValues(Value probs, Value valueTile, Value acc) const {
    return b.wait(b.startProduct(types.acc, probs, valueTile, frame.index(0),
                                 acc, Major::MN));
  }

  Frame frame;
  KernelContext kernel;
  TileRows block;
  FragmentBuilder b;
  TiledCache keys, values;
  /// The fragments of scores, of accumulators, and of probs as operands.
  struct {
    FragmentType score, acc, probs;
  } types;
  QueryStage queries;
  /// The number of tiles of keys.
  Value tiles;
  /// The number of tiles in shared memory, with ranges.
  std::optional<BlockArray> count;
  /// The thread among those that multiply, and the first row of its warpgroup
  /// in the block.
  Value thread, firstRow;
};

} // namespace

void kvcache::tilePrompt(AttentionOp op, const Frame &frame,
                         const AttentionConfig &config) {
  PromptKernel(op, frame, config).emit();
}
