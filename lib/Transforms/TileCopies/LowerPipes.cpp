//===- LowerPipes.cpp - Lower pipes of tiles ------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BulkRows.h"
#include "CacheStores.h"
#include "Choice.h"
#include "KernelSetup.h"
#include "PipeBarriers.h"
#include "PipeChecks.h"
#include "PipeRegisters.h"
#include "Slots.h"
#include "TensorCopies.h"
#include "ThreadCopies.h"
#include "TileWrites.h"
#include "WarpRoles.h"

#include "kvcache/IR/TMAOps.h"
#include "kvcache/IR/TensorMemoryOps.h"
#include "kvcache/IR/TileOps.h"
#include "kvcache/Support/Pointers.h"
#include "kvcache/Support/Threads.h"
#include "kvcache/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_LOWERPIPES
#include "kvcache/Transforms/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The threads that issue a copy, and how its completion reaches the full
/// barrier of a slot.
enum class IssuedBy {
  Thread, ///< one thread; the copies' bytes are expected
  Warp,   ///< the lanes of the first warp; each expects its bytes, and arrives
  All,    ///< all producer threads; each arrives when its copies are complete
};

IssuedBy getIssuer(TileCopyOpInterface copy) {
  switch (*copy.getCopy()) {
  case CopyKind::Plain:
  case CopyKind::CpAsync:
    return IssuedBy::All;
  case CopyKind::TensorBoxes:
  case CopyKind::TensorRows:
    return IssuedBy::Thread;
  case CopyKind::BulkRows:
    return IssuedBy::Warp;
  }
  llvm_unreachable("covered switch");
}

/// Lowers a pipe. `setup` is null on the CPU.
class Pipe {
public:
  Pipe(PipeOp pipe, const Chip *chip, KernelSetup *setup,
       const CacheStores &stores)
      : op(pipe), type(pipe.getPipe().getType()), chip(chip), setup(setup),
        stores(stores), slots(pipe), barriers(type, chip) {
    for (Operation *user : pipe.getPipe().getUsers()) {
      if (auto produce = dyn_cast<ProduceOp>(user))
        produces.push_back(produce);
      else
        consumes.push_back(cast<ConsumeOp>(user));
    }
    // Before productions in these regions are lowered.
    for (ConsumeOp consume : consumes)
      if (mayWriteTiles(consume)) {
        writers.insert(consume);
        arrivals = consume.getCommit() ? 2 : arrivals;
      }
  }

  LogicalResult lower() {
    if (setup) {
      if (failed(checkThreads()))
        return failure();
      collectIssuers();
      if (failed(checkCommits()))
        return failure();
      createBarriers();
    }
    for (ProduceOp produce : produces)
      lowerProduce(produce);
    for (ConsumeOp consume : consumes)
      lowerConsume(consume);
    op.erase();
    return success();
  }

private:
  //===--------------------------------------------------------------------===//
  // Threads
  //===--------------------------------------------------------------------===//

  LogicalResult checkThreads() {
    std::optional<int64_t> size = getKnownThreads(op);
    int64_t producers = type.getProducers() * BlockBuilder::kWarp;
    if (size && *size <= producers)
      return op.emitOpError("expects more threads in the block than the ")
             << producers << " producers, got " << *size;
    for (ConsumeOp consume : consumes)
      if (consume.getCommit() && !freesByWarp())
        return consume.emitOpError("with 'commit' expects a known block size "
                                   "that is a multiple of 32");
    return success();
  }

  /// (C3) of `consume`
  LogicalResult checkCommits() {
    for (ConsumeOp consume : consumes)
      if (consume.getCommit() && isOfCluster())
        return consume.emitOpError("with 'commit' expects no multicast copies "
                                   "into the pipe");
    return success();
  }

  /// The producer threads.
  Threads getProducers(const BlockBuilder &b) const {
    Threads all = b.getAll();
    if (type.getProducers())
      all.count = b.index(type.getProducers() * BlockBuilder::kWarp);
    return all;
  }

