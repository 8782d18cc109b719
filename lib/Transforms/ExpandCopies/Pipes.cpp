//===- Pipes.cpp - Tiles in flight
//-------------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BulkRows.h"
#include "Expansion.h"
#include "Source.h"
#include "TensorCopies.h"
#include "ThreadCopies.h"

#include "kvcache/Support/Pointers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Who takes part in a copy, and how its completion reaches the full barrier of
/// a slot.
enum class IssuedBy {
  Thread, ///< one thread; the copies' bytes are expected
  Warp,   ///< the lanes of the first warp; each expects its bytes, and arrives
  All,    ///< all producer threads; each arrives when its copies are complete
};

IssuedBy getIssuer(Way way) {
  switch (way) {
  case Way::Plain:
  case Way::AsyncCopy:
    return IssuedBy::All;
  case Way::Boxes:
  case Way::Gather:
    return IssuedBy::Thread;
  case Way::BulkRows:
    return IssuedBy::Warp;
  }
  llvm_unreachable("covered switch");
}

/// The tiles of a slot in memory, one allocation for all slots of a tile.
class Slots {
public:
  explicit Slots(PipeOp pipe) : type(pipe.getPipe().getType()) {
    OpBuilder builder(pipe);
    for (Type each : type.getTiles()) {
      auto tile = cast<TileType>(each);
      constexpr int64_t columns = 16;
      auto all = TileType::get(builder.getContext(),
                               type.getStages() * getStride(tile) / columns,
                               columns, builder.getI8Type(), Swizzle::None);
      auto alloc = AllocTileOp::create(
          builder, pipe.getLoc(), all,
          builder.getI64IntegerAttr(tile.getLayout().getAlignment()));
      memory.push_back(TileMemoryOp::create(builder, pipe.getLoc(),
                                            all.getMemoryType(), alloc));
    }
  }

  /// The tiles of slot `slot`.
  SmallVector<Value> getTiles(const IndexBuilder &b, Value slot) const {
    SmallVector<Value> tiles;
    for (auto [each, memory] : llvm::zip(type.getTiles(), memory)) {
      auto tile = cast<TileType>(each);
      Value offset = b.mul(slot, b.index(getStride(tile)));
      Value bytes =
          memref::ViewOp::create(b.builder, b.loc, tile.getMemoryType(), memory,
                                 offset, /*sizes=*/ValueRange());
      tiles.push_back(TileViewOp::create(b.builder, b.loc, tile, bytes));
    }
    return tiles;
  }

private:
  /// Bytes from a slot's tile to the next, which is as aligned.
  static int64_t getStride(TileType tile) {
    tma::TileLayout layout = tile.getLayout();
    return llvm::alignTo(layout.getBytes(), layout.getAlignment());
  }

  PipeType type;
  SmallVector<Value> memory;
};

/// Whether an op that writes to memory may write to a tile of a slot by this
/// operand: those of slots are not allocated one by one.
bool mayBeTile(Value operand) {
  if (isa<LLVM::LLVMPointerType>(operand.getType()))
    return true;
  while (auto view = operand.getDefiningOp<ViewLikeOpInterface>())
    operand = view.getViewSource();
  if (auto memory = operand.getDefiningOp<TileMemoryOp>())
    operand = memory.getTile();
  return isa<TileType>(operand.getType()) &&
         !operand.getDefiningOp<AllocTileOp>();
}