  /// Whether one lane can free a slot for its warp, because all warps are
  /// whole.
  bool freesByWarp() const {
    std::optional<int64_t> size = getKnownThreads(op);
    return size && *size % BlockBuilder::kWarp == 0;
  }

  /// The number of arrivals that free a slot: of all blocks whose copies write
  /// it, which have as many threads.
  Value getNumConsumers(const BlockBuilder &b) const {
    if (std::optional<int64_t> warps = countWarpsOfRoles(consumes))
      return b.index(*warps * (freesByWarp() ? arrivals : BlockBuilder::kWarp) *
                     numBlocks);
    Value producers = b.index(type.getProducers() * BlockBuilder::kWarp);
    Value threads = b.sub(b.getAll().count, producers);
    Value blockArrivals =
        freesByWarp() ? b.div(threads, b.index(BlockBuilder::kWarp)) : threads;
    return b.mul(blockArrivals, b.index(arrivals * numBlocks));
  }

  //===--------------------------------------------------------------------===//
  // Barriers
  //===--------------------------------------------------------------------===//

  bool isOfCluster() const { return numBlocks > 1; }

  /// All productions have the same arrivals, because a barrier has one count.
  void collectIssuers() {
    for (ProduceOp produce : produces)
      for (auto copy : produce.getBody().getOps<TileCopyOpInterface>()) {
        issuers.insert(getIssuer(copy));
        if (copy.isMulticast())
          numBlocks = countBlocksOfCluster(op);
      }
    if (issuers.empty())
      issuers.insert(chip->has(Feature::TMA) ? IssuedBy::Thread
                                             : IssuedBy::All);
  }