/// Whether code that uses a slot may write to its tiles.
bool mayWriteTiles(ConsumeOp consume) {
  WalkResult result = consume.walk([](Operation *op) {
    // What is in regions is visited, too. That ldmatrix only reads, it doesn't
    // say.
    if (op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
        isa<NVVM::LdMatrixOp>(op))
      return WalkResult::advance();
    auto effects = dyn_cast<MemoryEffectOpInterface>(op);
    bool mayWrite = !effects || effects.hasEffect<MemoryEffects::Write>();
    return mayWrite && llvm::any_of(op->getOperands(), mayBeTile)
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  return result.wasInterrupted();
}

/// A pipe, once it is known how its copies are done.
class Pipe {
public:
  Pipe(PipeOp pipe, const Plans &plans, const Chip *chip, KernelSetup *setup)
      : op(pipe), type(pipe.getPipe().getType()), plans(plans), chip(chip),
        setup(setup), slots(pipe) {
    for (Operation *user : pipe.getPipe().getUsers()) {
      if (auto produce = dyn_cast<ProduceOp>(user))
        produces.push_back(produce);
      else
        consumes.push_back(cast<ConsumeOp>(user));
    }
  }

  LogicalResult expand() {
    if (setup) {
      if (failed(checkThreads()))
        return failure();
      collectIssuers();
      createBarriers();
    }
    for (ProduceOp produce : produces)
      expandProduce(produce);
    for (ConsumeOp consume : consumes)
      expandConsume(consume);
    op.erase();
    return success();
  }

private:
  //===--------------------------------------------------------------------===//
  // Threads
  //===--------------------------------------------------------------------===//

  LogicalResult checkThreads() {
    std::optional<int64_t> size = BlockBuilder::getKnownSize(op);
    int64_t producers = type.getProducers() * BlockBuilder::kWarp;
    if (size && *size <= producers)
      return op.emitOpError("expects more threads in the block than the ")
             << producers << " producers, got " << *size;
    return success();
  }

  /// Those that produce.
  Threads getProducers(const BlockBuilder &b) const {
    Threads all = b.getAll();
    if (type.getProducers())
      all.count = b.index(type.getProducers() * BlockBuilder::kWarp);
    return all;
  }

  /// Whether one lane can free a slot for its warp: there are only whole ones.
  bool freesByWarp() const {
    std::optional<int64_t> size = BlockBuilder::getKnownSize(op);
    return size && *size % BlockBuilder::kWarp == 0;
  }

  /// How many arrivals free a slot.
  Value getNumConsumers(const BlockBuilder &b) const {
    Value producers = b.index(type.getProducers() * BlockBuilder::kWarp);
    Value threads = b.sub(b.getAll().count, producers);
    return freesByWarp() ? b.div(threads, b.index(BlockBuilder::kWarp))
                         : threads;
  }

  //===--------------------------------------------------------------------===//
  // Barriers
  //===--------------------------------------------------------------------===//

  /// All fillings of a slot arrive alike, so that a barrier's count is one.
  void collectIssuers() {
    for (ProduceOp produce : produces)
      for (Operation &each : produce.getBody().front())
        if (plans.contains(&each))
          issuers.insert(getIssuer(plans.lookup(&each).choice.way));
    if (issuers.empty())
      issuers.insert(chip->has(Feature::TMA) ? IssuedBy::Thread
                                             : IssuedBy::All);
  }

  /// How many arrivals fill a slot.
  Value getNumArrivals(const BlockBuilder &b) const {
    Value count = b.index(issuers.contains(IssuedBy::Thread) ? 1 : 0);
    if (issuers.contains(IssuedBy::Warp))
      count =
          b.add(count, b.min(b.getAll().count, b.index(BlockBuilder::kWarp)));
    if (issuers.contains(IssuedBy::All))
      count = b.add(count, getProducers(b).count);
    return count;
  }

  void createBarriers() {
    int64_t stages = type.getStages();
    barriers = setup->createBarriers(2 * stages);
    for (int64_t stage = 0; stage < stages; ++stage)
      setup->initialize(barriers, stage, [&](const BlockBuilder &b) {
        return getNumArrivals(b);
      });
    for (int64_t stage = 0; stage < stages; ++stage)
      setup->initialize(barriers, stages + stage, [&](const BlockBuilder &b) {
        return getNumConsumers(b);
      });
  }

  Value getSlot(const IndexBuilder &b, Value index) const {
    return b.rem(index, b.index(type.getStages()));
  }
  Barrier getFull(const IndexBuilder &b, Value index) const {
    return {barriers, getSlot(b, index)};
  }
  Barrier getEmpty(const IndexBuilder &b, Value index) const {
    return {barriers, b.add(getSlot(b, index), b.index(type.getStages()))};
  }
  /// Every use of a slot is a phase of its barriers.
  Value getParity(const IndexBuilder &b, Value index, int64_t ahead) const {
    Value round = b.div(index, b.index(type.getStages()));
    return b.toI32(b.rem(b.add(round, b.index(ahead)), b.index(2)));
  }
  /// The first round finds barriers in their first phase: the one before it,
  /// of the other parity, counts as complete.
  void waitUntilEmpty(const IndexBuilder &b, Value index) const {
    std::optional<int64_t> known = getConstantIntValue(index);
    if (known && *known >= 0 && *known < type.getStages())
      return;
    emitWait(b, getEmpty(b, index), getParity(b, index, 1), *chip);
  }

  //===--------------------------------------------------------------------===//
  // Producing
  //===--------------------------------------------------------------------===//

  /// Clones the region at the builder, and calls `emit` at the clone of each
  /// copy, which `finish` may still use.
  void cloneBody(
      const IndexBuilder &b, ProduceOp produce,
      function_ref<void(Operation *clone, const Plan &)> emit,
      function_ref<void()> finish = [] {}) {
    SmallVector<Operation *> clones;
    IRMapping mapping;
    mapping.map(produce.getBody().getArguments(),
                slots.getTiles(b, getSlot(b, produce.getIndex())));
    for (Operation &each : produce.getBody().front().without_terminator()) {
      Operation *clone = b.builder.clone(each, mapping);
      auto plan = plans.find(&each);
      if (plan == plans.end())
        continue;
      emit(clone, plan->second);
      clones.push_back(clone);
    }
    finish();
    for (Operation *clone : clones)
      clone->erase();
  }

  /// The same of the copies of one issuer.
  void cloneBody(
      const IndexBuilder &b, ProduceOp produce, IssuedBy issuer,
      function_ref<void(Operation *clone, const Plan &)> emit,
      function_ref<void()> finish = [] {}) {
    cloneBody(
        b, produce,
        [&](Operation *clone, const Plan &plan) {
          if (getIssuer(plan.choice.way) == issuer)
            emit(clone, plan);
        },
        finish);
  }

  void expandProduce(ProduceOp produce) {
    OpBuilder builder(produce);
    BlockBuilder b(builder, produce.getLoc());
    if (!setup) {
      cloneBody(b, produce, [&](Operation *copy, const Plan &) {
        emitPlain(builder, copy, b.getAll());
      });
    } else {
      if (issuers.contains(IssuedBy::Thread))
        setup->runInIssuer(b, [&](const Issuer &issuer) {
          produceInThread(b, produce, issuer);
        });
      if (issuers.contains(IssuedBy::Warp))
        setup->runInFirstWarp(
            b, [&](Threads lanes) { produceInWarp(b, produce, lanes); });
      if (issuers.contains(IssuedBy::All))
        produceInAll(b, produce);
    }
    produce.erase();
  }

  void produceInThread(const BlockBuilder &b, ProduceOp produce,
                       const Issuer &issuer) {
    Barrier full = getFull(b, produce.getIndex());
    int64_t bytes = 0;
    for (Operation &each : produce.getBody().front()) {
      auto plan = plans.find(&each);
      if (plan != plans.end() &&
          getIssuer(plan->second.choice.way) == IssuedBy::Thread)
        bytes += getTileBytes(&each);
    }
    TensorCopies copies(b, issuer, full);
    auto issue = [&] {
      // All lanes wait: after a loop of one, ptxas takes the warp for diverged,
      // and repeats every shuffle lane by lane.
      waitUntilEmpty(b, produce.getIndex());
      b.runIf(issuer.isElected, [&] {
        TMAExpectOp::create(b.builder, b.loc, full.group, full.index,
                            b.index(bytes));
      });
      copies.issue();
    };
    cloneBody(
        b, produce, IssuedBy::Thread,
        [&](Operation *copy, const Plan &plan) {
          copies.add(copy, plan.choice, plan.descriptor);
        },
        issue);
  }

  void produceInWarp(const BlockBuilder &b, ProduceOp produce, Threads lanes) {
    waitUntilEmpty(b, produce.getIndex());
    Barrier full = getFull(b, produce.getIndex());
    cloneBody(b, produce, IssuedBy::Warp, [&](Operation *copy, const Plan &) {
      emitBulkRows(b.builder, copy, lanes, full);
    });
    emitArrive(b, full);
  }

  void produceInAll(const BlockBuilder &b, ProduceOp produce) {
    waitUntilEmpty(b, produce.getIndex());
    Threads producers = getProducers(b);
    bool isPlain = false, isAsync = false;
    cloneBody(b, produce, IssuedBy::All,
              [&](Operation *copy, const Plan &plan) {
                if (plan.choice.way == Way::Plain) {
                  isPlain = true;
                  emitPlain(b.builder, copy, producers);
                } else {
                  isAsync = true;
                  emitAsyncCopy(b.builder, copy, plan.choice, producers);
                }
              });
    Barrier full = getFull(b, produce.getIndex());
    if (isPlain) {
      // The hardware's arrival would order its own copies only.
      if (isAsync) {
        NVVM::CpAsyncCommitGroupOp::create(b.builder, b.loc);
        NVVM::CpAsyncWaitGroupOp::create(b.builder, b.loc, /*n=*/0);
      }
      return emitArrive(b, full);
    }
    Value pointer = getBarrierPointer(b.builder, b.loc, full.group, full.index);
    NVVM::CpAsyncMBarrierArriveOp::create(b.builder, b.loc, pointer,
                                          /*noinc=*/true);
  }

  //===--------------------------------------------------------------------===//
  // Consuming
  //===--------------------------------------------------------------------===//

  /// Whether tensor copies may follow other writes to the tiles.
  bool needsFence(ConsumeOp consume) const {
    bool byUnit =
        issuers.contains(IssuedBy::Thread) || issuers.contains(IssuedBy::Warp);
    return byUnit &&
           (issuers.contains(IssuedBy::All) || mayWriteTiles(consume));
  }

  void release(const BlockBuilder &b, ConsumeOp consume) const {
    Barrier empty = getEmpty(b, consume.getIndex());
    if (needsFence(consume))
      emitProxyFence(b);
    if (!freesByWarp())
      return emitArrive(b, empty);
    NVVM::SyncWarpOp::create(b.builder, b.loc, b.i32(-1));
    Value lane = b.rem(b.getAll().thread, b.index(BlockBuilder::kWarp));
    b.runIf(b.equal(lane, b.index(0)), [&] { emitArrive(b, empty); });
  }

  void expandConsume(ConsumeOp consume) {
    IRRewriter rewriter(consume);
    BlockBuilder b(rewriter, consume.getLoc());
    Value index = consume.getIndex();
    if (setup)
      emitWait(b, getFull(b, index), getParity(b, index, 0), *chip);
    SmallVector<Value> tiles = slots.getTiles(b, getSlot(b, index));
    if (setup) {
      rewriter.setInsertionPointAfter(consume);
      release(b, consume);
    }
    Block *body = &consume.getBody().front();
    auto yield = cast<YieldOp>(body->getTerminator());
    SmallVector<Value> results(yield.getResults());
    rewriter.eraseOp(yield);
    rewriter.inlineBlockBefore(body, consume, tiles);
    rewriter.replaceOp(consume, results);
  }

  PipeOp op;
  PipeType type;
  const Plans &plans;
  const Chip *chip;
  KernelSetup *setup;
  Slots slots;
  SmallVector<ProduceOp> produces;
  SmallVector<ConsumeOp> consumes;
  llvm::SmallSetVector<IssuedBy, 3> issuers;
  TypedValue<nvgpu::MBarrierGroupType> barriers;
};

} // namespace

LogicalResult kvcache::expandPipe(PipeOp pipe, const Plans &plans,
                                  const Chip *chip, KernelSetup *setup) {
  return Pipe(pipe, plans, chip, setup).expand();
}