  /// The number of arrivals that fill a slot.
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
    barriers.create(
        *setup, isOfCluster(),
        [&](const BlockBuilder &b) { return getNumArrivals(b); },
        [&](const BlockBuilder &b) { return getNumConsumers(b); });
  }

  //===--------------------------------------------------------------------===//
  // Producing
  //===--------------------------------------------------------------------===//

  using Emit = function_ref<void(TileCopyOpInterface clone)>;

  /// Clones the region at the builder, and calls `emit` at the clone of each
  /// copy, which `finish` may still use.
  void cloneBody(
      const IndexBuilder &b, ProduceOp produce, Emit emit,
      function_ref<void()> finish = [] {}) {
    SmallVector<Operation *> clones;
    IRMapping mapping;
    mapping.map(produce.getBody().getArguments(),
                slots.getTiles(b, barriers.getSlot(b, produce.getIndex())));
    for (Operation &each : produce.getBody().front().without_terminator()) {
      Operation *clone = b.builder.clone(each, mapping);
      if (auto copy = dyn_cast<TileCopyOpInterface>(clone)) {
        emit(copy);
        clones.push_back(clone);
      }
    }
    finish();
    for (Operation *clone : clones)
      clone->erase();
  }

  /// Clones the region for the copies of one issuer.
  void cloneBody(
      const IndexBuilder &b, ProduceOp produce, IssuedBy issuer, Emit emit,
      function_ref<void()> finish = [] {}) {
    cloneBody(
        b, produce,
        [&](TileCopyOpInterface copy) {
          if (getIssuer(copy) == issuer)
            emit(copy);
        },
        finish);
  }

  void lowerProduce(ProduceOp produce) {
    OpBuilder builder(produce);
    BlockBuilder b(builder, produce.getLoc());
    if (!setup) {
      cloneBody(b, produce, [&](TileCopyOpInterface copy) {
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

  /// Emits a fence if threads may have stored to a cache that one of the
  /// issuer's copies reads.
  void emitFenceOfCaches(const IndexBuilder &b, ProduceOp produce,
                         IssuedBy issuer) const {
    auto copies = produce.getBody().getOps<TileCopyOpInterface>();
    if (llvm::any_of(copies, [&](TileCopyOpInterface copy) {
          return getIssuer(copy) == issuer &&
                 stores.mayWrite(copy.getAccessedCache());
        }))
      emitGlobalProxyFence(b);
  }

  void produceInThread(const BlockBuilder &b, ProduceOp produce,
                       const Issuer &issuer) {
    Barrier full = barriers.getFull(b, produce.getIndex());
    int64_t bytes = 0;
    for (auto copy : produce.getBody().getOps<TileCopyOpInterface>())
      if (getIssuer(copy) == IssuedBy::Thread)
        bytes += copy.getTileLayout().getBytes();
    TensorCopies copies(b, issuer, full);
    auto issue = [&] {
      // All lanes wait: after a loop of one, ptxas takes the warp for diverged,
      // and repeats every shuffle lane by lane.
      barriers.waitUntilEmpty(b, produce.getIndex());
      b.runIf(issuer.isElected, [&] {
        emitFenceOfCaches(b, produce, IssuedBy::Thread);
        TMAExpectOp::create(b.builder, b.loc, full.group, full.index,
                            b.index(bytes));
      });
      copies.issue();
    };
    cloneBody(
        b, produce, IssuedBy::Thread,
        [&](TileCopyOpInterface copy) { copies.add(copy); }, issue);
  }

  void produceInWarp(const BlockBuilder &b, ProduceOp produce, Threads lanes) {
    barriers.waitUntilEmpty(b, produce.getIndex());
    emitFenceOfCaches(b, produce, IssuedBy::Warp);
    Barrier full = barriers.getFull(b, produce.getIndex());
    cloneBody(b, produce, IssuedBy::Warp, [&](TileCopyOpInterface copy) {
      emitBulkRows(b.builder, copy, lanes, full);
    });
    emitArrive(b, full);
  }

  void produceInAll(const BlockBuilder &b, ProduceOp produce) {
    barriers.waitUntilEmpty(b, produce.getIndex());
    Threads producers = getProducers(b);
    bool isPlain = false, isAsync = false;
    cloneBody(b, produce, IssuedBy::All, [&](TileCopyOpInterface copy) {
      if (copy.getCopy() == CopyKind::Plain) {
        isPlain = true;
        emitPlain(b.builder, copy, producers);
      } else {
        isAsync = true;
        emitAsyncCopy(b.builder, copy, producers);
      }
    });
    Barrier full = barriers.getFull(b, produce.getIndex());
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

  /// Whether products by the asynchronous proxy read what threads have copied.
  bool needsFenceOfProducts(ConsumeOp consume) const {
    return issuers.contains(IssuedBy::All) && hasProducts(consume);
  }

  /// Whether tensor copies may follow other writes to the tiles.
  bool needsFence(ConsumeOp consume) const {
    bool byUnit =
        issuers.contains(IssuedBy::Thread) || issuers.contains(IssuedBy::Warp);
    return byUnit &&
           (issuers.contains(IssuedBy::All) || writers.contains(consume));
  }

  void release(const BlockBuilder &b, ConsumeOp consume) const {
    Barrier empty = barriers.getEmpty(b, consume.getIndex());
    if (consume.getCommit())
      return commit(b, empty);
    if (needsFence(consume))
      emitProxyFence(b);
    if (!freesByWarp())
      return arriveOnce(b, empty);
    NVVM::SyncWarpOp::create(b.builder, b.loc, b.i32(-1));
    Value lane = b.rem(b.getAll().thread, b.index(BlockBuilder::kWarp));
    if (isOfCluster())
      b.runIf(b.less(lane, b.index(numBlocks)),
              [&] { emitArriveAtBlock(b, empty, lane); });
    else
      b.runIf(b.equal(lane, b.index(0)), [&] {
        for (int64_t i = 0; i < arrivals; ++i)
          emitArrive(b, empty);
      });
  }

  /// The slot is free when the products of the elected lane of each warp are
  /// done. A commit publishes no other accesses. An arrival publishes what the
  /// warp has written, which the lane has seen before its products.
  void commit(const BlockBuilder &b, Barrier empty) const {
    Value isElected = NVVM::ElectSyncOp::create(
        b.builder, b.loc, b.builder.getI1Type(), /*mask=*/Value());
    b.runIf(isElected, [&] {
      for (int64_t i = 1; i < arrivals; ++i)
        emitArrive(b, empty);
      TmemCommitOp::create(b.builder, b.loc, empty.group, empty.index);
    });
  }

  /// The slot is free for all blocks that copy to it.
  void arriveOnce(const BlockBuilder &b, Barrier empty) const {
    if (!isOfCluster())
      return emitArrive(b, empty);
    for (int64_t rank = 0; rank < numBlocks; ++rank)
      emitArriveAtBlock(b, empty, b.index(rank));
  }

  void lowerConsume(ConsumeOp consume) {
    IRRewriter rewriter(consume);
    BlockBuilder b(rewriter, consume.getLoc());
    Value index = consume.getIndex();
    if (setup)
      barriers.waitUntilFull(b, index);
    if (setup && needsFenceOfProducts(consume))
      emitProxyFence(b);
    SmallVector<Value> tiles = slots.getTiles(b, barriers.getSlot(b, index));
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
  const Chip *chip;
  KernelSetup *setup;
  const CacheStores &stores;
  Slots slots;
  PipeBarriers barriers;
  SmallVector<ProduceOp> produces;
  SmallVector<ConsumeOp> consumes;
  /// Consumptions that may write to their tiles.
  llvm::SmallPtrSet<Operation *, 4> writers;
  /// The arrivals of a warp that free a slot, if one lane frees it.
  int64_t arrivals = 1;
  llvm::SmallSetVector<IssuedBy, 3> issuers;
  /// The blocks of the cluster, if they copy to each other's slots; else 1.
  int64_t numBlocks = 1;
};

struct LowerPipes : kvcache::impl::LowerPipesBase<LowerPipes> {
  void runOnOperation() override {
    bool changed = false;
    WalkResult result =
        getOperation()->walk([&](FunctionOpInterface function) -> WalkResult {
          return lower(function, changed);
        });
    if (result.wasInterrupted())
      signalPassFailure();
    if (!changed)
      markAllAnalysesPreserved();
  }

private:
  LogicalResult lower(FunctionOpInterface function, bool &changed) {
    SmallVector<PipeOp> pipes;
    SmallVector<WarpRolesOp> roles;
    function.walk([&](PipeOp pipe) { pipes.push_back(pipe); });
    function.walk([&](WarpRolesOp op) { roles.push_back(op); });
    if (pipes.empty() && roles.empty())
      return success();
    changed = true;
    CopySite site(function);
    CacheStores stores(function, getOperation());
    std::optional<KernelSetup> setup;
    if (site.kernel)
      setup.emplace(site.kernel, *site.chip);
    // Before barriers of one pipe stand in regions of another: they look like
    // writes to tiles.
    std::vector<Pipe> lowered;
    for (PipeOp pipe : pipes) {
      unsigned copies = 0;
      if (failed(checkPipe(pipe, site)) ||
          failed(checkCopies(pipe, site, copies)) ||
          (setup && failed(setRegisters(pipe, site.kernel, *site.chip))))
        return failure();
      lowered.emplace_back(pipe, site.chip, setup ? &*setup : nullptr, stores);
      ++numPipes;
      numCopies += copies;
    }
    for (Pipe &pipe : lowered)
      if (failed(pipe.lower()))
        return failure();
    // Pipes count the warps of roles.
    for (WarpRolesOp op : roles) {
      if (!isInGPUCode(op)) {
        joinWarpRoles(op);
        continue;
      }
      if (!site.kernel)
        return op.emitOpError("expects a kernel in a gpu.module with one "
                              "target, or host code");
      if (failed(lowerWarpRoles(op, site.kernel, *site.chip)))
        return failure();
    }
    return success();
  }
};

} // namespace
